//! Builds on this machine: steps on real files and with real programs, their journal, and the way back. No device is touched but loop devices.

use std::path::Path;

use linerate_model::step::{DrbdStep, LvmStep, Need};

use super::*;

fn builds(folder: &Path) -> Builds {
    Builds::new(folder, "here")
}

#[test]
fn a_device_that_is_none_or_holds_something_is_never_given_to_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    // `/dev/null` is a device, and no block device; the other is nothing.
    for device in ["/dev/null", "/dev/linerate-is-not-there"] {
        let step = Step::Lvm(LvmStep::Drives { devices: vec![device.to_owned()] });
        let error = builds.step("b", &step).unwrap_err();
        assert!(matches!(error, BuildError::InTheWay { .. }), "{error}");
    }
    assert!(builds.list().unwrap().is_empty(), "nothing was begun");
    // Asked before: all that are in the way at once.
    let devices = vec!["/dev/null".to_owned(), "/dev/linerate-is-not-there".to_owned()];
    let seen = builds.look(&Look::Empty { devices }, &AtomicBool::new(false)).unwrap();
    let refused: Vec<Refused> = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0], Refused { device: "/dev/null".into(), why: "it is no block device".into() });
}

#[test]
fn names_are_checked_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    let up = |resource: &str| Step::Drbd(DrbdStep::Up { resource: resource.to_owned() });
    for (build, step) in [("../b", up("r0")), ("b", up("-r")), ("b", up("all")), ("", up("r0"))] {
        assert!(matches!(builds.step(build, &step), Err(BuildError::Name(_))));
    }
    let stop = AtomicBool::new(false);
    let look = Look::DrbdGeneration { resource: "r0; reboot".to_owned() };
    assert!(matches!(builds.look(&look, &stop), Err(BuildError::Name(_))));
    assert!(matches!(builds.undo("b"), Err(BuildError::NoBuild { .. })));
}

#[test]
fn a_step_is_in_the_journal_before_its_program_runs_and_stays_when_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    // A group of drives that are none: either LVM is not here, or it refuses.
    let step = Step::Lvm(LvmStep::Group {
        name: "linerate-no-group".to_owned(),
        devices: vec!["/dev/linerate-is-not-there".to_owned()],
    });
    let error = builds.step("b", &step).unwrap_err();
    assert!(matches!(error, BuildError::Failed { .. } | BuildError::Start { .. }), "{error}");
    let entries = super::Builds::new(folder.path(), "here").list().unwrap();
    assert_eq!((entries.len(), entries[0].whole, entries[0].steps.len()), (1, false, 1));
    // Once more is the same step, not another one.
    assert!(builds.step("b", &step).is_err());
    assert_eq!(builds.list().unwrap()[0].steps.len(), 1);
    // What had failed itself is no obstacle on the way back.
    let lines = builds.undo("b").unwrap();
    assert_eq!(lines, ["vgremove -- linerate-no-group"]);
    assert!(builds.list().unwrap().is_empty());
}

#[test]
fn a_file_of_somebody_else_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r0.res");
    let need = |text: &str| {
        needs::check(&[Need::NoOtherFile { path: path.display().to_string(), text: text.to_owned() }])
    };
    assert_eq!(need("ours"), Ok(()));
    std::fs::write(&path, "ours").unwrap();
    assert_eq!(need("ours"), Ok(()), "a step that is done again");
    assert!(need("other").unwrap_err().why.contains("is there already"));
}

#[test]
fn a_file_is_put_back_unless_somebody_else_wrote_it_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let builds = builds(folder.path());
    let path = folder.path().join("r0.res");
    let text = |text: &str| Content::Text(text.to_owned());
    let before = text("old");
    std::fs::write(&path, "ours").unwrap();
    builds.put_back(&path, "ours", Some(&before)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    builds.put_back(&path, "ours", Some(&before)).unwrap();
    std::fs::write(&path, "theirs").unwrap();
    assert!(builds.put_back(&path, "ours", Some(&before)).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
    std::fs::write(&path, "ours").unwrap();
    builds.put_back(&path, "ours", None).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_program_is_bounded_and_its_words_are_kept() {
    let stop = AtomicBool::new(false);
    let argv = |words: &[&str]| -> Argv { words.iter().map(|word| (*word).to_owned()).collect() };
    let seen = run::run(&argv(&["ls", "/linerate-is-not-there"]), LOOK_LIMIT, Some(&stop)).unwrap().unwrap();
    assert!(!seen.is_good() && seen.err.contains("linerate-is-not-there"), "{seen:?}");
    let late = run::run(&argv(&["sleep", "60"]), Duration::from_millis(30), Some(&stop)).unwrap();
    assert_eq!(late, None);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(run::run(&argv(&["sleep", "60"]), LOOK_LIMIT, Some(&stop)).unwrap(), None);
    assert!(run::run(&argv(&["linerate-is-not-there"]), LOOK_LIMIT, None).is_err());
    // What a shell would take for a command is one word.
    let seen = run::run(&argv(&["echo", "$(id); `id`"]), LOOK_LIMIT, None).unwrap().unwrap();
    assert_eq!(seen.out, "$(id); `id`\n");
}
