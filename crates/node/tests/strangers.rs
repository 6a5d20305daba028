//! The real program on a host with other users: what it makes is for its user alone, and what another user
//! could have written is not used.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, one that is skipped says so"
)]

// Each test program uses a part of it.
#[allow(dead_code)]
mod operator;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_model::change::Change;
use linerate_model::fact::FactValue;
use linerate_wire::message::{
    BuildRequest, Event, JournalState, Request, SessionRequest, Setup, TrialRequest,
};

use operator::{Operator, SACK, Scene, sack_off, signal, until};

/// Another user of the host.
const STRANGER: u32 = 54_321;
/// A protection of the host that each network namespace has for itself: no change may switch it off.
const COOKIES: &str = "net/ipv4/tcp_syncookies";

/// A scene whose folder other users may enter; `None` where that cannot be tested.
fn shared_scene(test: &str) -> Option<Scene> {
    if !linerate_sys::sandbox::is_root() {
        println!("SKIPPED {test}: only root can act as another user");
        return None;
    }
    let scene = Scene::new()?;
    set_mode(scene.folder.path(), 0o755);
    Some(scene)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Runs a line of shell as another user; whether it went well.
fn as_stranger(script: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir("/").uid(STRANGER).gid(STRANGER);
    command.stderr(std::process::Stdio::null()).status().unwrap().success()
}

fn sysctl(scene: &Scene, name: &str) -> String {
    let path = Path::new("/proc/sys").join(name);
    let read = || fs::read_to_string(path).unwrap();
    linerate_sys::netns::run_in(&scene.namespace, read).unwrap().trim().to_owned()
}

fn apply(trial: &str) -> TrialRequest {
    TrialRequest::Apply { trial: trial.into(), changes: sack_off(), deadline_s: 600 }
}

/// Error and hint of a request that failed.
fn refused(operator: &mut Operator, request: impl Into<Request>) -> (String, String) {
    let events = operator.ask(request);
    let [Event::Failed { error, hint, .. }] = events.as_slice() else { panic!("{events:?}") };
    (error.clone(), hint.clone())
}

fn bye(mut operator: Operator) {
    assert_eq!(operator.ask(SessionRequest::Bye), [Event::Done]);
    assert!(operator.wait().0.success());
}

/// A journal that is overdue, as `plant` changes it.
fn journal(scene: &Scene, plant: impl Fn(&mut serde_json::Value)) -> String {
    let namespace = linerate_sys::netns::run_in(&scene.namespace, || {
        fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
    });
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut journal = serde_json::json!({
        "schema": 1, "trial": "y", "host": "arc-1", "state": "keeping", "boot_id": boot.trim(),
        "namespace": namespace.unwrap(), "created_ms": 0, "deadline_ms": 0, "changes": [],
        "olds": [], "files": [], "note": "",
    });
    plant(&mut journal);
    journal.to_string()
}

/// The journal of a neighbour who wants a file with his text.
fn wants_file(scene: &Scene, path: &Path) -> String {
    let file = serde_json::json!({
        "path": path, "before": {"text": "* * * * * root id\n"}, "after": {"text": ""}, "lines": [],
    });
    journal(scene, |journal| journal["files"] = serde_json::json!([file]))
}

#[test]
fn a_session_without_a_umask_leaves_nothing_to_other_users() {
    let Some(scene) = shared_scene("a_session_without_a_umask_leaves_nothing_to_other_users") else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_linerate-node")]);
    let mut operator = Operator::start_by(shell, Some(&scene));
    let (state_dir, etc_dir) = (scene.state_dir(), scene.etc_dir());
    let setup = SessionRequest::Setup(Setup {
        state_dir: state_dir.clone(),
        etc_dir: etc_dir.clone(),
        host: "arc-1".into(),
    });
    assert_eq!(operator.ask(setup), [Event::Done]);
    operator.apply("t1", 600);
    let trials = state_dir.join("trials");
    let private = [
        (state_dir, 0o700),
        (trials.clone(), 0o700),
        (trials.join("t1.json"), 0o600),
        (trials.join(".lock"), 0o600),
    ];
    for (path, wanted) in &private {
        assert_eq!(mode(path), *wanted, "{}", path.display());
    }
    for script in ["cat", "echo x >>", "rm -f", "ls"] {
        let script = format!("{script} {}", trials.join("t1.json").display());
        assert!(!as_stranger(&script), "{script}");
    }
    // Files that systemd and sysctl read are for all to read, and only for root to write.
    let events = operator.ask(TrialRequest::Keep { trial: "t1".into(), changes: sack_off() });
    assert!(matches!(events.as_slice(), [Event::Kept { .. }, Event::Done]), "{events:?}");
    let conf = etc_dir.join("sysctl.d/90-linerate.conf");
    assert_eq!((mode(&conf), mode(conf.parent().unwrap()), mode(&etc_dir)), (0o644, 0o755, 0o755));
    assert!(as_stranger(&format!("grep -q tcp_sack {}", conf.display())));
    assert_eq!(mode(&trials.join("t1.json")), 0o600);
    let events = operator.ask(TrialRequest::Undo { trial: "t1".into() });
    assert!(matches!(events.as_slice(), [Event::Changed { .. }, Event::Done]), "{events:?}");
    bye(operator);
}

#[test]
fn a_file_of_settings_keeps_its_mode() {
    let Some(scene) = shared_scene("a_file_of_settings_keeps_its_mode") else { return };
    let conf = scene.etc_dir().join("sysctl.d/90-linerate.conf");
    fs::create_dir_all(conf.parent().unwrap()).unwrap();
    fs::write(&conf, "net.ipv4.tcp_timestamps = 1\n").unwrap();
    set_mode(&conf, 0o640);
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    let events = operator.ask(TrialRequest::Keep { trial: "t1".into(), changes: sack_off() });
    assert!(matches!(events.as_slice(), [Event::Kept { .. }, Event::Done]), "{events:?}");
    assert_eq!(mode(&conf), 0o640);
    let events = operator.ask(TrialRequest::Undo { trial: "t1".into() });
    assert!(matches!(events.as_slice(), [Event::Changed { .. }, Event::Done]), "{events:?}");
    assert_eq!(
        (mode(&conf), fs::read_to_string(&conf).unwrap().as_str()),
        (0o640, "net.ipv4.tcp_timestamps = 1\n")
    );
    bye(operator);
}

#[test]
fn a_journal_that_another_user_planted_does_nothing() {
    let Some(scene) = shared_scene("a_journal_that_another_user_planted_does_nothing") else { return };
    let (trials, target) = (scene.state_dir().join("trials"), scene.folder.path().join("cron.d/x"));
    fs::create_dir_all(&trials).unwrap();
    fs::create_dir(target.parent().unwrap()).unwrap();
    // As a session with umask 000 of an older version left them.
    set_mode(&scene.state_dir(), 0o777);
    set_mode(&trials, 0o777);
    let text = scene.folder.path().join("planted");
    fs::write(&text, wants_file(&scene, &target)).unwrap();
    set_mode(&text, 0o644);
    let planted = trials.join("y.json");
    assert!(as_stranger(&format!("cp {} {}", text.display(), planted.display())));
    let before = fs::read_to_string(&planted).unwrap();
    let unused = |operator: &mut Operator, step: &str| {
        // A look for overdue trials is made with every setup.
        assert!(!target.exists(), "{step}");
        let (error, hint) = refused(operator, TrialRequest::Undo { trial: "y".into() });
        assert!(!target.exists() && fs::read_to_string(&planted).unwrap() == before, "{step}");
        (error, hint)
    };
    let mut operator = Operator::set_up(&scene);
    let (error, hint) = unused(&mut operator, "a folder that all may write");
    let state = scene.state_dir();
    assert!(
        error.contains(&format!("{} is writable by other users (owner uid 0, mode 0777)", state.display())),
        "{error}"
    );
    assert!(hint.contains(&format!("`ls -ld {}`", state.display())), "{hint}");
    let (error, _) = refused(&mut operator, apply("t1"));
    assert!(error.contains("is writable by other users"), "{error}");
    let (error, _) = refused(&mut operator, TrialRequest::Journals);
    assert!(error.contains("is writable by other users"), "{error}");
    bye(operator);
    // An administrator closes the folders and leaves what is in them.
    set_mode(&scene.state_dir(), 0o755);
    set_mode(&trials, 0o755);
    let mut operator = Operator::set_up(&scene);
    let (error, _) = unused(&mut operator, "a journal of another user");
    assert!(error.contains(&format!("y.json is owned by uid {STRANGER}")), "{error}");
    bye(operator);
    // Also with the right owner: that path is never written.
    chown(&planted, Some(0), Some(0)).unwrap();
    let mut operator = Operator::set_up(&scene);
    let (error, hint) = unused(&mut operator, "a path outside");
    assert!(
        error.contains("y.json is left alone") && error.contains("cron.d/x: it is no file of persistent"),
        "{error}"
    );
    assert!(hint.contains(&format!("`mv {0} {0}.moved`", planted.display())), "{hint}");
    let events = operator.ask(TrialRequest::Journals);
    let [Event::Journals(entries), Event::Done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((entries[0].trial.as_str(), entries[0].state), ("y", JournalState::Refused));
    // It blocks no trial.
    operator.apply("t1", 600);
    bye(operator);
    assert_eq!(scene.sack(), "1");
    assert!(!target.exists());
}

#[test]
fn a_planted_setting_that_protects_the_host_is_not_written() {
    let Some(scene) = shared_scene("a_planted_setting_that_protects_the_host_is_not_written") else { return };
    let key = "sysctl.net.ipv4.tcp_syncookies";
    assert_eq!(sysctl(&scene, COOKIES), "1");
    let trials = scene.state_dir().join("trials");
    fs::create_dir_all(&trials).unwrap();
    let old = serde_json::json!({"key": key, "value": 0, "related": false});
    fs::write(trials.join("y.json"), journal(&scene, |j| j["olds"] = serde_json::json!([old]))).unwrap();
    let mut operator = Operator::set_up(&scene);
    let (error, _) = refused(&mut operator, TrialRequest::Undo { trial: "y".into() });
    assert!(error.contains(&format!("it names {key}, which is no setting")), "{error}");
    // The guardian reads journals as well.
    let mut guardian = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
    guardian.arg("guard").args([trials.join("y.json"), scene.etc_dir()]).stdin(std::process::Stdio::null());
    let namespace =
        fs::File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&scene.namespace)));
    let namespace = namespace.unwrap();
    linerate_sys::spawn::in_namespace(&mut guardian, &namespace);
    let mut guardian = guardian.spawn().unwrap();
    let mut keeps_alive = || operator.ask(TrialRequest::Journals);
    until("the guardian gives up", || {
        keeps_alive();
        guardian.try_wait().unwrap().is_some()
    });
    assert_eq!(sysctl(&scene, COOKIES), "1");
    // By request as well, and what runs programs of the kernel.
    for key in [key, "sysctl.kernel.core_pattern", "sysctl.kernel.modules_disabled"] {
        let (from, to) = (FactValue::Int(1), FactValue::Int(0));
        let changes = vec![Change { host: "arc-1".into(), key: key.into(), from, to }];
        let (error, _) =
            refused(&mut operator, TrialRequest::Apply { trial: "t1".into(), changes, deadline_s: 60 });
        assert_eq!(error, format!("arc-1: {key} is no setting that can be written"));
    }
    bye(operator);
}

