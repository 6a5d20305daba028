//! What goes wrong with hosts behind real OpenSSH servers: what the user reads, and that nothing stays behind.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod sshd;

use std::process::Command;

use sshd::{Lab, Wish, gaps, inside, outcomes, run, text, wait_until};

const CACHE: &str = "/root/.cache/linerate";

/// `linerate facts` of a host that cannot answer: what is said.
fn refused(lab: &Lab, host: &str) -> String {
    let output = lab.output(&["facts", "--", host, "kernel.release"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    lab.nothing_is_left();
    said
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn keys_that_are_not_known_or_not_accepted() {
    if !inside("keys_that_are_not_known_or_not_accepted") {
        return;
    }
    let lab = Lab::new(&[Wish::default()]);
    let known = std::fs::read_to_string(lab.path("known_hosts")).unwrap();
    std::fs::write(lab.path("known_hosts"), "").unwrap();
    let said = refused(&lab, "h1");
    assert!(said.contains("Host key verification failed") && said.contains("log in once by hand"), "{said}");
    assert_eq!(std::fs::read_to_string(lab.path("known_hosts")).unwrap(), "", "no key is taken silently");
    run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &lab.path("other").display().to_string()]);
    let other = std::fs::read_to_string(lab.path("other.pub")).unwrap();
    std::fs::write(lab.path("known_hosts"), format!("h1 {other}")).unwrap();
    let said = refused(&lab, "h1");
    assert!(
        said.contains("its host key is not the known one") && said.contains("ssh-keygen -R h1"),
        "{said}"
    );
    std::fs::write(lab.path("known_hosts"), known).unwrap();
    std::fs::write(lab.path("authorized"), other).unwrap();
    let said = refused(&lab, "h1");
    assert!(said.contains("Permission denied") && said.contains("ssh-add"), "{said}");
    let said = refused(&lab, "-oProxyCommand=true");
    assert!(said.contains("ssh host `-oProxyCommand=true` is not allowed"), "{said}");
}

#[test]
fn a_shell_with_a_banner_is_passed_over_and_a_flood_is_not() {
    if !inside("a_shell_with_a_banner_is_passed_over_and_a_flood_is_not") {
        return;
    }
    let banner = "echo 'Welcome to  h1'; printf 'no line break'; echo complaint >&2\n";
    let flood = "yes | head -c 1000000\n";
    let lab = Lab::new(&[
        Wish { bashrc: Some(banner), ..Wish::default() },
        Wish { bashrc: Some(flood), ..Wish::default() },
    ]);
    let facts = lab.output(&["facts", "h1", "kernel.release"]);
    assert!(text(&facts.stdout).starts_with("kernel.release = "), "{}", text(&facts.stderr));
    let said = refused(&lab, "h2");
    assert!(said.contains("its shell printed more than 65536 bytes"), "{said}");
}

#[test]
fn machines_without_a_program_and_programs_that_do_not_run() {
    if !inside("machines_without_a_program_and_programs_that_do_not_run") {
        return;
    }
    let machine = |name| Wish { machine: Some(name), ..Wish::default() };
    let lab = Lab::new(&[machine("aarch64"), machine("riscv64")]);
    let said = refused(&lab, "h1");
    assert!(said.contains("there is no node program for aarch64"), "{said}");
    assert!(said.contains("cargo xtask node --arch aarch64") && said.contains("LINERATE_NODE_DIR"), "{said}");
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
    let said = text(&output.stderr);
    assert!(said.contains("the node program does not run there (exit status: "), "{said}");
    assert!(!lab.inside_host(1, CACHE).exists() || lab.names(1, CACHE).is_empty(), "nothing is installed");
    // A program of the wrong machine beside us is noticed before anything is copied.
    std::fs::copy(lab.path("linerate-node-aarch64"), lab.path("wrong")).unwrap();
    lab.edit("h1/bin/uname", "aarch64", "x86_64");
    let output = lab
        .command(&["facts", "h1", "kernel.release"])
        .env("LINERATE_NODE", lab.path("wrong"))
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("is no program for x86_64"), "{said}");
}

#[test]
fn a_full_disk_on_a_host_is_said_and_leaves_nothing() {
    if !inside("a_full_disk_on_a_host_is_said_and_leaves_nothing") {
        return;
    }
    let lab = Lab::new(&[Wish { home_kib: 512, ..Wish::default() }]);
    let said = refused(&lab, "h1");
    assert!(
        said.contains("cannot store the node program") && said.contains("No space left on device"),
        "{said}"
    );
    assert!(said.contains("make room there"), "{said}");
    assert_eq!(lab.names(1, CACHE), Vec::<String>::new());
    let survey = lab.output(&["survey", "h1", "-q"]);
    assert_eq!(survey.status.code(), Some(2));
    assert!(text(&survey.stderr).contains("no host answered: host h1: over ssh: cannot store"));
}

/// A survey of three hosts in the middle of which something happens to h2; gives what was said.
fn disturbed(lab: &Lab, what: impl FnOnce(&Lab, u32)) -> String {
    let arguments = ["survey", "h1", "h2", "h3", "--time", "25s", "--json", "--snapshot", "s.json"];
    let (mut survey, said) = lab.surveying(&arguments);
    what(lab, survey.id());
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut survey.stdout.take().unwrap(), &mut stdout).unwrap();
    let code = survey.wait().unwrap().code();
    let said = said.join().unwrap();
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {said}");
    said
}

