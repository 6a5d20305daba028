//! A server with a stack of every kind: DRBD with internal and external metadata, multipath of the device
//! mapper and of NVMe itself, encryption on md. What is read of it is what the reasoning about disks starts
//! from (`crates/diagnose/src/disks/recorded/storage-stack.json`).

use std::collections::BTreeMap;
use std::path::Path;

use linerate_model::fact::FactValue;
use linerate_sys::root::Root;

use super::{counters, disk_counters, read};

fn tree() -> Root {
    Root::recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/roots/storage-stack"))
}

#[test]
fn a_stack_of_every_kind_is_read() {
    let facts = read(&tree(), &["disk.".to_owned(), "mount.".to_owned()], &[]);
    let seen: BTreeMap<String, FactValue> =
        facts.readings.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let recorded = include_str!("../../diagnose/src/disks/recorded/storage-stack.json");
    let expected: BTreeMap<String, FactValue> = serde_json::from_str(recorded).unwrap();
    assert_eq!(seen, expected, "{}", serde_json::to_string_pretty(&seen).unwrap());
}

#[test]
fn hidden_ways_have_counters_and_other_tests_do_not_read_them() {
    let (mut seen, mut gaps) = (BTreeMap::new(), Vec::new());
    disk_counters::read(&tree(), &mut seen, &mut gaps);
    assert!(gaps.is_empty());
    let writes = |device: &str| seen[&format!("disk.{device}.stat.writes")];
    assert_eq!(["nvme0c0n1", "nvme0c1n1", "nvme0n1", "drbd0"].map(writes), [100, 50, 0, 20]);
    assert!(counters(&tree()).keys().all(|key| !key.starts_with("disk.")));
}
