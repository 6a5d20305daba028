//! `ip addr`, `ip link`, `ip -s link`, `ip -o addr` as text, and `ifconfig` of Linux. Blocks of lines come
//! in; MTU, addresses and counters go out.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use super::ip_json::{addresses_of, stat};
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct IpText;

/// `2: em1@if3: <UP,LOWER_UP> mtu 1500 qdisc mq state UP …`: device and the rest.
fn device(line: &str) -> Option<(&str, &str)> {
    let (index, rest) = line.split_once(": ")?;
    index.trim().parse::<u32>().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    let name = name.split('@').next()?;
    (!name.is_empty() && !name.contains(' ')).then_some((name, rest))
}

/// `2: em1    inet 10.0.0.1/24 brd …` of `ip -o addr`: device and address.
fn one_line(line: &str) -> Option<(&str, &str)> {
    let (index, rest) = line.split_once(": ")?;
    index.trim().parse::<u32>().ok()?;
    let mut words = rest.split_whitespace();
    let name = words.next()?;
    let family = words.next()?;
    let address = words.next()?;
    (family.starts_with("inet") && address.contains('/')).then_some((name.split('@').next()?, address))
}

/// `em1: flags=4163<UP,BROADCAST>  mtu 1500` or `em1  Link encap:Ethernet  HWaddr …` of `ifconfig`.
fn ifconfig(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(' ') {
        return None;
    }
    line.split_once(": flags=").or_else(|| {
        let (name, rest) = line.split_once(' ')?;
        rest.trim_start().strip_prefix("Link encap:").map(|rest| (name, rest))
    })
}

/// Device of counters that name none.
const UNNAMED: &str = "unnamed";

/// Counters of `ifconfig` without the head of their device.
fn is_part(line: &str) -> bool {
    let line = line.trim_start();
    ["RX packets:", "TX packets:", "RX packets ", "TX packets ", "RX errors ", "TX errors "].iter().any(
        |head| line.strip_prefix(head).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())),
    )
}

/// Word after another.
fn after<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let mut words = line.split([' ', '\t', '>']).filter(|w| !w.is_empty());
    words.find(|w| *w == word)?;
    words.next()
}

/// `packets 812  bytes 1200 (1.1 KiB)`, `errors 0  dropped 7  overruns 0  frame 0`, and the same with colons.
fn ifconfig_counters(nic: &str, side: &'static str, rest: &str, out: &mut Sink) {
    let words: Vec<&str> = rest.split([' ', ':']).filter(|word| !word.is_empty()).collect();
    for pair in words.windows(2) {
        let name = match pair[0] {
            "overruns" => format!("{side}_fifo_errors"),
            "frame" => "rx_frame_errors".to_owned(),
            "collisions" => "collisions".to_owned(),
            "packets" | "bytes" | "errors" | "dropped" | "carrier" => stat(side, pair[0]),
            _ => continue,
        };
        if let Ok(value) = pair[1].parse() {
            out.counter(format!("{nic}.stat.{name}"), value);
        }
    }
}

#[derive(Default)]
struct Device {
    nic: String,
    addresses: Vec<String>,
    /// Side and names of the counters that the next line holds.
    heading: Option<(&'static str, Vec<String>)>,
}

impl Reader for IpText {
    fn name(&self) -> &'static str {
        "ip"
    }

    fn describes(&self) -> &'static str {
        "ip addr, ip -s link, ifconfig"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let line = block.first();
        device(line).is_some() || one_line(line).is_some() || ifconfig(line).is_some() || is_part(line)
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut now = Device::default();
        if is_part(block.first()) {
            // `ifconfig eth0 | grep RX`: the device is in the command, or nowhere.
            let asked = block.at.command.last_plain().filter(|_| block.at.command.is(&["ifconfig"]));
            now.nic = key(asked.or(block.at.nic.as_deref()).unwrap_or(UNNAMED));
        }
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some((name, rest)) = device(line).or_else(|| ifconfig(line)) {
                addresses_of(&now.nic, std::mem::take(&mut now.addresses), block, out);
                now = Device { nic: key(name), ..Device::default() };
                head(&now.nic, rest, out);
            } else if let Some((name, address)) = one_line(line) {
                if now.nic != key(name) {
                    addresses_of(&now.nic, std::mem::take(&mut now.addresses), block, out);
                    now = Device { nic: key(name), ..Device::default() };
                }
                now.address(address, line);
            } else if (line.starts_with([' ', '\t']) || is_part(line)) && !now.nic.is_empty() {
                now.inside(line.trim(), out);
            } else if !line.trim().is_empty() {
                break;
            }
            taken = at + 1;
        }
        addresses_of(&now.nic, now.addresses, block, out);
        taken.max(1)
    }
}

