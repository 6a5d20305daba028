//! Places inside hosts, for real: two hosts as network namespaces, a process in a namespace of its own inside
//! of each, and a network between those two. Needs root or user namespaces, `ip`, `unshare`, `nsenter` and a
//! built `linerate-node`; what is missing is printed as a skip with its reason.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

use linerate_testkit::{self as testkit, Holder, TestEnvironment, TestPrograms, run};

/// Runs the test of this name again inside fresh network and mount namespaces. Gives `true` in the process
/// inside.
fn inside(name: &str) -> bool {
    testkit::are_built(name) && testkit::inside(name, TestEnvironment::Mounts)
}

/// Joins two namespaces by a pair of devices called `eth0`, with an address each and at most 300 Mbit/s.
fn join(a: &Holder, b: &Holder, addresses: [&str; 2]) {
    run("ip", &["link", "add", "left", "type", "veth", "peer", "name", "right"]);
    for (end, holder, address) in [("left", a, addresses[0]), ("right", b, addresses[1])] {
        run("ip", &["link", "set", end, "netns", &holder.pid()]);
        holder.run(&["ip", "link", "set", end, "name", "eth0"]);
        holder.run(&["ip", "addr", "add", address, "dev", "eth0"]);
        holder.run(&["ip", "link", "set", "eth0", "up"]);
        holder.run(&["ip", "link", "set", "lo", "up"]);
        let shaper = "tc qdisc add dev eth0 root tbf rate 300mbit burst 64k latency 20ms";
        holder.run(&shaper.split(' ').collect::<Vec<_>>());
    }
}

fn linerate(folder: &Path, arguments: &[&str]) -> Output {
    let programs = TestPrograms::built();
    Command::new(programs.linerate)
        .args(arguments)
        .current_dir(folder)
        .env("LINERATE_DATA", folder)
        .env("LINERATE_NODE", programs.node)
        .output()
        .unwrap()
}

/// Two hosts with a network between them, and a process inside of each with one between those two.
struct Site {
    folder: tempfile::TempDir,
    hosts: [Holder; 2],
    inner: [Holder; 2],
}

impl Site {
    fn new() -> Self {
        let (hosts, inner) = ([Holder::new(), Holder::new()], [Holder::new(), Holder::new()]);
        join(&hosts[0], &hosts[1], ["10.99.0.1/24", "10.99.0.2/24"]);
        join(&inner[0], &inner[1], ["10.88.0.1/24", "10.88.0.2/24"]);
        let site = Self { folder: tempfile::tempdir().unwrap(), hosts, inner };
        site.write("plain.toml", |_| String::new());
        // The same with the places written down.
        site.write("both.toml", |number| {
            format!(
                "[[host.endpoint]]\naddress = \"10.88.0.{}\"\nlayer = \"overlay\"\nnetns = \"pid:{}\"\n",
                number + 1,
                site.inner[number].pid()
            )
        });
        site
    }

    /// Writes an inventory, with something more for each host.
    fn write(&self, name: &str, more: impl Fn(usize) -> String) {
        let state = self.folder.path().display();
        let host = |(number, host): (usize, &Holder)| {
            format!(
                "[[host]]\nname = \"h{number}\"\nnetns = \"pid:{}\"\nstate_dir = \"{state}/s{number}\"\n\
                 etc_dir = \"{state}/e{number}\"\n[[host.endpoint]]\naddress = \"10.99.0.{}\"\n{}",
                host.pid(),
                number + 1,
                more(number)
            )
        };
        let text: Vec<String> = self.hosts.iter().enumerate().map(host).collect();
        std::fs::write(self.folder.path().join(name), text.concat()).unwrap();
    }

    fn place(&self, number: usize) -> String {
        format!("h{number}!pid:{}", self.inner[number].pid())
    }

