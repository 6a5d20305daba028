//! Tests of the trial: the way through, every failure, and a kill at every step of node, operator and both,
//! in memory.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::change::{Change, ReadBack, Remedy};
use linerate_model::fact::{FactKey, FactValue};
use linerate_model::finding::Metric;
use linerate_model::inventory::Layer;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome};
use linerate_model::trial::{Effect, EffectSize, Trial, TrialMeasure, TrialStatus};

use super::choose::{self, TrialError, TrialOptions};
use super::drive::{self, HostActions, Scene, Tested};
use super::machine::{Action, Course, Judge, KeepWhen, TrialEvent, TrialMachine, UNDO_GRACE_MS, Which};
use super::simulated::{Kill, World};
use linerate_fleet::changes::FleetChangeError;

#[path = "../../../report/src/sample.rs"]
#[allow(dead_code, reason = "the reports use all of it")]
mod sample;

fn change(host: &str, key: &str) -> Change {
    Change { host: host.into(), key: key.into(), from: FactValue::Flag(true), to: FactValue::Flag(false) }
}

fn trial(hosts: usize) -> Trial {
    let mut changes = Vec::new();
    for i in 0..hosts {
        changes.push(change(&format!("h{i}"), "nic.eth0.feature.gro"));
        changes.push(change(&format!("h{i}"), "nic.eth0.feature.gso"));
    }
    let measure = TrialMeasure {
        response: Metric::Throughput,
        layer: Layer::Underlay,
        pair: ("h0".into(), "p".into()),
        control: Some(("c".into(), "d".into())),
    };
    let remedy = Remedy { id: "x".into(), changes, ..Remedy::default() };
    Trial::planned("t1".into(), "r1".into(), remedy, measure)
}

fn machine(trial: Trial, keep: bool) -> TrialMachine {
    let keep = KeepWhen::better_if(keep);
    TrialMachine::measure(trial, Course { keep, ..Course::default() }, linerate_report::words::effect)
}

/// All settings as before.
fn old(world: &World) -> bool {
    world.hosts.values().all(|h| h.files.is_empty() && h.values.values().all(|v| *v == FactValue::Flag(true)))
}

/// All settings new and persistent.
fn new(world: &World) -> bool {
    world
        .hosts
        .values()
        .all(|h| !h.files.is_empty() && h.values.values().all(|v| *v == FactValue::Flag(false)))
}

/// Plays a machine in a world until it ends or its operator dies.
fn play(machine: &mut TrialMachine, world: &mut World) {
    // Faster when changed; the control stays as it is.
    let count = RefCell::new(0_u32);
    while let Some(action) = machine.action().cloned() {
        let control = matches!(action, Action::Measure { which: Which::Control, .. });
        let event = world.act(&action, machine, &mut |w| {
            *count.borrow_mut() += 1;
            let noise = f64::from(*count.borrow() % 3);
            if control {
                100.0 + noise
            } else if old(w) {
                10.0 + noise * 0.1
            } else {
                99.0 + noise
            }
        });
        if world.operator_dead_ms.is_some() {
            return;
        }
        machine.on(event, world.now_ms);
    }
}

#[test]
fn a_good_remedy_is_proven_and_the_old_values_are_back() {
    let mut machine = machine(trial(1), false);
    let mut world = World::new(&machine.trial().remedy.changes.clone(), None, true);
    play(&mut machine, &mut world);
    let trial = machine.trial();
    assert_eq!(trial.status, TrialStatus::Measured, "{:?}", trial.notes);
    assert_eq!(trial.effect.as_ref().map(|e| e.effect), Some(Effect::Better));
    let order: String = trial.arms.iter().map(|a| if a.changed { 'B' } else { 'A' }).collect();
    assert_eq!(order, "ABBAABBA");
    assert!(trial.arms.iter().all(|a| a.value.is_some() && a.control.is_some()));
    assert!(old(&world));
}

/// A trial of which the first so many measurements were contended, and worth nothing or less: how many of its
/// arms have a value, and what is said.
fn contended(first: u32, worthless: bool) -> (usize, Option<Effect>, Vec<String>) {
    let mut machine = machine(trial(1), false);
    let mut world = World::new(&machine.trial().remedy.changes.clone(), None, true);
    let mut left = first;
    while let Some(action) = machine.action().cloned() {
        let control = matches!(action, Action::Measure { which: Which::Control, .. });
        let mut event = world.act(&action, &machine, &mut |w| if old(w) || control { 10.0 } else { 99.0 });
        if matches!(action, Action::Measure { .. }) && left > 0 {
            left -= 1;
            event = match event {
                TrialEvent::Measured(Some(value)) if !worthless => {
                    TrialEvent::Contended { value, reason: "a busy machine".to_owned() }
                }
                _ => TrialEvent::Measured(None),
            };
        }
        machine.on(event, world.now_ms);
    }
    assert!(old(&world), "whatever was measured, the old values are back");
    let trial = machine.trial();
    let valid = trial.arms.iter().filter(|arm| arm.value.is_some() && arm.control.is_some()).count();
    (valid, trial.effect.as_ref().map(|e| e.effect), trial.notes.clone())
}

