//! Rules of nftables, as its group reports them. Needs root.

use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::notice::NoticeSource;
use linerate_sys::netlink_groups::NetlinkGroups;

use super::source::{Notice, Opened, Source};

struct Firewall(NetlinkGroups);

pub(super) fn open() -> Opened {
    let socket = NetlinkGroups::nftables().map_err(|e| e.to_string())?;
    Ok(Box::new(Firewall(socket)))
}

impl AsFd for Firewall {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Source for Firewall {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let mut is_reported = false;
        let is_whole = self.0.drain(|_| is_reported = true).unwrap_or(false);
        if is_reported {
            notices.push(Notice {
                keys: vec!["firewall.".to_owned()],
                ..Notice::of(NoticeSource::Firewall, "")
            });
        }
        is_whole
    }
}
