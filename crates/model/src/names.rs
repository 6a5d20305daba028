//! The order in which people count names of devices and hosts.

use std::cmp::Ordering;

/// Beginnings of the names of drives that the kernel counts with letters: `sdz` is followed by `sdaa`.
const LETTERED: [&str; 4] = ["hd", "sd", "vd", "xvd"];

/// The order of two names as people count: `sdz` before `sdaa`, `nvme2n1` before `nvme10n1`, `arc-2` before
/// `arc-10`. Folders may stand before them.
#[must_use]
pub fn natural(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(&pieces(b)).then_with(|| a.cmp(b))
}

/// Names in their natural order and in few words: three or more that count up by one are `n[1-7]`, as Slurm
/// and ClusterShell write it.
#[must_use]
pub fn ranges(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_by(|a, b| natural(a, b));
    let follows = |a: &str, b: &str| {
        let ((text, number), (other, next)) = (counted(a), counted(b));
        let (Ok(v), Ok(w)) = (number.parse::<u64>(), next.parse::<u64>()) else { return false };
        // `n9` is followed by `n10`, `n09` is not followed by `n010`.
        let alike = number.len() == next.len() || !(number.starts_with('0') || next.starts_with('0'));
        text == other && alike && v.checked_add(1) == Some(w)
    };
    let mut runs: Vec<Vec<&str>> = Vec::new();
    for name in names {
        match runs.last_mut().filter(|run| run.last().is_some_and(|last| follows(last, name))) {
            Some(run) => run.push(name),
            None => runs.push(vec![name]),
        }
    }
    let words = runs.iter().map(|run| match run.as_slice() {
        [first, _, .., last] => {
            let ((text, from), (_, to)) = (counted(first), counted(last));
            format!("{text}[{from}-{to}]")
        }
        few => few.join(", "),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A name without the digits at its end, and these.
fn counted(name: &str) -> (&str, &str) {
    name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len())
}

/// A piece of a name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    /// What counts, with its length: digits without zeros before them, and the letters of a drive. The
    /// shorter one comes first.
    Counted(usize, &'a str),
    /// All else.
    Plain(&'a str),
}

fn pieces(name: &str) -> Vec<Piece<'_>> {
    let (folder, mut rest) = name.split_at(name.rfind('/').map_or(0, |at| at + 1));
    let mut pieces = vec![Piece::Plain(folder)];
    if let Some((kind, letters)) = LETTERED.iter().find_map(|kind| Some((*kind, counting(kind, rest)?))) {
        pieces.extend([Piece::Plain(kind), Piece::Counted(letters.len(), letters)]);
        rest = &rest[kind.len() + letters.len()..];
    }
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        let number = run.trim_start_matches('0');
        pieces.push(if is_digit { Piece::Counted(number.len(), number) } else { Piece::Plain(run) });
        rest = behind;
    }
    pieces
}

/// The letters that count a drive of this kind; behind them nothing or the number of a partition.
fn counting<'a>(kind: &str, name: &'a str) -> Option<&'a str> {
    let letters = name.strip_prefix(kind)?.trim_end_matches(|c: char| c.is_ascii_digit());
    (!letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase())).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Orders them from the wrong end.
    fn ordered(names: &[&str]) {
        let mut turned: Vec<&str> = names.iter().rev().copied().collect();
        turned.sort_by(|a, b| natural(a, b));
        assert_eq!(turned, names);
    }

    #[test]
    fn names_that_count_up_are_told_by_the_first_and_the_last() {
        assert_eq!(ranges(&["n3", "n1", "n2"]), "n[1-3]");
        assert_eq!(ranges(&["n10", "n8", "n9", "n12", "n13", "db"]), "db, n[8-10], n12, n13");
        assert_eq!(ranges(&["n08", "n09", "n010", "n10"]), "n08, n09, n010, n10");
        assert_eq!(ranges(&["rack1-n1", "rack1-n2", "rack1-n3", "rack2-n4"]), "rack1-n[1-3], rack2-n4");
        assert_eq!(ranges(&["99999999999999999999999", "a"]), "99999999999999999999999, a");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn drives_are_counted_as_the_kernel_does() {
        ordered(&["sda", "sda1", "sda2", "sda10", "sdb", "sdz", "sdaa", "sdae", "sdba", "sdaaa"]);
        ordered(&["dm-2", "dm-10", "nvme2n1", "nvme2n1p9", "nvme2n1p10", "nvme10n1", "sdb", "vdb", "vdaa"]);
        ordered(&["/dev/sdb", "/dev/sdz", "/dev/sdab"]);
        ordered(&["0", "2", "10", "123456789012345678901234567890"]);
    }

    #[test]
    fn other_names_are_ordered_by_their_numbers_and_different_ones_never_equal() {
        ordered(&["", "arc-1", "arc-02", "arc-2", "arc-10", "arc-10a", "sd", "sdA", "\u{e4}-9", "\u{e4}-10"]);
        assert_eq!(natural("sda", "sda"), Ordering::Equal);
    }
}
