//! Kills in `disk plan --apply` and `disk undo` of a guest: files of a volume beside the drives, in use all
//! the time, are there after each, the same command goes on to the end, and afterwards every byte of the
//! drives is zero again.

use std::fs::File;
use std::io::Read as _;
use std::time::Instant;

use super::At::{Before, Behind, Between, While, Writing};
use super::{Case, Killing, Point, cases, point};
use crate::Scene;

const LAB: &str = "name = \"kills-volume\"
[[guest]]
name = \"one\"
[[guest.drives]]
name = \"keep\"
size_mib = 48
[[guest.drives]]
name = \"taken\"
size_mib = 16
[[guest.drives]]
name = \"spare\"
count = 4
size_mib = 352
";
const SPARE: [&str; 4] = ["spare1", "spare2", "spare3", "spare4"];
/// What is compared at a time, bytes.
const PIECE: usize = 64 << 10;
const PROGRAMS: [&str; 7] = [
    "/usr/sbin/pvcreate",
    "/usr/sbin/vgcreate",
    "/usr/sbin/lvcreate",
    "/usr/sbin/mkfs.xfs",
    "/usr/sbin/pvremove",
    "/usr/sbin/vgremove",
    "/usr/sbin/lvremove",
];

const APPLY: &[Point] = &[
    point("one", Before("pvcreate*")),
    point("one", Writing(None, 3)),
    point("one", Behind("pvcreate*")),
    point("one", Between("pvcreate*")),
    point("one", Before("vgcreate*")),
    point("one", Behind("vgcreate*")),
    point("one", Before("lvcreate*")),
    point("one", Writing(Some("vgcreate*"), 8)),
    point("one", Behind("lvcreate*")),
    point("one", While("fills")),
    point("one", Before("mkfs.xfs*")),
    point("one", Behind("mkfs.xfs*")),
];

const UNDO: &[Point] = &[
    point("one", Writing(None, 3)),
    point("one", Before("lvremove*")),
    point("one", Writing(Some("lvremove*"), 2)),
    point("one", Behind("lvremove*")),
    point("one", Before("vgremove*")),
    point("one", Behind("vgremove*")),
    point("one", Before("pvremove*")),
    point("one", Behind("pvremove*")),
    point("one", Writing(Some("pvremove*"), 1)),
    point("one", Writing(Some("pvremove*"), 3)),
];

const APPLY_WORDS: [&str; 15] = [
    "disk",
    "plan",
    "--raid10",
    "--shelf",
    "sdc,sdd",
    "--shelf",
    "sde,sdf",
    "--layout",
    "lvm",
    "--host",
    "one",
    "--really",
    "data",
    "--no-measure",
    "--apply",
];
const UNDO_WORDS: [&str; 6] = ["disk", "undo", "data", "--really", "data", "one"];

/// A guest with files that have to survive.
struct Volume {
    killing: Killing,
    files: String,
    taken: Vec<u8>,
}

impl Volume {
    fn new(scene: Scene) -> Self {
        scene.sh(
            "one",
            "modprobe dm-raid; modprobe raid10; modprobe xfs; modprobe ext4; \
             pvcreate -q /dev/sda; vgcreate -q keep /dev/sda; lvcreate -q -n files -l 100%FREE keep; \
             mkfs.ext4 -q /dev/keep/files; mkdir /keep; mount /dev/keep/files /keep; \
             for n in 1 2 3 4; do head -c 3000000 /dev/urandom >/keep/file$n; done; sync; \
             mkfs.ext4 -q /dev/sdb; mount /dev/sdb /mnt; head -c 3000000 /dev/urandom >/mnt/file; umount /mnt",
        );
        let mut volume = Self {
            killing: Killing::new(scene, &[("one", &PROGRAMS)], &SPARE),
            files: String::new(),
            taken: Vec::new(),
        };
        volume.files = volume.kept();
        volume.taken = volume.content("taken1");
        volume
    }

    /// Checksums of the files of a volume that is in use, read from its drive.
    fn kept(&self) -> String {
        self.killing.sh("one", "sync; echo 3 >/proc/sys/vm/drop_caches; cd /keep; sha256sum file*")
    }

