//! Trials with a crash behind every single effect: of the node, of the node and its guardian, of the
//! operator, of the whole machine. Whatever dies, the old values are back by the deadline, or the trial is
//! kept as a whole.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use linerate_model::change::Change;
use linerate_model::fact::FactValue::{self, Flag, Int, Text};
use linerate_wire::message::JournalState;

use super::ChangeError;
use super::apply::Changes;
use super::guardian::{Next, Tries, look};
use super::host::Content;
use super::journal::{self, Journal, State};
use super::memory::{Process, QUEUE, World};

const SACK: &str = "sysctl.net.ipv4.tcp_sack";
const RMEM: &str = "sysctl.net.ipv4.tcp_rmem";
const TX: &str = "nic.eth0.feature.tx";
const TSO: &str = "nic.eth0.feature.tso";
const DEADLINE_S: u32 = 30;
const CONF: &str = "/etc/sysctl.d/90-linerate.conf";

type Shared = Rc<RefCell<World>>;
type Step = (&'static str, fn(&mut Changes<Process>) -> Result<(), ChangeError>);

fn change(key: &str, from: FactValue, to: FactValue) -> Change {
    Change { host: "arc-1".into(), key: key.into(), from, to }
}

fn changes() -> Vec<Change> {
    vec![
        change(SACK, Int(1), Int(0)),
        change(TX, Flag(true), Flag(false)),
        change(RMEM, Text("4096 131072 6291456".into()), Text("4096 131072 99999".into())),
    ]
}

fn world() -> Shared {
    let mut world = World { now_ms: 1_000_000, boot: 1, namespace: 7, ..World::default() };
    world.settings.insert(SACK.into(), Int(1));
    world.settings.insert(TX.into(), Flag(true));
    world.settings.insert(TSO.into(), Flag(true));
    world.settings.insert(RMEM.into(), Text("4096 131072 6291456".into()));
    world.settings.insert("cpu.governor".into(), Text("powersave".into()));
    world.files.insert(CONF.into(), Content::Text("vm.x = 1\nnet.ipv4.tcp_sack = 1\n".into()));
    Rc::new(RefCell::new(world))
}

fn session(process: Process) -> Changes<Process> {
    Changes::new(process, "arc-1".into(), Path::new("/state"), "/etc".into())
}

/// The whole life of a trial as an operator drives it.
const LIFE: &[Step] = &[
    ("apply", |s| s.apply("t1", &changes(), DEADLINE_S).map(drop)),
    ("revert", |s| s.revert("t1").map(drop)),
    ("extend", |s| s.extend("t1", DEADLINE_S)),
    ("apply again", |s| s.apply("t1", &changes(), DEADLINE_S).map(drop)),
    ("revert again", |s| s.revert("t1").map(drop)),
    ("keep", |s| s.keep("t1", &changes()).map(drop)),
    ("undo", |s| s.undo("t1").map(drop)),
];

/// The same with an operator that ends in order after measuring and keeps the change in a later session.
const LATER: &[Step] = &[
    ("apply", |s| s.apply("t1", &changes(), DEADLINE_S).map(drop)),
    ("revert", |s| s.revert("t1").map(drop)),
    ("bye", |s| s.end("bye", true)),
    ("keep later", |s| s.keep("t1", &changes()).map(drop)),
    ("bye again", |s| s.end("bye", true)),
    ("undo later", |s| s.undo("t1").map(drop)),
];

fn run(process: Process, steps: &[Step]) -> (u32, bool) {
    let mut session = session(process);
    for (name, step) in steps {
        if let Err(error) = step(&mut session) {
            assert!(session.host().is_dead(), "{name} failed without a crash: {}", error.line());
            break;
        }
    }
    (session.host().done.get(), session.host().is_dead())
}

fn without_state(world: &World) -> World {
    let mut world = world.clone();
    world.files.retain(|path, _| !path.starts_with("/state"));
    world
}

fn the_journal(world: &World) -> Option<Journal> {
    match world.files.get(Path::new("/state/trials/t1.json"))? {
        Content::Text(text) => Some(serde_json::from_str(text).expect("a journal is whole at any time")),
        Content::Link(_) => panic!("a journal is a file"),
    }
}

/// The one promise: everything old, or everything new and on purpose.
fn check(shared: &Shared, what: &str) {
    let world = shared.borrow();
    let start = world_at_start();
    let journal = the_journal(&world);
    let state = journal.as_ref().map(|j| j.state);
    assert!(state.is_none_or(|s| !s.is_armed()), "{what}: still {state:?}");
    if state == Some(State::Kept) {
        for change in changes() {
            assert_eq!(world.settings[&change.key], change.to, "{what}: {}", change.key);
        }
        assert_ne!(without_state(&world).files, start.files, "{what}: kept without files");
    } else {
        assert_eq!(world.settings, start.settings, "{what}: settings of a trial that is {state:?}");
        assert_eq!(without_state(&world).files, start.files, "{what}: files of a trial that is {state:?}");
    }
}

fn world_at_start() -> World {
    world().borrow().clone()
}

/// Lets the living guardians work until they end; gives how many effects they had. Their time ends one second
/// behind the deadline.
fn guard(shared: &Shared, node_gone: bool, effects: Option<u32>) -> u32 {
    let guardians = std::mem::take(&mut shared.borrow_mut().guardians);
    let mut done = 0;
    for path in guardians {
        let process = match effects {
            Some(n) => Process::dying_after(shared, n),
            None => Process::new(shared),
        };
        let until = shared.borrow().now_ms + u64::from(DEADLINE_S) * 1_000 + 31_000;
        let mut tries = Tries::default();
        while let Next::Wait(wait_ms) | Next::Again(wait_ms) =
            look(&process, Path::new("/etc"), &path, node_gone, &mut tries)
        {
            if process.is_dead() {
                break;
            }
            shared.borrow_mut().now_ms += wait_ms.max(1);
            assert!(shared.borrow().now_ms <= until, "the guardian of {} does not end", path.display());
        }
        done = process.done.get();
    }
    done
}

/// A new node, and time up to the deadline and one second.
fn next_node(shared: &Shared) {
    shared.borrow_mut().guardians.clear();
    let session = session(Process::new(shared));
    session.tick();
    // A keep has its own, longer deadline.
    for _ in 0..=61 {
        shared.borrow_mut().now_ms += 1_000;
        session.tick();
    }
}

#[test]
fn without_a_crash_everything_ends_as_it_began() {
    for life in [LIFE, LATER] {
        let shared = world();
        let (effects, dead) = run(Process::new(&shared), life);
        assert!(!dead && effects > 20, "{effects} effects");
        check(&shared, "whole life");
        assert_eq!(the_journal(&shared.borrow()).unwrap().state, State::Closed);
    }
}

#[test]
fn the_guardian_restores_at_once_when_the_node_dies_behind_any_effect() {
    for life in [LIFE, LATER] {
        let (all, _) = run(Process::new(&world()), life);
        for effects in 0..all {
            let shared = world();
            assert!(run(Process::dying_after(&shared, effects), life).1);
            let died_ms = shared.borrow().now_ms;
            guard(&shared, true, None);
            assert_eq!(shared.borrow().now_ms, died_ms, "the guardian waited though the node was gone");
            next_node(&shared);
            check(&shared, &format!("node dead behind effect {effects}"));
        }
    }
}

#[test]
fn the_next_node_restores_when_node_and_guardian_die_behind_any_effect() {
    for life in [LIFE, LATER] {
        let (all, _) = run(Process::new(&world()), life);
        for effects in 0..all {
            let shared = world();
            run(Process::dying_after(&shared, effects), life);
            next_node(&shared);
            check(&shared, &format!("node and guardian dead behind effect {effects}"));
        }
    }
}

#[test]
fn the_next_node_restores_when_the_guardian_dies_behind_any_effect_too() {
    let (all, _) = run(Process::new(&world()), LIFE);
    for effects in 0..all {
        for guardian_effects in 0..8 {
            let shared = world();
            run(Process::dying_after(&shared, effects), LIFE);
            guard(&shared, true, Some(guardian_effects));
            next_node(&shared);
            check(&shared, &format!("node dead behind {effects}, guardian behind {guardian_effects}"));
        }
    }
}

#[test]
fn a_stuck_node_is_overtaken_by_its_guardian_at_the_deadline() {
    for steps in 1..=5 {
        let shared = world();
        run(Process::new(&shared), &LIFE[..steps]);
        let armed_ms = shared.borrow().now_ms;
        guard(&shared, false, None);
        let waited_ms = shared.borrow().now_ms - armed_ms;
        assert!(waited_ms <= u64::from(DEADLINE_S) * 1_000 + 1_000, "{waited_ms} ms");
        check(&shared, &format!("stuck behind step {steps}"));
    }
}

#[test]
fn the_node_restores_when_the_operator_is_lost_behind_any_step() {
    for life in [LIFE, LATER] {
        for steps in 0..=life.len() {
            let shared = world();
            let mut session = session(Process::new(&shared));
            for (_, step) in &life[..steps] {
                step(&mut session).unwrap();
            }
            session.end("the operator is lost", false).unwrap();
            check(&shared, &format!("operator lost behind {steps} steps"));
        }
    }
}

#[test]
fn an_extended_deadline_moves_and_a_missed_one_is_told() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.apply("t1", &changes(), 10).unwrap();
    shared.borrow_mut().now_ms += 9_000;
    session.extend("t1", 10).unwrap();
    shared.borrow_mut().now_ms += 9_000;
    session.tick();
    assert_eq!(shared.borrow().settings[SACK], Int(0));
    shared.borrow_mut().now_ms += 1_000;
    session.tick();
    check(&shared, "deadline passed");
    let error = session.apply("t1", &changes(), 10).unwrap_err();
    assert!(error.to_string().contains("closed (nobody confirmed it in time)"), "{error}");
}

