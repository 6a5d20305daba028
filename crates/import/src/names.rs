//! Hosts and commands in file names: host, command, the two ends of a test. Paths come in, a context goes
//! out.

use std::collections::BTreeMap;

use crate::context::{Command, Context, TOOLS, is_host};
use crate::document::Document;
use crate::options::ImportOptions;

/// Words of file names that describe the content and name no host.
const WORDS: [&str; 113] = [
    "txt",
    "log",
    "out",
    "output",
    "json",
    "csv",
    "md",
    "tsv",
    "matrix",
    "result",
    "results",
    "test",
    "paste",
    "notes",
    "readme",
    "stat",
    "stats",
    "softnet_stat",
    "softnet",
    "interrupts",
    "diskstats",
    "drbd",
    "proc",
    "ethtool",
    "sysctl",
    "ss",
    "ping",
    "iostat",
    "fio",
    "before",
    "after",
    "session",
    "hosts",
    "link",
    "addr",
    "udp",
    "tcp",
    "reverse",
    "stdin",
    "client",
    "server",
    "bidir",
    "verbose",
    "mail",
    "email",
    "dual",
    "intervals",
    "evidence",
    "bench",
    "benchmark",
    "speed",
    "network",
    "report",
    "measurement",
    "measurements",
    "table",
    "list",
    "run",
    "all",
    "numbers",
    "cluster",
    "slow",
    "problem",
    "issue",
    "case",
    "question",
    "thread",
    "post",
    "forum",
    "ticket",
    "bug",
    "example",
    "sample",
    "data",
    "dump",
    "info",
    "config",
    "conf",
    "message",
    "reply",
    "new",
    "old",
    "good",
    "bad",
    "nic",
    "nics",
    "disk",
    "disks",
    "storage",
    "performance",
    "throughput",
    "latency",
    "ring",
    "rings",
    "drops",
    "drop",
    "loss",
    "mtu",
    "raw",
    "text",
    "page",
    "answer",
    "download",
    "downloads",
    "sync",
    "resync",
    "wait",
    "today",
    "yesterday",
    "fixed",
    "fix",
    "trace",
    "overlay",
];

/// Options of `ethtool` that may stand in a file's name.
const ETHTOOL: [&str; 10] = ["k", "g", "c", "i", "S", "l", "a", "T", "n", "P"];

/// Files of a sosreport that are read, by the end of their path below its root or by their beginning.
const SOSREPORT: [&str; 26] = [
    "hostname",
    "sos_commands/host/hostname",
    "sos_commands/general/hostname",
    "etc/hosts",
    "uname",
    "sos_commands/kernel/uname_-a",
    "sos_commands/kernel/sysctl_-a",
    "sos_commands/networking/ethtool_",
    "sos_commands/networkmanager/ethtool_",
    "sos_commands/networking/ip_-s_-d_link",
    "sos_commands/networking/ip_-s_-j_link",
    "sos_commands/networking/ip_-s_-d_-j_link",
    "sos_commands/networking/ip_-o_addr",
    "sos_commands/networking/ip_-j_addr",
    "sos_commands/networking/ip_addr",
    "ip_addr",
    "sos_commands/networking/ip_-d_address",
    "sos_commands/networking/ip_address",
    "sos_commands/networking/ss_-peaonmi",
    "sos_commands/networking/ss_-ti",
    "proc/net/softnet_stat",
    "proc/interrupts",
    "proc/diskstats",
    "proc/drbd",
    "sos_commands/drbd/",
    "sos_commands/block/iostat",
];

/// Whether a file of a sosreport is worth reading; `path` begins below the root of the report.
pub fn is_wanted_of_sosreport(path: &str) -> bool {
    SOSREPORT.iter().any(|wanted| {
        let folder = wanted.ends_with('/') || wanted.ends_with('_');
        path == *wanted
            || (folder && path.starts_with(wanted))
            || path.strip_prefix(wanted).is_some_and(|r| r.starts_with('_'))
    })
}

/// Folders with a file inside that names the host.
#[derive(Debug, Default)]
pub(crate) struct Roots(BTreeMap<String, String>);

/// Files that hold nothing but the name of the host, below its folder.
const HOSTNAMES: [&str; 5] = [
    "hostname",
    "etc/hostname",
    "sos_commands/host/hostname",
    "sos_commands/general/hostname",
    "proc/sys/kernel/hostname",
];

impl Roots {
    /// Searches the files for names of hosts.
    pub(crate) fn of(documents: &[Document]) -> Self {
        let mut roots = BTreeMap::new();
        for document in documents {
            let tail = HOSTNAMES
                .iter()
                .rev()
                .find(|tail| document.name.strip_suffix(*tail).is_some_and(|root| root.ends_with('/')));
            let Some(root) = tail.and_then(|tail| document.name.strip_suffix(tail)) else { continue };
            let text = String::from_utf8_lossy(&document.bytes[..document.bytes.len().min(300)]);
            // The name with its domain is that of the host, too.
            let name = text.trim();
            if is_host(name) && !name.starts_with("localhost") {
                roots.entry(root.to_owned()).or_insert_with(|| name.to_owned());
            }
        }
        Self(roots)
    }

