//! The real program when something disappears: the operator, the node, the guardian. Old values are back,
//! nothing listens.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, one that is skipped says so"
)]

mod operator;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_model::fact::FactValue;
use linerate_model::kind::TcpPlan;
use linerate_model::load::{LoadSpec, Role};
use linerate_wire::frame::{FrameKind, MAGIC, encode};
use linerate_wire::message::{Event, JournalState, ObserveRequest, SessionRequest, TrialRequest};
use linerate_wire::session::OperatorEvent;
use linerate_wire::silence::SILENCE_MS;

use operator::{Operator, SACK, Scene, listens, sack_off, signal, until};

/// The contract allows 5 s for stopping loads, undoing and exiting; a busy machine may take far longer.
/// Nothing but what is tested ends these nodes and trials so soon: a trial's own time is ten minutes.
const GONE: Duration = Duration::from_secs(60);

fn receiver() -> ObserveRequest {
    ObserveRequest::Load(LoadSpec {
        kind: TcpPlan::single(60_000).into(),
        role: Role::Receiver,
        bind: "0.0.0.0".parse().unwrap(),
        netns: None,
        token: [7; 16],
        deadline_ms: 60_000,
        same_host: false,
        tuning: Box::default(),
    })
}

fn port(operator: &mut Operator) -> u16 {
    operator.send(receiver());
    loop {
        match operator.event() {
            OperatorEvent::Event { body: Event::Listening { port }, .. } => return port,
            OperatorEvent::Event { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

fn listens_inside(scene: &Scene, port: u16) -> bool {
    let look = || listens(Path::new("/proc/thread-self/net/tcp"), port);
    linerate_sys::netns::run_in(&scene.namespace, look).unwrap()
}

#[test]
fn an_operator_that_hangs_up_leaves_nothing_changed() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    let port = port(&mut operator);
    assert!(listens_inside(&scene, port));
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("0", "armed"));
    operator.hang_up();
    let (status, took) = operator.wait();
    assert!(status.success() && took < GONE, "{status} after {took:?}");
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("1", "closed"));
    assert!(!listens_inside(&scene, port));
    until("the guardian ends", || scene.guardians("t1").is_empty());
    println!("gone {took:?} after the hang-up");
}

#[test]
fn a_stopped_operator_is_given_up_after_its_silence() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    // The node hears at least one more word after this.
    let heard = Instant::now();
    let port = port(&mut operator);
    // From here on nothing is written, and the pipes stay open.
    let (status, took) = operator.wait();
    assert!(status.success() && took < GONE, "{status} after {took:?}");
    // Its clock counts whole milliseconds.
    assert!(heard.elapsed() >= Duration::from_millis(SILENCE_MS - 10), "given up too early: {took:?}");
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("1", "closed"));
    assert!(!listens_inside(&scene, port));
    println!("gone after {took:?} of silence");
}

#[test]
fn the_guardian_restores_when_the_node_is_killed() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    operator.child.kill().unwrap();
    let took = until("the old value is back", || scene.sack() == "1");
    until("the journal is closed", || scene.state("t1") == "closed");
    until("the guardian ends", || scene.guardians("t1").is_empty());
    assert!(took < GONE, "{took:?}");
    println!("restored {took:?} after kill -9 of the node");
}

/// A control group as a scheduler makes one for what it starts, gone with its value.
struct Group(std::path::PathBuf);

impl Group {
    /// `None` where groups cannot be made.
    fn new() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = linerate_sys::procfs::mounts(&mounts);
        // The hierarchies by which groups are killed: that of all controllers, and the freezer where each has
        // its own.
        let kills = |m: &&linerate_sys::procfs::Mount| {
            m.kind == "cgroup2" || (m.kind == "cgroup" && m.super_options.split(',').any(|o| o == "freezer"))
        };
        let folder = |m: &linerate_sys::procfs::Mount| {
            let folder = Path::new(&m.point).join(format!("linerate-test-{}", std::process::id()));
            std::fs::create_dir(&folder).ok().map(|()| Self(folder))
        };
        mounts.iter().filter(kills).find_map(folder)
    }

    fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        until("the group is empty", || self.processes().is_empty());
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A process and all that it started, and what these started.
fn tree(top: u32) -> Vec<u32> {
    let mut all = vec![top];
    let mut at = 0;
    while let Some(parent) = all.get(at) {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            all.extend(children.split_ascii_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
        }
        at += 1;
    }
    all
}

#[test]
fn a_scheduler_that_kills_all_it_knows_of_leaves_the_guardian() {
    let Some(scene) = Scene::new() else { return };
    let Some(group) = Group::new() else {
        println!(
            "SKIPPED a_scheduler_that_kills_all_it_knows_of_leaves_the_guardian: no control group can be made"
        );
        return;
    };
    let mut operator = Operator::set_up(&scene);
    std::fs::write(group.0.join("cgroup.procs"), operator.child.id().to_string()).unwrap();
    operator.apply("t1", 600);
    assert_eq!(scene.sack(), "0");
    assert_eq!(scene.guardians("t1").len(), 1);
    // What is left is asked politely, as a machine that goes down does. All else by the group and by the
    // tree, and so that none of them has a moment after another one's end.
    scene.guardians("t1").into_iter().for_each(|guardian| signal("TERM", guardian));
    let known: Vec<String> =
        [group.processes(), tree(operator.child.id())].concat().iter().map(u32::to_string).collect();
    for name in ["-STOP", "-KILL"] {
        assert!(Command::new("kill").arg(name).args(&known).status().unwrap().success());
    }
    let took = until("the old value is back", || scene.sack() == "1");
    until("the journal is closed", || scene.state("t1") == "closed");
    until("the guardian ends", || scene.guardians("t1").is_empty());
    println!("restored {took:?} after all was killed");
}

