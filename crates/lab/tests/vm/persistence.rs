//! Twenty settings that are kept on hosts with eight owners of settings: each is written where the host
//! configures it, and all are in force 30 s after all services of a boot are up; an undo leaves every file
//! as it was. The hosts boot beside each other, in turns by `reboot` and after a power cut.
//!
//! `LINERATE_BOOTS` is how many boots they have together; ten without it. Each compares all twenty settings
//! of all owners: ten boots are 200 comparisons.

use std::time::Instant;

use linerate_lab::vm::disk::Keep;
use linerate_lab::vm::topology::BUILT_IN;
use linerate_testkit::pause;
use serde_json::Value;

use crate::{PATIENCE, Scene, printed};

/// The guest of the lab `vm-systemd`.
pub(crate) const GUEST: &str = "server";
/// Two of it: one waits while the other boots.
pub(crate) const SERVERS: [&str; 2] = ["left", "right"];
/// How many boots they have together after the settings were written.
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

/// As long as the clock of each guest has gone on by 30 s; all services are up.
fn wait_30_s(scene: &Scene, guests: &[&str]) {
    for guest in guests {
        let up = "systemctl is-system-running --wait; cp /proc/uptime /run/up";
        assert_eq!(scene.sh(guest, up), "running\n");
    }
    let rest = "read now _ </proc/uptime; read up _ </run/up; left=$((${up%.*} + 31 - ${now%.*})); \
                if [ $left -gt 0 ]; then sleep $left; fi";
    for guest in guests {
        scene.sh(guest, rest);
    }
}

/// The guests end, and are up again.
pub(crate) fn boot(scene: &mut Scene, guests: &[&str], by_command: bool) {
    for guest in guests {
        if by_command {
            // The connection ends before the command does.
            let _ = scene.lab.exec(guest, &["systemctl", "reboot"]);
        } else {
            scene.exec(guest, &["sync"]);
            scene.lab.power_cut(guest, Keep::All, 1).unwrap();
        }
    }
    let begun = Instant::now();
    for guest in guests {
        while let Err(error) = scene.lab.power_on(guest) {
            assert!(by_command && error.to_string().contains("is on already"), "{error}");
            assert!(begun.elapsed() < PATIENCE, "{guest} never ends");
            pause();
        }
    }
    for guest in guests {
        scene.lab.wait_up(guest).unwrap();
    }
}

/// Names and contents of all files of `/etc`, but of those that services write at every boot.
fn etc(scene: &Scene, guest: &str) -> String {
    let list = "cd /etc; find . -type f -not -name 'resolv.conf*' -not -path './dropbear/*' -not -name hosts -not \
                -name hostname -not -path './tuned/post_loaded_profile' -print0 | sort -z | xargs -0 md5sum";
    scene.sh(guest, list)
}

/// What `linerate drift` prints of all guests.
pub(crate) fn drift(scene: &Scene, more: &[&str], codes: &[i32]) -> Value {
    let (inventory, kept) = (scene.inventory(), scene.lab.folder().join("kept.toml"));
    let words = ["drift", "-i", &inventory, "--kept", kept.to_str().unwrap(), "--json"];
    let text = printed(&scene.linerate(&[&words, more].concat()), codes);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap_or_else(|| panic!("no rows: {document:#}"))
}

/// `linerate check` with these words, on the guests.
pub(crate) fn check(scene: &Scene, guests: &[&str], words: &[&str]) -> String {
    let inventory = scene.inventory();
    let words = [&["check"], words, &["--yes"], guests, &["-i", &inventory]].concat();
    printed(&scene.linerate(&words), &[0])
}

/// The timer runs the checks; then Slurm's own calls replace it, and slurmd waits for the kept set. The
/// slurmd of these guests is a program that only runs: what is shown is the order of systemd.
fn checks_are_installed(scene: &Scene) {
    let kept = scene.lab.folder().join("kept.toml");
    let install = ["install", "--kept", kept.to_str().unwrap()];
    check(scene, &SERVERS, &install);
    let ran = "systemctl is-active linerate-check.timer; systemctl start linerate-check; \
               systemctl show linerate-check -p Result --value; ls /var/lib/linerate/check/state.json";
    for guest in SERVERS {
        assert_eq!(scene.sh(guest, ran), "active\nsuccess\n/var/lib/linerate/check/state.json\n");
        scene.sh(
            guest,
            &format!("echo '{SLURMD}' >/etc/systemd/system/slurmd.service; systemctl -q enable slurmd"),
        );
    }
    check(scene, &SERVERS, &[&install[..], &["--slurm"]].concat());
    let timer = "systemctl is-enabled linerate-check.timer 2>/dev/null || true; cd /etc/linerate; ls";
    for guest in SERVERS {
        assert_eq!(scene.sh(guest, timer), "kept.json\nslurm-check\n", "the timer is gone");
    }
}

const SLURMD: &str = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target";

