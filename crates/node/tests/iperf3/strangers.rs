//! Our server among strangers: more silent connections than it keeps, no descriptor left, options of one
//! client, results of any length. Clients of iperf3 are served all the same, as if nothing had been there
//! before them.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_testkit::{TestEnvironment, peak_memory_kib, wait_until};
use serde_json::Value;

use super::stage::{Server, Whose, client, iperf3, json};
use super::{byte, connected, vanish};

/// More than a server keeps of one address.
const MANY: usize = 600;

/// Most memory of a server that keeps results of at most 256 KiB, KiB.
const MEMORY_KIB_MAX: u64 = 64 << 10;

const TEST: [&str; 5] = ["-t", "1", "-b", "10M", "-J"];

/// Our own client needs no other program; iperf3's is tried where it is installed.
fn inside(name: &str) -> bool {
    linerate_testkit::inside(&format!("strangers::{name}"), TestEnvironment::Network)
}

fn clients() -> Vec<Whose> {
    let installed = iperf3().arg("--version").output().is_ok_and(|output| output.status.success());
    if installed { vec![Whose::Debians, Whose::Ours] } else { vec![Whose::Ours] }
}

fn assert_served() {
    for whose in clients() {
        json(&client(whose, "127.0.0.1", &TEST, &[]));
    }
}

fn framed(parameters: &[u8]) -> Vec<u8> {
    [&(parameters.len() as u32).to_be_bytes()[..], parameters].concat()
}

#[test]
fn silent_connections_do_not_keep_a_client_out() {
    if !inside("silent_connections_do_not_keep_a_client_out") {
        return;
    }
    let _server = Server::start(Whose::Ours, &[]);
    for whose in clients() {
        let silent: Vec<TcpStream> = (0..MANY).map(|_| connected()).collect();
        json(&client(whose, "127.0.0.1", &TEST, &[]));
        drop(silent);
    }
}

/// A server that may have so many descriptors. It is ended, whatever happens.
struct Poor(Child);

impl Poor {
    fn start(descriptors: usize) -> Self {
        let _ = Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
        let line = format!("ulimit -n {descriptors} && exec \"$0\" iperf3 -s");
        let mut command = Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_linerate-node")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = Self(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listening on"), "{line}");
        server
    }
}

impl Drop for Poor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_without_descriptors_goes_on() {
    if !inside("a_server_without_descriptors_goes_on") {
        return;
    }
    let mut server = Poor::start(64);
    let silent: Vec<TcpStream> = (0..90).map(|_| connected()).collect();
    assert_served();
    assert!(server.0.try_wait().unwrap().is_none(), "it still serves");
    drop(silent);
}