fn head(nic: &str, rest: &str, out: &mut Sink) {
    for (word, fact) in [("mtu", "mtu"), ("qlen", "txqueuelen")] {
        if let Some(n) = after(rest, word).and_then(|n| n.parse().ok()) {
            out.fact(format!("{nic}.{fact}"), FactValue::Int(n));
        }
    }
    for (word, fact) in [("qdisc", "qdisc"), ("master", "master")] {
        if let Some(value) = after(rest, word) {
            out.text(format!("{nic}.{fact}"), value);
        }
    }
    if let Some(state) = after(rest, "state") {
        let up = rest.split('>').next().is_some_and(|flags| flags.split(',').any(|f| f == "UP"));
        out.text(format!("{nic}.state"), &if up { state.to_lowercase() } else { "off".to_owned() });
    }
}

impl Device {
    fn address(&mut self, address: &str, line: &str) {
        if after(line, "scope") != Some("link") {
            self.addresses.push(address.to_owned());
        }
    }

    fn inside(&mut self, line: &str, out: &mut Sink) {
        let nic = self.nic.clone();
        if let Some(address) = line.strip_prefix("inet ").or_else(|| line.strip_prefix("inet6 ")) {
            let plain = address.trim_start_matches("addr:").split_whitespace().next().unwrap_or("");
            // `ifconfig` prints the mask separately.
            let mask = after(line, "netmask")
                .or_else(|| line.split("Mask:").nth(1))
                .or_else(|| after(line, "prefixlen"));
            let prefix = mask
                .and_then(|m| m.parse::<std::net::Ipv4Addr>().ok())
                .map(|m| u32::from(m).count_ones().to_string());
            let prefix = prefix.or_else(|| mask.map(str::to_owned));
            let whole = if plain.contains('/') {
                plain.to_owned()
            } else {
                format!("{plain}/{}", prefix.unwrap_or_default())
            };
            if !plain.is_empty() && !whole.ends_with('/') && !line.contains("<link>") {
                self.address(&whole, line);
            }
            return;
        }
        if let Some(mac) = line.strip_prefix("link/ether ").or_else(|| line.strip_prefix("ether ")) {
            out.text(format!("{nic}.mac"), mac.split_whitespace().next().unwrap_or_default());
        }
        for (begin, side) in [("RX:", "rx"), ("TX:", "tx")] {
            if let Some(names) =
                line.strip_prefix(begin).filter(|names| names.trim_start().starts_with("bytes "))
            {
                self.heading = Some((side, names.split_whitespace().map(str::to_owned).collect()));
                return;
            }
        }
        for (begin, side) in [("RX ", "rx"), ("TX ", "tx"), ("RX packets:", "rx"), ("TX packets:", "tx")] {
            if let Some(rest) = line.strip_prefix(begin).filter(|_| self.heading.is_none()) {
                let first = if begin.ends_with(':') { "packets:" } else { "" };
                ifconfig_counters(&nic, side, &format!("{first}{rest}"), out);
                return;
            }
        }
        // Old versions print them on a line of their own: `collisions:0 txqueuelen:1000`.
        if line.starts_with("collisions:") {
            return ifconfig_counters(&nic, "tx", line, out);
        }
        if let Some((side, names)) = self.heading.take() {
            for (name, value) in names.iter().zip(line.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    out.counter(format!("{nic}.stat.{}", stat(side, name)), value);
                }
            }
        }
        if let Some(mtu) =
            line.split("MTU:").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        {
            out.fact(format!("{nic}.mtu"), FactValue::Int(mtu));
        }
        // `vxlan id 4097 … dstport 4789`, `bond mode active-backup`, `veth`, `bridge`
        let kinds = ["vxlan", "vlan", "bond", "bridge", "veth", "macvlan", "tun"];
        if let Some(kind) = line.split_whitespace().next().filter(|w| kinds.contains(w)) {
            out.text(format!("{nic}.kind"), kind);
            if let Some(id) = after(line, "id").and_then(|n| n.parse().ok()) {
                out.fact(format!("{nic}.{kind}.id"), FactValue::Int(id));
            }
        }
    }
}
