//! Twenty settings that are kept on a host with eight owners of settings: each is written where the host
//! configures it, and all are in force 30 s after all services of a boot are up; an undo leaves every file
//! as it was. The host boots in turns by `reboot` and after a power cut.
//!
//! `LINERATE_BOOTS` is how often it boots; four times without it. Each boot compares all twenty settings of
//! all owners: four boots are 80 comparisons, two of each kind of boot.

use std::time::Instant;

use linerate_lab::vm::disk::Keep;
use linerate_testkit::pause;
use serde_json::Value;

use crate::{PATIENCE, Scene, printed};

pub(crate) const GUEST: &str = "server";
/// How often the guest boots after the settings were written.
const BOOTS: &str = "LINERATE_BOOTS";

/// Setting, value to keep, file below `/etc` in which it belongs.
const KEPT: [(&str, &str, &str); 20] = [
    ("sysctl.net.core.rmem_max", "33554432", "sysctl.d/90-linerate.conf"),
    ("sysctl.net.core.wmem_max", "33554432", "sysctl.d/90-linerate.conf"),
    ("sysctl.net.core.netdev_max_backlog", "5000", "sysctl.d/90-linerate.conf"),
    ("sysctl.net.core.default_qdisc", "\"fq\"", "sysctl.d/90-linerate.conf"),
    // Through the link of the distribution: `/etc/sysctl.conf` is written.
    ("sysctl.net.ipv4.tcp_fin_timeout", "20", "sysctl.d/99-sysctl.conf"),
    ("sysctl.net.ipv4.tcp_rmem", "\"4096 131072 33554432\"", TUNED),
    ("sysctl.net.ipv4.tcp_wmem", "\"4096 65536 33554432\"", TUNED),
    ("sysctl.vm.dirty_background_ratio", "5", TUNED),
    ("nic.eth1.mtu", "1400", LINK),
    ("nic.eth1.txqueuelen", "2000", LINK),
    ("nic.eth1.ring.rx", "128", LINK),
    ("nic.eth2.mtu", "1410", "network/interfaces"),
    ("nic.eth3.mtu", "1420", NETWORK_MANAGER),
    ("nic.eth3.ring.rx", "64", NETWORK_MANAGER),
    ("nic.eth3.ring.tx", "128", NETWORK_MANAGER),
    ("nic.eth3.feature.generic-receive-offload", "false", NETWORK_MANAGER),
    ("nic.eth4.mtu", "1430", "netplan/zz-linerate-eth4.yaml"),
    ("disk.sda.read_ahead_kb", "8192", "udev/rules.d/90-linerate-sda-1-read_ahead_kb.rules"),
    ("disk.sda.nr_requests", "64", "udev/rules.d/90-linerate-sda-1-nr_requests.rules"),
    ("nic.eth1.qdisc", "\"fq\"", "systemd/system/linerate-eth1-qdisc.service"),
];
const TUNED: &str = "tuned/network-throughput/tuned.conf";
const LINK: &str = "systemd/network/10-linerate-eth1.link";
const NETWORK_MANAGER: &str = "NetworkManager/system-connections/storage.nmconnection";

/// As long as the guest's clock has gone on by 30 s; all services are up.
fn wait_30_s(scene: &Scene) {
    assert_eq!(scene.sh(GUEST, "systemctl is-system-running --wait; sleep 30"), "running\n");
}

/// The guest ends, and is up again.
pub(crate) fn boot(scene: &mut Scene, by_command: bool) {
    if by_command {
        // The connection ends before the command does.
        let _ = scene.lab.exec(GUEST, &["systemctl", "reboot"]);
        let begun = Instant::now();
        loop {
            match scene.lab.boot(GUEST) {
                Ok(()) => return,
                Err(error) if error.to_string().contains("is on already") => pause(),
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed() < PATIENCE, "it never ends");
        }
    }
    scene.exec(GUEST, &["sync"]);
    scene.lab.power_cut(GUEST, Keep::All, 1).unwrap();
    scene.lab.boot(GUEST).unwrap();
}

/// Names and contents of all files of `/etc`, but of those that services write at every boot.
fn etc(scene: &Scene) -> String {
    let list = "cd /etc; find . -type f -not -name 'resolv.conf*' -not -path './dropbear/*' -not -name hosts -not \
                -name hostname -not -path './tuned/post_loaded_profile' -print0 | sort -z | xargs -0 md5sum";
    scene.sh(GUEST, list)
}

/// What `linerate drift` prints.
pub(crate) fn drift(scene: &Scene, more: &[&str], codes: &[i32]) -> Value {
    let (inventory, kept) = (scene.inventory(), scene.lab.folder().join("kept.toml"));
    let words = ["drift", GUEST, "-i", &inventory, "--kept", kept.to_str().unwrap(), "--json"];
    let text = printed(&scene.linerate(&[&words, more].concat()), codes);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap_or_else(|| panic!("no rows: {document:#}"))
}

/// `linerate check` with these words, on the guest.
pub(crate) fn check(scene: &Scene, words: &[&str]) -> String {
    let inventory = scene.inventory();
    printed(&scene.linerate(&[&["check"], words, &["--yes", GUEST, "-i", &inventory]].concat()), &[0])
}

