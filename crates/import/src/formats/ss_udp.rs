//! `ss -uamn`: sockets of UDP with their memory, and `netstat -lun` without it. Lines come in; for each port
//! the bytes that wait, the size of its buffer and the datagrams that found it full go out, as facts
//! `socket.udp.<port>.…`.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// `ss -uamn`.
pub(crate) struct SsUdp;
/// `netstat -lun`.
pub(crate) struct NetstatUdp;

/// `UNCONN 212992 0 0.0.0.0:514 0.0.0.0:*`: bytes that wait, and the port.
fn socket(line: &str) -> Option<(i64, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let words = words.strip_prefix(&["udp"]).unwrap_or(&words);
    let [state, waiting, sending, local, ..] = words else { return None };
    let (_, port) = local.rsplit_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    sending.parse::<i64>().ok()?;
    (["UNCONN", "ESTAB"].contains(state) && is_port).then_some((waiting.parse().ok()?, port))
}

/// `udp   0      0 0.0.0.0:1900   0.0.0.0:*    17804/perl`: bytes that wait, and the port. Those of TCP are
/// not read.
fn socket_of_netstat(line: &str) -> Option<(i64, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [protocol, waiting, sending, local, remote, ..] = words[..] else { return None };
    let (_, port) = local.rsplit_once(':')?;
    sending.parse::<i64>().ok()?;
    let is_udp = ["udp", "udp6", "udplite"].contains(&protocol) && remote.contains(':');
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (is_udp && is_port).then_some((waiting.parse().ok()?, port))
}

/// The heading of `netstat -l`, in whatever language: `Proto Recv-Q Send-Q …`.
fn is_heading_of_netstat(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("Proto") && words.next() == Some("Recv-Q")
}

impl Reader for NetstatUdp {
    fn name(&self) -> &'static str {
        "netstat-u"
    }

    fn describes(&self) -> &'static str {
        "netstat -lun: what waits in UDP sockets"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let first = block.first();
        socket_of_netstat(first).is_some()
            || is_heading_of_netstat(first) && (1..8).any(|n| socket_of_netstat(block.line(n)).is_some())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        let mut taken = 0;
        for line in block.lines {
            let is_tcp = line.starts_with("tcp") && line.split_whitespace().count() >= 5;
            if let Some((waiting, port)) = socket_of_netstat(line) {
                // Several addresses of one port: the fullest.
                let of_port = most.entry(port).or_default();
                *of_port = waiting.max(*of_port);
            } else if !(is_heading_of_netstat(line) || is_tcp) {
                break;
            }
            taken += 1;
        }
        for (port, waiting) in most {
            out.fact(format!("socket.udp.{port}.waiting_bytes"), FactValue::Int(waiting));
        }
        taken.max(1)
    }
}

/// `skmem:(r212992,rb212992,t0,tb212992,f0,w0,o0,bl0,d145418)`: one number by its letters.
fn memory(line: &str, name: &str) -> Option<i64> {
    let inside = line.split("skmem:(").nth(1)?.split(')').next()?;
    inside.split(',').find_map(|part| {
        let digits = part.find(|c: char| c.is_ascii_digit())?;
        (&part[..digits] == name).then(|| part[digits..].parse().ok())?
    })
}

impl Reader for SsUdp {
    fn name(&self) -> &'static str {
        "ss-u"
    }

    fn describes(&self) -> &'static str {
        "ss -uamn: buffers of UDP sockets and their drops"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        // Those of TCP have timers.
        let memory_at = |n: usize| block.line(n).contains("skmem:(") && !block.line(n).contains("rto:");
        let is_udp = |n: usize| socket(block.line(n)).is_some() && (memory_at(n) || memory_at(n + 1));
        is_udp(0) || (block.first().starts_with("State ") || block.first().starts_with("Netid ")) && is_udp(1)
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut port: Option<String> = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some((waiting, name)) = socket(line) {
                out.fact(format!("socket.udp.{name}.waiting_bytes"), FactValue::Int(waiting));
                port = Some(name.to_owned());
            } else if !(line.contains("skmem:(") || line.starts_with("State ") || line.starts_with("Netid "))
            {
                break;
            }
            if let Some(port) = port.as_ref().filter(|_| line.contains("skmem:(")) {
                for (name, fact) in [("rb", "buffer_bytes"), ("d", "drops")] {
                    if let Some(number) = memory(line, name) {
                        out.fact(format!("socket.udp.{port}.{fact}"), FactValue::Int(number));
                    }
                }
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}