    /// Host of the innermost folder around a file that is known.
    fn host(&self, file: &str) -> Option<String> {
        let mut around = file.rmatch_indices('/').map(|(end, _)| &file[..=end]);
        around.find_map(|root| self.0.get(root)).cloned()
    }
}

/// Context of a file, from its name and its lines.
pub(crate) fn context(file: &str, lines: &[&str], options: &ImportOptions, roots: &Roots) -> Context {
    let base = file.rsplit('/').next().unwrap_or(file);
    let mut context = Context { file: file.to_owned(), layer: options.layer, ..Context::default() };
    let of_device = of_device(base, lines);
    context.command = of_device.as_ref().map_or_else(|| command(file, base), |(command, _)| command.clone());
    let ends = ends(base);
    context.host.clone_from(&options.host);
    if let Some((from, to)) = ends {
        context.host = context.host.or(Some(from));
        context.peer = Some(to);
    } else if context.host.is_none() {
        context.host = roots.host(file).or_else(|| report_root(file));
        if context.host.is_none() {
            context.host = of_device.map_or_else(|| host(base, &context.command), |(_, host)| Some(host));
            context.weak = context.host.is_some();
        }
        context.host = context.host.or_else(|| folder(file));
    }
    context
}

/// The command whose output a file is, if its name has it: `ethtool_-k_em1`, `ethtool-k-em1.txt`,
/// `proc/net/softnet_stat`.
fn command(file: &str, base: &str) -> Command {
    if let Some(at) = file.find("proc/").filter(|at| *at == 0 || file.as_bytes()[at - 1] == b'/') {
        return Command::parse(&format!("cat /{}", &file[at..]));
    }
    let stem = stem(base);
    let words: Vec<&str> = stem.split('_').filter(|w| !w.is_empty()).collect();
    let is_tool = |w: Option<&&str>| w.is_some_and(|w| TOOLS.contains(w));
    if is_tool(words.first()) && words.get(1).is_some_and(|w| w.starts_with('-')) || words == ["ip", "addr"] {
        return Command::parse(&words.join(" "));
    }
    let words: Vec<&str> = stem.split(['-', '_', '.']).filter(|w| !w.is_empty()).collect();
    if let ["ethtool", option, nic @ ..] = &words[..]
        && ETHTOOL.contains(option)
    {
        return Command::parse(&format!("ethtool -{option} {}", nic.join("-")));
    }
    Command::default()
}

/// The command and the host of `ethtool-k-arc-1.txt`: what stands behind the option is a device, unless the
/// text names another one.
fn of_device(base: &str, lines: &[&str]) -> Option<(Command, String)> {
    let rest = stem(base).strip_prefix("ethtool")?.trim_start_matches(['-', '_', '.']);
    let (option, host) = rest.split_once(['-', '_', '.'])?;
    let first = lines.iter().find(|line| !line.trim().is_empty())?;
    let device = first.trim().strip_suffix(':')?.split_once(" for ")?.1;
    let is_other = ETHTOOL.contains(&option) && device != host && !device.contains(' ');
    is_other.then(|| bare(host)).flatten().map(|host| {
        let command = Command::parse(&format!("ethtool -{option} {device}"));
        (command, host)
    })
}

fn stem(base: &str) -> &str {
    let known = [".txt", ".log", ".json", ".out", ".csv", ".md", ".tsv"];
    known.iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base)
}

/// Both ends: `arc-1-to-arc-2.json`, `iperf3_arc-1_to_arc-2.txt`.
fn ends(base: &str) -> Option<(String, String)> {
    let stem = stem(base);
    let (from, to) = ["-to-", "_to_", "->", ".to."].iter().find_map(|sign| stem.split_once(sign))?;
    Some((bare(from)?, bare(to)?))
}

/// Host in the name of a file that is not a command's whole name.
fn host(base: &str, command: &Command) -> Option<String> {
    if !command.words.is_empty() {
        return None;
    }
    bare(stem(base)).filter(|name| !is_title(name))
}

/// Whether a name is the title of a text rather than a host: `slow-after-upgrade`, `03-wrong-mtu`.
fn is_title(name: &str) -> bool {
    let mut words = name.split(['-', '_', ' ']).filter(|word| !word.is_empty()).peekable();
    let is_numbered = words.peek().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit()));
    let spoken = words.filter(|word| word.chars().all(char::is_alphabetic)).count();
    spoken >= 3 || is_numbered && spoken >= 1
}

