//! Models of drives in a sentence or a line of a log: `bought a WD40EFAX`. A line comes in, a fact
//! `storage.<model>.model` goes out for each.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct StatedModels;

/// Makers' beginnings of the names of their drives, and the shortest and longest name with it.
const BEGINS: [(&str, usize, usize); 6] =
    [("ST", 10, 14), ("WD", 8, 9), ("HDWD", 7, 12), ("HDWL", 7, 12), ("MQ04", 10, 12), ("DT02", 10, 12)];
/// Longest line that is checked, bytes.
const LINE_MAX: usize = 400;

/// `WD40EFAX-68JH4N0`, `ST4000DM004`: what stands before the dash, with digits and capital letters alone.
fn models(line: &str) -> Vec<&str> {
    let is_sign = |c: char| !c.is_ascii_alphanumeric();
    let words = if line.len() <= LINE_MAX { line } else { "" }.split(is_sign);
    let fits = |word: &&str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_plain = word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        let of_maker = |(begin, least, most): &(&str, usize, usize)| {
            (*least..=*most).contains(&word.len())
                && word.strip_prefix(begin).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        is_plain && digits >= 2 && BEGINS.iter().any(of_maker)
    };
    words.filter(fits).collect()
}

impl Reader for StatedModels {
    fn name(&self) -> &'static str {
        "stated-models"
    }

    fn describes(&self) -> &'static str {
        "sentences: models of drives"
    }

    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        !models(block.first()).is_empty()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        for model in models(block.first()) {
            out.text(format!("storage.{model}.model"), model);
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_stand_in_sentences() {
        assert_eq!(models("a brand new Western Digital WD40EFAX-68JH4N0, and"), ["WD40EFAX"]);
        assert_eq!(models("two ST4000DM004 and one HDWD240"), ["ST4000DM004", "HDWD240"]);
        for line in ["STATUS WD ST1", "STOPPED2", "the WDC", "ST-4000", "wd40efax", "STAT0000000"] {
            assert_eq!(models(line), [""; 0], "{line}");
        }
    }
}