    fn content(&self, drive: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let path = self.killing.scene.lab.folder().join("one").join(format!("{drive}.drive"));
        File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn nothing_is_lost(&self, what: &str) {
        assert_eq!(self.kept(), self.files, "{what}: files of the volume beside are others");
        assert!(self.content("taken1") == self.taken, "{what}: a drive that no command was given is another");
    }

    fn builds(&self) -> String {
        self.killing.good("builds", &["disk", "builds", "one"], &[0]).words
    }

    /// Takes all of it back by the command that the list of builds names; no byte is left on the drives.
    fn undo(&self, what: &str) {
        let builds = self.builds();
        if let Some(command) = builds.lines().find_map(|line| line.trim().strip_prefix("linerate ")) {
            let words: Vec<&str> = command.split_whitespace().chain(["--really", "data"]).collect();
            self.killing.good(what, &words, &[0]);
        }
        assert!(self.builds().contains("nothing that was built"), "{what}");
        assert_eq!(self.killing.sh("one", "lvs --noheadings -o lv_full_name").trim(), "keep/files", "{what}");
        let zeros = vec![0; PIECE];
        for drive in SPARE {
            let content = self.content(drive);
            let left: Vec<usize> = content
                .chunks(PIECE)
                .enumerate()
                .filter(|(_, piece)| **piece != zeros[..piece.len()])
                .map(|(number, _)| number * PIECE)
                .collect();
            assert!(left.is_empty(), "{what}: {drive} holds something still in the pieces at {left:?}");
        }
    }

    /// Copying is slow where a kill has to meet it.
    fn copies(&self, kib_per_s: u32) {
        for limit in ["min", "max"] {
            self.killing.sh("one", &format!("echo {kib_per_s} >/proc/sys/dev/raid/speed_limit_{limit}"));
        }
    }

    fn built(&self, what: &str) {
        self.killing.good(what, &[&APPLY_WORDS[..], &["--no-wait"]].concat(), &[0]);
    }

    /// Kills in the building; then the same command goes on, or everything is undone at once.
    fn is_built(&self) {
        for (number, (point, victim)) in cases(APPLY).into_iter().enumerate() {
            let begun = Instant::now();
            let what = format!("apply, {victim:?} killed {:?}", point.at);
            // Where the copying is met it is waited for.
            let more: &[&str] = if matches!(point.at, While(_)) { &[] } else { &["--no-wait"] };
            let words = [&APPLY_WORDS[..], more].concat();
            self.copies(if more.is_empty() { 500 } else { 200_000 });
            self.killing.kill(Case { what: &what, words: &words, point, victim, next: &words });
            self.copies(200_000);
            let goes_on = number % 2 == 0;
            if goes_on {
                // 4: the rest of a killed step blocked it, and everything was undone. The next one starts
                // over.
                if self.killing.good(&what, &words, &[0, 4]).code == Some(4) {
                    self.killing.good(&what, &words, &[0]);
                }
                self.killing.sh("one", "xfs_repair -n /dev/vg0/data >/dev/null 2>&1");
            }
            self.undo(&what);
            self.nothing_is_lost(&what);
            let then = if goes_on { "resumed and undone" } else { "undone" };
            println!("{what}: files are there, {then} ({:.0} s)", begun.elapsed().as_secs_f64());
        }
    }

    fn is_undone(&self) {
        for (point, victim) in cases(UNDO) {
            let begun = Instant::now();
            let what = format!("undo, {victim:?} killed {:?}", point.at);
            self.built(&what);
            self.killing.kill(Case { what: &what, words: &UNDO_WORDS, point, victim, next: &UNDO_WORDS });
            self.undo(&what);
            self.nothing_is_lost(&what);
            println!("{what}: files are there, undone ({:.0} s)", begun.elapsed().as_secs_f64());
        }
    }
}

#[test]
fn no_kill_of_a_command_of_a_volume_loses_a_file() {
    let Some(scene) = Scene::of("no_kill_of_a_command_of_a_volume_loses_a_file", LAB) else { return };
    let volume = Volume::new(scene);
    volume.is_built();
    volume.is_undone();
}
