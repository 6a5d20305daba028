//! Prompts of shells and headings that name a host: a line comes in, host and command go out.

use crate::context::{Command, TOOLS, is_host};

/// A parsed prompt or heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt<'a> {
    /// Host, if it names a distinctive one.
    pub host: Option<&'a str>,
    /// What was typed; empty in a heading and at an empty prompt.
    pub command: &'a str,
    /// What the host stands on, in a heading such as `arc-1 (vs-4):`.
    pub group: Option<&'a str>,
}

impl<'a> Prompt<'a> {
    fn new(host: Option<&'a str>, command: &'a str) -> Self {
        Self { host, command, group: None }
    }
}

/// Reads a line as a prompt; `None` when it is none.
pub(crate) fn parse(line: &str) -> Option<Prompt<'_>> {
    let line = line.trim_end();
    if line.len() > 4096 {
        return None;
    }
    let unclocked = without_clock(line.trim_start());
    in_brackets(line)
        .or_else(|| in_brackets(unclocked))
        .or_else(|| with_user(unclocked))
        .or_else(|| with_path(line))
        .or_else(|| heading(line))
        .or_else(|| titled(line))
        .or_else(|| bare(line))
        .or_else(|| typed(line))
}

/// Whether a word is a time or a date: `10:02:11`, `2026-11-21`, in brackets or not.
fn is_clock(word: &str) -> bool {
    let word = word.trim_matches(['[', ']', '(', ')', ',']);
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let plain = word.bytes().all(|b| b.is_ascii_digit() || b":-./TZ+".contains(&b));
    plain && digits >= 4 && (word.matches(':').count() >= 1 || word.matches('-').count() == 2)
}

/// A prompt without the clock in front: `[10:02:11] root@arc-1:~#`.
fn without_clock(line: &str) -> &str {
    let mut rest = line;
    while let Some((_, more)) = rest.split_once(' ').filter(|(word, _)| is_clock(word)) {
        rest = more.trim_start();
    }
    rest
}

/// User and host: `root@arc-1`, and `root at arc-1` as archives of mails print it.
fn user_and_host(text: &str) -> Option<(&str, &str)> {
    let by_at = || text.split_once(" at ").filter(|(user, _)| !user.contains(' '));
    text.split_once('@').filter(|(user, _)| !user.contains(' ')).or_else(by_at)
}

/// A distinctive name: many machines are called localhost.
fn distinctive(host: &str) -> Option<&str> {
    (is_host(host) && !["localhost", "none"].contains(&host.to_lowercase().as_str())).then_some(host)
}

/// Splits behind the first prompt sign that ends a word.
fn after_sign(rest: &str) -> Option<(&str, &str)> {
    let at = rest.find(['#', '$', '%', '>'])?;
    let command = &rest[at + 1..];
    (command.is_empty() || command.starts_with(' ')).then(|| (rest[..at].trim_end(), command.trim()))
}

/// `[root@arc-1 ~]# cmd`
fn in_brackets(line: &str) -> Option<Prompt<'_>> {
    let (inside, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let (user, context) = user_and_host(inside)?;
    let host = context.split([' ', ':']).next()?;
    let command = rest.strip_prefix(['#', '$', '%', '>'])?;
    (is_word(user) && is_host(host)).then(|| Prompt::new(distinctive(host), command.trim()))
}

/// `root@arc-1:~# cmd`, `me@arc-1 ~ $ cmd`, `me@arc-1> cmd`
fn with_user(line: &str) -> Option<Prompt<'_>> {
    let line = line.trim_start();
    // A virtual environment may stand in front.
    let line = line.strip_prefix('(').and_then(|l| l.split_once(") ")).map_or(line, |(_, rest)| rest);
    let (user, rest) = user_and_host(line)?;
    let end = rest.find([':', ' ', '#', '$', '%', '>', '('])?;
    let (host, rest) = rest.split_at(end);
    let (context, command) = after_sign(rest)?;
    let context = without_clock(context.trim_start_matches(':').trim());
    let is_context =
        context.is_empty() || context.starts_with(['~', '/', '(', '[']) || !context.contains(' ');
    (is_word(user) && is_host(host) && is_context).then(|| Prompt::new(distinctive(host), command))
}

/// `arc-1:~ # cmd`, `arc-1:/etc$ cmd`
fn with_path(line: &str) -> Option<Prompt<'_>> {
    let (host, rest) = line.split_once(':')?;
    (rest.starts_with(['~', '/']) && is_host(host)).then_some(())?;
    let (context, command) = after_sign(rest)?;
    (!context.trim().contains(' ')).then(|| Prompt::new(distinctive(host), command))
}

