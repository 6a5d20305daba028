//! Real surveys with real node programs in network namespaces of our own: the whole line, a node killed in
//! mid-survey, and Ctrl-C. Needs root or user namespaces, `ip`, `unshare`, `nsenter` and a built
//! `linerate-node`; what is missing is printed as a skip with its reason.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_testkit::{self as testkit, Holder, TestEnvironment, run, wait_until};

/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Rates that a link of 200 Mbit/s can have shown, bit/s: far less on a busy machine, and never those of a
/// loopback.
const RATES: std::ops::Range<f64> = 1e5..1e9;

fn node_program() -> Option<PathBuf> {
    testkit::node_program(env!("CARGO_BIN_EXE_linerate"))
}

/// Runs the test of this name again inside fresh network and mount namespaces, so that nothing outside is
/// ever touched. Gives `true` in the process inside.
fn inside(name: &str) -> bool {
    if node_program().is_none() {
        return testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
    }
    testkit::inside(name, TestEnvironment::Mounts)
}

/// Three hosts on one bridge, 200 Mbit/s each. A namespace lives as long as its holder.
struct Cluster {
    folder: tempfile::TempDir,
    holders: Vec<Holder>,
}

impl Cluster {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["link", "add", "br0", "type", "bridge"]);
        run("ip", &["link", "set", "br0", "up"]);
        let mut toml = "name = \"three\"\n".to_owned();
        let mut holders = Vec::new();
        for number in 1..=3 {
            let holder = Holder::new();
            let pid = holder.pid();
            let (port, address) = (format!("p{number}"), format!("10.99.0.{number}"));
            run("ip", &["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &pid]);
            run("ip", &["link", "set", &port, "master", "br0", "up"]);
            let shaper = [
                "qdisc", "add", "dev", &port, "root", "tbf", "rate", "200mbit", "burst", "64k", "latency",
                "20ms",
            ];
            run("tc", &shaper);
            for command in [
                &["addr", "add", &format!("{address}/24"), "dev", "eth0"][..],
                &["link", "set", "eth0", "up"],
            ] {
                holder.run(&[&["ip"], command].concat());
            }
            let state = folder.path().join(format!("h{number}"));
            let _ = write!(
                toml,
                "[[host]]\nname = \"h{number}\"\nnetns = \"/proc/{pid}/ns/net\"\nstate_dir = \"{0}/state\"\n\
                 etc_dir = \"{0}/etc\"\n[[host.endpoint]]\naddress = \"{address}\"\nlink_mbit = 200\n",
                state.display()
            );
            holders.push(holder);
        }
        std::fs::write(folder.path().join("cluster.toml"), toml).unwrap();
        Self { folder, holders }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("LINERATE_DATA", self.folder.path())
            .env("LINERATE_NODE", node_program().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.command(arguments).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Pids of the node programs that the operator started.
    fn nodes_of(operator: u32) -> Vec<u32> {
        linerate_testkit::children(operator)
    }
}

/// Starts a survey and waits until it measures.
fn surveying(cluster: &Cluster, arguments: &[&str]) -> (Child, std::thread::JoinHandle<String>) {
    let mut child = cluster.command(arguments).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let (measures, begun) = std::sync::mpsc::channel();
    let said = std::thread::spawn(move || {
        let mut all = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.starts_with("measuring:") || line.contains(r#""event":"begin","phase":"measuring""#) {
                let _ = measures.send(());
            }
            all += &line;
            all.push('\n');
        }
        all
    });
    begun.recv_timeout(PATIENCE).expect("the survey begins to measure");
    (child, said)
}

#[test]
fn a_survey_measures_every_pair_and_stores_it() {
    if !inside("a_survey_measures_every_pair_and_stores_it") {
        return;
    }
    let cluster = Cluster::new();
    let json = cluster.json(&["survey", "-i", "cluster.toml", "--json", "-q", "--snapshot", "s.json"]);
    assert_eq!(json["schema"], 1);
    let snapshot: serde_json::Value =
        serde_json::from_slice(&std::fs::read(cluster.folder.path().join("s.json")).unwrap()).unwrap();
    assert_eq!(snapshot["gaps"].as_array().map(Vec::len), Some(0), "{}", snapshot["gaps"]);
    for (from, to) in [("h1", "h2"), ("h2", "h1"), ("h1", "h3"), ("h3", "h1"), ("h2", "h3"), ("h3", "h2")] {
        let samples = snapshot["samples"].as_array().unwrap();
        let of_pair = samples.iter().filter(|s| s["test"]["from"] == from && s["test"]["to"] == to);
        let rates: Vec<f64> = of_pair
            .filter(|s| s["test"]["kind"].get("tcp").is_some())
            .filter_map(|s| s["outcome"]["measured"]["throughput_bps"].as_f64())
            .collect();
        assert!(!rates.is_empty(), "{from} to {to} was not measured");
        assert!(rates.iter().all(|r| RATES.contains(r)), "{from} to {to}: {rates:?}");
    }
    let runs = cluster.json(&["runs", "--json"]);
    assert_eq!(runs["runs"][0]["id"], json["run"]);
    assert_eq!(runs["runs"][0]["finished"], true);
    assert_eq!(
        cluster.json(&["diagnose", "--json"])["diagnosis"],
        json["diagnosis"],
        "the stored run says the same"
    );
}

/// Bytes that the NIC of a host has carried so far: received, sent.
fn carried(pid: &str) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    let numbers: Vec<u64> = line.split_ascii_whitespace().map(|n| n.parse().unwrap()).collect();
    [numbers[0], numbers[8]]
}

