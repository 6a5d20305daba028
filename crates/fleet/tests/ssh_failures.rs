//! What goes wrong with hosts behind real OpenSSH servers: what the user reads, and that nothing stays
//! behind.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod sshd;

use std::process::Command;

use sshd::{Lab, Spec, gaps, inside, outcomes, ran, run, text, wait_until};

const CACHE: &str = "/root/.cache/linerate";

/// `linerate facts` of a host that cannot answer: what is said.
fn refused(lab: &Lab, host: &str) -> String {
    let output = lab.output(&["facts", "--", host, "kernel.release"]);
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    lab.nothing_is_left();
    shown
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn keys_that_are_not_known_or_not_accepted() {
    if !inside("keys_that_are_not_known_or_not_accepted") {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    let known = std::fs::read_to_string(lab.path("known_hosts")).unwrap();
    std::fs::write(lab.path("known_hosts"), "").unwrap();
    let shown = refused(&lab, "h1");
    assert!(
        shown.contains("Host key verification failed") && shown.contains("log in once by hand"),
        "{shown}"
    );
    assert_eq!(std::fs::read_to_string(lab.path("known_hosts")).unwrap(), "", "no key is taken silently");
    run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &lab.path("other").display().to_string()]);
    let other = std::fs::read_to_string(lab.path("other.pub")).unwrap();
    std::fs::write(lab.path("known_hosts"), format!("h1 {other}")).unwrap();
    let shown = refused(&lab, "h1");
    assert!(shown.contains("its host key is not the known one") && shown.contains("-R h1`"), "{shown}");
    // The command runs as it is printed, and does what it should.
    let command = shown.split('`').find(|part| part.starts_with("ssh-keygen")).unwrap();
    run("sh", &["-c", command]);
    assert!(!std::fs::read_to_string(lab.path("known_hosts")).unwrap().contains("h1 "), "{command}");
    std::fs::write(lab.path("known_hosts"), known).unwrap();
    std::fs::write(lab.path("authorized"), other).unwrap();
    let shown = refused(&lab, "h1");
    assert!(shown.contains("Permission denied") && shown.contains("ssh-add"), "{shown}");
    let shown = refused(&lab, "-oProxyCommand=true");
    assert!(shown.contains("ssh host `-oProxyCommand=true` is not allowed"), "{shown}");
}

#[test]
fn a_shell_with_a_banner_is_passed_over_and_a_flood_is_not() {
    if !inside("a_shell_with_a_banner_is_passed_over_and_a_flood_is_not") {
        return;
    }
    let banner = "echo 'Welcome to  h1'; printf 'no line break'; echo complaint >&2\n";
    let flood = "yes | head -c 1000000\n";
    let lab = Lab::new(&[
        Spec { bashrc: Some(banner), ..Spec::default() },
        Spec { bashrc: Some(flood), ..Spec::default() },
    ]);
    let facts = lab.output(&["facts", "h1", "kernel.release"]);
    assert!(text(&facts.stdout).starts_with("kernel.release = "), "{}", text(&facts.stderr));
    assert!(!text(&facts.stderr).contains("complaint"), "{}", text(&facts.stderr));
    let shown = refused(&lab, "h2");
    assert!(shown.contains("its shell printed more than 65536 bytes"), "{shown}");
}

