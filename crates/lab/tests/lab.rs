//! The lab for real, in network namespaces: it carries traffic, breaks, heals to the last bit, and leaves
//! nothing.
//!
//! Without root and user namespaces the tests print that and count as skipped.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::namespace::Namespace;
use linerate_lab::topology::Topology;
use linerate_lab::topology::UPLINK;
use linerate_lab::wire::Toward;
use linerate_sys::bpf::{self, TrafficHook};
use linerate_sys::{rtnetlink, sandbox};

/// Two cores carry one cluster at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Far above what a step takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Payload of one transfer, in blocks.
const BLOCKS: usize = 200;
const BLOCK_BYTES: usize = 100_000;

/// Runs the body with a lab, or prints why not.
fn with_lab(test: &str, lab: &str, body: impl FnOnce(&mut Lab)) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !sandbox::is_root() {
        println!(
            "SKIPPED {test}: needs root (the test runner has threads, so that it cannot enter a user namespace)"
        );
        return;
    }
    let mut lab = Lab::up(Topology::load(lab).unwrap()).unwrap();
    body(&mut lab);
}

/// Mbit/s of TCP payload from one namespace to an address in another, from before the connection until the
/// last byte is there: whatever stands still meanwhile makes it less, never more.
fn throughput(from: &Namespace, to: &Namespace, address: std::net::Ipv4Addr) -> f64 {
    let listener = to.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let target = listener.local_addr().unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = from.run(|| TcpStream::connect(target).unwrap()).unwrap();
            let block = vec![0; BLOCK_BYTES];
            for _ in 0..BLOCKS {
                stream.write_all(&block).unwrap();
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        let bytes = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        assert_eq!(bytes, (BLOCKS * BLOCK_BYTES) as u64, "not all of it arrived");
        bytes as f64 * 8.0 / 1e6 / begin.elapsed().as_secs_f64()
    })
}

/// Bytes that the shaper at a port of a switch has let through.
fn shaped_bytes(switch: &Namespace, port: &str) -> u64 {
    let shown = switch.output("tc", &["-s", "qdisc", "show", "dev", port]).unwrap();
    let of_shaper = shown.split("qdisc tbf").nth(1);
    let sent =
        of_shaper.and_then(|text| text.split("Sent ").nth(1)?.split_ascii_whitespace().next()?.parse().ok());
    sent.unwrap_or_else(|| panic!("no shaper at {port}: {shown}"))
}

/// Everything that a fault may change and healing has to bring back.
fn facts(lab: &Lab) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let hosts = lab.cluster.hosts.iter().map(|(_, namespace)| namespace);
    for namespace in hosts.chain(lab.cluster.switches()) {
        let mut put = |what: &str, value: String| facts.insert(format!("{} {what}", namespace.name), value);
        for (program, arguments) in [
            ("ip", &["-o", "-d", "link", "show"][..]),
            ("ip", &["-o", "address", "show"]),
            ("ip", &["route", "show"]),
            ("ip", &["neigh", "show"]),
            ("bridge", &["fdb", "show"]),
            ("tc", &["qdisc", "show"]),
            ("tc", &["filter", "show"]),
            ("nft", &["list", "ruleset"]),
        ] {
            let shown = namespace.output(program, arguments).unwrap();
            put(&format!("{program} {}", arguments.join(" ")), stable(&shown));
        }
        // Programs without a classifier, which an older `tc` does not show.
        let programs = namespace.run(|| {
            let hooks = [TrafficHook::Ingress, TrafficHook::Egress];
            let at = |index| hooks.map(|hook| bpf::programs_at(index, hook).map_or(0, |found| found.len()));
            let links = rtnetlink::links().unwrap();
            links.iter().map(|link| format!("{} {:?}", link.name, at(link.index))).collect::<Vec<_>>()
        });
        put("programs", programs.unwrap().join(", "));
        // There only where the kernel has netfilter in bridges.
        if let Ok(value) = namespace.read_sysctl("net.bridge.bridge-nf-call-iptables") {
            put("bridge-nf-call-iptables", value);
        }
        put("rp_filter", namespace.read_sysctl("net.ipv4.conf.all.rp_filter").unwrap());
        for key in
            ["rmem", "wmem", "window_scaling", "moderate_rcvbuf", "congestion_control", "sack", "timestamps"]
        {
            let key = format!("net.ipv4.tcp_{key}");
            put(&key, namespace.read_sysctl(&key).unwrap());
        }
        for device in ["eth0", "vx0", UPLINK, "br0"] {
            if let Ok(features) = namespace.features(device) {
                put(&format!("features of {device}"), format!("{features:?}"));
            }
        }
    }
    for (number, wire) in lab.cluster.wires.iter().enumerate() {
        for toward in [Toward::Hypervisor, Toward::Core] {
            facts.insert(format!("wire {number} {toward:?}"), format!("{:?}", wire.toward(toward).get()));
        }
    }
    facts
}

