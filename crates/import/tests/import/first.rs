//! What a stranger is asked first: texts with words of many topics, one of them the right one.

use linerate_import::{Document, ImportOptions, read};
use linerate_model::inventory::Layer;

use super::read_one;

/// The first question about a text.
fn first(text: &str) -> String {
    asked(text).into_iter().next().unwrap_or_default()
}

fn asked(text: &str) -> Vec<String> {
    let snapshot = read_one(Document::new("mail.txt", text));
    let diagnosis = linerate_diagnose::diagnose(&snapshot, crate::knowledge());
    diagnosis.asked.into_iter().map(|missing| missing.command).collect()
}

const LOSS: &str = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.

--- 192.0.2.1 ping statistics ---
1000 packets transmitted, 988 received, 1.2% packet loss, time 10124ms
rtt min/avg/max/mdev = 0.311/0.402/1.203/0.081 ms
";

#[test]
fn loss_at_a_small_board_is_asked_of_its_phy() {
    let text = format!(
        "A gateway with an i.MX6 and a KSZ9031 as PHY loses frames at a plain switch. See\nhttps://forum.example.org/storage/raid-controller-cache, too.\n\ngw:~# uname -a\nLinux gw 5.15.71 #1 SMP PREEMPT armv7l GNU/Linux\ngw:~# ping -q -c 1000 192.0.2.1\n{LOSS}\n-- \nStorage and Drive Systems\n"
    );
    let first = first(&text);
    for part in ["ethtool NIC", "ethtool -S NIC", "--show-eee"] {
        assert!(first.contains(part), "{first}");
    }
    let plain = asked(&format!("gw:~# ping -q -c 1000 192.0.2.1\n{LOSS}"));
    assert!(plain[0].contains("ip -s link") && !plain[0].contains("--show-eee"), "{plain:?}");
}

#[test]
fn a_bond_that_takes_its_members_down_is_asked_of_its_state() {
    let down = |nic: &str| {
        format!("[  131.479939] uplink: link status down for interface {nic}, disabling it in 200 ms\n")
    };
    let text =
        format!("The network of this server breaks after a minute.\n\n{}{}", down("eno4"), down("eno3"));
    assert!(first(&text).contains("/proc/net/bonding/bond0"), "{}", first(&text));
}

#[test]
fn what_pods_lose_is_asked_of_rules_before_offloads() {
    let text = |trouble: &str| format!("Three k3s nodes with flannel. Pods of one node {trouble}\n");
    let lost = first(&text("cannot reach those of the others, requests end with a timeout."));
    assert!(lost.contains("iptables-save") && !lost.contains("ethtool -k"), "{lost}");
    let slow = first(&text("get a throughput of 40 Mbit/s from those of the others."));
    assert!(slow.contains("ethtool -k"), "{slow}");
}

#[test]
fn what_docker_lists_of_itself_is_no_topic() {
    let info = "$ docker info\nServer:\n Storage Driver: overlay2\n Kernel Version: 6.1.0-cloud\n Network: bridge host macvlan null overlay\n Log: fluentd gelf syslog\n Docker Root Dir: /var/lib/docker\n";
    let text = format!("The host downloads with 900 Mbit/s, each container with 3 only.\n\n{info}");
    let first = first(&text);
    assert!(first.contains("ip -d link") && first.contains("container"), "{first}");
}

#[test]
fn slow_folders_of_a_filer_are_asked_of_their_mounts() {
    let text = "Since the home folders are on the new filer, `ls` takes seconds. It has SSDs in a RAID and a\nlarge cache, its drives and its controller idle. NFS 4.1 over the LAN of the office.\n";
    let first = first(text);
    assert!(first.contains("findmnt -t nfs,nfs4") && first.contains("nfsstat -m"), "{first}");
}

