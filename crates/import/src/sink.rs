//! Result of the readers: values by host, tests between two ends, figures of storage. It interprets nothing.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fact::{FactKey, FactValue, check_key};
use linerate_model::http::HttpFetch;
pub(crate) use linerate_model::imported::NAMELESS;
use linerate_model::inventory::Layer;
use linerate_model::kind::TestKind;
use linerate_model::outlier::StoredSeries;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::{CounterWatch, StorageFigure};

use crate::condition::Condition;
use crate::context::{Context, is_host};
use crate::limits::{FIGURES_MAX, HOSTS_MAX, NAMES_MAX, PROSE_MAX, TESTS_MAX, VALUES_MAX};

/// One test as a tool reports it. Ends are names or addresses; which host they belong to is found later.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Raw {
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Layer.
    pub layer: Layer,
    /// What.
    pub kind: TestKind,
    /// Result.
    pub outcome: Outcome,
    /// Addresses and ports of the first stream, sender first: both ends of one transfer report the same.
    pub flow: Option<String>,
    /// Start, Unix milliseconds; 0 when unknown.
    pub start_ms: u64,
    /// The transport that a title names, such as `ipoib`: a figure of storage rather than a cell of the
    /// matrix.
    pub variant: Option<String>,
}

/// One download.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Download {
    /// Host that downloaded, if it is known.
    pub client: Option<String>,
    /// From where; empty when it is unknown.
    pub url: String,
    /// Front end and times.
    pub fetch: HttpFetch,
}

/// A test with its condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    /// The test.
    pub raw: Raw,
    /// Its condition.
    pub condition: Condition,
}

/// Membership of a host in a group, such as the virtual machines of one hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// Host.
    pub host: String,
    /// Group.
    pub group: String,
    /// `hypervisor`, `rack`, `switch`.
    pub kind: String,
}

/// Facts and counters of a host while they come in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    /// Settings and properties.
    pub readings: BTreeMap<FactKey, FactValue>,
    /// Numbers that matter only by their change.
    pub counters: BTreeMap<FactKey, i64>,
}

/// Everything that was understood.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sink {
    /// Facts and counters by host.
    pub facts: BTreeMap<String, Values>,
    /// Hosts in the order in which they came up, each once.
    pub order: Vec<String>,
    /// The same, for lookups.
    known: BTreeSet<String>,
    /// Tests in the order in which they came up.
    pub samples: Vec<Run>,
    /// Lines around the output of tools, and commands.
    pub prose: Vec<String>,
    /// Hosts at whose prompts commands ran.
    pub prompted: BTreeSet<String>,
    /// Names that share an address.
    pub shared: Vec<[String; 2]>,
    /// Disk and replication.
    pub storage: Vec<StorageFigure>,
    /// Downloads in their order.
    pub downloads: Vec<Download>,
    /// Counters by interval.
    pub watched: Vec<CounterWatch>,
    /// What a time series database stored.
    pub stored: Vec<StoredSeries>,
    /// Address to name.
    pub aliases: BTreeMap<String, String>,
    /// Address and the word of a file's name that may be its host.
    pub weak: BTreeMap<String, String>,
    /// Names that other names were given for, in the order in which they came up (`/etc/hosts`).
    pub book: Vec<(String, Vec<String>)>,
    /// Memberships of hosts in groups.
    pub members: Vec<Membership>,
    /// What had to be assumed.
    pub notes: BTreeSet<String>,
    /// Values taken since the last [`Sink::begin`].
    pub readings: usize,
    /// Lines of the piece at hand that it could not use, from its first line, with the reason.
    pub unread: Vec<(usize, String)>,
    /// The title above the current piece was used: its unit, its layer.
    pub used_label: bool,
    /// Facts and counters so far, also those that were read twice.
    values: usize,
    /// Host of the piece at hand.
    host: String,
    /// Condition of its tests.
    condition: Condition,
}

/// Host of downloads that names none.
pub(crate) const CLIENT: &str = "client";

impl Sink {
    /// A new piece of a text begins.
    pub(crate) fn begin(&mut self, context: &Context) {
        self.readings = 0;
        self.unread.clear();
        self.used_label = false;
        self.host = context.host.clone().unwrap_or_default();
        let (environment, options) = context.command.conditions();
        self.condition = Condition { environment, options, ..context.state.clone() };
    }

