//! Profiles as text: the list, one in full, and one beside the settings of hosts. Fits 100 columns.

use std::fmt::Write as _;

use linerate_kept::profile::{GroupOutcome, HostProfile, ProfileReading, ReadingState};
use linerate_knowledge::profile::{HostCondition, Profile, ProfileSetting};
use linerate_model::fact::{Gap, decimal};
use linerate_model::inventory::HostName;
use linerate_model::printable::{clean, one_line};
use linerate_model::shell::word;
use linerate_model::trial::TrialStatus;
use linerate_model::units;
use linerate_model::verdict::{Verdict, VerdictFix, VerdictItem};

use crate::card;
use crate::heat::Style;
use crate::wrap::wrap;

/// Widest key and value that stand in a row of a comparison; longer ones have a line of their own.
const KEY_WIDTH: usize = 34;
const VALUE_WIDTH: usize = 19;

/// All profiles, one line each.
#[must_use]
pub fn list<'a>(profiles: impl Iterator<Item = &'a Profile>, style: Style) -> String {
    let row = |name: &str, role: &str, speed: &str, date: &str, count: &str, title: &str| {
        let line = format!("{name:<25} {role:<11} {speed:>9}  {date:<10} {count:>8}  {title}");
        line.trim_end().to_owned() + "\n"
    };
    let head = row("name", "for", "Gbit/s", "date", "settings", "");
    let mut out = style.dim(head.trim_end()) + "\n";
    for profile in profiles {
        let (role, count) = (profile.role.word(), profile.settings().to_string());
        let title = format!("\n  {}", profile.title);
        let line = row(&profile.id, role, &speed(profile), &profile.date, &count, "");
        out += line.trim_end();
        out += &style.dim(&title);
        out.push('\n');
    }
    out
}

/// The speeds of a profile: `10`, `5 to 24`, `any`.
fn speed(profile: &Profile) -> String {
    match profile.speed_gbits {
        None => "any".to_owned(),
        Some((least, most)) if most > least => format!("{} to {}", decimal(least), decimal(most)),
        Some((least, _)) => decimal(least),
    }
}

fn paragraph(out: &mut String, text: &str, indent: usize, style: Style) {
    let margin = " ".repeat(indent);
    for line in wrap(&one_line(text), style.width.saturating_sub(indent)) {
        // Writing into a `String` cannot fail.
        let _ = writeln!(out, "{margin}{line}");
    }
}

/// A profile in full: each value with its conditions, reason and source.
#[must_use]
pub fn show(profile: &Profile, style: Style) -> String {
    let mut out = style.bold(&format!("{}: {}", profile.id, profile.title)) + "\n";
    let head = format!("for {}, links of {} Gbit/s, {}", profile.role.word(), speed(profile), profile.date);
    paragraph(&mut out, &head, 0, style);
    let _ = writeln!(out, "\n{}", style.bold("Conditions"));
    profile.conditions.iter().for_each(|text| paragraph(&mut out, text, 2, style));
    let _ = writeln!(out, "\n{}", style.bold("Sources"));
    for source in &profile.sources {
        let text = format!("{} ({}): {}", source.name, source.date, source.text);
        paragraph(&mut out, &text, 2, style);
    }
    for group in &profile.groups {
        let head = format!("{}, compared by {}", group.group.word(), group.metric.label());
        let _ = writeln!(out, "\n{}", style.bold(&head));
        for setting in &group.set {
            let _ = writeln!(out, "  {} = {}", setting.key, value(setting));
            let source = profile.source_of(setting).map_or("", |source| source.name.as_str());
            let when: Vec<String> = setting.when.iter().map(condition).collect();
            let when =
                if when.is_empty() { String::new() } else { format!("Where {}. ", when.join(" and ")) };
            paragraph(&mut out, &format!("{when}{} [{source}]", setting.reason), 6, style);
        }
    }
    if !profile.left_out.is_empty() {
        let _ = writeln!(out, "\n{}", style.bold("Not tried"));
    }
    for left in &profile.left_out {
        paragraph(&mut out, &format!("{}: {}", left.what, left.why), 2, style);
    }
    out
}