#[test]
fn machines_without_a_program_and_programs_that_do_not_run() {
    if !inside("machines_without_a_program_and_programs_that_do_not_run") {
        return;
    }
    let machine = |name| Spec { machine: Some(name), ..Spec::default() };
    let lab = Lab::new(&[machine("aarch64"), machine("riscv64")]);
    let shown = refused(&lab, "h1");
    assert!(shown.contains("there is no node program for aarch64"), "{shown}");
    assert!(
        shown.contains("cargo xtask node --arch aarch64") && shown.contains("LINERATE_NODE_DIR"),
        "{shown}"
    );
    assert!(refused(&lab, "h2").contains("its machine is riscv64"));
    // The head of an ELF file for aarch64: a good program for what the host says, a bad one for what it is.
    let mut elf = vec![0_u8; 4096];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    elf[18] = 183;
    std::fs::write(lab.path("linerate-node-aarch64"), elf).unwrap();
    let output = lab
        .command(&["facts", "h1", "kernel.release"])
        .env("LINERATE_NODE_DIR", lab.folder.path())
        .output()
        .unwrap();
    let shown = text(&output.stderr);
    assert!(shown.contains("the node program does not run there (exit status: "), "{shown}");
    assert!(!lab.inside_host(1, CACHE).exists() || lab.names(1, CACHE).is_empty(), "nothing is installed");
    // A program of the wrong machine beside us is noticed before anything is copied.
    std::fs::copy(lab.path("linerate-node-aarch64"), lab.path("wrong")).unwrap();
    lab.edit("h1/bin/uname", "aarch64", "x86_64");
    let output = lab
        .command(&["facts", "h1", "kernel.release"])
        .env("LINERATE_NODE", lab.path("wrong"))
        .output()
        .unwrap();
    let shown = text(&output.stderr);
    assert!(shown.contains("is no program for x86_64"), "{shown}");
}

#[test]
fn a_full_disk_on_a_host_is_said_and_leaves_nothing() {
    if !inside("a_full_disk_on_a_host_is_said_and_leaves_nothing") {
        return;
    }
    let lab = Lab::new(&[Spec { home_kib: 512, shared_kib: 512, ..Spec::default() }]);
    let shown = refused(&lab, "h1");
    assert!(
        shown.contains("cannot store the node program") && shown.contains("No space left on device"),
        "{shown}"
    );
    for folder in [CACHE, "/run/user/0/linerate: ", "/dev/shm/linerate-0: ", "/var/tmp/linerate-0: "] {
        assert!(shown.contains(folder), "{folder}: {shown}");
    }
    assert!(shown.contains("`ssh h1 df -h` shows the room; `cache_dir`"), "{shown}");
    assert_eq!(lab.names(1, CACHE), Vec::<String>::new());
    let survey = lab.output(&["survey", "h1", "--disks", "-q"]);
    assert_eq!(survey.status.code(), Some(2));
    assert!(text(&survey.stderr).contains("no host answered: host h1: over ssh: cannot store"));
}

#[test]
fn a_home_that_will_not_do_is_named_and_the_next_folder_taken() {
    const NAME: &str = "a_home_that_will_not_do_is_named_and_the_next_folder_taken";
    if !inside(NAME) {
        return;
    }
    let spec = |home_kib, home| Spec { home_kib, home, ..Spec::default() };
    let lab = Lab::new(&[spec(512, "rw"), spec(1 << 20, "noexec"), spec(1 << 20, "ro")]);
    let homes = [
        ("h1", "No space left on device"),
        ("h2", "/root is mounted noexec"),
        ("o3", "Read-only file system"),
    ];
    for (number, (host, why)) in (1..).zip(homes) {
        let first = lab.output(&["facts", host, "kernel.release"]);
        let shown = text(&first.stderr);
        assert_eq!(first.status.code().map(|code| code % 3), Some(0), "{shown}");
        let uid = if host == "o3" { 61_234 } else { 0 };
        let folder = format!("/dev/shm/linerate-{uid}");
        assert!(shown.contains(&format!("host {host}: the node program is stored in {folder}: ")), "{shown}");
        assert!(shown.contains(why), "{shown}");
        // The next time it is found there, and nothing is said about it.
        let second = text(&lab.output(&["facts", host, "kernel.release"]).stderr);
        assert!(!second.contains("copied") && !second.contains("is stored in"), "{second}");
        lab.nothing_is_left();
        let cleaned = text(&lab.output(&["clean", host]).stdout);
        assert!(cleaned.contains(&format!("{host}: removed {folder}\n")), "{cleaned}");
        assert!(!lab.inside_host(number, &folder).exists());
    }
    // The inventory names one, which is then the only one.
    let file = |folder: &str| {
        let file = format!("[[host]]\nname = \"h1\"\ntransport = \"ssh\"\ncache_dir = \"{folder}\"\n");
        std::fs::write(lab.path("one.toml"), file).unwrap();
    };
    file("/var/tmp/of ops");
    let facts = lab.output(&["facts", "-i", "one.toml", "h1", "kernel.release"]);
    assert_eq!(facts.status.code(), Some(0), "{}", text(&facts.stderr));
    assert_eq!(lab.names(1, "/var/tmp/of ops/linerate-0").len(), 1);
    let cleaned = lab.output(&["clean", "-i", "one.toml"]);
    assert!(text(&cleaned.stdout).contains("h1: removed /var/tmp/of ops/linerate-0\n"));
    std::fs::remove_dir(lab.inside_host(1, "/var/tmp/of ops")).unwrap();
    file("/root/cache");
    let shown = text(&lab.output(&["facts", "-i", "one.toml", "h1", "kernel.release"]).stderr);
    assert!(shown.contains("/root/cache/linerate-0: ") && !shown.contains("/dev/shm"), "{shown}");
    std::fs::remove_dir_all(lab.inside_host(1, "/root/cache")).unwrap();
    lab.nothing_is_left();
}