#[test]
fn a_contended_measurement_is_made_again_a_few_times() {
    assert_eq!(contended(4, true).0, 8, "four are made again");
    let (valid, effect, _) = contended(1_000, true);
    assert_eq!((valid, effect), (0, Some(Effect::NotShown)), "and it ends although all are contended");
    let (valid, effect, notes) = contended(4, false);
    assert_eq!(
        (valid, effect, notes.len()),
        (8, Some(Effect::Better), 0),
        "four are made again, and then are good"
    );
}

#[test]
fn what_is_contended_all_the_time_counts_and_is_noted() {
    let (valid, effect, notes) = contended(1_000, false);
    assert_eq!((valid, effect), (8, Some(Effect::Better)), "old and new values take turns");
    assert!(notes.len() == 1 && notes[0].starts_with("16 of the measurements were contended"), "{notes:?}");
    assert!(notes[0].contains("(a busy machine)"), "{notes:?}");
}

#[test]
fn with_keep_the_new_values_stay_and_undo_takes_them_back() {
    let mut machine = machine(trial(2), true);
    let changes = machine.trial().remedy.changes.clone();
    let mut world = World::new(&changes, None, true);
    play(&mut machine, &mut world);
    assert_eq!(machine.trial().status, TrialStatus::Kept, "{:?}", machine.trial().notes);
    assert!(new(&world) && !machine.trial().persisted.is_empty());
    world.pass(60_000);
    assert!(new(&world), "a kept change outlives the deadline");

    let mut machine =
        TrialMachine::undo(machine.trial().clone(), Course::default(), linerate_report::words::effect);
    play(&mut machine, &mut world);
    assert_eq!(machine.trial().status, TrialStatus::Undone);
    assert!(old(&world) && machine.trial().persisted.is_empty());
}

/// A change that was proven elsewhere stays where it does no harm, and nowhere else.
#[test]
fn what_is_harmless_stays_and_harm_or_doubt_is_undone() {
    fn sized(effect: Effect) -> EffectSize {
        EffectSize {
            effect,
            ratio: 1.0,
            interval: (0.9, 1.1),
            control_ratio: 1.0,
            control_interval: (0.9, 1.1),
            before: 1.0,
            after: 1.0,
            fewer_than: None,
            sentence: String::new(),
        }
    }
    let better: Judge = |_, _, _| sized(Effect::Better);
    let none: Judge = |_, _, _| sized(Effect::NoEffect);
    let worse: Judge = |_, _, _| sized(Effect::Worse);
    let unclear: Judge = |_, _, _| sized(Effect::NotShown);
    for (judge, stays) in [(better, true), (none, true), (worse, false), (unclear, false)] {
        let course = Course { keep: KeepWhen::Harmless, ..Course::default() };
        let mut machine = TrialMachine::measure(trial(1), course, judge);
        let mut world = World::new(&machine.trial().remedy.changes.clone(), None, true);
        play(&mut machine, &mut world);
        let status = if stays { TrialStatus::Kept } else { TrialStatus::Measured };
        assert_eq!(machine.trial().status, status, "{:?}", machine.trial().notes);
        assert!(if stays { new(&world) } else { old(&world) });
        let is_noted = machine.trial().notes.iter().any(|note| note.starts_with("not kept"));
        assert_eq!(is_noted, !stays);
    }
}

#[test]
fn a_measured_trial_can_be_kept_later() {
    let mut first = machine(trial(1), false);
    let mut world = World::new(&first.trial().remedy.changes.clone(), None, true);
    play(&mut first, &mut world);
    let mut later =
        TrialMachine::keep(first.trial().clone(), Course::default(), linerate_report::words::effect);
    play(&mut later, &mut world);
    assert_eq!(later.trial().status, TrialStatus::Kept);
    assert!(new(&world));
    assert!(
        later.trial().notes.iter().any(|n| n.starts_with("checked after keeping")),
        "{:?}",
        later.trial().notes
    );
}