#[test]
fn a_clock_that_is_set_moves_no_deadline() {
    const HOUR_MS: i64 = 3_600_000;
    for set_ms in [-HOUR_MS, HOUR_MS] {
        let shared = world();
        let mut session = session(Process::new(&shared));
        session.apply("t1", &changes(), 10).unwrap();
        shared.borrow_mut().set_ms = set_ms;
        shared.borrow_mut().now_ms += 9_000;
        session.tick();
        assert_eq!(shared.borrow().settings[SACK], Int(0), "set by {set_ms} ms: undone too early");
        shared.borrow_mut().now_ms += 1_000;
        session.tick();
        check(&shared, &format!("set by {set_ms} ms"));

        let shared = world();
        run(Process::new(&shared), &LIFE[..1]);
        shared.borrow_mut().set_ms = set_ms;
        let armed_ms = shared.borrow().now_ms;
        guard(&shared, false, None);
        let waited_ms = shared.borrow().now_ms - armed_ms;
        assert!((1..=u64::from(DEADLINE_S) * 1_000 + 1_000).contains(&waited_ms), "{waited_ms} ms");
        check(&shared, &format!("guardian, set by {set_ms} ms"));
    }
}

#[test]
fn after_a_reboot_only_files_are_taken_back() {
    let (all, _) = run(Process::new(&world()), LIFE);
    for effects in 0..all {
        let shared = world();
        run(Process::dying_after(&shared, effects), LIFE);
        boot(&shared);
        next_node(&shared);
        let kept = the_journal(&shared.borrow()).is_some_and(|j| j.state == State::Kept);
        if kept {
            session(Process::new(&shared)).undo("t1").unwrap();
        }
        check(&shared, &format!("machine dead behind effect {effects}"));
    }
}

