//! Files of every state against every promise.
#![allow(clippy::unwrap_used)]

use linerate_model::durability::{FileState, Pattern, PatternRule, Promised, WritePlan};

use super::*;

fn pattern(name: &str, shape: PatternRule, promised: Promised) -> Pattern {
    Pattern { name: name.into(), doing: "x".into(), calls: "x".into(), shape, promised }
}

fn patterns() -> Vec<Pattern> {
    vec![
        pattern("create", PatternRule::Fresh, Promised::Nothing),
        pattern("create+fsync", PatternRule::Fresh, Promised::Content),
        pattern("replace+fsync+folder", PatternRule::Replaced, Promised::All),
        pattern("truncate+fsync", PatternRule::Truncated, Promised::All),
        pattern("overwrite+fsync", PatternRule::InPlace, Promised::All),
        pattern("append+fsync", PatternRule::Grown, Promised::All),
    ]
}

fn promises(acknowledged: u32, asked: u32) -> Promises {
    let patterns = patterns();
    let names = patterns.iter().map(|p| p.name.clone()).collect();
    Promises {
        schema: SCHEMA,
        host: "arc-1".into(),
        folder: "/mnt/test".into(),
        plan: WritePlan { run: "0123456789abcdef".into(), patterns: names, files: 2, records: 1000 },
        patterns,
        place: FolderLocation { filesystem: "xfs".into(), boot: "one".into(), ..FolderLocation::default() },
        start_ms: 0,
        acknowledged,
        asked,
        last_ms: 0,
        ended: String::new(),
    }
}

fn restarted() -> FolderLocation {
    let run = Some("0123456789abcdef".to_owned());
    FolderLocation { filesystem: "xfs".into(), boot: "two".into(), run, ..FolderLocation::default() }
}

fn file(slot: u32, state: FileState) -> FoundFile {
    FoundFile { slot, state, temporary: false }
}

/// All files as they were acknowledged.
fn kept(promises: &Promises) -> BTreeMap<usize, Vec<FoundFile>> {
    let of = |index| {
        let whole = |(slot, v): (&u32, &Versions)| file(*slot, FileState::Whole { version: v.acknowledged });
        versions(promises, index).iter().map(whole).collect()
    };
    (0..promises.patterns.len()).map(|index| (index, of(index))).collect()
}

#[test]
fn all_kept_is_all_kept() {
    let promises = promises(60, 60);
    let report = judge(&promises, restarted(), &kept(&promises));
    assert_eq!(report.verdict, DurabilityVerdict::Kept);
    assert_eq!(report.patterns.iter().map(|p| p.records).collect::<Vec<_>>(), [10; 6]);
    assert_eq!(report.patterns.iter().map(|p| p.files).collect::<Vec<_>>(), [10, 10, 2, 2, 2, 2]);
    assert!(report.lost.is_empty() && report.sentences[0].starts_with("All 18 synchronised files"));
    assert!(report.sentences[1].contains("power was not cut"), "{:?}", report.sentences);
    assert_eq!(files(&promises, 0), 10);
    assert_eq!(files(&promises, 5), 2);
    assert_eq!(files(&promises, 99), 0);
}

#[test]
fn a_host_that_was_not_restarted_proves_nothing() {
    let promises = promises(60, 60);
    let mut seen = kept(&promises);
    seen.get_mut(&2).unwrap()[0].state = FileState::Missing;
    let location = FolderLocation { boot: "one".into(), ..restarted() };
    let report = judge(&promises, location, &seen);
    assert_eq!((report.verdict, report.sentences.len()), (DurabilityVerdict::NotRestarted, 1));
}

