//! A volume by `linerate disk plan --apply` on eight of the 36 drives: blockers are refused, what is printed
//! is what is done, the alignment is the planned one, the figures stand beside the plan, and afterwards every
//! byte of the drives is zero again.

use std::fs::File;
use std::io::Read;

use linerate_lab::vm::stages::drives::GUEST;
use linerate_testkit::text;
use serde_json::Value;

use crate::{Scene, printed};

/// Could not run.
const REFUSED: i32 = 2;
/// Two shelves of four drives: sda to sdd and sde to sdh are `d1` to `d8` of the lab.
const SHELVES: [&str; 2] = ["sda,sdb,sdc,sdd", "sde,sdf,sdg,sdh"];
const DRIVES: usize = 8;

fn apply(scene: &Scene, shelves: [&str; 2], more: &[&str]) -> std::process::Output {
    apply_level(scene, "--raid10", shelves, more)
}

fn apply_level(scene: &Scene, level: &str, shelves: [&str; 2], more: &[&str]) -> std::process::Output {
    let inventory = scene.inventory();
    let plan = ["disk", "plan", level, "--shelf", shelves[0], "--shelf", shelves[1], "--apply"];
    let host = ["--host", GUEST, "--inventory", &inventory];
    scene.linerate(&[&plan[..], &host, more].concat())
}

fn refusal(scene: &Scene, shelves: [&str; 2], more: &[&str]) -> String {
    let output = apply(scene, shelves, more);
    assert_eq!(output.status.code(), Some(REFUSED), "{output:?}");
    text(&output.stderr)
}

fn json(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap_or_else(|e| panic!("{e}: {printed}"))
}

fn blockers_are_refused(scene: &Scene) {
    let lvm = ["--layout", "lvm", "--really", "data"];
    assert!(refusal(scene, SHELVES, &["--really", "date"]).contains("`date` is not `data`"));
    assert!(refusal(scene, SHELVES, &[]).contains("--yes=data"), "without a terminal there is no prompt");
    let twice = refusal(scene, ["sda,sdb", "sdc,sda"], &lvm);
    assert!(twice.contains("the device '/dev/sda' is not named only once"), "{twice}");
    // All blockers are named at once: an unused filesystem, and a mounted one.
    scene.sh(GUEST, "modprobe ext4; mkfs.ext4 -q /dev/sdc; mkfs.ext4 -q /dev/sdg; mount /dev/sdg /mnt");
    let held = refusal(scene, SHELVES, &lvm);
    assert!(held.contains("2 of 8 drives cannot be taken"), "{held}");
    assert!(held.contains("/dev/sdc: it has the mark of ext2, ext3 or ext4 at byte 1080"), "{held}");
    assert!(held.contains("/dev/sdg: sdg is mounted on /mnt"), "{held}");
    scene.sh(
        GUEST,
        "umount /mnt; for drive in sdc sdg; do dd if=/dev/zero of=/dev/$drive bs=1M || true; done; sync",
    );
}

/// Whether all of a drive is zero, beside the guest.
fn holds_nothing(scene: &Scene, number: usize) -> bool {
    let path = scene.lab.folder().join(GUEST).join(format!("d{number}.drive"));
    let (mut file, zeros) = (File::open(&path).unwrap(), vec![0; 1 << 20]);
    let mut piece = zeros.clone();
    (0..file.metadata().unwrap().len() >> 20).all(|_| {
        file.read_exact(&mut piece).unwrap();
        piece == zeros
    })
}

fn undo(scene: &Scene) {
    let inventory = scene.inventory();
    let listed = printed(&scene.linerate(&["disk", "builds", "-i", &inventory]), &[0]);
    assert!(listed.contains(&format!("linerate undo data -i {inventory} store")), "{listed}");
    let words = ["disk", "undo", "data", "--really", "data", "-i", &inventory, "--json"];
    let undone = json(&printed(&scene.linerate(&words), &[0]));
    linerate_testkit::schemas::hold("disk-undo", &undone);
    assert_eq!(undone["drives"][0]["drives"], DRIVES, "{undone}");
    assert_eq!(undone["drives"][0]["not_empty"], Value::Array(Vec::new()), "{undone}");
    for number in 1..=DRIVES {
        assert!(holds_nothing(scene, number), "d{number} holds something");
    }
}

