//! Alarms of watches, open and past: each with who, which direction, since when, how much, what its
//! measurement showed, what changed before, what the last survey and the last count of drops found there, and
//! what to type.

use std::net::SocketAddr;

use linerate_history::{AlarmRecord, Recorded as _};
use linerate_model::fact_change::FactChange;
use linerate_model::finding::{Direction, Suspect};
use linerate_model::inventory::{Host, HostName};
use linerate_model::shell::word;
use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf};
use linerate_model::units;
use linerate_model::verdict::VerdictItem;
use linerate_model::watch::{LossAlarm, WatchAlarm};
use linerate_model::writable::writable;
use linerate_report::{changes, watch};
use maud::{Markup, html};

use super::{drops, findings, series};
use crate::layout::{Body, Shown, commands};
use crate::link::{self, Query};
use crate::view::SiteView;

/// Rows of a list.
const ROWS_MAX: usize = 300;
/// Alarms of the first page that are over: so many, and no older, milliseconds: 24 h.
const PAST_MAX: usize = 5;
const PAST_MS: u64 = 86_400_000;
/// Changed settings whose values before are tried, at most.
const TRIES_MAX: usize = 3;

pub(super) fn list(shown: &Shown<'_>) -> Body {
    let all = &shown.view.alarms;
    let open = all.iter().filter(|one| one.is_open(shown.now_ms)).count();
    let markup = html! {
        h1 { @if open == 0 { "No open alarm" } @else { (units::counted(open, "open alarm")) } }
        @if all.is_empty() { p { "No watch has reported an alarm." } }
        @else { (table(shown, &all.iter().collect::<Vec<_>>())) }
        (commands(&[(shown.on_hosts("linerate watch"), "probes between all hosts, and reports what is lost or slow")]))
    };
    Body::new("Alarms", markup)
}

/// Whether one is open.
pub(super) fn is_any_open(shown: &Shown<'_>) -> bool {
    shown.view.alarms.iter().any(|one| one.is_open(shown.now_ms))
}

/// For the first page: those that are open, and those of the last day.
pub(super) fn recent(shown: &Shown<'_>) -> Markup {
    let since_ms = shown.now_ms.saturating_sub(PAST_MS);
    let (open, over): (Vec<_>, Vec<_>) = shown.view.alarms.iter().partition(|one| one.is_open(shown.now_ms));
    let is_recent = |one: &&AlarmRecord| one.ended_ms.unwrap_or(one.seen_ms) >= since_ms;
    let mut over: Vec<&AlarmRecord> = over.into_iter().filter(is_recent).collect();
    over.truncate(PAST_MAX);
    html! {
        @if !open.is_empty() || !over.is_empty() {
            section id="alarms" {
                h2 { a href="/alarms" { "Alarms" } }
                (table(shown, &[open, over].concat()))
            }
        }
    }
}

/// Those of a host, its pairs and its downloads.
pub(super) fn of_host(shown: &Shown<'_>, name: &str) -> Markup {
    section(shown, &|alarm| match alarm.downloads() {
        Some(of) => of.host.as_deref() == Some(name) || front_end(shown, of).is_some_and(|host| host == name),
        None => alarm.suspect().is_some_and(|suspect| series::concerns(suspect, name)),
    })
}

/// Those of a pair and of its ends.
pub(super) fn of_pair(shown: &Shown<'_>, from: &str, to: &str) -> Markup {
    section(shown, &|alarm| match alarm.suspect() {
        Some(Suspect::Host(host)) => host == from || host == to,
        Some(Suspect::Pair(a, b)) => (a == from && b == to) || (a == to && b == from),
        _ => false,
    })
}

fn section(shown: &Shown<'_>, is_of: &dyn Fn(&WatchAlarm) -> bool) -> Markup {
    let alarms: Vec<&AlarmRecord> = shown.view.alarms.iter().filter(|one| is_of(&one.alarm)).collect();
    html! { @if !alarms.is_empty() { h2 { "Alarms" } (table(shown, &alarms)) } }
}

/// The host of the run that has the address of a front end.
fn front_end<'s>(shown: &Shown<'s>, of: &DownloadSuspect) -> Option<&'s HostName> {
    let via = of.via.as_deref()?;
    let address = via.parse().ok().or_else(|| Some(via.parse::<SocketAddr>().ok()?.ip()));
    let inventory = &shown.run?.snapshot.inventory;
    let is_at =
        |host: &&Host| host.name == via || host.endpoints.iter().any(|end| Some(end.address) == address);
    inventory.hosts.iter().find(is_at).map(|host| &host.name)
}