/// All processes end, the kernel forgets, systemd applies the files.
fn boot(shared: &Shared) {
    let mut world = shared.borrow_mut();
    world.boot += 1;
    world.namespace += 1;
    world.guardians.clear();
    world.settings = world_at_start().settings;
    let kept = without_state(&world);
    let enabled = "/etc/systemd/system/multi-user.target.wants/linerate-nic-eth0-feature-tx.service";
    if let Some(Content::Text(text)) = kept.files.get(Path::new(CONF)) {
        if text.contains("net.ipv4.tcp_sack = 0") {
            world.settings.insert(SACK.into(), Int(0));
        }
        if text.contains("99999") {
            world.settings.insert(RMEM.into(), changes()[2].to.clone());
        }
    }
    if kept.files.contains_key(Path::new(enabled)) {
        world.settings.insert(TX.into(), Flag(false));
        world.settings.insert(TSO.into(), Flag(false));
    }
}

#[test]
fn a_value_that_is_not_the_expected_one_is_refused_by_name() {
    let shared = world();
    shared.borrow_mut().settings.insert(SACK.into(), Int(2));
    let error = session(Process::new(&shared)).apply("t1", &changes(), 10).unwrap_err();
    assert_eq!(error.line(), "arc-1: sysctl.net.ipv4.tcp_sack is 2 now, where the change starts from 1");
    assert!(the_journal(&shared.borrow()).is_none());
}

