//! Kills in `drbd up`, `drbd failover` and `drbd undo` of two guests: the files of the side that is copied,
//! and of the primary, are there after each, and so are those of a filesystem beside it.

use std::fs::File;
use std::io::Read as _;
use std::time::Instant;

use super::At::{Before, Behind, Between, While, Within};
use super::{Case, Ended, Killing, Point, Victim, cases, point};
use crate::Scene;

const LAB: &str = "name = \"kills-replica\"
[[guest]]
name = \"one\"
[[guest.drives]]
name = \"data\"
size_mib = 32
[[guest.drives]]
name = \"keep\"
size_mib = 16
[[guest]]
name = \"two\"
[[guest.drives]]
name = \"data\"
size_mib = 32
[[guest.drives]]
name = \"keep\"
size_mib = 16
";
const BOTH: [&str; 2] = ["one", "two"];
const PROGRAMS: [&str; 4] =
    ["/usr/sbin/drbdadm", "/usr/sbin/drbdmeta", "/usr/sbin/drbdsetup", "/usr/lib/drbd/drbdsetup-84"];

const UP: &[Point] = &[
    point("one", Before("drbdadm --version")),
    point("one", Before("drbdadm create-md*")),
    point("one", Within("drbdmeta*create-md*")),
    point("one", Behind("drbdadm create-md*")),
    point("one", Between("drbdadm create-md*")),
    point("one", Within("drbdsetup-84*attach*")),
    point("one", Behind("drbdadm up*")),
    point("two", Before("drbdadm create-md*")),
    point("two", Behind("drbdadm up*")),
    point("one", Behind("drbdadm primary --force*")),
    point("one", While("syncs")),
];

/// Of a failover from `one`; failing back swaps the names.
const FAILOVER: &[Point] = &[
    point("one", Before("drbdsetup events2*")),
    point("one", Before("drbdadm secondary*")),
    point("one", Within("drbdsetup-84*secondary*")),
    point("one", Behind("drbdsetup-84*secondary*")),
    point("one", Behind("drbdadm secondary*")),
    point("one", Between("drbdadm secondary*")),
    point("two", Before("drbdadm primary*")),
    point("two", Within("drbdsetup-84*primary*")),
    point("two", Behind("drbdsetup-84*primary*")),
    point("two", Behind("drbdadm primary*")),
];

const UNDO: &[Point] = &[
    point("two", Before("drbdadm down*")),
    point("two", Within("drbdsetup-84*down*")),
    point("two", Behind("drbdadm down*")),
    point("two", Before("drbdadm*wipe-md*")),
    point("two", Within("drbdmeta*wipe-md*")),
    point("two", Behind("drbdadm*wipe-md*")),
    point("one", Before("drbdadm secondary*")),
    point("one", Behind("drbdadm secondary*")),
    point("one", Behind("drbdadm down*")),
    point("one", Behind("drbdadm*wipe-md*")),
];

const UP_WORDS: [&str; 8] = ["drbd", "up", "r0", "--disk", "/dev/sda", "--from", "one", "--really"];
const UNDO_WORDS: [&str; 7] = ["drbd", "undo", "r0", "--really", "r0", "one", "two"];

/// Guests with files that have to survive.
struct Replica {
    killing: Killing,
    /// Checksums of what is on the side that is copied.
    files: String,
    /// Of the drives beside it.
    kept: Vec<Vec<u8>>,
}

impl Replica {
    fn new(scene: Scene) -> Self {
        let gates: [(&str, &[&str]); 2] = [("one", &PROGRAMS), ("two", &PROGRAMS)];
        for guest in BOTH {
            scene.sh(
                guest,
                "modprobe drbd; modprobe ext4; mkfs.ext4 -q /dev/sdb; mount /dev/sdb /mnt; \
                 head -c 3000000 /dev/urandom >/mnt/kept; umount /mnt",
            );
        }
        // Leaves space for metadata behind it.
        scene.sh(
            "one",
            "mkfs.ext4 -q /dev/sda 24M; mount /dev/sda /mnt; \
             for n in 1 2 3 4; do head -c 2000000 /dev/urandom >/mnt/file$n; done; umount /mnt",
        );
        let killing = Killing::new(scene, &gates, &[]);
        let mut replica = Self { killing, files: String::new(), kept: Vec::new() };
        replica.kept = replica.beside();
        replica.files = replica.files_on("one", "/dev/sda");
        replica
    }

