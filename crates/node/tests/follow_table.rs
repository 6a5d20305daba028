//! 200 writes over 15 families by the programs of people, with fresh values by a seed, to a real node that
//! follows them: which are reported, when, and with the right values and writer.
//!
//! In: root, `ip`, `tc`, `ethtool`, `nft`, `sysctl`; `LINERATE_SEED` for other values. Out: the table of
//! `docs/guide/changes.md`. What takes longer than a second is counted, not refused: it may be the machine.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

// Other tests use the rest of it.
#[allow(dead_code)]
mod operator;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_model::fact::{FactKey, FactValue};
use linerate_model::notice::{FactNotice, LINK_WRITERS, NoticeSource, ValueChange, WRITERS};
use linerate_model::random::Random;
use linerate_testkit::{self as testkit, TestEnvironment};
use linerate_wire::message::{Event, ObserveRequest};
use operator::Operator;

const WRITES: usize = 200;
/// Values of another seed are set by the environment.
const SEED: u64 = 0x5eed_2401;

/// Who is to be named with a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Process,
    /// The one process that asked for a change then, where the kernel lets a program see who asks.
    Probable,
    /// The kernel does not report it.
    Unknown,
}

/// A write: the command, the beginning of the key that it changes, what the new value contains.
struct Write {
    command: Vec<String>,
    key: String,
    value: String,
}

/// A number between two, other than the last one.
fn other(random: &mut Random, last: &mut usize, low: usize, high: usize) -> usize {
    let drawn = low + random.below(high - low);
    *last = if drawn == *last { high } else { drawn };
    *last
}

fn write(line: &str, key: &str, value: &str) -> Write {
    let command = line.split_whitespace().map(str::to_owned).collect();
    Write { command, key: key.to_owned(), value: value.to_owned() }
}

/// A line into a file by a process of its own.
fn echo(text: &str, file: &str, key: &str) -> Write {
    let command = ["sh", "-c", &format!("echo {text} > {file}")].map(str::to_owned).to_vec();
    Write { command, key: key.to_owned(), value: text.to_owned() }
}

/// Draws a write of a family; the number is the last value, then how many there were.
type Draw = fn(&mut Random, &mut usize, usize) -> Write;

/// Name, who is named, what reports it, writes.
const FAMILIES: [(&str, Owner, NoticeSource, Draw); 15] = [
    ("sysctl net.ipv4", Owner::Process, NoticeSource::Written, |random, last, _| {
        let most = other(random, last, 200_000, 9_000_000);
        let text = format!("4096 65536 {most}");
        let set = format!("net.ipv4.tcp_rmem={text}");
        let command = ["sysctl", "-qw", &set].map(str::to_owned).to_vec();
        Write { command, key: "sysctl.net.ipv4.tcp_rmem".to_owned(), value: text }
    }),
    ("sysctl net.core", Owner::Process, NoticeSource::Written, |random, last, _| {
        let number = other(random, last, 100, 60_000);
        write(
            &format!("sysctl -qw net.core.somaxconn={number}"),
            "sysctl.net.core.somaxconn",
            &number.to_string(),
        )
    }),
    ("sysctl vm", Owner::Process, NoticeSource::Written, |random, last, _| {
        let number = other(random, last, 2, 60);
        write(
            &format!("sysctl -qw vm.stat_interval={number}"),
            "sysctl.vm.stat_interval",
            &number.to_string(),
        )
    }),
    ("queue masks (RPS)", Owner::Process, NoticeSource::Written, |random, last, _| {
        let mask = other(random, last, 0, 3);
        let file = "/sys/class/net/d0/queues/rx-0/rps_cpus";
        echo(&mask.to_string(), file, "nic.d0.queue.rx-0.rps_cpus")
    }),
    ("block queues", Owner::Process, NoticeSource::Written, |random, last, _| {
        let number = 4 * other(random, last, 8, 512);
        let file = format!("/sys/block/{DISK}/queue/read_ahead_kb");
        echo(&number.to_string(), &file, &format!("disk.{DISK}.read_ahead_kb"))
    }),
    ("MTU", Owner::Probable, NoticeSource::Link, |random, last, _| {
        let number = other(random, last, 1280, 9000);
        write(&format!("ip link set d0 mtu {number}"), "nic.d0.mtu", &number.to_string())
    }),
    ("txqueuelen", Owner::Probable, NoticeSource::Link, |random, last, _| {
        let number = other(random, last, 10, 10_000);
        write(&format!("ip link set d0 txqueuelen {number}"), "nic.d0.txqueuelen", &number.to_string())
    }),
    ("queueing disciplines", Owner::Process, NoticeSource::Link, |random, last, _| {
        let rate = other(random, last, 10, 900);
        let line = format!("tc qdisc replace dev d0 root tbf rate {rate}mbit burst 32k latency 30ms");
        write(&line, "nic.d0.qdisc_rate_bit", &format!("{rate}000000"))
    }),
    ("addresses", Owner::Process, NoticeSource::Link, |_, _, count| {
        let address = format!("192.0.2.{}/24", count + 1);
        write(&format!("ip address add {address} dev d0"), "nic.d0.addresses", &address)
    }),
    ("routes", Owner::Process, NoticeSource::Link, |random, _, count| {
        let metric = 1 + random.below(1000);
        let line = format!("ip route add 198.51.{count}.0/24 dev d1 metric {metric}");
        write(&line, &format!("route.198/51/{count}/0-24"), "d1")
    }),
    ("routing rules", Owner::Process, NoticeSource::Link, |random, _, count| {
        let table = 100 + random.below(100);
        let line = format!("ip rule add from 203.0.113.{count} table {table}");
        write(&line, "rule.", &table.to_string())
    }),
    ("offloads", Owner::Probable, NoticeSource::Driver, |random, last, _| {
        // Bits of two features that change on their own.
        *last ^= 1 << random.below(2);
        let on = |bit: usize| if *last >> bit & 1 == 1 { "off" } else { "on" };
        let line = format!("ethtool -K d0 tso {} gro {}", on(0), on(1));
        write(&line, "nic.d0.feature.", "")
    }),
    ("channels", Owner::Probable, NoticeSource::Driver, |random, last, _| {
        let number = other(random, last, 1, 4);
        let line = format!("ethtool -L d0 rx {number}");
        write(&line, "nic.d0.channels.rx", &number.to_string())
    }),
    ("nftables", Owner::Process, NoticeSource::Firewall, |random, _, count| {
        let port = 1 + random.below(60_000);
        let line = format!("nft add rule inet x c tcp dport {port} drop");
        write(&line, "firewall.input.rules", &(count + 1).to_string())
    }),
    ("files of owners", Owner::Unknown, NoticeSource::File, |random, last, _| {
        let number = other(random, last, 100, 60_000);
        let (file, line) = match random.below(3) {
            0 => ("/etc/sysctl.d/50-x.conf", format!("net.core.somaxconn={number}")),
            1 => ("/etc/systemd/network/50-x.link", format!("TxQueueLength={number}")),
            _ => ("/etc/tuned/active_profile", format!("profile-{number}")),
        };
        echo(&line, file, file)
    }),
];