#[test]
fn a_change_that_fails_in_the_middle_leaves_nothing_behind() {
    let shared = world();
    shared.borrow_mut().stubborn = Some((RMEM.into(), changes()[2].to.clone()));
    let error = session(Process::new(&shared)).apply("t1", &changes(), 10).unwrap_err();
    let text = error.line();
    assert!(
        text.contains("cannot set sysctl.net.ipv4.tcp_rmem") && text.ends_with("the old values are back"),
        "{text}"
    );
    assert!(!error.undo_failed());
    check(&shared, "failed apply");
    let error = session(Process::new(&shared)).keep("t2", &changes()).unwrap_err();
    assert!(error.line().ends_with("the old values are back"), "{error}");
    check(&shared, "failed keep");
}

#[test]
fn a_value_that_does_not_go_back_is_told_and_tried_again() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.apply("t1", &changes(), 10).unwrap();
    shared.borrow_mut().stubborn = Some((SACK.into(), Int(1)));
    let error = session.undo("t1").unwrap_err();
    assert!(error.undo_failed() && error.to_string().contains("tcp_sack is 0 instead of 1"), "{error}");
    assert_eq!(shared.borrow().settings[TX], Flag(true), "the others are back");
    assert_eq!(shared.borrow().settings[TSO], Flag(true), "also what moved with them");
    shared.borrow_mut().stubborn = None;
    session.undo("t1").unwrap();
    check(&shared, "second try");
}

#[test]
fn what_somebody_changed_after_keep_is_not_overwritten() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.keep("t1", &changes()).unwrap();
    shared.borrow_mut().settings.insert(SACK.into(), Int(5));
    let error = session.undo("t1").unwrap_err();
    assert!(error.to_string().contains("is 5 now, neither the old 1 nor the new 0"), "{error}");
    assert_eq!(shared.borrow().settings[TX], Flag(false), "refused before anything was touched");
    shared.borrow_mut().settings.insert(SACK.into(), Int(1));
    session.undo("t1").unwrap();
    check(&shared, "undone");
}

#[test]
fn what_a_change_takes_away_is_restored_with_its_value() {
    const CHANNELS: &str = "nic.eth0.channels.rx";
    let shared = world();
    shared.borrow_mut().settings.extend([(CHANNELS.to_owned(), Int(2)), (QUEUE.to_owned(), Int(3))]);
    let fewer = [change(CHANNELS, Int(2), Int(1))];
    let mut session = session(Process::new(&shared));
    session.apply("t1", &fewer, 10).unwrap();
    assert!(!shared.borrow().settings.contains_key(QUEUE));
    session.revert("t1").unwrap();
    assert_eq!(shared.borrow().settings[QUEUE], Int(3), "after a trial");
    session.keep("t1", &fewer).unwrap();
    assert!(!shared.borrow().settings.contains_key(QUEUE));
    session.undo("t1").unwrap();
    assert_eq!(shared.borrow().settings[QUEUE], Int(3), "after undo");
}

