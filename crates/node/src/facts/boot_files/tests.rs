//! What the files of each owner give, from files below a folder that stands for `/etc`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use super::*;

const RMEM: &str = "sysctl.net.core.rmem_max";
const SACK: &str = "sysctl.net.ipv4.tcp_sack";

/// A host with these files and these settings in force.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(files: &[(&str, &str)]) -> Self {
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
        let mut facts = HostFacts::default();
        facts.readings.extend(now.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        add(&Root::live(), &self.etc(), &[BOOT.to_owned()], &mut facts);
        assert!(facts.readings.contains_key(BOOT_READ) && facts.gaps.is_empty(), "{:?}", facts.gaps);
        let base = format!("{}/", self.folder.path().display());
        let words = |(name, value): (&FactKey, &FactValue)| {
            let key = name.strip_prefix(BOOT)?.split_once('.')?.1;
            let FactValue::List(parts) = value else { return None };
            Some(format!("{} {} {key} {}", parts[0], parts[1].replace(&base, ""), parts[2]))
        };
        facts.readings.beginning_with(BOOT).filter_map(words).collect()
    }
}

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
fn a_unit_that_keep_wrote_counts_where_it_is_enabled_and_as_written() {
    let key = "nic.lo.qdisc";
    let now = FactValue::Text("noqueue".to_owned());
    let Some(crate::change::setting::Persist::Unit { name, description, exec }) =
        super::super::setting_for(key).map(|setting| setting.persist(key, &now))
    else {
        panic!("{key} is kept by a unit");
    };
    let service = format!("etc/systemd/system/{name}.service");
    let link = format!("etc/systemd/system/multi-user.target.wants/{name}.service");
    let site = Site::new(&[(&service, &crate::change::unit::unit_text(&description, &exec))]);
    let now = [(key, now)];
    assert_eq!(site.lines(&now), [""; 0], "not enabled");
    let path = site.folder.path().join(link);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(site.lines(&now), [format!("linerate {service}:1 {key} noqueue")]);
    fs::write(site.folder.path().join(&service), "[Service]\n").unwrap();
    assert_eq!(site.lines(&now), [""; 0], "another text");
}
