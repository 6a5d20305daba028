//! What a knowledge file must be beyond its shape: known names of values, keys that can exist, a sane id.

use linerate_model::change::Risk;
use linerate_model::fact::check_key;
use linerate_model::writable::writable;
use serde::de::DeserializeOwned;

use super::error::KnowledgeError;
use super::features;
use super::keys::is_fact;
use super::placeholder::Placeholder;
use super::schema::{
    BY_HAND_MAX, Cause, Condition, FixTarget, Op, RemedyPlan, SHORT_MAX, SettingPlan, StandingCount,
};

/// Topics of causes.
const AREAS: &[&str] = &["offload", "mtu", "rate", "loss", "tcp", "cpu", "queue", "storage", "setting"];
/// Largest weight: e^20 to one is more than any measurement can say.
const WEIGHT_MAX: f64 = 20.0;

/// Line (1-based) of a byte of a text.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|b| *b == b'\n').count() + 1
}

/// The value of a file; a text that is none is an error with its line.
pub(super) fn parse<T: DeserializeOwned>(file: &str, text: &str, hint: &str) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|error| KnowledgeError {
        file: file.to_owned(),
        line: error.span().map_or(0, |span| line_of(text, span.start)),
        problem: error.message().replace('\n', " "),
        hint: hint.to_owned(),
    })
}

/// Whether a text is an id: lower case, digits and dashes.
pub(super) fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The first thing that is wrong with a cause.
pub(super) fn cause(file: &str, text: &str, cause: &Cause, others: &[Cause]) -> Result<(), KnowledgeError> {
    let wrong = |near: &str, problem: String, hint: &str| KnowledgeError {
        file: file.to_owned(),
        line: text.find(near).map_or(1, |at| line_of(text, at)),
        problem,
        hint: hint.to_owned(),
    };
    let id = &cause.id;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Err(wrong(
            "id",
            format!("`{id}` is no id"),
            "lower-case letters, digits and dashes, such as `packet-loss`",
        ));
    }
    if others.iter().any(|o| o.id == *id) {
        return Err(wrong(id, format!("the id `{id}` is taken"), "every cause has an id of its own"));
    }
    if !AREAS.contains(&cause.area.as_str()) {
        let hint = format!("known areas: {}", AREAS.join(", "));
        return Err(wrong("area", format!("`{}` is no area", cause.area), &hint));
    }
    if cause.symptom.responses.is_empty() || cause.symptom.suspects.is_empty() {
        return Err(wrong(
            "[symptom]",
            "no responses or no suspects".to_owned(),
            "name at least one of each",
        ));
    }
    if cause.proof.is_empty() {
        return Err(wrong(
            "proof",
            "no proof".to_owned(),
            "name a lab fault, or `case:<file>` of a recorded case",
        ));
    }
    let keys = cause
        .indicators
        .iter()
        .chain(&cause.excludes)
        .flat_map(|t| t.keys.iter().chain(t.also.iter().flat_map(|c| &c.keys)))
        .chain(cause.alarm.iter().flatten().flat_map(|c| &c.keys))
        .chain(cause.remedy.iter().flat_map(|r| &r.set).flat_map(keys_of))
        .chain(&cause.accompanies)
        .chain(&cause.mismatch);
    for key in keys {
        if !is_fact(key) {
            return Err(wrong(
                key,
                format!("`{key}` is no key of a fact"),
                "ARCHITECTURE.md has the vocabulary of keys",
            ));
        }
    }
    if let Some(key) = unwritable(cause) {
        let table = text.find("[[remedy.set]]").unwrap_or(0);
        let at = text[table..].find(key).map_or(table, |within| table + within);
        return Err(KnowledgeError {
            line: line_of(text, at),
            ..wrong(
                key,
                format!("`{key}` is no setting that may be written"),
                "name settings with `yes` in docs/reference/facts.md; \
                 everything else belongs into `instruction`, for a person to decide",
            )
        });
    }
    let rest = weights(text, cause).and_then(|()| holes(cause)).and_then(|()| lines(cause));
    let rest = rest.and_then(|()| tests(cause));
    rest.map_err(|(near, problem, hint)| wrong(&near, problem, &hint))
}

