//! Facts `nic.*.pcie.*`: the PCIe link of a device, now and at best. Drives (`disk.*.pcie.*`) ask for theirs
//! in `disk.rs`.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;
use linerate_sys::sysfs;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Pcie;

impl Fact for Pcie {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("nic.*.pcie.speed_gts", "GT/s", "Speed of each lane of the PCIe link."),
            fact("nic.*.pcie.width", "lanes", "Lanes of the PCIe link in use."),
            fact("nic.*.pcie.max_speed_gts", "GT/s", "Speed that the device could use."),
            fact("nic.*.pcie.max_width", "lanes", "Lanes that the device could use."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links() {
            let Some(folder) = view.pci_folder(link) else { continue };
            let key = format!("nic.{}.pcie", key_name(&link.name));
            if !link_of(view.root, &folder, &key, out) {
                out.gap_of("nic.*.pcie.*", "the device tells no PCIe link", &link.name);
            }
        }
    }
}

/// Puts what the folder of a PCI function tells of its link below a key; whether it tells anything.
pub(super) fn link_of(root: &Root, folder: &str, key: &str, out: &mut Readings) -> bool {
    let mut seen = false;
    for (file, name) in [("current_link_speed", "speed_gts"), ("max_link_speed", "max_speed_gts")] {
        let text = root.line(&format!("{folder}/{file}")).unwrap_or_default();
        if let Some(speed) = sysfs::pcie_speed_gts(&text) {
            out.put(format!("{key}.{name}"), FactValue::Float(speed));
            seen = true;
        }
    }
    for (file, name) in [("current_link_width", "width"), ("max_link_width", "max_width")] {
        // 255 stands for "unknown" in the register of a device that does not tell.
        if let Ok(width @ 1..=64) = root.number(&format!("{folder}/{file}")) {
            out.int(format!("{key}.{name}"), width);
            seen = true;
        }
    }
    seen
}
