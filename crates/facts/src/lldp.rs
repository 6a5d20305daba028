//! Facts `lldp.*`: the switch port at the other end of each cable, as the switch tells it every 30 s. Read
//! only when asked for by this prefix, because it means to listen: at most 31 s, with root, on devices that
//! have a cable.

use std::io;
use std::time::{Duration, Instant};

use linerate_model::fact::FactDecl;
use linerate_sys::packet::PacketSocket;
use linerate_sys::root::ReadError;
use linerate_sys::rtnetlink::NetDevice;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Lldp;

/// EtherType, IEEE 802.1AB.
const PROTOCOL: u16 = 0x88cc;
/// "Nearest bridge": a switch does not pass it on.
const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Senders speak every 30 s by default (IEEE 802.1AB, msgTxInterval).
const LISTEN_MAX: Duration = Duration::from_secs(31);
/// Frames that are looked at: a switch that floods must not hold us.
const FRAMES_MAX: usize = 1000;
/// Virtual devices without a cable of their own.
const NO_CABLE: [&str; 9] =
    ["vlan", "vxlan", "bridge", "bond", "dummy", "tun", "macvlan", "ipvlan", "wireguard"];

/// What the other end of a cable says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Neighbour {
    nic: String,
    chassis: String,
    #[serde(default)]
    port: String,
    #[serde(default)]
    system: String,
}

impl Fact for Lldp {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "lldp.*.chassis",
                "text",
                "Identifier of the switch that the device is connected to; only when asked for.",
            ),
            fact("lldp.*.port", "text", "Port of that switch; only when asked for."),
            fact("lldp.*.system", "text", "Name of that switch; only when asked for."),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        if !view.prefixes.iter().any(|prefix| prefix.starts_with("lldp.")) {
            return;
        }
        let cabled: Vec<&NetDevice> = view.links().iter().filter(|link| has_cable(link)).collect();
        let listen = || listen(&cabled, LISTEN_MAX).map_err(|e| ReadError::Other(e.to_string()));
        let heard = view.root.answer("lldp", listen);
        match heard {
            Ok(neighbours) => {
                for neighbour in &neighbours {
                    let nic = format!("lldp.{}", key_name(&neighbour.nic));
                    out.text(format!("{nic}.chassis"), neighbour.chassis.as_str());
                    out.text(format!("{nic}.port"), neighbour.port.as_str());
                    out.text(format!("{nic}.system"), neighbour.system.as_str());
                }
                for link in cabled.iter().filter(|link| neighbours.iter().all(|n| n.nic != link.name)) {
                    let reason = format!("nothing heard within {} s", LISTEN_MAX.as_secs());
                    out.gap_of("lldp.*", &reason, &link.name);
                }
            }
            Err(error) => out.gap("lldp.*", &error),
        }
    }
}

fn has_cable(link: &NetDevice) -> bool {
    link.up && !link.loopback && link.kind.as_deref().is_none_or(|kind| !NO_CABLE.contains(&kind))
}

/// Why nothing can be received.
#[derive(Debug, Error)]
enum ListenError {
    #[error("cannot listen for LLDP: {0}; needs root")]
    Open(io::Error),
    #[error("cannot listen for LLDP: {0}")]
    Receive(io::Error),
}

/// One neighbour per device; ends when every device has one, or in time.
fn listen(links: &[&NetDevice], wait: Duration) -> Result<Vec<Neighbour>, ListenError> {
    let mut heard: Vec<Neighbour> = Vec::new();
    if links.is_empty() {
        return Ok(heard);
    }
    let socket = PacketSocket::open(PROTOCOL).map_err(ListenError::Open)?;
    let joined: Vec<&&NetDevice> =
        links.iter().filter(|link| socket.join(link.index, GROUP).is_ok()).collect();
    let until = Instant::now() + wait;
    let mut buffer = [0; 2048];
    for _ in 0..FRAMES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || heard.len() >= joined.len() {
            break;
        }
        let got = socket.receive(&mut buffer, left).map_err(ListenError::Receive)?;
        let Some((index, count)) = got else { continue };
        let Some(link) = joined.iter().find(|link| link.index == index) else { continue };
        let payload = &buffer[..count.min(buffer.len())];
        if let Some(neighbour) = parse(&link.name, payload).filter(|n| heard.iter().all(|h| h.nic != n.nic)) {
            heard.push(neighbour);
        }
    }
    Ok(heard)
}

