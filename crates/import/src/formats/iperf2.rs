//! Text of iperf 2, client or server: lines come in, one transfer for each test and direction goes out.
//!
//! The listening port identifies the sender: the end that connected to it sends, unless the line has
//! `(reverse)`.

use super::iperf_lines::{Streams, connection, figures, lines_of};
use crate::context::Context;
use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::{iperf_amount, leading, number};

/// The format.
pub(crate) struct Iperf2;

/// Port of iperf 2 when no heading names one.
const PORT: &str = "5001";

/// Beginnings of lines that belong to a session and hold no figures that are used.
const BESIDE: [&str; 12] = [
    "-----",
    "UDP buffer size",
    "Sending ",
    "Receiving ",
    "Write buffer size",
    "Read buffer size",
    "TOS set",
    "TOS defaults",
    "Waiting for server threads",
    "WARNING:",
    "Binding to local",
    "Setting UDP buffer",
];

/// Most streams of one test.
const STREAMS_MAX: usize = 4096;
/// Options of a test in both directions at once.
const BOTH: [&str; 3] = ["-d", "--dualtest", "--full-duplex"];
/// Why its lines are of no use without those of the connections.
const BOTH_WHO: &str = "a test in both directions at once: without the lines `local … connected with …` nothing \
                        shows which figures belong to which direction";

impl Reader for Iperf2 {
    fn name(&self) -> &'static str {
        "iperf2"
    }

    fn describes(&self) -> &'static str {
        "text of iperf 2, client or server"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first().trim_start();
        heads(line)
            || line.starts_with("-----") && heads(block.line(1))
            || connection(line).is_some() && line.contains(" connected with ")
            || figures(line).is_some()
            || line.starts_with("[ ID] Interval")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut session = Session::default();
        let taken = lines_of(block, out, "iperf 2", is_of_session, |at, line, out| {
            session.line(at, line, block.at, out)
        });
        session.flush(block.at, out);
        taken
    }
}

fn heads(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("Client connecting to ")
        || line.starts_with("Server listening on TCP port")
        || line.starts_with("Server listening on UDP port")
}

fn is_of_session(line: &str) -> bool {
    let line = line.trim_start();
    figures(line).is_some() || connection(line).is_some() || line.starts_with("[ ID]") || heads(line)
}

/// One stream: its connection and its direction.
struct Stream {
    id: String,
    local: String,
    remote: String,
    sends: bool,
    /// One connection for both directions: a star marks the lines of what it receives.
    is_duplex: bool,
    flow: String,
}

#[derive(Default)]
struct Session {
    streams: Vec<Stream>,
    sending: Streams,
    receiving: Streams,
    port: Option<String>,
    peer: Option<String>,
    udp: bool,
    /// Socket buffer that was asked for, bytes; the usual one grows.
    window_bytes: Option<f64>,
    /// Maximum segment size, bytes.
    mss_bytes: Option<f64>,
    /// Bytes of a datagram.
    datagram_bytes: Option<f64>,
    /// Figures that a server reported to its client follow.
    report: bool,
    /// Line of the first figures sent, and received.
    first: [Option<usize>; 2],
}

impl Session {
    fn line(&mut self, at: usize, line: &str, context: &Context, out: &mut Sink) -> bool {
        if let Some(mut figures) = figures(line) {
            if std::mem::take(&mut self.report) {
                "receiver".clone_into(&mut figures.whose);
            }
            let starred = line.split(']').next().is_some_and(|head| head.contains('*'));
            let stream = self.streams.iter().rev().find(|s| s.id == figures.id);
            let sends = match stream {
                Some(stream) => stream.sends != (stream.is_duplex && starred),
                None => self.streams.last().map_or(!starred && !receives(context), |s| s.sends),
            };
            if self.streams.is_empty() && context.command.has(&BOTH) {
                out.unread(at, BOTH_WHO);
            } else if !(figures.id == "SUM" && self.is_mixed()) {
                self.first[usize::from(!sends)].get_or_insert(at);
                if sends { self.sending.push(figures) } else { self.receiving.push(figures) }
            }
            return true;
        }
        if let Some((id, connection)) = connection(line) {
            let port = self.port.as_deref().unwrap_or(PORT);
            let opened = connection.behind.split_once("icwnd/mss/irtt=").map(|(_, rest)| rest.split('/'));
            self.mss_bytes = opened.and_then(|mut words| leading(words.nth(1)?)).or(self.mss_bytes);
            let reverse = connection.behind.contains("(reverse)") && !connection.starred;
            let sends = (connection.local_port != port) != reverse;
            // The other direction of a test in both may be opened behind the first figures.
            let going_on = if sends { &self.receiving } else { &self.sending }.is_going_on();
            let is_other =
                going_on && self.streams.iter().all(|s| s.sends != sends && s.remote == connection.remote);
            if (!self.sending.is_empty() || !self.receiving.is_empty()) && !is_other {
                self.flush_streams(context, out);
            }
            if self.streams.len() >= STREAMS_MAX {
                return true;
            }
            self.streams.push(Stream {
                id,
                local: connection.local.to_owned(),
                remote: connection.remote.to_owned(),
                sends,
                is_duplex: connection.behind.contains("(full-duplex)"),
                flow: connection.flow(sends),
            });
            return true;
        }
        if heads(line) {
            // In a bidirectional test a server opens its own connection before the first figures.
            if !self.sending.is_empty() || !self.receiving.is_empty() {
                self.flush_streams(context, out);
            }
            self.udp = line.contains(" UDP ") || line.contains(", UDP");
            let port = line.split(" port ").nth(1).and_then(|rest| rest.split([' ', ',']).next());
            self.port = port.map(str::to_owned);
            if let Some(rest) = line.strip_prefix("Client connecting to ") {
                self.peer = rest.split(',').next().map(|host| host.trim().to_owned());
            }
            return true;
        }
        if self.sizes(line, context) {
            return true;
        }
        if line.ends_with("Server Report:") {
            self.report = true;
            return true;
        }
        line.is_empty()
            || line.starts_with("[ ID]")
            || line.starts_with('[')
                && ["] Sent ", "WARNING", "received out-of-order"].iter().any(|w| line.contains(w))
            || BESIDE.iter().any(|s| line.starts_with(s))
    }