#[test]
fn the_next_node_restores_when_node_and_guardian_are_killed() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    // Time enough to kill both before.
    operator.apply("t1", 10);
    for guardian in scene.guardians("t1") {
        signal("KILL", guardian);
    }
    operator.child.kill().unwrap();
    operator.wait();
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("0", "armed"));
    let mut next = Operator::set_up(&scene);
    until("the old value is back", || {
        // Keeps the session alive.
        next.ask(TrialRequest::Journals);
        scene.sack() == "1"
    });
    until("the journal is closed", || scene.state("t1") == "closed");
}

#[test]
fn the_guardian_restores_at_the_deadline_when_the_node_is_stopped() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 3);
    signal("STOP", operator.child.id());
    until("the old value is back", || scene.sack() == "1");
    until("the journal is closed", || scene.state("t1") == "closed");
    // It finds nothing left to take back, however long it slept.
    signal("CONT", operator.child.id());
    operator.hang_up();
    assert!(operator.wait().0.success());
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("1", "closed"));
    let mut operator = Operator::set_up(&scene);
    let events = operator.ask(TrialRequest::Revert { trial: "t1".into() });
    let [Event::Failed { error, undo_failed: false, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert!(error.contains("closed (nobody confirmed it in time)"), "{error}");
    assert_eq!(operator.ask(SessionRequest::Bye), [Event::Done]);
    assert!(operator.wait().0.success());
}

#[test]
fn a_trial_lives_through_all_its_states() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    let back = |value| Event::Changed { read_back: vec![(SACK.into(), FactValue::Int(value))] };
    operator.apply("t1", 60);
    assert_eq!(operator.ask(TrialRequest::Revert { trial: "t1".into() }), [back(1), Event::Done]);
    assert_eq!(scene.sack(), "1");
    operator.apply("t1", 60);
    assert_eq!(operator.ask(TrialRequest::Extend { trial: "t1".into(), deadline_s: 90 }), [Event::Done]);
    let conf = scene.etc_dir().join("sysctl.d/90-linerate.conf");
    let events = operator.ask(TrialRequest::Keep { trial: "t1".into(), changes: sack_off() });
    assert_eq!(events, [Event::Kept { files: vec![conf.clone()] }, Event::Done]);
    assert!(std::fs::read_to_string(&conf).unwrap().contains("net.ipv4.tcp_sack = 0"));
    until("the guardian ends", || scene.guardians("t1").is_empty());
    operator.hang_up();
    operator.wait();
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("0", "kept"));

    let mut operator = Operator::set_up(&scene);
    let events = operator.ask(TrialRequest::Journals);
    let [Event::Journals(entries), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((entries[0].trial.as_str(), entries[0].state), ("t1", JournalState::Kept));
    assert_eq!(operator.ask(TrialRequest::Undo { trial: "t1".into() }), [back(1), Event::Done]);
    assert!(!conf.exists());
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("1", "closed"));
    let wrong = TrialRequest::Apply {
        trial: "t2".into(),
        changes: vec![linerate_model::change::Change { from: FactValue::Int(0), ..sack_off().remove(0) }],
        deadline_s: 60,
    };
    let events = operator.ask(wrong);
    let [Event::Failed { error, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(error, "arc-1: sysctl.net.ipv4.tcp_sack is 1 now, where the change starts from 0");
    assert_eq!(operator.ask(SessionRequest::Bye), [Event::Done]);
    assert!(operator.wait().0.success());
}

#[test]
fn a_node_needs_a_setup_before_changes_and_answers_the_rest() {
    let mut operator = Operator::start(None);
    let events = operator.ask(TrialRequest::Journals);
    let [Event::Failed { hint, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(hint, "send the setup request first");
    let events = operator.ask(ObserveRequest::Facts { prefixes: vec!["kernel.".into()], netns: Vec::new() });
    assert!(matches!(events.as_slice(), [Event::Facts(_), Event::Done]), "{events:?}");
    let load = operator.send(receiver());
    assert_eq!(operator.ask(SessionRequest::StopLoad { load }), [Event::Done]);
    let events = operator.answers(load);
    assert!(matches!(events.last(), Some(Event::LoadDone { .. })), "{events:?}");
    assert_eq!(operator.ask(SessionRequest::Bye), [Event::Done]);
    assert!(operator.wait().0.success());
}

#[test]
fn garbage_and_a_huge_frame_end_the_node() {
    let mut huge = Vec::new();
    encode(FrameKind::ToNode, b"x", &mut huge).unwrap();
    huge[4..8].copy_from_slice(&100_000_000_u32.to_le_bytes());
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".repeat(100), huge, MAGIC.repeat(3)] {
        let mut operator = Operator::start(None);
        operator.write_raw(&bytes);
        let (status, took) = operator.wait();
        assert!(status.success() && took < GONE, "{status} after {took:?}");
    }
}
