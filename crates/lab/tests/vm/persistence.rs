//! Twenty settings that are kept on hosts with eight owners of settings, and settings of more kinds that only
//! units and rules of this program set: each is written where the host configures it, and all are in force
//! 30 s after all services of a boot are up; an undo leaves every file as it was. The hosts boot beside each
//! other, in turns by `reboot` and after a power cut.
//!
//! `LINERATE_BOOTS` is how many boots they have together; without it each boots once by either. Each boot
//! compares all settings: four boots are 200 comparisons.

use std::path::PathBuf;
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
type Row = (&'static str, &'static str, &'static str);

/// Those of eight owners.
static KEPT: [Row; 20] = [
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
/// The same for more kinds: how packets are spread, queues, a token bucket, a bond, neighbours, routes, a
/// rule taken away, forwarding entries, rules of the firewall that are off, the table of connections, clock,
/// governor, idle states, irqbalance, drives, an array. They come first: a scheduler sets the number of
/// requests anew. An emulated drive has no name to find its cache by; slots of NFS are no setting of this
/// program.
static MORE: [Row; 30] = [
    ("nic.eth1.queue.rx-0.rps_cpus", "\"1\"", "systemd/system/linerate-eth1-queue.rx-0.rps_cpus.service"),
    (
        "nic.eth1.queue.rx-0.rps_flow_cnt",
        "4096",
        "systemd/system/linerate-eth1-queue.rx-0.rps_flow_cnt.service",
    ),
    ("nic.eth1.gso_max_segs", "64", LINK),
    ("nic.eth1.feature.tx-nocache-copy", "true", "systemd/system/linerate-eth1-tx-nocache-copy.service"),
    (
        "nic.eth2.neighbour.10/80/2/9",
        "\"02:00:00:00:00:09\"",
        "systemd/system/linerate-eth2-neighbour-10.80.2.9.service",
    ),
    (
        "route.10/80/2/0-24",
        "\"10.80.2.0/24 dev eth2 src 10.80.2.1 initcwnd 20\"",
        "systemd/system/linerate-route-10-80-2-0-24.service",
    ),
    (
        "rule.300.from-10/80/2/9-32",
        "\"300: from 10.80.2.9/32 lookup main\"",
        "systemd/system/linerate-rule-300.from-10-80-2-9-32.service",
    ),
    (
        "rule.301.from-10/80/2/10-32",
        "\"none\"",
        "systemd/system/linerate-rule-301.from-10-80-2-10-32.service",
    ),
    (
        "nic.bond7.bond.xmit_hash_policy",
        "\"layer3+4\"",
        "systemd/system/linerate-bond7-xmit_hash_policy.service",
    ),
    (
        "nic.tunnel7.fdb.02:00:00:00:00:07",
        "\"10.80.2.7\"",
        "systemd/system/linerate-tunnel7-fdb-02-00-00-00-00-07.service",
    ),
    (
        "nic.port7.fdb.02:00:00:00:00:08",
        "\"port\"",
        "systemd/system/linerate-port7-fdb-02-00-00-00-00-08.service",
    ),
    ("nic.veth7.channels.rx", "2", "systemd/network/10-linerate-veth7.link"),
    ("nic.veth7.channels.tx", "2", "systemd/network/10-linerate-veth7.link"),
    ("nic.veth7.queue.tx-1.xps_cpus", "\"1\"", "systemd/system/linerate-veth7-queue.tx-1.xps_cpus.service"),
    ("nic.veth8.qdisc_rate_bit", "2000000000", "systemd/system/linerate-veth8-qdisc.service"),
    // Two of one chain: each is off where it stands.
    (
        "firewall.random_rule.0811471e-1",
        "false",
        "systemd/system/linerate-firewall.random_rule.0811471e-1.service",
    ),
    (
        "firewall.limit_rule.0811471e-2",
        "false",
        "systemd/system/linerate-firewall.limit_rule.0811471e-2.service",
    ),
    // Its module is loaded by the firewall, after `sysctl.d` was applied.
    ("sysctl.net.netfilter.nf_conntrack_max", "300000", "sysctl.d/90-linerate.conf"),
    ("cpu.clocksource", "\"hpet\"", "systemd/system/linerate-cpu-clocksource.service"),
    // tuned sets another one at each boot.
    ("cpu.governor", "\"schedutil\"", "systemd/system/linerate-cpu-governor.service"),
    ("cpu.idle_latency_us", "2", "systemd/system/linerate-cpu-idle.service"),
    ("cpu.irqbalance", "\"paused\"", "systemd/system/linerate-irqbalance.service"),
    ("disk.sda.scheduler", "\"none\"", "udev/rules.d/90-linerate-sda-0-scheduler.rules"),
    ("disk.sda.wbt_lat_usec", "50000", "udev/rules.d/90-linerate-sda-1-wbt_lat_usec.rules"),
    ("disk.sda.rq_affinity", "2", "udev/rules.d/90-linerate-sda-1-rq_affinity.rules"),
    ("disk.sda.nomerges", "1", "udev/rules.d/90-linerate-sda-1-nomerges.rules"),
    ("disk.sda.queue_depth", "32", "udev/rules.d/90-linerate-sda-1-queue_depth.rules"),
    ("disk.sda.write_cache", "\"write through\"", "udev/rules.d/90-linerate-sda-1-write_cache.rules"),
    ("disk.md7.md_sync_speed_min", "2000", "udev/rules.d/90-linerate-md7-1-md_sync_speed_min.rules"),
    ("disk.md7.md_sync_speed_max", "50000", "udev/rules.d/90-linerate-md7-1-md_sync_speed_max.rules"),
];
const TUNED: &str = "tuned/network-throughput/tuned.conf";
const LINK: &str = "systemd/network/10-linerate-eth1.link";
const NETWORK_MANAGER: &str = "NetworkManager/system-connections/storage.nmconnection";

/// All settings, in the order in which they are put in force.
fn all() -> impl Iterator<Item = &'static Row> {
    MORE.iter().chain(&KEPT)
}

/// A firewall that follows connections, and drops by chance and above a rate; a bond, a bridge, a tunnel, a
/// pair of devices with several queues, a policy rule and an array in memory: all made at boot. A hardware
/// address that is written down for a neighbour, and an irqbalance with a ban of its own. A real one ends on
/// a host with one CPU: this one only answers as it does.
const BEFORE: &str = r#"cat >/etc/nftables.conf <<'END'
table inet filter {
    chain input {
        type filter hook input priority 0
        udp dport 9 ct state invalid drop
        udp dport 9 numgen random mod 100 < 50 counter drop
        udp dport 9 limit rate over 5/second drop
    }
}
END
cat >/etc/systemd/system/devices.service <<'END'
[Unit]
Before=network.target
After=networking.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'ip link add bond7 type bond mode balance-xor; ip link add bridge7 type bridge; \
    ip link add port7 master bridge7 type dummy; ip link add tunnel7 type vxlan id 7 dstport 4789 dev eth2; \
    ip link add veth7 numrxqueues 4 numtxqueues 4 type veth peer name veth8; \
    tc qdisc add dev veth8 root tbf rate 1gbit burst 500k latency 50ms; \
    ip rule add priority 301 from 10.80.2.10 lookup main; modprobe brd rd_nr=2 rd_size=8192; \
    mdadm --create /dev/md7 --run --quiet --level 1 --raid-devices 2 --assume-clean \
    --uuid 4c790000:00000000:00000000:00000007 /dev/ram0 /dev/ram1'
[Install]
WantedBy=multi-user.target
END
systemctl -q enable --now nftables devices
ip neigh replace 10.80.2.9 lladdr 02:00:00:00:00:01 dev eth2 nud permanent
cat >/usr/sbin/irqbalance <<'END'
#!/usr/bin/python3
import os, socket, sys
banned = [word[9:] for word in sys.argv if word.startswith("--banirq=")]
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"/run/irqbalance/irqbalance{os.getpid()}.sock")
listener.listen()
while True:
    peer = listener.accept()[0]
    words = peer.recv(9999).decode().split()
    if words[0] == "setup":
        peer.send(("SLEEP 10 " + "".join(f"IRQ {n} LOAD 0 DIFF 0 CLASS 0 " for n in banned) + "BANNED 0").encode())
    else:
        banned = [n for n in words[3:] if n != "NONE"]
    peer.close()
