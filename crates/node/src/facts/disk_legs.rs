//! Facts `disk.<dev>.failed_legs`: which legs of an array of md or a volume of LVM have failed.
//!
//! In: `/sys/block/<md>/md`, and what the device mapper says of a volume. Out: names of the kernel where it still tells them, places in the array
//! (from 0) where it does not. Nothing for an array that is whole, or that is none.

use linerate_sys::block::Number;
use linerate_sys::device_mapper::{self, Target};
use linerate_sys::root::Root;

/// Most legs of an array.
const LEGS_MAX: i64 = 1024;

/// Legs of an array of md that failed, by its folder in `/sys/block`.
pub(super) fn of_array(root: &Root, folder: &str) -> Vec<String> {
    if root.number(&format!("{folder}/md/degraded")).unwrap_or(0) <= 0 {
        return Vec::new();
    }
    let names = root.list(&format!("{folder}/md")).unwrap_or_default();
    let is_faulty = |dev: &&str| {
        let state = root.line(&format!("{folder}/md/dev-{dev}/state")).unwrap_or_default();
        state.split(',').any(|word| word.trim() == "faulty")
    };
    let faulty: Vec<String> = names
        .iter()
        .filter_map(|name| name.strip_prefix("dev-"))
        .filter(is_faulty)
        .map(str::to_owned)
        .collect();
    if !faulty.is_empty() {
        return faulty;
    }
    // Already removed: its place is empty.
    let count = root.number(&format!("{folder}/md/raid_disks")).unwrap_or(0).clamp(0, LEGS_MAX);
    (0..count).filter(|place| !names.contains(&format!("rd{place}"))).map(|place| place.to_string()).collect()
}

/// Legs of a volume that failed, by its number; nothing where the device mapper does not say.
pub(super) fn of_volume(number: &str) -> Vec<String> {
    let parsed = number.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let Some((major, minor)) = parsed else { return Vec::new() };
    device_mapper::status(Number { major, minor }).map(|targets| failed(&targets)).unwrap_or_default()
}

/// Places of failed legs (`dm-raid.rst` and `dm-raid1.c` of the kernel: one sign for each leg).
fn failed(targets: &[Target]) -> Vec<String> {
    let mut places = Vec::new();
    for target in targets {
        let words: Vec<&str> = target.state.split_ascii_whitespace().collect();
        let count = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
        let signs = match target.kind.as_str() {
            // raid10 36 AAAADAAA… 3760128/3760128 idle 0 0 -
            "raid" => words.get(2).copied().unwrap_or_default(),
            // 2 253:0 253:1 133/1188 1 AA 1 core
            "mirror" => {
                count(0).and_then(|legs| words.get(legs.checked_add(3)?).copied()).unwrap_or_default()
            }
            _ => continue,
        };
        // `a` is alive and not yet in sync; of a mirror all but `A` have failed in some way.
        let is_dead = |sign: char| if target.kind == "raid" { sign == 'D' } else { sign != 'A' };
        places.extend(
            signs.chars().enumerate().filter(|(_, sign)| is_dead(*sign)).map(|(at, _)| at.to_string()),
        );
    }
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, state: &str) -> Target {
        Target { kind: kind.into(), state: state.into() }
    }

    /// As real volumes said it: 34 and 36 drives, one of them pulled; a mirror that is whole.
    #[test]
    fn dead_legs_are_named_by_their_place() {
        let of_34 = "raid10 34 AADAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA 3760128/3760128 idle 0 0 -";
        assert_eq!(failed(&[target("raid", of_34)]), ["2"]);
        assert_eq!(failed(&[target("raid", "raid10 4 aAAA 0/100 resync 0 0 -")]), [""; 0]);
        assert_eq!(failed(&[target("mirror", "2 253:0 253:1 133/1188 1 AA 1 core")]), [""; 0]);
        assert_eq!(failed(&[target("mirror", "2 253:0 253:1 133/1188 1 AD 1 core")]), ["1"]);
        for odd in ["", "raid10", "raid10 x", "18446744073709551615 a"] {
            assert_eq!(
                failed(&[target("raid", odd), target("mirror", odd), target("linear", "D D D")]),
                [""; 0]
            );
        }
        assert_eq!((of_volume(""), of_volume("a:b"), of_volume("1:250")), (vec![], vec![], vec![]));
    }

    #[test]
    fn an_array_names_its_faulty_drive_and_later_its_empty_place() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join("sys/block/md0/md").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let legs = || of_array(&Root::recorded(tree.path()), "/sys/block/md0");
        put("degraded", "0\n");
        assert_eq!(legs(), [""; 0]);
        put("degraded", "1\n");
        put("raid_disks", "3\n");
        put("dev-sda/state", "in_sync\n");
        put("dev-sdb/state", "faulty,blocked\n");
        put("rd0/state", "in_sync\n");
        put("rd2/state", "in_sync\n");
        assert_eq!(legs(), ["sdb"]);
        std::fs::remove_dir_all(tree.path().join("sys/block/md0/md/dev-sdb")).unwrap();
        assert_eq!(legs(), ["1"]);
    }
}
