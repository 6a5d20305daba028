//! Files from outside without bounds or end: FIFOs, devices, sockets, huge values, long chains, tables that
//! no memory holds. Every command refuses them in a sentence; the children have a bounded address space, so
//! that a growing one would abort.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Address space of a child, KiB: a program that reads 64 MiB of text has some 600 MiB mapped at its largest.
const MEMORY_KIB: u64 = 1_500_000;
/// Longest message, bytes: a problem and a hint are cut at 600 characters each.
const MESSAGE_BYTES_MAX: usize = 2000;

struct Site(tempfile::TempDir);

impl Site {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn fifo(&self, name: &str) -> &Self {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
        self
    }

    /// A line of a shell, in which `linerate` is the program and memory is bounded.
    fn shell(&self, line: &str) -> Ended {
        let line = format!("ulimit -v {MEMORY_KIB}; linerate() {{ \"$LINERATE\" \"$@\"; }}; {line}");
        let mut command = Command::new("bash");
        command
            .args(["-c", &line])
            .current_dir(self.0.path())
            .env("LINERATE", env!("CARGO_BIN_EXE_linerate"))
            .env("LINERATE_DATA", self.path("data"))
            .env("HOME", self.0.path())
            .env_remove("LINERATE_KNOWLEDGE")
            .stdin(Stdio::null());
        Ended::of(&command.output().unwrap())
    }

    /// A command that cannot run, and what it says.
    fn refused(&self, line: &str) -> String {
        let ended = self.shell(line);
        assert_eq!(ended.code, Some(2), "{line}: {}{}", ended.out, ended.err);
        assert!(ended.err.len() < MESSAGE_BYTES_MAX, "{line}: {} bytes", ended.err.len());
        ended.err
    }
}

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

const HOST: &str = "[[host]]\nname = \"a\"\ntransport = \"local\"\n";

#[test]
fn no_command_waits_for_a_fifo() {
    let site = Site::new();
    site.fifo("fifo")
        .fifo("fifo.toml")
        .fifo("fifo.json")
        .fifo("knowledge/cause.toml")
        .fifo("tests/cases/a.toml");
    for line in [
        "linerate inventory fifo",
        "linerate inventory fifo.toml",
        "linerate facts -i fifo a",
        "linerate survey -i fifo.toml",
        "linerate import fifo",
        "linerate import letter.txt -i fifo",
        "linerate diagnose fifo",
        "linerate diagnose fifo.toml",
        "linerate diagnose fifo.json",
        "linerate knowledge test fifo.toml",
        "LINERATE_KNOWLEDGE=fifo linerate knowledge",
        "LINERATE_KNOWLEDGE=knowledge linerate knowledge",
        "linerate http http://127.0.0.1:9/ --ca fifo",
    ] {
        site.file("letter.txt", "net.core.rmem_max = 1\n");
        let shown = site.refused(line);
        assert!(shown.contains("is a FIFO, not a regular file"), "{line}: {shown}");
    }
}

#[test]
fn devices_sockets_and_streams_of_the_kernel_are_refused() {
    let site = Site::new();
    let _listener = UnixListener::bind(site.path("socket")).unwrap();
    for command in ["inventory", "import", "diagnose", "knowledge test"] {
        for (file, what) in [
            ("/dev/zero", "is a character device"),
            ("socket", "is a socket"),
            ("/proc/kmsg", "/proc/kmsg"),
            ("/dev/fd", "folder"),
        ] {
            if file == "/dev/fd" && command != "inventory" {
                continue;
            }
            let shown = site.refused(&format!("linerate {command} {file}"));
            assert!(shown.contains(what), "{command} {file}: {shown}");
        }
    }
    let shown = site.refused("LINERATE_KNOWLEDGE=/dev/zero linerate knowledge");
    assert!(shown.contains("is a character device"), "{shown}");
}

