//! One file per kernel interface. The only `unsafe` of the product lives here; it decides nothing.
#![allow(unsafe_code)]
pub mod cpu;
pub mod ethtool;
pub mod ethtool_family;
pub mod ethtool_ioctl;
pub mod interrupt;
pub mod netlink;
pub mod netns;
pub mod offload;
pub mod process;
pub mod procfs;
pub mod qdisc;
pub mod root;
pub mod rtnetlink;
pub mod sandbox;
pub mod sched;
pub mod socket;
pub mod socket_options;
pub mod spawn;
pub mod sysctl;
pub mod sysfs;
pub mod tap;
pub mod tcp_info;