END
chmod 755 /usr/sbin/irqbalance
echo 'IRQBALANCE_ARGS=--banirq=4' >/etc/default/irqbalance
printf '[Service]\nEnvironmentFile=/etc/default/irqbalance\nRuntimeDirectory=irqbalance\n' \
    >/etc/systemd/system/irqbalance.service
printf 'ExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS\n[Install]\nWantedBy=multi-user.target\n' \
    >>/etc/systemd/system/irqbalance.service
systemctl -q enable --now irqbalance"#;

/// The interrupts that the irqbalance of a guest leaves alone, by its arguments: how many.
fn banned(scene: &Scene, guest: &str) -> usize {
    let words =
        scene.sh(guest, "tr '\\0' ' ' </proc/$(systemctl show irqbalance -p MainPID --value)/cmdline");
    assert!(words.contains("--foreground --banirq=4"), "its own arguments: {words}");
    words.matches("--banirq=").count()
}

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
    // Of the eight owners alone: how long the units of more settings take is not what slurmd waits for here.
    let kept = write_set(scene, "kept-slurm.toml", KEPT.iter());
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
                 if systemctl start slurmd 2>/dev/null; then journalctl -q -o cat -u linerate-kept | tail -n 20 >&2; \
                 exit 1; fi; systemctl is-active slurmd || true; \
                 sysctl -q net.core.rmem_max=33554432; systemctl start slurmd; systemctl is-active slurmd";
    assert_eq!(scene.sh(guest, words), "inactive\nactive\n");
}

