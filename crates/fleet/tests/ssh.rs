//! Hosts behind real OpenSSH servers: survey, facts, a trial with its undoing, and what is copied, as root
//! and as an ordinary user.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod sshd;

use sshd::{Lab, Spec, gaps, inside, ran, run, text};

const CACHE: &str = "/root/.cache/linerate";

#[test]
fn three_names_are_surveyed_and_cleaned() {
    if !inside("three_names_are_surveyed_and_cleaned") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let survey = ["survey", "h1", "h2", "h3", "--json", "-q", "--snapshot", "s.json"];
    let done = lab.output(&survey);
    let shown = text(&done.stderr);
    assert!(linerate_testkit::survey_ended(done.status), "{shown}");
    assert!(shown.contains("measuring in 10.99.0.0/24 on eth0: all 3 hosts are in it"), "{shown}");
    assert!(shown.contains("copied the node program") && shown.contains("to h1, h2, h3"), "{shown}");
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
    for (from, to) in [("h1", "h2"), ("h2", "h1"), ("h1", "h3"), ("h3", "h1"), ("h2", "h3"), ("h3", "h2")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}");
    }
    lab.nothing_is_left();
    for number in 1..=3 {
        assert_eq!(lab.names(number, CACHE).len(), 1);
    }
    // A second command finds what is there.
    let facts = lab.output(&["facts", "h2", "kernel.release"]);
    assert!(text(&facts.stdout).starts_with("kernel.release = "), "{}", text(&facts.stderr));
    assert!(!text(&facts.stderr).contains("copied"), "{}", text(&facts.stderr));
    // Single tests take names too, and an inventory file need not name addresses.
    let mtu = lab.output(&["mtu", "h1", "root@h2", "--json"]);
    let samples: serde_json::Value =
        serde_json::from_slice(&mtu.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&mtu.stderr)));
    assert!(samples["samples"][0]["outcome"].get("measured").is_some(), "{samples}");
    let file =
        "[[host]]\nname = \"a\"\nssh = { host = \"h1\" }\n[[host]]\nname = \"b\"\nssh = { host = \"h3\" }\n";
    std::fs::write(lab.path("two.toml"), file).unwrap();
    lab.output(&["survey", "-i", "two.toml", "-q", "--snapshot", "s.json"]);
    assert!(ran(&lab.snapshot(), "a", "b") > 1, "{:?}", gaps(&lab.snapshot()));
    let cleaned = lab.output(&["clean", "h1", "h2", "h3"]);
    assert_eq!(cleaned.status.code(), Some(0), "{}", text(&cleaned.stdout));
    for number in 1..=3 {
        let line = format!("h{number}: removed {CACHE}/linerate-node-");
        assert!(text(&cleaned.stdout).contains(&line), "{}", text(&cleaned.stdout));
        assert!(!lab.inside_host(number, CACHE).exists());
    }
    assert!(text(&lab.output(&["clean", "h1"]).stdout).contains("h1: nothing of ours is there"));
}

#[test]
fn six_hosts_answer_and_the_time_beside_the_measuring_is_printed() {
    const BUDGET_S: u32 = 15;
    if !inside("six_hosts_answer_and_the_time_beside_the_measuring_is_printed") {
        return;
    }
    let lab = Lab::new(&vec![Spec::default(); 6]);
    let budget = format!("{BUDGET_S}s");
    let survey =
        ["survey", "h1", "h2", "h3", "h4", "h5", "h6", "--time", &budget, "-q", "--snapshot", "s.json"];
    for what in ["the node program is copied", "the node program is there"] {
        let begun = std::time::Instant::now();
        let done = lab.output(&survey);
        println!("6 hosts, {what}: {:.1} s for a budget of {BUDGET_S} s", begun.elapsed().as_secs_f64());
        let snapshot = lab.snapshot();
        assert_eq!(gaps(&snapshot), Vec::<String>::new(), "{}", text(&done.stderr));
        assert_eq!(snapshot["facts"].as_object().map(serde_json::Map::len), Some(6));
        assert_eq!(text(&done.stderr).contains("copied"), what.ends_with("copied"));
    }
    lab.nothing_is_left();
}