/// Open ones first.
fn table(shown: &Shown<'_>, alarms: &[&AlarmRecord]) -> Markup {
    let mut rows = alarms.to_vec();
    rows.sort_by_key(|one| !one.is_open(shown.now_ms));
    html! {
        div.scroll { table.plain {
            thead { tr { th { "state" } th { "since, UTC" } th { "alarm" } th { "measured" } } }
            tbody {
                @for one in rows.iter().take(ROWS_MAX) {
                    tr.suspect[one.is_open(shown.now_ms)] {
                        td { (state(one, shown.now_ms)) }
                        td { (units::date_minute(one.alarm.since_ms())) }
                        td { a href=(link::to("/alarm", &[("id", &one.id())])) { (watch::is_wrong(&one.alarm)) } }
                        td { (verdict(one)) }
                    }
                }
            }
        } }
        @if rows.len() > ROWS_MAX { p { "and " (rows.len() - ROWS_MAX) " older ones" } }
    }
}

fn state(one: &AlarmRecord, now_ms: u64) -> String {
    let span = |until: u64| units::span_s(until.saturating_sub(one.alarm.since_ms()) as f64 / 1e3);
    match one.ended_ms {
        Some(ended) => format!("over after {}", span(ended)),
        None if one.is_left(now_ms) => "open when its watch ended".to_owned(),
        None => format!("open for {}", span(now_ms)),
    }
}

/// Without the flows that it rests on.
fn verdict(one: &AlarmRecord) -> String {
    measured(one).split(": ").next().unwrap_or_default().to_owned()
}

fn measured(one: &AlarmRecord) -> String {
    if let WatchAlarm::Slow(alarm) = &one.alarm {
        return watch::slow_verdict(alarm);
    }
    let without = if one.ended_ms.is_some() { "not measured" } else { "not measured yet" };
    one.decided.as_ref().map_or_else(|| without.to_owned(), watch::verdict)
}

/// The alarm that an address is of.
pub(crate) fn asked<'v>(view: &'v SiteView, query: &Query) -> Option<&'v AlarmRecord> {
    let id = query.get("id")?;
    view.alarms.iter().find(|one| one.id() == id)
}

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let above = |body: Body| body.below("Alarms", "/alarms".to_owned());
    let Some(one) = asked(shown.view, shown.query) else {
        let id = shown.query.get("id").unwrap_or_default();
        return above(Body::missing(id, html! { h1 { "No alarm " (id) } }));
    };
    let hosts = hosts_of(shown, one);
    let title = watch::is_wrong(&one.alarm);
    let markup = html! {
        h1 { (title) }
        (lines(shown, one, &hosts))
        (series::of_alarm(shown, &one.alarm))
        (causes(shown, one, &hosts))
        (commands(&next(shown, one, &hosts)))
    };
    above(Body::new(title, markup))
}

/// What a person types next.
fn next(shown: &Shown<'_>, one: &AlarmRecord, hosts: &[HostName]) -> Vec<(String, &'static str)> {
    let on_hosts = |command: String| match one.inventory.as_str() {
        "" => shown.on_hosts(&command),
        inventory => format!("{command} {inventory}"),
    };
    let of_hosts = |command: &str| {
        let words: Vec<String> = hosts.iter().map(|host| word(host)).collect();
        format!("{command} {}", words.join(" "))
    };
    let has_url = one.alarm.downloads().is_some_and(|of| of.url.is_some());
    let shows =
        if has_url { "shows in which step it is slow" } else { "measures all pairs and names the cause" };
    let mut next = vec![(one.command.clone(), shows)];
    let tries = tries(one).map(on_hosts);
    next.extend(
        tries.map(|command| (command, "after a survey: tries the value before the change, measures both")),
    );
    if !hosts.is_empty() && hosts.len() <= findings::HOSTS_MAX {
        next.push((on_hosts(of_hosts("linerate drops")), "counts what they drop, by the kernel's reasons"));
        next.push((of_hosts("linerate changes"), "lists what changed on them"));
    }
    next
}

