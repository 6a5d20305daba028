//! Sentences of kernels and programs that name a cause by themselves, wherever they stand: in a log, a
//! terminal or a mail. Lines come in; a fact `sentence.<name>` goes out, with the words that were found.
//!
//! To add one: a line in `SENTENCES`, and a file of the cause with an indicator `sentence.<name>`, or a topic
//! with that key.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Sentences;

/// The name of a sentence, and words in small letters that its line has, all of them.
const SENTENCES: &[(&str, &[&str])] = &[
    ("no_local_port", &["connect", "cannot assign requested address"]),
    ("no_local_port", &["dial tcp", "cannot assign requested address"]),
    ("no_local_port", &["eaddrnotavail", "connect"]),
    ("ipv6_unanswered", &["syn-sent", "[2"]),
    ("own_address", &["received packet on", "with own address as source address"]),
    ("bond_member_down", &["link status down for", "interface"]),
    ("no_lacp_partner", &["no 802.3ad response from the link partner"]),
    ("redirect", &["icmp_seq=", "redirect", "new nexthop"]),
    ("redirect", &["icmp redirect", " to host "]),
    ("route6_full", &["route cache is full", "net.ipv6.route.max_size"]),
    ("slot_power", &["detected insufficient power on the pcie slot"]),
    ("bus_errors", &["pcie bus error: severity"]),
    ("bus_errors", &["aer: corrected error received"]),
    ("interrupt_off", &["disabling irq #"]),
    ("interrupt_off", &["irq ", "(try booting with the \"irqpoll\" option)"]),
    ("nvme_polled", &["timeout, completion polled"]),
    ("nvme_gone", &["controller is down; will reset", "csts=0x"]),
    ("memory_errors", &["edac mc", " ce "]),
    ("memory_errors", &["hardware error", "corrected error", "memory"]),
    ("under_voltage", &["under-voltage detected"]),
    ("under_voltage", &["undervoltage detected"]),
    ("no_entropy", &["waiting to read random data"]),
    ("open_files", &["too many open files"]),
    ("no_space", &["no space left on device"]),
    ("lazy_init", &["ext4lazyinit"]),
    ("slow_log", &["slow fdatasync"]),
    ("slow_log", &["leader is overloaded likely from slow disk"]),
    ("slow_log", &["fsync-ing the write ahead log in", "took"]),
    ("slow_log", &["page_cleaner", "intended loop took"]),
    ("checkpoints", &["checkpoints are occurring too frequently"]),
    ("bluefs_spillover", &["spilled over", "slow device"]),
    ("bluefs_spillover", &["bluefs_spillover"]),
    ("clock_skew", &["clock skew detected"]),
    ("ndots", &["options", "ndots:5"]),
    ("radio_modes_off", &["options iwlwifi", "11n_disable=1"]),
];
/// Longest line that is checked, bytes.
const LINE_MAX: usize = 600;
/// Bits of `throttled=0x50005` of the firmware of a Raspberry Pi: the voltage is or was too low.
const LOW_VOLTAGE: u64 = 1 | 1 << 16;

/// The name of the sentence of a line, and the words by which it is known.
fn known(line: &str) -> Option<(&'static str, String)> {
    if line.len() > LINE_MAX {
        return None;
    }
    let lower = line.to_lowercase();
    let of_board =
        lower.trim().strip_prefix("throttled=0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    if of_board.is_some_and(|bits| bits & LOW_VOLTAGE != 0) {
        return Some(("under_voltage", lower.trim().to_owned()));
    }
    let found = SENTENCES.iter().find(|(_, words)| words.iter().all(|word| lower.contains(word)));
    found.map(|(name, words)| (*name, words.iter().map(|word| word.trim()).collect::<Vec<_>>().join(" … ")))
}

impl Reader for Sentences {
    fn name(&self) -> &'static str {
        "sentences"
    }

    fn describes(&self) -> &'static str {
        "logs, terminals, mails: sentences that name a cause"
    }

    // The line may be a sentence of a mail, whose words count too.
    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        known(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some((name, words)) = known(block.first()) {
            out.text(format!("sentence.{name}"), &words);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_cause() {
        let of = |line: &str| known(line).map(|(name, _)| name).unwrap_or_default();
        for (line, name) in [
            ("Oct 9 10:01:35 c1 x[1]: {backend-connect}: Cannot assign requested address", "no_local_port"),
            (
                "[1.2] br0: received packet on eth1 with own address as source address (addr:02)",
                "own_address",
            ),
            ("[  9.1] EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0)", "memory_errors"),
            ("throttled=0x50005", "under_voltage"),
            ("throttled=0x50000", "under_voltage"),
            ("nvme nvme0: I/O 12 QID 3 timeout, completion polled", "nvme_polled"),
            ("From 10.0.0.1: icmp_seq=2 Redirect Host(New nexthop: 10.0.0.7)", "redirect"),
        ] {
            assert_eq!(of(line), name, "{line}");
        }
        // Another cause: the address of a service is not on the host.
        for line in ["bind: Cannot assign requested address", "throttled=0x0", "throttled=0xZ", "", "ndots"] {
            assert_eq!(of(line), "", "{line}");
        }
        assert_eq!(
            known("x connect to y: Cannot assign requested address").unwrap().1,
            "connect … cannot assign requested address"
        );
    }
}
