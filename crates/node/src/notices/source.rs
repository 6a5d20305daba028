//! A source of notices, and what it reports.

use std::os::fd::AsFd;

use linerate_model::fact::FactKey;
use linerate_model::notice::{FactNotice, NoticeSource, ValueChange, Writer};

use super::known::Known;

/// Reports changes through a descriptor that becomes readable.
pub(super) trait Source: AsFd + Send {
    /// What was reported since the last call. `false`: more was reported than was kept.
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool;
}

/// A source, or why there is none.
pub(super) type Opened = Result<Box<dyn Source>, String>;

/// That something may have changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Notice {
    /// What reported it.
    pub source: NoticeSource,
    /// The file or device.
    pub about: String,
    /// Who wrote.
    pub writer: Option<Writer>,
    /// Beginnings of the keys that may have changed.
    pub keys: Vec<FactKey>,
    /// What the source itself saw of a write.
    pub write: Option<Write>,
    /// Whether it is a request, whose change others report.
    pub is_request: bool,
}

/// A write to one key, seen before the kernel took it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Write {
    /// The value before and what was written.
    pub change: ValueChange,
    /// Whether the key can be read here: then what the kernel made of it is read.
    pub can_be_read: bool,
    /// Whether it was read already and showed nothing: the writer may have been slow, or refused.
    pub was_read: bool,
}

impl Notice {
    pub(super) fn of(source: NoticeSource, about: &str) -> Self {
        Self {
            source,
            about: about.to_owned(),
            writer: None,
            keys: Vec::new(),
            write: None,
            is_request: false,
        }
    }

    /// Everything is read again.
    pub(super) fn everything() -> Self {
        Self::of(NoticeSource::Reading, "")
    }

    /// How well it explains a key, if it can be about it: the one that names its writer explains more than
    /// one that names a device, a driver more than the link that changes with it, and all of them more than
    /// that all was read.
    fn explains(&self, key: &str) -> Option<(bool, usize, bool)> {
        if self.source == NoticeSource::Reading {
            return Some((false, 0, false));
        }
        let longest =
            self.keys.iter().filter(|start| key.starts_with(start.as_str())).map(String::len).max()?;
        Some((self.writer.is_some(), longest, self.source == NoticeSource::Driver))
    }
}

/// What is reported, and what has to be read once more before it is.
pub(super) struct Shared {
    pub notices: Vec<FactNotice>,
    pub unread: Vec<Notice>,
}

/// Gives each change to the notice that explains it best; `later` ones came while the values were read, and
/// are shared again with the next reading. A notice without a change is dropped, unless it is that of a file.
pub(super) fn share(
    mut notices: Vec<Notice>,
    later: &[Notice],
    mut changes: Vec<ValueChange>,
    known: &Known,
) -> Shared {
    let mut seen = Vec::new();
    notices.retain(|notice| {
        notice.write.is_some()
            || !seen.contains(notice) && {
                seen.push(notice.clone());
                true
            }
    });
    let own = notices.len();
    notices.extend_from_slice(later);
    let mut shares: Vec<Vec<ValueChange>> = vec![Vec::new(); notices.len()];
    let mut unread = Vec::new();
    for at in 0..own {
        match result_of(at, &notices, known) {
            WriteResult::None => {}
            WriteResult::Change(change) => {
                changes.retain(|read| read.key != change.key);
                shares[at].push(change);
            }
            WriteResult::Unread => unread.extend(again(&notices[at])),
        }
    }
    for change in changes {
        // The last of those that explain it as well: what was written last is in force.
        let explained = notices.iter().enumerate().filter(|(_, notice)| notice.write.is_none());
        let explained = explained.filter_map(|(at, n)| Some((n.explains(&change.key)?, at)));
        if let Some((_, at)) = explained.max() {
            shares[at].push(change);
        }
    }
    let notices = notices
        .into_iter()
        .zip(shares)
        .enumerate()
        .filter(|(at, (notice, changes))| {
            *at < own && notice.source == NoticeSource::File || !changes.is_empty()
        })
        .map(|(_, (notice, changes))| {
            let Notice { source, about, writer, .. } = notice;
            FactNotice { at_ms: 0, read_after_ms: 0, source, about, writer, changes }
        });
    Shared { notices: notices.collect(), unread }
}

/// What became of a write.
enum WriteResult {
    /// Nothing, or the notice is of another source.
    None,
    Change(ValueChange),
    /// The old value is still there.
    Unread,
}

/// The value that a write left is the one that the next write to the same key found, else the one that was
/// read after it.
fn result_of(at: usize, notices: &[Notice], known: &Known) -> WriteResult {
    let Some(write) = &notices[at].write else { return WriteResult::None };
    let ValueChange { key, from, to } = &write.change;
    if from.is_some() && from == to {
        return WriteResult::None;
    }
    if !write.can_be_read {
        return WriteResult::Change(write.change.clone());
    }
    let mut later = notices[at + 1..].iter().filter_map(|notice| notice.write.as_ref());
    let next = later.find(|next| next.change.key == *key);
    let left = next.map_or_else(|| known.value(key).cloned(), |next| next.change.from.clone());
    match (left, next) {
        (None, _) => WriteResult::None,
        (left, _) if left != *from => {
            WriteResult::Change(ValueChange { key: key.clone(), from: from.clone(), to: left })
        }
        (_, None) => WriteResult::Unread,
        (_, Some(_)) => WriteResult::None,
    }
}

