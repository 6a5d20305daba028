//! Where a kept value is written on hosts with different owners, that it counts after a boot, and that undo
//! leaves the files as they were: in folders that stand for the files of a host.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use linerate_model::change::Change;
use linerate_sys::root::Root;

use super::*;
use crate::change::host::RealHost;
use crate::change::persist;

const RMEM: &str = "sysctl.net.core.rmem_max";
const MTU: &str = "nic.lo.mtu";
const GRO: &str = "nic.lo.feature.generic-receive-offload";

const NM: &str = "etc/systemd/system/multi-user.target.wants/NetworkManager.service";
const NETWORKING: &str = "etc/systemd/system/multi-user.target.wants/networking.service";
const NETWORKD: &str = "etc/systemd/system/multi-user.target.wants/systemd-networkd.service";
const TUNED: &str = "etc/systemd/system/multi-user.target.wants/tuned.service";
const SYSTEMD: &str = "run/systemd/system/x";

type Files = BTreeMap<String, String>;

/// All files of a folder by their path in it, links left out.
fn files(folder: &Path) -> Files {
    fn add(root: &Path, folder: &Path, all: &mut Files) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                add(root, &path, all);
            } else if let Ok(text) = fs::read_to_string(&path) {
                all.insert(path.strip_prefix(root).unwrap().display().to_string(), text);
            }
        }
    }
    let mut all = Files::new();
    add(folder, folder, &mut all);
    all
}

/// What stands for the text of a link.
const LINK: &str = "-> ";

/// Keeps a value on a host with these files. Gives what was written, by path, or why it cannot stay; what is
/// written is what counts after a boot, and an undo leaves every file as it was.
#[allow(clippy::needless_pass_by_value, reason = "a value is made where it is kept")]
fn keep(host_files: &[(&str, &str)], key: &str, value: FactValue) -> Result<Files, String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in host_files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix(LINK) {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    let etc = folder.path().join("etc");
    fs::create_dir_all(&etc).unwrap();
    let before = files(folder.path());
    let host = RealHost::new(Root::live());
    let change = Change { host: "h".into(), key: key.into(), from: FactValue::Int(0), to: value.clone() };
    let edits = persist::plan(&host, "h", &etc, &[change]).map_err(|error| error.line())?;
    persist::write(&host, "h", &edits).unwrap();
    for edit in &edits {
        persist::check_edit(&host, &etc, edit).unwrap();
    }
    let mut after = files(folder.path());
    let mut facts = HostFacts::default();
    facts.readings.insert(key.to_owned(), value.clone());
    add(&Root::live(), &etc, &[BOOT.to_owned()], &mut facts);
    assert!(facts.gaps.is_empty(), "{:?}", facts.gaps);
    let last = facts.readings.beginning_with(BOOT).filter(|(name, _)| name.ends_with(key)).last();
    let Some((_, FactValue::List(parts))) = last else { panic!("no file gives {key}: {after:?}") };
    assert!(FactValue::Text(parts[2].clone()).is_same(&value), "{parts:?}: {after:?}");
    assert!(persist::restore(&host, "h", &edits).is_empty());
    assert_eq!(files(folder.path()), before, "undo");
    after.retain(|path, text| before.get(path) != Some(text));
    Ok(after)
}

fn only(files: &Files) -> (&str, &str) {
    assert_eq!(files.len(), 1, "{files:?}");
    let (path, text) = files.iter().next().unwrap();
    (path, text)
}

#[test]
fn a_sysctl_is_written_where_it_counts_last() {
    let keep = |files: &[(&str, &str)]| keep(files, RMEM, FactValue::Int(7));
    let alone = keep(&[(SYSTEMD, "")]).unwrap();
    assert_eq!(only(&alone).0, "etc/sysctl.d/90-linerate.conf");
    let early = keep(&[(SYSTEMD, ""), ("etc/sysctl.d/10-x.conf", "net.core.rmem_max=1\n")]).unwrap();
    assert_eq!(only(&early).0, "etc/sysctl.d/90-linerate.conf");
    let late = keep(&[(SYSTEMD, ""), ("usr/lib/sysctl.d/99-x.conf", "net.core.rmem_max=1\n")]).unwrap();
    assert_eq!(only(&late).0, "etc/sysctl.d/zz-linerate.conf");
    let last = keep(&[(SYSTEMD, ""), ("etc/sysctl.d/zzz.conf", "net/core/rmem_max=1\n")]).unwrap_err();
    assert!(last.contains("etc/sysctl.d/zzz.conf:1 sets it after every file of this program"), "{last}");
    // The file of old, where it counts: no systemd, or its link in `sysctl.d`.
    let conf = ("etc/sysctl.conf", "# x\nnet.core.rmem_max = 1\nvm.swappiness = 1\n");
    let text = "# x\nnet.core.rmem_max = 7\nvm.swappiness = 1\n";
    assert_eq!(only(&keep(&[conf]).unwrap()), ("etc/sysctl.conf", text));
    assert_eq!(only(&keep(&[conf, (SYSTEMD, "")]).unwrap()).0, "etc/sysctl.d/90-linerate.conf");
    let linked = keep(&[conf, (SYSTEMD, ""), ("etc/sysctl.d/99-sysctl.conf", "-> ../sysctl.conf")]).unwrap();
    assert_eq!(linked.get("etc/sysctl.conf").map(String::as_str), Some(text));
    let copied = keep(&[conf, (SYSTEMD, ""), ("etc/sysctl.d/99-sysctl.conf", conf.1)]);
    assert!(copied.unwrap_err().contains("99-sysctl.conf:2 of sysctl.d gives 1"), "a copy is no link");
}