#[test]
fn a_silent_port_and_hosts_out_of_reach_are_what_is_said_first() {
    const NAME: &str = "a_silent_port_and_hosts_out_of_reach_are_what_is_said_first";
    if !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    // It takes connections, which the kernel does for it, and says nothing.
    let silent = std::net::TcpListener::bind("10.99.0.254:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let reach = "HostName 10.99.0.254\nUser root\n";
    lab.append("config", &format!("Host silent\n{reach}Port {port}\nHost closed shut\n{reach}Port 9\n"));
    let shown = refused(&lab, "silent");
    assert!(shown.contains("takes TCP connections") && !shown.contains("the host is off"), "{shown}");
    for test in ["measure", "latency", "udp", "mtu", "connects"] {
        let output = lab.output(&[test, "closed", "shut", "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let reason = json["samples"][0]["outcome"]["gap"]["reason"].as_str().unwrap();
        let start = "host closed cannot be reached: over ssh: ";
        assert!(reason.starts_with(start) && reason.contains("Connection refused"), "{test}: {reason}");
        assert!(reason.contains("host shut cannot be reached: over ssh: "), "{test}: {reason}");
        assert_eq!(output.status.code(), Some(2), "{test}: {reason}");
    }
    let output = lab.output(&["measure", "closed", "h1"]);
    let (page, shown) = (text(&output.stdout), text(&output.stderr));
    assert!(page.starts_with("closed to h1: host closed cannot be reached: over ssh: "), "{page}");
    assert!(!page.contains("endpoint") && shown.contains("connecting: 1 of 2 hosts"), "{page}{shown}");
    lab.nothing_is_left();
}

/// A survey of three hosts in the middle of which something happens to h2; gives what was said.
fn contended(lab: &Lab, what: impl FnOnce(&Lab, u32)) -> String {
    // Without a budget: what is planned is measured, however long the host was away.
    let arguments = ["survey", "h1", "h2", "h3", "--json", "--snapshot", "s.json"];
    let (mut survey, shown) = lab.surveying(&arguments);
    what(lab, survey.id());
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut survey.stdout.take().unwrap(), &mut stdout).unwrap();
    let code = survey.wait().unwrap().code();
    let shown = shown.join().unwrap();
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {shown}");
    shown
}

/// One gap says that h2 was lost and is there again, and it was measured later.
fn was_taken_up(lab: &Lab, shown: &str, why: &str) {
    let snapshot = lab.snapshot();
    let gaps = gaps(&snapshot);
    assert_eq!(gaps.len(), 1, "{gaps:?}\n{shown}");
    assert!(gaps[0].starts_with("session with h2: it was lost and taken up again: "), "{gaps:?}");
    assert!(gaps[0].contains(why), "{gaps:?}");
    println!("{}", gaps[0]);
    for (from, to) in [("h1", "h2"), ("h2", "h1"), ("h3", "h2"), ("h2", "h3"), ("h1", "h3")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}\n{shown}");
        assert_eq!(outcomes(&snapshot, from, to, "gap"), 0, "{from} to {to}\n{shown}");
    }
    lab.nothing_is_left();
}

#[test]
fn a_node_killed_in_mid_survey_is_taken_up_again() {
    if !inside("a_node_killed_in_mid_survey_is_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let shown = contended(&lab, |lab, _| lab.nodes(2).into_iter().for_each(|pid| kill("-9", pid)));
    was_taken_up(&lab, &shown, "it closed the stream");
}

#[test]
fn a_session_cut_in_mid_survey_is_taken_up_again() {
    if !inside("a_session_cut_in_mid_survey_is_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let shown = contended(&lab, |lab, survey| {
        // Whoever cleans up there meanwhile is no harm either: the program is copied again.
        std::fs::remove_dir_all(lab.inside_host(2, CACHE)).unwrap();
        let line = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let children = linerate_testkit::children(survey).into_iter();
        let ssh: Vec<u32> = children.filter(|pid| line(*pid).split('\0').any(|word| word == "h2")).collect();
        assert_eq!(ssh.len(), 1, "one session per host");
        kill("-9", ssh[0]);
    });
    was_taken_up(&lab, &shown, "signal: 9");
}

#[test]
fn a_frozen_node_is_ended_and_taken_up_again() {
    if !inside("a_frozen_node_is_ended_and_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let mut frozen = Vec::new();
    let shown = contended(&lab, |lab, _| {
        frozen = lab.nodes(2);
        for pid in &frozen {
            kill("-STOP", *pid);
        }
    });
    assert!(!frozen.is_empty());
    was_taken_up(&lab, &shown, "no data for 4000 ms");
}

#[test]
fn a_host_whose_sshd_is_gone_is_a_gap_and_the_survey_goes_on() {
    if !inside("a_host_whose_sshd_is_gone_is_a_gap_and_the_survey_goes_on") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let shown = contended(&lab, |lab, _| {
        lab.arrange(2, &["ip", "link", "set", "eth0", "down"]);
    });
    let gaps = gaps(&lab.snapshot());
    assert_eq!(gaps.len(), 1, "{gaps:?}\n{shown}");
    assert!(gaps[0].contains("it could not be taken up again: over ssh: "), "{gaps:?}");
    assert!(ran(&lab.snapshot(), "h1", "h3") > 1, "{shown}");
    // Cut off, the node program ends by itself.
    wait_until("the node program is gone", || lab.nodes(2).is_empty());
    lab.nothing_is_left();
}

#[test]
fn a_killed_operator_leaves_nothing_on_the_hosts() {
    if !inside("a_killed_operator_leaves_nothing_on_the_hosts") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default()]);
    let (mut survey, shown) = lab.surveying(&["survey", "h1", "h2", "--time", "60s"]);
    assert!(!lab.nodes(1).is_empty());
    survey.kill().unwrap();
    survey.wait().unwrap();
    drop(shown.join());
    lab.nothing_is_left();
    let runs = text(&lab.output(&["runs"]).stdout);
    assert!(runs.contains("did not come to its end"), "{runs}");
    let (mut survey, shown) = lab.surveying(&["survey", "h1", "h2", "--time", "60s"]);
    kill("-INT", survey.id());
    assert_eq!(survey.wait().unwrap().code(), Some(130));
    assert!(shown.join().unwrap().contains("everything was cleaned up"));
    lab.nothing_is_left();
}

