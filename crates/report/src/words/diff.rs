//! What differs between two hosts or two runs: each difference with its figures and in a sentence.

use linerate_model::difference::{Difference, FixProof};
use linerate_model::fact::FactValue;
use linerate_model::fact_change::FactChange;
use linerate_model::units::{percent, rate, ratio as times};
use schemars::JsonSchema;
use serde::Serialize;

/// One difference, as `linerate diff --json` writes it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunDifference {
    /// Sort of thing: `fact`, `cell` (throughput of one ordered pair) or `effect` (on a set of pairs).
    pub kind: &'static str,
    /// What: a key (`host key` between runs), a pair with its layer, or a set of pairs.
    pub subject: String,
    /// First value in words; empty when it is absent there.
    pub before: String,
    /// Second value.
    pub after: String,
    /// Second over first, for figures.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio, for effects.
    pub interval: Option<(f64, f64)>,
    /// Whether the interval excludes no change.
    pub proven: bool,
    /// When a fact of a host changed, where the log of changes knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<FactChange>,
    /// All of it as a sentence.
    pub sentence: String,
}

impl RunDifference {
    /// Quotes a change, with its host where the difference is between two.
    fn quoting(mut self, change: &FactChange, is_of_two: bool) -> Self {
        let [clause, _] = crate::changes::clauses(change);
        let host = if is_of_two { format!("{} ", change.host) } else { String::new() };
        self.sentence.extend(["; ", host.as_str(), clause.as_str()]);
        self.changed = Some(change.clone());
        self
    }
}

/// A difference in words, with the newest change that made a value of a fact: between runs the second one,
/// between these two hosts that of either.
#[must_use]
pub fn quoted(one: &Difference, hosts: Option<[&str; 2]>, changes: &[FactChange]) -> RunDifference {
    let made = |change: &&FactChange| match one {
        Difference::Fact { host: Some(host), key, after, .. } => {
            change.host == *host && change.key == *key && change.to == *after
        }
        Difference::Fact { host: None, key, before, after } => {
            let of = |at: usize, value: &Option<FactValue>| {
                hosts.is_some_and(|hosts| change.host == hosts[at]) && change.to == *value
            };
            change.key == *key && (of(0, before) || of(1, after))
        }
        _ => false,
    };
    let words = difference(one);
    match changes.iter().filter(made).max_by_key(|change| change.seen_ms) {
        Some(change) => words.quoting(change, hosts.is_some()),
        None => words,
    }
}

/// A difference in words.
#[must_use]
pub fn difference(difference: &Difference) -> RunDifference {
    let (mut interval, mut proven) = (None, false);
    let (kind, subject, (before, after), ratio, sentence) = match difference {
        Difference::Fact { host, key, before, after } => {
            let value = |value: &Option<FactValue>| value.as_ref().map_or(String::new(), ToString::to_string);
            let values = (value(before), value(after));
            let shown = |text: &str| if text.is_empty() { "absent".to_owned() } else { text.to_owned() };
            let subject = host.as_ref().map_or_else(|| key.clone(), |host| format!("{host} {key}"));
            let sentence = format!("{subject}: {} and {}", shown(&values.0), shown(&values.1));
            ("fact", subject, values, None, sentence)
        }
        Difference::Cell { from, to, layer, bps, ratio, is_small, methods } => {
            let subject = format!("{from} to {to} ({layer})");
            let values = (rate(bps.0), rate(bps.1));
            let by = methods.as_ref().map_or(String::new(), |(before, after)| {
                format!("; not comparable: measured by {before}, then by {after}")
            });
            let change = change(*ratio, *is_small);
            let sentence = format!("{subject}: {} before, {} after, {change}{by}", values.0, values.1);
            ("cell", subject, values, Some(*ratio), sentence)
        }
        Difference::Effect { pairs, bps, ratio, interval: bounds, others, proof } => {
            (interval, proven) = (Some(*bounds), *proof != FixProof::Open);
            let subject = format!("{pairs} pairs that were slow before");
            let values = (rate(bps.0), rate(bps.1));
            let others = others.map_or(String::new(), |(count, ratio)| {
                format!("; the {count} other pairs changed by {}", times(ratio))
            });
            let sentence = format!(
                "{}: the {subject} went from {} to {}, {} (95 % interval {} to {}){others}",
                verdict(*proof),
                values.0,
                values.1,
                times(*ratio),
                times(bounds.0),
                times(bounds.1)
            );
            ("effect", subject, values, Some(*ratio), sentence)
        }
    };
    RunDifference { kind, subject, before, after, ratio, interval, proven, changed: None, sentence }
}

fn change(ratio: f64, is_small: bool) -> String {
    let change = percent((ratio - 1.0).abs());
    match (is_small, ratio > 1.0) {
        (true, true) => {
            format!("a real but small gain: {change} more, every test after above every test before")
        }
        (true, false) => {
            format!("a real but small loss: {change} less, every test after below every test before")
        }
        (false, _) => times(ratio),
    }
}

/// What a fix is called after it was measured.
pub(crate) fn verdict(proof: FixProof) -> &'static str {
    match proof {
        FixProof::Faster => "fix proven",
        FixProof::Slower => "it became worse, proven",
        FixProof::Open => "no change proven",
    }
}
