//! The list of formats; one file per format, and helpers that several of them share. Pieces of text come in,
//! values go to the sink. To add a format: a file in this folder, a line in `READERS`, fixtures in
//! `tests/files/`, a line in `xtask/src/fuzz/targets.rs`.

mod arping;
mod arrows;
mod audit;
mod bad_checksum;
mod bonding;
mod btrfs;
mod cgroup_cpu;
mod conntrack;
mod counted_rules;
mod cpu_power;
mod cpu_use;
mod dd;
mod diskstats;
mod dmsetup;
mod docker_network;
mod download;
mod drbd;
mod drbd_show;
mod drive_list;
mod drop_table;
mod etc_hosts;
mod ethtool;
mod ethtool_driver;
mod ethtool_features;
mod ethtool_link_options;
mod ethtool_stats;
mod fio;
mod fio_text;
mod firewall;
mod gluster_log;
mod groups;
mod hostname;
mod interrupts;
mod iostat;
mod ip_json;
mod ip_text;
mod iperf2;
mod iperf2_csv;
mod iperf3;
mod iperf3_json;
mod iperf_lines;
mod iw;
mod json;
mod kernel_log;
mod lspci;
mod lsusb;
mod lvm;
mod matrix;
mod mdstat;
mod megaraid;
mod modinfo;
mod mounts;
mod mountstats;
mod nccl;
mod neighbours;
mod netperf;
mod netstat;
mod nfsstat;
mod numactl;
mod nuttcp;
mod omreport;
mod ping;
mod qdisc;
mod request_times;
mod sar_net;
mod sentences;
mod slurm_nodes;
mod smart;
mod softnet;
mod ss;
mod ss_summary;
mod ss_udp;
mod ssacli;
mod stated_models;
mod stated_rates;
mod stated_settings;
mod storage_words;
mod storcli;
mod sysctl;
mod sysfs;
mod table_words;
mod tcpretrans;
mod tiotest;
mod too_long;
mod transfer;
mod zpool;

use crate::reader::Reader;

/// All formats, the ones with the surest marks first.
pub(crate) const READERS: &[&dyn Reader] = &[
    &iperf3_json::Iperf3Json,
    &fio::Fio,
    &ip_json::IpJson,
    &docker_network::DockerNetwork,
    &iperf3::Iperf3,
    &iperf2::Iperf2,
    &iperf2_csv::Iperf2Csv,
    &nuttcp::Nuttcp,
    &netperf::Netperf,
    &ping::Ping,
    &arping::Arping,
    &ss_udp::SsUdp,
    &ss_udp::NetstatUdp,
    &ss::Ss,
    &ss_summary::SsSummary,
    &ethtool::Link,
    &ethtool::Rings,
    &ethtool::Coalesce,
    &ethtool::Channels,
    &ethtool_link_options::Pause,
    &ethtool_link_options::Eee,
    &ethtool_driver::Driver,
    &ethtool_features::Features,
    &ethtool_stats::Statistics,
    &neighbours::Neighbours,
    &ip_text::IpText,
    &bonding::Bonding,
    &cpu_power::IdleInfo,
    &cpu_power::Governor,
    &sysfs::Sysfs,
    &sysctl::Sysctl,
    &softnet::Softnet,
    &interrupts::Interrupts,
    &cpu_use::CpuUse,
    &sar_net::SarNet,
    &iostat::Iostat,
    &diskstats::Diskstats,
    &tiotest::Tiotest,
    &drbd::Drbd,
    &drbd_show::DrbdShow,
    &gluster_log::GlusterLog,
    &audit::Audit,
    &fio_text::FioText,
    &dd::Dd,
    &qdisc::Qdisc,
    &download::Downloads,
    &lspci::Lspci,
    &lsusb::Lsusb,
    &iw::Iw,
    &modinfo::Modinfo,
    &numactl::Numactl,
    &netstat::NetstatS,
    &netstat::Nstat,
    &netstat::ProcNet,
    &netstat::NetstatI,
    &firewall::Firewall,
    &counted_rules::CountedRules,
    &tcpretrans::Tcpretrans,
    &lvm::Lvm,
    &mdstat::Mdstat,
    &btrfs::Btrfs,
    &conntrack::Conntrack,
    &cgroup_cpu::CgroupCpu,
    &request_times::RequestTimes,
    &dmsetup::Dmsetup,
    &megaraid::Megaraid,
    &storcli::Storcli,
    &ssacli::Ssacli,
    &omreport::Omreport,
    &smart::Smart,
    &smart::NvmeLog,
    &drive_list::Hdparm,
    &drive_list::HdparmModel,
    &drive_list::NvmeList,
    &zpool::Zpool,
    &stated_rates::StatedRates,
    &stated_settings::StatedSettings,
    &stated_models::StatedModels,
    &mountstats::Mountstats,
    &nfsstat::Nfsstat,
    &mounts::Mounts,
    &slurm_nodes::SlurmNodes,
    &nccl::Nccl,
    &kernel_log::KernelLog,
    &too_long::TooLong,
    &sentences::Sentences,
    &bad_checksum::BadChecksum,
    &etc_hosts::EtcHosts,
    &hostname::Hostname,
    &drop_table::DropTable,
    &matrix::Matrix,
    &arrows::Arrows,
    &groups::Groups,
];

/// Name of the reader of tables, which have no command of their own.
pub(crate) const TABLE: &str = "table";

/// Names and descriptions of all formats.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    READERS.iter().map(|reader| (reader.name(), reader.describes()))
}

/// The reader of this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn Reader> {
    READERS.iter().find(|reader| reader.name() == name).copied()
}
