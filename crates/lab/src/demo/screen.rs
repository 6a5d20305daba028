//! What the demo shows of a command: the part of its output that a reader of five short screens needs.
//!
//! In: the text that `linerate` printed. Out: lines of it, unchanged. Pure.

/// Lines of a screen, with the command above.
pub(super) const LINES_MAX: usize = 12;

/// A line without its colours.
pub(super) fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        text += &part[end..];
    }
    text
}

/// The matrix of a layer: the names of the receivers, and a row of each sender.
pub(super) fn matrix<'a>(page: &'a str, layer: &str, hosts: &[String]) -> Vec<&'a str> {
    let title = format!("{layer}: throughput");
    let block = page.lines().skip_while(|line| !plain(line).starts_with(&title)).skip(1);
    let is_of_hosts = |line: &&str| {
        let line = plain(line);
        line.split_whitespace().next().is_some_and(|word| hosts.iter().any(|host| host == word))
    };
    block.take_while(|line| !plain(line).trim().is_empty()).filter(is_of_hosts).collect()
}

/// The lines of the verdict: what stands behind the matrices, without what was not seen and the name of the
/// run.
pub(super) fn verdict(page: &str) -> Vec<&str> {
    let lines: Vec<&str> = page.lines().collect();
    let behind = lines.iter().rposition(|line| plain(line).trim().is_empty()).map_or(0, |at| at + 1);
    lines[behind..].iter().copied().take_while(|line| !plain(line).starts_with("Not seen")).collect()
}

/// The result of a trial, without the hint at the next command.
pub(super) fn trial(page: &str) -> Vec<&str> {
    let is_result = |line: &&str| {
        let line = plain(line);
        !line.trim().is_empty() && !line.trim_start().starts_with("Next ")
    };
    page.lines().filter(is_result).collect()
}

/// No more lines than fit below the command.
pub(super) fn fitting(lines: &[&str]) -> Vec<String> {
    let most = LINES_MAX - 1;
    let mut kept: Vec<String> = lines.iter().take(most).map(|line| (*line).to_owned()).collect();
    if lines.len() > most {
        kept[most - 1] = format!("… and {} more lines", lines.len() - most + 1);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
underlay: throughput in percent of the ceiling
  ceiling 188 Mbit/s, set by the shared uplink (uplink of vs-4: 200 Mbit/s x 0.941 framing): 24
    pairs
        arc-1 arc-2
  arc-1     -    98
  arc-2   102     -
  rows send, columns receive

\u{1b}[1moverlay: throughput in percent of the ceiling\u{1b}[0m
        arc-1 arc-2
  arc-1     -     ?
  arc-2   \u{1b}[31m0.9\u{1b}[0m     -
  rows send, columns receive; ? not seen

1. arc-1 receives 1.53 Mbit/s of 182 Mbit/s
   Cause  GRO
Not seen: 1 of 2 pairs (overlay); survey again when the hosts are idle
";

    #[test]
    fn a_screen_has_one_matrix_and_the_verdict() {
        let hosts = ["arc-1".to_owned(), "arc-2".to_owned()];
        let overlay = matrix(PAGE, "overlay", &hosts);
        assert_eq!(overlay.len(), 3, "{overlay:?}");
        assert!(overlay[2].contains("\u{1b}[31m0.9"), "colours stay: {overlay:?}");
        assert_eq!(matrix(PAGE, "underlay", &hosts)[1], "  arc-1     -    98");
        assert!(matrix(PAGE, "tunnel", &hosts).is_empty());
        assert_eq!(verdict(PAGE).len(), 2);
        assert_eq!(verdict("at ceiling: 98 % of it\n"), ["at ceiling: 98 % of it"]);
    }

    #[test]
    fn a_screen_is_never_longer_than_it_may_be() {
        let many: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let kept = fitting(&many);
        assert_eq!((kept.len(), kept[10].as_str()), (11, "… and 30 more lines"));
        assert_eq!(fitting(&many[..11]).len(), 11);
        let page = "\nit became better\n  Setting  a\n  Next     linerate keep 1\n";
        assert_eq!(trial(page), ["it became better", "  Setting  a"]);
    }
}
