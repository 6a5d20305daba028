//! Two guests: `linerate` on them, their links, their power.

use linerate_lab::vm::disk::{Cache, Keep};
use linerate_lab::vm::switch::TrafficDirection;

use crate::{Scene, printed, wait_for};

#[test]
fn linerate_reads_facts_and_watches_disks_of_guests() {
    let Some(scene) = Scene::new("linerate_reads_facts_and_watches_disks_of_guests", "vm-pair") else {
        return;
    };
    let facts =
        printed(&scene.linerate(&["facts", "-i", &scene.inventory(), "two", "disk.sda", "kernel"]), &[0]);
    assert!(facts.contains("disk.sda.size_bytes") && facts.contains("268435456"), "{facts}");
    let words =
        ["disk", "watch", "--inventory", &scene.inventory(), "--count", "2", "-i", "1", "--json", "--all"];
    let watched = printed(&scene.linerate(&words), &[0]);
    for host in ["one", "two"] {
        let line = watched.lines().find(|l| l.contains("\"disks\"") && l.contains(&format!("\"{host}\"")));
        assert!(line.is_some_and(|l| l.contains("\"sdc\"")), "{host} is not watched: {watched}");
    }
}

/// Whether a ping comes back.
fn reaches(scene: &Scene, from: &str, to: &str) -> bool {
    scene.lab.exec(from, &["ping", "-c", "1", "-W", "2", to]).is_ok()
}

/// Waits until a ping comes back, and returns its output.
fn pinged(scene: &Scene, from: &str, to: &str) -> String {
    let ping = || scene.lab.exec(from, &["ping", "-c", "1", "-W", "20", to]).unwrap_or_default();
    wait_for("a ping comes back", ping, |printed| printed.contains("time="))
}

#[test]
fn links_are_delayed_and_cut_by_direction_and_what_was_flushed_survives_the_plug() {
    let name = "links_are_delayed_and_cut_by_direction_and_what_was_flushed_survives_the_plug";
    let Some(mut scene) = Scene::new(name, "vm-pair") else { return };
    pinged(&scene, "one", "two");
    let link = scene.lab.link("two").unwrap().clone();
    link.update(TrafficDirection::In, |s| s.delay_ns = 200_000_000);
    let printed = pinged(&scene, "one", "two");
    let ms =
        printed.split("time=").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    assert!(ms.is_some_and(|ms| ms >= 200.0), "{printed}");
    link.update(TrafficDirection::In, |s| (s.delay_ns, s.loss_ppm) = (0, 1_000_000));
    assert!(!reaches(&scene, "one", "two"));
    link.update(TrafficDirection::Both, |s| s.loss_ppm = 0);
    pinged(&scene, "one", "two");
    // A lost connection is no riddle: the error has the guest's last words.
    let error = scene.lab.exec("one", &["bash", "-c", "kill -9 $PPID"]).unwrap_err().to_string();
    assert!(error.contains("one: its console, still open, shows last\n"), "{error}");
    assert!(error.contains("Pubkey auth succeeded"), "{error}");

    // The third drive has a cache that a power cut empties. The filesystem makes nothing safe by itself
    // meanwhile.
    scene.sh(
        "one",
        "modprobe ext4; mkfs.ext4 -q /dev/sdc; mount -o commit=3600 /dev/sdc /mnt; echo kept >/mnt/kept; sync; echo lost >/mnt/lost",
    );
    assert!(scene.lab.power_cut("one", Keep::Nothing, 1).is_ok());
    assert!(scene.lab.exec("one", &["true"]).is_err(), "it is off");
    scene.lab.boot("one").unwrap();
    assert_eq!(
        scene.sh("one", "modprobe ext4; mount /dev/sdc /mnt; cat /mnt/kept; ls /mnt"),
        "kept\nkept\nlost+found\n"
    );
    // A drive that lies loses what it acknowledged.
    scene.sh("one", "umount /mnt; sync");
    let drive = scene.lab.guest("one").unwrap().drive("volatile1").unwrap().clone();
    drive.behave(|b| b.cache = Cache::Lying).unwrap();
    scene.sh("one", "mount /dev/sdc /mnt; echo promised >/mnt/promised; sync");
    assert!(drive.counters().lies > 0, "{:?}", drive.counters());
    assert!(scene.lab.power_cut("one", Keep::Nothing, 1).unwrap() > 0);
    scene.lab.boot("one").unwrap();
    assert_eq!(scene.sh("one", "modprobe ext4; mount /dev/sdc /mnt; ls /mnt"), "kept\nlost+found\n");
}