#[test]
fn a_value_that_cannot_be_taken_back_is_refused_and_an_undo_to_it_is_not() {
    const MTU: &str = "nic.eth0.mtu";
    let shared = world();
    shared.borrow_mut().settings.insert(MTU.into(), Int(1500));
    let mut session = session(Process::new(&shared));
    let error = session.apply("t1", &[change(MTU, Int(1500), Int(1000))], 10).unwrap_err();
    assert!(error.to_string().contains("could not be taken back: eth0 would lose its IPv6"), "{error}");
    assert!(the_journal(&shared.borrow()).is_none());
    shared.borrow_mut().settings.insert(MTU.into(), Int(1000));
    session.apply("t1", &[change(MTU, Int(1000), Int(1500))], 10).unwrap();
    session.revert("t1").unwrap();
    assert_eq!(shared.borrow().settings[MTU], Int(1000));
}

#[test]
fn two_trials_cannot_hold_the_same_setting() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.apply("t1", &changes()[..1], 10).unwrap();
    let again = [change(SACK, Int(0), Int(1))];
    let error = session.apply("t2", &again, 10).unwrap_err();
    assert!(error.to_string().contains("is changed by trial t1, which is armed"), "{error}");
    let error = session.apply("t1", &again, 10).unwrap_err();
    assert!(error.to_string().contains("armed with other changes"), "{error}");
    // Kept trials pile up in one file and come off in any order.
    session.keep("t1", &changes()[..1]).unwrap();
    session.keep("t3", &changes()[2..]).unwrap();
    session.undo("t1").unwrap();
    let conf = shared.borrow().files[Path::new(CONF)].clone();
    assert_eq!(
        conf,
        Content::Text("vm.x = 1\nnet.ipv4.tcp_sack = 1\nnet.ipv4.tcp_rmem = 4096 131072 99999\n".into())
    );
    session.undo("t3").unwrap();
    check(&shared, "both undone");
}

#[test]
fn what_cannot_stay_is_refused_before_anything_is_written() {
    let shared = world();
    let changes = [change("cpu.governor", Text("powersave".into()), Text("performance".into()))];
    let error = session(Process::new(&shared)).keep("t1", &changes).unwrap_err();
    assert!(error.to_string().contains("cannot be made to stay: it belongs to the firmware"), "{error}");
    check(&shared, "refused");
}

#[test]
fn repeated_and_wrong_requests_are_answered_without_harm() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    for trial in ["", "../x", ".lock", "a/b", &"x".repeat(81)] {
        assert!(matches!(session.apply(trial, &changes(), 10), Err(ChangeError::BadTrial { .. })), "{trial}");
    }
    assert!(matches!(session.apply("t1", &changes(), 0), Err(ChangeError::OutOfRange { .. })));
    assert!(matches!(session.apply("t1", &[], 10), Err(ChangeError::OutOfRange { .. })));
    let twice = [changes().remove(0), changes().remove(0)];
    assert!(matches!(session.apply("t1", &twice, 10), Err(ChangeError::OutOfRange { .. })));
    let unknown = [change("sysctl.no", Int(1), Int(0))];
    assert!(matches!(session.apply("t1", &unknown, 10), Err(ChangeError::NotASetting { .. })));
    assert!(matches!(session.undo("t1"), Err(ChangeError::NoJournal { .. })));
    session.apply("t1", &changes(), 10).unwrap();
    session.apply("t1", &changes(), 10).unwrap();
    session.keep("t1", &changes()).unwrap();
    let files = session.keep("t1", &changes()).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(matches!(session.revert("t1"), Err(ChangeError::WrongState { .. })));
    assert_eq!(session.journals().unwrap()[0].state, JournalState::Kept);
    session.end("bye", true).unwrap();
    assert_eq!(shared.borrow().settings[SACK], Int(0), "what was kept stays");
    session.undo("t1").unwrap();
    session.undo("t1").unwrap();
    assert!(session.journals().unwrap().is_empty());
    check(&shared, "undone twice");
}

#[test]
fn a_damaged_journal_is_told_and_does_not_stop_the_others() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.apply("t1", &changes(), 10).unwrap();
    let path = journal::file(Path::new("/state/trials"), "a0");
    shared.borrow_mut().files.insert(path, Content::Text("{\"schema\":".into()));
    assert_eq!(session.journals().unwrap()[0].state, JournalState::Unreadable);
    shared.borrow_mut().now_ms += 10_000;
    session.tick();
    check(&shared, "the other one");
}

