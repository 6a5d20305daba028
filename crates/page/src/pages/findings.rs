//! Findings of a run with links to what they speak of, and since when: the lines are those of the report.

use linerate_model::finding::{Direction, Suspect};
use linerate_model::inventory::HostName;
use linerate_model::units;
use linerate_model::verdict::{VerdictItem, VerdictSubject};
use linerate_report::{changes, history};
use maud::{Markup, html};

use crate::layout::Shown;
use crate::link;

/// Hosts of a suspect that are linked; settings that are quoted beside a change.
pub(super) const HOSTS_MAX: usize = 8;
const SETTINGS_MAX: usize = 3;

/// What a page adds below the lines of a finding.
pub(super) fn more(shown: &Shown<'_>, item: &VerdictItem) -> Markup {
    let hosts = hosts(shown, item);
    let pair = pair(item);
    html! {
        dl.lines {
            @if !hosts.is_empty() || pair.is_some() {
                dt { "Show" }
                dd {
                    @for host in hosts.iter().take(HOSTS_MAX) { (shown.host_link(host)) " " }
                    @if hosts.len() > HOSTS_MAX { "and " (hosts.len() - HOSTS_MAX) " more " }
                    @if let Some((from, to)) = pair { a href=(shown.pair(from, to)) { (from) " to " (to) } }
                }
            }
            (since(shown, item))
        }
    }
}

/// When a suspect became worse, and which settings changed then.
fn since(shown: &Shown<'_>, item: &VerdictItem) -> Markup {
    let over = &shown.view.over_time;
    let found = suspects(item).into_iter().find_map(|(suspect, direction)| over.worse(suspect, direction));
    let Some(change) = found else { return html! {} };
    let settings = over.settings(change);
    let ends = (over.at_ms(change.last), over.at_ms(change.first));
    html! {
        dt { "Since" }
        dd {
            p {
                "between " (units::date_minute(ends.0)) " and " (units::date_minute(ends.1)) " UTC: "
                (history::levels(&over.series[change.series], change))
            }
            @for setting in settings.iter().take(SETTINGS_MAX) {
                p {
                    "changed then: " (changes::in_short(setting)) " "
                    a href=(link::to("/changes", &[("host", &setting.host)])) { "changes" }
                }
            }
            @if settings.is_empty() { p.small { "no setting changed then" } }
        }
    }
}

fn suspects(item: &VerdictItem) -> Vec<(&Suspect, Direction)> {
    match &item.what {
        VerdictSubject::Loss(loss) => {
            loss.locations.iter().map(|one| (&one.suspect, one.direction)).collect()
        }
        _ => Vec::new(),
    }
}

/// The hosts that a finding speaks of, each once.
pub(super) fn hosts(shown: &Shown<'_>, item: &VerdictItem) -> Vec<HostName> {
    let mut hosts: Vec<HostName> = Vec::new();
    for (suspect, _) in suspects(item).into_iter().take(1) {
        hosts.extend(hosts_of(shown, suspect));
    }
    if let VerdictSubject::Drive(drive) = &item.what {
        hosts.push(drive.host.clone());
    }
    hosts.extend(item.fix.iter().flat_map(|fix| fix.hosts.clone()));
    let mut seen = std::collections::BTreeSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    hosts
}

/// The hosts of a suspect; none where it is every path.
pub(super) fn hosts_of(shown: &Shown<'_>, suspect: &Suspect) -> Vec<HostName> {
    match suspect {
        Suspect::Host(host) | Suspect::Drive(host, _) => vec![host.clone()],
        Suspect::Pair(a, b) => vec![a.clone(), b.clone()],
        Suspect::Mismatch(_, hosts) => hosts.clone(),
        Suspect::Group(a) => members(shown, &[a]),
        Suspect::GroupToGroup(a, b) => members(shown, &[a, b]),
        Suspect::All => Vec::new(),
    }
}

/// The hosts of groups.
fn members(shown: &Shown<'_>, groups: &[&String]) -> Vec<HostName> {
    let Some(run) = shown.run else { return Vec::new() };
    let inventory = &run.snapshot.inventory;
    let is_in = |host: &str| inventory.groups_of(host).iter().any(|of| groups.contains(&&of.name));
    inventory.hosts.iter().map(|host| &host.name).filter(|host| is_in(host)).cloned().collect()
}

fn pair(item: &VerdictItem) -> Option<(&str, &str)> {
    let VerdictSubject::Loss(loss) = &item.what else { return None };
    loss.pair.as_ref().map(|(from, to)| (from.as_str(), to.as_str()))
}

/// The findings of a run that a page is about, with all their lines; nothing where there are none.
pub(super) fn section(shown: &Shown<'_>, is_of: &dyn Fn(&VerdictItem) -> bool) -> Markup {
    let Some(run) = shown.run else { return html! {} };
    let all = &run.verdict.findings;
    let found: Vec<usize> = (0..all.len()).filter(|i| is_of(&all[*i])).collect();
    let trials: Vec<_> = shown.view.trials.iter().filter(|trial| trial.run == run.row.id).cloned().collect();
    html! {
        @for i in found {
            article.card {
                (linerate_report::html::first::item(i, &run.verdict, &trials))
                (more(shown, &all[i]))
            }
        }
    }
}

/// Whether a finding speaks of a pair: of one of its ends, or of the pair itself.
pub(super) fn is_of_pair(shown: &Shown<'_>, item: &VerdictItem, from: &str, to: &str) -> bool {
    let is_pair =
        |(suspect, _): &(&Suspect, Direction)| matches!(suspect, Suspect::Pair(a, b) if a == from && b == to);
    let ends = hosts(shown, item);
    let has = |name: &str| ends.iter().any(|host| host == name);
    match suspects(item).first() {
        Some(one @ (Suspect::Pair(..), _)) => is_pair(one),
        _ => has(from) || has(to),
    }
}