/// The notice once more, if it was not read twice already.
fn again(notice: &Notice) -> Option<Notice> {
    let write = notice.write.as_ref().filter(|write| !write.was_read)?;
    Some(Notice { write: Some(Write { was_read: true, ..write.clone() }), ..notice.clone() })
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::{FactValue, HostFacts};

    use super::*;

    #[test]
    fn a_change_goes_to_the_notice_that_explains_it_best() {
        let key = |key: &str| vec![key.to_owned()];
        let link = Notice { keys: key("nic.eth0."), ..Notice::of(NoticeSource::Link, "eth0") };
        let writer = Some(Writer { pid: 7, name: Some("tuned".to_owned()), unit: None, is_probable: false });
        let written =
            Notice { keys: key("nic.eth0."), writer, ..Notice::of(NoticeSource::Written, "/sys/x") };
        let file = Notice::of(NoticeSource::File, "/etc/sysctl.conf");
        let change = |key: &str| ValueChange { key: key.to_owned(), from: None, to: None };
        let known = Known::new(&HostFacts::default());
        let reported = share(
            vec![link.clone(), written, link.clone(), file, Notice::everything()],
            &[],
            vec![change("nic.eth0.mtu"), change("cpu.count")],
            &known,
        );
        let short: Vec<_> = reported.notices.iter().map(|n| (n.source, n.changes.len())).collect();
        assert_eq!(short, [(NoticeSource::Written, 1), (NoticeSource::File, 0), (NoticeSource::Reading, 1)]);
        assert_eq!(share(vec![link], &[], Vec::new(), &known).notices, Vec::new());
    }

    /// A write to the key `k` by a process.
    fn write(pid: i32, from: i64, to: i64) -> Notice {
        let value = |number| Some(FactValue::Int(number));
        let change = ValueChange { key: "k".to_owned(), from: value(from), to: value(to) };
        let writer = Some(Writer { pid, name: None, unit: None, is_probable: false });
        let write = Some(Write { change, can_be_read: true, was_read: false });
        Notice { writer, write, keys: vec!["k".to_owned()], ..Notice::of(NoticeSource::Written, "/k") }
    }

    #[test]
    fn each_write_has_the_value_that_it_left() {
        let mut facts = HostFacts::default();
        facts.readings.insert("k".to_owned(), FactValue::Int(5));
        let known = Known::new(&facts);
        let read =
            ValueChange { key: "k".into(), from: Some(FactValue::Int(1)), to: Some(FactValue::Int(5)) };
        // The second write was refused, the third one changes nothing, the last one was rounded.
        let notices = vec![write(1, 1, 2), write(2, 2, -1), write(3, 2, 2), write(4, 2, 4)];
        let reported = share(notices, &[], vec![read], &known);
        let value = |value: &Option<FactValue>| match value {
            Some(FactValue::Int(number)) => *number,
            other => panic!("{other:?}"),
        };
        let short: Vec<_> = reported
            .notices
            .iter()
            .map(|n| (n.writer.as_ref().unwrap().pid, value(&n.changes[0].from), value(&n.changes[0].to)))
            .collect();
        assert_eq!(short, [(1, 1, 2), (4, 2, 5)]);
        assert!(reported.unread.is_empty());
    }

    #[test]
    fn a_write_that_came_while_values_were_read_is_reported_with_the_next_reading() {
        let mut facts = HostFacts::default();
        facts.readings.insert("k".to_owned(), FactValue::Int(3));
        let known = Known::new(&facts);
        let later = [write(2, 2, 3)];
        let read =
            ValueChange { key: "k".into(), from: Some(FactValue::Int(1)), to: Some(FactValue::Int(3)) };
        let first = share(vec![write(1, 1, 2)], &later, vec![read], &known);
        let change = |shared: &Shared| {
            assert_eq!(shared.notices.len(), 1);
            let change = &shared.notices[0].changes[0];
            (change.from.clone().unwrap(), change.to.clone().unwrap())
        };
        assert_eq!(change(&first), (FactValue::Int(1), FactValue::Int(2)));
        let second = share(later.to_vec(), &[], Vec::new(), &known);
        assert_eq!(change(&second), (FactValue::Int(2), FactValue::Int(3)));
        // Another source's notice explains at once what was read already.
        let mtu = ValueChange { key: "nic.eth0.mtu".into(), from: None, to: Some(FactValue::Int(9000)) };
        let link = Notice { keys: vec!["nic.eth0.".into()], ..Notice::of(NoticeSource::Link, "eth0") };
        let reported = share(vec![write(1, 1, 1)], &[link], vec![mtu], &known);
        assert_eq!(reported.notices[0].source, NoticeSource::Link);
    }

    #[test]
    fn a_write_that_shows_nothing_yet_is_read_once_more() {
        let mut facts = HostFacts::default();
        facts.readings.insert("k".to_owned(), FactValue::Int(1));
        let known = Known::new(&facts);
        let first = share(vec![write(1, 1, 2)], &[], Vec::new(), &known);
        assert_eq!((first.notices.len(), first.unread.len()), (0, 1));
        let second = share(first.unread, &[], Vec::new(), &known);
        assert_eq!((second.notices.len(), second.unread.len()), (0, 0));
    }
}
