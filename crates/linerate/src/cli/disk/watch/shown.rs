//! What a watch prints: a screen that is drawn anew, a log of tables and dated lines, or lines of JSON.
//!
//! In: the state of the watch and what happened. Out: text on standard output, remarks on standard error.

use std::io::IsTerminal;
use std::path::Path;

use linerate_diagnose::disks::IntervalChange;
use linerate_model::disk::{DiskEpisodes, DiskInterval};
use linerate_model::fact::Gap;

use super::super::super::out;
use crate::cli::documents::{DiskWatched, UsersSeen, WatchedNumbers};
use linerate_fleet::clock;
use linerate_operator::observe::disk_watch::{DiskWatch, DiskWatchEvent, WatchedHost};
use linerate_report::disk_watch::{self as report, WatchedHosts};
use linerate_report::disks::{self, DiskView};
use linerate_report::heat::Style;
use linerate_report::words;

/// How a watch is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    pub(super) json: bool,
    pub(super) all: bool,
    pub(super) no_percentiles: bool,
}

/// Hosts that were never seen.
pub(super) fn unseen(watch: &DiskWatch<'_>) -> Vec<String> {
    watch.hosts.iter().filter(|host| !host.was_seen()).map(|host| host.name.clone()).collect()
}

pub(super) fn reach<'a>(watch: &DiskWatch<'_>, unseen: &'a [String], gaps: &'a [Gap]) -> WatchedHosts<'a> {
    WatchedHosts { asked: watch.hosts.len(), seen: watch.hosts.len() - unseen.len(), unseen, gaps }
}

/// The record of a finding that began or ended; `docs/guide/programs.md` has its fields.
fn finding_record(change: &IntervalChange) -> DiskWatched<'static> {
    let (finding, all) = match change {
        IntervalChange::Began(all) => ("began", all),
        IntervalChange::Ended(all) => ("ended", all),
    };
    DiskWatched::Finding { finding, of: words::disks::written(all) }
}

/// An interval, without idle devices unless they are wanted.
fn interval_record<'a>(watch: &'a DiskWatch<'_>, interval: &'a DiskInterval, all: bool) -> DiskWatched<'a> {
    let disks = interval.disks.iter().filter(|disk| all || !disk.is_idle()).collect();
    let idle = interval.disks.iter().filter(|disk| disk.is_idle()).count();
    let host = watch.hosts.iter().find(|host| host.name == interval.host);
    let users = host.and_then(|host| host.watched.as_ref()?.users.as_ref());
    DiskWatched::Interval {
        host: &interval.host,
        at_ms: interval.at_ms,
        seconds: interval.seconds,
        disks,
        idle,
        times_missing: interval.times_missing.as_deref(),
        users: users.map(|seen| UsersSeen { users: &seen.users, users_missing: seen.missing.as_deref() }),
    }
}

/// The record of a host that is not seen, lost, or back.
fn contact(host: &WatchedHost, what: &str, away_s: Option<f64>) -> anyhow::Result<()> {
    out::listing_line(DiskWatched::Contact {
        contact: what,
        host: &host.name,
        at_ms: clock::now_ms(),
        reason: host.away.as_ref().map(|away| away.reason.as_str()),
        away_s,
    })
}

impl Output {
    /// A screen is drawn anew with every interval, findings and lost hosts included.
    fn is_live(self) -> bool {
        !self.json && std::io::stdout().is_terminal()
    }

    /// Which hosts are not seen, before anything else.
    pub(super) fn begin(self, watch: &DiskWatch<'_>) -> anyhow::Result<()> {
        if self.json {
            for host in watch.hosts.iter().filter(|host| !host.was_seen()) {
                contact(host, "unseen", None)?;
            }
            return Ok(());
        }
        let (unseen, gaps) = (unseen(watch), watch.all_gaps());
        let lines = reach(watch, &unseen, &gaps).lines();
        if lines.is_empty() { Ok(()) } else { out::print(&lines) }
    }

