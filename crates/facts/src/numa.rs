//! Facts `nic.*.numa_node` and `nic.*.local_cpus`: which memory and cores are near a device.

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Numa;

impl Fact for Numa {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "nic.*.numa_node",
                "number",
                "NUMA node of the device; -1 where there is only one or it is unknown.",
            ),
            fact("nic.*.local_cpus", "text", "CPUs near the device, as a CPU list."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links() {
            let near = view.pci_folder(link).or_else(|| Some(format!("{}/device", view.sys_folder(link)?)));
            let Some(folder) = near else { continue };
            let nic = format!("nic.{}", key_name(&link.name));
            if let Ok(node @ -1..=1023) = view.root.number(&format!("{folder}/numa_node")) {
                out.int(format!("{nic}.numa_node"), node);
            }
            if let Ok(cpus) = view.root.line(&format!("{folder}/local_cpulist"))
                && linerate_sys::sysfs::cpu_list(&cpus).is_some()
            {
                out.text(format!("{nic}.local_cpus"), cpus);
            }
        }
    }
}
