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
        let step = Step::Lvm(LvmStep::Drives { devices: vec![device.to_owned()], align_kib: None });
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

/// As mkfs.xfs 6.1 ended on a volume that was too small: the reason, and 14 lines of its options.
#[test]
fn the_usage_of_a_program_is_no_reason() {
    let printed = "Log size must be at least 64MB.\nUsage: mkfs.xfs\n/* blocksize */\t\t[-b size=num]\n";
    assert_eq!(run::words(printed), "Log size must be at least 64MB.");
    assert_eq!(run::words("  one\n  two  \n\n"), "one;   two");
    assert_eq!(run::words("usage: x FILE\nmore"), "usage: x FILE; more", "the only words there are");
    assert_eq!(run::words(""), "");
    assert_eq!(run::words(&"\u{e9}".repeat(2000)).chars().count(), 600);
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

#[test]
fn a_journal_is_private_and_one_that_another_user_could_have_written_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let builds = builds(&state);
    let step = Step::Lvm(LvmStep::Group {
        name: "linerate-no-group".to_owned(),
        devices: vec!["/dev/linerate-is-not-there".to_owned()],
    });
    assert!(builds.step("b", &step).is_err(), "there is no such device");
    let path = state.join("builds/b.json");
    assert_eq!((mode(&state), mode(&state.join("builds")), mode(&path)), (0o700, 0o700, 0o600));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = builds.undo("b").unwrap_err();
    assert!(error.to_string().contains("b.json is writable by other users"), "{error}");
    assert!(error.hint().contains("`ls -ld "), "{}", error.hint());
}

#[test]
fn a_journal_of_another_build_or_with_a_step_that_is_none_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let builds = builds(&state);
    let path = state.join("builds/b.json");
    let step = |resource: &str| Step::Drbd(DrbdStep::Down { resource: resource.to_owned() });
    for (build, resource, named) in [
        ("../../b", "r0", "it names another build, `../../b`"),
        ("c", "r0", "it names another build, `c`"),
        ("b", "--force", "it names a step that cannot be done"),
        ("b", "../r0", "it names a step that cannot be done"),
    ] {
        let done = Done { step: step(resource), before: None, whole: true, stamps: BTreeMap::new() };
        let mut journal = Journal::new("here", "b", 0);
        journal.steps.push(done);
        builds.write(&journal).unwrap();
        journal.build = build.to_owned();
        let text = serde_json::to_string(&journal).unwrap();
        std::fs::write(&path, &text).unwrap();
        for error in [builds.undo("b").unwrap_err(), builds.step("b", &step("r0")).unwrap_err()] {
            assert!(error.to_string().contains(named), "{error}");
            assert!(error.hint().contains("`mv "), "{}", error.hint());
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{named}");
    }
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1, "nothing outside the folder of builds");
}
