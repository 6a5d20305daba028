//! Facts `disk.<dev>.failed_legs`, `rebuilding_legs` and `checked_legs`: which legs of an array of md or a
//! volume of LVM have failed, which of them, or of the own side of a replica of DRBD, are being filled with
//! what they have to hold, and which are read from end to end to compare them.
//!
//! In: `/sys/block/<md>/md`, what the device mapper reports of a volume, `/proc/drbd`, debugfs. Out: names of
//! the kernel where it still tells them, places in the array (from 0) where it does not. Nothing for an array
//! that is whole, or that is none.

use linerate_sys::block::Number;
use linerate_sys::device_mapper::{self, DmTarget};
use linerate_sys::root::Root;

/// Most legs of an array.
const LEGS_MAX: i64 = 1024;
/// States of the replicas of DRBD 8.4; 9 has the file too, and no states in it.
const PROC_DRBD: &str = "/proc/drbd";
/// Where DRBD 9 has a file like that for each device and peer (`drbd_debugfs.c` of DRBD 9).
const DEBUG_DRBD: &str = "/sys/kernel/debug/drbd";
/// Most peers of a replica of DRBD 9.
const PEERS_MAX: usize = 32;
/// What an array does while data are looked at or laid out anew, or while it was told to wait: nothing is
/// filled then, whatever the share is.
const NOT_FILLING: [&str; 4] = ["check", "repair", "reshape", "frozen"];
/// What an array does while all its legs are compared.
const CHECKING: [&str; 2] = ["check", "repair"];

/// Legs of a device that are not as they should be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Legs {
    /// Those that failed.
    pub(super) failed: Vec<String>,
    /// Those that are being filled.
    pub(super) rebuilding: Vec<String>,
    /// Those that are compared with each other.
    pub(super) checked: Vec<String>,
}

/// Legs of a device by its name and its folder in `/sys/block`.
pub(super) fn of(root: &Root, name: &str, folder: &str) -> Legs {
    if let Some(minor) = name.strip_prefix("drbd") {
        return of_replica(root, minor, folder);
    }
    if !name.starts_with("dm-") {
        return of_array(root, folder);
    }
    // The device mapper answers by a call, which no record has.
    if !root.is_live() {
        return Legs::default();
    }
    let line = |file: &str| root.line(&format!("{folder}/{file}")).unwrap_or_default();
    // Its mirror lasts as long as the move: what is copied stays whole where it was until then.
    if is_move(&line("dm/name")) {
        return Legs::default();
    }
    of_volume(&line("dev"))
}

/// Legs of an array of md.
fn of_array(root: &Root, folder: &str) -> Legs {
    let array = Array { root, folder };
    Legs { failed: array.failed(), rebuilding: array.rebuilding(), checked: array.checked() }
}

struct Array<'a> {
    root: &'a Root,
    folder: &'a str,
}

impl Array<'_> {
    fn names(&self) -> Vec<String> {
        self.root.list(&format!("{}/md", self.folder)).unwrap_or_default()
    }

    fn drives(&self) -> Vec<String> {
        self.names().iter().filter_map(|name| name.strip_prefix("dev-")).map(str::to_owned).collect()
    }

    fn says(&self, drive: &str, word: &str) -> bool {
        let state = self.root.line(&format!("{}/md/dev-{drive}/state", self.folder)).unwrap_or_default();
        state.split(',').any(|shown| shown.trim() == word)
    }

    fn failed(&self) -> Vec<String> {
        let count = |file: &str| self.root.number(&format!("{}/md/{file}", self.folder)).unwrap_or(0);
        if count("degraded") <= 0 {
            return Vec::new();
        }
        let mut faulty = self.drives();
        faulty.retain(|drive| self.says(drive, "faulty"));
        if !faulty.is_empty() {
            return faulty;
        }
        // Already removed: its place is empty.
        let (names, places) = (self.names(), 0..count("raid_disks").clamp(0, LEGS_MAX));
        places.filter(|place| !names.contains(&format!("rd{place}"))).map(|place| place.to_string()).collect()
    }

    /// `recover` fills single legs, `resync` brings all of them in line with each other (`admin-guide/md.rst`
    /// of the kernel).
    fn rebuilding(&self) -> Vec<String> {
        match self.action().as_str() {
            "resync" => self.members(),
            "recover" => self.members().into_iter().filter(|drive| !self.says(drive, "in_sync")).collect(),
            _ => Vec::new(),
        }
    }

    fn checked(&self) -> Vec<String> {
        if CHECKING.contains(&self.action().as_str()) { self.members() } else { Vec::new() }
    }

    fn action(&self) -> String {
        self.root.line(&format!("{}/md/sync_action", self.folder)).unwrap_or_default()
    }

    /// Drives with a slot that have not failed: a spare without one waits for its turn.
    fn members(&self) -> Vec<String> {
        let mut drives = self.drives();
        drives.retain(|drive| {
            let has_slot = self.root.number(&format!("{}/md/dev-{drive}/slot", self.folder)).is_ok();
            has_slot && !self.says(drive, "faulty")
        });
        drives
    }
}