    /// What happened, when it happens.
    pub(super) fn events(self, watch: &DiskWatch<'_>, events: &[DiskWatchEvent]) -> anyhow::Result<()> {
        for event in events {
            match event {
                DiskWatchEvent::Begun { host, away_s } => self.begun(&watch.hosts[*host], *away_s)?,
                DiskWatchEvent::Interval(interval) if self.json => {
                    out::listing_line(interval_record(watch, interval, self.all))?;
                }
                DiskWatchEvent::Finding(change) if self.json => out::listing_line(finding_record(change))?,
                DiskWatchEvent::Finding(change) if !self.is_live() => out::print(&report::change(change))?,
                DiskWatchEvent::Interval(_) | DiskWatchEvent::Finding(_) => {}
                DiskWatchEvent::Lost { host } => self.lost(&watch.hosts[*host])?,
            }
        }
        Ok(())
    }

    fn begun(self, host: &WatchedHost, away_s: Option<f64>) -> anyhow::Result<()> {
        let Some(watched) = &host.watched else { return Ok(()) };
        let missing = watched.times_missing.as_deref();
        match away_s {
            Some(away_s) if self.json => contact(host, "back", Some(away_s))?,
            Some(away_s) if !self.is_live() => {
                out::print(&report::back(clock::now_ms(), &host.name, away_s))?;
            }
            _ => {}
        }
        if self.json {
            out::listing_line(DiskWatched::Layout {
                host: &watched.host,
                layout: watched.layout.disks().collect(),
                times_missing: missing,
            })?;
        }
        if let Some(reason) = missing.filter(|_| !self.no_percentiles) {
            out::note(&format!("host {}: no percentiles: {reason}", watched.host));
        }
        Ok(())
    }

    fn lost(self, host: &WatchedHost) -> anyhow::Result<()> {
        if self.json {
            return contact(host, "lost", None);
        }
        match &host.away {
            Some(away) if !self.is_live() => {
                out::print(&report::lost(away.since_ms, &host.name, &away.reason))
            }
            _ => Ok(()),
        }
    }

    /// The tables of all hosts that are seen.
    pub(super) fn tables(self, watch: &DiskWatch<'_>, findings: &[DiskEpisodes]) -> anyhow::Result<()> {
        if self.json {
            return Ok(());
        }
        let live = self.is_live();
        let many = watch.hosts.len() > 1;
        // On a screen what is wrong is marked; a log has it in lines of its own.
        let wrong = if live { findings } else { &[] };
        let show = DiskView { all: self.all, many, wrong, style: Style::detect() };
        let mut text = String::new();
        for host in watch.hosts.iter().filter(|host| host.away.is_none()) {
            let (Some(watched), Some(last)) = (&host.watched, host.history.last()) else { continue };
            text.push_str(&disks::table(&watched.layout, last, show));
            if let Some(users) = &watched.users {
                text.push_str(&disks::users(&users.users, users.missing.as_deref()));
            }
            // What was said before the first table is off the screen by now.
            let missing = last.times_missing.as_deref().filter(|_| live && !self.no_percentiles);
            text.extend(missing.map(disks::no_percentiles));
            text.push('\n');
        }
        if live {
            let (unseen, gaps) = (unseen(watch), watch.all_gaps());
            let reach = reach(watch, &unseen, &gaps);
            let first = reach.line();
            let first = if first.is_empty() { first } else { first + "\n\n" };
            out::screen(&(first + &text + &report::summary(findings, reach)))
        } else if text.is_empty() {
            Ok(())
        } else {
            out::print(&text)
        }
    }

    /// All findings, and what was not seen; `typed` is the inventory as a command has to name it.
    pub(super) fn end(
        self,
        watch: &DiskWatch<'_>,
        findings: &[DiskEpisodes],
        typed: Option<&Path>,
    ) -> anyhow::Result<()> {
        let (unseen, gaps) = (unseen(watch), watch.all_gaps());
        let reach = reach(watch, &unseen, &gaps);
        if self.json {
            let summary = Box::new(linerate_report::verdict::of_drives(findings, &gaps, typed));
            let findings = findings.iter().map(words::disks::written).collect();
            let hosts = WatchedNumbers { asked: reach.asked, seen: reach.seen, unseen: &unseen };
            return out::listing_line(DiskWatched::End { summary, findings, gaps: &gaps, hosts });
        }
        out::print(&report::summary(findings, reach))
    }
}