/// The fields of a frame: each has seven bits of kind, nine of length (IEEE 802.1AB, 8.4).
fn parse(nic: &str, payload: &[u8]) -> Option<Neighbour> {
    let mut found = Neighbour { nic: nic.to_owned(), ..Neighbour::default() };
    let mut rest = payload;
    while let [a, b, after @ ..] = rest {
        let (kind, length) = (a >> 1, usize::from(a & 1) << 8 | usize::from(*b));
        let (value, behind) = after.split_at_checked(length)?;
        match (kind, value) {
            (0, _) => break,
            // Kind 4 of a chassis and kind 3 of a port are hardware addresses.
            (1, [kind, id @ ..]) => found.chassis = if *kind == 4 { hardware(id) } else { text(id) },
            (2, [kind, id @ ..]) => found.port = if *kind == 3 { hardware(id) } else { text(id) },
            (5, name) => found.system = text(name),
            _ => {}
        }
        rest = behind;
    }
    (!found.chassis.is_empty()).then_some(found)
}

fn hardware(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    hex.join(":")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !c.is_control())
        .take(128)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a switch sends: chassis, port, time to live, name, end.
    const FRAME: &[u8] =
        b"\x02\x07\x04\xaa\xbb\xcc\x00\x00\x01\x04\x05\x05Eth7\x06\x02\x00\x78\x0a\x06leaf-1\x00\x00";

    #[test]
    fn a_frame_tells_switch_and_port() {
        let found = parse("eth0", FRAME).unwrap();
        assert_eq!((found.chassis.as_str(), found.port.as_str()), ("aa:bb:cc:00:00:01", "Eth7"));
        assert_eq!(found.system, "leaf-1");
        assert_eq!(parse("eth0", &FRAME[..5]), None);
        assert_eq!(parse("eth0", b""), None);
    }

    /// A real frame over a real cable between two namespaces, as far as veth is one.
    #[test]
    fn a_neighbour_is_heard() {
        let test = "a_neighbour_is_heard";
        let namespace = match linerate_sys::netns::create() {
            Ok(namespace) => namespace,
            Err(error) => return println!("SKIPPED {test}: {error}"),
        };
        let heard = linerate_sys::netns::run_in(&namespace, || {
            for line in ["link add left type veth peer name right", "link set left up", "link set right up"] {
                let done = std::process::Command::new("ip").args(line.split(' ')).output();
                if !done.as_ref().is_ok_and(|output| output.status.success()) {
                    return Err(format!("ip {line}: {done:?}"));
                }
            }
            let links = linerate_sys::rtnetlink::links().map_err(|e| e.to_string())?;
            let find = |name: &str| links.iter().find(|link| link.name == name).unwrap();
            let speaker = PacketSocket::open(PROTOCOL).map_err(|e| e.to_string())?;
            let index = find("right").index;
            // Sent again and again by a thread in the same namespace until the listener has heard it.
            let over = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        let _ = speaker.send(index, GROUP, FRAME);
                        std::thread::yield_now();
                    }
                });
                let heard = listen(&[find("left")], Duration::from_secs(120));
                over.store(true, std::sync::atomic::Ordering::Relaxed);
                heard.map_err(|e| e.to_string())
            })
        });
        match heard.unwrap() {
            Ok(heard) => {
                assert_eq!(heard.len(), 1);
                assert_eq!((heard[0].nic.as_str(), heard[0].system.as_str()), ("left", "leaf-1"));
            }
            Err(reason) => println!("SKIPPED {test}: {reason}"),
        }
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse("eth0", &bytes);
        }
    }
}