    /// What a command prints to each stream.
    fn run(&self, arguments: &[&str]) -> [String; 2] {
        let output = linerate(self.folder.path(), arguments);
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

#[test]
fn a_process_inside_a_host_is_an_end_by_the_command_line_alone() {
    if !inside("a_process_inside_a_host_is_an_end_by_the_command_line_alone") {
        return;
    }
    let site = Site::new();
    let (from, to) = (site.place(0), site.place(1));
    let [shown, errors] = site.run(&["facts", "-i", "plain.toml", &from, "nic.eth0.addresses"]);
    assert!(shown.contains("10.88.0.1/24") && !shown.contains("10.99.0.1"), "{shown} {errors}");

    let transfer = ["measure", "-i", "plain.toml", &from, &to, "--time", "2s", "--no-calibration", "--json"];
    let [shown, errors] = site.run(&transfer);
    let json: serde_json::Value =
        serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{e}: {shown} {errors}"));
    let sample = &json["samples"][0];
    assert_eq!(sample["test"]["layer"], "overlay");
    assert!(sample["outcome"]["measured"]["throughput_bps"].as_f64() > Some(0.0), "{sample}");

    // What is not there is named with its host, and with what is there instead.
    let [shown, errors] = site.run(&["facts", "-i", "plain.toml", "h1!container:web", "nic."]);
    assert!(
        errors.contains("container:web") && errors.contains("no container is called `web`"),
        "{shown} {errors}"
    );
    let [_, errors] =
        site.run(&["measure", "-i", "plain.toml", &from, "h1!pid:4294967294", "--time", "500ms"]);
    assert!(errors.contains("host h1") && errors.contains("no process has the id 4294967294"), "{errors}");
}

#[test]
fn both_layers_are_measured_in_one_survey() {
    if !inside("both_layers_are_measured_in_one_survey") {
        return;
    }
    let site = Site::new();
    let order = ["survey", "-i", "both.toml", "--quiet", "--snapshot", "s.json", "--json"];
    let [_, errors] = site.run(&order);
    let snapshot =
        std::fs::read(site.folder.path().join("s.json")).unwrap_or_else(|e| panic!("{e}: {errors}"));
    let snapshot: serde_json::Value = serde_json::from_slice(&snapshot).unwrap();
    let samples = snapshot["samples"].as_array().unwrap();
    for layer in ["underlay", "overlay"] {
        let transferred = |sample: &serde_json::Value| {
            let (test, measured) = (&sample["test"], sample["outcome"].get("measured").is_some());
            measured && test["layer"] == layer && test["kind"].get("tcp").is_some()
        };
        assert!(samples.iter().any(transferred), "no transfer in the {layer}: {samples:#?}");
    }
    let facts = snapshot["facts"]["h0"]["readings"].as_object().unwrap();
    let key = format!("netns.pid:{}|nic.eth0.addresses", site.inner[0].pid());
    assert!(
        facts.contains_key(&key),
        "{:?}",
        facts.keys().filter(|k| k.contains("eth0")).collect::<Vec<_>>()
    );
}

#[test]
fn groups_that_can_be_seen_are_added() {
    if !inside("groups_that_can_be_seen_are_added") {
        return;
    }
    let site = Site::new();
    // A third host beside the two, so that their subnet is not everybody's. It has no cable: nothing to
    // listen on.
    let path = site.folder.path().join("plain.toml");
    let third = Holder::new();
    let text = std::fs::read_to_string(&path).unwrap();
    let more = format!("[[host]]\nname = \"h2\"\nnetns = \"pid:{}\"\n", third.pid());
    std::fs::write(&path, text + &more).unwrap();
    for host in &site.hosts {
        // Down for the listener, up again would be another test: the addresses stay.
        host.run(&["ip", "link", "set", "eth0", "down"]);
    }
    let [shown, errors] = site.run(&["inventory", "plain.toml", "--probe", "--toml"]);
    assert!(shown.contains("name = \"net-10.99.0.0-24\"\nkind = \"subnet\""), "{shown} {errors}");
    assert_eq!(shown.matches("groups = [\"net-10.99.0.0-24\"]").count(), 2, "{shown}");
    assert!(shown.contains("# note: h0 in subnet net-10.99.0.0-24: 10.99.0.1 on eth0"), "{shown}");
    std::fs::write(site.folder.path().join("again.toml"), &shown).unwrap();
    let [again, errors] = site.run(&["inventory", "again.toml"]);
    assert!(again.contains("3 hosts, 1 group;"), "{again} {errors}");
}
