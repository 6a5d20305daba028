//! Every pattern on a real file system: written, found again, lost on purpose, removed; and what is refused.

use std::fs;
use std::path::PathBuf;

use linerate_model::durability::{FileState, PatternRule, Promised};
use linerate_model::printable::without_hint;

use super::*;

const RUN: &str = "00112233445566aa";

fn plan(records: u32) -> WritePlan {
    let patterns = patterns().into_iter().map(|p| p.name).collect();
    WritePlan { run: RUN.into(), patterns, files: 2, records }
}

fn ask(request: &DurabilityRequest) -> Result<DurabilityAnswer, DurabilityError> {
    run(request, &AtomicBool::new(false))
}

fn prepare(folder: &Path, plan: &WritePlan) -> Result<DurabilityAnswer, DurabilityError> {
    ask(&DurabilityRequest::Prepare { folder: folder.into(), plan: plan.clone() })
}

fn write(folder: &Path, plan: &WritePlan, from: u32, count: u32) -> (u32, Option<String>) {
    let (folder, plan) = (folder.into(), plan.clone());
    match ask(&DurabilityRequest::Write { folder, plan, from, count, budget_ms: 600_000 }).unwrap() {
        DurabilityAnswer::Written { done, error } => (done, error),
        other => panic!("{other:?}"),
    }
}

fn seen(folder: &Path, plan: &WritePlan, pattern: &str, count: u32) -> Vec<FileState> {
    let (folder, plan) = (folder.into(), plan.clone());
    match ask(&DurabilityRequest::Look { folder, plan, pattern: pattern.into(), from: 0, count }).unwrap() {
        DurabilityAnswer::Seen(files) => files.into_iter().map(|f| f.state).collect(),
        other => panic!("{other:?}"),
    }
}

fn clean(folder: &Path, run: Option<&str>) -> Result<DurabilityAnswer, DurabilityError> {
    ask(&DurabilityRequest::Clean { folder: folder.into(), run: run.map(str::to_owned) })
}

/// A folder with four records of every pattern in it.
fn filled(parent: &Path) -> (PathBuf, WritePlan) {
    let count = patterns().len() as u32 * 4;
    let (folder, plan) = (parent.join("test"), plan(count));
    let DurabilityAnswer::Prepared { place, patterns } = prepare(&folder, &plan).unwrap() else { panic!() };
    assert_eq!(patterns, super::patterns());
    assert!(place.free_bytes > 0 && !place.filesystem.is_empty() && !place.boot.is_empty(), "{place:?}");
    assert_eq!(place.run.as_deref(), Some(RUN));
    assert_eq!(write(&folder, &plan, 0, count), (count, None));
    (folder, plan)
}

#[test]
fn every_pattern_is_written_and_found_again_and_removed() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, plan) = filled(parent.path());
    for pattern in patterns() {
        let whole = |version| FileState::Whole { version };
        let expected = match pattern.shape {
            PatternRule::Fresh => vec![whole(1); 4].into_iter().chain([FileState::Missing]).collect(),
            // Two files, a first version each, two records each.
            _ => vec![whole(3), whole(3), FileState::Missing],
        };
        assert_eq!(seen(&folder, &plan, &pattern.name, expected.len() as u32), expected, "{pattern:?}");
    }
    let fresh = patterns().iter().filter(|p| p.shape == PatternRule::Fresh).count() as u64;
    let again = patterns().len() as u64 - fresh;
    let answer = clean(&folder, Some(RUN)).unwrap();
    assert_eq!(answer, DurabilityAnswer::Cleaned { files: fresh * 4 + again * 2, left: Vec::new() });
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0, "the folder was ours and is gone");
}

#[test]
fn every_kind_of_loss_is_found_in_real_files() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, plan) = filled(parent.path());
    let file = |pattern: &str, slot| folder.join(pattern).join(format!("{slot:08}"));
    let old = record::content(PatternRule::Replaced, Key::new(0x0011_2233_4455_66aa, "replace", 0), 1);
    fs::write(file("create", 0), []).unwrap();
    let length = fs::metadata(file("create", 1)).unwrap().len();
    fs::File::options().write(true).open(file("create", 1)).unwrap().set_len(length - 1).unwrap();
    fs::write(file("create", 2), vec![0; 5000]).unwrap();
    fs::remove_file(file("create", 3)).unwrap();
    assert_eq!(
        seen(&folder, &plan, "create", 4),
        [
            FileState::Empty,
            FileState::Short { version: 1, bytes: length - 1 },
            FileState::Zeros { version: 0, bytes: 5000 },
            FileState::Missing
        ]
    );
    fs::write(file("replace", 0), old).unwrap();
    fs::write(file("replace", 1), "something else").unwrap();
    let found = seen(&folder, &plan, "replace", 2);
    assert_eq!(found[0], FileState::Whole { version: 1 });
    assert!(matches!(&found[1], FileState::Corrupt { .. }), "{found:?}");
    // A link with the name of a file is not followed.
    fs::rename(file("truncate", 0), folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(folder.join("elsewhere"), file("truncate", 0)).unwrap();
    assert!(matches!(&seen(&folder, &plan, "truncate", 1)[0], FileState::Corrupt { .. }));
    // The end of a file that grew.
    let path = file("append", 0);
    fs::File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    assert_eq!(seen(&folder, &plan, "append", 1), [FileState::Short { version: 0, bytes: 10 }]);
    // What is not ours is left, and so is the folder.
    let DurabilityAnswer::Cleaned { left, .. } = clean(&folder, None).unwrap() else { panic!() };
    assert_eq!(left, ["truncate/00000000", "elsewhere"]);
    assert!(folder.join("elsewhere").is_file());
}