#[test]
fn a_port_blocked_between_two_hosts_only_is_named() {
    const NAME: &str = "a_port_blocked_between_two_hosts_only_is_named";
    if !linerate_testkit::has(NAME, "nft", "nftables") || !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let rules = "table inet t { chain c { type filter hook input priority 0; ip saddr 10.99.0.2 drop; }; }";
    lab.arrange(1, &["nft", rules]);
    let done = lab.output(&["survey", "h1", "h2", "h3", "--json", "-q", "--snapshot", "s.json"]);
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
    assert_eq!(outcomes(&snapshot, "h2", "h1", "measured"), 0);
    assert!(outcomes(&snapshot, "h2", "h1", "nothing-through") > 0, "{}", text(&done.stderr));
    assert!(ran(&snapshot, "h1", "h3") > 1 && ran(&snapshot, "h3", "h2") > 1);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let headline = json["diagnosis"]["headline"].as_str().unwrap();
    println!("{headline}");
    assert_eq!(json["diagnosis"]["findings"][0]["causes"][0]["id"], "path-blocked", "{json}");
    assert!(headline.contains("h1") && headline.contains("h2") && !headline.contains("h3"), "{headline}");
    lab.nothing_is_left();
}

/// A survey that finds the shaper of h3, for a trial.
fn found_a_shaper(lab: &Lab) {
    let shaper = "tc qdisc add dev eth0 root tbf rate 30mbit burst 32k latency 30ms";
    lab.arrange(3, &shaper.split(' ').collect::<Vec<_>>());
    let survey = ["survey", "h1", "h2", "h3", "--json", "-q"];
    let found = text(&lab.output(&survey).stdout);
    let json: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(json["diagnosis"]["findings"][0]["causes"][0]["id"], "forgotten-shaper", "{json}");
}

