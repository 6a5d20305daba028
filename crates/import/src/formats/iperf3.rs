//! Text of iperf3, client or server: lines come in, one transfer for each test and direction goes out.
//!
//! The heading of the first table identifies the sender: only the sending end prints `Retr` (TCP) or
//! `Total Datagrams` without losses (UDP). In a bidirectional test each line has it (`TX-C`, `RX-C`).

use super::iperf_lines::{Streams, connection, figures, lines_of};
use crate::context::Context;
use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Iperf3;

/// Beginnings of lines that belong to a session and hold no figures that are used.
const BESIDE: [&str; 20] = [
    "iperf 3.",
    "Linux ",
    "Control connection",
    "Time:",
    "Cookie:",
    "Target Bitrate",
    "Starting Test:",
    "Test Complete",
    "- - -",
    "-----",
    "iperf Done",
    "Server output:",
    "snd_tcp_congestion",
    "rcv_tcp_congestion",
    "Server listening on",
    "iperf3: interrupt",
    "iperf3: the client",
    "iperf3: the server",
    "warning: ",
    "Set ",
];

impl Reader for Iperf3 {
    fn name(&self) -> &'static str {
        "iperf3"
    }

    fn describes(&self) -> &'static str {
        "text of iperf3, client or server"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first().trim_start();
        let sure = [
            "Connecting to host ",
            "Accepted connection from ",
            "Reverse mode, remote",
            "iperf3: error",
            "iperf 3.",
        ];
        let listens = |line: &str| {
            let rest = line.trim_start().strip_prefix("Server listening on ");
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        sure.iter().any(|s| line.starts_with(s))
            || connection(line).is_some() && line.contains(" connected to ")
            || listens(line)
            || line.starts_with("-----") && listens(block.line(1))
            || figures(line).is_some_and(|f| !f.whose.is_empty() || !f.role.is_empty())
            // Intervals alone: the names of these columns are those of iperf3.
            || line.starts_with("[ ID] Interval")
                && ["Retr", "Bitrate", "Cwnd"].iter().any(|name| line.contains(name))
                && figures(block.line(1)).is_some()
            || block.at.command.is(&["iperf3"]) && (figures(line).is_some() || line.starts_with("[ ID]"))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut session = Session::default();
        let taken = lines_of(block, out, "iperf3", is_of_session, |at, line, out| {
            session.line(at, line, block.at, out)
        });
        session.flush(block.at, out);
        taken
    }
}

fn is_of_session(line: &str) -> bool {
    let line = line.trim_start();
    figures(line).is_some()
        || connection(line).is_some()
        || ["[ ID]", "iperf Done", "- - -", "Accepted connection", "-----"]
            .iter()
            .any(|s| line.starts_with(s))
}

/// One test after the other.
#[derive(Default)]
struct Session {
    /// Connections: local and remote address, flow when this end sends and when it receives.
    connections: Vec<(String, String, [String; 2])>,
    sending: Streams,
    receiving: Streams,
    /// This end sends; `None` until a heading or a command is read.
    sends: Option<bool>,
    udp: bool,
    /// Name that the client was given.
    peer: Option<String>,
    /// Share of one CPU: sender and receiver.
    cpu: (Option<f64>, Option<f64>),
    /// Maximum segment size, bytes.
    mss_bytes: Option<f64>,
    /// Line of the first figures.
    first: usize,
}