    /// A line with the window or the segment size.
    fn sizes(&mut self, line: &str, context: &Context) -> bool {
        if let Some(rest) = line.strip_prefix("TCP window size:") {
            let is_asked = line.contains("requested") || context.command.has(&["-w", "--window"]);
            self.window_bytes = amount(rest).filter(|_| is_asked);
            return true;
        }
        // `Sending 1470 byte datagrams, IPG target: …`
        if let Some((size, _)) = line.split_once(" byte datagrams") {
            self.datagram_bytes = size.split_whitespace().next_back().and_then(number);
            return true;
        }
        if let Some((_, rest)) = line.split_once("] MSS size ") {
            self.mss_bytes = leading(rest);
            return true;
        }
        false
    }

    /// The tests of the connections so far; port and protocol stay, a server goes on.
    fn flush_streams(&mut self, context: &Context, out: &mut Sink) {
        let next = Self {
            port: self.port.clone(),
            peer: self.peer.clone(),
            udp: self.udp,
            window_bytes: self.window_bytes,
            datagram_bytes: self.datagram_bytes,
            ..Self::default()
        };
        std::mem::replace(self, next).flush(context, out);
    }

    /// A sum over streams in both directions is of no use.
    fn is_mixed(&self) -> bool {
        let all = |sends: bool| self.streams.iter().all(|s| s.sends == sends && !s.is_duplex);
        !(all(true) || all(false))
    }

    fn flush(mut self, context: &Context, out: &mut Sink) {
        let mut directions = [(true, &mut self.sending), (false, &mut self.receiving)];
        // In the order of the text, which is that of time.
        let first = self.first;
        directions.sort_by_key(|(sends, _)| first[usize::from(!*sends)]);
        for (sends, streams) in directions {
            let first = first[usize::from(!sends)].unwrap_or_default();
            let of_direction: Vec<&Stream> =
                self.streams.iter().filter(|s| s.sends == sends || s.is_duplex).collect();
            streams.opened = of_direction.len();
            let Some(mut transfer) = streams.transfer(!sends) else { continue };
            let ends = if let Some(stream) = of_direction.first() {
                if let Some(peer) = self.peer.as_deref().filter(|p| crate::context::is_host(p)) {
                    out.alias(&stream.remote, peer);
                }
                transfer.flow = Some(stream.flow.clone()).filter(|_| stream.sends == sends);
                ends::of_connection(context, out, &stream.local, &stream.remote)
            } else {
                let named = context.command.value(&["-c", "--client"]);
                // A test in both directions is of no use without the lines of the connections.
                ends::of_command(context, self.peer.as_deref().or(named), false)
                    .or_else(|| (!context.command.has(&BOTH)).then(|| ends::unnamed(context)))
            };
            let Some((here, there)) = ends else {
                out.unread(first, ends::WHO);
                continue;
            };
            transfer.ends = if sends { (here, there) } else { (there, here) };
            // The buffer is the client's: it limits what the client sends.
            transfer.window_bytes =
                self.window_bytes.filter(|_| sends && self.peer.is_some()).or(transfer.window_bytes);
            transfer.mss_bytes = self.mss_bytes;
            transfer.datagram_bytes = self.datagram_bytes;
            transfer.udp = self.udp || transfer.datagrams.is_some();
            if transfer.udp && transfer.datagrams.is_none() {
                out.unread(first, "a UDP sender does not know what arrived: the server's lines are needed");
            } else {
                transfer.put(context, out);
            }
        }
    }
}

/// `16.0 KByte (WARNING: requested 8.00 KByte)`: bytes.
fn amount(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let number = number(words.next()?)?;
    Some(number * iperf_amount(&format!("{}s", words.next()?.trim_end_matches('s')))?)
}

fn receives(context: &Context) -> bool {
    context.command.has(&["-s", "--server", "-R", "--reverse"])
}