/// Its read-ahead is set back at the end.
const DISK: &str = "vda";

/// Settings of the whole machine, which get their values back.
struct Machine(Vec<(PathBuf, String)>);

impl Machine {
    fn new() -> Self {
        let files = ["/proc/sys/vm/stat_interval".into(), format!("/sys/block/{DISK}/queue/read_ahead_kb")];
        Self(
            files
                .map(|file| (PathBuf::from(&file), std::fs::read_to_string(file).unwrap_or_default()))
                .into(),
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for (file, text) in self.0.iter().filter(|(_, text)| !text.is_empty()) {
            let _ = std::fs::write(file, text);
        }
    }
}

/// What became of the writes of a family.
#[derive(Default)]
struct Row {
    writes: usize,
    seen: usize,
    in_a_second: usize,
    values: usize,
    owners: usize,
}

/// A node that follows everything.
struct Followed {
    operator: Operator,
    values: BTreeMap<FactKey, FactValue>,
    waiting: VecDeque<FactNotice>,
}

impl Followed {
    /// With why no writers of sysctls, and why none of links are named.
    fn start() -> (Self, [Option<String>; 2]) {
        let mut operator = Operator::start(None);
        let events = operator.ask(ObserveRequest::Follow { prefixes: Vec::new(), writers: true });
        let [Event::Facts(facts), Event::Done] = events.as_slice() else { panic!("{events:?}") };
        let reasons = [WRITERS, LINK_WRITERS].map(|what| {
            let gap = facts.gaps.iter().find(|gap| gap.what.to_string() == what);
            gap.map(|gap| gap.reason.clone())
        });
        let values = facts.readings.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        (Self { operator, values, waiting: VecDeque::new() }, reasons)
    }

