//! Fact and setting `cpu.irqbalance`: whether the program that moves interrupts between CPUs runs. While it
//! does, pinned interrupts are moved again within seconds.

use std::time::Duration;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::process;
use linerate_sys::root::{ReadError, Root};

use super::boot::unit;
use super::fact::Fact;
use super::readings::{Readings, flawed, setting, text_of};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Irqbalance;

const NAME: &str = "irqbalance";
const RUNNING: &str = "running";
const PAUSED: &str = "paused";

/// How long a process may take to stop: two seconds, more than a scheduler makes one wait.
const STOP_POLLS: u32 = 400;
const STOP_POLL: Duration = Duration::from_millis(5);

pub(super) fn is_setting(key: &str) -> bool {
    key == "cpu.irqbalance"
}

/// Its processes, with whether each is stopped by a signal.
fn processes(root: &Root) -> Vec<(u32, bool)> {
    let numbers = root.list("/proc").unwrap_or_default().into_iter().filter_map(|name| name.parse().ok());
    let is_it = |number: &u32| root.line(&format!("/proc/{number}/comm")).is_ok_and(|name| name == NAME);
    let with_state = |number: u32| {
        // The state stands behind the name, which is in brackets.
        let stat = root.line(&format!("/proc/{number}/stat")).ok()?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some((number, state == 'T'))
    };
    numbers.filter(is_it).filter_map(with_state).collect()
}

/// `None` where it does not run.
fn state(root: &Root) -> Option<&'static str> {
    let all = processes(root);
    let paused = all.iter().all(|(_, stopped)| *stopped);
    (!all.is_empty()).then_some(if paused { PAUSED } else { RUNNING })
}

impl Fact for Irqbalance {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "cpu.irqbalance",
            "text",
            "Whether irqbalance, which moves interrupts between CPUs, is running or paused (stopped by a signal).",
        )]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        out.text("cpu.irqbalance", state(view.root).unwrap_or_default());
    }
}

impl Setting for Irqbalance {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        if !is_setting(key) {
            return Err(SettingError::NotAKey("not a key of irqbalance"));
        }
        let lacks =
            || SettingError::Lacks { device: "this host".to_owned(), what: format!("running {NAME}") };
        Ok(FactValue::Text(state(root).ok_or_else(lacks)?.to_owned()))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let wanted = text_of(value)?;
        if !is_setting(key) || ![RUNNING, PAUSED].contains(&wanted.as_str()) {
            return Err(flawed(&wanted, "neither running nor paused"));
        }
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        for (number, _) in processes(root) {
            process::pause(number, wanted == PAUSED).map_err(ReadError::from)?;
        }
        // A process stops when it next gets a CPU, not when it gets the signal.
        for _ in 0..STOP_POLLS {
            if state(root) == Some(wanted.as_str()) {
                break;
            }
            std::thread::sleep(STOP_POLL);
        }
        Ok(())
    }

    fn persist(&self, _key: &str, value: &FactValue) -> Persist {
        if value.to_string() != PAUSED {
            return Persist::Impossible { reason: format!("its own unit starts {NAME}") };
        }
        // A mask of this boot alone holds whichever of the two units comes first.
        let command = format!("/usr/bin/systemctl mask --runtime --now {NAME}.service");
        unit(NAME, "interrupts stay on the CPUs that were chosen for them", command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting_for;

    #[test]
    fn its_state_is_read_from_the_list_of_processes() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::fixture(tree.path());
        let add = |number: u32, name: &str, state: &str| {
            let folder = tree.path().join(format!("proc/{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            std::fs::write(folder.join("stat"), format!("{number} ({name}) {state} 1 1")).unwrap();
        };
        add(7, "sshd", "S");
        assert_eq!(state(&root), None);
        add(12, "irqbalance", "S");
        assert_eq!(state(&root), Some("running"));
        add(12, "irqbalance", "T");
        assert_eq!(state(&root), Some("paused"));
        let setting = setting_for("cpu.irqbalance").unwrap();
        assert!(setting.write(&root, "cpu.irqbalance", &FactValue::Text("gone".into())).is_err());
    }
}
