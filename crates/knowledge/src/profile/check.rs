//! Requirements of a profile beyond the types of its fields: names, dates, keys that may be written, one
//! value each.

use linerate_model::change::Risk;
use linerate_model::writable::writable;

use super::super::check::{is_id, line_of};
use super::super::error::KnowledgeError;
use super::super::keys::is_fact;
use super::schema::{HostCondition, Profile, ProfileSetting};

/// Characters of a title: it has one line of a table of 100 columns.
const TITLE_MAX: usize = 60;

/// Text near the flaw, problem, hint.
type Flaw = (String, String, String);

fn flaw(near: &str, problem: String, hint: &str) -> Flaw {
    (near.to_owned(), problem, hint.to_owned())
}

/// The first flaw of a profile.
pub(super) fn profile(
    file: &str,
    text: &str,
    profile: &Profile,
    others: &[Profile],
) -> Result<(), KnowledgeError> {
    let checked = head(profile, others).and_then(|()| sources(profile)).and_then(|()| groups(profile));
    checked.map_err(|(near, problem, hint)| KnowledgeError {
        file: file.to_owned(),
        line: text.find(&near).map_or(1, |at| line_of(text, at)),
        problem,
        hint,
    })
}

fn head(profile: &Profile, others: &[Profile]) -> Result<(), Flaw> {
    let id = &profile.id;
    if !is_id(id) {
        let hint = "lower-case letters, digits and dashes, such as `esnet-transfer-100g`";
        return Err(flaw("id", format!("invalid id: `{id}`"), hint));
    }
    if others.iter().any(|other| other.id == *id) {
        return Err(flaw(id, format!("the id `{id}` is taken"), "every profile has an id of its own"));
    }
    let length = profile.title.chars().count();
    if length == 0 || length > TITLE_MAX {
        let hint = format!("1 to {TITLE_MAX} characters");
        return Err(flaw("title", format!("title of {length} characters"), &hint));
    }
    if let Some((least, most)) = profile.speed_gbits
        && !(least > 0.0 && least <= most)
    {
        let hint = "least and greatest speed in Gbit/s, such as [10.0, 10.0]";
        return Err(flaw("speed_gbits", format!("invalid range: {least} to {most}"), hint));
    }
    if profile.conditions.is_empty() {
        let hint = "under which conditions does the source recommend it?";
        return Err(flaw("conditions", "no conditions".to_owned(), hint));
    }
    Ok(())
}

fn sources(profile: &Profile) -> Result<(), Flaw> {
    if profile.sources.is_empty() {
        return Err(flaw("sources", "no sources".to_owned(), "name the document of the values"));
    }
    let dates = profile.sources.iter().map(|source| &source.date).chain([&profile.date]);
    for date in dates {
        if !is_date(date) {
            return Err(flaw(date, format!("invalid date: `{date}`"), "YYYY-MM-DD, or the year"));
        }
    }
    Ok(())
}

/// `YYYY-MM-DD` or `YYYY`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_number =
        |part: &&str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    match parts.as_slice() {
        [year] => is_number(year, 4),
        [year, month, day] => is_number(year, 4) && is_number(month, 2) && is_number(day, 2),
        _ => false,
    }
}

fn groups(profile: &Profile) -> Result<(), Flaw> {
    let mut seen: Vec<&str> = Vec::new();
    for (at, group) in profile.groups.iter().enumerate() {
        let word = group.group.word();
        if group.set.is_empty() || profile.groups[..at].iter().any(|other| other.group == group.group) {
            let hint = "each group once, with at least one setting";
            return Err(flaw(&format!("\"{word}\""), format!("group `{word}` twice or empty"), hint));
        }
        for setting in &group.set {
            self::setting(profile, setting)?;
            if seen.contains(&setting.key.as_str()) {
                let hint = "a setting belongs to one group";
                return Err(flaw(&setting.key, format!("`{}` twice", setting.key), hint));
            }
            seen.push(&setting.key);
        }
    }
    let empty = || flaw("groups", "no groups".to_owned(), "a profile has at least one group");
    if seen.is_empty() { Err(empty()) } else { Ok(()) }
}

fn setting(profile: &Profile, setting: &ProfileSetting) -> Result<(), Flaw> {
    let key = &setting.key;
    let near = || format!("\"{key}\"");
    let Some(family) = writable(key) else {
        let hint = "name settings with `yes` in docs/reference/facts.md; others belong into `left_out`";
        return Err(flaw(&near(), format!("`{key}` is no setting that may be written"), hint));
    };
    if family.risk == Risk::Dangerous {
        let hint = "data or security at stake: a person decides; list it in `left_out`";
        return Err(flaw(&near(), format!("`{key}` is dangerous"), hint));
    }
    let given = [setting.to.is_some(), setting.to_fact.is_some(), setting.to_first_cpu_of.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        let hint = "exactly one of `to`, `to_fact` and `to_first_cpu_of`";
        return Err(flaw(&near(), format!("`{key}` has no value or several"), hint));
    }
    if setting.reason.is_empty() {
        return Err(flaw(&near(), format!("`{key}` has no reason"), "why this value?"));
    }
    if profile.source_of(setting).is_none() {
        let name = setting.source.clone().unwrap_or_default();
        let hint = "name one of `sources`";
        return Err(flaw(&format!("\"{name}\""), format!("`{name}` is no source of this file"), hint));
    }
    facts(setting)
}

/// The facts that a setting reads.
fn facts(setting: &ProfileSetting) -> Result<(), Flaw> {
    let of_conditions = setting.when.iter().filter_map(|condition| match condition {
        HostCondition::FactMin { key, .. } => Some(key),
        HostCondition::RttUsMin(_) => None,
    });
    for key in setting.to_fact.iter().chain(&setting.to_first_cpu_of).chain(of_conditions) {
        if !is_fact(key) {
            let hint = "docs/reference/facts.md lists them";
            return Err(flaw(key, format!("`{key}` is no key of a fact"), hint));
        }
    }
    Ok(())
}
