//! Families of metrics, as node_exporter groups them: a file each, with a table of metrics and the keys that
//! they are here. To add one: a file, and one line of [`FAMILIES`].

mod conntrack;
mod cpu;
mod disk;
mod drbd;
mod ethtool;
mod filesystem;
mod md;
mod netstat;
mod network;
mod nfs;
mod pressure;
mod softnet;
mod sysctl;
mod uname;
mod watch;

use super::family::Family;

pub(super) use disk::figures;

/// All families; the first one names the hosts.
pub(super) static FAMILIES: &[&dyn Family] = &[
    &uname::Uname,
    &netstat::Netstat,
    &network::Network,
    &ethtool::Ethtool,
    &softnet::Softnet,
    &conntrack::Conntrack,
    &disk::Diskstats,
    &pressure::Pressure,
    &cpu::Cpu,
    &filesystem::Filesystem,
    &md::Md,
    &nfs::Nfs,
    &drbd::Drbd,
    &sysctl::Sysctl,
    &watch::Watch,
];