/// Counters of the NICs while a survey runs: each with the time before and after it was read.
type Readings = Vec<(Instant, Vec<[u64; 2]>, Instant)>;

/// Runs a survey and reads the NICs meanwhile.
fn counted(cluster: &Cluster, arguments: &[&str]) -> (serde_json::Value, Readings) {
    let pids: Vec<String> = cluster.holders.iter().map(Holder::pid).collect();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut readings = Vec::new();
            loop {
                let is_last = ended.load(Ordering::Acquire);
                let before = Instant::now();
                let all = pids.iter().map(|pid| carried(pid)).collect();
                readings.push((before, all, Instant::now()));
                if is_last {
                    return readings;
                }
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let json = cluster.json(arguments);
        ended.store(true, Ordering::Release);
        (json, reading.join().unwrap())
    })
}

/// The highest rate of a direction of a NIC over windows of a second or a little more, bit/s: long enough
/// that a busy machine, which keeps packets for a while and then lets them go, does not count. A window that
/// was read late counts as longer, never as shorter.
fn fastest_window(readings: &Readings, host: usize, direction: usize) -> f64 {
    let mut most = 0.0_f64;
    for (i, (begin, from, _)) in readings.iter().enumerate() {
        let later = readings[i..].iter().find(|(at, ..)| *at - *begin >= Duration::from_secs(1));
        let Some((_, to, end)) = later else { break };
        let bits = (to[host][direction] - from[host][direction]) as f64 * 8.0;
        most = most.max(bits / (*end - *begin).as_secs_f64());
    }
    most
}

/// What is announced before a survey is an upper bound, and a gentle one also keeps to its share at any time.
#[test]
fn no_link_carries_more_than_was_announced() {
    const NAME: &str = "no_link_carries_more_than_was_announced";
    if !inside(NAME) {
        return;
    }
    let cluster = Cluster::new();
    for gentle in [true, false] {
        let mut arguments = vec!["survey", "-i", "cluster.toml", "--json"];
        arguments.extend(gentle.then_some("--gentle"));
        let (json, readings) = counted(&cluster, &arguments);
        let (load, first, last) = (&json["load"], &readings[0].1, &readings[readings.len() - 1].1);
        assert_eq!(load["share"].as_f64(), gentle.then_some(0.1), "{load}");
        for (host, name) in ["h1", "h2", "h3"].iter().enumerate() {
            let link = load["links"].as_array().unwrap().iter().find(|l| l["of"] == *name).unwrap();
            let bytes: u64 = (0..2).map(|i| last[host][i] - first[host][i]).sum();
            let rates = [0, 1].map(|direction| fastest_window(&readings, host, direction) / 1e6);
            println!("gentle {gentle}: {name} carried {bytes} bytes, at most {rates:.1?} Mbit/s; {link}");
            assert!(bytes > 0 && bytes <= link["most_bytes"].as_u64().unwrap(), "{name}: {bytes} of {link}");
            // A tenth of 200 Mbit/s.
            assert!(!gentle || rates.iter().all(|rate| *rate <= 20.0), "{name}: {rates:?} Mbit/s");
        }
        if gentle {
            let paced = json["summary"]["unseen"]["paced"].as_f64();
            assert!(paced.is_some_and(|share| (0.07..0.1).contains(&share)), "{}", json["summary"]);
        }
    }
}

