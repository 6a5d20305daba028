//! A rollout as text: its settings, a row per host with the effect there, and what to type next. Fits 100
//! columns.

use std::fmt::Write as _;

use linerate_kept::rollout::{HostResult, Rollout, RolloutHost, RolloutWave, WaveStatus};
use linerate_model::printable::{clean, one_line};
use linerate_model::units::{counted, ratio};
use linerate_model::verdict::{Verdict, VerdictFix, VerdictItem};
use linerate_model::writable::writable;

use crate::heat::Style;
use crate::wrap::wrap;

/// A rollout that was planned (`is_dry_run`) or carried out.
#[must_use]
pub fn text(rollout: &Rollout, waves: &[RolloutWave], is_dry_run: bool, style: Style) -> String {
    let hosts: usize = rollout.waves.iter().map(Vec::len).sum();
    let settings: usize = rollout.groups.iter().map(|group| group.set.len()).sum();
    let head = format!(
        "{} to {}, {} in {}, compared by {}",
        rollout.source,
        counted(hosts, "host"),
        counted(settings, "setting"),
        counted(waves.len(), "wave"),
        rollout.metric.label()
    );
    let mut out = String::new();
    for line in wrap(&clean(&head), style.width) {
        out += &(style.bold(&line) + "\n");
    }
    for setting in rollout.groups.iter().flat_map(|group| &group.set) {
        let value = setting.to.as_ref().map(ToString::to_string);
        let value = value.or_else(|| setting.to_fact.clone()).or_else(|| setting.to_first_cpu_of.clone());
        let line = format!("{} = {}", setting.key, value.unwrap_or_default());
        for line in wrap(&one_line(&line), style.width - 2) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out += "\n";
    out += &style.dim(&row("wave", "host", "result", "ratio", "95 % interval"));
    out += "\n";
    for wave in waves {
        for (at, host) in wave.hosts.iter().enumerate() {
            let number = if at == 0 { wave.number.to_string() } else { String::new() };
            out += &host_row(&number, host);
            out += "\n";
            if !host.why.is_empty() {
                let lines = wrap(&one_line(&host.why), style.width - 8);
                for line in lines {
                    let _ = writeln!(out, "        {line}");
                }
            }
        }
    }
    out += "\n";
    for line in wrap(&clean(&end(rollout, waves, is_dry_run)), style.width) {
        out += &(line + "\n");
    }
    out
}

/// Hosts with harm, and those that could not be tried or undone; the fix is the command that comes next.
#[must_use]
pub fn verdict(rollout: &Rollout, waves: &[RolloutWave]) -> Verdict {
    let hosts = waves.iter().flat_map(|wave| &wave.hosts).filter(|host| host.result.stops());
    let keys = rollout.groups.iter().flat_map(|group| &group.set).map(|setting| setting.key.as_str());
    let risk = keys.filter_map(writable).map(|family| family.risk).max().unwrap_or_default();
    let item = |host: &RolloutHost| {
        let figures = host.ratio.map_or(String::new(), |(middle, low, high)| {
            format!(", {} ({} to {})", ratio(middle), ratio(low), ratio(high))
        });
        let why = if host.why.is_empty() { String::new() } else { format!(": {}", host.why) };
        let sentence = format!("{}: {}{figures}{why}", host.host, host.result.word());
        let by_hand = match host.result {
            HostResult::UndoFailed => "linerate undo --all".to_owned(),
            _ => format!("linerate rollout --resume {} --yes", rollout.id),
        };
        VerdictItem {
            fix: Some(VerdictFix { hosts: vec![host.host.clone()], by_hand, risk, ..VerdictFix::default() }),
            ..VerdictItem::stated(Some(&host.host), host.result.word(), sentence)
        }
    };
    Verdict::stating(hosts.map(item), Vec::new())
}

fn row(wave: &str, host: &str, result: &str, ratio: &str, interval: &str) -> String {
    let host = one_line(host);
    let line = format!("  {wave:<5} {host:<40} {result:<13} {ratio:>7} {interval:>17}");
    line.trim_end().to_owned()
}

fn host_row(wave: &str, host: &RolloutHost) -> String {
    let shown =
        host.ratio.map(|(middle, low, high)| (ratio(middle), format!("{} to {}", ratio(low), ratio(high))));
    let (middle, interval) = shown.unwrap_or_default();
    row(wave, &host.host, host.result.word(), &middle, &interval)
}

/// How it ended, and what comes next.
fn end(rollout: &Rollout, waves: &[RolloutWave], is_dry_run: bool) -> String {
    let resume = format!("`linerate rollout --resume {} --yes`", rollout.id);
    if is_dry_run {
        return "Nothing was written. --yes changes the hosts; each is measured, and a wave with harm is undone."
            .to_owned();
    }
    let failed = waves.iter().flat_map(|wave| &wave.hosts).find(|host| host.result == HostResult::UndoFailed);
    if let Some(host) = failed {
        return format!("{} could not be undone: `linerate undo --all` tries again.", host.host);
    }
    if let Some(wave) = waves.iter().find(|wave| wave.status == WaveStatus::Undone) {
        let stopped = wave.hosts.iter().find(|host| host.result.stops());
        let host = stopped.map_or("a host", |host| host.host.as_str());
        let what = stopped.map_or("harm", |host| host.result.word());
        return format!(
            "Wave {} is undone because of {host} ({what}); waves before it stay, those after it were not begun. \
             Resume: {resume}.",
            wave.number
        );
    }
    if waves.iter().all(|wave| wave.status == WaveStatus::Done) {
        let hosts = waves.iter().flat_map(|wave| &wave.hosts);
        let kept = hosts.filter(|host| host.result == HostResult::Kept).count();
        return format!(
            "Done: {} changed for good. `linerate undo` lists the trials.",
            counted(kept, "host")
        );
    }
    format!("Ended early; the host under way has its old values. Resume: {resume}.")
}

#[cfg(test)]
mod tests {
    use linerate_model::verdict::VerdictSubject;

    use super::*;
    use linerate_model::finding::Metric;

    fn rollout() -> Rollout {
        let waves = vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]];
        Rollout {
            id: "20261121-091244-03be".to_owned(),
            source: "20261121-083015-4f2a".to_owned(),
            trials: Vec::new(),
            run: "r".to_owned(),
            metric: Metric::Throughput,
            receives: None,
            groups: Vec::new(),
            waves,
            arms: 8,
        }
    }

    fn waves() -> Vec<RolloutWave> {
        let rollout = rollout();
        (1..).zip(&rollout.waves).map(|(number, hosts)| RolloutWave::planned(number, hosts)).collect()
    }

    fn shown(waves: &[RolloutWave], is_dry_run: bool) -> String {
        let shown = text(&rollout(), waves, is_dry_run, Style::PLAIN);
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        shown
    }

    #[test]
    fn a_plan_a_success_harm_and_an_early_end_have_their_own_words() {
        let mut waves = waves();
        assert!(shown(&waves, true).contains("Nothing was written."));
        assert!(shown(&waves, true).starts_with("20261121-083015-4f2a to 3 hosts, 0 settings in 2 waves"));
        waves[0].status = WaveStatus::Done;
        waves[0].hosts[0].result = HostResult::Kept;
        waves[0].hosts[0].ratio = Some((1.5, 1.4, 1.6));
        waves[1].status = WaveStatus::Running;
        let early = shown(&waves, false);
        assert!(early.contains("Ended early") && early.contains("1.4x to 1.6x"), "{early}");
        waves[1].hosts[1].result = HostResult::Harm;
        waves[1].hosts[1].ratio = Some((0.55, 0.5, 0.6));
        waves[1].hosts[0].result = HostResult::Undone;
        waves[1].status = WaveStatus::Undone;
        let harm = shown(&waves, false);
        assert!(harm.contains("Wave 2 is undone because of c (harm)"), "{harm}");
        let resume = "linerate rollout --resume 20261121-091244-03be --yes";
        assert!(harm.contains(resume), "{harm}");
        let verdict = verdict(&rollout(), &waves);
        let [found] = &verdict.findings[..] else { panic!("{verdict:?}") };
        assert_eq!(found.fix.as_ref().unwrap().by_hand, resume);
        let VerdictSubject::Stated(stated) = &found.what else { panic!("{found:?}") };
        assert_eq!(stated.sentence, "c: harm, 0.55x (0.5x to 0.6x)");
        waves[1].hosts.iter_mut().for_each(|host| host.result = HostResult::InForce);
        waves[1].status = WaveStatus::Done;
        assert!(shown(&waves, false).contains("Done: 1 host changed for good."));
        waves[1].hosts[0].result = HostResult::UndoFailed;
        assert!(shown(&waves, false).contains("b could not be undone"));
    }
}