    /// The piece names its own host. A prompt or an option has priority, a word of a file's name has not.
    pub(crate) fn speaks_of(&mut self, context: &Context, host: &str) {
        // The same name with its domain, or the default name of a machine, adds nothing.
        let is_same = host.strip_prefix(self.host.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let is_known = is_same && !self.host.is_empty() || host.starts_with("localhost");
        if (self.host.is_empty() || context.weak) && is_host(host) && !is_known {
            host.clone_into(&mut self.host);
        }
    }

    /// The host of the piece, for values that belong to one.
    fn own(&mut self) -> Option<String> {
        let name = if self.host.is_empty() { NAMELESS.to_owned() } else { self.host.clone() };
        self.seen(&name).then_some(name)
    }

    /// Whether one more can be kept; if not, that is noted once.
    pub(crate) fn has_capacity(&mut self, what: &str, kept: usize, limit: usize) -> bool {
        let fits = kept < limit;
        if !fits {
            self.note(format!("more than {limit} {what}: only the first {limit} are kept"));
        }
        fits
    }

    /// A host came up; whether it is among those that are kept, or is no host at all.
    pub(crate) fn seen(&mut self, host: &str) -> bool {
        if !is_host(host) || self.known.contains(host) {
            return true;
        }
        if !self.has_capacity("hosts", self.order.len(), HOSTS_MAX) {
            return false;
        }
        self.known.insert(host.to_owned());
        self.order.push(host.to_owned());
        true
    }

    /// Whether a host came up.
    pub(crate) fn is_known(&self, host: &str) -> bool {
        self.known.contains(host)
    }

    /// The host that the piece speaks of, where one more value of it can be kept.
    fn host_for_value(&mut self) -> Option<String> {
        let host = self.own()?;
        self.has_capacity("facts and counters", self.values, VALUES_MAX).then(|| {
            self.values += 1;
            host
        })
    }

    /// A setting or property of the host.
    pub(crate) fn fact(&mut self, key: impl Into<FactKey>, value: FactValue) {
        let key = key.into();
        if check_key(&key)
            && let Some(host) = self.host_for_value()
        {
            self.facts.entry(host).or_default().readings.insert(key, value);
            self.readings += 1;
        }
    }

    /// Values that follow belong to this host, which the piece itself names.
    pub(crate) fn of_host(&mut self, host: &str) {
        host.clone_into(&mut self.host);
    }

    /// Adds to a fact that counts.
    pub(crate) fn add(&mut self, key: String, count: i64) {
        let host = if self.host.is_empty() { NAMELESS } else { self.host.as_str() };
        let before = self.facts.get(host).and_then(|values| values.readings.get(&key)?.number(0));
        self.fact(key, FactValue::Int(count.saturating_add(before.unwrap_or(0.0) as i64)));
    }

    /// A text; nothing is stored of an empty one.
    pub(crate) fn text(&mut self, key: impl Into<FactKey>, value: &str) {
        if !value.is_empty() {
            self.fact(key, FactValue::Text(value.to_owned()));
        }
    }

    /// A number that matters only by its change.
    pub(crate) fn counter(&mut self, key: impl Into<FactKey>, value: i64) {
        let key = key.into();
        if check_key(&key)
            && let Some(host) = self.host_for_value()
        {
            self.facts.entry(host).or_default().counters.insert(key, value);
            self.readings += 1;
        }
    }

    /// A test.
    pub(crate) fn sample(&mut self, raw: Raw) {
        let fits = self.has_capacity("tests", self.samples.len(), TESTS_MAX);
        if !fits || ![&raw.from, &raw.to].into_iter().all(|end| self.seen(end)) {
            return;
        }
        self.samples.push(Run { raw, condition: self.condition.clone() });
        self.readings += 1;
    }

    /// A download.
    pub(crate) fn download(&mut self, download: Download) {
        let ends = [download.client.as_deref().unwrap_or(CLIENT), &download.fetch.via];
        let fits = self.has_capacity("downloads", self.downloads.len(), FIGURES_MAX);
        if fits && ends.into_iter().all(|end| self.seen(end)) {
            self.downloads.push(download);
            self.readings += 1;
        }
    }

    /// A counter by interval.
    pub(crate) fn watched(&mut self, watch: CounterWatch) {
        if self.has_capacity("series of counters", self.watched.len(), FIGURES_MAX) && self.seen(&watch.host)
        {
            self.watched.push(watch);
            self.readings += 1;
        }
    }

    /// A figure of storage; the host is that of the piece.
    pub(crate) fn figure(&mut self, figure: StorageFigure) {
        let host = self.host.clone();
        let fits = self.has_capacity("figures of storage", self.storage.len(), FIGURES_MAX);
        if !fits || !host.is_empty() && !self.seen(&host) {
            return;
        }
        self.storage.push(StorageFigure { host, ..figure });
        self.readings += 1;
    }

    /// The same, where only the last one of a kind counts: an earlier one of the same thing goes.
    pub(crate) fn last_figure(&mut self, figure: StorageFigure) {
        let same = |f: &StorageFigure| {
            f.host == self.host
                && (f.what, f.pattern) == (figure.what, figure.pattern)
                && f.variant == figure.variant
        };
        self.storage.retain(|f| !same(f));
        self.figure(figure);
    }

    /// Facts of the host whose keys begin so are over: a later state has come.
    pub(crate) fn forget(&mut self, prefix: &str) {
        let host = if self.host.is_empty() { NAMELESS } else { self.host.as_str() };
        if let Some(values) = self.facts.get_mut(host) {
            values.readings.retain(|key, _| !key.starts_with(prefix));
        }
    }

    /// An address belongs to a host.
    pub(crate) fn alias(&mut self, address: &str, host: &str) {
        if address != host
            && is_host(host)
            && !is_loopback(address)
            && self.has_capacity("addresses of hosts", self.aliases.len(), NAMES_MAX)
        {
            let address = plain_address(address);
            match self.aliases.get(address) {
                Some(known) if known != host => self.shared.push([known.clone(), host.to_owned()]),
                Some(_) => {}
                None => _ = self.aliases.insert(address.to_owned(), host.to_owned()),
            }
        }
    }

    /// Names that stand for an address.
    pub(crate) fn named(&mut self, address: String, names: &[&str]) {
        let kept = self.book.len();
        if self.has_capacity("lines of names", kept, NAMES_MAX) {
            self.book.push((address, names.iter().map(|name| (*name).to_owned()).collect()));
            self.readings += 1;
        }
    }

    /// A host stands on something.
    pub(crate) fn member(&mut self, member: Membership) {
        if self.has_capacity("memberships of hosts", self.members.len(), NAMES_MAX) {
            self.members.push(member);
            self.readings += 1;
        }
    }

    /// A line that belongs to no piece.
    pub(crate) fn prose(&mut self, line: &str) {
        if self.has_capacity("lines of text", self.prose.len(), PROSE_MAX) {
            self.prose.push(line.to_owned());
        }
    }

    /// A line of the piece could not be used.
    pub(crate) fn unread(&mut self, line: usize, why: impl Into<String>) {
        self.unread.push((line, why.into()));
    }

    /// Something that had to be assumed.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.insert(text.into());
    }
}