/// Keys that a setting names: those that it writes, and the one that it takes its value from.
fn keys_of(set: &SettingPlan) -> impl Iterator<Item = &String> {
    let source = match &set.to {
        FixTarget::Fact(key) | FixTarget::Spread(key) => Some(key),
        _ => None,
    };
    set.keys.iter().chain(source)
}

/// The first key that a remedy sets and that no node writes.
fn unwritable(cause: &Cause) -> Option<&str> {
    let keys = cause.remedy.iter().flat_map(|r| &r.set).flat_map(|s| &s.keys);
    keys.map(String::as_str).find(|key| writable(key).is_none())
}

/// What a remedy can cost by the settings that it writes.
pub(super) fn risk(remedy: &RemedyPlan) -> Risk {
    let keys = remedy.set.iter().flat_map(|s| &s.keys);
    keys.filter_map(|key| Some(writable(key)?.risk)).max().unwrap_or_default()
}

/// Text near what is wrong, problem, hint.
type Wrong = (String, String, String);

/// The first weight that no log odds can be.
fn weights(text: &str, cause: &Cause) -> Result<(), Wrong> {
    let of_facts = cause.indicators.iter().chain(&cause.excludes).flat_map(|t| [t.weight, t.against]);
    let mut all = cause.shape.iter().flat_map(|t| [t.weight, t.against]).chain(of_facts);
    let is_odd = |weight: f64| weight.is_nan() || weight.abs() > WEIGHT_MAX;
    let Some(weight) = all.find(|weight| is_odd(*weight)) else { return Ok(()) };
    let hint = format!("log odds between -{WEIGHT_MAX} and {WEIGHT_MAX}; most causes have 1 to 4");
    let value = |line: &str| line.split_once('=').and_then(|(_, value)| value.trim().parse::<f64>().ok());
    let line = text.lines().find(|line| value(line).is_some_and(is_odd));
    Err((line.unwrap_or("weight").to_owned(), format!("`{weight:e}` is no weight"), hint))
}