#[test]
fn what_the_shell_gives_is_read() {
    let site = Site::new();
    site.file("sysctl.txt", "net.ipv4.tcp_sack = 1\n");
    for line in [
        "linerate diagnose <(cat sysctl.txt; sleep 0) --host a",
        "linerate diagnose /dev/stdin --host a < sysctl.txt",
        "cat sysctl.txt | linerate diagnose /dev/stdin --host a",
        "cat sysctl.txt | linerate diagnose - --host a",
        "linerate inventory <(echo 'n[1-3]')",
    ] {
        let ended = site.shell(line);
        assert!([Some(0), Some(3)].contains(&ended.code), "{line}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn special_files_in_folders_are_passed_over() {
    let site = Site::new();
    let report = "all/sosreport-arc-1-2026-11-21-abcdefg";
    site.file(&format!("{report}/sos_commands/kernel/sysctl_-a"), "net.ipv4.tcp_sack = 1\n");
    site.fifo(&format!("{report}/proc/interrupts")).fifo("all/notes.txt");
    let ended = site.shell("linerate import -v all");
    assert_eq!(ended.code, Some(3), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("FIFOs, devices and sockets in folders: 2"), "{}", ended.err);
    assert!(ended.out.contains("arc-1"), "{}", ended.out);
}

#[test]
fn knowledge_is_at_most_a_mebibyte() {
    let site = Site::new();
    site.file("large.toml", vec![b'#'; (1 << 20) + 1]);
    for line in ["LINERATE_KNOWLEDGE=large.toml linerate knowledge", "linerate knowledge test large.toml"] {
        let shown = site.refused(line);
        assert!(shown.contains("large.toml") && shown.contains("longer than 1 MiB"), "{shown}");
    }
}

#[test]
fn a_table_that_no_memory_holds_is_refused_with_its_size() {
    let site = Site::new();
    let mut table = "from".to_owned();
    (0..3000).for_each(|n| write!(table, ",h{n}").unwrap());
    for row in 0..1500 {
        write!(table, "\nh{row}{}", ",9.4".repeat(3000)).unwrap();
    }
    site.file("table.csv", table);
    for command in ["diagnose", "import"] {
        let shown = site.refused(&format!("linerate {command} table.csv"));
        assert!(shown.contains("table.csv:1:"), "{shown}");
        assert!(shown.contains("1500 rows x 3000 columns has 4500000 pairs, at most 65536"), "{shown}");
    }
}

#[test]
fn a_value_of_ten_megabytes_is_shown_shortened() {
    let site = Site::new();
    let long = "x".repeat(10 << 20);
    for (key, value) in [
        ("transport", format!("\"{long}\"")),
        ("groups", format!("[\"{long}\"]")),
        ("ssh", format!("{{ host = \"{long}\" }}")),
        ("netns", format!("\"/{long}\"")),
        (&long[..1 << 20], "1".to_owned()),
    ] {
        site.file("a.toml", format!("{HOST}[[host]]\nname = \"b\"\n{key} = {value}\n"));
        let shown = site.refused("linerate inventory a.toml");
        assert!(shown.contains("a.toml:6:") || shown.contains("a.toml:5:"), "{shown}");
    }
    site.file("a.toml", format!("[[host]]\nname = \"{long}\"\n"));
    assert!(site.refused("linerate inventory a.toml").contains("is not allowed"));
    site.file("a.toml", format!("{HOST}[[host.endpoint]]\naddress = \"{long}\"\n"));
    assert!(site.refused("linerate inventory a.toml").contains("is not an IP address"));
}

/// Groups, each in the next one, and as many hosts, each in a group of its own.
fn chain(groups: usize, hosts: usize) -> String {
    let mut text = String::new();
    for group in 0..groups {
        let parent =
            if group + 1 < groups { format!("parent = \"g{}\"\n", group + 1) } else { String::new() };
        write!(text, "[[group]]\nname = \"g{group}\"\n{parent}").unwrap();
    }
    for host in 0..hosts {
        write!(text, "[[host]]\nname = \"h{host}\"\ngroups = [\"g{host}\"]\n").unwrap();
    }
    text
}

#[test]
fn a_long_chain_of_groups_is_read_and_printed() {
    let site = Site::new();
    site.file("chain.toml", chain(20_000, 20_000));
    let ended = site.shell("linerate inventory chain.toml");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.starts_with("20000 hosts, 20000 groups"));
    assert!(ended.out.len() < 6_000_000, "{} bytes", ended.out.len());
    // The last group is the outermost one.
    let first = ended.out.lines().nth(3).unwrap();
    assert_eq!(first.split_whitespace().next(), Some("g19999"), "{first}");
    let ended =
        site.shell("linerate inventory chain.toml --toml > again.toml && linerate inventory again.toml");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn a_long_cycle_of_groups_is_told_in_a_line() {
    let site = Site::new();
    let text = chain(20_000, 1).replace("name = \"g19999\"\n", "name = \"g19999\"\nparent = \"g10000\"\n");
    site.file("cycle.toml", text);
    let shown = site.refused("linerate inventory cycle.toml");
    assert!(shown.contains("group `g10000` contains itself: g10000 in g10001 in"), "{shown}");
}

#[test]
fn too_many_hosts_or_groups_are_refused_with_their_number() {
    let site = Site::new();
    for (kind, table) in [("host", "[[host]]\nname = \"x\"\n"), ("group", "[[group]]\nname = \"x\"\n")] {
        site.file("many.toml", table.repeat(65_537));
        let shown = site.refused("linerate inventory many.toml");
        assert!(shown.contains(&format!("65537 {kind}s, at most 65536 are read")), "{shown}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_any_format() {
    let site = Site::new();
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../inventory/tests/inventories");
    let mut files: Vec<PathBuf> = std::fs::read_dir(fixtures).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.extension().is_none_or(|e| e != "md"));
    files.sort();
    assert!(files.len() > 10);
    site.file("own.toml", HOST).file("list", "n[1-3]\n");
    files.extend([site.path("own.toml"), site.path("list")]);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        site.file("plain", &bytes).file("marked", [b"\xef\xbb\xbf", &bytes[..]].concat());
        let [plain, marked] =
            ["plain", "marked"].map(|name| site.shell(&format!("linerate inventory {name} --json")));
        assert_eq!(
            (plain.code, &plain.out),
            (marked.code, &marked.out),
            "{}: {}",
            file.display(),
            marked.err
        );
        let piped = site.shell("cat marked | linerate inventory - --json");
        assert_eq!(piped.code, plain.code, "{}: {}", file.display(), piped.err);
    }
    let case = include_str!("../../../cases/casebook-a3.toml");
    site.file("case.toml", format!("\u{feff}{case}"));
    assert_eq!(site.shell("linerate diagnose case.toml").code, Some(1));
}

#[test]
fn names_that_look_the_same_are_told_apart() {
    let site = Site::new();
    // The second one has a Cyrillic letter.
    site.file("two.toml", format!("{HOST}[[host]]\nname = \"\u{430}\"\ntransport = \"local\"\n"));
    let ended = site.shell("linerate inventory two.toml");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(
        ended.out.contains("two names that look the same: character 1 of \\u{430} is U+0430"),
        "{}",
        ended.out
    );
}

#[test]
fn numbers_in_messages_have_few_digits() {
    let site = Site::new();
    site.file("rate.toml", format!("[[group]]\nname = \"g\"\nuplink_mbit = 1e308\n{HOST}"));
    let shown = site.refused("linerate inventory rate.toml");
    assert!(shown.contains("uplink_mbit is 1e308"), "{shown}");
}