/// The text without what changes by itself: timers of bridges, and addresses that they learned.
fn stable(shown: &str) -> String {
    let learned =
        |line: &&str| line.contains(" dev ") && line.contains("master br0") && !line.contains("permanent");
    let mut lines: Vec<&str> = shown.lines().filter(|line| !learned(line)).collect();
    // Neighbours that were written anew come in another order.
    lines.sort_unstable();
    let words: Vec<&str> =
        lines.iter().flat_map(|line| line.split_ascii_whitespace().chain(["\n"])).collect();
    let pairs = words.windows(2).filter(|pair| !pair[0].ends_with("_timer"));
    pairs.map(|pair| pair[1]).collect::<Vec<_>>().join(" ")
}

/// Waits until the facts are as they were: the watcher of the NICs takes a moment.
fn wait_for_facts(lab: &Lab, wanted: &BTreeMap<String, String>, fault: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = facts(lab);
        let differing = wanted.iter().find(|(key, value)| now.get(*key) != Some(value));
        let Some((key, value)) = differing else { return };
        assert!(Instant::now() < deadline, "{fault}: {key} was\n{value}\nand is\n{:?}", now.get(key));
    }
}

#[test]
fn a_healthy_cluster_carries_traffic_within_the_rate_of_its_uplinks() {
    with_lab("a_healthy_cluster_carries_traffic_within_the_rate_of_its_uplinks", "three", |lab| {
        let [(_, a), (to, b), _] = &lab.cluster.hosts[..] else { panic!("three hosts") };
        let rate = f64::from(lab.cluster.topology.uplink.rate_mbit);
        for address in [to.underlay(), to.overlay()] {
            // How exact the rate is shows with a clock of their own in the tests of the queue; a busy machine
            // makes it less here.
            let mbit = throughput(a, b, address);
            assert!((0.02 * rate..rate).contains(&mbit), "{address}: {mbit} of {rate} Mbit/s");
        }
    });
}

#[test]
fn every_fault_heals_to_the_last_bit() {
    with_lab("every_fault_heals_to_the_last_bit", "casebook-a", |lab| {
        let healthy = facts(lab);
        for fault in faults::ALL {
            if let Some(reason) = fault.unavailable() {
                println!("SKIPPED fault {}: {reason}", fault.about().name);
                continue;
            }
            let target = lab.inject(*fault, None, 7).unwrap().target.to_string();
            // These show in what happens, not in what is set.
            if !["cpu-starved", "host-link-flap", "other-traffic", "uplink-flapping"]
                .contains(&fault.about().name)
            {
                assert_ne!(facts(lab), healthy, "{} at {target} changed nothing", fault.about().name);
            }
            lab.heal().unwrap();
            wait_for_facts(lab, &healthy, fault.about().name);
        }
    });
}

/// Queues of all devices of the switch of node-2, and of node-2 itself, one line each.
fn queues_around_node_2(lab: &Lab) -> [Vec<String>; 2] {
    let (plan, host) = &lab.cluster.hosts[1];
    [&lab.cluster.hypervisors[plan.hypervisor], host].map(|namespace| {
        let shown = namespace.output("tc", &["qdisc", "show"]).unwrap();
        shown.lines().map(|line| line.trim().to_owned()).collect()
    })
}