/// `=== arc-1 ===`, `==> arc-1 <==`, `arc-1 | CHANGED | rc=0 >>`, `### arc-1 t=0.1s $ cat /proc/drbd`
fn heading(line: &str) -> Option<Prompt<'_>> {
    if let Some((host, rest)) = line.split_once(" | ")
        && ["CHANGED", "SUCCESS", "FAILED"].iter().any(|w| rest.starts_with(w))
        && rest.ends_with(">>")
    {
        return is_host(host).then(|| Prompt::new(distinctive(host), ""));
    }
    if let Some(rest) = line.strip_prefix("### ")
        && let Some((head, command)) = rest.split_once(" $ ")
    {
        let host = head.split(' ').next()?;
        return is_host(host).then(|| Prompt::new(distinctive(host), command.trim()));
    }
    // `## arc-1`: a title of Markdown that is one word with a number in it.
    if let Some(word) = line.strip_prefix('#').map(|l| l.trim_start_matches('#').trim())
        && line.contains("# ")
        && is_host(word)
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.contains(|c: char| c.is_ascii_digit())
    {
        return Some(Prompt::new(distinctive(word), ""));
    }
    let inside = line.trim_matches(['=', '-', '#', '*', '>', '<']);
    let framed = line.len() >= inside.len() + 4 && line.starts_with(['=', '-', '#', '*']);
    let word = inside.trim().trim_end_matches(':');
    // `== arc-1`: nothing behind, but a number in the name.
    if line.starts_with("== ") && is_host(word) && word.contains(|c: char| c.is_ascii_digit()) {
        return Some(Prompt::new(distinctive(word), ""));
    }
    // Paths head the parts that `head` and `tail` print; those name a file, not a host.
    (framed && is_host(word) && !word.contains('/') && line.ends_with(['=', '-', '#', '*', '>', '<']))
        .then(|| Prompt::new(distinctive(word), ""))
}

/// Words with a number that head something else than the output of a host: `test1:`.
pub(crate) const NO_HOSTS: [&str; 49] = [
    "ifcfg", "route", "test", "run", "step", "case", "fig", "figure", "table", "round", "try", "attempt",
    "option", "example", "config", "pass", "job", "day", "week", "part", "phase", "stage", "note", "edit",
    "update", "q", "a", "eth", "en", "em", "bond", "br", "md", "sd", "dm", "nvme", "drbd", "vda", "ib",
    "wlan", "veth", "vxlan", "tun", "lo", "cpu", "core", "irq", "queue", "numa",
];
/// Endings of the names of files that people paste under their name.
const FILES: [&str; 13] = [
    ".conf", ".cfg", ".cnf", ".ini", ".log", ".txt", ".yaml", ".yml", ".json", ".toml", ".xml", ".service",
    ".sh",
];

/// Whether a word of a heading is the name of a file: `node1.conf`, `20-lan0.network`.
fn is_file(word: &str) -> bool {
    let lower = word.to_lowercase();
    FILES.iter().any(|ending| lower.ends_with(ending))
}

/// Words in front of the name of a host in a heading.
const BEFORE: [&str; 9] = ["on", "from", "at", "host", "node", "server", "client", "machine", "output"];

/// `arc-1:`, `On arc-1:`, `Server arc-1 (vs-4):`: one name with a number in it, and nothing else.
fn titled(line: &str) -> Option<Prompt<'_>> {
    let inside = line.strip_suffix(':').or_else(|| line.strip_suffix(":**"))?.trim_start_matches('*');
    let mut words = inside.split(' ').filter(|w| !w.is_empty()).peekable();
    while words.next_if(|w| BEFORE.iter().any(|b| w.eq_ignore_ascii_case(b))).is_some() {}
    let word = words.next()?;
    let rest: Vec<&str> = words.collect();
    let in_brackets = rest.first().is_none_or(|w| w.starts_with('('))
        && rest.last().is_none_or(|w| w.ends_with(')'))
        && rest.len() <= 3;
    let letters = word.split(|c: char| !c.is_ascii_alphabetic()).next()?.to_lowercase();
    let interface = ["enp", "eno", "ens", "enx"].iter().any(|p| letters.starts_with(p));
    let is_name = is_host(word)
        && !letters.is_empty()
        && word.contains(|c: char| c.is_ascii_digit())
        && !word.contains(':')
        && !interface
        && !is_file(word)
        && !NO_HOSTS.contains(&letters.as_str());
    let group = rest.last().map(|w| w.trim_matches(['(', ')'])).filter(|w| is_host(w) && *w != word);
    (is_name && in_brackets && !line.starts_with([' ', '\t']))
        .then(|| Prompt { group, ..Prompt::new(distinctive(word), "") })
}

/// Tools whose command lines people type without a prompt.
const TYPED: [&str; 16] = [
    "iperf", "iperf3", "nuttcp", "netperf", "ethtool", "ping", "fio", "iostat", "wget", "curl", "dd",
    "lsusb", "lspci", "hdparm", "smartctl", "nvme",
];