/// The timer runs the checks; then Slurm's own calls replace it, and slurmd waits for the kept set. The
/// slurmd of this guest is a program that only runs: what is shown is the order of systemd.
fn checks_are_installed(scene: &Scene) {
    let kept = scene.lab.folder().join("kept.toml");
    let install = ["install", "--kept", kept.to_str().unwrap()];
    check(scene, &install);
    let ran = "systemctl is-active linerate-check.timer; systemctl start linerate-check; \
               systemctl show linerate-check -p Result --value; ls /var/lib/linerate/check/state.json";
    assert_eq!(scene.sh(GUEST, ran), "active\nsuccess\n/var/lib/linerate/check/state.json\n");
    scene.sh(
        GUEST,
        &format!("echo '{SLURMD}' >/etc/systemd/system/slurmd.service; systemctl -q enable slurmd"),
    );
    check(scene, &[&install[..], &["--slurm"]].concat());
    assert_eq!(
        scene
            .sh(GUEST, "systemctl is-enabled linerate-check.timer 2>/dev/null || true; cd /etc/linerate; ls"),
        "kept.json\nslurm-check\n",
        "the timer is gone"
    );
}

const SLURMD: &str = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target";

/// After a boot: the unit that compares the kept set has ended well, and slurmd was started behind it.
fn slurmd_has_waited(scene: &Scene) {
    let of = |unit: &str, property: &str| {
        let show = ["systemctl", "show", unit, "--value", "-p", property];
        scene.exec(GUEST, &show).trim().to_owned()
    };
    assert_eq!(of("linerate-kept", "Result") + &of("slurmd", "ActiveState"), "successactive");
    let at = |unit: &str, property: &str| of(unit, property).parse::<u64>().unwrap();
    let (ended, begun) = (at("linerate-kept", "ExecMainExitTimestampMonotonic"), at("slurmd", START));
    assert!(0 < ended && ended <= begun, "{ended} µs, slurmd at {begun} µs");
}

const START: &str = "ExecMainStartTimestampMonotonic";

/// A node on which a kept setting has another value takes no work, until it has the kept one again.
fn slurmd_does_not_start_without_them(scene: &Scene) {
    let words = "systemctl stop slurmd linerate-kept; sysctl -q net.core.rmem_max=4194304; \
                 systemctl start slurmd 2>/dev/null && exit 1; systemctl is-active slurmd || true; \
                 sysctl -q net.core.rmem_max=33554432; systemctl start slurmd; systemctl is-active slurmd";
    assert_eq!(scene.sh(GUEST, words), "inactive\nactive\n");
}

/// Nothing is left of the checks but what they wrote.
fn checks_are_uninstalled(scene: &Scene) {
    check(scene, &["uninstall"]);
    let left = "systemctl -q disable --now slurmd; rm /etc/systemd/system/slurmd.service; systemctl daemon-reload; \
                ls /etc/linerate; ls /usr/local/sbin; systemctl list-unit-files --no-legend 'linerate-[ck]*' || true";
    assert_eq!(scene.sh(GUEST, left), "");
}

#[test]
fn twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot() {
    let name = "twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot";
    let Some(mut scene) = Scene::new(name, "vm-systemd") else { return };
    assert_eq!(scene.exec(GUEST, &["systemctl", "is-system-running", "--wait"]), "running\n");
    let before = etc(&scene);

    let mut set = format!("[[cohort]]\nhosts = [\"{GUEST}\"]\npolicy = \"put-back\"\n");
    for (key, value, _) in KEPT {
        set.extend(["\n[[cohort.setting]]\nkey = \"", key, "\"\nvalue = ", value, "\n"]);
    }
    std::fs::write(scene.lab.folder().join("kept.toml"), set).unwrap();
    let put_back = drift(&scene, &["--put-back"], &[0, 1]);
    let trial = put_back["put_back"][0]["trial"].as_str().unwrap_or_else(|| panic!("{put_back:#}"));
    let kept = drift(&scene, &[], &[0, 1]);
    assert_eq!(rows(&kept).len(), KEPT.len());
    for row in rows(&kept) {
        let (_, _, file) = KEPT.iter().find(|(key, _, _)| row["key"] == *key).unwrap();
        assert_eq!(row["state"], "same", "{row:#}");
        let at = row["boot"]["at"].as_str().unwrap_or_default();
        assert!(at.starts_with(&format!("/etc/{file}:")), "{row:#}");
    }

    checks_are_installed(&scene);
    let boots: usize = std::env::var(BOOTS).ok().map_or(4, |text| text.parse().unwrap());
    for number in 1..=boots {
        boot(&mut scene, number % 2 == 1);
        wait_30_s(&scene);
        let now = drift(&scene, &[], &[0, 1]);
        let lost: Vec<&Value> = rows(&now).iter().filter(|row| row["state"] != "same").collect();
        assert!(lost.is_empty(), "boot {number}: {lost:#?}");
        slurmd_has_waited(&scene);
        println!("boot {number} of {boots}: {} of {} kept settings in force", KEPT.len(), KEPT.len());
    }

    slurmd_does_not_start_without_them(&scene);
    checks_are_uninstalled(&scene);
    assert_ne!(etc(&scene), before);
    // By the journal of the host: the store of this operator has no run of it.
    let undone = printed(&scene.linerate(&["undo", "--all", "-i", &scene.inventory()]), &[0]);
    assert!(undone.contains(trial), "{undone}");
    assert_eq!(etc(&scene), before, "undo");
}