/// Queues that were not there before, by kind and device.
fn new_queues(before: &[String], now: &[String]) -> Vec<(String, String)> {
    let new = now.iter().filter(|line| !before.contains(line)).map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let device = words.iter().position(|word| *word == "dev").map(|at| words[at + 1]);
        (words[1].to_owned(), device.unwrap_or_default().to_owned())
    });
    let mut new: Vec<(String, String)> = new.collect();
    new.sort();
    new
}

/// The speed of the other direction depends on the machine. So the test checks the limits themselves: each
/// where its direction passes, and, with that of the other one as a control, nothing anywhere else.
#[test]
fn a_limit_is_felt_in_its_direction_only() {
    with_lab("a_limit_is_felt_in_its_direction_only", "three", |lab| {
        let healthy = queues_around_node_2(lab);
        lab.inject(faults::find("rx-rate-cap").unwrap(), Some("node-2"), 1).unwrap();
        let towards = queues_around_node_2(lab);
        let [(_, a), (two, b), _] = &lab.cluster.hosts[..] else { panic!("three hosts") };
        let rate = f64::from(lab.cluster.topology.uplink.rate_mbit);
        let (switch, port) = (&lab.cluster.hypervisors[two.hypervisor], two.port());
        let volume = (BLOCKS * BLOCK_BYTES) as u64;
        let mbit = throughput(a, b, two.underlay());
        assert!(mbit < 0.52 * rate, "what node-2 receives is not limited: {mbit} of {rate} Mbit/s");
        let into = shaped_bytes(switch, &port);
        assert!(into >= volume, "{into} of {volume} bytes towards node-2 passed the limit");
        let tbf = |device: &str| ("tbf".to_owned(), device.to_owned());
        assert_eq!(new_queues(&healthy[0], &towards[0]), [tbf(&port)]);
        assert_eq!(new_queues(&healthy[1], &towards[1]), [], "node-2 limits itself");
        // What node-2 sends comes in at the port, where the queue of the port is not asked.
        let fault = faults::find("tx-rate-cap").unwrap();
        if let Some(reason) = fault.unavailable() {
            println!("SKIPPED fault tx-rate-cap: {reason}");
            return;
        }
        lab.inject(fault, Some("node-2"), 1).unwrap();
        let both = queues_around_node_2(lab);
        assert_eq!(new_queues(&towards[0], &both[0]), [("ingress".to_owned(), port), tbf("ifb0")]);
        assert_eq!(new_queues(&towards[1], &both[1]), [], "node-2 limits itself");
        let [(one, a), (two, b), _] = &lab.cluster.hosts[..] else { panic!("three hosts") };
        throughput(b, a, one.underlay());
        let back = shaped_bytes(&lab.cluster.hypervisors[two.hypervisor], "ifb0");
        assert!(back >= volume, "{back} of {volume} bytes from node-2 passed the limit");
    });
}

/// A lab of its own process, with its folder.
fn start() -> (Child, PathBuf) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_linerate-lab"))
        .args(["up", "--lab", "three"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = std::env::temp_dir().join(format!("linerate-lab-{}", child.id()));
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let ready = stdout.lines().map_while(Result::ok).any(|line| line == "ready");
    assert!(ready, "the lab did not start");
    (child, folder)
}

/// The network namespaces that a process holds open, as the kernel names them.
fn namespaces_of(process: &Path) -> Vec<PathBuf> {
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links = open.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("net:[")).collect()
}

/// Whether any process is in one of the namespaces or holds one open.
fn in_use(namespaces: &[PathBuf]) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let inside = std::fs::read_link(process.path().join("ns/net")).ok();
        inside.into_iter().chain(namespaces_of(&process.path())).any(|n| namespaces.contains(&n))
    })
}

fn skip_without_rights(test: &str) -> bool {
    if sandbox::is_root() {
        return false;
    }
    // The program itself enters a user namespace; whether it may is up to the system.
    let allowed = Command::new("unshare").args(["-Urn", "true"]).status().is_ok_and(|s| s.success());
    if !allowed {
        println!("SKIPPED {test}: neither root nor user namespaces");
    }
    !allowed
}

