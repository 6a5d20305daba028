//! What the files of each owner give, from files below a folder that stands for `/etc`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;

const RMEM: &str = "sysctl.net.core.rmem_max";
const SACK: &str = "sysctl.net.ipv4.tcp_sack";

/// A host with these files and these settings in force.
pub(super) struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            let path = site.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        site
    }

    fn etc(&self) -> PathBuf {
        self.folder.path().join("etc")
    }

    /// Lines in their order, as `owner file:line key value`, without the folder.
    fn lines(&self, now: &[(&str, FactValue)]) -> Vec<String> {
        let (lines, gaps) = self.read(now);
        assert!(gaps.is_empty(), "{gaps:?}");
        lines
    }

    /// Makes a file a program.
    pub(super) fn make_executable(&self, path: &str) {
        fs::set_permissions(self.folder.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Makes a link.
    pub(super) fn link(&self, target: &str, path: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Lines, and gaps as `keys: reason`, both without the folder.
    pub(super) fn read(&self, now: &[(&str, FactValue)]) -> (Vec<String>, Vec<String>) {
        let mut facts = HostFacts::default();
        facts.readings.extend(now.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        add(&Root::live(), &self.etc(), &[BOOT.to_owned()], &mut facts);
        assert!(facts.readings.contains_key(BOOT_READ));
        let base = format!("{}/", self.folder.path().display());
        let gap = |gap: &Gap| format!("{}: {}", gap.what, gap.reason.replace(&base, ""));
        let gaps = facts.gaps.iter().map(gap).collect();
        let words = |(name, value): (&FactKey, &FactValue)| {
            let key = name.strip_prefix(BOOT)?.split_once('.')?.1;
            let FactValue::List(parts) = value else { return None };
            Some(format!("{} {} {key} {}", parts[0], parts[1].replace(&base, ""), parts[2]))
        };
        (facts.readings.beginning_with(BOOT).filter_map(words).collect(), gaps)
    }
}

const MTU: &str = "nic.lo.mtu";
const QUEUE: &str = "nic.lo.txqueuelen";
const GRO: &str = "nic.lo.feature.generic-receive-offload";

#[test]
fn sysctl_d_is_read_by_name_and_etc_hides_what_has_its_name() {
    let site = Site::new(&[
        ("usr/lib/sysctl.d/50-default.conf", "net.core.rmem_max = 1\n"),
        ("usr/lib/sysctl.d/60-vendor.conf", "net.core.rmem_max = 2\n"),
        ("etc/sysctl.d/60-vendor.conf", "# nothing\n-net/ipv4/tcp_sack=0\nvm.swappiness = 1\n"),
        (
            "run/sysctl.d/90-x.conf",
            ";net.core.rmem_max = 9\nnet.ipv4.tcp_*  =  3 4\nnet.core.rmem_max\t=\t3\n",
        ),
        ("etc/sysctl.conf", "net.core.rmem_max = 4\n"),
    ]);
    let now = [(RMEM, FactValue::Int(3)), (SACK, FactValue::Int(1))];
    let lines = [
        "sysctl.d usr/lib/sysctl.d/50-default.conf:1 sysctl.net.core.rmem_max 1",
        "sysctl.d etc/sysctl.d/60-vendor.conf:2 sysctl.net.ipv4.tcp_sack 0",
        "sysctl.d run/sysctl.d/90-x.conf:2 sysctl.net.ipv4.tcp_* 3 4",
        "sysctl.d run/sysctl.d/90-x.conf:3 sysctl.net.core.rmem_max 3",
    ];
    let mut without_systemd = lines.to_vec();
    without_systemd.push("sysctl.d etc/sysctl.conf:1 sysctl.net.core.rmem_max 4");
    assert_eq!(site.lines(&now), without_systemd);
    fs::create_dir_all(site.folder.path().join("run/systemd/system/x")).unwrap();
    assert_eq!(site.lines(&now), lines);
}

#[test]
fn only_the_first_link_file_that_matches_a_device_counts() {
    let key = "nic.lo.mtu";
    let site = Site::new(&[
        ("etc/systemd/network/10-other.link", "[Match]\nOriginalName=eth*\n[Link]\nMTUBytes=1\n"),
        ("etc/systemd/network/20-unknown.link", "[Match]\nPath=pci-*\n[Link]\nMTUBytes=2\n"),
        (
            "run/systemd/network/30-ours.link",
            "[Match]\nOriginalName=!eth0 x\n\n[Link]\n#MTUBytes=3\nMTUBytes=9000\n",
        ),
        ("etc/systemd/network/40-later.link", "[Match]\nOriginalName=*\n[Link]\nMTUBytes=5\n"),
    ]);
    let now = [(key, FactValue::Int(65_536))];
    assert_eq!(site.lines(&now), ["link run/systemd/network/30-ours.link:6 nic.lo.mtu 9000"]);
    fs::write(site.etc().join("systemd/network/05-name.link"), "[Match]\nOriginalName=lo\n[Link]\nName=lo\n")
        .unwrap();
    assert_eq!(site.lines(&now), [""; 0], "the first file sets nothing");
}

#[test]
fn an_enabled_profile_of_tuned_counts_unless_the_administrator_has_the_key() {
    let site = Site::new(&[
        ("etc/systemd/system/multi-user.target.wants/tuned.service", ""),
        ("etc/tuned/active_profile", "mine\n"),
        (
            "etc/tuned/mine/tuned.conf",
            "[main]\ninclude = network-throughput\n[sysctl]\nnet.ipv4.tcp_sack=0\n",
        ),
        (
            "usr/lib/tuned/network-throughput/tuned.conf",
            "[main]\ninclude=mine\n[sysctl]\nnet.core.rmem_max=16\n",
        ),
        ("usr/lib/sysctl.d/50-default.conf", "net.core.rmem_max = 1\n"),
        ("etc/sysctl.d/90-linerate.conf", "net.ipv4.tcp_sack = 1\n"),
    ]);
    let now = [(RMEM, FactValue::Int(3)), (SACK, FactValue::Int(1))];
    let of_tuned = |site: &Site| -> Vec<String> {
        let mut lines = site.lines(&now);
        lines.retain(|line| line.starts_with("tuned "));
        lines.dedup();
        lines
    };
    let rmem = "tuned usr/lib/tuned/network-throughput/tuned.conf:4 sysctl.net.core.rmem_max 16";
    assert_eq!(of_tuned(&site).last().map(String::as_str), Some(rmem));
    assert!(of_tuned(&site).iter().all(|line| !line.contains("tcp_sack")), "{:?}", of_tuned(&site));
    fs::write(site.etc().join("tuned/tuned-main.conf"), "reapply_sysctl = 0\n").unwrap();
    let sack = "tuned etc/tuned/mine/tuned.conf:4 sysctl.net.ipv4.tcp_sack 0";
    assert_eq!(of_tuned(&site).last().map(String::as_str), Some(sack));
    fs::remove_file(site.etc().join("systemd/system/multi-user.target.wants/tuned.service")).unwrap();
    assert_eq!(of_tuned(&site), [""; 0]);
}

#[test]
fn what_a_module_brings_that_is_loaded_later_is_not_set() {
    let key = "sysctl.net.netfilter.nf_conntrack_max";
    let conf = ("etc/sysctl.d/50-x.conf", "net.netfilter.nf_conntrack_max = 9\n");
    let now = [(key, FactValue::Int(9))];
    let site = Site::new(&[conf]);
    assert_eq!(site.lines(&now), [format!("sysctl.d {}:1 {key} 9", conf.0)]);
    let site = Site::new(&[conf, ("sys/module/nf_conntrack/initstate", "live\n")]);
    let (lines, gaps) = site.read(&now);
    assert_eq!(lines, [""; 0]);
    let reason = "etc/sysctl.d/50-x.conf:1: nothing loads nf_conntrack before sysctl.d is applied";
    assert_eq!(gaps, [format!("boot.{key}: {reason}")]);
}

/// A host with the unit that keeps a value, not enabled; with the path of its text and of its link.
fn with_unit(key: &str, value: &FactValue) -> (Site, String, String) {
    let Some(crate::change::setting::Persist::Unit { name, description, exec }) =
        super::super::setting_for(key).map(|setting| setting.persist(key, value))
    else {
        panic!("{key} is kept by a unit");
    };
    let service = format!("etc/systemd/system/{name}.service");
    let link = format!("etc/systemd/system/multi-user.target.wants/{name}.service");
    let site = Site::new(&[(&service, &crate::change::unit::unit_text(&name, &description, &exec))]);
    (site, service, link)
}

#[test]
fn a_unit_that_takes_an_entry_away_counts_while_it_is_not_there() {
    let (key, none) = ("rule.4321.from-10/9/0/1-32", FactValue::Text("none".to_owned()));
    let (site, service, link) = with_unit(key, &none);
    site.link("x", &link);
    let lines = |facts: &mut HostFacts| {
        add(&Root::live(), &site.etc(), &[BOOT.to_owned(), key.to_owned()], facts);
        let lines = facts.readings.beginning_with(BOOT).filter_map(|(_, value)| match value {
            FactValue::List(parts) => Some(format!("{} {}", parts[1], parts[2])),
            _ => None,
        });
        lines.collect::<Vec<_>>()
    };
    let mut absent = HostFacts::default();
    assert_eq!(lines(&mut absent), [format!("{}:1 none", site.folder.path().join(service).display())]);
    // Where the table was not read it may be there, with a value that the unit does not give.
    let gaps = vec![Gap { what: "rule.*".into(), reason: "no right".to_owned() }];
    assert_eq!(lines(&mut HostFacts { gaps, ..HostFacts::default() }), [""; 0]);
}

#[test]
fn a_unit_that_keep_wrote_counts_where_it_is_enabled_and_as_written() {
    let key = "nic.lo.qdisc";
    let now = FactValue::Text("noqueue".to_owned());
    let (site, service, link) = with_unit(key, &now);
    let now = [(key, now)];
    assert_eq!(site.lines(&now), [""; 0], "not enabled");
    let path = site.folder.path().join(link);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(site.lines(&now), [format!("linerate {service}:1 {key} noqueue")]);
    fs::write(site.folder.path().join(&service), "[Service]\n").unwrap();
    assert_eq!(site.lines(&now), [""; 0], "another text");
}

#[test]
fn commands_of_a_stanza_count_before_and_after_its_options() {
    let interfaces = "# The loopback network interface\n\
        auto lo\n\
        iface lo inet static\n    \
            address 10.0.0.1/24\n    \
            mtu 1500\n    \
            pre-up ip link set dev $IFACE mtu 1400\n    \
            post-up /sbin/ethtool -K ${IFACE} gro off \\\n        \
                tso off || true\n    \
            up sysctl -w net.core.rmem_max=7; /usr/local/sbin/tune-nic $IFACE\n    \
            post-up [ -x /sbin/tc ] && ip link set $IFACE txqueuelen 5000\n    \
            down ip link set dev $IFACE mtu 9\n\
        iface eth1 inet manual\n    \
            post-up sysctl -w net.ipv4.tcp_sack=0\n";
    let site = Site::new(&[
        ("etc/systemd/system/multi-user.target.wants/networking.service", ""),
        ("etc/network/interfaces", interfaces),
    ]);
    let now = [
        (MTU, FactValue::Int(1500)),
        (QUEUE, FactValue::Int(1000)),
        (GRO, FactValue::Flag(true)),
        (RMEM, FactValue::Int(1)),
        (SACK, FactValue::Int(1)),
    ];
    let (lines, gaps) = site.read(&now);
    let at = "ifupdown etc/network/interfaces";
    assert_eq!(
        lines,
        [
            format!("{at}:6 {MTU} 1400"),
            format!("{at}:5 {MTU} 1500"),
            format!("{at}:7 {GRO} off"),
            format!("{at}:9 {RMEM} 7"),
        ],
        "eth1 does not come up at boot"
    );
    let reason = "etc/network/interfaces";
    assert_eq!(
        gaps,
        [
            format!("boot.*: {reason}:9 cannot be read: /usr/local/sbin/tune-nic"),
            format!("boot.{QUEUE}: {reason}:10 cannot be read: ip"),
        ]
    );
}

#[test]
fn rc_local_counts_where_it_is_run() {
    let script = "#!/bin/sh -e\n# local tuning, see wiki\n\
        echo 7 > /proc/sys/net/core/rmem_max\n\
        sysctl -p /etc/site.conf\n\
        /sbin/ip link set lo mtu 9000\n\
        for nic in lo eth1; do /sbin/ethtool -K $nic gro off; done\n\
        /opt/raid/start &\n\
        exit 0\n\
        ip link set lo txqueuelen 5\n";
    let site = Site::new(&[
        ("etc/rc.d/rc.local", script),
        ("etc/site.conf", "# x\nnet.ipv4.tcp_sack = 0\n"),
        ("usr/lib/systemd/system/rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n"),
    ]);
    let now = [
        (RMEM, FactValue::Int(1)),
        (SACK, FactValue::Int(1)),
        (MTU, FactValue::Int(1500)),
        (GRO, FactValue::Flag(true)),
        (QUEUE, FactValue::Int(1000)),
    ];
    assert_eq!(site.read(&now), (Vec::new(), Vec::new()), "it may not be executed");
    site.make_executable("etc/rc.d/rc.local");
    let at = "rc.local etc/rc.d/rc.local";
    let lines = [
        format!("{at}:3 {RMEM} 7"),
        format!("rc.local etc/site.conf:2 {SACK} 0"),
        format!("{at}:5 {MTU} 9000"),
    ];
    let gaps = [
        "boot.nic.*.feature.generic-receive-offload: etc/rc.d/rc.local:6 cannot be read: /sbin/ethtool",
        "boot.*: etc/rc.d/rc.local:7 cannot be read: /opt/raid/start",
    ];
    assert_eq!(site.read(&now), (lines.to_vec(), gaps.map(str::to_owned).to_vec()));
    // Only what is asked for is missed.
    let (_, of_one) = site.read(&now[..1]);
    assert_eq!(of_one, gaps[1..]);
    fs::write(site.etc().join("rc.d/rc.local"), "#!/usr/bin/python3\nimport os\n").unwrap();
    let (_, other) = site.read(&now);
    assert_eq!(other, ["boot.*: etc/rc.d/rc.local:1 cannot be read: it is no script of a shell"]);
    // Masked.
    fs::create_dir_all(site.etc().join("systemd/system")).unwrap();
    std::os::unix::fs::symlink("/dev/null", site.etc().join("systemd/system/rc-local.service")).unwrap();
    assert_eq!(site.read(&now), (Vec::new(), Vec::new()));
}

#[test]
fn ifcfg_files_count_where_something_reads_them() {
    let file = "TYPE=Ethernet\nBOOTPROTO=none\nNAME=lo\nDEVICE=\"lo\"\nONBOOT=yes\nMTU=9000\n\
        #MTU=1400\nETHTOOL_OPTS=\"-K ${DEVICE} gro off; -G lo rx $N; -X lo equal 4\"\nNM_CONTROLLED=no\n";
    let ring = "nic.lo.ring.rx";
    let site = Site::new(&[
        ("etc/sysconfig/network-scripts/ifcfg-lo", file),
        ("etc/sysconfig/network-scripts/ifcfg-lo.bak", "DEVICE=lo\nMTU=1\n"),
        ("etc/sysconfig/network-scripts/ifcfg-old", "DEVICE=lo\nONBOOT=no\nMTU=2\n"),
        ("etc/systemd/system/multi-user.target.wants/NetworkManager.service", ""),
    ]);
    let now = [(MTU, FactValue::Int(1500)), (GRO, FactValue::Flag(true)), (ring, FactValue::Int(256))];
    let plugin = "usr/lib64/NetworkManager/1.40.16-1.el8/libnm-settings-plugin-ifcfg-rh.so";
    let service = "etc/rc.d/rc3.d/S10network";
    let touch = |path: &str| {
        let path = site.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    assert_eq!(site.read(&now), (Vec::new(), Vec::new()), "NetworkManager has no plugin for it");
    touch(plugin);
    assert_eq!(site.read(&now), (Vec::new(), Vec::new()), "not one of NetworkManager");
    touch(service);
    let at = "etc/sysconfig/network-scripts/ifcfg-lo";
    let lines = [format!("ifcfg {at}:6 {MTU} 9000"), format!("ifcfg {at}:8 {GRO} off")];
    let gaps = [
        format!("boot.{ring}: {at}:8 cannot be read: ethtool"),
        format!("boot.nic.lo.*: {at}:8 cannot be read: ethtool"),
    ];
    assert_eq!(site.read(&now), (lines.to_vec(), gaps.to_vec()));
    fs::remove_file(site.folder.path().join(service)).unwrap();
    let managed =
        file.replace("NM_CONTROLLED=no\n", "").replace("ETHTOOL_OPTS=\"", "ETHTOOL_OPTS=\"autoneg off; ");
    fs::write(site.folder.path().join(at), managed).unwrap();
    let (of_plugin, _) = site.read(&now);
    assert_eq!(of_plugin, lines);
}
