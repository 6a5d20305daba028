//! The list of formats; one file per format, and helpers that several of them share. Pieces of text come in,
//! values go to the sink. To add a format: a file in this folder, a line in `READERS`, fixtures in
//! `tests/files/`, a line in `xtask/src/fuzz/targets.rs`.

mod audit;
mod diskstats;
mod drbd;
mod drbd_show;
mod etc_hosts;
mod ethtool;
mod ethtool_driver;
mod ethtool_features;
mod ethtool_stats;
mod fio;
mod gluster_log;
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
mod json;
mod matrix;
mod netperf;
mod nuttcp;
mod ping;
mod softnet;
mod ss;
mod storage_words;
mod sysctl;
mod table_words;
mod tiotest;
mod transfer;

use crate::reader::Reader;

/// All formats, the ones with the surest marks first.
pub(crate) const READERS: &[&dyn Reader] = &[
    &iperf3_json::Iperf3Json,
    &fio::Fio,
    &ip_json::IpJson,
    &iperf3::Iperf3,
    &iperf2::Iperf2,
    &iperf2_csv::Iperf2Csv,
    &nuttcp::Nuttcp,
    &netperf::Netperf,
    &ping::Ping,
    &ss::Ss,
    &ethtool::Link,
    &ethtool::Rings,
    &ethtool::Coalesce,
    &ethtool::Channels,
    &ethtool_driver::Driver,
    &ethtool_features::Features,
    &ethtool_stats::Statistics,
    &ip_text::IpText,
    &sysctl::Sysctl,
    &softnet::Softnet,
    &interrupts::Interrupts,
    &iostat::Iostat,
    &diskstats::Diskstats,
    &tiotest::Tiotest,
    &drbd::Drbd,
    &drbd_show::DrbdShow,
    &gluster_log::GlusterLog,
    &audit::Audit,
    &etc_hosts::EtcHosts,
    &hostname::Hostname,
    &matrix::Matrix,
];

/// Names and descriptions of all formats.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    READERS.iter().map(|reader| (reader.name(), reader.describes()))
}

/// The reader of this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn Reader> {
    READERS.iter().find(|reader| reader.name() == name).copied()
}