#[test]
fn nothing_is_written_when_the_guardian_does_not_hold_the_journal() {
    let shared = world();
    shared.borrow_mut().no_guardian = true;
    let writes = |shared: &Shared| shared.borrow().writes;
    for step in [LIFE[0].1, LIFE[5].1] {
        let error = step(&mut session(Process::new(&shared))).unwrap_err();
        let text = error.line();
        assert!(text.contains("its guardian does not watch over it"), "{text}");
        assert!(text.contains("it ended before it had read the journal"), "{text}");
        assert!(error.to_string().contains("nothing was changed") && !error.undo_failed(), "{error}");
        assert_eq!(writes(&shared), 0, "{text}");
        check(&shared, "no guardian");
    }
    // With one that holds it the same trial is made.
    shared.borrow_mut().no_guardian = false;
    session(Process::new(&shared)).apply("t2", &changes(), 10).unwrap();
    assert!(writes(&shared) > 0);
}

#[test]
fn a_guardian_that_ends_in_the_middle_of_a_trial_is_replaced_before_the_next_write() {
    let shared = world();
    let mut session = session(Process::new(&shared));
    session.apply("t1", &changes(), 10).unwrap();
    session.revert("t1").unwrap();
    let written = shared.borrow().writes;
    shared.borrow_mut().no_guardian = true;
    let error = session.apply("t1", &changes(), 10).unwrap_err();
    assert!(error.line().contains("does not watch over it"), "{}", error.line());
    assert_eq!(shared.borrow().writes, written);
    check(&shared, "the old values are in force");
}

#[test]
fn a_journal_that_cannot_be_read_for_a_moment_is_tried_again_and_undone() {
    for failures in [1, 2, 3, 20, 29] {
        let shared = world();
        run(Process::new(&shared), &LIFE[..1]);
        shared.borrow_mut().unreadable = failures;
        guard(&shared, true, None);
        assert_eq!(shared.borrow().unreadable, 0);
        check(&shared, &format!("{failures} failed readings"));
        assert_eq!(the_journal(&shared.borrow()).unwrap().state, State::Closed);
    }
    // Not for ever; the next node looks again and again.
    let shared = world();
    run(Process::new(&shared), &LIFE[..1]);
    shared.borrow_mut().unreadable = 70;
    guard(&shared, true, None);
    assert_eq!(shared.borrow().unreadable, 40, "as many tries as for an undo");
    next_node(&shared);
    check(&shared, "the next node");
}

#[test]
fn readings_that_fail_now_and_then_do_not_add_up() {
    let shared = world();
    run(Process::new(&shared), &LIFE[..1]);
    let (process, mut tries) = (Process::new(&shared), Tries::default());
    let path = journal::file(Path::new("/state/trials"), "t1");
    for _ in 0..40 {
        shared.borrow_mut().unreadable = 1;
        assert!(matches!(look(&process, Path::new("/etc"), &path, false, &mut tries), Next::Again(_)));
        assert!(matches!(look(&process, Path::new("/etc"), &path, false, &mut tries), Next::Wait(_)));
    }
}

#[test]
fn a_journal_that_is_gone_ends_its_guardian_at_once() {
    let shared = world();
    run(Process::new(&shared), &LIFE[..1]);
    let path = journal::file(Path::new("/state/trials"), "t1");
    shared.borrow_mut().files.remove(&path);
    let next = look(&Process::new(&shared), Path::new("/etc"), &path, true, &mut Tries::default());
    assert_eq!(next, Next::End);
}

#[test]
fn nothing_is_written_when_the_journal_is_gone() {
    let shared = world();
    shared.borrow_mut().vanishing = true;
    let error = session(Process::new(&shared)).apply("t1", &changes(), 10).unwrap_err();
    assert!(error.line().starts_with("arc-1: no journal of trial t1"), "{}", error.line());
    assert_eq!(shared.borrow().writes, 0);
    check(&shared, "journal gone");
}

