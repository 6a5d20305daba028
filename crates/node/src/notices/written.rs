//! Files below `/proc` and `/sys` that were written: sysctls, CPU masks of interrupts and queues, block
//! devices, idle states. Needs root.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path};

use linerate_model::fact::FactKey;
use linerate_model::notice::{NoticeSource, Writer};
use linerate_sys::fanotify::Fanotify;

use super::source::{Notice, Opened, Source};

struct Written(Fanotify);

pub(super) fn open() -> Opened {
    let watch = Fanotify::on(&[Path::new("/proc"), Path::new("/sys")]);
    watch.map(|watch| Box::new(Written(watch)) as Box<dyn Source>).map_err(|e| format!("fanotify: {e}"))
}

impl AsFd for Written {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Written {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let drained = self.0.drain(|write| {
            let keys = keys_of(&write.path);
            if !keys.is_empty() {
                let about = write.path.display().to_string();
                let writer = Some(writer(write.pid));
                notices.push(Notice { writer, keys, ..Notice::of(NoticeSource::Written, &about) });
            }
        });
        drained.unwrap_or(false)
    }
}

/// Beginnings of the keys that are read from a file; none for files that no fact is read from.
pub(super) fn keys_of(path: &Path) -> Vec<FactKey> {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let behind = |folder: &str| {
        let at = parts.iter().position(|part| *part == folder)?;
        parts.get(at + 1).map(|name| name.replace('.', "/"))
    };
    match parts.as_slice() {
        ["proc", "sys", names @ ..] => {
            let names: Vec<String> = names.iter().map(|name| name.replace('.', "/")).collect();
            vec![format!("sysctl.{}", names.join("."))]
        }
        ["proc", "irq", ..] => vec!["nic.".to_owned(), "irqbalance.".to_owned()],
        ["sys", "devices", "system", "cpu", ..] => vec!["cpu.".to_owned()],
        ["sys", "module", ..] => vec!["module.".to_owned(), "kernel.".to_owned()],
        ["sys", ..] => {
            let nic = behind("net").map(|name| vec![format!("nic.{name}.")]);
            let disk =
                || behind("block").map(|name| vec![format!("disk.{name}."), format!("disk_limit.{name}.")]);
            nic.or_else(disk).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// What a process is called. One that has ended is only a number.
pub(super) fn writer(pid: i32) -> Writer {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let name = read("comm").map(|name| name.trim_end().to_owned());
    let unit = read("cgroup").and_then(|text| unit_of(&text));
    Writer { pid, name, unit, is_probable: false }
}

/// A process whose name the kernel reported. It may have ended, and another one may have its number.
pub(super) fn named_writer(pid: i32, name: String) -> Writer {
    let now = writer(pid);
    let unit = now.unit.filter(|_| now.name.as_ref() == Some(&name));
    Writer { pid, name: Some(name), unit, is_probable: false }
}

/// The unit that a cgroup belongs to; none for sessions of people.
fn unit_of(cgroup: &str) -> Option<String> {
    let path = cgroup
        .lines()
        .find_map(|line| line.split("::").nth(1).or_else(|| line.split("name=systemd:").nth(1)))?;
    let unit = path.rsplit('/').find(|part| part.ends_with(".service"))?;
    (!unit.starts_with("user@")).then(|| unit.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_keys_that_are_read_from_it() {
        let cases = [
            ("/proc/sys/net/ipv4/tcp_rmem", "sysctl.net.ipv4.tcp_rmem"),
            ("/proc/sys/net/ipv4/conf/eth0.5/rp_filter", "sysctl.net.ipv4.conf.eth0/5.rp_filter"),
            ("/sys/devices/pci0/0000:00:03.0/net/eth0.5/queues/rx-0/rps_cpus", "nic.eth0/5."),
            ("/sys/devices/pci0/virtio1/block/vda/queue/scheduler", "disk.vda."),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "cpu."),
            ("/proc/irq/24/smp_affinity", "nic."),
        ];
        for (path, key) in cases {
            assert_eq!(keys_of(Path::new(path)).first().map(String::as_str), Some(key), "{path}");
        }
        assert_eq!(keys_of(Path::new("/proc/4/oom_score_adj")), Vec::<FactKey>::new());
    }

    #[test]
    fn a_daemon_is_its_unit_and_a_person_is_none() {
        assert_eq!(unit_of("0::/system.slice/tuned.service\n"), Some("tuned.service".to_owned()));
        assert_eq!(unit_of("1:name=systemd:/system.slice/a.service\n"), Some("a.service".to_owned()));
        assert_eq!(unit_of("0::/user.slice/user-0.slice/session-3.scope\n"), None);
        assert_eq!(unit_of("0::/user.slice/user-0.slice/user@0.service/x.scope\n"), None);
    }
}