#[test]
fn a_change_is_not_made_where_its_old_value_cannot_be_written_down() {
    if !inside("a_change_is_not_made_where_its_old_value_cannot_be_written_down") {
        return;
    }
    let full = Spec { state_kib: 64, ..Spec::default() };
    let lab = Lab::new(&[Spec::default(), Spec::default(), full]);
    found_a_shaper(&lab);
    let filler = lab.inside_host(3, "/var/lib/linerate/filler");
    assert!(std::fs::write(&filler, vec![0; 1 << 20]).is_err(), "the disk is full");
    let tried = lab.output(&["try", "forgotten-shaper", "--on", "h3", "-q"]);
    let shown = text(&tried.stdout) + &text(&tried.stderr);
    println!("{shown}");
    assert!(shown.contains("No space left on device") && shown.contains("/var/lib/linerate"), "{shown}");
    assert!(shown.contains("h3") && shown.contains("Nothing was left changed"), "{shown}");
    assert_ne!(tried.status.code(), Some(0), "{shown}");
    std::fs::remove_file(filler).unwrap();
    lab.nothing_is_left();
}

#[test]
fn a_full_disk_of_the_operator_is_said_and_changes_nothing() {
    if !inside("a_full_disk_of_the_operator_is_said_and_changes_nothing") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let small = |kib: u32| {
        let folder = lab.path(&format!("store-{kib}"));
        std::fs::create_dir(&folder).unwrap();
        let options = format!("size={kib}k,mode=0700");
        run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", &folder.display().to_string()]);
        folder
    };
    // Too small for the tables, and too small for what is measured.
    for (kib, hosts) in [(16, "h1 h2"), (300, "h1 h2 h3")] {
        let store = small(kib);
        let mut arguments = vec!["survey"];
        arguments.extend(hosts.split(' '));
        arguments.push("-q");
        let survey = lab.command(&arguments).env("LINERATE_DATA", &store).output().unwrap();
        let shown = text(&survey.stderr);
        println!("{kib} KiB: {shown}");
        assert_eq!(survey.status.code(), Some(2), "{shown}");
        assert!(shown.contains("error: database: "), "{shown}");
        assert!(shown.contains(&format!("hint: make room in {}", store.display())), "{shown}");
        lab.nothing_is_left();
    }
    // A trial that cannot be recorded is not begun.
    found_a_shaper(&lab);
    let store = small(8 << 10);
    std::fs::copy(lab.path("linerate.sqlite"), store.join("linerate.sqlite")).unwrap();
    assert!(std::fs::write(store.join("filler"), vec![0; 16 << 20]).is_err(), "the disk is full");
    let tried =
        lab.command(&["try", "forgotten-shaper", "-q"]).env("LINERATE_DATA", &store).output().unwrap();
    let shown = text(&tried.stderr);
    println!("try: {shown}");
    assert_eq!(tried.status.code(), Some(2), "{shown}");
    assert!(shown.contains("error: database: ") && shown.contains("hint: make room in"), "{shown}");
    lab.nothing_is_left();
}