/// Whether a volume of the device mapper is the one that `pvmove` copies with: `vg0-pvmove0`. LVM lets no
/// volume of people begin so.
fn is_move(name: &str) -> bool {
    // A doubled dash is one within a name.
    let volume = name.rsplit_once('-').filter(|(group, _)| !group.ends_with('-')).map(|(_, volume)| volume);
    let number = volume.and_then(|volume| volume.strip_prefix("pvmove"));
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Legs of a volume by its number; nothing where the device mapper does not report it.
fn of_volume(number: &str) -> Legs {
    let parsed = number.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let Some((major, minor)) = parsed else { return Legs::default() };
    device_mapper::status(Number { major, minor }).map(|targets| of_targets(&targets)).unwrap_or_default()
}

/// Places of legs that are not as they should be.
fn of_targets(targets: &[DmTarget]) -> Legs {
    let mut legs = Legs::default();
    for shown in targets.iter().filter_map(Said::of) {
        legs.failed.extend(shown.places(|_, sign| shown.is_dead(sign)));
        legs.rebuilding.extend(shown.rebuilding());
        legs.checked.extend(shown.checked());
    }
    for list in [&mut legs.failed, &mut legs.rebuilding, &mut legs.checked] {
        list.dedup();
    }
    legs
}

/// What a target says of its legs (`dm-raid.rst` and `dm-raid1.c` of the kernel).
struct Said<'a> {
    is_mirror: bool,
    /// One for each leg.
    signs: &'a str,
    /// `133/1188`: so much of so much is in sync.
    synced: &'a str,
    /// What is done about it; nothing where it is not told.
    action: &'a str,
}

impl<'a> Said<'a> {
    fn of(target: &'a DmTarget) -> Option<Self> {
        let words: Vec<&str> = target.state.split_ascii_whitespace().collect();
        let word = |at: Option<usize>| at.and_then(|at| words.get(at)).copied().unwrap_or_default();
        match target.kind.as_str() {
            // raid10 36 AAAADAAA… 3760128/3760128 idle 0 0 -
            "raid" => {
                let (signs, synced, action) = (word(Some(2)), word(Some(3)), word(Some(4)));
                Some(Self { is_mirror: false, signs, synced, action })
            }
            // 2 253:0 253:1 133/1188 1 AA 1 core
            "mirror" => {
                let legs: Option<usize> = word(Some(0)).parse().ok();
                let behind = |more: usize| word(legs.and_then(|legs| legs.checked_add(more)));
                Some(Self { is_mirror: true, signs: behind(3), synced: behind(1), action: "" })
            }
            _ => None,
        }
    }

    /// `a` is alive and not yet in sync; of a mirror all but `A` have failed in some way.
    fn is_dead(&self, sign: char) -> bool {
        if self.is_mirror { sign != 'A' } else { sign == 'D' }
    }

    fn places(&self, is_wanted: impl Fn(usize, char) -> bool) -> Vec<String> {
        let legs = self.signs.chars().enumerate();
        legs.filter(|(at, sign)| is_wanted(*at, *sign)).map(|(at, _)| at.to_string()).collect()
    }

    /// All legs that live, while they are compared.
    fn checked(&self) -> Vec<String> {
        let is_checked = CHECKING.contains(&self.action);
        self.places(|_, sign| is_checked && !self.is_dead(sign))
    }

    /// Legs that are not in sync while not all is; older kernels do not say which, and a mirror is copied
    /// from its first one.
    fn rebuilding(&self) -> Vec<String> {
        let count = |text: &str| text.parse::<u64>().ok();
        let shares = self.synced.split_once('/').and_then(|(done, all)| count(done).zip(count(all)));
        if shares.is_none_or(|(done, all)| done >= all) || NOT_FILLING.contains(&self.action) {
            return Vec::new();
        }
        let behind = self.places(|_, sign| !self.is_mirror && sign == 'a');
        if !behind.is_empty() {
            return behind;
        }
        let first = usize::from(self.is_mirror);
        self.places(|at, sign| at >= first && sign == 'A')
    }
}

