//! The ways in which people have set up ssh: login shells, a jump host, an agent, a program that asks for
//! passphrases, names that mean something else on the hosts, an operator who is no root.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod sshd;

use std::process::{Command, Stdio};

use sshd::{Lab, Spec, gaps, inside, ran, run, text, wait_until};

/// `linerate facts` of a host that answers; gives what was said besides.
fn answers(lab: &Lab, host: &str, variables: &[(&str, &str)]) -> String {
    let output =
        lab.command(&["facts", host, "kernel.release"]).envs(variables.iter().copied()).output().unwrap();
    let shown = text(&output.stderr);
    assert!(text(&output.stdout).starts_with("kernel.release = "), "{shown}");
    shown
}

#[test]
fn every_login_shell_will_do() {
    const NAME: &str = "every_login_shell_will_do";
    let shells = [
        ("tcsh", "/bin/tcsh"),
        ("fish", "/usr/bin/fish"),
        ("busybox", "/bin/busybox"),
        ("bash", "/bin/bash"),
    ];
    let (there, missing): (Vec<_>, Vec<_>) =
        shells.into_iter().partition(|(_, path)| std::path::Path::new(path).exists());
    for (package, path) in missing {
        println!("SKIPPED {NAME} with {path}: it is not here (install the package {package})");
    }
    if !inside(NAME) {
        return;
    }
    let spec = |(package, path): &(&str, &'static str)| match *package {
        // Alone in the path: head, df, sha256sum and the others are busybox's too.
        "busybox" => Spec { busybox: true, ..Spec::default() },
        _ => Spec { shell: path, ..Spec::default() },
    };
    let lab = Lab::new(&there.iter().map(spec).collect::<Vec<_>>());
    for (number, (_, shell)) in (1..).zip(&there) {
        let host = format!("h{number}");
        let shown = answers(&lab, &host, &[]);
        assert!(shown.contains("copied the node program"), "{shell}: {shown}");
        assert!(!answers(&lab, &host, &[]).contains("copied"), "{shell}");
        lab.nothing_is_left();
        let cleaned = lab.output(&["clean", &host]);
        assert_eq!(cleaned.status.code(), Some(0), "{shell}: {}", text(&cleaned.stdout));
        assert!(!lab.inside_host(number, "/root/.cache/linerate").exists(), "{shell}");
    }
}

#[test]
fn a_jump_host_leads_to_hosts_that_are_out_of_reach() {
    const NAME: &str = "a_jump_host_leads_to_hosts_that_are_out_of_reach";
    if !linerate_testkit::has(NAME, "nft", "nftables") {
        return;
    }
    if !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    for number in [2, 3] {
        let rule =
            "table inet t { chain c { type filter hook input priority 0; ip saddr 10.99.0.254 drop; }; }";
        lab.arrange(number, &["nft", rule]);
        let behind = format!(
            "Host behind{number}\nUser root\nHostName 10.99.0.{number}\nHostKeyAlias h{number}\nProxyJump h1\n"
        );
        lab.append("config", &behind);
    }
    let straight = lab.output(&["facts", "h2", "kernel.release"]);
    assert_eq!(straight.status.code(), Some(2), "h2 cannot be reached straight: {}", text(&straight.stderr));
    assert!(text(&straight.stderr).contains("timed out"), "{}", text(&straight.stderr));
    let survey = ["survey", "h1", "behind2", "behind3", "--json", "-q", "--snapshot", "s.json"];
    let shown = text(&lab.output(&survey).stderr);
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new(), "{shown}");
    for (from, to) in [("h1", "behind2"), ("behind2", "behind3"), ("behind3", "h1")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}: {shown}");
    }
    lab.nothing_is_left();
}

/// An agent of the lab's own; ended with its value.
struct Agent(std::process::Child, String);

impl Agent {
    fn start(lab: &Lab) -> Self {
        let socket = lab.path("agent").display().to_string();
        let child =
            Command::new("ssh-agent").args(["-D", "-a", &socket]).stdout(Stdio::null()).spawn().unwrap();
        let agent = Self(child, socket);
        wait_until("the agent listens", || std::path::Path::new(&agent.1).exists());
        agent
    }

