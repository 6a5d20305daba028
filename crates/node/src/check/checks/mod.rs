//! The checks, one file each; their list is in `list.rs`.

pub(super) mod carrier;
pub(super) mod clock;
pub(super) mod disk_health;
pub(super) mod drbd;
pub(super) mod frame_drops;
pub(super) mod frame_errors;
pub(super) mod gluster_log;
pub(super) mod growing;
pub(super) mod kept_set;
pub(super) mod kernel_log;
pub(super) mod link_duplex;
pub(super) mod link_speed;
pub(super) mod log_lines;
pub(super) mod mount_points;
pub(super) mod mounts;
pub(super) mod nics;
pub(super) mod pcie_width;
pub(super) mod pressure;
pub(super) mod site;
pub(super) mod volumes;
