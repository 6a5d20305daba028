//! What the hellos of the nodes tell a person: clocks that are wrong, node programs of another build.
//!
//! What comes in: names of hosts with what their nodes said. What goes out: one sentence for all hosts of
//! which the same is to be said. Nothing that is measured depends on either.

use std::collections::BTreeMap;

use super::link::HELLO_WAIT;

/// Clocks that differ from ours by more than a hello can be under way, in milliseconds ahead of it.
pub(super) fn clocks<'a>(hosts: impl Iterator<Item = (&'a str, Option<i64>)>) -> Vec<String> {
    let mut odd: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, ahead_ms) in hosts {
        let Some(ahead_ms) = ahead_ms else { continue };
        if ahead_ms.unsigned_abs() > HELLO_WAIT.as_millis() as u64 {
            let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
            odd.entry(format!("{} {side}", span(ahead_ms.unsigned_abs()))).or_default().push(host);
        }
    }
    let say = |(difference, hosts): (String, Vec<&str>)| {
        format!(
            "{}: the clock is {difference} this machine's; nothing is measured by it, but logs, keys and certificates \
             depend on it\nhint: `timedatectl` shows whether anything sets it",
            whose(&hosts)
        )
    };
    odd.into_iter().map(say).collect()
}

/// Rounded to what a person wants to know, so that hosts with the same wrong clock are one sentence.
fn span(ms: u64) -> String {
    let minutes = (ms.saturating_add(30_000)) / 60_000;
    match minutes {
        0..=1 => format!("{} s", ms / 10_000 * 10),
        2..=59 => format!("{minutes} min"),
        60..=1439 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} d", minutes / 1440),
    }
}

/// Node programs of another build than ours.
pub(super) fn builds<'a>(hosts: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut other: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (host, build) in hosts.filter(|(_, build)| *build != linerate_wire::BUILD) {
        other.entry(build).or_default().push(host);
    }
    let say = |(build, hosts): (&str, Vec<&str>)| {
        format!(
            "{}: the node program is of the build {}, this program of {}\nhint: build both together, or set LINERATE_NODE",
            whose(&hosts),
            build,
            linerate_wire::BUILD
        )
    };
    other.into_iter().map(say).collect()
}

fn whose(hosts: &[&str]) -> String {
    format!("{} {}", if hosts.len() == 1 { "host" } else { "hosts" }, few(hosts))
}

/// Names, but not thousands.
pub(super) fn few(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    match names.len() {
        0..=SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_clocks_are_one_sentence_each() {
        let hour = 3_600_000;
        let shown = clocks(
            [
                ("a", Some(-hour - 15_000)),
                ("b", Some(9_999)),
                ("c", None),
                ("d", Some(hour)),
                ("e", Some(hour + 200)),
            ]
            .into_iter(),
        );
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(
            shown[0].starts_with("hosts d, e: the clock is 1 h 0 min ahead of this machine's"),
            "{shown:?}"
        );
        assert!(shown[1].starts_with("host a: the clock is 1 h 0 min behind this machine's"), "{shown:?}");
        let odd = clocks([("a", Some(i64::MIN)), ("b", Some(i64::MAX)), ("c", Some(-40_500))].into_iter());
        assert_eq!(odd.len(), 3, "{odd:?}");
    }

    #[test]
    fn spans_are_rounded() {
        assert_eq!(span(40_500), "40 s");
        assert_eq!(span(3_599_600), "1 h 0 min");
        assert_eq!(span(5_430_000), "1 h 31 min");
        assert_eq!(span(100 * 86_400_000), "100 d");
    }

    #[test]
    fn another_build_is_named_once() {
        let own = linerate_wire::BUILD;
        let shown = builds([("a", "0.0.1-x"), ("b", own), ("c", "0.0.1-x")].into_iter());
        assert_eq!(shown.len(), 1);
        assert!(shown[0].starts_with("hosts a, c: the node program is of the build 0.0.1-x"), "{shown:?}");
    }
}
