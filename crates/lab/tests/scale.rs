//! Many hosts on one machine: each a network namespace with a `linerate-node` of its own behind a process of
//! its own, in one survey with a time budget, and one of them frozen in the middle; and in one watch.
//! `LINERATE_SCALE_HOSTS` sets how many (`cargo xtask scale`); what the operator needed is printed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linerate_lab::folder::LabFolder;
use linerate_lab::namespace::Namespace;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_testkit::cost::cpu_s_of;
use linerate_testkit::{TestPrograms, processes_in};

/// Hosts of the test; a scale run sets more.
const HOSTS: usize = 40;
/// Rate of each link: all of them together are no load for the machine.
const LINK_MBIT: u32 = 10;
/// Far above what the survey takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two samples of the operator.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// How many hosts a test has.
fn count() -> usize {
    std::env::var("LINERATE_SCALE_HOSTS").ok().and_then(|n| n.parse().ok()).unwrap_or(HOSTS)
}

fn programs() -> TestPrograms {
    TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"))
}

fn address(number: usize) -> String {
    format!("10.156.{}.{}", number / 200, number % 200 + 1)
}

/// A switch, and hosts at its ports behind slow links.
fn hosts(count: usize) -> (Namespace, Vec<Namespace>) {
    let switch = Namespace::create("switch").unwrap();
    switch.ip("link add br0 type bridge\nlink set br0 up\n").unwrap();
    let hosts = (0..count)
        .map(|number| {
            let host = Namespace::create(&format!("h{number}")).unwrap();
            let there = host.path();
            let there = there.display();
            switch
                .ip(&format!("link add p{number} type veth peer name eth0 netns {there}\nlink set p{number} master br0 up\n"))
                .unwrap();
            let limit = format!("root tbf rate {LINK_MBIT}mbit burst 32k latency 20ms");
            switch.tc(&format!("qdisc add dev p{number} {limit}\n")).unwrap();
            host.ip(&format!("address add {}/16 dev eth0\nlink set eth0 up\n", address(number))).unwrap();
            host.tc(&format!("qdisc add dev eth0 {limit}\n")).unwrap();
            host
        })
        .collect();
    (switch, hosts)
}

