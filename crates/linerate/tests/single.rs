//! Single tests over loopback with the real node program: what people and scripts see of them, and that each
//! is a run in the store. Needs a built `linerate-node`; without it the tests say that they were skipped.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn node_program() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-node");
    std::env::var_os("LINERATE_NODE").map(PathBuf::from).or(Some(beside)).filter(|p| p.is_file())
}

/// A data folder of its own.
struct Home(tempfile::TempDir, PathBuf);

impl Home {
    /// `None`, and said so, without a node program.
    fn new(test: &str) -> Option<Self> {
        let Some(node) = node_program() else {
            println!("SKIPPED {test}: no linerate-node beside linerate and LINERATE_NODE is not set");
            return None;
        };
        // The journal of a host is not ours to touch: no setting is changed here, and the folder is not made.
        Some(Self(tempfile::tempdir().unwrap(), node))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("LINERATE_DATA", self.0.path())
            .env("LINERATE_NODE", &self.1)
            .output()
            .unwrap()
    }

    /// What a command prints, when it returns this code.
    fn shown(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{stdout}\n{stderr}");
        assert!(stdout.lines().all(|line| line.chars().count() <= 100 || line.starts_with('<')), "{stdout}");
        stdout
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
            panic!(
                "{e}: {} {}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

#[test]
fn latency_is_printed_stored_and_drawn() {
    let Some(home) = Home::new("latency_is_printed_stored_and_drawn") else { return };
    let text = home.shown(0, &["latency", "local", "local", "--time", "1s", "--under-load", "--block"]);
    for words in ["TCP blocking, idle", "UDP blocking, loaded", "p99.9", "Load adds"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let runs = String::from_utf8(home.run(&["runs"]).stdout).unwrap();
    assert!(runs.contains("loopback"), "{runs}");
    let again = home.shown(0, &["report"]);
    assert!(again.contains("TCP blocking, idle"), "{again}");
    let page = String::from_utf8(home.run(&["report", "--html", "-o", "-"]).stdout).unwrap();
    for words in ["Distribution of RTTs", "area healthy", "area worst", "over time"] {
        assert!(page.contains(words), "{words}");
    }
    let samples = home.json(&["latency", "local", "local", "--time", "1s", "--tcp"]);
    let phases = samples["samples"][0]["outcome"]["measured"]["tx"]["latency"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    // A busy machine has no CPU to spin on, and the phase has the reason.
    let has_answers =
        |p: &serde_json::Value| p["round_trip_ns"]["buckets"].as_array().is_some_and(|b| !b.is_empty());
    assert!(phases.iter().all(|p| p["refused"].is_string() != has_answers(p)), "{samples}");
}

#[test]
fn datagrams_sizes_and_connections_are_counted() {
    let Some(home) = Home::new("datagrams_sizes_and_connections_are_counted") else { return };
    let samples = home.json(&["udp", "local", "local", "--rate", "20M", "--time", "300ms"]);
    let measured = &samples["samples"][0]["outcome"]["measured"];
    let count = |end: &str, name: &str| measured[end]["udp"][name].as_u64().unwrap_or(0);
    // What a busy receiver had given up before it came is a loss, and is called one.
    let (sent, seen) = (count("tx", "datagrams"), count("rx", "datagrams") + count("rx", "kernel_drops"));
    let loss = measured["loss"].as_f64().unwrap();
    assert!(count("rx", "datagrams") > 0 && seen <= sent, "{measured}");
    assert!(seen == sent || loss > 0.0, "{measured}");
    let page = String::from_utf8(home.run(&["report", "--html", "-o", "-"]).stdout).unwrap();
    assert!(page.contains("one-way delay above the fastest") && page.contains("Payload over time"));
    assert_eq!(measured["asked_bps"].as_f64(), Some(20e6));
    assert!(measured["sent_bps"].as_f64().is_some_and(|bps| bps > 0.0), "{measured}");
    assert!(page.contains("of 20 Mbit/s asked for"), "the headline of the page");
    let text = home.shown(0, &["udp", "local", "local", "--flat-out", "--size", "64", "--time", "100ms"]);
    assert!(text.contains("lost on the path          "), "{text}");

    let text = home.shown(0, &["mtu", "local", "local", "--most", "9000"]);
    assert!(text.contains("both ways take 9000 bytes, the largest that was tried"), "{text}");

    let text = home.shown(0, &["connects", "local", "local", "--count", "200", "--time", "60s"]);
    assert!(text.contains("answered by the receiver  200") && text.contains("until connected"), "{text}");
}

/// A server of one answer, late by `wait` in each, until it is dropped.
struct Server(SocketAddr, Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Server {
    fn start(wait: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, over) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let ends = over.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                let mut request = Vec::new();
                let mut byte = [0; 1];
                while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    request.push(byte[0]);
                }
                // The slowness of the front end is what the test is about; a client that hangs up ends it.
                if !wait.is_zero() {
                    stream.set_read_timeout(Some(wait)).unwrap();
                    let _ = stream.read(&mut byte);
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
            }
        });
        Self(address, over, Some(thread))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.0);
        if let Some(thread) = self.2.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_slow_front_end_is_named() {
    let Some(home) = Home::new("a_slow_front_end_is_named") else { return };
    let (fast, slow) = (Server::start(Duration::ZERO), Server::start(Duration::from_secs(1)));
    let via = format!("{},{}", fast.0, slow.0);
    let named = format!("{} is", slow.0);
    // The second is its name of one version before.
    for option in ["--front-end", "--via"] {
        let text = home.shown(1, &["http", "http://files.example/f", option, &via]);
        assert!(text.contains(&named) && text.contains("slower in the first byte"), "{text}");
    }
    let page = String::from_utf8(home.run(&["report", "--html", "-o", "-"]).stdout).unwrap();
    assert!(page.contains(&slow.0.to_string()) && page.contains("first byte"));
    // A front end that is not there is a finding with its reason.
    // Nobody can listen at this port of another address of the loopback but who is there on purpose.
    let kept = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = SocketAddr::from(([127, 0, 0, 9], kept.local_addr().unwrap().port()));
    let text = home.shown(1, &["http", &format!("http://{gone}/"), "--repeat", "1"]);
    assert!(text.contains("1 of 1 downloads failed: could not connect"), "{text}");
}

#[test]
fn a_call_that_failed_is_no_run() {
    let Some(home) = Home::new("a_call_that_failed_is_no_run") else { return };
    // One host of two cannot be reached: no test runs. A folder takes no file.
    for (code, words) in [
        (3, &["survey", "--quiet", "localhost", "nowhere.invalid"][..]),
        (2, &["measure", "disk", "--quiet", "--in", "/proc"]),
    ] {
        let output = home.run(words);
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {shown}");
        assert!(!shown.contains("linerate show"), "{shown}");
        assert!(home.shown(0, &["runs"]).contains("no runs yet"), "{words:?}");
    }
    // With a run the last one is still that one.
    home.shown(0, &["measure", "latency", "localhost", "localhost", "-t", "200ms"]);
    home.run(&["survey", "--quiet", "localhost", "nowhere.invalid"]);
    assert_eq!(home.shown(0, &["runs"]).lines().count(), 1);
}

#[test]
fn what_cannot_be_asked_is_code_2_with_a_hint() {
    let Some(home) = Home::new("what_cannot_be_asked_is_code_2_with_a_hint") else { return };
    for wrong in [
        &["latency", "no body", "local"][..],
        &["latency", "local", "local", "--time", "2h"],
        &["udp", "local", "local", "--rate", "5X"],
        &["mtu", "local", "local", "--least", "1500", "--most", "1000"],
        &["connects", "local", "local", "--count", "50000"],
        &["http", "http://x/", "--from", "a b"],
    ] {
        let output = home.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong:?}");
    }
}
