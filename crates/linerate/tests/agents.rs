//! `linerate watch` with real agents over the loopback: they come in, are taken up again after either end was
//! killed, and a key that others may read is refused.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead as _, BufReader, Lines};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use linerate_testkit::{schemas, skip};
use serde_json::Value;

fn node_program() -> Option<PathBuf> {
    linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate"))
}

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Cluster {
    home: tempfile::TempDir,
    node: PathBuf,
}

impl Cluster {
    /// Two hosts with agents, with their keys.
    fn new(node: PathBuf, listen: SocketAddr) -> Self {
        let this = Self { home: tempfile::tempdir().unwrap(), node };
        let host = |name: &str, address: &str| {
            format!("[[host]]\nname = \"{name}\"\n[[host.endpoint]]\naddress = \"{address}\"\n")
        };
        let hosts = host("a", "127.0.0.1") + &host("b", "127.0.0.2");
        let agents = format!("[agents]\nlisten = [\"{listen}\"]\nkeys = \"{}\"\n", this.keys().display());
        std::fs::write(this.inventory(), format!("name = \"two\"\n{hosts}{agents}")).unwrap();
        let made = this.linerate(&["--make-keys", "--json"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        schemas::hold("agent-keys", &made);
        assert_eq!(made["new"].as_array().map(Vec::len), Some(2), "{made:#}");
        this
    }

    fn keys(&self) -> PathBuf {
        self.home.path().join("agents")
    }

    fn inventory(&self) -> PathBuf {
        self.home.path().join("cluster.toml")
    }

    fn linerate(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.arg("watch").arg("-i").arg(self.inventory()).args(words);
        command.env("LINERATE_DATA", self.home.path()).env("LINERATE_NODE", &self.node);
        command
    }

    fn watch(&self) -> Watch {
        let mut child = Running(
            self.linerate(&["--json", "--for", "15m"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let events = BufReader::new(child.0.stdout.take().unwrap()).lines();
        Watch { child, events }
    }

    fn agent(&self, host: &str) -> Agent {
        self.agent_of(&self.keys().join(format!("{host}.toml")))
    }

    fn agent_of(&self, file: &Path) -> Agent {
        let mut child = Running(
            Command::new(&self.node)
                .arg("agent")
                .arg("--config")
                .arg(file)
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        let log = BufReader::new(child.0.stderr.take().unwrap()).lines();
        Agent { child, log }
    }
}

struct Watch {
    child: Running,
    events: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    /// The next event of this kind and host; the watch ends by itself, and this with it, when none comes.
    fn until(&mut self, kind: &str, host: &str) -> Value {
        for line in self.events.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == kind && event["host"] == host {
                return event;
            }
        }
        panic!("no event {kind} of {host}");
    }

    /// Both hosts are watched, in any order.
    fn until_both(&mut self) {
        let mut missing = vec!["a", "b"];
        for line in self.events.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == "watched" {
                missing.retain(|host| event["host"] != *host);
            }
            if missing.is_empty() {
                return;
            }
        }
        panic!("not watched: {missing:?}");
    }
}

struct Agent {
    child: Running,
    log: Lines<BufReader<ChildStderr>>,
}

impl Agent {
    /// The next line of its log with these words.
    fn until(&mut self, words: &str) {
        let found = self.log.by_ref().map_while(Result::ok).any(|line| line.contains(words));
        assert!(found, "never logged: {words}");
    }
}

/// A free port a moment ago, at an address that only one test uses.
fn free(last: u8) -> SocketAddr {
    TcpListener::bind((Ipv4Addr::new(127, 0, 8, last), 0)).unwrap().local_addr().unwrap()
}

#[test]
fn agents_are_taken_up_again_after_either_end_was_killed() {
    let test = "agents_are_taken_up_again_after_either_end_was_killed";
    let Some(node) = node_program() else {
        skip(test, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    let cluster = Cluster::new(node, free(1));
    // The agents are there before the watch, which is what they wait for.
    let (mut a, mut b) = (cluster.agent("a"), cluster.agent("b"));
    a.until("Connection refused");
    b.until("Connection refused");
    let mut watch = cluster.watch();
    watch.until_both();

    // With the number of a key but not its secret, or under the name of another host, nothing comes in.
    let text = std::fs::read_to_string(cluster.keys().join("a.toml")).unwrap();
    let last = if text.ends_with("0\"\n") { "1\"\n" } else { "0\"\n" };
    for (host, text) in [
        ("secret", format!("{}{last}", &text[..text.len() - 3])),
        ("name", text.replace("name = \"a\"", "name = \"b\"")),
    ] {
        let file = cluster.home.path().join(format!("{host}.toml"));
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        cluster.agent_of(&file).until("it has another key for this host, or none");
    }

    let pid = a.child.0.id();
    drop(a);
    let gap = watch.until("gap", "a");
    assert!(!gap["reason"].as_str().unwrap().is_empty(), "{gap:#}");
    let mut a = cluster.agent("a");
    assert_ne!(a.child.0.id(), pid);
    let back = watch.until("watched", "a");
    assert!(back["gap_ms"].as_u64().is_some(), "{back:#}");

    // The operator is killed: the agents wait for the next one.
    a.until("a session with the operator");
    drop(watch);
    a.until("the session ended");
    b.until("the session ended");
    let mut watch = cluster.watch();
    watch.until_both();
    // They are the same processes, and nothing of them has the key but their file.
    for (agent, host) in [(&a, "a"), (&b, "b")] {
        let text = std::fs::read_to_string(cluster.keys().join(format!("{host}.toml"))).unwrap();
        let key = text.split('"').rev().nth(1).unwrap();
        assert_eq!(key.len(), 96);
        for shown in ["cmdline", "environ"] {
            let path = format!("/proc/{}/{shown}", agent.child.0.id());
            assert!(!String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(key));
        }
    }
    assert!(watch.child.0.try_wait().unwrap().is_none());
}

/// What an agent with this file prints as it ends.
fn refused(node: &Path, file: &Path) -> String {
    let output = Command::new(node).args(["agent", "--config"]).arg(file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_agent_refuses_a_file_that_others_may_read_or_that_is_wrong() {
    let test = "an_agent_refuses_a_file_that_others_may_read_or_that_is_wrong";
    let Some(node) = node_program() else {
        skip(test, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    let cluster = Cluster::new(node.clone(), free(2));
    let file = cluster.keys().join("a.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let key = text.split('"').rev().nth(1).unwrap().to_owned();
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    for bits in [0o644, 0o640, 0o602] {
        mode(bits);
        let words = refused(&node, &file);
        assert!(
            words.contains(&format!("mode {bits:04o}")) && words.contains("hint: `chmod 600 "),
            "{words}"
        );
        assert!(!words.contains(&key), "{words}");
    }
    mode(0o600);
    std::fs::write(&file, text.replace("operators = ", "operator = ")).unwrap();
    let words = refused(&node, &file);
    assert!(words.contains("a.toml: line 3: unknown field") && !words.contains(&key), "{words}");
    std::fs::write(&file, text.replace("key = \"", "key = \"0")).unwrap();
    let words = refused(&node, &file);
    assert!(words.contains("a.toml: line 4: key is not 96") && !words.contains(&key), "{words}");
    std::fs::remove_file(&file).unwrap();
    assert!(refused(&node, &file).contains("No such file"));
    // What it dials is as secret as the key: a folder in which others may exchange the file.
    std::fs::write(&file, &text).unwrap();
    mode(0o600);
    std::fs::set_permissions(cluster.keys(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refused(&node, &file).contains("let root alone write it and its folder"));
}
