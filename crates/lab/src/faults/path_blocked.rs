//! Two hosts that cannot reach each other while both reach all others.

use linerate_model::finding::Element;

use super::{Fault, Place, Truth};
use crate::damage::Damage;
use crate::error::Result;
use crate::topology::Topology;

pub(super) struct PathBlocked;

impl Fault for PathBlocked {
    fn name(&self) -> &'static str {
        "path-blocked"
    }

    fn cause(&self) -> &'static str {
        "path-blocked"
    }

    fn summary(&self) -> &'static str {
        "a filter in the network drops everything between two hosts"
    }

    fn outside_the_hosts(&self) -> bool {
        true
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_pairs(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let Place::Pair(a, b) = place else { return Err(place.unfit("a pair of hosts such as a:b")) };
        let ((a, _), (b, _)) = (damage.host(a)?, damage.host(b)?);
        let (from, to) = (a.underlay(), b.underlay());
        let rules = format!("ip saddr {from} ip daddr {to} drop\nip saddr {to} ip daddr {from} drop");
        damage.bridge_rules(a.hypervisor, &rules)
    }

    fn truth(&self, _topology: &Topology, place: &Place) -> Truth {
        let accepted = match place {
            Place::Pair(a, b) => vec![(Element::Pair(a.clone(), b.clone()), Vec::new())],
            _ => Vec::new(),
        };
        Truth { cause: self.cause().into(), accepted }
    }
}