/// Trials of the values before: of settings that can be written, and changed before it began.
fn tries(one: &AlarmRecord) -> impl Iterator<Item = String> {
    let measure = match &one.alarm {
        WatchAlarm::Loss(_) => "loss",
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Rtt(_), .. }) => "rtt-idle",
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Download(_), .. }) => "throughput",
    };
    let could_cause = |change: &&FactChange| {
        !is_after(one, change) && change.to.is_some() && writable(&change.key).is_some()
    };
    let before = one.changed.iter().filter(could_cause).filter_map(move |change| {
        // Commas separate values that are tried one after another.
        let value = change.from.as_ref().map(ToString::to_string).filter(|value| !value.contains(','))?;
        let (set, host) = (word(&format!("{}={value}", change.key)), word(&change.host));
        Some(format!("linerate try --set {set} --on {host} --measure {measure}"))
    });
    before.take(TRIES_MAX)
}

/// Whether a setting changed when the alarm's trouble was there already.
fn is_after(one: &AlarmRecord, change: &FactChange) -> bool {
    let exact_to_ms = match &one.alarm {
        // RTTs are known by the minute.
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Rtt(_), .. }) => 60_000,
        _ => 1_000,
    };
    change.after_ms > one.alarm.since_ms() + exact_to_ms
}

/// The hosts of an alarm that are known; none where it is every path.
fn hosts_of(shown: &Shown<'_>, one: &AlarmRecord) -> Vec<HostName> {
    if !one.hosts.is_empty() {
        return one.hosts.clone();
    }
    let alarm = &one.alarm;
    let ends = |of: &DownloadSuspect| -> Vec<HostName> {
        let front_end = front_end(shown, of).filter(|host| of.host.as_ref() != Some(*host));
        of.host.iter().chain(front_end).cloned().collect()
    };
    alarm.suspect().map_or_else(
        || alarm.downloads().map(ends).unwrap_or_default(),
        |suspect| findings::hosts_of(shown, suspect),
    )
}

/// Who, which direction, since when, how much, measured, changed.
fn lines(shown: &Shown<'_>, one: &AlarmRecord, hosts: &[HostName]) -> Markup {
    let alarm = &one.alarm;
    html! {
        dl.lines.wide {
            dt { "Who" }
            dd { (who(shown, alarm, hosts)) @if !one.cluster.is_empty() { span.on { " in " (one.cluster) } } }
            dt { "Direction" }
            dd { (direction_of(alarm)) }
            dt { "Since" }
            dd {
                (units::date(alarm.since_ms())) ", " (state(one, shown.now_ms))
                p.small { "reported " (units::date(alarm.reported_ms())) ", seen last " (units::date(one.seen_ms)) }
            }
            @match alarm {
                WatchAlarm::Loss(alarm) => (loss(alarm)),
                WatchAlarm::Slow(alarm) => {
                    dt { (if matches!(alarm.of, SlowOf::Rtt(_)) { "RTT" } else { "Downloads" }) }
                    dd { (watch::how_slow(alarm)) ", " (watch::slow_rests_on(alarm)) }
                }
            }
            dt { "Measured" }
            dd { (measured(one)) }
            (before(shown, one))
            dt { "Changed" }
            dd {
                @for change in &in_order(one) {
                    p {
                        (changes::in_short(change)) ", " (changes::between(change)) " "
                        @if is_after(one, change) { b { "after it began" } " " }
                        a href=(link::to("/changes", &[("host", &change.host)])) { "changes" }
                    }
                }
                @if one.changed.is_empty() { "No setting of it changed in the day before." }
            }
        }
    }
}

/// What changed before it began, newest first, then what changed later.
fn in_order(one: &AlarmRecord) -> Vec<&FactChange> {
    let mut changed: Vec<&FactChange> = one.changed.iter().collect();
    changed.sort_by_key(|change| is_after(one, change));
    changed
}

/// Earlier alarms of the same in the day before: an intermittent one has begun with the first of them.
fn before(shown: &Shown<'_>, one: &AlarmRecord) -> Markup {
    let since_ms = one.alarm.since_ms();
    let earlier: Vec<&AlarmRecord> = shown
        .view
        .alarms
        .iter()
        .filter(|other| other.cluster == one.cluster && is_same(&other.alarm, &one.alarm))
        .filter(|other| (since_ms.saturating_sub(PAST_MS)..since_ms).contains(&other.alarm.since_ms()))
        .collect();
    let Some(first) = earlier.iter().min_by_key(|other| other.alarm.since_ms()) else { return html! {} };
    html! {
        dt { "Before" }
        dd {
            (units::counted(earlier.len(), "alarm")) " of the same in the day before, the first since "
            a href=(link::to("/alarm", &[("id", &first.id())])) { (units::date(first.alarm.since_ms())) }
        }
    }
}