#[test]
fn a_clock_that_is_an_hour_ahead_is_said_and_spoils_nothing() {
    const NAME: &str = "a_clock_that_is_an_hour_ahead_is_said_and_spoils_nothing";
    let library = format!("/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1", std::env::consts::ARCH);
    if !std::path::Path::new(&library).exists() {
        println!("SKIPPED {NAME}: no {library} here (install the package faketime)");
        return;
    }
    // The kernel has one time of day for all namespaces, so the clock is turned between the C library and
    // every program of the session: the shell, its tools, the node.
    let mut search = Command::new("grep");
    if !search.args(["-aqm1", "/ld-linux-"]).arg(sshd::programs().node).status().unwrap().success() {
        println!("SKIPPED {NAME}: the node program is a static one, whose clock cannot be turned");
        return;
    }
    if !inside(NAME) {
        return;
    }
    let ahead = format!("LD_PRELOAD={library} FAKETIME=+3600s FAKETIME_DONT_FAKE_MONOTONIC=1");
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec { environment: ahead, ..Spec::default() }]);
    let seconds = |text: &str| text.trim().parse::<i64>().unwrap();
    let there = run(&lab.path("ssh").display().to_string(), &["h3", "date", "+%s"]);
    assert!((3_500..3_700).contains(&(seconds(&there) - seconds(&run("date", &["+%s"])))), "{there}");
    let survey = ["survey", "h1", "h2", "h3", "--json", "-q", "--snapshot", "s.json"];
    let shown = text(&lab.output(&survey).stderr);
    assert!(shown.contains("host h3: the clock is 1 h 0 min ahead of this machine's"), "{shown}");
    assert!(!shown.contains("host h1: the clock") && !shown.contains("host h2: the clock"), "{shown}");
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
    for (from, to) in [("h1", "h3"), ("h3", "h1"), ("h3", "h2"), ("h2", "h3")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}");
    }
    lab.nothing_is_left();
    // The deadline of a change is a span of time, wherever the clock stands.
    found_a_shaper(&lab);
    let tried = lab.output(&["try", "forgotten-shaper", "--on", "h3", "--json", "-q"]);
    let trial: serde_json::Value =
        serde_json::from_slice(&tried.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&tried.stderr)));
    assert_eq!(trial["trial"]["status"], "measured", "{trial}");
    lab.nothing_is_left();
}

#[test]
fn a_node_program_of_another_build_is_named_and_a_missing_one_too() {
    if !inside("a_node_program_of_another_build_is_named_and_a_missing_one_too") {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    // The same program with another mark of the same length.
    let own = sshd::programs().node;
    let other = "~".repeat(linerate_wire::BUILD.len());
    let mut bytes = std::fs::read(&own).unwrap();
    for line in run("grep", &["-abo", linerate_wire::BUILD, &own.display().to_string()]).lines() {
        let at: usize = line.split_once(':').unwrap().0.parse().unwrap();
        bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
    }
    let node = lab.path("other-node");
    std::fs::write(&node, bytes).unwrap();
    let facts = lab.command(&["facts", "h1", "kernel.release"]).env("LINERATE_NODE", &node).output().unwrap();
    let shown = text(&facts.stderr);
    assert!(text(&facts.stdout).starts_with("kernel.release = "), "{shown}");
    let expected = format!(
        "host h1: the node program is of the build {other}, this program of {}",
        linerate_wire::BUILD
    );
    assert!(shown.contains(&expected), "{shown}");
    let own = lab.output(&["facts", "h1", "kernel.release"]);
    assert!(!text(&own.stderr).contains("of the build"), "{}", text(&own.stderr));
    lab.nothing_is_left();
    // Alone in a folder, the operator copies itself. A program that was named and is not there is missed.
    let alone = lab.path("alone");
    std::fs::create_dir(&alone).unwrap();
    std::fs::copy(sshd::programs().linerate, alone.join("linerate")).unwrap();
    let mut command = Command::new(alone.join("linerate"));
    let ordinary = lab.command(&[]);
    command.args(["facts", "h1", "kernel.release"]);
    command
        .envs(ordinary.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env_remove("LINERATE_NODE");
    let output = command.output().unwrap();
    assert!(text(&output.stdout).starts_with("kernel.release = "), "{}", text(&output.stderr));
    lab.nothing_is_left();
    let output = command.env("LINERATE_NODE", alone.join("none")).output().unwrap();
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains(&format!("there is no node program for {}", std::env::consts::ARCH)), "{shown}");
    assert!(shown.contains("cargo xtask node --arch") && shown.contains("LINERATE_NODE_DIR"), "{shown}");
    lab.nothing_is_left();
}