/// A kill at every step: whatever the operator says in the end is true, and within the deadline nothing is
/// half done.
#[test]
fn a_kill_at_any_step_leaves_the_old_values_or_what_was_confirmed() {
    for hosts in [1, 2] {
        for keep in [false, true] {
            let mut whole = machine(trial(hosts), keep);
            let changes = whole.trial().remedy.changes.clone();
            let mut world = World::new(&changes, None, true);
            play(&mut whole, &mut world);
            let steps = world.steps;
            assert!(steps > 30);
            for at in 0..steps {
                for kill in [Kill::Node, Kill::Operator, Kill::Both] {
                    for comes_back in [true, false] {
                        killed_at(hosts, keep, at, kill, comes_back);
                    }
                }
            }
        }
    }
}

fn killed_at(hosts: usize, keep: bool, at: usize, kill: Kill, comes_back: bool) {
    let case =
        format!("{hosts} hosts, keep {keep}, {kill:?} killed before step {at}, comes back {comes_back}");
    let mut machine = machine(trial(hosts), keep);
    let mut world = World::new(&machine.trial().remedy.changes.clone(), Some((at, kill)), comes_back);
    play(&mut machine, &mut world);
    let deadline_ms = u64::from(Course::default().deadline_s) * 1000;
    world.pass(deadline_ms + UNDO_GRACE_MS);
    if world.operator_dead_ms.is_none() {
        let trial = machine.trial();
        match trial.status {
            TrialStatus::Measured | TrialStatus::Undone => {
                assert!(old(&world), "{case}: said {:?}", trial.status);
            }
            TrialStatus::Kept => assert!(new(&world), "{case}"),
            TrialStatus::UndoFailed => assert!(!trial.notes.is_empty(), "{case}: must say why"),
            TrialStatus::Running => panic!("{case}: not ended"),
        }
        return;
    }
    // Nobody is left to ask: each host alone is either wholly old or, when it had confirmed the keeping,
    // wholly new.
    for (name, host) in &world.hosts {
        let on = host.values.values().filter(|v| **v == FactValue::Flag(true)).count();
        let whole = (on == host.values.len() && host.files.is_empty()) || (on == 0 && !host.files.is_empty());
        assert!(whole, "{case}: {name} is half done: {host:?}");
        assert!(keep || on == host.values.len(), "{case}: {name} stayed changed");
    }
}

#[test]
fn a_value_that_does_not_stick_ends_the_trial() {
    let mut machine = machine(trial(1), false);
    assert_eq!(machine.action(), Some(&Action::Apply("h0".into())));
    let wrong: ReadBack = machine.changes("h0").into_iter().map(|c| (c.key, c.from)).collect();
    machine.on(TrialEvent::Values(wrong), 10);
    assert_eq!(machine.action(), Some(&Action::Undo("h0".into())));
    assert!(
        machine.trial().notes[0].contains("reads on where off was written"),
        "{:?}",
        machine.trial().notes
    );
}

#[test]
fn an_operator_that_slept_through_the_deadline_does_not_believe_its_arms() {
    let mut machine = machine(trial(1), false);
    let values = |m: &TrialMachine, to: bool| -> TrialEvent {
        TrialEvent::Values(
            m.changes("h0").into_iter().map(|c| (c.key, if to { c.to } else { c.from })).collect(),
        )
    };
    let event = values(&machine, true);
    machine.on(event, 0);
    let event = values(&machine, false);
    machine.on(event, 3_600_000);
    assert_eq!(machine.action(), Some(&Action::Undo("h0".into())));
    let event = values(&machine, false);
    machine.on(event, 3_600_010);
    assert_eq!(machine.trial().status, TrialStatus::Undone);
}

#[test]
fn cancelling_at_any_step_puts_the_old_values_back() {
    let mut whole = machine(trial(2), false);
    let mut actions = 0;
    let mut world = World::new(&whole.trial().remedy.changes.clone(), None, true);
    while let Some(action) = whole.action().cloned() {
        let event = world.act(&action, &whole, &mut |_| 1.0);
        whole.on(event, world.now_ms);
        actions += 1;
    }
    for at in 0..actions {
        let mut machine = machine(trial(2), false);
        let mut world = World::new(&machine.trial().remedy.changes.clone(), None, true);
        let mut count = 0;
        while let Some(action) = machine.action().cloned() {
            if count == at {
                machine.on(TrialEvent::Cancel, world.now_ms);
            } else {
                let event = world.act(&action, &machine, &mut |_| 1.0);
                machine.on(event, world.now_ms);
            }
            count += 1;
        }
        assert!(old(&world), "cancelled at {at}");
        assert!(matches!(machine.trial().status, TrialStatus::Undone | TrialStatus::Measured));
    }
}