#[test]
fn the_head_of_a_report_is_no_report() {
    let head = "root@nas:~# smartctl -a /dev/sdd\nsmartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)\nCopyright (C) 2002-22, Bruce Allen, Christian Franke, www.smartmontools.org\n\n";
    let text = format!("One disk of the RAID is slow.\n\n{head}");
    assert!(first(&text).contains("smartctl -a"), "{}", first(&text));
    let unread = read_one(Document::new("a.txt", text)).imported.unwrap().unread;
    assert!(unread.iter().any(|u| u.why.contains("nothing of the health")), "{unread:?}");
    let healthy = format!("{head}SMART overall-health self-assessment test result: PASSED\n");
    assert!(first(&format!("One disk of the RAID is slow.\n\n{healthy}")).contains("smartctl -a"));
    let whole = format!(
        "{healthy}  9 Power_On_Hours          0x0032   099   099   000    Old_age   Always       -       24\n"
    );
    assert!(!first(&format!("One disk of the RAID is slow.\n\n{whole}")).contains("smartctl -a"));
}

#[test]
fn a_sentence_below_a_report_is_part_of_the_text() {
    let text = "# smartctl -a /dev/sdd\nSMART overall-health self-assessment test result: PASSED\n\nBut what is really slow is the NFS mount, not the disk.\n";
    let words = read_one(Document::new("a.txt", text)).imported.unwrap().words;
    assert!(words.iter().any(|word| word == "nfs"), "{words:?}");
}

#[test]
fn a_drive_is_called_by_the_name_in_the_command() {
    let report = "smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)\nCopyright (C) 2002-22, Bruce Allen\n\n=== START OF SMART DATA SECTION ===\n197 Current_Pending_Sector  0x0012   099   098   000    Old_age   Always       -       24\n";
    for (command, name) in [
        ("smartctl -a /dev/sdb", "sdb"),
        ("sudo smartctl -x -d sat /dev/disk/by-id/ata-WDC_WD40-68N", "ata-WDC_WD40-68N"),
    ] {
        let read = read_one(Document::new("a.txt", format!("{command}\n{report}")));
        let notes = &read.imported.as_ref().unwrap().notes;
        assert!(!notes.iter().any(|note| note.contains("does not name its drive")), "{notes:?}");
        let key = format!("disk_health.{name}.pending_sectors");
        assert!(
            read.facts.values().any(|f| f.readings.contains_key(key.as_str())),
            "{key}: {:?}",
            read.facts
        );
    }
}

#[test]
fn a_table_of_no_known_network_is_asked_about_before_a_setting_is_called_harmless() {
    let table = "       n1    n2    n3    n4\nn1     -     9400  9400  12\nn2     9400  -     9400  15\nn3     9400  9400  -     11\nn4     9400  9400  9400  -\n";
    let feature = |host: &str, state: &str| {
        format!(
            "[root@{host} ~]# ethtool -k eth0\nFeatures for eth0:\nrx-gro-hw: {state}\ntx-udp_tnl-segmentation: on\n"
        )
    };
    let facts: String =
        ["n1", "n2", "n3"].iter().map(|host| feature(host, "off")).chain([feature("n4", "on")]).collect();
    let text = |title: &str| format!("{facts}\n{title}\n\n{table}");
    let unknown = asked(&text("Mbit/s, row sends:"));
    assert!(unknown.iter().any(|command| command.contains("--layer overlay")), "{unknown:?}");
    let known = asked(&text("This is what we got over the vxlan of the cluster (Mbit/s):"));
    assert!(!known.iter().any(|command| command.contains("--layer overlay")), "{known:?}");
    // Causes of either network compete: which one it was decides.
    let first = |title: &str, layer: Option<Layer>| {
        let options = ImportOptions { layer, ..ImportOptions::default() };
        let snapshot = read(&[Document::new("mail.txt", text(title))], &options);
        let diagnosis = linerate_diagnose::diagnose(&snapshot, crate::knowledge());
        diagnosis.findings[0].causes.first().map(|cause| cause.id.clone())
    };
    let overlay = "nic-gro-hw-overlay";
    assert_eq!(first("Mbit/s, row sends:", None).as_deref(), Some(overlay));
    assert_eq!(first("Mbit/s, row sends:", Some(Layer::Overlay)).as_deref(), Some(overlay));
    assert_ne!(first("Mbit/s, row sends:", Some(Layer::Underlay)).as_deref(), Some(overlay));
}