/// `iperf3 -c arc-2 -t 10` without any prompt: a tool, an option, and no sentence.
fn typed(line: &str) -> Option<Prompt<'_>> {
    let line = line.trim().trim_matches('`');
    let mut words = line.split_whitespace().skip_while(|w| *w == "sudo");
    let tool = words.next().filter(|w| TYPED.contains(w))?;
    let second = words.next()?;
    let is_option = second.starts_with('-') && second.len() > 1 && !second[1..].starts_with(['-', ' '])
        || second.starts_with("--") && second.len() > 3
        || ["wget", "curl"].contains(&tool) && second.contains("://")
        || tool == "dd"
            && line.split_whitespace().any(|word| word.starts_with("if=") || word.starts_with("of="));
    let prose = ["the", "and", "on", "is", "with", "shows", "both", "from", "to", "gives", "a"];
    let is_sentence = line.ends_with(['.', ':', '?', '!', ',', ';'])
        || line.split_whitespace().count() > 16
        || line.split_whitespace().any(|w| prose.contains(&w) || w.ends_with([':', ',']));
    (is_option && !is_sentence).then_some(Prompt::new(None, line))
}

/// `$ cmd`, `# cmd`, `arc-1# cmd`: only before a tool that is known.
fn bare(line: &str) -> Option<Prompt<'_>> {
    let (host, command) = after_sign(line.trim_start())?;
    let tool = Command::parse(command).words.first().cloned().unwrap_or_default();
    let first = command.split_whitespace().next().unwrap_or_default();
    let first = first.rsplit('/').next().unwrap_or_default();
    let known = TOOLS.contains(&tool.as_str()) || TOOLS.contains(&first);
    (known && (host.is_empty() || is_host(host))).then(|| Prompt::new(distinctive(host), command))
}

fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(&str, &str)> {
        parse(line).map(|p| (p.host.unwrap_or(""), p.command))
    }

    #[test]
    fn prompts_of_many_shells() {
        assert_eq!(read("[root@vs-4 ~]# ethtool -k em1"), Some(("vs-4", "ethtool -k em1")));
        assert_eq!(read("root@arc-1:~# iperf3 -c arc-2"), Some(("arc-1", "iperf3 -c arc-2")));
        assert_eq!(read("me@arc-1:/var/log$ cat x"), Some(("arc-1", "cat x")));
        assert_eq!(read("me@arc-1 ~ % ls"), Some(("arc-1", "ls")));
        assert_eq!(read("(venv) me@arc-1:~$ ls"), Some(("arc-1", "ls")));
        assert_eq!(read("linux-1:~ # netperf -H b"), Some(("linux-1", "netperf -H b")));
        assert_eq!(read("### n1 t=0.1s $ cat /proc/drbd"), Some(("n1", "cat /proc/drbd")));
        assert_eq!(read("$ ping -c 3 b"), Some(("", "ping -c 3 b")));
        assert_eq!(read("# ethtool -i em1"), Some(("", "ethtool -i em1")));
        assert_eq!(read("arc-3# sudo iperf -s"), Some(("arc-3", "sudo iperf -s")));
        assert_eq!(read("root@localhost:~# sysctl -a"), Some(("", "sysctl -a")));
        assert_eq!(read("[root@vs-4 ~]#"), Some(("vs-4", "")));
        for line in [
            "[10:02:11] root@arc-1:~# ls",
            "10:02:11 root@arc-1 ~ # ls",
            "root@arc-1 [10:02:11] ~ # ls",
            "2026-11-21 10:02:11 root@arc-1:/var/log# ls",
            "[root@arc-1 10:02:11 ~]# ls",
            "root at arc-1:~# ls",
            "[root at arc-1 ~]# ls",
        ] {
            assert_eq!(read(line), Some(("arc-1", "ls")), "{line}");
        }
        for line in ["arc-1:", "On arc-1:", "Server arc-1 (vs-4):", "**arc-1:**"] {
            assert_eq!(read(line), Some(("arc-1", "")), "{line}");
        }
        assert_eq!(read("iperf3 -c arc-2 -t 10"), Some(("", "iperf3 -c arc-2 -t 10")));
        let copy = "dd if=/dev/zero of=/data/t0 bs=1M count=64 conv=fsync";
        assert_eq!(read(copy), Some(("", copy)));
        assert_eq!(read("=== arc-1 ==="), Some(("arc-1", "")));
        assert_eq!(read("==> arc-1 <=="), Some(("arc-1", "")));
        assert_eq!(read("## arc-1"), Some(("arc-1", "")));
        assert_eq!(read("arc-1 | CHANGED | rc=0 >>"), Some(("arc-1", "")));
    }

    #[test]
    fn output_is_no_prompt() {
        for line in [
            "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec    0   1.2 MBytes",
            "# DRBD 8.4.11 (in-tree module)",
            "--- 10.0.0.2 ping statistics ---",
            "sysctl: permission denied on key 'fs.protected'",
            "rx-gro-hw: on",
            "cubic wscale:7,7 rto:204 rtt:0.21/0.05",
            " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----",
            "bus-info: 0000:3b:00.0",
            "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.2 ms",
            "| from \\ to | arc-1 |",
            "-----------------------------------------------",
            "% of the time it works",
            "eth0:",
            "enp3s0:",
            "test1:",
            "Results:",
            "ifcfg-bond0:",
            "node1.conf:",
            "dd is slow on both of them",
            "iperf3 -c on both of them",
            "Since 10:02:11 something happens",
            "## Results",
            "# 10.0.0.1",
            "+-----------------------+----------+",
            "",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