#[test]
fn a_worse_or_useless_remedy_is_not_kept() {
    let mut machine = machine(trial(1), true);
    let mut world = World::new(&machine.trial().remedy.changes.clone(), None, true);
    while let Some(action) = machine.action().cloned() {
        let event = world.act(&action, &machine, &mut |_| 50.0);
        machine.on(event, world.now_ms);
    }
    assert_eq!(machine.trial().status, TrialStatus::Measured);
    assert!(old(&world) && machine.trial().persisted.is_empty());
    assert!(machine.trial().notes.iter().any(|n| n.contains("not kept")));
}

#[test]
fn pairs_are_chosen_from_the_finding() {
    let (snapshot, diagnosis) = sample::sick();
    let options = TrialOptions {
        remedy: "nic-gro-hw-overlay".into(),
        on: vec!["vs-4".into()],
        ..TrialOptions::default()
    };
    let trial = choose::plan(&snapshot, &diagnosis, &options, "t".into()).expect("can be tried");
    assert_eq!((trial.layer, trial.response), (Layer::Overlay, Metric::Throughput));
    assert_eq!(trial.pair.0, "arc-6", "nothing gets through from there: the worst pair");
    let (from, to) = trial.control.expect("two hypervisors are left");
    for host in [&from, &to] {
        assert!(
            ["arc-3", "arc-5"].contains(&host.as_str()),
            "{host} shares a machine with the pair or the change"
        );
    }
}

#[test]
fn what_cannot_be_tried_is_refused_with_the_way_out() {
    let (snapshot, mut diagnosis) = sample::sick();
    let plan = |diagnosis: &_, remedy: &str, on: &[&str]| {
        let on = on.iter().map(|h| (*h).to_owned()).collect();
        choose::plan(
            &snapshot,
            diagnosis,
            &TrialOptions { remedy: remedy.into(), on, ..TrialOptions::default() },
            "t".into(),
        )
    };
    let error = plan(&diagnosis, "nonsense", &[]).expect_err("no such remedy");
    assert!(error.to_string().contains("nic-gro-hw-overlay"), "{error}");
    let error = plan(&diagnosis, "nic-gro-hw-overlay", &["arc-1"]).expect_err("changes nothing there");
    assert!(error.to_string().contains("vs-4"), "{error}");
    let remedy = diagnosis.findings[0].causes[0].remedy.as_mut().expect("has one");
    remedy.changes.clear();
    let error = plan(&diagnosis, "nic-gro-hw-overlay", &[]).expect_err("only an instruction");
    assert!(matches!(error, TrialError::OnlyInstruction { .. }));
    assert!(error.to_string().contains("ethtool -K up0 rx-gro-hw off"));
}

#[test]
fn a_small_cluster_has_no_control() {
    let (snapshot, mut diagnosis) = sample::sick();
    diagnosis
        .cells
        .retain(|c| [&c.from, &c.to].into_iter().all(|h| ["arc-1", "arc-3", "arc-6"].contains(&h.as_str())));
    let options = TrialOptions { remedy: "nic-gro-hw-overlay".into(), ..TrialOptions::default() };
    let trial = choose::plan(&snapshot, &diagnosis, &options, "t".into()).expect("can be tried");
    assert_eq!(trial.control, None);
}

/// Other load of the machine hides pairs from a survey; that is no reason to measure without a control pair.
#[test]
fn a_pair_that_was_not_seen_is_a_control_where_no_other_is_left() {
    let (snapshot, diagnosis) = sample::sick();
    let options = TrialOptions { remedy: "nic-gro-hw-overlay".into(), ..TrialOptions::default() };
    let control = |throughput: Option<f64>| {
        let mut hidden = diagnosis.clone();
        for cell in &mut hidden.cells {
            let is_untouched = ["arc-3", "arc-5"].iter().all(|h| *h == cell.from || *h == cell.to);
            if is_untouched {
                cell.throughput_bps = throughput;
            }
        }
        choose::plan(&snapshot, &hidden, &options, "t".into()).expect("can be tried").control
    };
    let seen = choose::plan(&snapshot, &diagnosis, &options, "t".into()).expect("can be tried").control;
    let pair = seen.clone().expect("arc-3 and arc-5 share nothing with the change");
    assert!(["arc-3", "arc-5"].contains(&pair.0.as_str()) && ["arc-3", "arc-5"].contains(&pair.1.as_str()));
    assert!(
        control(None).is_some_and(
            |(from, to)| (&from, &to) == (&pair.0, &pair.1) || (&to, &from) == (&pair.0, &pair.1)
        )
    );
    assert_eq!(control(Some(0.0)), None, "nothing gets through there");
}