#[test]
fn a_folder_that_is_not_ours_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let plan = plan(10);
    let full = parent.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "x").unwrap();
    let words = |result: Result<DurabilityAnswer, DurabilityError>| {
        without_hint(&result.unwrap_err().to_string()).0.to_owned()
    };
    assert!(words(prepare(&full, &plan)).ends_with("is not empty: thesis.tex is in it"));
    assert!(words(clean(&full, None)).ends_with("it has no marker"));
    let order = DurabilityRequest::Write {
        folder: full.clone(),
        plan: plan.clone(),
        from: 0,
        count: 1,
        budget_ms: 1,
    };
    assert!(words(ask(&order)).contains("is not that of run"));
    assert_eq!(fs::read_dir(&full).unwrap().count(), 1);
    assert!(words(prepare(Path::new("relative"), &plan)).contains("not named from the root on"));
    assert!(words(prepare(&parent.path().join("a/b"), &plan)).starts_with("cannot make"));
    // Another run of ours is not ours either.
    let (folder, _) = filled(parent.path());
    assert!(words(clean(&folder, Some("ffffffffffffffff"))).contains("its marker names run 0011"));
    assert!(words(prepare(&folder, &plan)).contains("is not empty"));
}

#[test]
fn plans_out_of_bounds_are_refused_before_anything_is_made() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("test");
    let wrong = [
        WritePlan { patterns: vec!["create".into(), "create".into()], ..plan(1) },
        WritePlan { patterns: vec!["../create".into()], ..plan(1) },
        WritePlan { files: u32::MAX, ..plan(1) },
        WritePlan { run: "x".repeat(16), ..plan(1) },
    ];
    for plan in wrong {
        assert!(matches!(prepare(&folder, &plan), Err(DurabilityError::Plan(_))), "{plan:?}");
        assert!(!folder.exists());
    }
}

#[test]
fn a_request_ends_at_its_time_and_when_it_is_stopped() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, plan) = (parent.path().join("test"), plan(1000));
    prepare(&folder, &plan).unwrap();
    let order = |budget_ms| DurabilityRequest::Write {
        folder: folder.clone(),
        plan: plan.clone(),
        from: 0,
        count: 100,
        budget_ms,
    };
    assert_eq!(ask(&order(0)).unwrap(), DurabilityAnswer::Written { done: 0, error: None });
    let stopped = run(&order(60_000), &AtomicBool::new(true)).unwrap();
    assert_eq!(stopped, DurabilityAnswer::Written { done: 0, error: None });
    // A record that fails is reported, and those before it count.
    fs::remove_dir(folder.join("create+fsync")).unwrap();
    let (done, error) = write(&folder, &plan, 0, 10);
    assert!(done == 1 && error.unwrap().starts_with("record 1 ("));
}

#[test]
fn names_are_given_in_the_folder_and_promised_only_with_it() {
    for pattern in patterns() {
        let named = matches!(pattern.shape, PatternRule::Fresh | PatternRule::Replaced);
        let expected = match (pattern.calls.as_str(), named) {
            ("", _) => Promised::Nothing,
            ("fsync of the file", true) => Promised::Content,
            _ => Promised::All,
        };
        assert_eq!(pattern.promised, expected, "{pattern:?}");
    }
}

#[test]
fn a_folder_that_is_gone_lies_where_it_would_lie() {
    let parent = tempfile::tempdir().unwrap();
    let (folder, plan) = filled(parent.path());
    let location = || match ask(&DurabilityRequest::Place { folder: folder.clone() }).unwrap() {
        DurabilityAnswer::Place(location) => location,
        other => panic!("{other:?}"),
    };
    let before = location();
    fs::remove_dir_all(&folder).unwrap();
    let after = location();
    assert_eq!((after.run.as_ref(), &after.mount, &after.boot), (None, &before.mount, &before.boot));
    assert_eq!(seen(&folder, &plan, "replace", 2), [FileState::Missing, FileState::Missing]);
}