/// A word without the words around it that only describe the content.
fn bare(stem: &str) -> Option<String> {
    let mut rest = stem.trim_matches(['-', '_', '.']);
    let describes_content = |word: &str| {
        let word = word.to_lowercase();
        WORDS.contains(&word.as_str()) || TOOLS.contains(&word.as_str())
    };
    loop {
        let front = rest.find(['-', '_', '.']).map(|at| (&rest[..at], &rest[at + 1..]));
        let back = rest.rfind(['-', '_', '.']).map(|at| (&rest[at + 1..], &rest[..at]));
        match (front, back) {
            (Some((word, more)), _) if describes_content(word) => rest = more,
            (_, Some((word, more))) if describes_content(word) => rest = more,
            (_, Some((word, more))) if ETHTOOL.contains(&word) && more.ends_with("ethtool") => rest = more,
            _ => break,
        }
        rest = rest.trim_matches(['-', '_', '.']);
    }
    (!describes_content(rest) && is_host(rest) && rest.chars().any(char::is_alphabetic))
        .then(|| rest.to_owned())
}

/// `sosreport-arc-1-2026-11-21-abcdefg/…` and the like.
fn report_root(file: &str) -> Option<String> {
    let root = file.split('/').rev().skip(1).find_map(|part| part.strip_prefix("sosreport-"))?;
    let words: Vec<&str> = root.split('-').collect();
    // Behind the name come a case number or a date, and seven random letters.
    let tail = words.iter().position(|w| w.len() >= 4 && w.chars().all(|c| c.is_ascii_digit()));
    let name = words[..tail.unwrap_or(words.len())].join("-");
    is_host(&name).then_some(name)
}

/// The folder of a file, when the file itself names no host: `arc-1/sysctl.txt`.
fn folder(file: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    // The outermost folder is the one that was named on the command line: it holds all hosts.
    let inner = parts.get(1..)?;
    inner.iter().rev().find_map(|part| bare(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> (String, String, String) {
        of(file, &[])
    }

    fn of(file: &str, lines: &[&str]) -> (String, String, String) {
        let context = context(file, lines, &ImportOptions::default(), &Roots::default());
        (context.host.unwrap_or_default(), context.peer.unwrap_or_default(), context.command.words.join(" "))
    }

    fn is(host: &str, peer: &str, command: &str) -> (String, String, String) {
        (host.to_owned(), peer.to_owned(), command.to_owned())
    }

    #[test]
    fn names_of_files_name_hosts_and_commands() {
        assert_eq!(read("arc-1.txt"), is("arc-1", "", ""));
        assert_eq!(read("sysctl-arc-1.log"), is("arc-1", "", ""));
        assert_eq!(read("arc-1_iperf3.json"), is("arc-1", "", ""));
        assert_eq!(read("results.txt"), is("", "", ""));
        assert_eq!(read("slow-after-upgrade-of-kernel.txt"), is("", "", ""));
        assert_eq!(read("03-wrong-mtu.txt"), is("", "", ""));
        assert_eq!(read("iperf3-arc-1-to-arc-2.json"), is("arc-1", "arc-2", ""));
        assert_eq!(read("all/arc-1/sysctl.txt"), is("arc-1", "", ""));
        assert_eq!(read("all/sysctl.txt"), is("", "", ""));
        assert_eq!(read("ethtool_-k_em1"), is("", "", "ethtool -k em1"));
        assert_eq!(read("ethtool-S-em1.txt"), is("", "", "ethtool -S em1"));
        assert_eq!(of("ethtool-k-em1.txt", &["Features for em1:"]), is("", "", "ethtool -k em1"));
        assert_eq!(of("ethtool-k-arc-1.txt", &["", "Features for em1:"]), is("arc-1", "", "ethtool -k em1"));
        assert_eq!(of("a/ethtool_g_arc-1", &["Ring parameters for em1:"]), is("arc-1", "", "ethtool -g em1"));
        assert_eq!(read("arc-1-ethtool-k.txt"), is("arc-1", "", ""));
        assert_eq!(
            read("sosreport-arc-1-2026-11-21-abcdefg/proc/net/softnet_stat"),
            is("arc-1", "", "cat /proc/net/softnet_stat")
        );
        assert_eq!(
            read("sosreport-arc-1-2026-11-21-abcdefg/sos_commands/networking/ethtool_-i_em1"),
            is("arc-1", "", "ethtool -i em1")
        );
    }

    #[test]
    fn a_sosreport_holds_more_than_is_read() {
        for path in [
            "proc/interrupts",
            "sos_commands/networking/ethtool_-k_em1",
            "etc/hosts",
            "sos_commands/kernel/sysctl_-a",
        ] {
            assert!(is_wanted_of_sosreport(path), "{path}");
        }
        for path in ["etc/passwd", "proc/cpuinfo.gz", "sos_logs/sos.log", "sos_commands/rpm/package-data"] {
            assert!(!is_wanted_of_sosreport(path), "{path}");
        }
    }
}