/// Nothing is left of the checks but what they wrote.
fn checks_are_uninstalled(scene: &Scene) {
    check(scene, &SERVERS, &["uninstall"]);
    let left = "systemctl -q disable --now slurmd; rm /etc/systemd/system/slurmd.service; systemctl daemon-reload; \
                ls /etc/linerate; ls /usr/local/sbin; systemctl list-unit-files --no-legend 'linerate-check*' 'linerate-kept*' || true";
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

/// Writes a kept set of these settings for all guests.
fn write_set(scene: &Scene, name: &str, settings: impl Iterator<Item = &'static Row>) -> PathBuf {
    let mut set = format!("[[cohort]]\nhosts = {SERVERS:?}\npolicy = \"put-back\"\n");
    for &(key, value, _) in settings {
        set.extend(["\n[[cohort.setting]]\nkey = \"", key, "\"\nvalue = ", value, "\n"]);
    }
    let path = scene.lab.folder().join(name);
    std::fs::write(&path, set).unwrap();
    path
}

/// Puts the kept set on all, in three parts: an emulated CPU takes its time for each. Returns the trials.
fn keep_all(scene: &Scene) -> [String; 3] {
    let half = MORE.len() / 2;
    let parts: [Vec<&Row>; 3] = [MORE[..half].iter().collect(), MORE.iter().collect(), all().collect()];
    let trials = parts.map(|settings| {
        write_set(scene, "kept.toml", settings.into_iter());
        let put_back = drift(scene, &["--put-back"], &[0, 1]);
        let trial = put_back["put_back"][0]["trial"].as_str();
        trial.unwrap_or_else(|| panic!("{put_back:#}")).to_owned()
    });
    let kept = drift(scene, &[], &[0, 1]);
    assert_eq!(rows(&kept).len(), all().count() * SERVERS.len());
    for row in rows(&kept) {
        let (_, _, file) = all().find(|(key, _, _)| row["key"] == *key).unwrap();
        assert_eq!(row["state"], "same", "{row:#}");
        let at = row["boot"]["at"].as_str().unwrap_or_default();
        assert!(at.starts_with(&format!("/etc/{file}:")), "{row:#}");
    }
    trials
}

#[test]
fn twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot() {
    let name = "twenty_settings_kept_by_eight_owners_are_in_force_after_a_boot";
    let Some(mut scene) = Scene::of(name, &servers()) else { return };
    for guest in SERVERS {
        assert_eq!(scene.exec(guest, &["systemctl", "is-system-running", "--wait"]), "running\n");
    }
    for guest in SERVERS {
        scene.sh(guest, BEFORE);
    }
    let before = SERVERS.map(|guest| etc(&scene, guest));
    let trials = keep_all(&scene);

    checks_are_installed(&scene);
    let boots: usize = std::env::var(BOOTS).ok().map_or(2 * SERVERS.len(), |text| text.parse().unwrap());
    for (round, first) in (1..=boots).step_by(SERVERS.len()).enumerate() {
        let guests = &SERVERS[..SERVERS.len().min(boots + 1 - first)];
        boot(&mut scene, guests, round % 2 == 0);
        wait_30_s(&scene, guests);
        let now = drift(&scene, &[], &[0, 1]);
        let lost: Vec<&Value> = rows(&now).iter().filter(|row| row["state"] != "same").collect();
        assert!(lost.is_empty(), "round {round}: {lost:#?}");
        for (guest, number) in guests.iter().zip(first..) {
            slurmd_has_waited(&scene, guest);
            assert!(banned(&scene, guest) > 3, "NICs have more than one interrupt each");
            let count = all().count();
            println!("boot {number} of {boots}: {count} of {count} kept settings in force");
        }
    }

    slurmd_does_not_start_without_them(&scene, SERVERS[0]);
    checks_are_uninstalled(&scene);
    assert_ne!(SERVERS.map(|guest| etc(&scene, guest)), before);
    // By the journals of the hosts: the store of this operator has no run of them.
    let undone = printed(&scene.linerate(&["undo", "--all", "-i", &scene.inventory()]), &[0]);
    assert!(trials.iter().all(|trial| undone.contains(trial)), "{undone}");
    assert_eq!(SERVERS.map(|guest| etc(&scene, guest)), before, "undo");
    let moves =
        printed(&scene.linerate(&["facts", SERVERS[0], "cpu.irqbalance", "-i", &scene.inventory()]), &[0]);
    assert!(moves.contains("running"), "its ban list is as it was: {moves}");
}