/// One gap says that h2 was lost and is there again, and it was measured later.
fn was_taken_up(lab: &Lab, said: &str, why: &str) {
    let snapshot = lab.snapshot();
    let gaps = gaps(&snapshot);
    assert_eq!(gaps.len(), 1, "{gaps:?}\n{said}");
    assert!(gaps[0].starts_with("host h2: the session was lost and taken up again: "), "{gaps:?}");
    assert!(gaps[0].contains(why), "{gaps:?}");
    for (from, to) in [("h1", "h2"), ("h2", "h1"), ("h3", "h2"), ("h2", "h3"), ("h1", "h3")] {
        assert!(outcomes(&snapshot, from, to, "measured") > 1, "{from} to {to}\n{said}");
        assert_eq!(outcomes(&snapshot, from, to, "gap"), 0, "{from} to {to}\n{said}");
    }
    lab.nothing_is_left();
}

#[test]
fn a_node_killed_in_mid_survey_is_taken_up_again() {
    if !inside("a_node_killed_in_mid_survey_is_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default(), Wish::default()]);
    let said = disturbed(&lab, |lab, _| lab.nodes(2).into_iter().for_each(|pid| kill("-9", pid)));
    was_taken_up(&lab, &said, "it closed the stream");
}

#[test]
fn a_session_cut_in_mid_survey_is_taken_up_again() {
    if !inside("a_session_cut_in_mid_survey_is_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default(), Wish::default()]);
    let said = disturbed(&lab, |_, survey| {
        let line = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let children = std::fs::read_to_string(format!("/proc/{survey}/task/{survey}/children")).unwrap();
        let ssh = children.split_ascii_whitespace().filter_map(|c| c.parse::<u32>().ok());
        let ssh: Vec<u32> = ssh.filter(|pid| line(*pid).split('\0').any(|word| word == "h2")).collect();
        assert_eq!(ssh.len(), 1, "one session per host");
        kill("-9", ssh[0]);
    });
    was_taken_up(&lab, &said, "signal: 9");
}

#[test]
fn a_frozen_node_is_ended_and_taken_up_again() {
    if !inside("a_frozen_node_is_ended_and_taken_up_again") {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default(), Wish::default()]);
    let mut frozen = Vec::new();
    let said = disturbed(&lab, |lab, _| {
        frozen = lab.nodes(2);
        for pid in &frozen {
            kill("-STOP", *pid);
        }
    });
    assert!(!frozen.is_empty());
    was_taken_up(&lab, &said, "it said nothing for 4000 ms");
}

#[test]
fn a_host_whose_sshd_is_gone_is_a_gap_and_the_survey_goes_on() {
    if !inside("a_host_whose_sshd_is_gone_is_a_gap_and_the_survey_goes_on") {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default(), Wish::default()]);
    let said = disturbed(&lab, |lab, _| {
        lab.on(2, &["ip", "link", "set", "eth0", "down"]);
    });
    let gaps = gaps(&lab.snapshot());
    assert_eq!(gaps.len(), 1, "{gaps:?}\n{said}");
    assert!(gaps[0].contains("it could not be taken up again: over ssh: "), "{gaps:?}");
    assert!(outcomes(&lab.snapshot(), "h1", "h3", "measured") > 1, "{said}");
    // Cut off, the node program ends by itself.
    wait_until("the node program is gone", || lab.nodes(2).is_empty());
    lab.nothing_is_left();
}

#[test]
fn a_killed_operator_leaves_nothing_on_the_hosts() {
    if !inside("a_killed_operator_leaves_nothing_on_the_hosts") {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default()]);
    let (mut survey, said) = lab.surveying(&["survey", "h1", "h2", "--time", "60s"]);
    assert!(!lab.nodes(1).is_empty());
    survey.kill().unwrap();
    survey.wait().unwrap();
    drop(said.join());
    lab.nothing_is_left();
    let (mut survey, said) = lab.surveying(&["survey", "h1", "h2", "--time", "60s"]);
    kill("-INT", survey.id());
    assert_eq!(survey.wait().unwrap().code(), Some(130));
    assert!(said.join().unwrap().contains("everything was cleaned up"));
    lab.nothing_is_left();
}

#[test]
fn a_port_blocked_between_two_hosts_only_is_named() {
    const NAME: &str = "a_port_blocked_between_two_hosts_only_is_named";
    if Command::new("nft").arg("--version").output().is_err() {
        println!("SKIPPED {NAME}: no nft here (install the package nftables)");
        return;
    }
    if !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Wish::default(), Wish::default(), Wish::default()]);
    let rules = "table inet t { chain c { type filter hook input priority 0; ip saddr 10.99.0.2 drop; }; }";
    lab.on(1, &["nft", rules]);
    let done =
        lab.output(&["survey", "h1", "h2", "h3", "--time", "20s", "--json", "-q", "--snapshot", "s.json"]);
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new());
    assert_eq!(outcomes(&snapshot, "h2", "h1", "measured"), 0);
    assert!(outcomes(&snapshot, "h2", "h1", "nothing-through") > 0, "{}", text(&done.stderr));
    assert!(
        outcomes(&snapshot, "h1", "h3", "measured") > 1 && outcomes(&snapshot, "h3", "h2", "measured") > 1
    );
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let headline = json["diagnosis"]["headline"].as_str().unwrap();
    assert!(headline.contains("h1") && headline.contains("h2") && !headline.contains("h3"), "{headline}");
    lab.nothing_is_left();
}
