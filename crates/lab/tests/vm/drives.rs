//! The line of 36 drives: one of them becomes slow under load, and `linerate disk watch` names it and no other.

use std::collections::BTreeSet;

use crate::{Scene, printed, wait_for};

const DRIVES: usize = 36;
/// The eighth drive, as the lab and as the guest call it.
const VICTIM: (&str, &str) = ("d8", "sdh");

/// LVM's RAID10 over all drives, as an administrator makes it.
const BUILD: &str = "modprobe dm-raid; modprobe raid10; pvcreate -q /dev/sd*; vgcreate -q -s 1m vg0 /dev/sd*; \
    lvcreate -q -y --type raid10 --mirrors 1 --stripes 18 --stripesize 64k --nosync -l 90%FREE -n home vg0";

/// Four that write and two that read, all over the volume, for as long as the guest runs.
const LOAD: &str = "for n in 0 1 2 3; do (while :; do dd if=/dev/zero of=/dev/vg0/home bs=64k seek=$((n * 1400)) count=1400 \
    oflag=direct conv=notrunc; done) & done; for n in 0 1; do (while :; do dd if=/dev/vg0/home of=/dev/null bs=64k \
    skip=$((n * 2800)) count=2800 iflag=direct; done) & done; wait";

/// Requests that all drives answered.
fn answered(scene: &Scene) -> u64 {
    let drives = &scene.lab.guest("store").unwrap().drives;
    drives.iter().map(|d| d.counters()).map(|c| c.reads + c.writes).sum()
}

/// Devices with what is wrong with them, as the last line of the watch has it.
fn findings(scene: &Scene, looks: &str) -> BTreeSet<(String, String)> {
    let words = ["disk", "watch", "--inventory", &scene.inventory(), "--count", looks, "-i", "2", "--json"];
    let said = printed(&scene.linerate(&words), &[0, 1]);
    let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let findings = last["findings"].as_array().unwrap_or_else(|| panic!("no findings in {last}"));
    let of = |f: &serde_json::Value, key: &str| f[key].as_str().unwrap_or_default().to_owned();
    findings.iter().map(|f| (of(f, "device"), of(f, "what"))).collect()
}

#[test]
fn of_36_drives_the_slow_one_is_named_and_no_other() {
    let Some(scene) = Scene::new("of_36_drives_the_slow_one_is_named_and_no_other", "vm-36") else { return };
    let drives = scene.lab.guest("store").unwrap().drives.clone();
    assert_eq!(drives.len(), DRIVES);
    // Building is no part of what is measured.
    let all = |ops: f64| drives.iter().for_each(|d| d.behave(|b| b.ops_per_s = ops).unwrap());
    all(0.0);
    scene.sh("store", BUILD);
    all(150.0);
    scene.sh("store", &format!("setsid bash -c '{LOAD}' </dev/null >/dev/null 2>&1 &"));
    let idle = answered(&scene);
    wait_for(
        "load on the volume",
        || answered(&scene).to_string(),
        |n| n.parse::<u64>().unwrap() > idle + 500,
    );
    assert_eq!(findings(&scene, "4"), BTreeSet::new(), "all drives are alike");

    let victim = scene.lab.guest("store").unwrap().drive(VICTIM.0).unwrap().clone();
    victim.behave(|b| b.ops_per_s = 10.0).unwrap();
    let found = findings(&scene, "6");
    assert!(found.contains(&(VICTIM.1.to_owned(), "slow-among-equals".to_owned())), "{found:?}");
    assert!(found.iter().all(|(device, _)| device == VICTIM.1), "no other is named: {found:?}");
}
