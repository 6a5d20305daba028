//! Faults that no file describes: drawn from a grammar of what may happen to which packets, where.
//!
//! In: a cluster, a seed. Out: a [`DrawnFault`] with its truth. A production is one file and one line in
//! `PRODUCTIONS`; it draws one sentence of its own kind. Whether a sentence takes effect is measured
//! ([`effect`]), never assumed: one without is harmless.

pub mod effect;
pub mod fault;
mod firewall;
mod packets;
mod queues;
mod routes;
mod settings;
mod sizes;
mod wires;

use linerate_model::random::Random;

use self::fault::DrawnFault;
use crate::cluster::Cluster;

/// How a sentence is drawn; `None` where this cluster has no component of the kind.
type Production = fn(&Cluster, &mut Random) -> Option<DrawnFault>;

/// All kinds of sentences, each drawn equally often.
const PRODUCTIONS: &[Production] = &[
    firewall::of_a_host,
    firewall::of_a_bridge,
    queues::of_a_host,
    queues::of_a_port,
    wires::of_an_uplink,
    sizes::of_a_device,
    routes::of_a_host,
    routes::of_the_overlay,
    settings::of_the_kernel,
    settings::of_a_nic,
];

/// Draws a sentence for a cluster; the same seed draws the same one.
pub fn draw(cluster: &Cluster, seed: u64) -> Option<DrawnFault> {
    let mut random = Random(seed);
    // The first numbers of seeds that follow each other are alike.
    random.next_u64();
    let production = random.pick(PRODUCTIONS)?;
    production(cluster, &mut random)
}
