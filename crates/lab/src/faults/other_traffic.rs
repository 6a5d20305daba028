//! A host that sends other traffic all the time, as a backup or a copy of a disk does. The frames end in the
//! switch between the hypervisors, so that they take from the host's own uplink and from no other.

use std::time::{Duration, Instant};

use linerate_model::finding::Direction;
use linerate_sys::packet::PacketSocket;
use linerate_sys::rtnetlink::{self, NetDevice};

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::Damage;
use crate::error::{LabError, Result};
use crate::periodic::Periodic;

pub(super) struct OtherTraffic;

/// An EtherType for experiments (IEEE 802): no program takes such frames.
const EXPERIMENT: u16 = 0x88b5;
/// Payload of a frame, bytes, and what it takes on the wire.
const PAYLOAD: [u8; 1_400] = [0x5a; 1_400];
/// Pause between two bursts.
const PAUSE: Duration = Duration::from_millis(2);
/// Frames of one burst at most: after a pause of the thread the rest is not made up for.
const BURST_MAX: f64 = 100.0;

/// A device of the namespace of the calling thread.
fn device(name: &str) -> std::io::Result<NetDevice> {
    let links = rtnetlink::links().map_err(std::io::Error::other)?;
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    links.into_iter().find(|link| link.name == name).ok_or_else(missing)
}

/// A hardware address out of its text.
fn address(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes?.try_into().ok()
}

impl Fault for OtherTraffic {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "other-traffic",
            "other-traffic",
            "a host sends other traffic of 55-75 % of its uplink all the time",
            &[Direction::Tx],
        )
        .root_only();
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let failed = |step: &str| LabError::at(step.to_owned());
        let (plan, machine) = damage.host(target.host()?)?;
        let rate_mbit = damage.cluster.topology.uplink_of(plan.hypervisor).rate_mbit;
        let bytes_per_s = f64::from(rate_mbit) * 125e3 * (0.55 + 0.2 * strength);
        let core = damage.cluster.core.run(|| device("br0"))?.map_err(failed("the switch"))?;
        let to = core.address.as_deref().and_then(address);
        let to = to.ok_or_else(|| LabError::Unknown("the switch has no hardware address".into()))?;
        let open = || Ok((PacketSocket::open(EXPERIMENT)?, device("eth0")?.index));
        let (socket, link) = machine.of(damage.cluster).run(open)?.map_err(failed("a socket for frames"))?;
        let (mut last, mut due) = (Instant::now(), 0.0_f64);
        let sending = Periodic::start("other traffic", PAUSE, move || {
            let now = Instant::now();
            due += now.duration_since(last).as_secs_f64() * bytes_per_s / PAYLOAD.len() as f64;
            due = due.min(BURST_MAX);
            last = now;
            while due >= 1.0 {
                due -= 1.0;
                // What a full queue refuses is lost, as of any traffic.
                let _ = socket.send(link, to, &PAYLOAD);
            }
        })?;
        damage.step(
            |_| Ok(()),
            move |_| {
                drop(sending);
                Ok(())
            },
        )
    }
}