/// What is written, in words.
fn value(setting: &ProfileSetting) -> String {
    let least = if setting.at_least { "at least " } else { "" };
    match (&setting.to, &setting.to_fact, &setting.to_first_cpu_of) {
        (Some(value), ..) => format!("{least}{value}"),
        (_, Some(key), _) => format!("{least}{key}"),
        (.., Some(key)) => format!("first CPU of {key}"),
        _ => "-".to_owned(),
    }
}

fn condition(condition: &HostCondition) -> String {
    match condition {
        HostCondition::RttUsMin(us) => format!("the RTT is {} or more", units::duration_us(*us)),
        HostCondition::FactMin { key, min } => format!("{key} is {} or more", decimal(*min)),
    }
}

/// A profile beside hosts; without `all` only what a trial would change, and what conditions leave alone.
#[must_use]
pub fn differences(profile: &Profile, hosts: &[HostProfile], all: bool, style: Style) -> String {
    let mut out = String::new();
    for host in hosts {
        let mut about: Vec<String> = Vec::new();
        about.extend(host.speed_gbits.map(|speed| format!("{} Gbit/s", decimal(speed))));
        about.extend(host.rtt_us.map(|rtt| format!("RTT {}", units::duration_us(rtt))));
        if host.is_for_speed == Some(false) {
            about.push(format!("the profile is for {} Gbit/s", speed(profile)));
        }
        let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(", ")) };
        out += &style.bold(&one_line(&format!("{}{about}", host.host)));
        out.push('\n');
        let is_shown = |reading: &&ProfileReading| {
            all || matches!(reading.state, ReadingState::Differs | ReadingState::NotForHost)
        };
        let rows: Vec<&ProfileReading> = host.readings.iter().filter(is_shown).collect();
        if !rows.is_empty() {
            let head = cells("group", "setting", "in force", "profile", "state");
            out += &style.dim(&head);
            out.push('\n');
        }
        for reading in rows {
            row(&mut out, reading);
        }
        let _ = writeln!(out, "  {}\n", counts(host));
    }
    out
}

/// What differs from a profile, host by host; the fix tries it.
#[must_use]
pub fn verdict(profile: &Profile, hosts: &[HostProfile], gaps: &[Gap]) -> Verdict {
    let text = |value: &Option<linerate_model::fact::FactValue>| {
        value.as_ref().map_or_else(|| "absent".to_owned(), |value| one_line(&value.to_string()))
    };
    let item = |(host, reading): (&HostProfile, &ProfileReading)| {
        let (key, now, to) = (&reading.key, text(&reading.now), text(&reading.to));
        let sentence = format!("{}: {key} is {now}, {to} in {}", host.host, profile.id);
        let trial = format!("linerate profile try {} --on {}", word(&profile.id), word(&host.host));
        let fix = VerdictFix {
            trial: Some(trial),
            hosts: vec![host.host.clone()],
            risk: reading.risk,
            ..VerdictFix::default()
        };
        VerdictItem { fix: Some(fix), ..VerdictItem::stated(Some(&host.host), key, sentence) }
    };
    let all = hosts.iter().flat_map(|host| host.readings.iter().map(move |reading| (host, reading)));
    let differs = all.filter(|(_, reading)| reading.state == ReadingState::Differs);
    Verdict::stating(differs.map(item), gaps.to_vec())
}

fn cells(group: &str, key: &str, now: &str, to: &str, state: &str) -> String {
    let line = format!("  {group:<10} {key:<KEY_WIDTH$} {now:<VALUE_WIDTH$} {to:<VALUE_WIDTH$} {state}");
    line.trim_end().to_owned()
}

fn row(out: &mut String, reading: &ProfileReading) {
    let text = |value: &Option<linerate_model::fact::FactValue>| {
        value.as_ref().map_or_else(|| "-".to_owned(), |value| one_line(&value.to_string()))
    };
    let (group, state) = (reading.group.word(), reading.state.word());
    let key = one_line(reading.key.strip_prefix("sysctl.").unwrap_or(&reading.key));
    let (now, to) = (text(&reading.now), text(&reading.to));
    let mut key = key.as_str();
    if key.chars().count() > KEY_WIDTH {
        let _ = writeln!(out, "  {group:<10} {key}");
        key = "";
    }
    let group = if key.is_empty() { "" } else { group };
    if now.chars().count() > VALUE_WIDTH || to.chars().count() > VALUE_WIDTH {
        *out += &(cells(group, key, "", "", state) + "\n");
        let _ = writeln!(out, "    in force {now}\n    profile  {to}");
    } else {
        *out += &(cells(group, key, &now, &to, state) + "\n");
    }
    if !reading.why.is_empty() {
        let _ = writeln!(out, "    {}", one_line(&reading.why));
    }
}

