//! Facts `nic.*.private.*`: private flags of a driver.

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct PrivateFlags;

impl Fact for PrivateFlags {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact(
            "nic.*.private.*",
            "flag",
            "Private flag of the driver, as by `ethtool --show-priv-flags`.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, nic) in view.nics() {
            for (flag, on) in &nic.private {
                // Drivers put spaces into these names, keys have none.
                out.flag(format!("nic.{}.private.{}", key_name(name), flag.replace(' ', "-")), *on);
            }
            if let Some(reason) = nic.missing.get("private") {
                out.gap_of("nic.*.private.*", reason, name);
            }
        }
    }
}
