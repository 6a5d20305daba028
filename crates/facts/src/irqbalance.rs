//! Fact and setting `cpu.irqbalance`: whether the program that moves interrupts between CPUs moves those of
//! NICs. While it does, pinned interrupts are moved again within seconds.
//!
//! A trial pauses it by a signal: that holds at once, with every version, and its end is one signal too. A
//! ban would hold only after its next round of work, which may move an interrupt once more. What is kept is
//! its ban list: after a boot it balances everything but the interrupts of NICs.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::irqbalance;
use linerate_sys::process;
use linerate_sys::root::{ReadError, Root};

use super::boot::unit;
use super::fact::Fact;
use super::irq;
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

/// What bans the interrupts of NICs at boot, for a shell. Numbers of interrupts change with every boot, so
/// that they cannot stand in the file of its arguments: they are found when the devices are there, and given
/// behind these arguments in a drop-in of this boot alone. One that has started before starts again.
const BAN: &str = "b=; for n in /sys/class/net/*; do d=$n/device; test -e $d/msi_irqs || d=$d/..; \
                   for i in $d/msi_irqs/*; do test -e $i && b=$b' --banirq='${i##*/}; done; \
                   for i in /proc/irq/*/${n##*/}; do test -e $i && i=${i%/*} && b=$b' --banirq='${i##*/}; done; \
                   done; d=/run/systemd/system/irqbalance.service.d; mkdir -p $d; \
                   (echo '[Service]'; echo ExecStart=; \
                   echo 'ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS'$b) >$d/linerate.conf; \
                   systemctl daemon-reload; systemctl try-restart irqbalance";

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

/// Interrupts that a process leaves alone: by its own answer, else by its arguments.
fn banned(root: &Root, process: u32) -> Vec<u32> {
    let answer = root.is_live().then(|| irqbalance::banned(&irqbalance::socket_of(process)).ok()).flatten();
    answer.unwrap_or_else(|| {
        let text = root.read(&format!("/proc/{process}/cmdline")).unwrap_or_default();
        text.split('\0').filter_map(|word| word.strip_prefix("--banirq=")?.parse().ok()).collect()
    })
}

/// Interrupts of all NICs.
fn of_nics(root: &Root) -> BTreeSet<u32> {
    irq::all(&View::new(root, None, &[]))
}

/// Whether a process leaves the interrupts of all NICs alone.
fn spares(root: &Root, process: u32, of_nics: &BTreeSet<u32>) -> bool {
    let banned = banned(root, process);
    !of_nics.is_empty() && of_nics.iter().all(|number| banned.contains(number))
}

/// `None` where it does not run.
fn state(root: &Root) -> Option<&'static str> {
    let all = processes(root);
    let going: Vec<u32> = all.iter().filter(|(_, stopped)| !stopped).map(|(number, _)| *number).collect();
    let nics = if going.is_empty() { BTreeSet::new() } else { of_nics(root) };
    let paused = going.iter().all(|number| spares(root, *number, &nics));
    (!all.is_empty()).then_some(if paused { PAUSED } else { RUNNING })
}

/// Takes the interrupts of NICs from the ban list of a process that leaves them alone.
fn unban(root: &Root, process: u32) -> Result<(), SettingError> {
    let nics = of_nics(root);
    if !spares(root, process, &nics) {
        return Ok(());
    }
    let others: Vec<u32> =
        banned(root, process).into_iter().filter(|number| !nics.contains(number)).collect();
    irqbalance::ban(&irqbalance::socket_of(process), &others).map_err(|error| {
        SettingError::Kernel(format!("{NAME} keeps its ban list until the next boot; its socket: {error}"))
    })
}