/// A line of `sysctl.d` for what a module brings does nothing where that is loaded later.
#[test]
fn the_module_of_a_sysctl_is_loaded_before_its_value_is_set() {
    let keep = |files: &[(&str, &str)]| {
        let key = "sysctl.net.netfilter.nf_conntrack_max";
        keep(&[&[(SYSTEMD, "")], files].concat(), key, FactValue::Int(7)).unwrap()
    };
    let module = ("sys/module/nf_conntrack/initstate", "live\n");
    let loaded = "etc/modules-load.d/90-linerate-nf_conntrack_max.conf";
    let kept = keep(&[module]);
    assert_eq!(kept.keys().collect::<Vec<_>>(), [loaded, "etc/sysctl.d/90-linerate.conf"]);
    assert_eq!(kept[loaded].lines().last(), Some("nf_conntrack"));
    // The file of another trial goes away with it.
    let own = ("etc/modules-load.d/90-linerate-nf_conntrack_buckets.conf", "nf_conntrack\n");
    assert!(keep(&[module, own]).contains_key(loaded));
    for early in [
        ("usr/lib/modules-load.d/firewall.conf", "# x\nnf-conntrack\n"),
        ("etc/modules", "nf_conntrack\n"),
        ("etc/udev/rules.d/9.rules", "KERNEL==\"nf_conntrack\", RUN+=\"/usr/lib/systemd/systemd-sysctl\"\n"),
    ] {
        assert_eq!(only(&keep(&[module, early])).0, "etc/sysctl.d/90-linerate.conf", "{early:?}");
    }
    assert_eq!(only(&keep(&[])).0, "etc/sysctl.d/90-linerate.conf", "it is part of the kernel");
}

#[test]
fn a_profile_of_tuned_that_sets_the_key_is_where_it_is_kept() {
    let keep = |main: &str, files: &[(&str, &str)]| {
        let tuned = [
            (SYSTEMD, ""),
            (TUNED, ""),
            ("etc/tuned/active_profile", "fast\n"),
            ("etc/tuned/tuned-main.conf", main),
        ];
        keep(&[&tuned, files].concat(), RMEM, FactValue::Int(7)).unwrap()
    };
    let vendor = ("usr/lib/tuned/fast/tuned.conf", "[main]\nsummary=x\n[sysctl]\nnet.core.rmem_max=1\n");
    let again = keep("reapply_sysctl = 1\n", &[vendor]);
    assert_eq!(only(&again).0, "etc/sysctl.d/90-linerate.conf", "it applies it again");
    let never = keep("reapply_sysctl = 0\n", &[vendor]);
    let (path, text) = only(&never);
    assert_eq!(path, "etc/tuned/fast/tuned.conf");
    assert!(text.ends_with("[main]\ninclude=fast\n\n[sysctl]\nnet.core.rmem_max=7\n"), "{text}");
    let own = ("etc/tuned/fast/tuned.conf", "[sysctl]\nnet.core.rmem_max=1\nvm.swappiness=1\n");
    let edited = keep("reapply_sysctl = 0\n", &[vendor, own]);
    let text = "[sysctl]\nnet.core.rmem_max=7\nvm.swappiness=1\n";
    assert_eq!(only(&edited), ("etc/tuned/fast/tuned.conf", text));
    let conf = ("etc/sysctl.conf", "net.core.rmem_max=1\n");
    assert_eq!(only(&keep("", &[vendor, conf])).0, "etc/sysctl.conf", "tuned reads it last");
    let other = ("usr/lib/tuned/fast/tuned.conf", "[sysctl]\nvm.swappiness=1\n");
    assert_eq!(only(&keep("reapply_sysctl = 0\n", &[other])).0, "etc/sysctl.d/90-linerate.conf");
}

