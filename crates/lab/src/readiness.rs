//! When a fresh cluster is ready: all bridge ports forward, and a datagram gets from every host to the next
//! one and back on both layers.
//!
//! In: the switches and hosts of a cluster. Out: ready, or what is missing after the deadline. It changes
//! nothing.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::topology::HostPlan;

const PROBE_WAIT: Duration = Duration::from_millis(100);
const PORTS_AGAIN: Duration = Duration::from_millis(30);

/// Waits until every switch forwards, and each host reaches the next one.
pub fn wait<'a>(
    switches: impl Iterator<Item = &'a Namespace>,
    hosts: &[(HostPlan, Namespace)],
    within: Duration,
) -> Result<()> {
    let deadline = Instant::now() + within;
    let late = |what: String| LabError::NotReady { what, seconds: within.as_secs() };
    for switch in switches {
        while !all_forwarding(switch)? {
            if Instant::now() > deadline {
                return Err(late(format!("not all ports of {} forward", switch.name)));
            }
            std::thread::sleep(PORTS_AGAIN);
        }
    }
    let count = hosts.len();
    for (number, (from, namespace)) in hosts.iter().enumerate() {
        let (to, peer) = &hosts[(number + 1) % count];
        for (own, other, layer) in
            [(from.underlay(), to.underlay(), "underlay"), (from.overlay(), to.overlay(), "overlay")]
        {
            if !probe(namespace, own, peer, other, deadline)? {
                return Err(late(format!("nothing gets from {} to {} on the {layer}", from.name, to.name)));
            }
        }
    }
    Ok(())
}

fn all_forwarding(switch: &Namespace) -> Result<bool> {
    let ports = switch.output("bridge", &["link", "show"])?;
    Ok(ports.lines().all(|line| line.contains("state forwarding")))
}

/// Whether a datagram crosses in both directions before the deadline.
fn probe(
    from: &Namespace,
    own: Ipv4Addr,
    to: &Namespace,
    other: Ipv4Addr,
    deadline: Instant,
) -> Result<bool> {
    let open = |namespace: &Namespace, address: Ipv4Addr| {
        namespace
            .run(|| {
                UdpSocket::bind((address, 0)).and_then(|s| s.set_read_timeout(Some(PROBE_WAIT)).map(|()| s))
            })?
            .map_err(LabError::at(format!("{}: opening a socket on {address}", namespace.name)))
    };
    let (near, far) = (open(from, own)?, open(to, other)?);
    let address =
        |socket: &UdpSocket| socket.local_addr().map_err(LabError::at("reading the address of a socket"));
    let (near_address, far_address) = (address(&near)?, address(&far)?);
    while Instant::now() < deadline {
        if crosses(&near, far_address, &far) && crosses(&far, near_address, &near) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn crosses(from: &UdpSocket, to: SocketAddr, receiver: &UdpSocket) -> bool {
    // A network that is not there yet refuses at once or swallows: both mean not ready.
    from.send_to(b"ready?", to).is_ok() && receiver.recv_from(&mut [0; 16]).is_ok()
}
