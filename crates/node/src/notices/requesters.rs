//! Processes that ask the kernel to change links or settings of drivers: a program in the kernel, for who
//! asks for it. Needs root of the machine.
//!
//! A request has a process and no device, and the kernel's notice of what it changed a device and no process.
//! They belong together where one process alone asked since the notice before: the name is probable, and with
//! several there is none.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use linerate_model::notice::{FactNotice, NoticeSource, Writer};
use linerate_sys::change_requests::{ChangeRequests, RequestInterface};

use super::source::{Notice, Opened, Source};
use super::writers::own_namespace;
use super::written::named_writer;

/// Facts of devices that requests change, by their interface: what a device or its peer changes by itself,
/// such as its carrier, is none of them.
const DRIVER: [&str; 9] =
    ["autoneg", "channels.", "coalesce.", "eee.", "feature.", "pause.", "private.", "ring.", "rss."];
const LINK: [&str; 7] = ["address", "bond.", "bridge.", "gso_max_segs", "master", "mtu", "txqueuelen"];
/// How long the kernel and a driver may take from the request to the notice: some take rings down and up.
const KEPT: Duration = Duration::from_secs(5);
/// Requests of the same moment as the notice count before older ones.
const NEAR: Duration = Duration::from_millis(500);

struct Requesters {
    requests: ChangeRequests,
    /// The network namespace that is followed: of others no links are read.
    own: Option<u64>,
}

pub(super) fn open() -> Opened {
    let requests = ChangeRequests::begin().map_err(|error| error.to_string())?;
    Ok(Box::new(Requesters { requests, own: own_namespace().0 }))
}

impl AsFd for Requesters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }
}

impl Source for Requesters {
    /// A lost record costs a name alone: what changed is noticed by others.
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let own = self.own;
        // This program asks too: for what it reads.
        let own_pid = std::process::id().cast_signed();
        self.requests.drain(|request| {
            if own == Some(u64::from(request.netns)) && request.pid != own_pid {
                let source = match request.by {
                    RequestInterface::Link => NoticeSource::Link,
                    RequestInterface::Driver => NoticeSource::Driver,
                };
                let writer = Writer { is_probable: true, ..named_writer(request.pid, request.name) };
                notices.push(Notice { writer: Some(writer), is_request: true, ..Notice::of(source, "") });
            }
        });
        true
    }
}

/// A request of the last seconds.
#[derive(Debug)]
struct Request {
    at: Instant,
    by: NoticeSource,
    writer: Writer,
    /// A notice came after it: the next one is rather of a later request.
    is_answered: bool,
}

/// Requests of the last seconds, oldest first.
#[derive(Debug, Default)]
pub(super) struct Requests {
    asked: Vec<Request>,
}

impl Requests {
    /// Takes those among notices.
    pub(super) fn take(&mut self, notices: &mut Vec<Notice>, now: Instant) {
        self.asked.retain(|request| now.saturating_duration_since(request.at) < KEPT);
        for request in notices.extract_if(.., |notice| notice.is_request) {
            let by = request.source;
            let asked = request.writer.map(|writer| Request { at: now, by, writer, is_answered: false });
            self.asked.extend(asked);
        }
    }

