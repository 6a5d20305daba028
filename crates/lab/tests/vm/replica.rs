//! The two-guest line of DRBD by `linerate drbd` alone: from nothing to a replica, over and back, damage
//! found, a split brain foreseen, explained and ended, and everything undone.

use linerate_lab::vm::switch::TrafficDirection;

use crate::{REPLICA, Scene, printed, wait_for};

/// Findings.
const FOUND: i32 = 1;
/// Could not run.
const REFUSED: i32 = 2;

fn drbd(scene: &Scene, codes: &[i32], words: &[&str]) -> String {
    let inventory = scene.inventory();
    let all: Vec<&str> = ["drbd"].iter().chain(words).chain(&["-i", &inventory]).copied().collect();
    printed(&scene.linerate(&all), codes)
}

/// The error of the operator's program.
fn refusal(scene: &Scene, words: &[&str]) -> String {
    let inventory = scene.inventory();
    let all: Vec<&str> = ["drbd"].iter().chain(words).chain(&["-i", &inventory]).copied().collect();
    let output = scene.linerate(&all);
    assert_eq!(output.status.code(), Some(REFUSED), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn status(scene: &Scene) -> serde_json::Value {
    let text = drbd(scene, &[0, FOUND, 3], &["status", "--json"]);
    let status = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    linerate_testkit::schemas::hold("drbd-status", &status);
    status
}

/// All replicas; connected ones at rest are `Established`.
fn replicas(scene: &Scene) -> String {
    status(scene)["replicas"].to_string()
}

fn alarms(scene: &Scene) -> String {
    status(scene)["alarms"].to_string()
}

/// Waits until nothing is wrong: where a guest stood still, the other one may have missed it for a moment.
fn no_alarm(scene: &Scene, what: &str) {
    wait_for(what, || alarms(scene), |text| text == "[]");
}

/// The replica beside its own disk, without the peer for a moment, and beside the transport. The figures are
/// those of emulated machines; what has to be there are all of them, shares that add up, and a replica that
/// is whole again.
fn loses_speed_where_it_is_reported(scene: &Scene) {
    let words = ["bench", "r0", "--apart", "--rounds", "1", "--time", "2s", "--size", "4M", "--json"];
    assert!(refusal(scene, &["bench", "r0", "--in", "/tmp"]).contains("is not on /dev/drbd0"));
    // Large writes are so slow under emulation that there may be too few of them for a figure (exit code 3).
    let bench: serde_json::Value = serde_json::from_str(&drbd(scene, &[0, FOUND, 3], &words)).unwrap();
    linerate_testkit::schemas::hold("drbd-bench", &bench);
    let shares = bench["shares"].as_array().unwrap();
    let patterns: Vec<&str> = shares.iter().map(|s| s["pattern"].as_str().unwrap()).collect();
    assert!(patterns.ends_with(&["random-write", "sync-write"]), "{bench}");
    for share in shares {
        let part = |name: &str| share[name].as_f64().unwrap();
        let whole = part("reached") + part("lost_to_transport") + part("lost_to_replication");
        assert!(part("reached") > 0.0 && whole > 0.999, "{share}");
        assert_eq!(share["variant"], "underlay", "the network that the resource uses");
    }
    assert!(shares.last().unwrap()["time"]["way_ms"].as_f64().unwrap() > 0.0, "{bench}");
    let facts = printed(&scene.linerate(&["facts", "-i", &scene.inventory(), "one", "drbd.r0."]), &[0]);
    assert!(
        facts.contains("drbd.r0.peer = on") && facts.contains("drbd.r0.net.max-buffers = 8000"),
        "{facts}"
    );
    no_alarm(scene, "connected again, and alike");
    a_setting_is_tried(scene);
}

/// A checksum of each block is work for an emulated CPU: the bench names it, the trial shows what it costs
/// and leaves it as it was.
fn a_setting_is_tried(scene: &Scene) {
    // They agree on it when they meet.
    let adjusted = |file: &str| {
        scene.exec("one", &["drbdadm", "disconnect", "r0"]);
        for guest in ["two", "one"] {
            scene.sh(guest, &format!("{file}; drbdadm adjust r0"));
        }
        wait_for("they have met", || replicas(scene), |text| text.matches("\"Established\"").count() == 2);
        no_alarm(scene, "adjusted");
    };
    adjusted(
        "cp /etc/drbd.d/r0.res /root; sed -i 's/^ *net {/&\\ndata-integrity-alg sha256;/' /etc/drbd.d/r0.res",
    );
    let words = ["bench", "r0", "--apart", "--rounds", "1", "--time", "2s", "--size", "4M", "--json"];
    let bench: serde_json::Value = serde_json::from_str(&drbd(scene, &[FOUND, 3], &words)).unwrap();
    let settings = bench["settings"].to_string();
    assert!(settings.contains("drbd-integrity-check"), "{bench}");
    let inventory = scene.inventory();
    let words = ["try", "drbd-integrity-check", "--arms", "4", "--json", "--inventory", &inventory];
    let bench: serde_json::Value =
        serde_json::from_str(&printed(&scene.linerate(&words), &[0, FOUND])).unwrap();
    let trial = &bench["trial"];
    assert_eq!(trial["status"], "measured", "{trial}");
    let arms = trial["arms"].as_array().unwrap();
    let of_change = |changed: bool| arms.iter().filter(|arm| arm["changed"] == changed).count();
    assert_eq!((of_change(false), of_change(true)), (2, 2), "{trial}");
    // Four are too few for an effect, and one in which the machine stood still has no figure.
    assert!(arms.iter().filter_map(|arm| arm["value"].as_f64()).all(|v| v > 0.0), "{trial}");
    assert_eq!(trial["effect"]["effect"], "not-shown", "{trial}");
    assert_eq!(trial["remedy"]["changes"].as_array().unwrap().len(), 2, "{trial}");
    for guest in ["one", "two"] {
        assert!(scene.exec(guest, &["drbdsetup", "show", "r0"]).contains("sha256"), "the old value is back");
    }
    adjusted("mv /root/r0.res /etc/drbd.d/r0.res");
}

const UP: [&str; 7] = ["up", "r0", "--disk", "/dev/sda", "--from", "one", "--really"];

#[test]
fn linerate_brings_up_a_replica_ends_its_split_brain_and_takes_it_back() {
    let name = "linerate_brings_up_a_replica_ends_its_split_brain_and_takes_it_back";
    let Some(scene) = Scene::of(name, REPLICA) else { return };
    for guest in ["one", "two"] {
        scene.sh(guest, "modprobe drbd; modprobe ext4");
    }
    // Neither a name that was not typed nor a device with data on it gets through.
    assert!(refusal(&scene, &[&UP[..], &["r1"]].concat()).contains("is not `r0`"));
    scene.sh("two", "mkfs.ext4 -q /dev/sda");
    assert!(refusal(&scene, &[&UP[..], &["r0"]].concat()).contains("would overwrite"));
    scene.sh("two", "dd if=/dev/zero of=/dev/sda bs=1M || true; sync");
    drbd(&scene, &[0], &[&UP[..], &["r0"]].concat());
    no_alarm(&scene, "up, and alike");

    // Over and back, with what was written.
    scene.sh("one", "mkfs.ext4 -q /dev/drbd0; mount /dev/drbd0 /mnt; echo first >/mnt/a; sync");
    loses_speed_where_it_is_reported(&scene);
    let busy = [4];
    drbd(&scene, &busy, &["failover", "r0", "--to", "two"]);
    scene.exec("one", &["umount", "/mnt"]);
    drbd(&scene, &[0], &["failover", "r0", "--to", "two"]);
    assert_eq!(scene.sh("two", "mount /dev/drbd0 /mnt; cat /mnt/a; umount /mnt"), "first\n");
    drbd(&scene, &[0], &["failover", "r0", "--to", "one"]);

    // Damage behind DRBD's back: both sides report UpToDate, and the comparison finds it.
    scene.sh("two", "drbdadm down r0; dd if=/dev/urandom of=/dev/sda bs=4k seek=12000 count=16 conv=notrunc; sync; drbdadm up r0");
    wait_for(
        "both are connected again",
        || replicas(&scene),
        |text| text.matches("\"Established\"").count() == 2,
    );
    no_alarm(&scene, "it is not detected yet");
    assert!(drbd(&scene, &[FOUND], &["verify", "r0"]).contains("differs in 64 KiB"));
    wait_for("it is known", || alarms(&scene), |text| text.contains("out-of-sync"));
    scene.sh("two", "drbdadm disconnect r0; drbdadm connect r0");
    no_alarm(&scene, "the marked blocks are copied");

    // A split brain, foreseen while the sides are still apart.
    let link = scene.lab.link("two").unwrap().clone();
    link.update(TrafficDirection::Both, |s| s.loss_ppm = 1_000_000);
    wait_for("the cut is seen", || alarms(&scene), |text| text.matches("peer-missing").count() == 2);
    scene.sh("one", "mount /dev/drbd0 /mnt; echo second >/mnt/b; sync");
    // It is the cable that is cut: the primary answers over ssh, so it must not be declared dead. By hand the
    // mistake can still be made.
    let dead = ["failover", "r0", "--to", "two", "--primary-is-dead", "--really", "two"];
    assert!(refusal(&scene, &dead).contains("which is not dead"));
    scene.sh("two", "drbdadm primary r0; mount /dev/drbd0 /mnt; echo third >/mnt/c; sync; umount /mnt");
    wait_for("foreseen before they meet", || alarms(&scene), |text| text.contains("split-brain"));
    link.update(TrafficDirection::Both, |s| s.loss_ppm = 0);
    wait_for("they have met", || scene.exec("one", &["dmesg"]), |text| text.contains("Split-Brain detected"));
    assert!(
        refusal(&scene, &["repair", "r0", "--victim", "two", "--really", "one"]).contains("is not `two`")
    );
    drbd(&scene, &[0], &["repair", "r0", "--victim", "two", "--really", "two"]);
    no_alarm(&scene, "one replica again");
    assert_eq!(scene.sh("one", "cat /mnt/b; ls /mnt/c 2>/dev/null || true; umount /mnt"), "second\n");

    // Nothing of ours is left.
    drbd(&scene, &[0], &["undo", "r0", "--really", "r0"]);
    for guest in ["one", "two"] {
        assert_eq!(
            scene.sh(guest, "ls /etc/drbd.d | grep r0 || true; drbdsetup status r0 2>&1 | grep role || true"),
            ""
        );
    }
}
