//! Files that are read at boot or by a daemon, of every owner of settings: a change in one is no change yet.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use linerate_model::notice::NoticeSource;
use linerate_sys::inotify::Inotify;

use super::source::{Notice, Opened, Source};

/// Folders of sysctl, systemd, `NetworkManager`, netplan, ifupdown, tuned, udev, modprobe and irqbalance, as
/// their manual pages name them.
const FOLDERS: [&str; 22] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/lib/sysctl.d",
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/lib/systemd/network",
    "/etc/systemd/system",
    "/etc/NetworkManager",
    "/etc/NetworkManager/conf.d",
    "/etc/NetworkManager/system-connections",
    "/etc/NetworkManager/dispatcher.d",
    "/etc/netplan",
    "/run/netplan",
    "/etc/network",
    "/etc/network/interfaces.d",
    "/etc/tuned",
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/etc/modprobe.d",
    "/etc/default",
    "/etc/sysconfig",
    "/etc/sysconfig/network-scripts",
];
/// Watched by itself: its folder has too much else.
const FILES: [&str; 2] = ["/etc/sysctl.conf", "/etc/drbd.conf"];

struct Files(Inotify);

pub(super) fn open() -> Opened {
    let paths = FOLDERS.iter().chain(&FILES).map(PathBuf::from);
    let watch = Inotify::on(paths).map_err(|error| format!("inotify: {error}"))?;
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
