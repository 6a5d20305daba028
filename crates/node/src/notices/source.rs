//! A source of notices, and what it reports.

use std::os::fd::AsFd;

use linerate_model::fact::FactKey;
use linerate_model::notice::{FactNotice, NoticeSource, ValueChange, Writer};

/// Reports changes through a descriptor that becomes readable.
pub(super) trait Source: AsFd + Send {
    /// What was reported since the last call. `false`: more was reported than was kept.
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool;
}

/// A source, or why there is none.
pub(super) type Opened = Result<Box<dyn Source>, String>;

/// That something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    /// What reported it.
    pub source: NoticeSource,
    /// The file or device.
    pub about: String,
    /// Who wrote.
    pub writer: Option<Writer>,
    /// Beginnings of the keys that may have changed.
    pub keys: Vec<FactKey>,
}

impl Notice {
    pub(super) fn of(source: NoticeSource, about: &str) -> Self {
        Self { source, about: about.to_owned(), writer: None, keys: Vec::new() }
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

/// Gives each change to the notice that explains it best. A notice without a change is dropped, unless it is
/// that of a file.
pub(super) fn share(mut notices: Vec<Notice>, changes: Vec<ValueChange>, at_ms: u64) -> Vec<FactNotice> {
    let mut seen = Vec::new();
    notices.retain(|notice| {
        !seen.contains(notice) && {
            seen.push(notice.clone());
            true
        }
    });
    let mut shares: Vec<Vec<ValueChange>> = vec![Vec::new(); notices.len()];
    for change in changes {
        // The last of those that explain it as well: what was written last is in force.
        let explained = notices.iter().enumerate().filter_map(|(at, n)| Some((n.explains(&change.key)?, at)));
        if let Some((_, at)) = explained.max() {
            shares[at].push(change);
        }
    }
    notices
        .into_iter()
        .zip(shares)
        .filter(|(notice, changes)| notice.source == NoticeSource::File || !changes.is_empty())
        .map(|(notice, changes)| {
            let Notice { source, about, writer, .. } = notice;
            FactNotice { at_ms, source, about, writer, changes }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_goes_to_the_notice_that_explains_it_best() {
        let key = |key: &str| vec![key.to_owned()];
        let link = Notice { keys: key("nic.eth0."), ..Notice::of(NoticeSource::Link, "eth0") };
        let writer = Some(Writer { pid: 7, name: Some("tuned".to_owned()), unit: None });
        let written =
            Notice { keys: key("nic.eth0."), writer, ..Notice::of(NoticeSource::Written, "/sys/x") };
        let file = Notice::of(NoticeSource::File, "/etc/sysctl.conf");
        let change = |key: &str| ValueChange { key: key.to_owned(), from: None, to: None };
        let reported = share(
            vec![link.clone(), written, link.clone(), file, Notice::everything()],
            vec![change("nic.eth0.mtu"), change("cpu.count")],
            5,
        );
        let short: Vec<_> = reported.iter().map(|n| (n.source, n.changes.len())).collect();
        assert_eq!(short, [(NoticeSource::Written, 1), (NoticeSource::File, 0), (NoticeSource::Reading, 1)]);
        assert_eq!(share(vec![link], Vec::new(), 5), Vec::new());
    }
}
