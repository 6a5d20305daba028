//! Rates of disks and transports in sentences: `the local RAID had 265.9 MB/s (write)`, `4 Gbit/s over
//! IPoIB`. A line comes in, figures go out; what is expected or promised is none.

use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use super::storage_words::TRANSPORTS;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct StatedRates;

/// Units of disks, bytes per second.
const OF_DISKS: [(&str, f64); 4] =
    [("mb/s", 1e6), ("mib/s", 1_048_576.0), ("gb/s", 1e9), ("gib/s", 1_073_741_824.0)];
/// Units of transports, bytes per second.
const OF_TRANSPORTS: [(&str, f64); 3] = [("gbit/s", 125e6), ("gbps", 125e6), ("mbit/s", 125e3)];
/// Words of a disk below everything.
const LOCAL: [&str; 4] = ["local", "locally", "raw", "underlying"];
/// Words of a replica.
const REPLICATED: [&str; 3] = ["drbd", "replicated", "replica"];
/// With one of these in front a word names what is not there.
const WITHOUT: [&str; 2] = ["without", "no"];
/// Words of what was not measured.
const HOPED: [&str; 8] = ["should", "expect", "expected", "promised", "rated", "theoretical", "need", "want"];
/// Longest line that is checked, bytes.
const LINE_MAX: usize = 400;

/// Words of a line in small letters, without signs around them.
fn words(line: &str) -> Vec<String> {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    line.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect()
}

/// What the words in front of a number speak of: the nearest decides.
fn subject(before: &[String]) -> Option<StorageSubject> {
    let is = |list: &[&str], word: &String| list.contains(&word.as_str());
    before.iter().enumerate().rev().find_map(|(at, word)| {
        let is_without = at > 0 && is(&WITHOUT, &before[at - 1]);
        let is_replica = is(&REPLICATED, word);
        let is_local = is(&LOCAL, word) || is_replica && is_without;
        is_local.then_some(StorageSubject::LocalDisk).or(is_replica.then_some(StorageSubject::Replicated))
    })
}

/// `write`, `random write`, `reads` behind a number, or the one word in front of it.
fn pattern(before: &[String], behind: &[String]) -> Option<StoragePattern> {
    let of = |words: &[String]| {
        let is_random = words.first().is_some_and(|word| word == "random");
        match (words.get(usize::from(is_random))?.trim_end_matches('s'), is_random) {
            ("write", false) => Some(StoragePattern::Write),
            ("write", true) => Some(StoragePattern::RandomWrite),
            ("read", false) => Some(StoragePattern::Read),
            ("read", true) => Some(StoragePattern::RandomRead),
            _ => None,
        }
    };
    of(behind).or_else(|| of(&before[before.len().saturating_sub(1)..]))
}

/// The figures of a line.
fn figures(line: &str) -> Vec<StorageFigure> {
    let words = if line.len() <= LINE_MAX { words(line) } else { Vec::new() };
    if words.iter().any(|word| HOPED.contains(&word.as_str())) {
        return Vec::new();
    }
    let unit =
        |known: &[(&str, f64)], word: &String| known.iter().find(|(name, _)| name == word).map(|(_, f)| *f);
    let at = |i: usize| {
        let (value, behind) = (number(&words[i])?, &words[i + 2..]);
        if let Some(factor) = unit(&OF_DISKS, &words[i + 1]) {
            let (what, pattern) = (subject(&words[..i])?, pattern(&words[..i], behind)?);
            return Some(StorageFigure {
                what,
                pattern,
                bytes_per_s: value * factor,
                ..StorageFigure::default()
            });
        }
        let factor = unit(&OF_TRANSPORTS, &words[i + 1])?;
        let name = behind.get(1).filter(|_| ["over", "via"].contains(&behind[0].as_str()))?;
        TRANSPORTS.contains(&name.as_str()).then(|| StorageFigure {
            what: StorageSubject::Transport,
            variant: name.clone(),
            pattern: StoragePattern::Stream,
            bytes_per_s: value * factor,
            ..StorageFigure::default()
        })
    };
    (0..words.len().saturating_sub(2)).filter_map(at).collect()
}

impl Reader for StatedRates {
    fn name(&self) -> &'static str {
        "stated-rates"
    }

    fn describes(&self) -> &'static str {
        "sentences: rates of disks and of the transports between them"
    }

    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        (line.contains("/s") || line.contains("bps")) && !line.contains('|') && !figures(line).is_empty()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        for figure in figures(block.first()) {
            out.figure(figure);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<String> {
        let text = |f: StorageFigure| {
            format!("{:?} {} {:?} {:.0}", f.what, f.variant, f.pattern, f.bytes_per_s / 1e5)
        };
        figures(line).into_iter().map(text).collect()
    }

    #[test]
    fn sentences_state_rates() {
        assert_eq!(
            of(
                "The local RAID10 without DRBD had 265.9 MB/s (write) and 16.4 MB/s (random write), iperf 3.96 Gbit/s \
                over IPoIB and"
            ),
            ["LocalDisk  Write 2659", "LocalDisk  RandomWrite 164", "Transport ipoib Stream 4950"]
        );
        assert_eq!(of("over DRBD I write 90 MB/s, locally 300 MB/s."), ["Replicated  Write 900"]);
        assert_eq!(of("raw reads 500 MiB/s, on the replica 100 MB/s reads").len(), 2);
        for line in [
            "the local disk should write 500 MB/s (write)",
            "we get 90 MB/s (write)",
            "| Write        4096 MBs |   44.6 s |  91.800 MB/s |   1.0 %  |",
            "10 Gbit/s over the switch",
            "5 MB/s",
        ] {
            assert_eq!(of(line), [""; 0], "{line}");
        }
    }
}
