//! Links, addresses, routes, rules and queueing disciplines, as rtnetlink reports them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::notice::NoticeSource;
use linerate_sys::netlink::Message;
use linerate_sys::netlink_groups::{NetlinkGroups, RouteMessage};
use linerate_sys::rtnetlink;

use super::source::{Notice, Opened, Source};

struct Links {
    socket: NetlinkGroups,
    /// Names by number.
    names: BTreeMap<u32, String>,
}

pub(super) fn open() -> Opened {
    let socket = NetlinkGroups::routing().map_err(|e| e.to_string())?;
    Ok(Box::new(Links { socket, names: names() }))
}

fn names() -> BTreeMap<u32, String> {
    rtnetlink::links().into_iter().flatten().map(|link| (link.index, link.name)).collect()
}

impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Source for Links {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let Self { socket, names } = self;
        socket.drain(|message| notices.extend(notice(message, names))).unwrap_or(false)
    }
}

fn notice(message: &Message<'_>, known: &mut BTreeMap<u32, String>) -> Option<Notice> {
    if let Some(link) = rtnetlink::parse_link(message) {
        known.insert(link.index, link.name);
    }
    let about = |name: &str, keys: Vec<String>| Notice { keys, ..Notice::of(NoticeSource::Link, name) };
    match RouteMessage::of(message)? {
        RouteMessage::Device(index) => {
            if !known.contains_key(&index) {
                *known = names();
            }
            let name = known.get(&index)?;
            Some(about(name, vec![format!("nic.{}.", name.replace('.', "/"))]))
        }
        RouteMessage::Routes => Some(about("", vec!["route.".to_owned()])),
        RouteMessage::Rules => Some(about("", vec!["rule.".to_owned(), "route.".to_owned()])),
    }
}