impl Fact for Irqbalance {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "cpu.irqbalance",
            "text",
            "Whether irqbalance, which moves interrupts between CPUs, is running or paused: stopped by a signal, or its \
             ban list has the interrupts of all NICs.",
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
        let paused = wanted == PAUSED;
        for (number, _) in processes(root) {
            process::pause(number, paused).map_err(ReadError::from)?;
        }
        // A process stops when it next gets a CPU, not when it gets the signal.
        for _ in 0..STOP_POLLS {
            if processes(root).iter().all(|(_, stopped)| *stopped == paused) {
                break;
            }
            std::thread::sleep(STOP_POLL);
        }
        if paused {
            return Ok(());
        }
        processes(root).into_iter().try_for_each(|(number, _)| unban(root, number))
    }

    fn persist(&self, _key: &str, value: &FactValue) -> Persist {
        if value.to_string() != PAUSED {
            return Persist::Impossible { reason: format!("its own unit starts {NAME}") };
        }
        // Signs that mean something to systemd are written twice.
        let script = BAN.replace('%', "%%").replace('$', "$$");
        unit(NAME, "irqbalance leaves the interrupts of NICs alone", format!("/bin/sh -c \"{script}\""))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

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
        std::fs::write(tree.path().join("proc/12/stat"), "12 (irqbalance) S 1 1").unwrap();
        std::fs::write(
            tree.path().join("proc/12/cmdline"),
            "irqbalance\0--foreground\0--banirq=37\0--banirq=38\0",
        )
        .unwrap();
        assert_eq!(banned(&root, 12), [37, 38]);
        assert!(spares(&root, 12, &BTreeSet::from([38])));
        assert!(!spares(&root, 12, &BTreeSet::from([38, 39])) && !spares(&root, 12, &BTreeSet::new()));
        assert_eq!(state(&root), Some("running"), "there is no NIC whose interrupts it could leave alone");
        let setting = setting_for("cpu.irqbalance").unwrap();
        assert!(setting.write(&root, "cpu.irqbalance", &FactValue::Text("gone".into())).is_err());
    }

    #[test]
    fn at_boot_the_interrupts_of_all_nics_are_banned_behind_its_other_arguments() {
        let tree = tempfile::tempdir().unwrap();
        let at = |path: &str| tree.path().join(path);
        // A PCI device, one of virtio below such a device, one with an interrupt by its name, one without.
        for folder in
            ["net/lo", "net/eth1/device/msi_irqs", "pci/msi_irqs", "pci/virtio2", "net/eth0", "net/eth2"]
        {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::os::unix::fs::symlink(at("pci/virtio2"), at("net/eth0/device")).unwrap();
        for interrupt in ["irq/11/eth2", "irq/37/virtio2-input.0", "irq/50/nvme0q1"] {
            std::fs::create_dir_all(at(interrupt)).unwrap();
        }
        for number in ["pci/msi_irqs/37", "pci/msi_irqs/38", "net/eth1/device/msi_irqs/40"] {
            std::fs::write(at(number), "msix\n").unwrap();
        }
        std::fs::create_dir(at("bin")).unwrap();
        std::fs::write(at("bin/systemctl"), "#!/bin/sh\necho $* >>$0.log\n").unwrap();
        std::fs::set_permissions(at("bin/systemctl"), std::fs::Permissions::from_mode(0o755)).unwrap();

        let Persist::Unit { exec, .. } =
            Irqbalance.persist("cpu.irqbalance", &FactValue::Text(PAUSED.into()))
        else {
            panic!("it stays by a unit")
        };
        // As systemd takes it apart.
        let script = exec[0].strip_prefix("/bin/sh -c \"").and_then(|s| s.strip_suffix('"')).unwrap();
        assert!(!script.contains(['"', '\\']));
        let mut script = script.replace("$$", "$").replace("%%", "%");
        for (real, own) in [("/sys/class/net", "net"), ("/proc/irq", "irq"), ("/run/systemd/system", "run")] {
            script = script.replace(real, at(own).to_str().unwrap());
        }
        let path = format!("{}:/usr/bin:/bin", at("bin").display());
        let run = Command::new("/bin/sh").args(["-c", &script]).env("PATH", path).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let made = std::fs::read_to_string(at("run/irqbalance.service.d/linerate.conf")).unwrap();
        let arguments = "--banirq=38 --banirq=37 --banirq=40 --banirq=11";
        let mut words: Vec<&str> = made.lines().last().unwrap().split(' ').collect();
        let bans: BTreeSet<&str> = words.drain(3..).collect();
        assert_eq!(bans, arguments.split(' ').collect());
        assert_eq!(words, ["ExecStart=/usr/sbin/irqbalance", "--foreground", "$IRQBALANCE_ARGS"]);
        assert!(made.starts_with("[Service]\nExecStart=\nExecStart="), "{made}");
        let called = std::fs::read_to_string(at("bin/systemctl.log")).unwrap();
        assert_eq!(called, "daemon-reload\ntry-restart irqbalance\n");
    }
}
