//! `sysctl -a`, what `grep` left of it, files of `sysctl.d`, and scripts that set them: `name = value`,
//! `sysctl -w name=value`, `echo value > /proc/sys/…`. Lines come in, facts go out.
//! Secrets, and values that change by themselves, are never kept.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Sysctl;

/// First parts of the names that exist.
const TOPS: [&str; 10] = ["abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm"];
/// Those that are kept: the same as our own readers keep.
const KEPT: [&str; 4] = ["net", "vm", "kernel", "sunrpc"];
/// Secrets must not reach a snapshot.
const SECRETS: [&str; 3] = ["stable_secret", "tcp_fastopen_key", "boot_id"];
/// Values that move by themselves.
const RESTLESS: [&str; 9] = [
    "kernel.random",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.cad_pid",
    "net.netfilter.nf_conntrack_count",
    "net.nf_conntrack_count",
    "vm.stat_refresh",
    "kernel.sched_domain",
    "kernel.hostname",
];

/// `net.ipv4.tcp_rmem = 4096 131072 6291456`, `/proc/sys/net/…:value`.
fn pair(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let mut line = line.strip_prefix("sudo ").unwrap_or(line);
    if let Some((value, path)) = line.strip_prefix("echo ").and_then(|rest| rest.split_once('>')) {
        let name = path.trim().strip_prefix("/proc/sys/")?.replace('/', ".");
        return checked(name, value.trim().trim_matches(['"', '\'']));
    }
    for command in ["sysctl -w ", "sysctl -qw ", "/sbin/sysctl -w ", "sysctl "] {
        line = line.strip_prefix(command).unwrap_or(line).trim_start();
    }
    let line = line.trim_matches(['"', '\'']);
    let (name, value) = match line.strip_prefix("/proc/sys/") {
        Some(rest) => rest.split_once(':').or_else(|| rest.split_once('='))?,
        None => line.split_once('=')?,
    };
    let name = name.trim().trim_start_matches('-');
    let dotted =
        if name.contains('/') && !name.contains('.') { name.replace('/', ".") } else { name.to_owned() };
    checked(dotted, value.trim().trim_matches(['"', '\'']))
}

/// A name that exists, with its value.
fn checked(dotted: String, value: &str) -> Option<(String, &str)> {
    let top = dotted.split('.').next()?;
    let fits = dotted.contains('.')
        && TOPS.contains(&top)
        && !dotted.contains(char::is_whitespace)
        && dotted.len() < 200;
    fits.then_some((dotted, value))
}

/// A setting that is kept, with its value.
pub(super) fn kept(name: String, value: &str) -> Option<(String, &str)> {
    checked(name, value).filter(|(name, _)| is_kept(name))
}

fn is_kept(name: &str) -> bool {
    let moves = |r: &str| name.strip_prefix(r).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    name.split('.').next().is_some_and(|top| KEPT.contains(&top))
        && !SECRETS.iter().any(|s| name.ends_with(s))
        && !RESTLESS.iter().any(|r| moves(r))
}

impl Reader for Sysctl {
    fn name(&self) -> &'static str {
        "sysctl"
    }

    fn describes(&self) -> &'static str {
        "sysctl -a, lines of it, scripts that set them"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        pair(block.first()).is_some() || block.first().starts_with("sysctl: ")
    }

    fn typed(&self, command: &str, out: &mut Sink) {
        let writes = command.contains("sysctl ") && command.contains('=') || command.contains("> /proc/sys/");
        for part in command.split("&&").flat_map(|part| part.split(';')).filter(|_| writes) {
            if let Some((name, value)) = pair(part) {
                keep(&name, value, out);
            }
        }
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((name, value)) = pair(line) {
                keep(&name, value, out);
            // Complaints about keys, comments in files.
            } else if !(text.starts_with("sysctl: ")
                || text.starts_with('#')
                || text.starts_with(';')
                || text.is_empty())
            {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

fn keep(name: &str, value: &str, out: &mut Sink) {
    if is_kept(name) {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        out.fact(format!("sysctl.{name}"), typed(value));
    }
}

/// Numbers in their usual form, everything else as text, as our own readers do.
fn typed(value: String) -> FactValue {
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => FactValue::Int(number),
        _ => FactValue::Text(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_all_their_forms() {
        let read = |line: &str| pair(line).map(|(n, v)| (n, v.to_owned()));
        let is = |n: &str, v: &str| Some((n.to_owned(), v.to_owned()));
        assert_eq!(
            read("net.ipv4.tcp_rmem = 4096\t131072\t6291456"),
            is("net.ipv4.tcp_rmem", "4096\t131072\t6291456")
        );
        assert_eq!(read("net.core.rmem_max=212992"), is("net.core.rmem_max", "212992"));
        assert_eq!(read("/proc/sys/net/core/rmem_max:212992"), is("net.core.rmem_max", "212992"));
        assert_eq!(read("net.ipv4.conf.eth0/140.rp_filter = 1"), is("net.ipv4.conf.eth0/140.rp_filter", "1"));
        assert_eq!(read("sysctl -w net.core.rmem_max=1"), is("net.core.rmem_max", "1"));
        assert_eq!(
            read("echo \"4096 87380 1\" > /proc/sys/net/ipv4/tcp_rmem"),
            is("net.ipv4.tcp_rmem", "4096 87380 1")
        );
        for line in ["a = b", "kernel", "x.y = 1", "the net.ipv4 value = 3", "http://a/b?c=d"] {
            assert_eq!(read(line), None, "{line}");
        }
        assert!(
            !is_kept("net.ipv6.conf.all.stable_secret")
                && !is_kept("kernel.random.uuid")
                && !is_kept("fs.file-max")
        );
        assert!(is_kept("kernel.randomize_va_space"));
    }
}