#[test]
fn a_file_that_is_not_the_node_program_is_replaced_and_other_builds_stay_until_cleaned() {
    const NAME: &str = "a_file_that_is_not_the_node_program_is_replaced_and_other_builds_stay_until_cleaned";
    if !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    let facts = || {
        let output = lab.output(&["facts", "h1", "kernel.release"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert!(facts().contains("copied"));
    let names = lab.names(1, CACHE);
    let program = lab.inside_host(1, &format!("{CACHE}/{}", names[0]));
    let good = std::fs::read(&program).unwrap();
    std::fs::write(&program, "#!/bin/sh\ntouch /root/was-run\n").unwrap();
    assert!(facts().contains("copied"), "a wrong file is replaced");
    assert_eq!(std::fs::read(&program).unwrap(), good);
    assert!(!lab.inside_host(1, "/root/was-run").exists(), "and never run");
    let other = lab.inside_host(1, &format!("{CACHE}/linerate-node-{}", "0".repeat(64)));
    std::fs::write(&other, "another build").unwrap();
    assert!(!facts().contains("copied"));
    let cleaned = lab.output(&["clean", "h1", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&cleaned.stdout).unwrap();
    assert_eq!(json["hosts"][0]["removed"].as_array().unwrap().len(), 3, "{json}");
    // What is not ours stays, and is named.
    std::fs::create_dir_all(lab.inside_host(1, CACHE)).unwrap();
    std::fs::write(lab.inside_host(1, &format!("{CACHE}/notes.txt")), "mine").unwrap();
    let cleaned = lab.output(&["clean", "h1"]);
    assert_eq!(cleaned.status.code(), Some(3));
    assert!(text(&cleaned.stdout).contains("h1: still there: "), "{}", text(&cleaned.stdout));
    assert_eq!(lab.names(1, CACHE), ["notes.txt"]);
}

#[test]
fn an_ordinary_user_measures_and_says_what_is_missing() {
    if !inside("an_ordinary_user_measures_and_says_what_is_missing") {
        return;
    }
    let may = "ops ALL=(ALL) NOPASSWD: ALL";
    let lab = Lab::new(&[
        Spec::default(),
        Spec { sudoers: may, ..Spec::default() },
        Spec { without_sudo: true, ..Spec::default() },
    ]);
    let survey = ["survey", "o1", "o2", "o3", "--json", "-q", "--snapshot", "s.json"];
    let done = lab.output(&survey);
    assert!(matches!(done.status.code(), Some(1 | 3)), "{}", text(&done.stderr));
    let snapshot = lab.snapshot();
    let gaps = gaps(&snapshot);
    let of = |start: &str| gaps.iter().find(|g| g.starts_with(start));
    let missing = "what only root may read or set is missing";
    assert_eq!(of("root on host o1"), Some(&format!("root on host o1: sudo asks for a password: {missing}")));
    assert_eq!(of("root on host o2"), None);
    assert_eq!(of("root on host o3"), Some(&format!("root on host o3: there is no sudo: {missing}")));
    for (from, to) in [("o1", "o2"), ("o2", "o3"), ("o3", "o1")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}: {gaps:?}");
    }
    lab.nothing_is_left();
    assert_eq!(lab.names(2, "/home/ops/.cache/linerate").len(), 1);
    let unwanted = lab.output(&["facts", "o2", "kernel.release", "--no-sudo"]);
    assert!(text(&unwanted.stderr).contains("sudo was not wanted"), "{}", text(&unwanted.stderr));
    lab.output(&["clean", "o1", "o2", "o3"]);
    assert!((1..=3).all(|n| lab.names(n, "/home/ops/.cache").is_empty()));
}

#[test]
fn a_remedy_is_tried_kept_and_undone_over_ssh() {
    if !inside("a_remedy_is_tried_kept_and_undone_over_ssh") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let shaper = [
        "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "30mbit", "burst", "32k", "latency",
        "30ms",
    ];
    lab.arrange(3, &shaper);
    let qdisc = || lab.on(3, &["tc", "qdisc", "show", "dev", "eth0"]);
    let before = qdisc();
    let survey = ["survey", "h1", "h2", "h3", "--json", "-q", "--snapshot", "s.json"];
    let found = text(&lab.output(&survey).stdout);
    let json: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(json["diagnosis"]["findings"][0]["places"][0]["suspect"]["host"], "h3", "{json}");
    let tried = lab.output(&["try", "forgotten-shaper", "--on", "h3", "--json", "-q"]);
    let trial: serde_json::Value =
        serde_json::from_slice(&tried.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&tried.stderr)));
    assert_eq!(trial["trial"]["status"], "measured", "{trial}");
    assert_eq!(qdisc(), before, "a trial puts the old value back");
    let kept = lab.output(&["keep", trial["trial"]["id"].as_str().unwrap(), "-q"]);
    assert_eq!(kept.status.code(), Some(0), "{}{}", text(&kept.stdout), text(&kept.stderr));
    assert_ne!(qdisc(), before);
    let undone = lab.output(&["undo", trial["trial"]["id"].as_str().unwrap()]);
    assert_eq!(undone.status.code(), Some(0), "{}{}", text(&undone.stdout), text(&undone.stderr));
    assert_eq!(qdisc(), before);
    lab.nothing_is_left();
}

#[test]
fn a_password_for_sudo_is_asked_once_and_never_shown() {
    const NAME: &str = "a_password_for_sudo_is_asked_once_and_never_shown";
    if std::process::Command::new("script").arg("--version").output().is_err() {
        println!("SKIPPED {NAME}: no script(1) here, which makes a terminal");
        return;
    }
    if !inside(NAME) {
        return;
    }
    let may = Spec { sudoers: "ops ALL=(ALL) ALL", ..Spec::default() };
    let lab = Lab::new(&[may.clone(), may]);
    let password = "correct horse \\n 'battery'";
    let hash = run("openssl", &["passwd", "-6", password]);
    for number in [1, 2] {
        lab.edit(&format!("h{number}/shadow"), "ops:*:", &format!("ops:{}:", hash.trim()));
    }
    for (typed, root) in [(password, true), ("wrong", false), ("", false)] {
        let shown = lab.typing(&["survey", "o1", "o2", "--time", "4s", "-q", "--snapshot", "s.json"], typed);
        // Written again when the second host asks as well.
        let prompts: Vec<&str> = shown.split("password for sudo on ").skip(1).collect();
        assert!(matches!(prompts.len(), 1 | 2), "{shown}");
        assert!(prompts.iter().all(|p| p.starts_with("o1") || p.starts_with("o2")), "{shown}");
        assert!(!shown.contains("battery"), "{shown}");
        let missing = gaps(&lab.snapshot());
        let without_root = missing.iter().filter(|g| g.starts_with("root on host")).count();
        assert_eq!(without_root, if root { 0 } else { 2 }, "{typed}: {missing:?}");
        lab.nothing_is_left();
    }
}

#[test]
fn one_ipv6_only_host_and_one_host_under_two_names() {
    if !inside("one_ipv6_only_host_and_one_host_under_two_names") {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec { ipv6_only: true, ..Spec::default() }, Spec::default()]);
    let names = ["h1", "h2", "h3", "alias3"];
    let survey = ["--json", "-q", "--snapshot", "s.json"];
    let done = lab.output(&[&["survey"], &names[..], &survey[..]].concat());
    let shown = text(&done.stderr);
    assert!(shown.contains("measuring in 2001:db8::/64 on eth0: all 3 hosts are in it"), "{shown}");
    let snapshot = lab.snapshot();
    let expected = ["host alias3: it is the same machine as h3, by its addresses; it takes part once"];
    assert_eq!(gaps(&snapshot), expected);
    assert!(ran(&snapshot, "h1", "h2") > 1 && ran(&snapshot, "h2", "h3") > 1);
    lab.nothing_is_left();
}
