//! Network namespaces inside hosts: `netns = "…"` in the inventory and `host!place` on the command line. The
//! host resolves one when it is entered.

use std::path::PathBuf;

use super::error::{Flaw, shown};

/// Longest name of a namespace: it becomes part of the keys of facts.
const NAME_BYTES_MAX: usize = 160;
const HINT: &str = "pid:1234, container:NAME, netns:/run/docker/netns/NAME, or a name of `ip netns`";

/// A namespace as the node takes it: `pid:1234`, `container:NAME`, or a path. A bare name means what `ip
/// netns` means by it.
pub fn parse(text: &str) -> Result<PathBuf, Flaw> {
    let wrong = |why: &str| Flaw::new(format!("`{}` is no network namespace: {why}", shown(text)), HINT);
    // `|` ends the namespace in the key of a fact.
    if text.len() > NAME_BYTES_MAX || !text.bytes().all(|b| b.is_ascii_graphic() && b != b'|') {
        return Err(wrong("printable characters without blanks and `|`, at most 160"));
    }
    if let Some(pid) = text.strip_prefix("pid:") {
        let number = pid.parse::<u32>().ok().filter(|pid| *pid > 0);
        return number.map(|pid| PathBuf::from(format!("pid:{pid}"))).ok_or_else(|| wrong("no process id"));
    }
    if let Some(name) = text.strip_prefix("container:") {
        return if name.is_empty() { Err(wrong("no name of a container")) } else { Ok(PathBuf::from(text)) };
    }
    let text = text.strip_prefix("netns:").unwrap_or(text);
    match (text.is_empty(), text.contains('/')) {
        (true, _) => Err(wrong("it is empty")),
        (_, true) if !text.starts_with('/') => Err(wrong("a path begins with `/`")),
        (_, true) => Ok(PathBuf::from(text)),
        (_, false) if text.contains(':') => Err(wrong("not a kind that is known")),
        (_, false) => Ok(PathBuf::from("/run/netns").join(text)),
    }
}

/// `host!place` or `host`.
pub fn host_and_place(text: &str) -> Result<(&str, Option<PathBuf>), Flaw> {
    match text.split_once('!') {
        None => Ok((text, None)),
        Some(("", _)) => {
            Err(Flaw::new(format!("`{}` names no host", shown(text)), "such as web-1!container:nginx"))
        }
        Some((host, netns)) => Ok((host, Some(parse(netns)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_read() {
        for (text, path) in [
            ("pid:0017", "pid:17"),
            ("container:default/nginx-1", "container:default/nginx-1"),
            ("netns:/run/docker/netns/ingress_sbox", "/run/docker/netns/ingress_sbox"),
            ("/proc/17/fd/9", "/proc/17/fd/9"),
            ("blue", "/run/netns/blue"),
            ("netns:blue", "/run/netns/blue"),
        ] {
            assert_eq!(parse(text), Ok(PathBuf::from(path)), "{text}");
        }
        for wrong in
            ["", "pid:", "pid:x", "pid:0", "container:", "netns:", "a/b", "a b", "/a|b", "pod:x", "\u{e9}"]
        {
            assert!(parse(wrong).unwrap_err().hint.contains("container:NAME"), "{wrong}");
        }
        assert_eq!(host_and_place("a!pid:7"), Ok(("a", Some("pid:7".into()))));
        assert_eq!(host_and_place("a"), Ok(("a", None)));
        assert!(host_and_place("!pid:7").is_err() && host_and_place("a!").is_err());
    }
}
