//! Settings of drivers (offloads, rings, coalescing, channels, flow control), as ethtool's group reports
//! them.

use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::notice::NoticeSource;
use linerate_sys::ethtool;
use linerate_sys::netlink_groups::NetlinkGroups;

use super::source::{Notice, Opened, Source};

struct Drivers(NetlinkGroups);

pub(super) fn open() -> Opened {
    let socket = ethtool::monitor().map_err(|error| format!("ethtool over netlink: {error}"))?;
    Ok(Box::new(Drivers(socket)))
}

impl AsFd for Drivers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Drivers {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let drained = self.0.drain(|message| {
            if let Some(name) = ethtool::monitored_device(message) {
                let keys = vec![format!("nic.{}.", name.replace('.', "/"))];
                notices.push(Notice { keys, ..Notice::of(NoticeSource::Driver, &name) });
            }
        });
        drained.unwrap_or(false)
    }
}