impl Session {
    /// Takes a line; `false` when it is none of iperf3.
    fn line(&mut self, at: usize, line: &str, context: &Context, out: &mut Sink) -> bool {
        if let Some(figures) = figures(line) {
            if self.sending.is_empty() && self.receiving.is_empty() {
                self.first = at;
            }
            let sends = match figures.role.as_bytes() {
                [b'T', ..] => true,
                [b'R', ..] => false,
                _ => self.sends.unwrap_or(!context.command.has(&["-s", "--server", "-R", "--reverse"])),
            };
            if sends {
                self.sending.push(figures);
            } else {
                self.receiving.push(figures);
            }
            return true;
        }
        if let Some((_, connection)) = connection(line) {
            if !self.sending.is_empty() || !self.receiving.is_empty() {
                self.flush(context, out);
            }
            let flows = [connection.flow(true), connection.flow(false)];
            self.connections.push((connection.local.to_owned(), connection.remote.to_owned(), flows));
            return true;
        }
        if let Some(heading) = line.strip_prefix("[ ID]") {
            self.udp |= heading.contains("Datagrams");
            if self.sends.is_none() && !heading.contains("[Role]") {
                let datagrams = heading.contains("Total Datagrams") && !heading.contains("Lost");
                // A client sends by default. Where the system counts no retransmissions, its heading is that
                // of a receiver.
                let is_client = self.peer.is_some() || context.command.has(&["-c", "--client"]);
                // What was asked for counts more: the heading of a summary has the sender's `Retr` too.
                let is_reversed = context.command.has(&["-R", "--reverse"]);
                self.sends = Some(!is_reversed && (heading.contains("Retr") || datagrams || is_client));
            }
            return true;
        }
        if let Some(rest) = line.strip_prefix("Connecting to host ") {
            self.flush(context, out);
            self.peer = rest.split(',').next().map(|host| host.trim().to_owned());
            return true;
        }
        if line.starts_with("Accepted connection from ") {
            self.flush(context, out);
            return true;
        }
        if line.starts_with("Reverse mode, remote host") {
            self.sends = Some(false);
            return true;
        }
        if let Some(rest) = line.strip_prefix("CPU Utilization: ") {
            self.used(rest);
            return true;
        }
        if let Some(rest) = line.strip_prefix("TCP MSS: ") {
            self.mss_bytes = leading(rest);
            return true;
        }
        if let Some(why) = line.strip_prefix("iperf3: error - ") {
            self.failed(at, why, context, out);
            return true;
        }
        line.is_empty() || BESIDE.iter().any(|s| line.starts_with(s))
    }

    /// `local/sender 0.8% (0.3%u/0.6%s), remote/receiver 7.9% (…)`
    fn used(&mut self, rest: &str) {
        for part in rest.split("), ") {
            let share = part.split_whitespace().nth(1).and_then(leading).map(|percent| percent / 100.0);
            match part.split_whitespace().next() {
                Some(who) if who.ends_with("/sender") => self.cpu.0 = share,
                Some(who) if who.ends_with("/receiver") => self.cpu.1 = share,
                _ => {}
            }
        }
    }

    /// A test that could not run is evidence if the tool is not the cause: no route to the server.
    fn failed(&mut self, at: usize, why: &str, context: &Context, out: &mut Sink) {
        if why.contains("unable to connect") && !why.contains("refused") {
            let peer =
                self.peer.clone().or_else(|| context.command.value(&["-c", "--client"]).map(str::to_owned));
            if let Some((from, to)) = ends::of_command(context, peer.as_deref(), false) {
                return super::iperf3_json::unreachable(from, to, why, context, out);
            }
        }
        out.unread(at, "a test that did not run: the tool's own error, not the network's");
    }

    fn flush(&mut self, context: &Context, out: &mut Sink) {
        let mut test = std::mem::take(self);
        test.sending.opened = test.connections.len();
        let both = !test.sending.is_empty() && !test.receiving.is_empty();
        if both {
            (test.sending.opened, test.receiving.opened) = (0, 0);
        } else {
            test.receiving.opened = test.connections.len();
        }
        let mut ends = test.connections.first().and_then(|(local, remote, _)| {
            if let Some(peer) = test.peer.as_deref().filter(|p| crate::context::is_host(p)) {
                out.alias(remote, peer);
            }
            ends::of_connection(context, out, local, remote)
        });
        if test.connections.is_empty() {
            let peer =
                test.peer.clone().or_else(|| context.command.value(&["-c", "--client"]).map(str::to_owned));
            ends = ends::of_command(context, peer.as_deref(), false).or_else(|| {
                let is_any = !(test.sending.is_empty() && test.receiving.is_empty());
                is_any.then(|| ends::unnamed(context))
            });
        }
        for (streams, receiving) in [(&test.sending, false), (&test.receiving, true)] {
            let Some(mut transfer) = streams.transfer(receiving) else { continue };
            let Some((here, there)) = ends.clone() else {
                out.unread(test.first, ends::WHO);
                continue;
            };
            transfer.ends = if receiving { (there, here) } else { (here, there) };
            // Streams of a bidirectional test are opened in turn.
            let at = usize::from(both && receiving).min(test.connections.len().saturating_sub(1));
            transfer.flow =
                test.connections.get(at).map(|(_, _, flows)| flows[usize::from(receiving)].clone());
            transfer.udp = test.udp;
            transfer.cpu = test.cpu;
            transfer.mss_bytes = test.mss_bytes;
            if test.udp && !receiving && transfer.datagrams.is_none() {
                out.unread(
                    test.first,
                    "a UDP sender does not know what arrived: the server's lines are needed",
                );
                continue;
            }
            transfer.put(context, out);
        }
    }
}
