//! Files that are read at boot or by a daemon, of every owner of settings: a change in one is no change yet.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use linerate_model::notice::NoticeSource;
use linerate_sys::inotify::Inotify;

use super::source::{Notice, Opened, Source};

/// Folders of sysctl, systemd, `NetworkManager`, netplan, ifupdown, tuned, udev, modules and irqbalance, as
/// their manual pages name them, each with what is below it: drop-ins, and the profiles of tuned.
const FOLDERS: [&str; 34] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/etc/NetworkManager",
    "/run/NetworkManager/conf.d",
    "/run/NetworkManager/system-connections",
    "/usr/lib/NetworkManager",
    "/etc/netplan",
    "/run/netplan",
    "/usr/lib/netplan",
    "/etc/network",
    "/etc/tuned",
    "/usr/lib/tuned",
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/lib/modprobe.d",
    "/etc/modules-load.d",
    "/run/modules-load.d",
    "/usr/lib/modules-load.d",
    "/etc/default",
    "/etc/sysconfig",
    "/etc/drbd.d",
];
/// Watched by themselves: their folder has too much else.
const FILES: [&str; 5] =
    ["/etc/sysctl.conf", "/etc/modules", "/etc/drbd.conf", "/etc/rc.local", "/etc/rc.d/rc.local"];

struct Files(Inotify);

pub(super) fn open() -> Opened {
    let watch = Inotify::on(FOLDERS.map(PathBuf::from), FILES.map(PathBuf::from));
    let watch = watch.map_err(|error| format!("inotify: {error}"))?;
    Ok(Box::new(Files(watch)))
}

impl AsFd for Files {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Files {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let drained =
            self.0.drain(|path| notices.push(Notice::of(NoticeSource::File, &path.display().to_string())));
        drained.unwrap_or(false)
    }
}