    /// Names the process of a notice that has none, where one alone can be meant.
    pub(super) fn name(&mut self, notice: &mut FactNotice, now: Instant) {
        let families: &[&str] = match notice.source {
            NoticeSource::Link => &LINK,
            NoticeSource::Driver => &DRIVER,
            _ => return,
        };
        let is_asked_for = |key: &str| {
            let field =
                key.strip_prefix("nic.").and_then(|rest| rest.split_once('.')).map(|(_, field)| field);
            field.is_some_and(|field| families.iter().any(|family| field.starts_with(family)))
        };
        if notice.writer.is_some() || !notice.changes.iter().any(|change| is_asked_for(&change.key)) {
            return;
        }
        let asked_by = notice.source;
        let within = |time: Duration, is_answered: bool| {
            let fits = move |request: &&Request| {
                let is_near = now.saturating_duration_since(request.at) < time;
                request.by == asked_by && request.is_answered == is_answered && is_near
            };
            self.asked.iter().filter(fits).map(|request| &request.writer).collect::<Vec<&Writer>>()
        };
        let open = [within(NEAR, false), within(KEPT, false)].into_iter().find(|writers| !writers.is_empty());
        // Where none is open, one request made several notices.
        let writers = open.unwrap_or_else(|| within(NEAR, true).pop().into_iter().collect());
        let is_one = writers.iter().all(|writer| writer.pid == writers[0].pid);
        notice.writer = writers.first().filter(|_| is_one).map(|writer| (*writer).clone());
        let answered = self.asked.iter_mut().filter(|request| request.by == asked_by);
        answered.for_each(|request| request.is_answered = true);
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::notice::ValueChange;

    use super::*;

    fn request(source: NoticeSource, pid: i32) -> Notice {
        let writer = Writer { pid, name: Some("ip".to_owned()), unit: None, is_probable: true };
        Notice { writer: Some(writer), is_request: true, ..Notice::of(source, "") }
    }

    /// The process that is named for a change of a key, after requests so many milliseconds before.
    fn named(requests: &[(u64, NoticeSource, i32)], source: NoticeSource, key: &str) -> Option<i32> {
        let begun = Instant::now();
        let minute_ms = 60_000;
        let now = begun + Duration::from_millis(minute_ms);
        let mut known = Requests::default();
        for (before_ms, source, pid) in requests {
            let at = begun + Duration::from_millis(minute_ms - before_ms);
            known.take(&mut vec![request(*source, *pid), Notice::of(*source, "eth0")], at);
        }
        let changes = vec![ValueChange { key: key.to_owned(), from: None, to: None }];
        let about = "eth0".to_owned();
        let mut notice = FactNotice { at_ms: 0, read_after_ms: 0, source, about, writer: None, changes };
        known.name(&mut notice, now);
        assert!(notice.writer.as_ref().is_none_or(|writer| writer.name().starts_with("probably ip (")));
        notice.writer.map(|writer| writer.pid)
    }

    #[test]
    fn a_change_has_the_process_that_alone_asked_for_one() {
        use NoticeSource::{Driver, Link, Reading};
        let mtu = "nic.eth0/5.mtu";
        assert_eq!(named(&[(20, Link, 7), (10, Link, 7)], Link, mtu), Some(7));
        assert_eq!(named(&[(20, Link, 7), (10, Link, 8)], Link, mtu), None, "two asked");
        assert_eq!(named(&[(3000, Link, 7), (10, Link, 8)], Link, mtu), Some(8), "the other is long done");
        assert_eq!(named(&[(3000, Driver, 7)], Driver, "nic.eth0.ring.rx"), Some(7), "a slow driver");
        assert_eq!(named(&[(3000, Driver, 7), (2000, Driver, 8)], Driver, "nic.eth0.ring.rx"), None);
        assert_eq!(named(&[(6000, Link, 7)], Link, mtu), None, "too long ago");
        assert_eq!(named(&[(10, Driver, 7)], Link, mtu), None, "another interface");
        assert_eq!(named(&[(10, Link, 7)], Link, "nic.eth0.state"), None, "a cable, perhaps");
        assert_eq!(named(&[(10, Link, 7)], Reading, mtu), None);
    }

    #[test]
    fn of_a_script_each_change_has_its_own_process() {
        let mut known = Requests::default();
        let mut named = |pids: &[i32], at: Instant| {
            let mut requests = pids.iter().map(|pid| request(NoticeSource::Link, *pid)).collect();
            known.take(&mut requests, at);
            let changes = vec![ValueChange { key: "nic.eth0.mtu".to_owned(), from: None, to: None }];
            let (source, about) = (NoticeSource::Link, "eth0".to_owned());
            let mut notice = FactNotice { at_ms: 0, read_after_ms: 0, source, about, writer: None, changes };
            known.name(&mut notice, at);
            notice.writer.map(|writer| writer.pid)
        };
        let now = Instant::now();
        assert_eq!([named(&[7], now), named(&[8], now), named(&[], now)], [Some(7), Some(8), Some(8)]);
        // Two ask before the first notice: it may be of either, and the second is of the later one.
        assert_eq!([named(&[9, 10], now), named(&[], now)], [None, Some(10)]);
        assert_eq!(named(&[], now + NEAR), None);
    }

    #[test]
    fn requests_are_no_notices() {
        let mut notices = vec![request(NoticeSource::Link, 7), Notice::of(NoticeSource::Link, "eth0")];
        Requests::default().take(&mut notices, Instant::now());
        assert_eq!(notices, [Notice::of(NoticeSource::Link, "eth0")]);
    }
}