#[test]
fn what_is_lost_without_a_promise_is_the_fault_of_the_program() {
    let promises = promises(60, 60);
    let mut seen = kept(&promises);
    let create = seen.get_mut(&0).unwrap();
    create[0].state = FileState::Empty;
    create[1].state = FileState::Missing;
    create[2] = FoundFile { temporary: true, ..file(2, FileState::Missing) };
    create[3].state = FileState::Zeros { version: 0, bytes: 9 };
    let with_fsync = seen.get_mut(&1).unwrap();
    with_fsync[0].state = FileState::Missing;
    let report = judge(&promises, restarted(), &seen);
    assert_eq!(report.verdict, DurabilityVerdict::Kept);
    let fates = &report.patterns[0].fates;
    let count = |fate| fates.get(&fate).copied().unwrap_or(0);
    assert_eq!(
        [Fate::Empty, Fate::Missing, Fate::NameLost, Fate::Zeros, Fate::Kept].map(count),
        [1, 1, 1, 1, 6]
    );
    assert_eq!(report.patterns[1].fates[&Fate::NameLost], 1);
    let text = report.sentences.join("\n");
    assert!(text.contains("is not an XFS bug but a missing fsync"), "{text}");
    assert!(text.contains("without an fsync of the folder a name is no promise"), "{text}");
    assert!(report.lost.iter().all(|l| !l.promised) && report.lost.len() == 5);
}

#[test]
fn every_loss_of_what_was_promised_is_the_fault_of_the_disk() {
    let promises = promises(60, 60);
    let losses = [
        (1, FileState::Empty, Fate::Empty),
        (1, FileState::Short { version: 1, bytes: 5 }, Fate::Short),
        (2, FileState::Missing, Fate::NameLost),
        (2, FileState::Whole { version: 2 }, Fate::Stale),
        (2, FileState::Zeros { version: 0, bytes: 5 }, Fate::Zeros),
        (3, FileState::Empty, Fate::Empty),
        (3, FileState::Missing, Fate::Missing),
        (4, FileState::Torn { oldest: 2, newest: 6 }, Fate::Corrupt),
        (4, FileState::Corrupt { version: 0, what: "x".into() }, Fate::Corrupt),
        (5, FileState::Whole { version: 3 }, Fate::Short),
        (5, FileState::Zeros { version: 3, bytes: 5 }, Fate::Zeros),
    ];
    for (index, state, fate) in losses {
        let mut seen = kept(&promises);
        seen.get_mut(&index).unwrap()[0].state = state.clone();
        let report = judge(&promises, restarted(), &seen);
        assert_eq!(report.patterns[index].fates.get(&fate), Some(&1), "{state:?}");
        assert_eq!(report.patterns[index].broken, 1, "{state:?}");
        assert_eq!(report.verdict, DurabilityVerdict::Broken);
        assert!(report.sentences[0].contains("this disk lies about flush"), "{:?}", report.sentences);
        assert!(report.lost[0].promised);
    }
    let report = judge(&promises, FolderLocation { run: None, ..restarted() }, &kept(&promises));
    assert_eq!(report.verdict, DurabilityVerdict::Broken);
}

#[test]
fn an_unfinished_write_is_not_judged_by_its_final_state() {
    // Versions 2 to 6 of each file were acknowledged, the next ones begun.
    let promises = promises(60, 72);
    let fine = [
        (3, FileState::Empty, Fate::UnderWay),
        (4, FileState::Torn { oldest: 6, newest: 7 }, Fate::Kept),
        (4, FileState::Corrupt { version: 0, what: "half a block".into() }, Fate::UnderWay),
        (5, FileState::Short { version: 6, bytes: 9 }, Fate::Kept),
        (5, FileState::Zeros { version: 7, bytes: 9 }, Fate::Kept),
        (2, FileState::Whole { version: 7 }, Fate::Kept),
    ];
    for (index, state, fate) in fine {
        let mut seen = kept(&promises);
        seen.get_mut(&index).unwrap()[0].state = state.clone();
        let report = judge(&promises, restarted(), &seen);
        assert_eq!(report.patterns[index].fates.get(&fate), Some(&if fate == Fate::Kept { 2 } else { 1 }));
        assert_eq!(report.verdict, DurabilityVerdict::Kept, "{state:?}");
    }
    // But the old or the new version of a file that is replaced is there at any time.
    let mut seen = kept(&promises);
    seen.get_mut(&2).unwrap()[0].state = FileState::Empty;
    assert_eq!(judge(&promises, restarted(), &seen).verdict, DurabilityVerdict::Broken);
    // A file with nothing but an unfinished record is not counted.
    assert_eq!(judge(&promises, restarted(), &kept(&promises)).patterns[0].files, 10);
}
