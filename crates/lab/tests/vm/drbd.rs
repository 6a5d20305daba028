//! A replica that was brought up with the distribution's own tools, and whose primary is killed:
//! `linerate drbd` takes over on the other side, and the dead one comes back as what it is.

use linerate_lab::vm::disk::Keep;

use crate::{REPLICA, Scene, printed, wait_for};

const RESOURCE: &str = "resource r0 { device /dev/drbd0; meta-disk internal; disk /dev/sda; \
    disk { c-min-rate 64M; c-max-rate 512M; resync-rate 256M; c-plan-ahead 0; } \
    net { protocol C; ping-int 2; timeout 20; ping-timeout 50; verify-alg crc32c; } \
    on one { address 10.79.0.1:7788; } on two { address 10.79.0.2:7788; } }";
const BOTH: [&str; 2] = ["one", "two"];

/// Connection, roles and disks, as `/proc/drbd` has them in the line of minor 0.
fn state(scene: &Scene, guest: &str) -> String {
    let text = scene.exec(guest, &["cat", "/proc/drbd"]);
    text.lines().find(|line| line.trim_start().starts_with("0:")).unwrap_or_default().trim().to_owned()
}

fn wait_state(scene: &Scene, guest: &str, words: &[&str]) {
    let what = format!("{guest}: {}", words.join(" "));
    wait_for(&what, || state(scene, guest), |line| words.iter().all(|w| line.contains(w)));
}

/// The resource on a guest that has just booted.
fn bring_up(scene: &Scene, guest: &str) {
    scene.sh(guest, &format!("echo '{RESOURCE}' >/etc/drbd.d/r0.res; modprobe drbd"));
}

#[test]
fn a_replica_survives_the_death_of_its_primary() {
    let name = "a_replica_survives_the_death_of_its_primary";
    let Some(mut scene) = Scene::of(name, REPLICA) else { return };
    for guest in BOTH {
        bring_up(&scene, guest);
        scene.sh(guest, "drbdadm create-md --force r0; drbdadm up r0");
    }
    wait_state(&scene, "one", &["cs:Connected", "ds:Inconsistent/Inconsistent"]);
    assert!(scene.lab.exec("two", &["drbdadm", "primary", "r0"]).is_err(), "there are no good data yet");
    scene.exec("one", &["drbdadm", "primary", "--force", "r0"]);
    wait_state(&scene, "one", &["cs:Connected", "ds:UpToDate/UpToDate"]);
    scene
        .sh("one", "modprobe ext4; mkfs.ext4 -q /dev/drbd0; mount /dev/drbd0 /mnt; echo first >/mnt/a; sync");

    // The primary dies; the other one has everything that was synced.
    scene.lab.power_cut("one", Keep::All, 1).unwrap();
    wait_state(&scene, "two", &["cs:WFConnection"]);
    let inventory = scene.inventory();
    let takes_over =
        ["drbd", "failover", "r0", "--to", "two", "--primary-is-dead", "--really", "two", "-i", &inventory];
    printed(&scene.linerate(&takes_over), &[0]);
    assert_eq!(scene.sh("two", "modprobe ext4; mount /dev/drbd0 /mnt; cat /mnt/a"), "first\n");
    scene.lab.boot("one").unwrap();
    bring_up(&scene, "one");
    scene.exec("one", &["drbdadm", "up", "r0"]);
    wait_state(&scene, "one", &["cs:Connected", "ro:Secondary/Primary", "ds:UpToDate/UpToDate"]);
}
