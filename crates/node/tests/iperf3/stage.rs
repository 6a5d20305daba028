//! Two programs in a network namespace of their own: Debian's iperf3 and ours, each as server or client.
//! Another version of iperf3 takes Debian's place when `LINERATE_TEST_IPERF3` names its program.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use linerate_testkit::{TestEnvironment, wait_until};
use serde_json::Value;

/// Names the program of another version of iperf3 than Debian's.
const OTHER: &str = "LINERATE_TEST_IPERF3";
/// A client that takes longer is ended and has failed: some versions never end for lines that others know.
const LONGEST_SECONDS: &str = "90";

/// The program of iperf3.
pub(crate) fn iperf3() -> Command {
    Command::new(std::env::var_os(OTHER).unwrap_or_else(|| "iperf3".into()))
}

/// Whether another version of iperf3 stands in for Debian's, which may not know everything that Debian's
/// does.
pub(crate) fn other_version() -> bool {
    std::env::var_os(OTHER).is_some()
}

/// The second number of the version of this iperf3: 12 of 3.12, 1 of 3.1.7.
pub(crate) fn minor_version() -> u32 {
    let output = iperf3().arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split(['.', ' ', '+', '\n']).nth(2).and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no version: {text}"))
}

/// Runs the test of this name again inside fresh network and mount namespaces, where every port is free and
/// nobody listens in. Gives `true` in the process inside.
pub(crate) fn inside(name: &str) -> bool {
    if !iperf3().arg("--version").output().is_ok_and(|output| output.status.success()) {
        return linerate_testkit::skip(name, "no iperf3 here (install the package iperf3)");
    }
    linerate_testkit::inside(name, TestEnvironment::Network)
}

/// Whose program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Debians,
    Ours,
}

impl Whose {
    pub(crate) fn other(self) -> Self {
        if self == Self::Ours { Self::Debians } else { Self::Ours }
    }

    pub(crate) fn command(self) -> Command {
        match self {
            Self::Debians => iperf3(),
            Self::Ours => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
                command.arg("iperf3");
                command
            }
        }
    }
}

/// A server. It is ended, whatever happens.
pub(crate) struct Server {
    child: Child,
    stdout: Box<dyn Read + Send>,
}

impl Server {
    /// Starts it and waits until it listens.
    pub(crate) fn start(whose: Whose, arguments: &[&str]) -> Self {
        let _ = Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
        let mut command = whose.command();
        command.arg("-s").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout: Box<dyn Read + Send> = match whose {
            Whose::Ours => {
                let mut line = String::new();
                BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
                assert!(line.contains("listening on"), "{line}");
                Box::new(child.stdout.take().unwrap())
            }
            Whose::Debians => {
                // What it says may be kept back in its buffer: the kernel knows.
                let port = arguments.windows(2).find(|pair| pair[0] == "-p").map_or("5201", |pair| pair[1]);
                listens(port.parse().unwrap(), &mut child);
                Box::new(child.stdout.take().unwrap())
            }
        };
        Self { child, stdout }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed until it ended by itself, and whether well.
    pub(crate) fn end(mut self) -> (String, bool) {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        let good = self.child.wait().unwrap().success();
        (text, good)
    }

    /// What it printed until it ended by itself, which it must have done well.
    pub(crate) fn output(self) -> String {
        let (text, good) = self.end();
        assert!(good, "{text}");
        text
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something listens on this port in this namespace.
fn listens(port: u16, server: &mut Child) {
    // The port in hex; state 0A: listening.
    let port = format!(":{port:04X}");
    let there = |path: &str| {
        let table = std::fs::read_to_string(path).unwrap_or_default();
        table.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some("0A")
        })
    };
    wait_until("somebody listens", || {
        assert!(server.try_wait().unwrap().is_none(), "it ended before it listened");
        there("/proc/net/tcp6") || there("/proc/net/tcp")
    });
}

/// Runs a client to its end.
pub(crate) fn client(whose: Whose, host: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let program = whose.command();
    let mut command = Command::new("timeout");
    command.arg(LONGEST_SECONDS).arg(program.get_program()).args(program.get_args());
    command.args(["-c", host]).args(arguments).envs(variables.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

/// The JSON of a client that must have succeeded.
pub(crate) fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr));
    });
    assert!(output.status.success() && value.get("error").is_none(), "{text}");
    value
}

/// A key pair and a file of users with `mario`, whose password is `rossi`.
pub(crate) struct Keys {
    pub(crate) folder: tempfile::TempDir,
}

impl Keys {
    pub(crate) fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let run = |line: &str| {
            let output = Command::new("openssl").args(line.split(' ')).current_dir(&folder).output();
            output.is_ok_and(|output| output.status.success())
        };
        let made = run("genrsa -out private.pem 2048")
            && run("rsa -in private.pem -outform PEM -pubout -out public.pem");
        let hash = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";
        std::fs::write(folder.path().join("users"), format!("mario,{hash}\n")).unwrap();
        made.then_some(Self { folder })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        Path::new(self.folder.path()).join(name).display().to_string()
    }
}