/// After a boot: the unit that compares the kept set has ended well, and slurmd was started behind it.
fn slurmd_has_waited(scene: &Scene, guest: &str) {
    let of = |unit: &str, property: &str| {
        let show = ["systemctl", "show", unit, "--value", "-p", property];
        scene.exec(guest, &show).trim().to_owned()
    };
    assert_eq!(of("linerate-kept", "Result") + &of("slurmd", "ActiveState"), "successactive");
    let at = |unit: &str, property: &str| of(unit, property).parse::<u64>().unwrap();
    let (ended, begun) = (at("linerate-kept", "ExecMainExitTimestampMonotonic"), at("slurmd", START));
    assert!(0 < ended && ended <= begun, "{ended} µs, slurmd at {begun} µs");
}

const START: &str = "ExecMainStartTimestampMonotonic";

/// A node on which a kept setting has another value takes no work, until it has the kept one again.
fn slurmd_does_not_start_without_them(scene: &Scene, guest: &str) {
    let words = "systemctl stop slurmd linerate-kept; sysctl -q net.core.rmem_max=4194304; \
                 systemctl start slurmd 2>/dev/null && exit 1; systemctl is-active slurmd || true; \
                 sysctl -q net.core.rmem_max=33554432; systemctl start slurmd; systemctl is-active slurmd";
    assert_eq!(scene.sh(guest, words), "inactive\nactive\n");
}

/// Nothing is left of the checks but what they wrote.
fn checks_are_uninstalled(scene: &Scene) {
    check(scene, &SERVERS, &["uninstall"]);
    let left = "systemctl -q disable --now slurmd; rm /etc/systemd/system/slurmd.service; systemctl daemon-reload; \
                ls /etc/linerate; ls /usr/local/sbin; systemctl list-unit-files --no-legend 'linerate-[ck]*' || true";
    for guest in SERVERS {
        assert_eq!(scene.sh(guest, left), "");
    }
}

/// The lab `vm-systemd` with as many guests as there are servers.
pub(crate) fn servers() -> String {
    let (_, lab) = BUILT_IN.iter().find(|(name, _)| *name == "vm-systemd").unwrap();
    let (head, guest) = lab.split_once("[[guest]]").unwrap();
    let guests = SERVERS.map(|name| format!("[[guest]]{}", guest.replace(GUEST, name)));
    head.to_owned() + &guests.concat()
}

/// Puts the kept set on all; returns the trial.
fn keep_all(scene: &Scene) -> String {
    let mut set = format!("[[cohort]]\nhosts = {SERVERS:?}\npolicy = \"put-back\"\n");
    for (key, value, _) in KEPT {
        set.extend(["\n[[cohort.setting]]\nkey = \"", key, "\"\nvalue = ", value, "\n"]);
    }
    std::fs::write(scene.lab.folder().join("kept.toml"), set).unwrap();
    let put_back = drift(scene, &["--put-back"], &[0, 1]);
    let trial = put_back["put_back"][0]["trial"].as_str().unwrap_or_else(|| panic!("{put_back:#}"));
    let kept = drift(scene, &[], &[0, 1]);
    assert_eq!(rows(&kept).len(), KEPT.len() * SERVERS.len());
    for row in rows(&kept) {
        let (_, _, file) = KEPT.iter().find(|(key, _, _)| row["key"] == *key).unwrap();
        assert_eq!(row["state"], "same", "{row:#}");
        let at = row["boot"]["at"].as_str().unwrap_or_default();
        assert!(at.starts_with(&format!("/etc/{file}:")), "{row:#}");
    }
    trial.to_owned()
}

#[test]
fn twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot() {
    let name = "twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot";
    let Some(mut scene) = Scene::of(name, &servers()) else { return };
    for guest in SERVERS {
        assert_eq!(scene.exec(guest, &["systemctl", "is-system-running", "--wait"]), "running\n");
    }
    let before = SERVERS.map(|guest| etc(&scene, guest));
    let trial = keep_all(&scene);

    checks_are_installed(&scene);
    let boots: usize = std::env::var(BOOTS).ok().map_or(10, |text| text.parse().unwrap());
    for (round, first) in (1..=boots).step_by(SERVERS.len()).enumerate() {
        let guests = &SERVERS[..SERVERS.len().min(boots + 1 - first)];
        boot(&mut scene, guests, round % 2 == 0);
        wait_30_s(&scene, guests);
        let now = drift(&scene, &[], &[0, 1]);
        let lost: Vec<&Value> = rows(&now).iter().filter(|row| row["state"] != "same").collect();
        assert!(lost.is_empty(), "round {round}: {lost:#?}");
        for (guest, number) in guests.iter().zip(first..) {
            slurmd_has_waited(&scene, guest);
            println!("boot {number} of {boots}: {} of {} kept settings in force", KEPT.len(), KEPT.len());
        }
    }

    slurmd_does_not_start_without_them(&scene, SERVERS[0]);
    checks_are_uninstalled(&scene);
    assert_ne!(SERVERS.map(|guest| etc(&scene, guest)), before);
    // By the journals of the hosts: the store of this operator has no run of them.
    let undone = printed(&scene.linerate(&["undo", "--all", "-i", &scene.inventory()]), &[0]);
    assert!(undone.contains(&trial), "{undone}");
    assert_eq!(SERVERS.map(|guest| etc(&scene, guest)), before, "undo");
}