/// The devices of the own side of a replica that its peer fills; `minor` is its number.
fn of_replica(root: &Root, minor: &str, folder: &str) -> Legs {
    if minor.is_empty() || !minor.bytes().all(|byte| byte.is_ascii_digit()) {
        return Legs::default();
    }
    // The files also tell who built the module, and names of peers: a record keeps the answer alone.
    let ask = || Ok(is_filled(&Root::live(), minor));
    if !root.answer(&format!("drbd{minor}_filled"), ask).unwrap_or(false) {
        return Legs::default();
    }
    Legs { rebuilding: root.list(&format!("{folder}/slaves")).unwrap_or_default(), ..Legs::default() }
}

/// Whether a peer fills the own side of a device.
fn is_filled(root: &Root, minor: &str) -> bool {
    let says = |path: &str| root.read(path).is_ok_and(|text| says_filled(&text, minor));
    says(PROC_DRBD) || towards_peers(root, minor).iter().any(|path| says(path))
}

/// The files of DRBD 9 with the states of a device, one for each peer.
fn towards_peers(root: &Root, minor: &str) -> Vec<String> {
    // It points to `../resources/r0/volumes/0`.
    let Ok(target) = root.link(&format!("{DEBUG_DRBD}/minors/{minor}")) else { return Vec::new() };
    let mut parts = target.rsplit('/');
    let (Some(volume), Some("volumes"), Some(resource)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let peers = format!("{DEBUG_DRBD}/resources/{resource}/connections");
    let names = root.list(&peers).unwrap_or_default();
    names.iter().take(PEERS_MAX).map(|peer| format!("{peers}/{peer}/{volume}/proc_drbd")).collect()
}

/// Whether one of the lines is ` 0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----` of
/// this device.
fn says_filled(text: &str, minor: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start().split_once(": cs:").is_some_and(|(number, state)| {
            number == minor && state.split_ascii_whitespace().next() == Some("SyncTarget")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, state: &str) -> DmTarget {
        DmTarget { kind: kind.into(), state: state.into() }
    }

    fn failed(kind: &str, state: &str) -> Vec<String> {
        of_targets(&[target(kind, state)]).failed
    }

    fn rebuilding(kind: &str, state: &str) -> Vec<String> {
        of_targets(&[target(kind, state)]).rebuilding
    }

    /// As real volumes said it: 34 and 36 drives, one of them pulled; a mirror that is whole.
    #[test]
    fn dead_legs_are_named_by_their_place() {
        let of_34 = "raid10 34 AADAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA 3760128/3760128 idle 0 0 -";
        assert_eq!(failed("raid", of_34), ["2"]);
        assert_eq!(failed("raid", "raid10 4 aAAA 0/100 resync 0 0 -"), [""; 0]);
        assert_eq!(failed("mirror", "2 253:0 253:1 133/1188 1 AA 1 core"), [""; 0]);
        assert_eq!(failed("mirror", "2 253:0 253:1 133/1188 1 AD 1 core"), ["1"]);
        for odd in ["", "raid10", "raid10 x", "18446744073709551615 a", "raid1 2 aa 1/x", "1 253:0 /"] {
            let all = ["raid", "mirror"].map(|kind| target(kind, odd));
            assert_eq!(of_targets(&all).rebuilding, [""; 0], "{odd}");
        }
        for odd in ["", "raid10", "raid10 x", "18446744073709551615 a"] {
            let all = [target("raid", odd), target("mirror", odd), target("linear", "D D D")];
            assert_eq!(of_targets(&all), Legs::default(), "{odd}");
        }
        for number in ["", "a:b", "1:250"] {
            assert_eq!(of_volume(number), Legs::default());
        }
    }

    #[test]
    fn legs_of_a_volume_are_being_filled_until_all_is_in_sync() {
        // One that came back, the first synchronisation, and the same as older kernels tell it.
        assert_eq!(rebuilding("raid", "raid10 4 AAaA 50/100 recover 0 0 -"), ["2"]);
        assert_eq!(rebuilding("raid", "raid10 4 aaaa 50/100 resync 0 0 -"), ["0", "1", "2", "3"]);
        assert_eq!(rebuilding("raid", "raid1 3 ADA 50/100"), ["0", "2"]);
        assert_eq!(rebuilding("mirror", "2 253:0 253:1 133/1188 1 AA 1 core"), ["1"]);
        assert_eq!(rebuilding("mirror", "2 253:0 253:1 1188/1188 1 AA 1 core"), [""; 0]);
        for quiet in ["100/100 idle", "50/100 check", "50/100 repair", "50/100 reshape", "50/100 frozen"] {
            let state = format!("raid10 4 AAAA {quiet} 0 0 -");
            assert_eq!(rebuilding("raid", &state), [""; 0], "{quiet}");
            let checked = of_targets(&[target("raid", &state)]).checked.len();
            assert_eq!(checked, if quiet.ends_with("check") || quiet.ends_with("repair") { 4 } else { 0 });
        }
        assert_eq!(of_targets(&[target("raid", "raid1 2 AD 50/100 check 0 0 -")]).checked, ["0"]);
    }

    /// While `pvmove` runs its target is a mirror that is not in sync: `2 253:0 253:1 133/1188 1 AA 1 core`.
    #[test]
    fn the_mirror_of_a_move_has_no_legs() {
        for name in ["vg0-pvmove0", "vg0-pvmove12", "my--group-pvmove1"] {
            assert!(is_move(name), "{name}");
        }
        for name in ["", "vg0-home", "vg0-pvmove", "pvmove0", "pvmove0-home", "vg0-my--pvmove0"] {
            assert!(!is_move(name), "{name}");
        }
    }

    /// Puts a file of an array into a tree.
    fn put(tree: &tempfile::TempDir, path: &str, text: &str) {
        let path = tree.path().join("sys/block/md0/md").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn an_array_names_its_faulty_drive_and_later_its_empty_place() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(&tree, path, text);
        let legs = || of(&Root::recorded(tree.path()), "md0", "/sys/block/md0").failed;
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

    #[test]
    fn an_array_names_the_drive_that_takes_the_place_of_another() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(&tree, path, text);
        let legs = || of(&Root::recorded(tree.path()), "md0", "/sys/block/md0");
        let drives = [("sda", "in_sync", "0"), ("sdb", "spare", "1"), ("sdc", "spare", "none")];
        for (drive, state, slot) in drives {
            put(&format!("dev-{drive}/state"), &format!("{state}\n"));
            put(&format!("dev-{drive}/slot"), &format!("{slot}\n"));
        }
        let wanted: [(&str, &[&str]); 4] =
            [("idle", &[]), ("check", &[]), ("recover", &["sdb"]), ("resync", &["sda", "sdb"])];
        for (action, rebuilding) in wanted {
            put("sync_action", &format!("{action}\n"));
            assert_eq!(legs().rebuilding, rebuilding, "{action}");
            let checked: &[&str] = if action == "check" { &["sda", "sdb"] } else { &[] };
            assert_eq!(legs().checked, checked, "{action}");
        }
    }

    /// Three replicas in the form of 8.4; 9 prints the line of the version alone.
    const STATES: &str = "version: 8.4.11 (api:1/proto:86-101)\n \
        0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n    ns:0 nr:1828 dw:1828 dr:0 al:8 bm:0 lo:0 \
        pe:0 ua:0 ap:0 ep:1 wo:f oos:407720\n 1: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----\n\
        11: cs:PausedSyncT ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n";

    #[test]
    fn only_the_side_that_gets_data_is_being_filled() {
        let filled = |text: &str| ["0", "1", "11", "2"].map(|minor| says_filled(text, minor));
        assert_eq!(filled(STATES), [true, false, false, false]);
        assert_eq!(filled(STATES.split(" 0:").next().unwrap()), [false; 4]);
        assert_eq!(filled(""), [false; 4]);
        let tree = tempfile::tempdir().unwrap();
        let legs = |name| of(&Root::recorded(tree.path()), name, "/sys/block/drbd0").rebuilding;
        std::fs::create_dir_all(tree.path().join("sys/block/drbd0/slaves/sdb")).unwrap();
        assert_eq!(legs("drbd0"), [""; 0], "a record without states");
        std::fs::create_dir_all(tree.path().join("linerate")).unwrap();
        std::fs::write(tree.path().join("linerate/drbd0_filled.json"), "true").unwrap();
        assert_eq!((legs("drbd0"), legs("drbd10")), (vec!["sdb".to_owned()], Vec::new()));
        assert_eq!(legs("drbd../0"), [""; 0]);
    }

    /// Three hosts: one peer has all, the other one is brought up to date by it too.
    #[test]
    fn drbd_9_tells_it_for_each_peer() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/drbd", "version: 9.2.8 (api:2/proto:86-122)\n");
        let links = "{\"links\": {\"/sys/kernel/debug/drbd/minors/7\": \"../resources/home/volumes/2\", \
                     \"/sys/kernel/debug/drbd/minors/8\": \"../resources\"}}";
        put("linerate/files.json", links);
        let state = |peer: &str, state: &str| {
            let path = format!("sys/kernel/debug/drbd/resources/home/connections/{peer}/2/proc_drbd");
            put(&path, &format!(" 7: cs:{state} ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----\n"));
        };
        let filled = || {
            let root = Root::recorded(tree.path());
            ["7", "8", "9"].map(|minor| is_filled(&root, minor))
        };
        state("store-2", "Established");
        state("store-3", "PausedSyncT");
        assert_eq!(filled(), [false; 3]);
        state("store-3", "SyncTarget");
        assert_eq!(filled(), [true, false, false]);
    }
}