/// What is wrong with a state folder, and how it comes to be so.
type Case = (&'static str, fn(&Path));

#[test]
fn a_state_folder_that_is_not_ours_holds_no_trial() {
    let Some(scene) = shared_scene("a_state_folder_that_is_not_ours_holds_no_trial") else { return };
    let state = scene.state_dir();
    let cases: [Case; 4] = [
        ("is owned by uid 54321 (mode 0755) instead of uid 0", |state| {
            fs::create_dir(state).unwrap();
            set_mode(state, 0o755);
            chown(state, Some(STRANGER), Some(STRANGER)).unwrap();
        }),
        ("is a symbolic link", |state| symlink("/etc", state).unwrap()),
        ("is writable by other users (owner uid 0, mode 0770)", |state| {
            fs::create_dir(state).unwrap();
            set_mode(state, 0o770);
        }),
        ("is not a folder", |state| fs::write(state, "").unwrap()),
    ];
    let etc = fs::read_dir("/etc").unwrap().count();
    for (problem, make) in cases {
        make(&state);
        let mut operator = Operator::set_up(&scene);
        let (error, hint) = refused(&mut operator, apply("t1"));
        assert!(error.contains(&format!("{} {problem}", state.display())), "{error}");
        assert!(hint.contains(&format!("`mv {0} {0}.moved`", state.display())), "{hint}");
        let (error, _) = refused(&mut operator, BuildRequest::Builds);
        assert!(error.contains(problem), "{error}");
        bye(operator);
        assert_eq!(scene.sack(), "1");
        // As the hint says.
        let moved = PathBuf::from(format!("{}.moved", state.display()));
        let mut mv = Command::new("mv");
        assert!(mv.args([&state, &moved]).status().unwrap().success());
        let mut operator = Operator::set_up(&scene);
        operator.apply("t1", 600);
        bye(operator);
        assert_eq!(scene.sack(), "1");
        fs::remove_dir_all(&state).unwrap();
        fs::remove_dir_all(&moved).or_else(|_| fs::remove_file(&moved)).unwrap();
    }
    assert_eq!(fs::read_dir("/etc").unwrap().count(), etc);
}

#[test]
fn folders_that_depend_on_the_working_folder_are_refused() {
    let Some(scene) = Scene::new() else { return };
    let here = scene.folder.path().join("here");
    fs::create_dir(&here).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
    command.current_dir(&here);
    let mut operator = Operator::start_by(command, Some(&scene));
    for (state_dir, etc_dir, problem) in [
        ("./relst", "/etc", "state_dir ./relst is not an absolute path"),
        ("relst", "/etc", "state_dir relst is not an absolute path"),
        ("/srv/../tmp/relst", "/etc", "state_dir /srv/../tmp/relst contains `..`"),
        ("/srv/linerate", "etc", "etc_dir etc is not an absolute path"),
    ] {
        let setup = SessionRequest::Setup(Setup {
            state_dir: state_dir.into(),
            etc_dir: etc_dir.into(),
            host: "arc-1".into(),
        });
        let (error, hint) = refused(&mut operator, setup);
        assert_eq!(error, format!("arc-1: {problem}"));
        assert!(hint.contains("set an absolute path"), "{hint}");
        let (error, _) = refused(&mut operator, apply("t1"));
        assert!(error.contains("no setup was made"), "{error}");
    }
    bye(operator);
    assert_eq!(scene.sack(), "1");
    assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
}

#[test]
fn nothing_is_written_while_the_guardian_does_not_answer() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    assert!(matches!(
        operator.ask(TrialRequest::Revert { trial: "t1".into() }).as_slice(),
        [Event::Changed { .. }, Event::Done]
    ));
    let guardians = scene.guardians("t1");
    assert_eq!(guardians.len(), 1);
    for guardian in &guardians {
        signal("STOP", *guardian);
    }
    let (error, hint) = refused(&mut operator, apply("t1"));
    assert!(error.contains("trial t1 is not begun, because its guardian does not watch over it"), "{error}");
    assert!(
        error.contains("did not confirm within 8 s") && error.ends_with("the old values are back"),
        "{error}"
    );
    assert!(hint.contains("nothing was changed"), "{hint}");
    assert_eq!((scene.sack().as_str(), scene.state("t1").as_str()), ("1", "closed"));
    for guardian in &guardians {
        signal("CONT", *guardian);
    }
    until("the guardian ends", || scene.guardians("t1").is_empty());
    // One that was killed is replaced before the next write.
    operator.apply("t2", 600);
    assert!(matches!(
        operator.ask(TrialRequest::Revert { trial: "t2".into() }).as_slice(),
        [Event::Changed { .. }, Event::Done]
    ));
    scene.guardians("t2").into_iter().for_each(|guardian| signal("KILL", guardian));
    operator.apply("t2", 600);
    assert_eq!(scene.guardians("t2").len(), 1);
    bye(operator);
    assert_eq!(scene.sack(), "1");
}