/// The first place to be filled in of a remedy that nothing fills in.
fn holes(cause: &Cause) -> Result<(), Wrong> {
    let Some(remedy) = &cause.remedy else { return Ok(()) };
    let all = Placeholder::ALL.map(Placeholder::hole);
    let texts = [&remedy.title, &remedy.instruction, &remedy.persistence, &remedy.check, &remedy.by_hand];
    for text in texts {
        for (at, _) in text.match_indices('{') {
            let end = text[at..].find('}').map_or(at, |length| at + length + 1);
            let hole = &text[at..end];
            let is_word =
                hole.len() > 2 && hole[1..hole.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
            if is_word && !all.contains(&hole) {
                let hint = format!("filled in are {}", all.join(", "));
                return Err((hole.to_owned(), format!("`{hole}` stands for nothing"), hint));
            }
        }
    }
    Ok(())
}

/// The first line of a verdict that does not fit, or that a shell would not take.
fn lines(cause: &Cause) -> Result<(), Wrong> {
    let too_long = |what: &str, text: &str, most: usize| {
        let length = text.chars().count();
        let hint = format!("at most {most} characters: a verdict has one line for it");
        (length > most).then(|| (text.to_owned(), format!("`{what}` is too long: {length}"), hint))
    };
    let none = RemedyPlan::default();
    let remedy = cause.remedy.as_ref().unwrap_or(&none);
    let wrong = (too_long("short", &cause.short, SHORT_MAX))
        .or_else(|| too_long("check", &remedy.check, BY_HAND_MAX))
        .or_else(|| too_long("by_hand", &remedy.by_hand, BY_HAND_MAX));
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    let pasted = [&remedy.instruction, &remedy.persistence, &remedy.check, &remedy.by_hand];
    let Some(hole) = pasted.into_iter().find_map(|text| angled(text)) else { return Ok(()) };
    let hint = format!("filled in are {}", Placeholder::ALL.map(Placeholder::hole).join(", "));
    Err((hole.to_owned(), format!("`{hole}` is nothing to paste"), hint))
}

/// The first `<something to be replaced>` of a text.
fn angled(text: &str) -> Option<&str> {
    let holes = text.match_indices('<').filter_map(|(at, _)| {
        let end = at + text[at..].find('>')?;
        let is_word = text[at + 1..].starts_with(|c: char| c.is_alphabetic());
        is_word.then(|| &text[at..=end])
    });
    holes.into_iter().next()
}

/// The first test of a cause that cannot be run.
fn tests(cause: &Cause) -> Result<(), Wrong> {
    for test in &cause.shape {
        if !features::is_known(&test.value) {
            let hint = format!("known values: {}, counter:<key>", features::NAMES.join(", "));
            return Err((test.value.clone(), format!("`{}` is no measured value", test.value), hint));
        }
        if test.at_least.is_none() && test.at_most.is_none() {
            return Err((
                test.value.clone(),
                "a shape without a limit".to_owned(),
                "give at_least or at_most".to_owned(),
            ));
        }
    }
    for test in cause.indicators.iter().chain(&cause.excludes) {
        let needs = matches!(
            test.op,
            Op::Equals
                | Op::Contains
                | Op::LessThan
                | Op::GreaterThan
                | Op::ExceedsLowerMtu
                | Op::RouteToPeers
                | Op::LessThanFact
                | Op::AtLeastFact
                | Op::SameAsFact
                | Op::OutsideCpusOf
        );
        let number = matches!(test.op, Op::LessThan | Op::GreaterThan | Op::ExceedsLowerMtu);
        let unread = number && test.values.first().is_some_and(|v| v.parse::<f64>().is_err());
        // Beside another fact the second value is a factor.
        let beside = matches!(test.op, Op::LessThanFact | Op::AtLeastFact);
        let unread = unread || beside && test.values.get(1).is_some_and(|v| v.parse::<f64>().is_err());
        if test.keys.is_empty() || (needs && test.values.is_empty()) || unread {
            let near = test.keys.first().cloned().unwrap_or_else(|| "indicators".to_owned());
            return Err((
                near,
                format!("a test {:?} without keys or usable values", test.op),
                "give keys and values".to_owned(),
            ));
        }
        conditions("also", &test.also)?;
    }
    conditions("alarm", cause.alarm.as_deref().unwrap_or_default())?;
    standing(&cause.standing)
}

/// The first count that means nothing.
fn standing(all: &[StandingCount]) -> Result<(), Wrong> {
    for count in all {
        let is_empty = !count.keys.iter().chain(&count.of).all(|key| check_key(key))
            || count.keys.is_empty()
            || count.text.is_empty()
            || count.at_least < 1.0;
        let is_no_share = count.of.is_some() != (0.0 < count.share && count.share <= 1.0);
        if is_empty || is_no_share {
            return Err((
                count.keys.first().cloned().unwrap_or_else(|| "standing".to_owned()),
                "a count that means nothing".to_owned(),
                "give keys, text, at_least of 1 and more, and with `of` a share above 0 and up to 1"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// The first condition that cannot be asked for.
fn conditions(place: &str, all: &[Condition]) -> Result<(), Wrong> {
    for condition in all {
        let plain = matches!(
            condition.op,
            Op::Equals
                | Op::Contains
                | Op::LessThan
                | Op::GreaterThan
                | Op::Present
                | Op::LessThanFact
                | Op::AtLeastFact
        );
        if !plain || condition.keys.is_empty() || (condition.values.is_empty() && condition.op != Op::Present)
        {
            return Err((
                condition.keys.first().cloned().unwrap_or_else(|| place.to_owned()),
                format!("a condition {:?} cannot be asked for in `{place}`", condition.op),
                "equals, contains, less-than, greater-than, less-than-fact, at-least-fact with values, or present".to_owned(),
            ));
        }
    }
    Ok(())
}