/// Connections of the server that send with this type of service.
fn marked(tos: &str) -> usize {
    let output = Command::new("ss")
        .args(["-tnH", "--tos", "state", "established", "sport", "=", ":5201"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).matches(&format!("tos:{tos}")).count()
}

#[test]
fn the_type_of_service_of_one_client_ends_with_it() {
    if !inside("the_type_of_service_of_one_client_ends_with_it") {
        return;
    }
    let _server = Server::start(Whose::Ours, &[]);
    let mut control = connected();
    control.write_all(&[b'c'; 37]).unwrap();
    assert_eq!(byte(&mut control), Some(9));
    let parameters = br#"{"tcp":true,"omit":0,"time":60,"num":0,"blockcount":0,"parallel":1,"TOS":184}"#;
    control.write_all(&framed(parameters)).unwrap();
    assert_eq!(byte(&mut control), Some(10));
    let between = connected();
    let mut stream = connected();
    stream.write_all(&[b'c'; 37]).unwrap();
    assert_eq!(byte(&mut control), Some(1), "the test starts");
    assert_eq!(marked("0xb8"), 1, "the stream of the test and nothing else");
    vanish(control);
    json(&client(Whose::Ours, "127.0.0.1", &TEST, &[]));
    drop(stream);
    let after = connected();
    wait_until("the stream of the test is gone", || marked("0xb8") == 0);
    drop((between, after));
}

/// What the server of a plain test says about its sockets.
fn sockets() -> Vec<Value> {
    let output = client(Whose::Ours, "127.0.0.1", &["-n", "1M", "-J", "--get-server-output"], &[]);
    let document = json(&output);
    let start = &document["server_output_json"]["start"];
    ["tcp_mss_default", "sock_bufsize", "sndbuf_actual", "rcvbuf_actual"]
        .map(|key| start[key].clone())
        .to_vec()
}

#[test]
fn buffers_and_segments_of_one_client_end_with_it() {
    if !inside("buffers_and_segments_of_one_client_end_with_it") {
        return;
    }
    let _server = Server::start(Whose::Ours, &["-J"]);
    let before = sockets();
    assert!(before.iter().any(|value| value.as_u64().is_some_and(|number| number > 0)), "{before:?}");
    for line in ["-w 20K -M 600 -n 1M -J", "-w 20K -n 1M -R -J", "-M 600 -n 1M -J", "-u -w 20K -n 100K -J"] {
        let arguments: Vec<&str> = line.split(' ').collect();
        json(&client(Whose::Ours, "127.0.0.1", &arguments, &[]));
        assert_eq!(sockets(), before, "after {line}");
    }
    // One that goes away before its streams are there.
    let mut control = connected();
    control.write_all(&[b'w'; 37]).unwrap();
    assert_eq!(byte(&mut control), Some(9));
    let parameters = br#"{"tcp":true,"omit":0,"time":1,"parallel":1,"window":20000,"MSS":600}"#;
    control.write_all(&framed(parameters)).unwrap();
    assert_eq!(byte(&mut control), Some(10));
    vanish(control);
    // A client that meets the server before it noticed is told that it is busy.
    wait_until("the server is free again", || {
        client(Whose::Ours, "127.0.0.1", &["-n", "1M", "-J"], &[]).status.success()
    });
    assert_eq!(sockets(), before, "after one that vanished");
}

/// A client in the middle of a test over TCP, whose server waits for results of it.
fn exchanging(parameters: &[u8]) -> TcpStream {
    let mut control = connected();
    control.write_all(&[b'r'; 37]).unwrap();
    assert_eq!(byte(&mut control), Some(9));
    control.write_all(&framed(parameters)).unwrap();
    assert_eq!(byte(&mut control), Some(10));
    let mut stream = connected();
    stream.write_all(&[b'r'; 37]).unwrap();
    assert_eq!([byte(&mut control), byte(&mut control)], [Some(1), Some(2)]);
    // The end of the test, and the word to exchange results.
    control.write_all(&[4]).unwrap();
    drop(stream);
    assert_eq!(byte(&mut control), Some(13));
    control
}

#[test]
fn results_beyond_the_largest_test_are_refused_before_they_are_kept() {
    if !inside("results_beyond_the_largest_test_are_refused_before_they_are_kept") {
        return;
    }
    let _server = Server::start(Whose::Ours, &[]);
    let parameters = br#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1}"#;
    let mut control = exchanging(parameters);
    control.write_all(&(256_u32 * 1024 + 1).to_be_bytes()).unwrap();
    // The server gives it up without a byte of the message. One that waits for it would let the time-out
    // pass.
    let end = control.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert!(!matches!(end, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{end:?}");
    assert_served();
}

#[test]
fn the_largest_results_take_little_memory() {
    if !inside("the_largest_results_take_little_memory") {
        return;
    }
    let server = Server::start(Whose::Ours, &[]);
    let parameters = br#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1}"#;
    // As many values as go into the largest message: streams, and numbers in a list that is not read.
    let stream = "{\"id\":1,\"bytes\":1},";
    for (head, part, tail) in [("{\"streams\":[", stream, "{}]}"), ("{\"x\":[", "{},", "{}]}")] {
        let parts = (256 * 1024 - head.len() - tail.len()) / part.len();
        let message = format!("{head}{}{tail}", part.repeat(parts));
        let mut control = exchanging(parameters);
        control.write_all(&framed(message.as_bytes())).unwrap();
        // Accepted, or refused with the end of the connection: it was read by then.
        let end = control.read(&mut [0]).map_err(|error| error.kind());
        assert!(!matches!(end, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{end:?}");
        let peak = peak_memory_kib(server.id());
        assert!((1..=MEMORY_KIB_MAX).contains(&peak), "{peak} KiB for {} bytes of `{part}`", message.len());
    }
}

#[test]
fn datagrams_of_another_host_do_not_hold_a_server() {
    if !inside("datagrams_of_another_host_do_not_hold_a_server") {
        return;
    }
    let _server = Server::start(Whose::Ours, &[]);
    let mut control = connected();
    control.write_all(&[b'u'; 37]).unwrap();
    assert_eq!(byte(&mut control), Some(9));
    let parameters = br#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":1000}"#;
    control.write_all(&framed(parameters)).unwrap();
    assert_eq!(byte(&mut control), Some(10));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
                while !over.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&[1; 4], "127.0.0.1:5201");
                }
            });
        }
        // The client goes, and the server has to notice while they keep coming.
        control.shutdown(std::net::Shutdown::Write).unwrap();
        let end = control.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        over.store(true, Ordering::Relaxed);
        assert!(!matches!(end, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "{end:?}");
    });
    assert_served();
}