    /// The drives that no command was given, as they are.
    fn beside(&self) -> Vec<Vec<u8>> {
        let content = |guest: &str| {
            let mut bytes = Vec::new();
            let path = self.killing.scene.lab.folder().join(guest).join("keep1.drive");
            File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        BOTH.map(content).to_vec()
    }

    fn files_on(&self, guest: &str, device: &str) -> String {
        self.killing
            .sh(guest, &format!("mount -o ro {device} /mnt; cd /mnt; sha256sum file*; cd /; umount /mnt"))
    }

    /// Nothing was lost: neither here nor beside it.
    fn nothing_is_lost(&self, what: &str, guest: &str, device: &str) {
        assert_eq!(
            self.files_on(guest, device),
            self.files,
            "{what}: files of {device} on {guest} are others"
        );
        assert!(self.beside() == self.kept, "{what}: a drive that no command was given is another");
    }

    /// An open journal of a host would block the next command.
    fn builds(&self) -> String {
        self.killing.good("builds", &["disk", "builds", "one", "two"], &[0]).words
    }

    /// The command that the program itself names: in its last hint where it lived, else in the list of what
    /// is open.
    fn named(&self, ended: &Ended) -> Option<Vec<String>> {
        ended.hinted().filter(|words| words.first().is_some_and(|word| word == "undo")).or_else(|| {
            let builds = self.builds();
            let command = builds.lines().find_map(|line| line.trim().strip_prefix("linerate "));
            command.map(|command| command.split_whitespace().map(str::to_owned).collect())
        })
    }

    /// Runs the suggested commands until nothing is left of what was begun.
    fn undo(&self, what: &str, ended: &Ended) {
        let is_open = !self.builds().contains("nothing that was built");
        let words = self.named(ended).filter(|_| is_open);
        assert_eq!(words.is_some(), is_open, "{what}: no command is named: {}", ended.words);
        if let Some(words) = words {
            let words: Vec<&str> = words.iter().map(String::as_str).chain(["--really", "r0"]).collect();
            self.killing.good(what, &words, &[0]);
        }
        for guest in BOTH {
            let left = "ls /etc/drbd.d | grep r0 || true; drbdsetup status r0 2>&1 | grep role || true";
            assert_eq!(self.killing.sh(guest, left), "", "{what}: {guest}");
        }
        assert!(self.builds().contains("nothing that was built"), "{what}");
        // Copied data stays there, as reported; the test zeroes it.
        self.killing.sh("two", "dd if=/dev/zero of=/dev/sda bs=1M 2>/dev/null || true; sync");
    }

    /// A replica from nothing to both sides alike.
    fn built(&self, what: &str) {
        self.killing.good(what, &[&UP_WORDS[..], &["r0", "one", "two"]].concat(), &[0]);
    }

    /// Kills in a command that builds or undoes; then everything is undone.
    fn then_undone(&self, command: &str, words: &[&str], points: &'static [Point]) {
        for (point, victim) in cases(points) {
            let begun = Instant::now();
            let what = format!("{command}, {victim:?} killed {:?} on {}", point.at, point.guest);
            if command == "undo" {
                self.built(&what);
            }
            let ended = self.killing.kill(Case { what: &what, words, point, victim, next: &UNDO_WORDS });
            self.undo(&what, &ended);
            self.nothing_is_lost(&what, "one", "/dev/sda");
            println!("{what}: files are there, undone ({:.0} s)", begun.elapsed().as_secs_f64());
        }
    }

    /// Hands over and back with another file each time, and is killed meanwhile.
    fn handed_over(&mut self) {
        let cases = cases(FAILOVER);
        let is_over = cases.len() % 2 == 1;
        for (number, (mut point, victim)) in cases.into_iter().enumerate() {
            let begun = Instant::now();
            let (from, to) = if number % 2 == 0 { ("one", "two") } else { ("two", "one") };
            point.guest = if point.guest == "one" { from } else { to };
            let what = format!("failover, {victim:?} killed {:?} on {}", point.at, point.guest);
            let write = format!(
                "mount /dev/drbd0 /mnt; head -c 100000 /dev/urandom >/mnt/file-{number}; umount /mnt"
            );
            self.killing.sh(from, &write);
            self.files = self.files_on(from, "/dev/drbd0");
            let words = ["drbd", "failover", "r0", "--to", to, "one", "two"];
            let ended = self.killing.kill(Case { what: &what, words: &words, point, victim, next: &words });
            if victim == Victim::Node {
                let status = ["drbd", "status", "one", "two"];
                assert_eq!(
                    ended.hinted().as_deref(),
                    Some(&status.map(str::to_owned)[..]),
                    "{what}: {}",
                    ended.words
                );
                self.killing.good(&what, &status, &[0, 1]);
            }
            self.killing.good(&what, &words, &[0]);
            let role = self.killing.sh(to, "drbdadm role r0; drbdadm dstate r0");
            assert_eq!(role, "Primary/Secondary\nUpToDate/UpToDate\n", "{what}");
            self.nothing_is_lost(&what, to, "/dev/drbd0");
            let left = self.builds();
            assert!(left.lines().count() == 4 && !left.contains("failover"), "{what}: {left}");
            println!(
                "{what}: files are there, done by the same command ({:.0} s)",
                begun.elapsed().as_secs_f64()
            );
        }
        if is_over {
            self.killing.good("back", &["drbd", "failover", "r0", "--to", "one", "one", "two"], &[0]);
        }
    }
}

#[test]
fn no_kill_of_a_command_of_a_replica_loses_a_file() {
    let Some(scene) = Scene::of("no_kill_of_a_command_of_a_replica_loses_a_file", LAB) else { return };
    let mut replica = Replica::new(scene);
    let up = [&UP_WORDS[..], &["r0", "--resync-max", "1", "one", "two"]].concat();
    replica.then_undone("up", &up, UP);
    replica.then_undone("undo", &UNDO_WORDS, UNDO);
    replica.built("up");
    replica.handed_over();
    replica.killing.good("undo", &UNDO_WORDS, &[0]);
    assert!(replica.builds().contains("nothing that was built"));
}
