//! Facts `cpu.*`, and the settings `cpu.governor` and `cpu.clocksource`.

use std::collections::BTreeSet;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::sysfs;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flawed, setting, text_of};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Cpu;

const CPUS: &str = "/sys/devices/system/cpu";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const CLOCK_KEY: &str = "cpu.clocksource";

pub(super) fn is_setting(key: &str) -> bool {
    key == "cpu.governor" || key == CLOCK_KEY
}

/// Numbers of the CPUs that are online.
pub(super) fn online(root: &Root) -> Option<Vec<u32>> {
    sysfs::cpu_list(&root.line(&format!("{CPUS}/online")).ok()?)
}

fn governor_file(cpu: u32) -> String {
    format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")
}

/// The governor of all CPUs, or all different ones joined by commas.
fn governor(root: &Root) -> Result<String, ReadError> {
    let cpus = online(root).unwrap_or_else(|| vec![0]);
    let mut seen = BTreeSet::new();
    for cpu in cpus {
        match root.line(&governor_file(cpu)) {
            Ok(name) => drop(seen.insert(name)),
            Err(error) if seen.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(seen.into_iter().collect::<Vec<_>>().join(","))
}

fn known_clock(root: &Root, wanted: &str) -> Result<(), SettingError> {
    let known = root.line(CLOCKS)?;
    let is_known = known.split_ascii_whitespace().any(|clock| clock == wanted);
    if is_known { Ok(()) } else { Err(SettingError::NoClock { wanted: wanted.to_owned(), known }) }
}

fn write_clock(root: &Root, wanted: &str) -> Result<(), SettingError> {
    known_clock(root, wanted)?;
    Ok(root.write(CLOCK, wanted)?)
}

impl Fact for Cpu {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("cpu.model", "text", "Model of the processor."),
            fact("cpu.count", "count", "CPUs that are online."),
            fact("cpu.max_mhz", "MHz", "Highest frequency of the first CPU."),
            fact("cpu.smt", "text", "Whether cores are shared by two threads: on, off, notsupported."),
            setting(
                "cpu.governor",
                "text",
                "Frequency governor; several, joined by commas, when CPUs differ.",
            ),
            setting(CLOCK_KEY, "text", "Clock of the kernel; a slow one costs time for every packet."),
            fact("cpu.numa_nodes", "count", "NUMA nodes with CPUs."),
            fact("cpu.isolated", "text", "CPUs that are kept from ordinary work, as a CPU list."),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let root = view.root;
        let info = root.read("/proc/cpuinfo").unwrap_or_default();
        let model = ["model name", "Model", "cpu model", "cpu"].iter().find_map(|field| {
            info.lines()
                .filter_map(|l| l.split_once(':'))
                .find(|(n, _)| n.trim() == *field)
                .map(|(_, v)| v.trim())
        });
        match model {
            Some(model) => out.text("cpu.model", model),
            None => out.gap("cpu.model", "the kernel tells no model"),
        }
        match online(root) {
            Some(cpus) => out.int("cpu.count", cpus.len() as i64),
            None => out.gap("cpu.count", "the kernel gives no list of CPUs"),
        }
        if let Ok(khz) = root.number(&format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq")) {
            out.int("cpu.max_mhz", khz / 1000);
        }
        if let Ok(smt) = root.line(&format!("{CPUS}/smt/control")) {
            out.text("cpu.smt", smt);
        }
        if let Ok(isolated) = root.line(&format!("{CPUS}/isolated")) {
            out.text("cpu.isolated", isolated);
        }
        match governor(root) {
            Ok(governor) => out.text("cpu.governor", governor),
            Err(reason) => out.gap("cpu.governor", &reason),
        }
        match root.line(CLOCK) {
            Ok(clock) => out.text("cpu.clocksource", clock),
            Err(error) => out.gap("cpu.clocksource", &error),
        }
        let nodes = root.line("/sys/devices/system/node/has_cpu").ok().and_then(|t| sysfs::cpu_list(&t));
        match nodes {
            Some(nodes) => out.int("cpu.numa_nodes", nodes.len() as i64),
            // Kernels without NUMA have one node.
            None => out.int("cpu.numa_nodes", 1),
        }
    }
}

impl Setting for Cpu {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        if !is_setting(key) {
            return Err(SettingError::NotAKey("not a key of the CPUs"));
        }
        if key == CLOCK_KEY {
            return Ok(root.line(CLOCK).map(FactValue::Text)?);
        }
        Ok(governor(root).map(FactValue::Text)?)
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let wanted = text_of(value)?;
        if !is_setting(key) || !is_plain(&wanted) {
            return Err(flawed(&wanted, "not one governor for all CPUs"));
        }
        if key == CLOCK_KEY {
            return write_clock(root, &wanted);
        }
        for cpu in online(root).ok_or(SettingError::NoCpus)? {
            root.write(&governor_file(cpu), &wanted).map_err(|source| SettingError::Cpu { cpu, source })?;
        }
        Ok(())
    }

    /// The kernel takes a clock that it does not have without a word and keeps the old one.
    fn check(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        if key == CLOCK_KEY { known_clock(root, &text_of(value)?) } else { Ok(()) }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        if key == CLOCK_KEY && is_plain(&value.to_string()) {
            let command = format!("/bin/sh -c 'echo {value} > {CLOCK}'");
            return unit("cpu-clocksource", "clock of the kernel", command);
        }
        let governor = value.to_string();
        if !is_plain(&governor) {
            return Persist::Impossible { reason: format!("'{governor}' is not one governor for all CPUs") };
        }
        let files = format!("{CPUS}/cpu*/cpufreq/scaling_governor");
        unit(
            "cpu-governor",
            "frequency governor of all CPUs",
            format!("/bin/sh -c 'for f in {files}; do echo {governor} > \"$$f\"; done'"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::setting::conformance;
    use crate::setting_for;

    #[test]
    fn only_a_clock_that_the_kernel_has_is_chosen() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("current_clocksource"), "hpet\n").unwrap();
        std::fs::write(folder.join("available_clocksource"), "tsc hpet acpi_pm \n").unwrap();
        let root = Root::fixture(tree.path());
        let setting = setting_for(CLOCK_KEY).unwrap();
        conformance::check(setting, &root, CLOCK_KEY, &FactValue::Text("tsc".into()));
        let unknown = FactValue::Text("jiffies".into());
        let refused = setting.check(&root, CLOCK_KEY, &unknown).unwrap_err();
        assert_eq!(refused.to_string(), "the kernel has no clock jiffies; it has tsc hpet acpi_pm");
        assert!(setting.write(&root, CLOCK_KEY, &unknown).is_err());
        assert_eq!(setting.read(&root, CLOCK_KEY), Ok(FactValue::Text("hpet".into())));
    }
}