/// An address as it is compared: without the marks of IPv4 in IPv6, of a device, of a link.
pub(crate) fn plain_address(text: &str) -> &str {
    let text = text.trim_matches(['[', ']']);
    let text = text.split('%').next().unwrap_or(text);
    text.strip_prefix("::ffff:").filter(|t| t.contains('.')).unwrap_or(text)
}

/// Every host has these.
pub(crate) fn is_loopback(address: &str) -> bool {
    let address = plain_address(address);
    address.starts_with("127.")
        || address == "::1"
        || address == "0.0.0.0"
        || address == "::"
        || address == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::kind::TcpPlan;

    fn test(from: String, to: &str) -> Raw {
        Raw {
            from,
            to: to.to_owned(),
            layer: Layer::Underlay,
            kind: TcpPlan::single(1).into(),
            outcome: Outcome::NothingThrough { reason: String::new() },
            flow: None,
            start_ms: 0,
            variant: None,
        }
    }

    #[test]
    fn no_more_is_kept_than_the_limits_allow_and_that_is_noted_once() {
        let mut sink = Sink::default();
        sink.begin(&Context::default());
        for _ in 0..TESTS_MAX + 2 {
            sink.sample(test("a".to_owned(), "b"));
        }
        for number in 0..=FIGURES_MAX {
            sink.figure(StorageFigure { variant: number.to_string(), ..StorageFigure::default() });
        }
        for _ in 0..=NAMES_MAX {
            sink.named("10.0.0.1".to_owned(), &["a"]);
        }
        for _ in 0..=VALUES_MAX {
            sink.counter("softnet.dropped", 1);
        }
        assert_eq!(sink.samples.len(), TESTS_MAX);
        assert_eq!(sink.storage.len(), FIGURES_MAX);
        assert_eq!(sink.book.len(), NAMES_MAX);
        let notes: Vec<&str> = sink.notes.iter().map(String::as_str).collect();
        assert_eq!(
            notes,
            [
                "more than 2097152 facts and counters: only the first 2097152 are kept",
                "more than 262144 lines of names: only the first 262144 are kept",
                "more than 262144 tests: only the first 262144 are kept",
                "more than 65536 figures of storage: only the first 65536 are kept",
            ]
        );
    }

    #[test]
    fn a_test_of_a_host_beyond_the_limit_is_left_out() {
        let mut sink = Sink::default();
        for number in 0..HOSTS_MAX {
            assert!(sink.seen(&format!("h{number}")));
        }
        sink.sample(test("h1".to_owned(), "h2"));
        sink.sample(test("h1".to_owned(), "one-more"));
        assert_eq!((sink.samples.len(), sink.order.len()), (1, HOSTS_MAX));
        assert!(sink.notes.iter().any(|note| note.contains("more than 65536 hosts")));
    }
}