/// The drives are read once, although three namespaces see them, after the pairs of the same run; its reports
/// have them too.
#[test]
fn a_survey_reads_the_drives_of_a_machine_once() {
    const NAME: &str = "a_survey_reads_the_drives_of_a_machine_once";
    let is_drive = |name: &str| ["sd", "vd", "nvme", "xvd"].iter().any(|start| name.starts_with(start));
    let devices = std::fs::read_dir("/sys/block").map_or(Vec::new(), |all| all.flatten().collect());
    if !devices.iter().any(|device| device.file_name().to_str().is_some_and(is_drive)) {
        testkit::skip(NAME, "this machine has no drive");
        return;
    }
    if !inside(NAME) {
        return;
    }
    let cluster = Cluster::new();
    let arguments = ["survey", "-i", "cluster.toml", "--time", "25s", "--disks", "--json", "--quiet"];
    let json = cluster.json(&arguments);
    let drives = json["drives"].as_array().unwrap_or_else(|| panic!("{json}"));
    assert!(drives.iter().all(|drive| drive["host"] == "h1"), "{drives:?}");
    let measured = |drive: &&serde_json::Value| drive["rounds"].as_u64().is_some_and(|rounds| rounds > 0);
    assert!(drives.iter().any(|drive| measured(&drive) || drive["state"] == "busy"), "{drives:?}");
    assert!(json["diagnosis"]["cells"].as_array().is_some_and(|cells| cells.len() == 6), "{json}");
    let run = json["run"].as_str().unwrap();
    let text = testkit::text(&cluster.command(&["report", run]).output().unwrap().stdout);
    assert!(text.contains(" drives of 1 hosts") && text.contains("read/s"), "{text}");
    let stored = cluster.json(&["report", run, "--json"]);
    assert_eq!(stored["drives"], json["drives"]);
}

/// The third host is a device on which nothing of ours can run: a plain iperf3 server listens there.
#[test]
fn a_device_that_only_has_iperf3_is_one_end_of_tests() {
    const NAME: &str = "a_device_that_only_has_iperf3_is_one_end_of_tests";
    if !linerate_testkit::has(NAME, "iperf3", "iperf3") {
        return;
    }
    if !inside(NAME) {
        return;
    }
    let cluster = Cluster::new();
    let mut server = IperfServer::start(&cluster.holders[2]);
    let inventory = cluster.folder.path().join("cluster.toml");
    let toml = std::fs::read_to_string(&inventory).unwrap();
    let ours = toml.split("[[host]]\nname = \"h3\"").next().unwrap();
    let device = "[[host]]\nname = \"nas\"\n[[host.endpoint]]\naddress = \"10.99.0.3\"\nkind = \"iperf3\"\nlink_mbit = 200\n";
    std::fs::write(&inventory, format!("{ours}{device}")).unwrap();
    let survey = ["survey", "-i", "cluster.toml", "--json", "-q", "--snapshot", "s.json"];
    cluster.json(&survey);
    let snapshot: serde_json::Value =
        serde_json::from_slice(&std::fs::read(cluster.folder.path().join("s.json")).unwrap()).unwrap();
    let gaps: Vec<&str> =
        snapshot["gaps"].as_array().unwrap().iter().filter_map(|g| g["what"].as_str()).collect();
    assert_eq!(gaps, ["facts of nas"], "{}", snapshot["gaps"]);
    let samples = snapshot["samples"].as_array().unwrap();
    for (from, to) in [("h1", "nas"), ("nas", "h1"), ("h2", "nas"), ("nas", "h2"), ("h1", "h2"), ("h2", "h1")]
    {
        let of_pair = |kind: &str| -> Vec<&serde_json::Value> {
            samples
                .iter()
                .filter(|s| s["test"]["from"] == from && s["test"]["to"] == to)
                .filter(|s| s["test"]["kind"].get(kind).is_some())
                .collect()
        };
        for kind in ["tcp", "udp"] {
            let measured: Vec<_> = of_pair(kind).iter().map(|s| s["outcome"]["measured"].clone()).collect();
            let fine =
                measured.iter().find(|m| m["throughput_bps"].as_f64().is_some_and(|r| RATES.contains(&r)));
            let fine = fine.unwrap_or_else(|| panic!("{kind} {from} to {to}: {:?}", of_pair(kind)));
            let bytes = |end: &str| fine[end]["bytes"].as_u64().unwrap();
            assert!(bytes("rx") > 0 && bytes("rx") <= bytes("tx"), "{kind} {from} to {to}: {fine}");
        }
        let with_nas = from == "nas" || to == "nas";
        assert_eq!(of_pair("rtt").is_empty() && of_pair("mtu").is_empty(), with_nas, "{from} to {to}");
    }
    server.end();
}

