//! Prompts of shells and headings that name a host: a line comes in, host and command go out.

use crate::context::{Command, TOOLS, is_host};

/// A parsed prompt or heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt<'a> {
    /// Host, if it names a distinctive one.
    pub host: Option<&'a str>,
    /// What was typed; empty in a heading and at an empty prompt.
    pub command: &'a str,
}

/// Reads a line as a prompt; `None` when it is none.
pub(crate) fn parse(line: &str) -> Option<Prompt<'_>> {
    let line = line.trim_end();
    if line.len() > 4096 {
        return None;
    }
    in_brackets(line)
        .or_else(|| with_user(line))
        .or_else(|| with_path(line))
        .or_else(|| heading(line))
        .or_else(|| bare(line))
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
    let (user, context) = inside.split_once('@')?;
    let host = context.split([' ', ':']).next()?;
    let command = rest.strip_prefix(['#', '$', '%', '>'])?;
    (is_word(user) && is_host(host)).then(|| Prompt { host: distinctive(host), command: command.trim() })
}

/// `root@arc-1:~# cmd`, `me@arc-1 ~ $ cmd`, `me@arc-1> cmd`
fn with_user(line: &str) -> Option<Prompt<'_>> {
    let line = line.trim_start();
    // A virtual environment may stand in front.
    let line = line.strip_prefix('(').and_then(|l| l.split_once(") ")).map_or(line, |(_, rest)| rest);
    let (user, rest) = line.split_once('@')?;
    let end = rest.find([':', ' ', '#', '$', '%', '>', '('])?;
    let (host, rest) = rest.split_at(end);
    let (context, command) = after_sign(rest)?;
    let context = context.trim_start_matches(':').trim();
    let is_context =
        context.is_empty() || context.starts_with(['~', '/', '(', '[']) || !context.contains(' ');
    (is_word(user) && is_host(host) && is_context).then(|| Prompt { host: distinctive(host), command })
}

/// `arc-1:~ # cmd`, `arc-1:/etc$ cmd`
fn with_path(line: &str) -> Option<Prompt<'_>> {
    let (host, rest) = line.split_once(':')?;
    (rest.starts_with(['~', '/']) && is_host(host)).then_some(())?;
    let (context, command) = after_sign(rest)?;
    (!context.trim().contains(' ')).then(|| Prompt { host: distinctive(host), command })
}

/// `=== arc-1 ===`, `==> arc-1 <==`, `arc-1 | CHANGED | rc=0 >>`, `### arc-1 t=0.1s $ cat /proc/drbd`
fn heading(line: &str) -> Option<Prompt<'_>> {
    if let Some((host, rest)) = line.split_once(" | ")
        && ["CHANGED", "SUCCESS", "FAILED"].iter().any(|w| rest.starts_with(w))
        && rest.ends_with(">>")
    {
        return is_host(host).then(|| Prompt { host: distinctive(host), command: "" });
    }
    if let Some(rest) = line.strip_prefix("### ")
        && let Some((head, command)) = rest.split_once(" $ ")
    {
        let host = head.split(' ').next()?;
        return is_host(host).then(|| Prompt { host: distinctive(host), command: command.trim() });
    }
    // `## arc-1`: a title of Markdown that is one word with a number in it.
    if let Some(word) = line.strip_prefix('#').map(|l| l.trim_start_matches('#').trim())
        && line.contains("# ")
        && is_host(word)
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.contains(|c: char| c.is_ascii_digit())
    {
        return Some(Prompt { host: distinctive(word), command: "" });
    }
    let inside = line.trim_matches(['=', '-', '#', '*', '>', '<']);
    let framed = line.len() >= inside.len() + 4 && line.starts_with(['=', '-', '#', '*']);
    let word = inside.trim();
    // Paths head the parts that `head` and `tail` print; those name a file, not a host.
    (framed && is_host(word) && !word.contains('/') && line.ends_with(['=', '-', '#', '*', '>', '<']))
        .then(|| Prompt { host: distinctive(word), command: "" })
}

/// `$ cmd`, `# cmd`, `arc-1# cmd`: only before a tool that is known.
fn bare(line: &str) -> Option<Prompt<'_>> {
    let (host, command) = after_sign(line.trim_start())?;
    let tool = Command::parse(command).words.first().cloned().unwrap_or_default();
    let first = command.split_whitespace().next().unwrap_or_default();
    let first = first.rsplit('/').next().unwrap_or_default();
    let known = TOOLS.contains(&tool.as_str()) || TOOLS.contains(&first);
    (known && (host.is_empty() || is_host(host))).then(|| Prompt { host: distinctive(host), command })
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
            "## Results",
            "# 10.0.0.1",
            "+-----------------------+----------+",
            "",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