/// Hands that always succeed and remember what they were told.
#[derive(Default)]
struct Willing {
    changed: bool,
    log: Vec<&'static str>,
}

fn read_back(changes: &[Change], changed: bool) -> ReadBack {
    changes.iter().map(|c| (c.key.clone(), if changed { c.to.clone() } else { c.from.clone() })).collect()
}

impl HostActions for Willing {
    async fn apply(
        &mut self,
        _: &str,
        _: &str,
        changes: &[Change],
        _: u32,
    ) -> Result<ReadBack, FleetChangeError> {
        self.log.push("apply");
        self.changed = true;
        Ok(read_back(changes, true))
    }

    async fn revert(&mut self, _: &str, _: &str) -> Result<ReadBack, FleetChangeError> {
        self.log.push("revert");
        self.changed = false;
        Ok(read_back(&sample::remedy().changes, false))
    }

    async fn extend(&mut self, _: &str, _: &str, _: u32) -> Result<(), FleetChangeError> {
        Ok(())
    }

    async fn keep(&mut self, _: &str, _: &str, _: &[Change]) -> Result<Vec<PathBuf>, FleetChangeError> {
        self.log.push("keep");
        self.changed = true;
        Ok(vec![PathBuf::from("/etc/systemd/network/10-up0.link")])
    }

    async fn undo(&mut self, _: &str, _: &str) -> Result<ReadBack, FleetChangeError> {
        self.log.push("undo");
        self.changed = false;
        Ok(read_back(&sample::remedy().changes, false))
    }

    async fn read(&mut self, _: &str, _: &[FactKey]) -> Result<ReadBack, FleetChangeError> {
        Ok(read_back(&sample::remedy().changes, self.changed))
    }

    async fn measure(&mut self, test: &Test) -> Tested {
        let good = self.changed || test.from != "arc-6";
        let throughput_bps = Some(if good { 180e6 } else { 0.3e6 });
        let outcome = Outcome::Measured(Box::new(Measurement { throughput_bps, ..Measurement::default() }));
        Tested { outcome, contended: None }
    }

    async fn wait(&mut self, _: Duration) {}
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime needs only memory").block_on(future)
}

#[test]
fn the_drive_tries_keeps_and_undoes() {
    let (snapshot, diagnosis) = sample::sick();
    let scene = Scene { snapshot: &snapshot, diagnosis: &diagnosis };
    let mut options = TrialOptions { remedy: "nic-gro-hw-overlay".into(), ..TrialOptions::default() };
    options.course.keep = KeepWhen::Better;
    let mut hands = Willing::default();
    let mut told = Vec::new();
    let mut watch = |_: &Trial, words: &str, left: usize| told.push((words.to_owned(), left));
    let run = drive::run(&mut hands, scene, &options, "t".into(), &mut watch, std::future::pending());
    let trial = block_on(run).expect("can be tried");
    assert_eq!(trial.status, TrialStatus::Kept, "{:?}", trial.notes);
    assert_eq!(trial.persisted, ["/etc/systemd/network/10-up0.link"]);
    assert_eq!(told.last().map(|(w, l)| (w.as_str(), *l)), Some(("done", 0)));
    assert_eq!(hands.log.iter().filter(|l| **l == "apply").count(), 3, "written only when it has to change");

    let undone = block_on(drive::undo(&mut hands, scene, trial, &mut |_, _, _| {}));
    assert_eq!(undone.status, TrialStatus::Undone);
    assert!(!hands.changed);
}

#[test]
fn a_cancelled_drive_undoes() {
    let (snapshot, diagnosis) = sample::sick();
    let scene = Scene { snapshot: &snapshot, diagnosis: &diagnosis };
    let options = TrialOptions { remedy: "nic-gro-hw-overlay".into(), ..TrialOptions::default() };
    let mut hands = Willing::default();
    let mut watch = |_: &Trial, _: &str, _: usize| {};
    let run = drive::run(&mut hands, scene, &options, "t".into(), &mut watch, std::future::ready(()));
    let trial = block_on(run).expect("can be tried");
    assert_eq!(trial.status, TrialStatus::Undone);
    assert_eq!(hands.log, ["apply", "undo"]);
}
