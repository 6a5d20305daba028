//! The list of formats, and what a format is. To add one: a file in `formats/`, a line in `READERS`, fixtures in
//! `tests/files/`, a line in `xtask/src/fuzz/targets.rs`.

use crate::context::Context;
use crate::formats;
use crate::sink::Sink;

/// Lines that follow each other, up to the next prompt or the end.
pub(crate) struct Block<'a> {
    /// The lines; never empty.
    pub lines: &'a [&'a str],
    /// What is known around them.
    pub at: &'a Context,
}

impl<'a> Block<'a> {
    /// The first line.
    pub(crate) fn first(&self) -> &'a str {
        self.lines.first().copied().unwrap_or("")
    }

    /// A line of the block; empty behind its end.
    pub(crate) fn line(&self, index: usize) -> &'a str {
        self.lines.get(index).copied().unwrap_or("")
    }
}

/// Stands for a line that is too long: a control character, which no clean line has.
pub(crate) const LONG_LINE: &str = "\u{1}";

/// One format.
pub(crate) trait Reader: Sync {
    /// Name for `--as` and for the account.
    fn name(&self) -> &'static str;
    /// What it is, in a few words.
    fn describes(&self) -> &'static str;
    /// Whether a piece of it begins with the first line. Looks at a few lines only: it is asked at every line.
    fn begins(&self, block: &Block<'_>) -> bool;
    /// Reads a piece; says how many lines belong to it. Lines among them that it cannot use it names to the sink.
    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize;
    /// The piece names the hosts that it speaks of, so that the host of the prompt need not be told.
    fn names_hosts(&self) -> bool {
        false
    }
    /// It is shown lines of any length. To all others a line beyond the limit is [`LONG_LINE`], which belongs
    /// to no format.
    fn takes_long_lines(&self) -> bool {
        false
    }
}

/// All formats, the ones with the surest marks first.
pub(crate) const READERS: &[&dyn Reader] = &[
    &formats::iperf3_json::Iperf3Json,
    &formats::fio::Fio,
    &formats::ip_json::IpJson,
    &formats::iperf3::Iperf3,
    &formats::iperf2::Iperf2,
    &formats::iperf2_csv::Iperf2Csv,
    &formats::nuttcp::Nuttcp,
    &formats::netperf::Netperf,
    &formats::ping::Ping,
    &formats::ss::Ss,
    &formats::ethtool::Link,
    &formats::ethtool::Rings,
    &formats::ethtool::Coalesce,
    &formats::ethtool::Channels,
    &formats::ethtool_driver::Driver,
    &formats::ethtool_features::Features,
    &formats::ethtool_stats::Statistics,
    &formats::ip_text::IpText,
    &formats::sysctl::Sysctl,
    &formats::softnet::Softnet,
    &formats::interrupts::Interrupts,
    &formats::iostat::Iostat,
    &formats::diskstats::Diskstats,
    &formats::tiotest::Tiotest,
    &formats::drbd::Drbd,
    &formats::drbd_show::DrbdShow,
    &formats::gluster_log::GlusterLog,
    &formats::audit::Audit,
    &formats::etc_hosts::EtcHosts,
    &formats::hostname::Hostname,
    &formats::matrix::Matrix,
];

/// Names and descriptions of all formats.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    READERS.iter().map(|reader| (reader.name(), reader.describes()))
}

/// The reader of this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn Reader> {
    READERS.iter().find(|reader| reader.name() == name).copied()
}
