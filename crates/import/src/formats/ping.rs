//! `ping`, with and without `-M do`: small ones measure the RTT, large ones probe the path MTU. Lines come
//! in, one test goes out. A large one without `-M do` may be fragmented: its arrival proves nothing, its loss
//! is a lost probe.

use std::net::Ipv4Addr;

use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;
use linerate_model::kind::{MtuPlan, RttPlan, TestKind};
use linerate_model::path_mtu::MtuProbe;
use linerate_model::sample::{Measurement, Outcome};

use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::{NAMELESS, Raw, Sink};
use crate::units::number;

/// The format.
pub(crate) struct Ping;

/// IP packets of this size and more are probes of the path MTU; every path takes 576 bytes.
const PROBE_BYTES: u32 = 576;
/// With fewer pings than this the packet loss is not significant, unless it is large.
const LOSS_OF_MIN: f64 = 20.0;
/// As many lost answers, and such a share of all, are significant among few pings too.
const LARGE_MIN: (f64, f64) = (3.0, 0.3);
/// Largest packet that may pass unfragmented without `-M do` on a usual Ethernet.
const ETHERNET_BYTES: u32 = 1500;

/// `PING arc-1 (10.0.0.1) from 10.0.0.2 : 1472(1500) bytes of data.`: name, address, own address, packet
/// size.
fn title(line: &str) -> Option<(&str, &str, Option<&str>, u32)> {
    let rest = line.trim().strip_prefix("PING ")?;
    let (name, rest) = rest.split_at(rest.find(['(', ' '])?);
    // Some versions print the address of a name in brackets, some print none.
    let (address, rest) = match rest.trim_start().strip_prefix('(') {
        Some(inside) => inside.split_once(')').unwrap_or((name, inside)),
        None => (name, rest),
    };
    let own = rest.split_once("from ").and_then(|(_, after)| after.split_whitespace().next());
    let data = rest.split_once("bytes").map_or(rest, |(head, _)| head).trim();
    let data = data.strip_suffix("data").unwrap_or(data).trim();
    let size = data.split_whitespace().next_back()?;
    // IPv6 prints the data only: 40 bytes of IPv6 and 8 of ICMPv6 come on top; so does BusyBox with IPv4.
    let head =
        if address.contains(':') || rest.contains("data bytes") && name.contains(':') { 48 } else { 28 };
    let bytes = match size.split_once('(') {
        Some((_, whole)) => whole.trim_end_matches(')').parse().ok()?,
        None => size.parse::<u32>().ok()?.checked_add(head)?,
    };
    // IPv6 repeats the name: `PING arc-2(arc-2 (fd00::2)) 56 data bytes`.
    let address = address.rsplit('(').next().unwrap_or(address);
    Some((name, address, own, bytes))
}

/// Ends and size of answers whose title is gone: `64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=2.00 ms`,
/// `64 bytes from arc-2 (10.0.0.2): icmp_seq=1 …`.
fn answer(line: &str) -> Option<(&str, &str, u32)> {
    let (bytes, rest) = line.trim().split_once(" bytes from ")?;
    let (from, rest) = rest.split_once(": ")?;
    if !rest.contains("seq=") || !rest.contains(" time=") {
        return None;
    }
    let (name, address) = match from.split_once(" (") {
        Some((name, address)) => (name, address.trim_end_matches(')')),
        None => (from, from),
    };
    // ICMP's 8 bytes are counted, the header of IP is not.
    Some((name, address, bytes.parse::<u32>().ok()?.checked_add(20)?))
}

#[derive(Default)]
struct Answers {
    times_ms: Vec<f64>,
    sent: Option<f64>,
    received: Option<f64>,
    mean_ms: Option<f64>,
    refused_mtu: Option<u32>,
    /// The sender's own kernel refused, before anything was sent.
    is_local: bool,
}

impl Answers {
    /// Packet loss; `None` where all were, or too few were sent.
    fn loss(&self) -> Option<f64> {
        let (sent, received) = self.sent.zip(self.received)?;
        let (lost, share) = (sent - received, 1.0 - received / sent);
        let is_large = lost >= LARGE_MIN.0 && share >= LARGE_MIN.1;
        (lost > 0.0 && (sent >= LOSS_OF_MIN || is_large)).then_some(share)
    }

    fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(time) = line.split_once(" time=").and_then(|(_, t)| number(t.split_whitespace().next()?))
        {
            self.times_ms.push(time);
            return true;
        }
        // `local error: message too long, mtu=1500`, `Frag needed and DF set (mtu = 1400)`,
        // `Packet too big: mtu=1400`.
        let lower = line.to_lowercase();
        if ["too long", "too large", "frag needed", "too big"].iter().any(|w| lower.contains(w)) {
            let mtu = lower.split("mtu").nth(1).map(|t| t.trim_start_matches([' ', '=', ':']));
            self.is_local |= lower.contains("local error") || lower.contains("sendmsg");
            self.refused_mtu = mtu
                .and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
                .or(self.refused_mtu)
                .or(Some(0));
            return true;
        }
        if line.contains(" packets transmitted, ") {
            let mut counts =
                line.split(", ").filter_map(|part| Some((number(part.split(' ').next()?)?, part)));
            self.sent = counts.next().map(|(n, _)| n);
            self.received = counts.find(|(_, part)| part.contains("received")).map(|(n, _)| n);
            return true;
        }
        if let Some((_, values)) = line.split_once("min/avg/max").and_then(|(_, rest)| rest.split_once("= "))
        {
            self.mean_ms = values.split('/').nth(1).and_then(number);
            return true;
        }
        line.is_empty()
            || line.starts_with("--- ")
            || ["From ", "no answer", "Request timeout", "ping: ", "pipe "]
                .iter()
                .any(|s| line.starts_with(s))
            || line.contains(" bytes from ")
            || line == "^C"
    }
}

