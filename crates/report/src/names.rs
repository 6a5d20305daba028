//! Names of groups, settings, values and hosts, as they are shown. Model values in, plain English out. Never
//! formats a number (see `units`).

use linerate_model::fact::FactValue;
use linerate_model::finding::{Suspect, TermName};
use linerate_model::inventory::Inventory;
use linerate_model::printable::clean;

/// `a`, `a and b`, `a, b and c`; more than `max` names are counted.
pub fn list(names: &[String], max: usize) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        many if many.len() > max => format!("{} and {} more", many[..max].join(", "), many.len() - max),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// A group with its members: `vs-4: hypervisor of arc-1, arc-2 and arc-4`.
pub fn group(name: &str, inventory: &Inventory) -> String {
    kind_of(name, inventory).map_or_else(|| name.to_owned(), |words| format!("{name}: {words}"))
}

fn kind_of(name: &str, inventory: &Inventory) -> Option<String> {
    let members: Vec<String> = inventory.members(name).iter().map(|h| h.name.clone()).collect();
    let kind =
        inventory.group(name).map_or("group", |g| if g.kind.is_empty() { "group" } else { g.kind.as_str() });
    (!members.is_empty()).then(|| format!("{kind} of {}", list(&members, 6)))
}

/// The members of the groups of a suspect, as an addition to its name; empty where it has none.
pub fn members(suspect: &Suspect, inventory: &Inventory) -> String {
    match suspect {
        Suspect::Group(one) => kind_of(one, inventory).map_or(String::new(), |words| format!(" ({words})")),
        Suspect::GroupToGroup(from, to) => {
            format!(" ({}; {})", group(from, inventory), group(to, inventory))
        }
        _ => String::new(),
    }
}

/// Numbers stay with their percent sign at the end of a line.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// A key without the prefix that everybody knows: `net.ipv4.tcp_rmem`, `eth0 feature.tx`.
pub fn setting(key: &str) -> String {
    let (space, key) = match key.strip_prefix("netns.").and_then(|rest| rest.split_once('|')) {
        Some((path, key)) => (format!(" in {path}"), key),
        None => (String::new(), key),
    };
    let name = if let Some(sysctl) = key.strip_prefix("sysctl.") {
        sysctl.to_owned()
    } else if let Some((nic, rest)) = key.strip_prefix("nic.").and_then(|rest| rest.split_once('.')) {
        format!("{nic} {rest}")
    } else {
        key.to_owned()
    };
    name + &space
}

/// A value, cut when it is very long.
pub fn fact(value: &FactValue) -> String {
    cut(&value.to_string(), 60)
}

/// Text of at most `max` characters; what is cut is marked.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    kept + "…"
}

/// A host name in at most `max` characters: the end is kept, because names of a cluster differ there.
pub fn host(name: &str, max: usize) -> String {
    let name = clean(name);
    let length = name.chars().count();
    if length <= max {
        return name;
    }
    let head: String = name.chars().take(max / 3).collect();
    let tail: String = name.chars().skip(length - (max - max / 3 - 1)).collect();
    format!("{head}…{tail}")
}

/// Names without the domain that a cluster shares: up to the first dot, where that stays unique.
pub fn without_domain(hosts: &[String]) -> Vec<String> {
    let labels: Vec<&str> = hosts.iter().map(|h| h.split('.').next().unwrap_or(h)).collect();
    let mut unique = labels.clone();
    unique.sort_unstable();
    unique.dedup();
    let numbers = labels.iter().any(|l| l.is_empty() || l.bytes().all(|b| b.is_ascii_digit()));
    if unique.len() == hosts.len() && !numbers {
        labels.into_iter().map(str::to_owned).collect()
    } else {
        hosts.to_vec()
    }
}

/// What the binding term of a ceiling means.
pub fn binding(term: TermName) -> &'static str {
    match term {
        TermName::Link => "the link",
        TermName::Uplink => "the shared uplink",
        TermName::Pcie => "the PCIe slot",
        TermName::Window => "the TCP window",
        TermName::Core => "one CPU core",
        TermName::Tool => "the measuring tool on these hosts",
        TermName::Pace => "the pace of the tests",
        TermName::Peers => "what comparable pairs reach",
        TermName::Unknown => "nothing known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_dropped_only_where_names_stay_unique() {
        let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert_eq!(without_domain(&names(&["a.x.org", "b.x.org"])), ["a", "b"]);
        assert_eq!(without_domain(&names(&["a.x.org", "a.y.org"])), ["a.x.org", "a.y.org"]);
        assert_eq!(without_domain(&names(&["10.0.0.1", "11.0.0.1"])), ["10.0.0.1", "11.0.0.1"]);
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(host("storage-node-0017", 10), "sto…e-0017");
        assert_eq!(host("a\x1b[2Jb", 10), "a[2Jb");
    }

    #[test]
    fn settings_read_like_on_the_host() {
        assert_eq!(setting("sysctl.net.ipv4.tcp_rmem"), "net.ipv4.tcp_rmem");
        assert_eq!(setting("netns./run/x|nic.eth0.mtu"), "eth0 mtu in /run/x");
    }
}
