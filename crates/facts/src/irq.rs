//! Facts and setting `nic.*.irq.*`: interrupts of a device and the CPUs that take them.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::procfs;
use linerate_sys::root::Root;
use linerate_sys::rtnetlink::NetDevice;
use linerate_sys::sysfs;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Interrupts;

pub(super) fn is_setting(key: &str) -> bool {
    number_of(key).is_some()
}

/// `nic.eth0.irq.38.affinity` -> 38.
fn number_of(key: &str) -> Option<u32> {
    split_key(key)?.1.strip_prefix("irq.")?.strip_suffix(".affinity")?.parse().ok()
}

fn affinity_file(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

/// Interrupts of a device: those of its PCI function, or those that carry its name.
fn interrupts_of(view: &View<'_>, link: &NetDevice, names: &BTreeMap<u32, String>) -> Vec<u32> {
    let device = view.pci_folder(link).or_else(|| Some(format!("{}/device", view.sys_folder(link)?)));
    let numbers = |path: String| -> Vec<u32> {
        view.root.list(&path).unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect()
    };
    let mut found = device.map(|d| numbers(format!("{d}/msi_irqs"))).unwrap_or_default();
    if found.is_empty() {
        let named = |text: &str| text.split([' ', ',', '-', '@', ':']).any(|part| part == link.name);
        found = names.iter().filter(|(_, text)| named(text)).map(|(n, _)| *n).collect();
    }
    found.sort_unstable();
    found
}

/// Devices that have interrupts of their own.
fn devices<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v NetDevice> {
    view.links().iter().filter(|link| !link.loopback && link.kind.is_none())
}

/// Interrupts of all devices.
pub(super) fn all(view: &View<'_>) -> BTreeSet<u32> {
    let names =
        view.root.read("/proc/interrupts").map(|text| procfs::interrupt_names(&text)).unwrap_or_default();
    devices(view).flat_map(|link| interrupts_of(view, link, &names)).collect()
}

impl Fact for Interrupts {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting("nic.*.irq.*.affinity", "text", "CPUs that may take the interrupt, as a CPU list."),
            fact("nic.*.irq.*.name", "text", "What the driver calls the interrupt."),
            fact(
                "nic.*.irq_cpus",
                "text",
                "CPUs that take the interrupts of the device, all together, as a CPU list.",
            ),
        ]
    }

    fn of_namespace(&self) -> bool {
        // A device in a namespace is virtual, or its interrupts are those of the host.
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let text = match view.root.read("/proc/interrupts") {
            Ok(text) => text,
            Err(error) => return out.gap("nic.*.irq.*", &error),
        };
        let names = procfs::interrupt_names(&text);
        for link in devices(view) {
            let nic = format!("nic.{}", key_name(&link.name));
            let mut cpus: Vec<u32> = Vec::new();
            for number in interrupts_of(view, link, &names) {
                let name = names.get(&number).and_then(|n| n.split(' ').next_back()).unwrap_or_default();
                out.text(format!("{nic}.irq.{number}.name"), name);
                match view.root.line(&affinity_file(number)) {
                    Ok(list) => out.text(format!("{nic}.irq.{number}.affinity"), list),
                    Err(error) => out.gap_of("nic.*.irq.*.affinity", &error, &link.name),
                }
                // Where it really goes, when the kernel tells.
                let taken = view.root.line(&format!("/proc/irq/{number}/effective_affinity_list"));
                let taken = taken.or_else(|_| view.root.line(&affinity_file(number)));
                cpus.extend(taken.ok().and_then(|t| sysfs::cpu_list(&t)).unwrap_or_default());
            }
            cpus.sort_unstable();
            cpus.dedup();
            out.text(format!("{nic}.irq_cpus"), sysfs::format_cpu_list(&cpus));
        }
    }
}

impl Setting for Interrupts {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let number = number_of(key).ok_or(SettingError::NotAKey("not a key of an interrupt"))?;
        Ok(root.line(&affinity_file(number)).map(FactValue::Text)?)
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let number = number_of(key).ok_or(SettingError::NotAKey("not a key of an interrupt"))?;
        let list = text_of(value)?;
        match sysfs::cpu_list(&list) {
            Some(cpus) if !cpus.is_empty() => {}
            _ => return Err(flawed(&list, "not a list of CPUs such as 0-3,8")),
        }
        Ok(root.write(&affinity_file(number), &list)?)
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let impossible = |reason: String| Persist::Impossible { reason };
        let (Some((nic, _)), Some(number)) = (split_key(key), number_of(key)) else {
            return impossible("not a key of an interrupt".to_string());
        };
        let list = value.to_string();
        if sysfs::cpu_list(&list).is_none() || !is_plain(&nic) {
            return impossible(format!("'{list}' on '{nic}' cannot stand in a command"));
        }
        // Numbers of interrupts change with every boot, their names do not.
        let name = Root::live()
            .read("/proc/interrupts")
            .ok()
            .and_then(|text| procfs::interrupt_names(&text).remove(&number))
            .and_then(|text| text.split(' ').next_back().map(String::from))
            .filter(|name| is_plain(name));
        let Some(name) = name else {
            return impossible(format!("interrupt {number} has no name by which it is found after a reboot"));
        };
        unit(
            &format!("{nic}-irq-{name}"),
            &format!("interrupt {name} of {nic}"),
            format!(
                "/bin/sh -c 'for d in /proc/irq/*/{name}; do echo {list} > \"$${{d%%/*}}/smp_affinity_list\"; done'"
            ),
        )
    }
}