/// What a journal names, and how it comes to do so.
type Plant = (&'static str, fn(&mut serde_json::Value));

/// A journal as another user could write it, changed by `plant`.
fn planted(shared: &Shared, name: &str, plant: impl Fn(&mut serde_json::Value)) {
    let other = world();
    session(Process::new(&other)).keep("t1", &changes()).unwrap();
    let text = serde_json::to_string(&the_journal(&other.borrow()).unwrap()).unwrap();
    let mut journal: serde_json::Value = serde_json::from_str(&text).unwrap();
    journal["trial"] = name.into();
    journal["state"] = "keeping".into();
    journal["deadline_ms"] = 0.into();
    plant(&mut journal);
    let path = journal::file(Path::new("/state/trials"), name);
    shared.borrow_mut().files.insert(path, Content::Text(journal.to_string()));
}

#[test]
fn a_journal_that_names_what_is_never_written_is_left_alone_and_blocks_nothing() {
    let cron = "/etc/cron.d/x";
    let cases: [Plant; 6] = [
        (cron, |j| j["files"][0]["path"] = "/etc/cron.d/x".into()),
        ("/etc/sysctl.d/../cron.d/90-linerate.conf", |j| {
            j["files"][0]["path"] = "/etc/sysctl.d/../cron.d/90-linerate.conf".into();
        }),
        ("/elsewhere/sysctl.d/90-linerate.conf", |j| {
            j["files"][0]["path"] = "/elsewhere/sysctl.d/90-linerate.conf".into();
        }),
        ("sysctl.kernel.core_pattern", |j| j["olds"][0]["key"] = "sysctl.kernel.core_pattern".into()),
        ("sysctl.kernel.modprobe", |j| j["changes"][0]["key"] = "sysctl.kernel.modprobe".into()),
        ("another trial, `../x`", |j| j["trial"] = "../x".into()),
    ];
    for (named, plant) in cases {
        let shared = world();
        planted(&shared, "a0", plant);
        let before = shared.borrow().clone();
        let mut session = session(Process::new(&shared));
        session.tick();
        let path = journal::file(Path::new("/state/trials"), "a0");
        let (guardian, mut tries) = (Process::new(&shared), Tries::default());
        let mut looks = 0;
        while look(&guardian, Path::new("/etc"), &path, true, &mut tries) != Next::End {
            looks += 1;
            assert!(looks < 100, "{named}: the guardian does not end");
        }
        let entry = &session.journals().unwrap()[0];
        assert_eq!((entry.trial.as_str(), entry.state), ("a0", JournalState::Refused), "{named}");
        let errors = [
            session.undo("a0").unwrap_err(),
            session.revert("a0").unwrap_err(),
            session.apply("a0", &changes(), 10).unwrap_err(),
            session.keep("a0", &changes()).unwrap_err(),
        ];
        for error in errors {
            let text = error.line();
            assert!(text.contains("a0.json is left alone") && text.contains(named), "{named}: {text}");
            assert!(error.undo_failed() && error.to_string().contains("mv /state/trials/a0.json"), "{error}");
        }
        assert_eq!(shared.borrow().settings, before.settings, "{named}");
        assert_eq!(shared.borrow().files, before.files, "{named}");
        assert_eq!(shared.borrow().writes, 0, "{named}");
        // The same settings, in a trial of one's own.
        session.apply("t1", &changes(), 10).unwrap();
        session.undo("t1").unwrap();
        assert_eq!(shared.borrow().settings, before.settings, "{named}");
    }
    // Nothing planted: the same journal is taken back.
    let shared = world();
    planted(&shared, "a0", |_| {});
    session(Process::new(&shared)).undo("a0").unwrap();
}

#[test]
fn a_folder_of_settings_that_is_a_link_is_not_followed() {
    let shared = world();
    shared.borrow_mut().files.insert("/etc/sysctl.d".into(), Content::Link("/srv".into()));
    let error = session(Process::new(&shared)).keep("t1", &changes()).unwrap_err();
    assert!(error.line().contains("/etc/sysctl.d is a symbolic link"), "{}", error.line());
    assert_eq!(shared.borrow().writes, 0);
}