impl Reader for Ping {
    fn name(&self) -> &'static str {
        "ping"
    }

    fn describes(&self) -> &'static str {
        "ping: RTTs, and path MTU with -M do -s"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        title(block.first()).is_some() || answer(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let titled = title(block.first());
        let bare = || answer(block.first()).map(|(name, address, bytes)| (name, address, None, bytes));
        let Some((name, address, own, bytes)) = titled.or_else(bare) else {
            out.unread(0, "no title of ping");
            return 1;
        };
        let mut answers = Answers::default();
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(usize::from(titled.is_some())) {
            if !answers.line(line) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        if crate::context::is_host(name) {
            out.alias(address, name);
        }
        let ends = match own {
            Some(own) => ends::of_connection(block.at, out, own, address),
            // Where it runs, the tool does not print.
            None => ends::of_command(block.at, Some(address), false).or_else(|| {
                crate::context::is_host(address).then(|| (NAMELESS.to_owned(), address.to_owned()))
            }),
        };
        match ends {
            Some(ends) => put(&answers, ends, bytes, block, out),
            None => out.unread(0, ends::WHO),
        }
        taken
    }
}

fn put(answers: &Answers, (from, to): (String, String), bytes: u32, block: &Block<'_>, out: &mut Sink) {
    let received = answers.received.unwrap_or(answers.times_ms.len() as f64);
    let sent = answers.sent.unwrap_or(received.max(1.0));
    if sent < 1.0 {
        return out.unread(0, "nothing was sent");
    }
    let whole = block.at.command.value(&["-M"]).is_none_or(|m| m == "do");
    let unfragmented = block.at.command.value(&["-M"]) == Some("do") || answers.refused_mtu.is_some();
    let probe =
        bytes >= PROBE_BYTES && (unfragmented || (whole && (bytes <= ETHERNET_BYTES || received == 0.0)));
    let mut times = answers.times_ms.clone();
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().or(answers.mean_ms).map(|ms| ms * 1000.0);
    let (kind, outcome) = if probe {
        let tries = sent.clamp(1.0, 255.0);
        if answers.is_local {
            out.of_host(&from);
            let key = format!("local_mtu.{}", out.aliases.get(&to).unwrap_or(&to).replace('.', "/"));
            out.fact(format!("{key}.refused_bytes"), FactValue::Int(i64::from(bytes)));
            if let Some(mtu) = answers.refused_mtu.filter(|mtu| *mtu > 0) {
                out.fact(format!("{key}.bytes"), FactValue::Int(i64::from(mtu)));
            }
        }
        let refused_mtu = answers.refused_mtu.map(|mtu| if mtu == 0 { bytes.saturating_sub(1) } else { mtu });
        let answered = (received.clamp(0.0, tries)) as u8;
        let probe = MtuProbe { bytes, sent: tries as u8, answered, refused_mtu };
        let measured = Measurement { mtu: vec![probe], ..Measurement::default() };
        (
            TestKind::from(MtuPlan { sizes: vec![bytes], tries: tries as u8 }),
            Outcome::Measured(Box::new(measured)),
        )
    } else {
        let kind = TestKind::from(RttPlan { count: sent.clamp(1.0, 65535.0) as u16 });
        match middle {
            Some(us) if received > 0.0 => {
                let loss = answers.loss();
                if loss.is_some() {
                    let to = out.aliases.get(&to).unwrap_or(&to).clone();
                    out.note(format!(
                        "{}: {received} of {sent} pings from {from} to {to} were answered; a ping does not \
                         show in which direction the others were lost",
                        block.at.file
                    ));
                }
                let measured = Measurement { rtt_idle_us: Some(us), loss, ..Measurement::default() };
                (kind, Outcome::Measured(Box::new(measured)))
            }
            _ => (kind, Outcome::NothingThrough { reason: format!("none of {sent} pings was answered") }),
        }
    };
    let layer = if is_outside(&to) { Layer::Underlay } else { block.at.layer() };
    out.sample(Raw { from, to, layer, kind, outcome, flow: None, start_ms: 0, variant: None });
}

/// Whether an address is one of the internet, which is in no overlay: those of examples may be in one.
fn is_outside(address: &str) -> bool {
    address.parse::<Ipv4Addr>().is_ok_and(|ip| {
        let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
        let is_own = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
        !is_own && !is_shared
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_internet_are_in_no_overlay() {
        assert!(["9.9.9.9", "1.1.1.1"].iter().all(|address| is_outside(address)));
        let own =
            ["10.244.1.7", "172.16.0.1", "192.168.2.1", "100.64.0.9", "192.0.2.7", "127.0.0.1", "arc-1", ""];
        assert!(!own.iter().any(|address| is_outside(address)));
    }

    #[test]
    fn titles_of_both_families() {
        assert_eq!(
            title("PING 10.0.0.2 (10.0.0.2) 1472(1500) bytes of data."),
            Some(("10.0.0.2", "10.0.0.2", None, 1500))
        );
        assert_eq!(
            title("PING arc-2 (10.0.0.2) from 10.0.0.1 eth0: 56(84) bytes of data."),
            Some(("arc-2", "10.0.0.2", Some("10.0.0.1"), 84))
        );
        assert_eq!(title("PING arc-2(arc-2 (fd00::2)) 56 data bytes").map(|t| t.3), Some(104));
        assert_eq!(title("PING arc-2 56(84) bytes of data."), Some(("arc-2", "arc-2", None, 84)));
        assert_eq!(title("PING 10.0.0.2 1300(1328) bytes of data.").map(|t| t.3), Some(1328));
        assert_eq!(title("PING"), None);
        assert_eq!(title("PING x (y) z bytes"), None);
    }
}
