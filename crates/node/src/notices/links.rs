//! Links, addresses, routes, rules and queueing disciplines, as rtnetlink reports them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};

use linerate_model::notice::NoticeSource;
use linerate_sys::netlink::Message;
use linerate_sys::netlink_groups::{DevicePart, NetlinkGroups, RouteMessage};
use linerate_sys::rtnetlink;

use super::source::{Notice, Opened, Source};
use super::written::writer;

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
        socket.drain(|message| notices.extend(notices_of(message, names))).unwrap_or(false)
    }
}

/// What is to be read again, and who changed the part of it that the message is about, where it names its
/// process.
fn notices_of(message: &Message<'_>, known: &mut BTreeMap<u32, String>) -> Vec<Notice> {
    if let Some(link) = rtnetlink::parse_link(message) {
        known.insert(link.index, link.name);
    }
    let (name, keys, part) = match RouteMessage::of(message) {
        Some(RouteMessage::Device(index, part)) => {
            if !known.contains_key(&index) {
                *known = names();
            }
            let Some(name) = known.get(&index) else { return Vec::new() };
            let head = format!("nic.{}.", name.replace('.', "/"));
            let part = keys_of(part).map(|part| format!("{head}{part}"));
            (name.as_str(), vec![head], part)
        }
        Some(RouteMessage::Routes) => ("", vec!["route.".to_owned()], Some("route.".to_owned())),
        Some(RouteMessage::Rules) => {
            ("", vec!["rule.".to_owned(), "route.".to_owned()], Some("rule.".to_owned()))
        }
        None => return Vec::new(),
    };
    let about = Notice::of(NoticeSource::Link, name);
    let by_process = message.process().zip(part).map(|(pid, part)| Notice {
        writer: Some(writer(pid)),
        keys: vec![part],
        ..about.clone()
    });
    std::iter::once(Notice { keys, ..about.clone() }).chain(by_process).collect()
}

/// Beginning of the keys below a device that are of a part of it; a link has all others.
fn keys_of(part: DevicePart) -> Option<&'static str> {
    match part {
        DevicePart::Link => None,
        DevicePart::Addresses => Some("addresses"),
        DevicePart::Queues => Some("qdisc"),
        DevicePart::Filters => Some("filter"),
    }
}