    fn keys(&self, arguments: &[&str]) -> String {
        let output = Command::new("ssh-add").args(arguments).env("SSH_AUTH_SOCK", &self.1).output().unwrap();
        text(&output.stdout) + &text(&output.stderr)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes the key out of the configuration; gives its path.
fn without_key(lab: &Lab) -> String {
    let key = lab.path("user_key").display().to_string();
    lab.edit("config", &format!("IdentityFile {key}\nIdentitiesOnly yes\nIdentityAgent none\n"), "");
    key
}

#[test]
fn keys_of_an_agent_are_used_and_left_alone() {
    if !inside("keys_of_an_agent_are_used_and_left_alone") {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    let key = without_key(&lab);
    let agent = Agent::start(&lab);
    let socket = [("SSH_AUTH_SOCK", agent.1.as_str())];
    let refused = lab.command(&["facts", "h1", "kernel.release"]).envs(socket).output().unwrap();
    assert!(text(&refused.stderr).contains("load a key with ssh-add"), "{}", text(&refused.stderr));
    agent.keys(&["-q", &key]);
    let before = agent.keys(&["-L"]);
    assert!(before.starts_with("ssh-ed25519 "), "{before}");
    answers(&lab, "h1", &socket);
    assert_eq!(agent.keys(&["-L"]), before);
    drop(agent);
    lab.nothing_is_left();
}

#[test]
fn a_passphrase_is_asked_by_the_program_that_the_user_chose() {
    if !inside("a_passphrase_is_asked_by_the_program_that_the_user_chose") {
        return;
    }
    let lab = Lab::new(&[Spec::default()]);
    let key = lab.path("user_key").display().to_string();
    run("ssh-keygen", &["-q", "-p", "-P", "", "-N", "open sesame", "-f", &key]);
    let refused = lab.output(&["facts", "h1", "kernel.release"]);
    assert!(text(&refused.stderr).contains("load a key with ssh-add"), "{}", text(&refused.stderr));
    let here = lab.path("").display().to_string();
    lab.script("ask", &format!("#!/bin/sh\necho asked >>{here}asked\necho 'open sesame'\n"));
    let program = lab.path("ask").display().to_string();
    let shown = answers(&lab, "h1", &[("SSH_ASKPASS", &program), ("SSH_ASKPASS_REQUIRE", "force")]);
    assert!(!shown.contains("sesame"), "{shown}");
    assert_eq!(std::fs::read_to_string(lab.path("asked")).unwrap(), "asked\n");
    lab.nothing_is_left();
}

/// The name of a host is what the operator calls it; hosts speak with each other by the addresses that they
/// have.
#[test]
fn names_that_mean_something_else_on_the_hosts_do_no_harm() {
    if !inside("names_that_mean_something_else_on_the_hosts_do_no_harm") {
        return;
    }
    let wrong = "127.0.0.1 localhost\n127.0.1.1 h1 h2 h3\n10.99.0.77 h1 h2 h3\n";
    let spec = Spec { names: wrong, ..Spec::default() };
    let lab = Lab::new(&[spec.clone(), spec.clone(), spec]);
    let survey = ["survey", "h1", "h2", "h3", "--json", "-q", "--snapshot", "s.json"];
    let shown = text(&lab.output(&survey).stderr);
    let snapshot = lab.snapshot();
    assert_eq!(gaps(&snapshot), Vec::<String>::new(), "{shown}");
    for (from, to) in [("h1", "h2"), ("h2", "h3"), ("h3", "h1")] {
        assert!(ran(&snapshot, from, to) > 1, "{from} to {to}: {shown}");
    }
    lab.nothing_is_left();
}

#[test]
fn the_operator_is_an_ordinary_user() {
    const NAME: &str = "the_operator_is_an_ordinary_user";
    if !linerate_testkit::has(NAME, "setpriv", "util-linux") || !inside(NAME) {
        return;
    }
    let lab = Lab::new(&[Spec::default(), Spec::default(), Spec::default()]);
    let shaper = "tc qdisc add dev eth0 root tbf rate 30mbit burst 32k latency 30ms";
    lab.arrange(3, &shaper.split(' ').collect::<Vec<_>>());
    // Programs where everybody may run them, the keys and the data of a user of his own.
    let programs = lab.path("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::copy(sshd::programs().linerate, programs.join("linerate")).unwrap();
    std::fs::copy(sshd::programs().node, programs.join("linerate-node")).unwrap();
    std::fs::create_dir(lab.path("data")).unwrap();
    for name in ["config", "known_hosts", "user_key", "data", "tmp", "programs"] {
        run("chown", &["-R", "61234:61234", &lab.path(name).display().to_string()]);
    }
    // The user exists in the mount namespace of this test alone.
    run("mount", &["--bind", &lab.path("h1/passwd").display().to_string(), "/etc/passwd"]);
    let linerate = |arguments: &[&str]| {
        Command::new("setpriv")
            .args([
                "--reuid",
                "61234",
                "--regid",
                "61234",
                "--clear-groups",
                "--inh-caps=-all",
                "--bounding-set=-all",
            ])
            .args(["--no-new-privs", "--"])
            .arg(programs.join("linerate"))
            .args(arguments)
            .current_dir(lab.path("data"))
            .env("HOME", lab.path("data"))
            .env("LINERATE_DATA", lab.path("data"))
            .env("LINERATE_NODE", programs.join("linerate-node"))
            .env("LINERATE_SSH", lab.path("ssh"))
            .env("TMPDIR", lab.path("tmp"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let survey = linerate(&["survey", "h1", "h2", "h3", "--json", "-q"]);
    let json: serde_json::Value =
        serde_json::from_slice(&survey.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&survey.stderr)));
    assert_eq!(json["diagnosis"]["findings"][0]["causes"][0]["id"], "forgotten-shaper", "{json}");
    let tried = linerate(&["try", "forgotten-shaper", "--on", "h3", "--keep", "--json", "-q"]);
    let trial: serde_json::Value =
        serde_json::from_slice(&tried.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&tried.stderr)));
    assert_eq!(trial["trial"]["status"], "kept", "{trial}");
    let undone = linerate(&["undo", trial["trial"]["id"].as_str().unwrap()]);
    assert_eq!(undone.status.code(), Some(0), "{}", text(&undone.stderr));
    lab.nothing_is_left();
}
