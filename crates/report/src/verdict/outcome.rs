//! Verdicts of what is no diagnosis: trials, alarms of replicas, drives that were watched. Each has its one
//! sentence already, which stands here once more and not in other words.

use std::path::Path;

use linerate_model::change::Risk;
use linerate_model::disk::DiskEpisodes;
use linerate_model::drbd::{DrbdAlarm, Replica};
use linerate_model::fact::Gap;
use linerate_model::remark::Overall;
use linerate_model::trial::{Trial, TrialStatus};
use linerate_model::verdict::{
    Unseen, Verdict, VerdictDrive, VerdictFix, VerdictItem, VerdictReplica, VerdictSubject, VerdictTrial,
};

use super::command;
use crate::{card, words};

/// Of trials, the best first where one is proven to be it; the fix is the command that comes next.
#[must_use]
pub fn of_trials(trials: &[Trial], best: Option<&str>) -> Verdict {
    let is_best = |trial: &&Trial| best == Some(trial.id.as_str());
    let first = trials.iter().filter(is_best);
    let rest = trials.iter().filter(|trial| !is_best(trial));
    Verdict { findings: first.chain(rest).map(trial).collect(), ..Verdict::default() }
}

fn trial(trial: &Trial) -> VerdictItem {
    let next = match trial.status {
        TrialStatus::UndoFailed => Some(card::meaning(trial)),
        _ => card::next_commands(trial).into_iter().next(),
    };
    let what = VerdictTrial {
        trial: trial.id.clone(),
        status: trial.status,
        effect: trial.effect.as_ref().map(|size| size.effect),
        heading: card::trial_heading(trial),
    };
    VerdictItem {
        what: VerdictSubject::Trial(what),
        cause: None,
        check: None,
        fix: next.map(|next| VerdictFix {
            hosts: trial.remedy.hosts(),
            risk: trial.remedy.risk,
            risk_text: trial.remedy.risk_text.clone(),
            ..by_hand(next)
        }),
        next: None,
    }
}

/// Of the alarms of replicas; `typed` is the inventory as a command has to name it.
#[must_use]
pub fn of_replicas(
    alarms: &[DrbdAlarm],
    replicas: &[Replica],
    gaps: &[Gap],
    typed: Option<&Path>,
) -> Verdict {
    let item = |alarm: &DrbdAlarm| {
        let hosts = replicas.iter().filter(|replica| replica.resource == alarm.resource);
        let status: Vec<&str> =
            ["drbd", "status"].into_iter().chain(hosts.map(|replica| replica.host.as_str())).collect();
        VerdictItem {
            what: VerdictSubject::Replica(VerdictReplica {
                resource: alarm.resource.clone(),
                trouble: alarm.what,
                sentence: alarm.sentence.clone(),
            }),
            cause: None,
            // A resource that no host has in use has no hosts to ask.
            check: (status.len() > 2).then(|| command::about(&status, typed)),
            fix: (!alarm.advice.is_empty()).then(|| by_hand(alarm.advice.clone())),
            next: None,
        }
    };
    Verdict { findings: alarms.iter().map(item).collect(), unseen: unseen(gaps), ..Verdict::default() }
}

/// Of drives that were watched; `typed` as in [`of_replicas`].
#[must_use]
pub fn of_drives(findings: &[DiskEpisodes], gaps: &[Gap], typed: Option<&Path>) -> Verdict {
    let item = |all: &DiskEpisodes| {
        let finding = &all.finding;
        VerdictItem {
            what: VerdictSubject::Drive(VerdictDrive {
                host: finding.host.clone(),
                device: finding.device.clone(),
                trouble: finding.what,
                sentence: words::disks::sentence(finding),
            }),
            cause: None,
            check: Some(command::about(&["disk", "watch", &finding.host], typed)),
            fix: None,
            next: None,
        }
    };
    Verdict {
        findings: findings.iter().map(item).collect(),
        overall: findings.is_empty().then_some(Overall::Counters),
        unseen: unseen(gaps),
        ..Verdict::default()
    }
}

fn unseen(gaps: &[Gap]) -> Unseen {
    Unseen { gaps: gaps.to_vec(), ..Unseen::default() }
}

fn by_hand(words: String) -> VerdictFix {
    VerdictFix {
        trial: None,
        hosts: Vec::new(),
        by_hand: words,
        risk: Risk::Harmless,
        risk_text: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::drbd::DrbdTrouble;
    use linerate_model::trial::{Effect, EffectSize};

    use super::*;
    use crate::heat::Style;
    use crate::sample;

    #[test]
    fn a_trial_has_its_heading_and_the_next_command() {
        let trial = sample::trial();
        let verdict = of_trials(std::slice::from_ref(&trial), None);
        let text = crate::text::trial_brief(&trial, Style::default());
        let VerdictSubject::Trial(what) = &verdict.findings[0].what else { panic!() };
        assert!(text.replace('\n', " ").starts_with(&what.heading), "{text}");
        assert_eq!(what.effect, Some(Effect::Better));
        let fix = verdict.findings[0].fix.as_ref().unwrap();
        assert_eq!(fix.by_hand, format!("linerate keep {}", trial.id));
        assert!(text.contains(&fix.by_hand), "{text}");
    }

    #[test]
    fn the_best_trial_of_a_sweep_comes_first_and_the_others_have_no_fix() {
        let best = sample::trial();
        let size = best.effect.clone().unwrap();
        let effect = Some(EffectSize { effect: Effect::NoEffect, ..size });
        let other = Trial { id: "other".into(), effect, ..best.clone() };
        let verdict = of_trials(&[other, best.clone()], Some(&best.id));
        let fixes: Vec<bool> = verdict.findings.iter().map(|item| item.fix.is_some()).collect();
        assert_eq!(fixes, [true, false]);
    }

    #[test]
    fn an_alarm_has_its_sentence_its_hosts_and_its_advice() {
        let replica = |host: &str| Replica {
            host: host.into(),
            resource: "r0".into(),
            role: "Primary".into(),
            ..Replica::default()
        };
        let alarm = |resource: &str| DrbdAlarm {
            resource: resource.into(),
            what: DrbdTrouble::SplitBrain,
            evidence: None,
            sentence: "split brain of r0".into(),
            advice: "stop writing on both".into(),
        };
        let verdict = of_replicas(&[alarm("r0"), alarm("r1")], &[replica("a"), replica("b")], &[], None);
        let check = |at: usize| verdict.findings[at].check.as_ref().map(|check| check.command.as_str());
        assert_eq!(check(0), Some("linerate drbd status a b"));
        assert_eq!(check(1), None);
        assert_eq!(verdict.findings[0].fix.as_ref().unwrap().by_hand, "stop writing on both");
        let text = super::super::text(&verdict, "", "", Style::default());
        assert!(text.contains("1. split brain of r0"), "{text}");
    }
}