#[test]
fn a_link_file_stands_before_the_one_that_matched_and_has_what_that_had() {
    let keep = |name: &str, text: &str| keep(&[(name, text)], MTU, FactValue::Int(9000));
    let usual = "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep path\nMACAddressPolicy=none\n";
    let files = keep("usr/lib/systemd/network/99-default.link", usual).unwrap();
    let (path, text) = only(&files);
    assert_eq!(path, "etc/systemd/network/10-linerate-lo.link");
    assert!(text.ends_with("[Link]\nName=lo\nMACAddressPolicy=none\nMTUBytes=9000\n"), "{text}");
    let site = "[Match]\nOriginalName=lo\n[Link]\nMTUBytes=1\nTransmitQueueLength=5\n";
    let files = keep("etc/systemd/network/05-site.link", site).unwrap();
    let (path, text) = only(&files);
    assert_eq!(path, "etc/systemd/network/00-linerate-lo.link");
    assert!(text.contains("\nTransmitQueueLength=5\n") && !text.contains("MTUBytes=1\n"), "{text}");
    let first = keep("etc/systemd/network/00-a.link", site).unwrap_err();
    assert!(first.contains("00-a.link matches lo before every file of this program"), "{first}");
}

#[test]
fn the_profile_of_networkmanager_has_what_it_configures() {
    let profile = "[connection]\nid=x\ntype=ethernet\ninterface-name=lo\n\n[ethernet]\nmtu=1400\n\n[ipv4]\nmethod=auto\n";
    let path = "etc/NetworkManager/system-connections/x.nmconnection";
    let host = [(NM, ""), (path, profile)];
    let mtu = keep(&host, MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&mtu), (path, profile.replace("1400", "9000").as_str()));
    let gro = keep(&host, GRO, FactValue::Flag(false)).unwrap();
    assert_eq!(only(&gro), (path, (profile.to_owned() + "[ethtool]\nfeature-gro=false\n").as_str()));
    // Without the service, and for what it knows nothing of, it rules nothing.
    let link = keep(&host[1..], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link");
    let queue = keep(&host, "nic.lo.txqueuelen", FactValue::Int(500)).unwrap();
    assert_eq!(only(&queue).0, "etc/systemd/network/10-linerate-lo.link");
    // A profile of every device takes no value of one, and counts last where it sets it.
    let any = profile.replace("interface-name=lo\n", "");
    let refused = keep(&[(NM, ""), (path, &any)], MTU, FactValue::Int(9000)).unwrap_err();
    assert!(refused.contains("x.nmconnection:6 of NetworkManager gives 1400 after a boot"), "{refused}");
    let unset = any.replace("mtu=1400\n", "");
    let link = keep(&[(NM, ""), (path, &unset)], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link");
    let wifi = profile.replace("type=ethernet", "type=wifi");
    let link = keep(&[(NM, ""), (path, &wifi)], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link");
}

#[test]
fn the_stanza_of_ifupdown_has_the_mtu_and_what_it_sets_itself() {
    let main = "auto lo eth1\nsource /etc/network/interfaces.d/*\niface eth1 inet dhcp\n    mtu 1400\n";
    let part = "# site\niface lo inet static\n    address 10.0.0.1/24\n    offload-gro on\n";
    let (file, path) = ("etc/network/interfaces", "etc/network/interfaces.d/lo");
    let host = [(NETWORKING, ""), (file, main), (path, part)];
    let mtu = keep(&host, MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&mtu), (path, (part.to_owned() + "    mtu 9000\n").as_str()));
    let gro = keep(&host, GRO, FactValue::Flag(false)).unwrap();
    assert_eq!(only(&gro), (path, part.replace("gro on", "gro off").as_str()));
    let tso = keep(&host, "nic.lo.feature.tcp-segmentation-offload", FactValue::Flag(false)).unwrap();
    assert_eq!(only(&tso).0, "etc/systemd/network/10-linerate-lo.link");
    // A device that is not brought up at boot, and a method without the option.
    let down = main.replace("auto lo", "auto");
    let link = keep(&[(NETWORKING, ""), (file, &down), (path, part)], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link");
    let tunnel = part.replace("static", "loopback");
    let link = keep(&[(NETWORKING, ""), (file, main), (path, &tunnel)], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link");
}

#[test]
fn netplan_and_networkd_rule_the_mtu_of_their_devices() {
    let plan = "network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    eth7:\n      mtu: 1400\n    store: # first\n      match: \n        name: \"lo\"\n      addresses: [10.0.0.1/24]\n      mtu: 1500\n";
    let path = "etc/netplan/50-cloud-init.yaml";
    let files = keep(&[(NETWORKD, ""), (path, plan)], MTU, FactValue::Int(9000)).unwrap();
    let (own, text) = only(&files);
    assert_eq!(own, "etc/netplan/zz-linerate-store.yaml");
    assert!(
        text.ends_with("\nnetwork:\n  version: 2\n  ethernets:\n    store:\n      mtu: 9000\n"),
        "{text}"
    );
    let later = ("etc/netplan/zzz.yaml", plan);
    let refused = keep(&[(path, plan), later], MTU, FactValue::Int(9000)).unwrap_err();
    assert!(refused.contains("zzz.yaml:11 of netplan gives 1500 after a boot"), "{refused}");
    let queue = keep(&[(path, plan)], "nic.lo.txqueuelen", FactValue::Int(500)).unwrap();
    assert_eq!(only(&queue).0, "etc/systemd/network/10-linerate-lo.link");

    let network = ("etc/systemd/network/20-lo.network", "[Match]\nName=lo\n[Link]\nMTUBytes=1500\n");
    let files = keep(&[(NETWORKD, ""), network], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&files).0, "etc/systemd/network/20-lo.network.d/90-linerate.conf");
    let all = (network.0, "[Match]\nName=l* e*\n[Link]\nMTUBytes=1500\n");
    let refused = keep(&[(NETWORKD, ""), all], MTU, FactValue::Int(9000)).unwrap_err();
    assert!(refused.contains("20-lo.network:4 sets it for more devices than lo"), "{refused}");
    let link = keep(&[network], MTU, FactValue::Int(9000)).unwrap();
    assert_eq!(only(&link).0, "etc/systemd/network/10-linerate-lo.link", "networkd does not start");
}

#[test]
fn a_line_that_counts_after_every_file_of_ours_is_the_reason() {
    let refused = |files: &[(&str, &str)]| keep(files, MTU, FactValue::Int(9000)).unwrap_err();
    let rule = "ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"lo\", ATTR{mtu}=\"1400\"\n";
    let late = refused(&[("etc/udev/rules.d/90-x.rules", rule)]);
    assert!(late.contains("90-x.rules:1 of udev gives 1400 after a boot"), "{late}");
    let other = rule.replace("\"lo\"", "\"eth*\"") + &rule.replace("KERNEL", "ENV{X}") + "# " + rule;
    assert!(keep(&[("etc/udev/rules.d/90-x.rules", &other)], MTU, FactValue::Int(9000)).is_ok());
    let active = [(TUNED, ""), ("etc/tuned/active_profile", "x\n")];
    let net = ("etc/tuned/x/tuned.conf", "[net]\ndevices=l*\nmtu=1400\nring=rx 64 tx 32\n");
    let tuned = refused(&[&active[..], &[net]].concat());
    assert!(tuned.contains("tuned.conf:3 of tuned gives 1400 after a boot"), "{tuned}");
    let least = (net.0, "[net]\nmtu=>1400\n[sysctl]\nnet.core.rmem_max=>8\n");
    let host = [&active[..], &[least, ("etc/tuned/tuned-main.conf", "reapply_sysctl=0\n")]].concat();
    assert!(keep(&host, MTU, FactValue::Int(9000)).is_ok(), "it raises no larger one");
    let raised = keep(&host, RMEM, FactValue::Int(7)).unwrap();
    assert_eq!(only(&raised).0, "etc/tuned/x/tuned.conf");
    assert_ne!(only(&keep(&host, RMEM, FactValue::Int(9)).unwrap()).0, "etc/tuned/x/tuned.conf");
    let not = (net.0, "[net]\ndevices=!lo\nmtu=1400\n");
    assert!(keep(&[&active[..], &[not]].concat(), MTU, FactValue::Int(9000)).is_ok());
}

#[test]
fn an_option_of_a_module_counts_before_all_files_of_sysctls() {
    const BUCKETS: &str = "sysctl.net.netfilter.nf_conntrack_buckets";
    let options = ("etc/modprobe.d/x.conf", "# x\noptions nf-conntrack expect_hashsize=1 hashsize=65536\n");
    let kept = keep(&[options, (SYSTEMD, "")], BUCKETS, FactValue::Int(131_072)).unwrap();
    assert_eq!(only(&kept).0, "etc/sysctl.d/90-linerate.conf");
    let root = Root::live();
    let host = HostFiles {
        tree: Tree::new(&root, Path::new("/nonexistent/etc"))
            .with([("/nonexistent/etc/modprobe.d/x.conf".to_owned(), options.1.to_owned())].into()),
        settings: vec![(BUCKETS.to_owned(), FactValue::Int(1))],
        view: View::new(&root, None, &[]),
    };
    let lines = modprobe::Modprobe.lines(&host).unwrap();
    assert_eq!((lines.len(), lines[0].value.as_str()), (1, "65536"));
}