fn inventory(folder: &Path, hosts: &[Namespace]) -> PathBuf {
    let mut text = "name = \"scale\"\n".to_owned();
    for (number, host) in hosts.iter().enumerate() {
        let _ = write!(
            text,
            "[[host]]\nname = \"{name}\"\nnetns = \"{netns}\"\nstate_dir = \"{state}\"\netc_dir = \"{state}\"\n\
             [[host.endpoint]]\naddress = \"{address}\"\nlink_mbit = {LINK_MBIT}\n",
            name = host.name,
            netns = host.path().display(),
            state = folder.join(&host.name).display(),
            address = address(number),
        );
    }
    let path = folder.join("scale.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// A child that is killed with its value.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the operator needed at the most.
#[derive(Debug, Default)]
struct Needed {
    files: usize,
    memory_kb: u64,
}

impl Needed {
    fn sample(&mut self, pid: u32) {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.files = self.files.max(files);
        self.memory_kb = self.memory_kb.max(linerate_testkit::peak_memory_kib(pid));
    }
}

/// Waits for the end of the operator, looking at it meanwhile. As soon as measuring has begun one node is
/// frozen.
fn watched(mut operator: Operator, victim: &Namespace) -> (Option<i32>, Needed) {
    let pid = operator.0.id();
    let mut stderr = std::io::BufReader::new(operator.0.stderr.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        use std::io::BufRead as _;
        let mut line = String::new();
        while stderr.read_line(&mut line).is_ok_and(|n| n > 0) {
            print!("    {line}");
            let _ = sender.send(line.starts_with("measuring:"));
            line.clear();
        }
    });
    let (mut needed, mut frozen, begun) = (Needed::default(), Vec::new(), Instant::now());
    loop {
        assert!(begun.elapsed() < PATIENCE, "the survey does not end");
        needed.sample(pid);
        match receiver.recv_timeout(SAMPLE_INTERVAL) {
            Ok(true) if frozen.is_empty() => {
                frozen = processes_in(victim.inode().unwrap());
                assert!(!frozen.is_empty(), "the node runs");
                let pids = frozen.iter().map(u32::to_string);
                assert!(Command::new("kill").arg("-STOP").args(pids).status().unwrap().success());
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            _ => {}
        }
    }
    reader.join().unwrap();
    assert!(!frozen.is_empty(), "measuring began");
    let code = operator.0.wait().unwrap().code();
    (code, needed)
}

#[test]
fn many_hosts_in_one_survey_and_one_of_them_freezes() {
    if let Some(reason) = programs().missing() {
        println!("SKIPPED many_hosts_in_one_survey_and_one_of_them_freezes: {reason}");
        return;
    }
    let count = count();
    let budget = std::env::var("LINERATE_SCALE_TIME").unwrap_or_else(|_| "40s".to_owned());
    let folder = LabFolder::create().unwrap();
    let (_switch, hosts) = hosts(count);
    let file = folder.path().join("snapshot.json");
    let begun = Instant::now();
    let operator = Command::new(programs().linerate)
        .args(["survey", "--time", &budget, "-i"])
        .arg(inventory(folder.path(), &hosts))
        .arg("--snapshot")
        .arg(&file)
        .env("LINERATE_DATA", folder.path().join("data"))
        .env("LINERATE_NODE", programs().node)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let victim = &hosts[count / 2];
    let (code, needed) = watched(Operator(operator), victim);
    println!(
        "{count} hosts: {:.1} s, at most {} open files and {} MB of memory",
        begun.elapsed().as_secs_f64(),
        needed.files,
        needed.memory_kb / 1024
    );
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}");
    let snapshot: Snapshot = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let lost: Vec<_> = snapshot
        .gaps
        .iter()
        .filter(|g| matches!(g.what, linerate_model::fact::GapSubject::Host(_)))
        .collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(
        lost[0].what.to_string().ends_with(&victim.name) && lost[0].reason.contains("no data for"),
        "{lost:?}"
    );
    assert_eq!(snapshot.facts.len(), count, "every host was read before one froze");
    let others = snapshot.samples.iter().filter(|s| s.test.from != victim.name && s.test.to != victim.name);
    let (mut all, mut measured) = (0, 0);
    for sample in others {
        all += 1;
        measured += usize::from(matches!(sample.outcome, Outcome::Measured(_)));
    }
    println!("    {measured} of {all} tests of the others were measured");
    assert!(measured * 2 > all, "{measured} of {all}");
    for host in &hosts {
        let inode = host.inode().unwrap();
        let what = format!("nothing runs in {}", host.name);
        linerate_testkit::wait_until(&what, || processes_in(inode).is_empty());
    }
}

#[test]
fn many_hosts_are_watched_by_one_operator() {
    if let Some(reason) = programs().missing() {
        println!("SKIPPED many_hosts_are_watched_by_one_operator: {reason}");
        return;
    }
    let count = count();
    let time = std::env::var("LINERATE_SCALE_TIME").ok();
    let time_s: u64 = time.map_or(10, |text| text.trim_end_matches('s').parse().unwrap());
    let folder = LabFolder::create().unwrap();
    let (_switch, hosts) = hosts(count);
    let mut operator = Operator(
        Command::new(programs().linerate)
            .args(["watch", "--json", "--for", "30m", "-i"])
            .arg(inventory(folder.path(), &hosts))
            .env("LINERATE_DATA", folder.path().join("data"))
            .env("LINERATE_NODE", programs().node)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let pid = operator.0.id();
    let (sender, events) = mpsc::channel::<String>();
    let stdout = std::io::BufReader::new(operator.0.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        use std::io::BufRead as _;
        stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    let (mut watched, mut needed, begun) = (0, Needed::default(), Instant::now());
    // Since all are watched: when, and the CPU time until then.
    let (mut since, mut last): (Option<(Instant, f64)>, _) = (None, None);
    let mut is_asked_to_end = false;
    loop {
        assert!(begun.elapsed() < PATIENCE, "the watch does not end");
        needed.sample(pid);
        last = cpu_s_of(pid).map(|cpu_s| (Instant::now(), cpu_s)).or(last);
        if !is_asked_to_end && since.is_some_and(|(from, _)| from.elapsed().as_secs() >= time_s) {
            linerate_testkit::run("kill", &["-INT", &pid.to_string()]);
            is_asked_to_end = true;
        }
        match events.recv_timeout(SAMPLE_INTERVAL) {
            Ok(line) => {
                let event: serde_json::Value = serde_json::from_str(&line).unwrap();
                watched += usize::from(event["event"] == "watched");
                if watched == count && since.is_none() {
                    since = last;
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
    reader.join().unwrap();
    operator.0.wait().unwrap();
    assert!(watched >= count, "{watched} of {count} hosts were watched");
    if let (Some((from, cpu_from_s)), Some((to, cpu_to_s))) = (since, last) {
        let seconds = (to - from).as_secs_f64();
        println!(
            "{count} hosts watched for {seconds:.0} s: {:.1} % of a core, at most {} open files and {} MB",
            (cpu_to_s - cpu_from_s) * 100.0 / seconds.max(0.001),
            needed.files,
            needed.memory_kb / 1024
        );
    }
    for host in &hosts {
        let inode = host.inode().unwrap();
        let what = format!("nothing runs in {}", host.name);
        linerate_testkit::wait_until(&what, || processes_in(inode).is_empty());
    }
}