/// Unit and width of stripes in the superblock, blocks of 4 KiB.
fn geometry(scene: &Scene, device: &str) -> String {
    let ask = format!("xfs_db -r -c 'sb 0' -c 'p unit' -c 'p width' {device}");
    scene.sh(GUEST, &ask).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Unit and width of stripes of an ext4, blocks.
fn ext4_geometry(scene: &Scene, device: &str) -> String {
    let lines = scene.sh(GUEST, &format!("dumpe2fs -h {device} 2>/dev/null | grep -i raid"));
    lines.split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect::<Vec<_>>().join(" ")
}

/// RAID6 of LVM and RAID5 of md, each with a volume that takes a part, an ext4 on it, and space for another
/// volume.
fn volumes_with_parity_take_what_was_asked(scene: &Scene) {
    scene.sh(GUEST, "modprobe raid456; modprobe ext4");
    let free = || scene.sh(GUEST, "vgs --noheadings --nosuffix --units m -o vg_free vg0").trim().to_owned();
    let size = || scene.sh(GUEST, "blockdev --getsize64 /dev/vg0/data").trim().parse::<u64>().unwrap();
    let words = ["--volume", "400MiB", "--fs", "ext4", "--really", "data", "--no-measure", "--json"];

    let lvm = apply_level(scene, "--raid6", SHELVES, &[&words[..], &["--layout", "lvm"]].concat());
    let built = json(&printed(&lvm, &[0]));
    assert!(built["built"]["sync_s"].as_f64().is_some(), "{built}");
    // Six drives hold different data: 17 extents of 4 MiB on each, and one for metadata.
    assert_eq!((size(), free()), (408 << 20, (8 * (43 - 18) * 4).to_string() + ".00"));
    let kind = scene.sh(GUEST, "lvs --noheadings -o segtype,sync_percent vg0/data");
    assert_eq!(kind.split_whitespace().collect::<Vec<_>>(), ["raid6", "100.00"]);
    assert_eq!(ext4_geometry(scene, "/dev/vg0/data"), "16 96");
    scene.sh(
        GUEST,
        "lvcreate --test --type raid6 --stripes 6 --stripesize 64k --extents 144 --name other vg0",
    );
    undo(scene);

    let md = apply_level(scene, "--raid5", SHELVES, &[&words[..], &["--layout", "md"]].concat());
    let built = json(&printed(&md, &[0]));
    assert!(built["built"]["sync_s"].as_f64().is_some(), "{built}");
    assert_eq!(size(), 400 << 20);
    assert_eq!(ext4_geometry(scene, "/dev/vg0/data"), "16 112");
    // The first extent begins at a whole row of the array: 7 x 64 KiB.
    let begins = scene.sh(GUEST, "pvs --noheadings --nosuffix --units k -o pe_start /dev/md/data");
    assert!((begins.trim().parse::<f64>().unwrap() % 448.0).abs() < 1e-9, "{begins}");
    undo(scene);
}

/// Builds, measures, undoes. Guests have just booted.
pub(crate) fn is_built_measured_and_undone(scene: &Scene) {
    scene.sh(GUEST, "modprobe dm-raid; modprobe raid10; modprobe xfs");
    blockers_are_refused(scene);

    let words = ["--layout", "lvm", "--really", "data", "--time", "2s", "--json"];
    // 1 and 3: far below its drives, or no evidence; an emulated machine may be that slow.
    let built = json(&printed(&apply(scene, SHELVES, &words), &[0, 1, 3]));
    let rows = built["built"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{built}");
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!(number("by_class") > 0.0 && number("by_drive") > 0.0 && number("measured") > 0.0, "{row}");
    }
    // 150 requests a second of each drive, one by one: no faster than that, whatever the machine.
    let reads = rows[0]["by_drive"].as_f64().unwrap();
    assert!(reads < 150.0 * DRIVES as f64 * 1.3, "{reads}");
    // LVM counts the mirrors in; the filesystem does not: 16 blocks of 4 KiB, four of them in a row.
    assert_eq!(scene.sh(GUEST, "cat /sys/block/dm-16/queue/optimal_io_size").trim(), "524288");
    assert_eq!(geometry(scene, "/dev/vg0/data"), "unit = 16 width = 64");
    let mirror = scene.sh(GUEST, "lvs --noheadings -o segtype,sync_percent vg0/data");
    assert_eq!(mirror.split_whitespace().collect::<Vec<_>>(), ["raid10", "100.00"]);
    // A build of other steps under this name is not mixed with it.
    assert!(refusal(scene, SHELVES, &["--layout", "md", "--really", "data"]).contains("with other steps"));
    // Nothing is measured after this: as fast as the machine is.
    for drive in &scene.lab.guest(GUEST).unwrap().drives {
        drive.behave(|behaviour| behaviour.ops_per_s = 0.0).unwrap();
    }
    undo(scene);

    let words = ["--layout", "md", "--really", "data", "--no-measure", "--json"];
    let built = json(&printed(&apply(scene, SHELVES, &words), &[0]));
    assert!(built["built"]["sync_s"].as_f64().is_some(), "{built}");
    assert_eq!(geometry(scene, "/dev/md/data"), "unit = 16 width = 64");
    undo(scene);

    volumes_with_parity_take_what_was_asked(scene);
}
