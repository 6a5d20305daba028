//! Facts `nic.<if>.neighbour.<address>`: neighbours that somebody wrote down, with the hardware address that
//! they are expected to have. What the kernel learned by itself is left out: it comes and goes.

use linerate_model::fact::FactDecl;
use linerate_sys::rtnetlink::NEIGHBOURS_MAX;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Neighbours;

impl Fact for Neighbours {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact(
            "nic.*.neighbour.*",
            "text",
            "Hardware address that is written down for good for a neighbour; `.` in its address is written `/`.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for neighbour in view.neighbours() {
            let Some(nic) = view.name_of(neighbour.link) else { continue };
            let address = neighbour.address.to_string().replace('.', "/");
            out.text(format!("nic.{}.neighbour.{address}", key_name(nic)), neighbour.hardware.as_str());
        }
        if view.neighbours().len() >= NEIGHBOURS_MAX {
            out.gap("nic.*.neighbour.*", &format!("only the first {NEIGHBOURS_MAX} are kept"));
        }
    }
}
