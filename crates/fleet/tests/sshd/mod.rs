//! A lab of real OpenSSH servers: one host per network namespace, with homes, users and a `/sys` of its own.
//! Everything lives in namespaces and a temporary folder; nothing of the machine outside is changed.
// Helpers of tests may fail the test as loudly as the tests themselves; not every test file uses all of them.
#![allow(dead_code)]

mod traces;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use linerate_testkit::{self as testkit, TestEnvironment, TestPrograms};
pub(crate) use linerate_testkit::{run, text, wait_until};
use traces::Traces;

pub(crate) fn programs() -> TestPrograms {
    TestPrograms::built()
}

/// Runs the test of this name again inside fresh network and mount namespaces. Gives `true` in the process
/// inside.
pub(crate) fn inside(name: &str) -> bool {
    if !testkit::are_built(name) {
        return false;
    }
    if !Path::new("/usr/sbin/sshd").exists() {
        return testkit::skip(name, "no sshd here (install the package openssh-server)");
    }
    // sshd lets several users in.
    testkit::inside(name, TestEnvironment::Root)
}

/// How a host differs from an ordinary one.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    /// Size of each home folder.
    pub(crate) home_kib: u32,
    /// Options with which home folders are mounted.
    pub(crate) home: &'static str,
    /// Size of each folder that all users share.
    pub(crate) shared_kib: u32,
    /// What `uname -m` says.
    pub(crate) machine: Option<&'static str>,
    /// What root's shell prints at the start of every session.
    pub(crate) bashrc: Option<&'static str>,
    /// No IPv4 address.
    pub(crate) ipv6_only: bool,
    /// Lines of `/etc/sudoers`; without them `ops` may nothing.
    pub(crate) sudoers: &'static str,
    /// No program `sudo` in the path.
    pub(crate) without_sudo: bool,
    /// Login shell of root.
    pub(crate) shell: &'static str,
    /// The only programs in the path are those of busybox.
    pub(crate) busybox: bool,
    /// Size of the file system that journals of changes are on.
    pub(crate) state_kib: u32,
    /// What the host takes names for: lines of its `/etc/hosts`.
    pub(crate) names: &'static str,
    /// Variables of every session.
    pub(crate) environment: String,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            home_kib: 1 << 20,
            home: "rw",
            shared_kib: 1 << 20,
            machine: None,
            bashrc: None,
            ipv6_only: false,
            sudoers: "",
            without_sudo: false,
            shell: "/bin/sh",
            busybox: false,
            state_kib: 1 << 20,
            names: "",
            environment: String::new(),
        }
    }
}

/// Hosts h1, h2, … on one bridge, 200 Mbit/s each; `hN` logs in as root, `oN` as the ordinary user `ops`.
pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    hosts: Vec<Child>,
    /// What each host had at first.
    before: RefCell<Vec<Traces>>,
}

impl Lab {
    pub(crate) fn new(specs: &[Spec]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"]);
        run("ip", &["addr", "add", "10.99.0.254/24", "dev", "br0"]);
        run("ip", &["addr", "add", "2001:db8::fe/64", "dev", "br0", "nodad"]);
        run("ip", &["link", "set", "br0", "up"]);
        let mut lab = Self { folder, hosts: Vec::new(), before: RefCell::default() };
        std::fs::create_dir(lab.path("tmp")).unwrap();
        lab.client();
        for (spec, number) in specs.iter().zip(1..) {
            lab.host(number, spec);
        }
        for (spec, number) in specs.iter().zip(1..) {
            let address = if spec.ipv6_only {
                format!("[2001:db8::{number}]:22")
            } else {
                format!("10.99.0.{number}:22")
            };
            let address = address.parse().unwrap();
            wait_until("sshd listens", || {
                TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
            });
        }
        for number in 1..=specs.len() {
            // That of the question above ends by itself.
            wait_until("sshd is alone", || lab.strangers(number).is_empty());
            wait_until("addresses are settled", || !lab.on(number, &["ip", "address"]).contains("tentative"));
            let traces = Traces::of(&lab, number);
            lab.before.borrow_mut().push(traces);
        }
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn client(&self) {
        let here = self.folder.path().display().to_string();
        // Users of the hosts read their keys in here.
        std::fs::set_permissions(self.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &format!("{here}/user_key")]);
        let config = format!(
            "Host h*\nUser root\nHost o*\nUser ops\nHost *\nIdentityFile {here}/user_key\nIdentitiesOnly yes\n\
             IdentityAgent none\nUserKnownHostsFile {here}/known_hosts\nGlobalKnownHostsFile none\n"
        );
        self.write("config", &config, 0o600);
        self.write("known_hosts", "", 0o600);
        std::fs::copy(self.path("user_key.pub"), self.path("authorized")).unwrap();
        self.write("ssh", &format!("#!/bin/sh\nexec ssh -F {here}/config \"$@\"\n"), 0o755);
    }

