//! The line of 36 drives: a volume over some of them by plan and back; then one of all becomes slow under
//! load, and `linerate disk watch` names it and no other.

use std::collections::BTreeSet;

use linerate_lab::vm::faults;
use linerate_lab::vm::faults::fault::DriveTarget;
use linerate_lab::vm::lab::VmLab;
use linerate_lab::vm::stages::Stage;
use linerate_lab::vm::stages::drives::{DrivesStage, GUEST};

use crate::{Scene, printed, volume, wait_for};

/// Requests that all drives answered.
fn answered(lab: &VmLab) -> u64 {
    let drives = &lab.guest(GUEST).unwrap().drives;
    drives.iter().map(|d| d.counters()).map(|c| c.reads + c.writes).sum()
}

/// Verdicts of the watch.
fn watched(scene: &Scene) -> BTreeSet<String> {
    let question = DrivesStage.question(&scene.lab);
    let words: Vec<&str> = question.iter().map(String::as_str).collect();
    let printed = printed(&scene.linerate(&words), &[0, 1]);
    let verdicts = DrivesStage.answer(&printed).unwrap();
    // Each had a record of its own when it began.
    let began: Vec<&str> = printed.lines().filter(|line| line.contains(r#""finding":"began""#)).collect();
    for finding in &verdicts {
        let device = format!(r#""device":"{}""#, finding.device);
        assert!(began.iter().any(|line| line.contains(&device)), "{finding}: {began:?}");
    }
    verdicts.iter().map(ToString::to_string).collect()
}

#[test]
fn of_36_drives_the_slow_one_is_named_and_no_other() {
    let Some(scene) = Scene::new("of_36_drives_the_slow_one_is_named_and_no_other", DrivesStage.lab()) else {
        return;
    };
    volume::is_built_measured_and_undone(&scene);
    DrivesStage.build(&scene.lab).unwrap();
    let before = answered(&scene.lab);
    wait_for(
        "load on the volume",
        || answered(&scene.lab).to_string(),
        |n| n.parse::<u64>().unwrap() > before + 500,
    );
    assert_eq!(watched(&scene), BTreeSet::new(), "all drives are alike");

    let fault = faults::find("slow-drive").unwrap();
    let target = DriveTarget { guest: GUEST.into(), drive: "d8".into() };
    fault.inject(&scene.lab, &target, 0.5).unwrap();
    assert_eq!(watched(&scene), BTreeSet::from(["sdh of store is slow-among-equals".to_owned()]));
}
