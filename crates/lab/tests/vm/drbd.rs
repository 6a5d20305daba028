//! The two-guest line of DRBD with the distribution's own tools: from nothing to a sync, a cut link, a split brain and its repair, a
//! killed primary. Where our own commands are to do the same, this is what they are measured against.

use linerate_lab::vm::disk::Keep;
use linerate_lab::vm::switch::Way;

use crate::{Scene, wait_for};

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
fn drbd_syncs_splits_heals_and_survives_the_death_of_its_primary() {
    let name = "drbd_syncs_splits_heals_and_survives_the_death_of_its_primary";
    let Some(mut scene) = Scene::new(name, "vm-pair") else { return };
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

    // Nobody hears the other any more, and both become primary: the trap that makes split brains.
    let link = scene.lab.link("two").unwrap().clone();
    link.update(Way::Both, |s| s.loss_ppm = 1_000_000);
    wait_state(&scene, "one", &["cs:WFConnection"]);
    scene.sh("one", "echo second >/mnt/b; sync");
    scene.sh("two", "modprobe ext4; drbdadm primary r0; mount /dev/drbd0 /mnt; echo third >/mnt/c; sync");
    link.update(Way::Both, |s| s.loss_ppm = 0);
    wait_state(&scene, "one", &["cs:StandAlone"]);
    assert!(scene.exec("one", &["dmesg"]).contains("Split-Brain detected"));

    // The victim gives its data up.
    scene.sh("two", "umount /mnt; drbdadm secondary r0; drbdadm disconnect r0 || true; drbdadm connect --discard-my-data r0");
    scene.sh("one", "drbdadm connect r0 || true");
    wait_state(&scene, "two", &["cs:Connected", "ro:Secondary/Primary", "ds:UpToDate/UpToDate"]);

    // The primary dies; the other one has everything that was synced.
    scene.lab.power_cut("one", Keep::All, 1).unwrap();
    wait_state(&scene, "two", &["cs:WFConnection"]);
    assert_eq!(
        scene.sh("two", "drbdadm primary r0; mount /dev/drbd0 /mnt; cat /mnt/a /mnt/b; ls /mnt/c || true"),
        "first\nsecond\n"
    );
    scene.lab.boot("one").unwrap();
    bring_up(&scene, "one");
    scene.exec("one", &["drbdadm", "up", "r0"]);
    wait_state(&scene, "one", &["cs:Connected", "ro:Secondary/Primary", "ds:UpToDate/UpToDate"]);
}