/// Whether two alarms are of the same trouble.
fn is_same(one: &WatchAlarm, other: &WatchAlarm) -> bool {
    match (one, other) {
        (WatchAlarm::Loss(one), WatchAlarm::Loss(other)) => {
            (&one.suspect, one.direction) == (&other.suspect, other.direction)
        }
        (WatchAlarm::Slow(one), WatchAlarm::Slow(other)) => one.of == other.of,
        _ => false,
    }
}

fn loss(alarm: &LossAlarm) -> Markup {
    html! {
        dt { "Loss" }
        dd {
            (units::percent_lost(alarm.share())) ": " (alarm.lost) " of " (alarm.sent) " probes"
            @if alarm.partners > 1 { ", seen with " (alarm.partners) " hosts" }
        }
    }
}

fn direction_of(alarm: &WatchAlarm) -> String {
    match alarm {
        WatchAlarm::Loss(LossAlarm { suspect: Suspect::Pair(from, to), .. }) => {
            format!("from {from} to {to}")
        }
        WatchAlarm::Loss(alarm) => direction(alarm.direction).to_owned(),
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Rtt(_), .. }) => {
            "not known: a probe and its answer pass both directions".to_owned()
        }
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Download(_), .. }) => "what the front end sends".to_owned(),
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Tx => "what it sends",
        Direction::Rx => "what it receives",
        Direction::Both => "what it sends and receives",
    }
}

/// The suspect with links to its pages.
fn who(shown: &Shown<'_>, alarm: &WatchAlarm, hosts: &[HostName]) -> Markup {
    let Some(suspect) = alarm.suspect() else { return downloads(shown, alarm) };
    html! {
        @match suspect {
            Suspect::Pair(from, to) => {
                @if shown.has_host(from) && shown.has_host(to) {
                    a href=(shown.pair(from, to)) { (from) " to " (to) } ": "
                }
                (shown.host_link(from)) ", " (shown.host_link(to))
            }
            Suspect::Host(host) => (shown.host_link(host)),
            other => {
                @if let Suspect::Group(group) = other { "group " (group) } @else { (other.label(Direction::Both)) }
                @if !hosts.is_empty() { ": " }
                @for host in hosts.iter().take(findings::HOSTS_MAX) { (shown.host_link(host)) " " }
                @if hosts.len() > findings::HOSTS_MAX { "and " (hosts.len() - findings::HOSTS_MAX) " more" }
            }
        }
    }
}

/// What downloads have in common, by name: a URL is text, never a link.
fn downloads(shown: &Shown<'_>, alarm: &WatchAlarm) -> Markup {
    let DownloadSuspect { host, url, via } = alarm.downloads().cloned().unwrap_or_default();
    let served_by = via.is_some().then(|| alarm.downloads().and_then(|of| front_end(shown, of))).flatten();
    html! {
        @if let Some(via) = &via { "front end " (via) } @else { "every front end" }
        @if let Some(name) = served_by.filter(|name| via.as_ref() != Some(*name)) { " (" (shown.host_link(name)) ")" }
        ", by " @if let Some(host) = &host { (shown.host_link(host)) } @else { "every host that downloads" }
        @if let Some(url) = &url { ", of " (url) }
    }
}

/// What the last survey and the last count of drops found of its hosts.
fn causes(shown: &Shown<'_>, one: &AlarmRecord, hosts: &[HostName]) -> Markup {
    let is_of = |item: &VerdictItem| match one.alarm.suspect() {
        Some(Suspect::All) => true,
        _ => findings::hosts(shown, item).iter().any(|host| hosts.contains(host)),
    };
    let found = findings::section(shown, &is_of);
    let dropped = drops::of_hosts(shown, hosts);
    html! {
        h2 { "What may cause it" }
        @if found.0.is_empty() && dropped.0.is_empty() {
            p { "Neither the last survey nor the last count of drops found anything of its hosts." }
        }
        @if let (Some(run), false) = (shown.run, found.0.is_empty()) {
            p.small { "Found by the survey of " (units::date_minute(run.row.start_ms)) " UTC:" }
        }
        (found)
        (dropped)
    }
}