    /// The next notice of a write, with the change that it made, and whether its old value was the right one.
    /// `None` when none came in half a minute.
    fn change(
        &mut self,
        source: NoticeSource,
        Write { key, value, .. }: &Write,
    ) -> Option<(FactNotice, Option<ValueChange>, bool)> {
        loop {
            if self.waiting.is_empty() {
                let events = self.operator.ask(ObserveRequest::Notices);
                let [Event::Noticed(notices), Event::Done] = events.as_slice() else { panic!("{events:?}") };
                self.waiting.extend(notices.iter().cloned());
            }
            let notice = self.waiting.pop_front()?;
            let mut found = None;
            for change in &notice.changes {
                let is_right = self.values.get(&change.key) == change.from.as_ref();
                let has_value = change.to.as_ref().is_some_and(|to| to.to_string().contains(value));
                if change.key.starts_with(key) && (found.is_none() || has_value) {
                    found = Some((change.clone(), is_right));
                }
                match &change.to {
                    Some(to) => self.values.insert(change.key.clone(), to.clone()),
                    None => self.values.remove(&change.key),
                };
            }
            if notice.source == NoticeSource::File && source == NoticeSource::File && notice.about == *key {
                return Some((notice, None, true));
            }
            if let Some((change, is_right)) = found.filter(|_| notice.source == source) {
                return Some((notice, Some(change), is_right));
            }
        }
    }
}

fn prepare(files: &Path) {
    let line = format!(
        "mount -t sysfs sysfs /sys
         ip link add d0 numrxqueues 4 numtxqueues 4 type veth peer name d1 numrxqueues 4 numtxqueues 4
         ip link set d0 up; ip link set d1 up; ethtool -L d0 rx 4; ethtool -K d0 tso on gro on
         nft add table inet x; nft 'add chain inet x c {{ type filter hook input priority 0; }}'
         for folder in sysctl.d systemd/network tuned; do
             mkdir -p {0}/$folder /etc/$folder; mount --bind {0}/$folder /etc/$folder
         done",
        files.display()
    );
    let output = Command::new("sh").args(["-ec", &line]).output().unwrap();
    assert!(output.status.success(), "{}", testkit::text(&output.stderr));
}

/// Makes a write; gives the number of its process.
fn make(write: &Write) -> i32 {
    let mut command = Command::new(&write.command[0]);
    let child = command.args(&write.command[1..]).stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id().cast_signed();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", write.command);
    pid
}

fn print(rows: &[Row; FAMILIES.len()]) {
    println!("| family | writes | seen | within 1 s | old and new right | writer right |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (row, (name, owner, source, _)) in rows.iter().zip(FAMILIES) {
        let owners = match owner {
            Owner::Process => row.owners.to_string(),
            Owner::Probable => format!("{} (probably)", row.owners),
            Owner::Unknown => "not known".to_owned(),
        };
        let values =
            if source == NoticeSource::File { "none yet".to_owned() } else { row.values.to_string() };
        let Row { writes, seen, in_a_second, .. } = row;
        println!("| {name} | {writes} | {seen} | {in_a_second} | {values} | {owners} |");
    }
}

#[test]
fn two_hundred_writes_over_fifteen_families_are_reported() {
    const NAME: &str = "two_hundred_writes_over_fifteen_families_are_reported";
    if !testkit::is_root() {
        testkit::skip(NAME, "the writes below /proc are reported to root only");
        return;
    }
    let programs = [("tc", "iproute2"), ("ethtool", "ethtool"), ("nft", "nftables"), ("sysctl", "procps")];
    if !programs.iter().all(|(program, package)| testkit::has(NAME, program, package))
        || !testkit::inside(NAME, TestEnvironment::Mounts)
    {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    prepare(files.path());
    let _machine = Machine::new();
    let (mut followed, [no_writers, no_link_writers]) = Followed::start();
    if let Some(reason) = no_writers {
        println!("no program names the writers of sysctls: {reason}");
    }
    if let Some(reason) = no_link_writers {
        println!("no program names who changes links: {reason}");
    }
    let seed = std::env::var("LINERATE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(SEED);
    let mut random = Random(seed);
    let mut last = [0; FAMILIES.len()];
    let mut rows: [Row; FAMILIES.len()] = std::array::from_fn(|_| Row::default());
    for number in 0..WRITES {
        let family = number % FAMILIES.len();
        let (name, owner, source, draw) = FAMILIES[family];
        let row = &mut rows[family];
        let write = draw(&mut random, &mut last[family], row.writes);
        if write.key.starts_with("disk.") && !followed.values.contains_key(&write.key) {
            continue;
        }
        row.writes += 1;
        let pid = make(&write);
        let Some((notice, change, is_old_right)) = followed.change(source, &write) else {
            println!("seed {seed}: nothing of {:?}", write.command);
            continue;
        };
        row.seen += 1;
        row.in_a_second += usize::from(notice.read_after_ms <= 1000);
        let to = change.as_ref().and_then(|change| change.to.as_ref()).map(ToString::to_string);
        let is_new_right = change.is_none() || to.as_ref().is_some_and(|to| to.contains(&write.value));
        row.values += usize::from(is_old_right && is_new_right);
        row.owners += usize::from(notice.writer.as_ref().map(|writer| writer.pid) == Some(pid));
        if !is_old_right || !is_new_right {
            println!("seed {seed}, {name}: {:?} gives {notice:?}", write.command);
        }
        let is_claimed = notice.writer.as_ref().is_some_and(|writer| !writer.is_probable);
        assert!(owner == Owner::Process || !is_claimed, "{name}: {notice:?}");
        assert!(owner != Owner::Unknown || notice.writer.is_none(), "{name}: {notice:?}");
        // Another write shortly before may make it unclear, and then no process is named.
        let is_own = notice.writer.as_ref().is_none_or(|writer| writer.pid == pid);
        assert!(owner != Owner::Probable || is_own, "{name}: not {pid}: {notice:?}");
    }
    print(&rows);
    for (row, (name, owner, ..)) in rows.iter().zip(FAMILIES) {
        assert_eq!((row.seen, row.values), (row.writes, row.writes), "{name}, seed {seed}");
        assert!(owner != Owner::Process || row.owners == row.writes, "{name}, seed {seed}: {}", row.owners);
    }
}