fn counts(host: &HostProfile) -> String {
    let states = [
        ReadingState::Differs,
        ReadingState::Same,
        ReadingState::More,
        ReadingState::NotForHost,
        ReadingState::Missing,
    ];
    let count = |state: ReadingState| host.readings.iter().filter(|r| r.state == state).count();
    let shown: Vec<String> = states
        .into_iter()
        .map(|state| (count(state), state.word()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    format!("{}: {}", units::counted(host.readings.len(), "setting"), shown.join(", "))
}

/// The groups of a profile that was tried: each with its effect, its interval and that of the untouched pair,
/// then what to type next.
#[must_use]
pub fn tried(profile: &Profile, on: &[HostName], outcomes: &[GroupOutcome], style: Style) -> String {
    let mut out = String::new();
    let first = outcomes.iter().find_map(|outcome| outcome.trial.as_ref());
    let pair = first.map_or_else(String::new, |trial| {
        let (from, to) = &trial.pair;
        let control = trial.control.as_ref();
        let control =
            control.map_or_else(|| "no untouched pair".to_owned(), |(a, b)| format!("untouched: {a} to {b}"));
        format!(", {from} to {to} ({control})")
    });
    let heading = format!("{} on {}{pair}", profile.id, on.join(", "));
    for line in wrap(&clean(&heading), style.width) {
        out += &(style.bold(&line) + "\n");
    }
    let cells = |group: &str, rest: [&str; 6]| {
        let [before, after, ratio, interval, control, result] = rest;
        let line = format!(
            "  {group:<10} {before:>12} {after:>12} {ratio:>7} {interval:>17} {control:>9}  {result}"
        );
        line.trim_end().to_owned() + "\n"
    };
    let heads = ["before", "after", "ratio", "95 % interval", "untouched", "result"];
    out += &style.dim(&cells("group", heads));
    for outcome in outcomes {
        out += &cells(outcome.group.word(), figures(outcome).each_ref().map(String::as_str));
        if !outcome.why.is_empty() {
            paragraph(&mut out, &outcome.why, 13, style);
        }
    }
    for outcome in outcomes {
        after(&mut out, outcome, style);
    }
    out
}

/// Before, after, ratio, interval, ratio of the untouched pair, result.
fn figures(outcome: &GroupOutcome) -> [String; 6] {
    let none = || "-".to_owned();
    let kept = outcome.trial.as_ref().is_some_and(|trial| trial.status == TrialStatus::Kept);
    let result = format!("{}{}", outcome.result.word(), if kept { ", kept" } else { "" });
    let measured = outcome.trial.as_ref().and_then(|trial| Some((trial, trial.effect.as_ref()?)));
    let Some((trial, size)) = measured.filter(|(_, size)| size.fewer_than.is_none()) else {
        return [none(), none(), none(), none(), none(), result];
    };
    let unit = trial.response.unit();
    let is_known = size.control_interval.1 < f64::MAX;
    [
        units::value(size.before, unit),
        units::value(size.after, unit),
        units::ratio(size.ratio),
        format!("{} to {}", units::ratio(size.interval.0), units::ratio(size.interval.1)),
        if is_known { units::ratio(size.control_ratio) } else { none() },
        result,
    ]
}

/// What a trial changed, its notes, and the command that comes next.
fn after(out: &mut String, outcome: &GroupOutcome, style: Style) {
    let Some(trial) = &outcome.trial else { return };
    let group = outcome.group.word();
    let _ = writeln!(out, "\n{}", style.bold(&format!("{group}, compared by {}", trial.response.label())));
    for change in &trial.remedy.changes {
        paragraph(out, &card::change(change), 2, style);
    }
    for note in &trial.notes {
        paragraph(out, &note.replace('\n', "; "), 2, style);
    }
    for command in card::next_commands(trial) {
        let _ = writeln!(out, "  {}", style.command(&command));
    }
    if trial.status == TrialStatus::UndoFailed {
        paragraph(out, &card::meaning(trial), 2, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_kept::profile::{ProfileHost, compare};
    use linerate_knowledge::profile::Profiles;
    use linerate_model::fact::{FactValue, HostFacts};

    fn fits(text: &str) {
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 100, "{widest}");
    }

    #[test]
    fn the_list_and_every_profile_fit_100_columns_and_name_reason_and_source() {
        let profiles = Profiles::builtin().unwrap();
        let shown = list(profiles.iter(), Style::PLAIN);
        fits(&shown);
        assert_eq!(shown.lines().count(), 1 + 2 * profiles.iter().count());
        for profile in profiles.iter() {
            let shown = show(profile, Style::PLAIN);
            fits(&shown);
            for setting in profile.groups.iter().flat_map(|group| &group.set) {
                assert!(shown.contains(&setting.key), "{}: {}", profile.id, setting.key);
            }
            assert!(shown.contains("\nSources\n") && shown.contains("\nConditions\n"), "{shown}");
        }
        let shown = show(profiles.get("esnet-transfer-10g").unwrap(), Style::PLAIN);
        assert!(
            shown.contains("tcp_rmem = at least 4096 87380 33554432\n      Where the RTT is 2.5 ms or more.")
        );
        assert!(shown.contains("nic.*.ring.rx = nic.*.ring.rx_max\n"), "{shown}");
    }

    #[test]
    fn a_comparison_has_what_differs_and_counts_the_rest() {
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("esnet-measurement-100g").unwrap();
        let readings = [
            ("sysctl.net.ipv4.tcp_rmem".to_owned(), FactValue::Text("4096 131072 6291456".into())),
            ("sysctl.net.ipv4.tcp_sack".to_owned(), FactValue::Int(1)),
            ("nic.eth0.speed_mbit".to_owned(), FactValue::Int(10_000)),
            ("nic.eth0.feature.generic-segmentation-offload".to_owned(), FactValue::Flag(false)),
        ];
        let facts = HostFacts { readings: readings.into(), ..HostFacts::default() };
        let host = ProfileHost { name: "a", facts: &facts, nic: Some("nic.eth0."), rtt_us: Some(9000.0) };
        let compared = [compare(profile, &host)];
        let shown = differences(profile, &compared, false, Style::PLAIN);
        fits(&shown);
        assert!(
            shown.starts_with("a: 10 Gbit/s, RTT 9 ms, the profile is for 100 to 199 Gbit/s\n"),
            "{shown}"
        );
        assert!(shown.contains("    in force 4096 131072 6291456\n"), "{shown}");
        assert!(shown.contains("2 differs, 1 same"), "{shown}");
        assert!(!shown.contains("no such setting"), "only counted: {shown}");
        fits(&differences(profile, &compared, true, Style::PLAIN));
        let gone = differences(profile, &compared, true, Style::PLAIN);
        assert!(gone.contains("this host has no such setting"), "{gone}");
    }

    #[test]
    fn the_results_of_groups_have_figures_reasons_and_the_next_command() {
        use linerate_kept::profile::GroupResult;
        use linerate_knowledge::profile::SettingGroup;
        let profiles = Profiles::builtin().unwrap();
        let profile = profiles.get("esnet-transfer-10g").unwrap();
        let trial = crate::sample::trial();
        let id = trial.id.clone();
        let outcomes = [
            GroupOutcome {
                group: SettingGroup::Buffers,
                result: GroupResult::of(&trial),
                why: String::new(),
                trial: Some(trial),
            },
            GroupOutcome {
                group: SettingGroup::Mtu,
                result: GroupResult::Disruptive,
                why: "disruptive: may cut connectivity or slow something else; --disruptive allows it".into(),
                trial: None,
            },
        ];
        let shown = tried(profile, &["a".to_owned()], &outcomes, Style::PLAIN);
        fits(&shown);
        assert!(shown.contains("  proven\n") && shown.contains("  disruptive\n"), "{shown}");
        assert!(shown.contains(&format!("linerate keep {id}")), "{shown}");
    }
}