#[test]
fn a_killed_lab_leaves_nothing_and_the_next_one_sweeps_up() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if skip_without_rights("a_killed_lab_leaves_nothing_and_the_next_one_sweeps_up") {
        return;
    }
    let (mut child, folder) = start();
    let namespaces = namespaces_of(Path::new(&format!("/proc/{}", child.id())));
    assert!(namespaces.len() >= 7 && in_use(&namespaces), "3 hosts, 3 hypervisors, a core");
    child.kill().unwrap();
    child.wait().unwrap();
    linerate_testkit::wait_until("namespaces and devices of a killed lab go with it", || {
        !in_use(&namespaces)
    });
    // Only the folder is left, unless a lab of another process has removed it already. Make it older than the
    // grace for labs that are just starting.
    if let Ok(left) = std::fs::File::open(&folder) {
        let old = std::time::SystemTime::now() - Duration::from_secs(600);
        left.set_modified(old).unwrap();
    }
    let (mut next, next_folder) = start();
    assert!(!folder.exists(), "the next lab removes the folder of the killed one");
    let down = Command::new(env!("CARGO_BIN_EXE_linerate-lab"))
        .args(["down", "--folder"])
        .arg(&next_folder)
        .status()
        .unwrap();
    assert!(down.success());
    assert!(next.wait().unwrap().success());
    assert!(!next_folder.exists(), "a lab that ends removes its own folder");
}

/// Ends a lab in the background, also where the test fails.
struct Background(PathBuf);

impl Background {
    fn down(&self) -> bool {
        let mut down = Command::new(env!("CARGO_BIN_EXE_linerate-lab"));
        down.args(["down", "--folder"]).arg(&self.0).status().unwrap().success()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.0.exists() {
            self.down();
        }
    }
}

/// A lock or a pipe of its caller is free again once the command has returned.
#[test]
fn a_background_lab_holds_nothing_of_its_caller() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if skip_without_rights("a_background_lab_holds_nothing_of_its_caller") {
        return;
    }
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    // Descriptor 9 is the socket, as a wrapper with a lock would have it.
    let status = Command::new("sh")
        .args(["-c", "exec 9>&1; exec \"$0\" up --lab two --background"])
        .arg(env!("CARGO_BIN_EXE_linerate-lab"))
        .stdout(std::os::fd::OwnedFd::from(theirs))
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    ours.set_nonblocking(true).unwrap();
    let mut printed = String::new();
    // All that is left comes at once; an open other end would be an error instead of the end.
    let end = ours.read_to_string(&mut printed);
    // The inventory stands in the folder of the lab.
    let inventory = printed.lines().find_map(|line| line.strip_prefix("inventory: "));
    let folder = inventory.and_then(|path| Path::new(path).parent()).map(Path::to_owned);
    let lab = Background(folder.unwrap_or_else(|| panic!("no folder in {printed:?}")));
    assert!(lab.0.is_dir(), "{printed}");
    assert!(end.is_ok(), "the lab holds descriptor 9 of its caller: {end:?}");
    assert!(lab.down());
    linerate_testkit::wait_until("the folder of the lab goes with it", || !lab.0.exists());
}

#[test]
fn a_running_lab_breaks_heals_and_ends_on_a_signal() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if skip_without_rights("a_running_lab_breaks_heals_and_ends_on_a_signal") {
        return;
    }
    let (mut child, folder) = start();
    let ask = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate-lab"))
            .args(arguments)
            .arg("--folder")
            .arg(&folder)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(ask(&["break", "loss-rx", "--at", "node-2"]).0, Some(0));
    assert!(ask(&["status"]).1.contains("broken: loss-rx at node-2"));
    let (code, printed) = ask(&["break", "loss-rx", "--at", "node-9"]);
    assert_eq!(code, Some(2), "{printed}");
    let (code, printed) = ask(&["break", "nonsense"]);
    assert!(
        code == Some(2) && printed.contains("`linerate-lab faults`"),
        "the hint names the list: {printed}"
    );
    assert_eq!(ask(&["heal"]).0, Some(0));
    assert!(ask(&["status"]).1.contains("nothing is broken"));
    linerate_sys::spawn::terminate(&child, false).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folder.exists());
}