/// Debian's iperf3 in the namespace of a holder.
struct IperfServer(Child);

impl IperfServer {
    fn start(holder: &Holder) -> Self {
        let mut child = Command::new("nsenter")
            .args(["-t", &holder.pid(), "-n", "iperf3", "-s", "--forceflush"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (listens, heard) = std::sync::mpsc::channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.contains("listening on") {
                    let _ = listens.send(());
                }
            }
        });
        heard.recv_timeout(PATIENCE).expect("iperf3 listens");
        Self(child)
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for IperfServer {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_node_killed_in_mid_survey_makes_gaps() {
    if !inside("a_node_killed_in_mid_survey_makes_gaps") {
        return;
    }
    let cluster = Cluster::new();
    let (mut survey, said) =
        surveying(&cluster, &["survey", "-i", "cluster.toml", "--json", "--snapshot", "s.json"]);
    let victim = *Cluster::nodes_of(survey.id()).first().expect("the survey has started nodes");
    assert!(Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success());
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut survey.stdout.take().unwrap(), &mut stdout).unwrap();
    let code = survey.wait().unwrap().code();
    let said = said.join().unwrap();
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {said}");
    assert!(said.contains("is lost") && said.contains("signal: 9"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let snapshot: serde_json::Value =
        serde_json::from_slice(&std::fs::read(cluster.folder.path().join("s.json")).unwrap()).unwrap();
    assert_eq!(snapshot["gaps"].as_array().map(Vec::len), Some(1), "{}", snapshot["gaps"]);
    let samples = snapshot["samples"].as_array().unwrap();
    let count = |kind: &str| samples.iter().filter(|s| s["outcome"].get(kind).is_some()).count();
    assert!(
        count("gap") > 0 && count("measured") > 0,
        "{} gaps, {} measured",
        count("gap"),
        count("measured")
    );
    let runs = cluster.json(&["runs", "--json"]);
    assert_eq!((&runs["runs"][0]["id"], &runs["runs"][0]["finished"]), (&json["run"], &true.into()));
}

#[test]
fn ctrl_c_ends_a_survey_cleanly() {
    if !inside("ctrl_c_ends_a_survey_cleanly") {
        return;
    }
    let cluster = Cluster::new();
    let (mut survey, said) = surveying(&cluster, &["survey", "-i", "cluster.toml", "--time", "60s"]);
    let nodes = Cluster::nodes_of(survey.id());
    assert_eq!(nodes.len(), 3);
    assert!(Command::new("kill").args(["-INT", &survey.id().to_string()]).status().unwrap().success());
    assert_eq!(survey.wait().unwrap().code(), Some(130));
    assert!(said.join().unwrap().contains("everything was cleaned up"));
    for node in nodes {
        wait_until("the node is gone", || !Path::new(&format!("/proc/{node}")).exists());
    }
    assert_eq!(cluster.json(&["runs", "--json"])["runs"][0]["finished"], false, "what was measured is kept");
}