    fn host(&mut self, number: usize, spec: &Spec) {
        let here = self.folder.path().display().to_string();
        let own = self.path(&format!("h{number}"));
        std::fs::create_dir_all(own.join("bin")).unwrap();
        self.files(number, spec);
        let address =
            if spec.ipv6_only { format!("2001:db8::{number}") } else { format!("10.99.0.{number}") };
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &format!("{}/key", own.display())]);
        let key = std::fs::read_to_string(own.join("key.pub")).unwrap();
        self.append("known_hosts", &format!("h{number} {key}"));
        let alias = format!(
            "Host h{number} o{number} alias{number}\nHostName {address}\nHostKeyAlias h{number}\nHost alias*\nUser root\n"
        );
        self.append("config", &alias);
        let path = if spec.without_sudo || spec.busybox {
            format!("{here}/h{number}/bin")
        } else {
            format!("{here}/h{number}/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        };
        let environment = &spec.environment;
        let server = format!(
            "Port 22\nHostKey {here}/h{number}/key\nAuthorizedKeysFile {here}/authorized\nStrictModes no\nUsePAM no\n\
             PidFile none\nPermitRootLogin yes\nMaxStartups 100:30:200\nSetEnv PATH={path} {environment}\n"
        );
        self.write(&format!("h{number}/sshd_config"), &server, 0o600);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sshd/host.sh");
        let child = Command::new("unshare")
            .args(["-n", "-m", "--propagation", "private", "--uts", "sh", script, &here])
            .args([number.to_string(), spec.home_kib.to_string(), spec.state_kib.to_string()])
            .args([&spec.shared_kib.to_string(), spec.home])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        self.hosts.push(child);
        let link = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let ours = link("self");
        wait_until("a network namespace of its own", || link(&pid).is_some_and(|l| Some(l) != ours));
        self.wire(number, &pid, spec);
    }

    fn wire(&self, number: usize, pid: &str, spec: &Spec) {
        let port = format!("p{number}");
        run("ip", &["link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", pid]);
        run("ip", &["link", "set", &port, "master", "br0", "up"]);
        let shaper = ["root", "tbf", "rate", "200mbit", "burst", "64k", "latency", "20ms"];
        run("tc", &[&["qdisc", "add", "dev", &port], &shaper[..]].concat());
        self.on(number, &["ip", "link", "set", "lo", "up"]);
        if !spec.ipv6_only {
            self.on(number, &["ip", "addr", "add", &format!("10.99.0.{number}/24"), "dev", "eth0"]);
        }
        self.on(number, &["ip", "link", "set", "eth0", "up"]);
        self.on(number, &["ip", "addr", "add", &format!("2001:db8::{number}/64"), "dev", "eth0", "nodad"]);
    }

    /// Users, sudoers, start-up files and a path of its own.
    fn files(&self, number: usize, spec: &Spec) {
        let busybox = self.path(&format!("h{number}/bin/sh")).display().to_string();
        let root_shell = match spec {
            Spec { busybox: true, .. } => &busybox,
            Spec { bashrc: Some(_), .. } => "/bin/bash",
            _ => spec.shell,
        };
        let passwd = format!(
            "root:x:0:0:root:/root:{root_shell}\nops:x:61234:61234::/home/ops:/bin/sh\n\
             sshd:x:61235:65534::/run/sshd:/usr/sbin/nologin\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
        );
        self.write(&format!("h{number}/passwd"), &passwd, 0o644);
        self.write(&format!("h{number}/group"), "root:x:0:\nops:x:61234:\nnogroup:x:65534:\n", 0o644);
        let shadow = "root:*:19000:0:99999:7:::\nops:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n";
        self.write(&format!("h{number}/shadow"), shadow, 0o600);
        self.write(&format!("h{number}/sudoers"), &format!("Defaults !fqdn\n{}\n", spec.sudoers), 0o440);
        if let Some(bashrc) = spec.bashrc {
            self.write(&format!("h{number}/bashrc"), bashrc, 0o644);
        }
        if !spec.names.is_empty() {
            self.write(&format!("h{number}/hosts"), spec.names, 0o644);
        }
        if spec.busybox {
            run("busybox", &["--install", "-s", &self.path(&format!("h{number}/bin")).display().to_string()]);
        }
        if let Some(machine) = spec.machine {
            let uname =
                format!("#!/bin/sh\ncase $1 in -m) echo {machine};; *) exec /usr/bin/uname \"$@\";; esac\n");
            self.write(&format!("h{number}/bin/uname"), &uname, 0o755);
        }
        if spec.without_sudo {
            for folder in ["/usr/bin", "/usr/sbin"] {
                for entry in std::fs::read_dir(folder).unwrap().flatten() {
                    let link = self.path(&format!("h{number}/bin")).join(entry.file_name());
                    if entry.file_name() != "sudo" && !link.exists() {
                        std::os::unix::fs::symlink(entry.path(), link).unwrap();
                    }
                }
            }
        }
    }

    /// A program of the lab.
    pub(crate) fn script(&self, name: &str, text: &str) {
        self.write(name, text, 0o755);
    }

    pub(crate) fn append(&self, name: &str, more: &str) {
        let mut text = std::fs::read_to_string(self.path(name)).unwrap();
        let _ = write!(text, "{more}");
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Replaces a text in a file of the lab.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} lacks {from}");
        std::fs::write(self.path(name), text.replace(from, to)).unwrap();
    }

    fn pid(&self, number: usize) -> u32 {
        self.hosts[number - 1].id()
    }

    /// Runs a program in the network namespace of a host.
    pub(crate) fn on(&self, number: usize, command: &[&str]) -> String {
        let pid = self.pid(number).to_string();
        run("nsenter", &[&["-t", &pid, "-n"], command].concat())
    }

    /// A path of a host as it is seen from here.
    pub(crate) fn inside_host(&self, number: usize, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.pid(number)))
    }

    /// Names in a folder of a host; none when there is no folder.
    pub(crate) fn names(&self, number: usize, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.inside_host(number, path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Processes in the network namespace of a host whose program is the node's.
    pub(crate) fn nodes(&self, number: usize) -> Vec<u32> {
        self.processes(number, "linerate-node")
    }

    /// All processes of a host but its sshd, which is the host itself. That of a connection whose other end
    /// went silent waits for it as long as TCP does, and has nothing below it.
    fn strangers(&self, number: usize) -> Vec<u32> {
        let sshd = self.processes(number, "/usr/sbin/sshd");
        self.processes(number, "").into_iter().filter(|pid| !sshd.contains(pid)).collect()
    }

    fn processes(&self, number: usize, program: &str) -> Vec<u32> {
        let Ok(space) = std::fs::read_link(format!("/proc/{}/ns/net", self.pid(number))) else {
            return Vec::new();
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|e| e.file_name().to_string_lossy().parse::<u32>().ok())
            .filter(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|l| l == space))
            .filter(|pid| {
                let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
                exe.is_ok_and(|e| e.to_string_lossy().contains(program))
            })
            .collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(programs().linerate);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("LINERATE_DATA", self.folder.path())
            .env("LINERATE_NODE", programs().node)
            .env("LINERATE_SSH", self.path("ssh"))
            .env("TMPDIR", self.path("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command on a terminal of its own, on which a line is typed as soon as something is asked. Gives
    /// what the terminal shows.
    pub(crate) fn typing(&self, arguments: &[&str], line: &str) -> String {
        let program = programs().linerate;
        let ordinary = self.command(&[]);
        let mut child = Command::new("script")
            .args(["-qec", &format!("{} {}", program.display(), arguments.join(" ")), "/dev/null"])
            .current_dir(self.folder.path())
            .envs(ordinary.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut shown = Vec::new();
        let mut asked = false;
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = std::io::Read::read(&mut stdout, &mut buffer) {
            shown.extend_from_slice(&buffer[..count]);
            if !asked && text(&shown).contains("without root): ") {
                asked = true;
                assert!(self.hides_typing(), "the prompt is there and the terminal shows what is typed");
                std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
            }
        }
        let _ = child.wait();
        text(&shown)
    }

    /// Whether the terminal of a command of this lab has its echo off.
    fn hides_typing(&self) -> bool {
        let ours = format!("LINERATE_DATA={}", self.folder.path().display());
        let pids = std::fs::read_dir("/proc").unwrap().flatten().map(|e| e.path());
        pids.filter(|p| std::fs::read_link(p.join("exe")).is_ok_and(|e| e.ends_with("linerate")))
            .filter(|p| std::fs::read(p.join("environ")).is_ok_and(|e| text(&e).contains(&ours)))
            .any(|p| {
                let terminal = p.join("fd/0");
                let output = Command::new("stty").args(["-a", "-F"]).arg(terminal).output().unwrap();
                text(&output.stdout).split_ascii_whitespace().any(|word| word == "-echo")
            })
    }

    pub(crate) fn snapshot(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.path("s.json")).unwrap()).unwrap()
    }

    /// Starts a survey and waits until it measures.
    pub(crate) fn surveying(&self, arguments: &[&str]) -> (Child, std::thread::JoinHandle<String>) {
        let mut child = self.command(arguments).spawn().unwrap();
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
        begun.recv_timeout(Duration::from_secs(180)).expect("the survey begins to measure");
        (child, said)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for number in 1..=self.hosts.len() {
            // Whatever a failed test left in the namespaces of this lab.
            for pid in self.processes(number, "") {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
            }
        }
        for host in &mut self.hosts {
            let _ = host.wait();
        }
    }
}

/// Samples between two hosts of this kind of outcome.
pub(crate) fn outcomes(snapshot: &serde_json::Value, from: &str, to: &str, outcome: &str) -> usize {
    let samples = snapshot["samples"].as_array().unwrap();
    samples
        .iter()
        .filter(|s| s["test"]["from"] == from && s["test"]["to"] == to)
        .filter(|s| s["outcome"].get(outcome).is_some())
        .count()
}

/// Samples between two hosts of which the load went over the network: the hosts may have been too busy to
/// give a figure.
pub(crate) fn ran(snapshot: &serde_json::Value, from: &str, to: &str) -> usize {
    outcomes(snapshot, from, to, "measured") + outcomes(snapshot, from, to, "invalid")
}

/// The gaps of a snapshot as `what: reason`.
pub(crate) fn gaps(snapshot: &serde_json::Value) -> Vec<String> {
    let list = snapshot["gaps"].as_array().unwrap();
    list.iter()
        .map(|g| format!("{}: {}", g["what"].as_str().unwrap(), g["reason"].as_str().unwrap()))
        .collect()
}