/// Number behind a field of `/proc/PID/status`.
fn status(pid: u32, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
}

#[test]
fn a_guardian_that_cannot_read_its_journal_for_a_moment_undoes_afterwards() {
    let Some(scene) = Scene::new() else { return };
    let mut operator = Operator::set_up(&scene);
    operator.apply("t1", 600);
    let guardian = scene.guardians("t1")[0];
    let trials = scene.state_dir().join("trials");
    // Nothing in such a folder is read.
    set_mode(&trials, 0o777);
    operator.child.kill().unwrap();
    // Its thread at the pipe ends with the node; then it looks, and sleeps behind each look.
    until("the guardian has noticed", || status(guardian, "Threads") == 1);
    let sleeps = status(guardian, "voluntary_ctxt_switches");
    until("the guardian has looked", || status(guardian, "voluntary_ctxt_switches") >= sleeps + 2);
    assert_eq!(
        (scene.sack().as_str(), scene.guardians("t1").len()),
        ("0", 1),
        "it neither undid nor gave up"
    );
    set_mode(&trials, 0o700);
    until("the old value is back", || scene.sack() == "1");
    until("the journal is closed", || scene.state("t1") == "closed");
    until("the guardian ends", || scene.guardians("t1").is_empty());
    assert_eq!(SACK, sack_off()[0].key);
}
