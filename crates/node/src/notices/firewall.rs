//! Rules of nftables, as its group reports them. Needs root.

use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::notice::NoticeSource;
use linerate_sys::netlink_groups::{NetlinkGroups, process_of_ruleset};

use super::source::{Notice, Opened, Source};
use super::written::named_writer;

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
        let mut writer = None;
        let drained = self.0.drain(|message| {
            is_reported = true;
            writer = process_of_ruleset(message).map(|(pid, name)| named_writer(pid, name)).or(writer.take());
        });
        if is_reported {
            notices.push(Notice {
                writer,
                keys: vec!["firewall.".to_owned()],
                ..Notice::of(NoticeSource::Firewall, "")
            });
        }
        drained.unwrap_or(false)
    }
}
