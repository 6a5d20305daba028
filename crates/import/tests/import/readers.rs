//! Readers of one tool each: what they make of its output, in keys that knowledge files match.

use super::{account, counter, fact, file, read_one, under_prompt, whole};
use linerate_import::Document;
use linerate_model::fact::FactValue;
use linerate_model::snapshot::{Snapshot, StoragePattern};

/// A fact of the host of the prompt, as text.
fn text(read: &Snapshot, key: &str) -> String {
    fact(read, "arc-1", key).map(ToString::to_string).unwrap_or_default()
}

/// Reads a fixture below a prompt; nothing of it may be left.
fn all(name: &str, command: &str) -> Snapshot {
    let read = under_prompt(name, command);
    let read = read_one(read);
    whole(&read);
    read
}

/// Facts with their values as text.
fn has(read: &Snapshot, facts: &[(&str, &str)]) {
    for (key, value) in facts {
        assert_eq!(&text(read, key), value, "{key}: {:?}", read.facts);
    }
}

/// Counters with their values.
fn counts(read: &Snapshot, counters: &[(&str, i64)]) {
    for (key, value) in counters {
        assert_eq!(counter(read, "arc-1", key), Some(*value), "{key}: {:?}", read.facts["arc-1"].counters);
    }
}

#[test]
fn files_of_sys() {
    let read = all("sysfs-grep.txt", "grep . /sys/class/net/eth0/statistics/*");
    has(
        &read,
        &[("nic.eth0.mtu", "1500"), ("nic.eth0.speed_mbit", "10000"), ("disk.sda.scheduler", "mq-deadline")],
    );
    counts(&read, &[("nic.eth0.stat.rx_missed_errors", 7_012_345)]);
    let numbers: String = (1..=24).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    let cat = |path: &str, numbers: &str| {
        read_one(Document::new("x.txt", format!("[root@arc-1 ~]# cat {path}\n{numbers}")))
    };
    let read = cat("/sys/class/net/eth0/statistics/*", &numbers);
    counts(&read, &[("nic.eth0.stat.rx_dropped", 6), ("nic.eth0.stat.tx_window_errors", 24)]);
    counts(&cat("/sys/class/net/eth0/statistics/rx_dropped", "7\n"), &[("nic.eth0.stat.rx_dropped", 7)]);
    // Nothing shows the device of a number.
    let read = cat("/sys/class/net/*/statistics/*", &numbers);
    assert!(account(&read).unread[0].why.contains("without names"), "{:?}", account(&read).unread);
}

#[test]
fn text_of_fio() {
    let read = all("fio-randwrite.txt", "fio --name=randwrite --rw=randwrite --bs=4k --direct=1");
    let figure = &read.storage[0];
    assert_eq!((figure.pattern, figure.requests_per_s), (StoragePattern::RandomWrite, Some(12_300.0)));
    assert_eq!((figure.bytes_per_s, figure.wait_ms), (48.0 * 1_048_576.0, Some(10.3325)));
    assert_eq!(read.storage.len(), 1);
    assert!(account(&read).notes.is_empty(), "{:?}", account(&read).notes);
}

#[test]
fn downloads_through_front_ends() {
    let read = all("wget.txt", "wget http://arc-1/file.fits");
    let fetches = &super::measured(&read.samples[0]).tx.as_ref().unwrap().http;
    let rates: Vec<(&str, u64)> =
        fetches.iter().map(|f| (f.via.as_str(), (f.bytes as f64 * 1000.0 / f.total_ms) as u64)).collect();
    assert_eq!(rates, [("arc-1", 32_768), ("arc-3", 104_857_600)]);
    let read = all("curl.txt", "curl -o /dev/null http://arc-2/file.fits");
    let fetches = &super::measured(&read.samples[0]).tx.as_ref().unwrap().http;
    assert_eq!((fetches[0].via.as_str(), fetches[0].bytes), ("arc-2", 104_857_600));
}

#[test]
fn nodes_of_slurm() {
    let read = read_one(file("sinfo-lN.txt"));
    let of = |read: &Snapshot, host: &str, key: &str| fact(read, host, key).map(ToString::to_string);
    assert_eq!(of(&read, "node01", "slurm.reason").as_deref(), Some("HDFS mount lost"));
    assert_eq!(of(&read, "node02", "slurm.state").as_deref(), Some("idle"));
    assert_eq!(of(&read, "node02", "slurm.reason"), None);
    let read = read_one(file("sinfo-R.txt"));
    whole(&read);
    assert_eq!(of(&read, "node03", "slurm.reason").as_deref(), Some("HDFS mount lost"));
    assert_eq!(read.facts.len(), 4);
}

#[test]
fn volumes_of_lvm() {
    let read = all("lvs.txt", "lvs");
    has(
        &read,
        &[
            ("lvm.vg_a/home.size", "2.00t"),
            ("lvm.vg_a/home.sync_percent", "42.17"),
            ("lvm.vg_a/root.sync_percent", ""),
        ],
    );
}

#[test]
fn a_driver_and_its_file() {
    let read = all("modinfo.txt", "modinfo mlx4_en");
    has(&read, &[("module.mlx4_en.version", "4.0-1.0.1")]);
    assert!(text(&read, "module.mlx4_en.path").contains("weak-updates"));
}

#[test]
fn counters_of_protocols_and_devices() {
    let read = all("netstat-s.txt", "netstat -s");
    counts(
        &read,
        &[
            ("snmp.Tcp.RetransSegs", 588),
            ("snmp.Ip.ReasmFails", 37),
            ("snmp.Udp.RcvbufErrors", 3311),
            ("netstat.TcpExt.ListenOverflows", 211),
            ("netstat.TcpExt.TCPLostRetransmit", 17),
        ],
    );
    let read = all("nstat.txt", "nstat -az");
    counts(&read, &[("snmp.Tcp.RetransSegs", 588), ("netstat.TcpExt.TCPLostRetransmit", 17)]);
    let read = all("netstat-i.txt", "netstat -i");
    counts(&read, &[("nic.eth0.stat.rx_dropped", 4711), ("nic.eth0.stat.rx_errors", 3)]);
    has(&read, &[("nic.eth0.mtu", "1500")]);
}

#[test]
fn rules_of_firewalls() {
    let read = all("iptables-save.txt", "iptables-save");
    has(
        &read,
        &[
            ("firewall.input.policy", "drop"),
            ("firewall.input.rules", "4"),
            ("firewall.input.random", "1"),
            ("firewall.input.limits", "1"),
            ("firewall.forward.policy", "accept"),
            ("firewall.prerouting.rules", ""),
        ],
    );
    let read = all("iptables-L-v.txt", "iptables -L -v -n");
    has(
        &read,
        &[("firewall.input.drops", "1"), ("firewall.input.rules", "2"), ("firewall.forward.policy", "drop")],
    );
    counts(&read, &[("firewall.input.dropped_packets", 7012)]);
    let read = all("nft.txt", "nft list ruleset");
    has(
        &read,
        &[("firewall.input.drops", "2"), ("firewall.input.limits", "1"), ("firewall.forward.policy", "drop")],
    );
    counts(&read, &[("firewall.input.dropped_packets", 7012)]);
}

#[test]
fn lines_of_the_kernel() {
    let read = all("dmesg.txt", "dmesg -T");
    has(
        &read,
        &[
            ("nic.eth0.speed_mbit", "1000"),
            ("nic.eth0.log.link_down", "1"),
            ("nic.eth0.log.tx_timeout", "1"),
            ("disk.sdb.log.io_error", "1"),
            ("kernel.log.conntrack_full", "2"),
            ("pci.0000:03:00.0.pcie.width", "4"),
            ("pci.0000:03:00.0.pcie.max_width", "8"),
        ],
    );
}

#[test]
fn links_on_the_bus_belong_to_their_device() {
    let text = String::from_utf8(super::bytes("lspci-vv.txt")).unwrap();
    let session = format!(
        "[root@arc-1 ~]# ethtool -i eth0\ndriver: ixgbe\nbus-info: 0000:03:00.0\n[root@arc-1 ~]# lspci -vv\n{text}"
    );
    let read = read_one(Document::new("x.txt", session));
    whole(&read);
    has(
        &read,
        &[
            ("nic.eth0.pcie.width", "4"),
            ("nic.eth0.pcie.max_width", "8"),
            ("nic.eth0.pcie.speed_gts", "2.5"),
            ("nic.eth0.pcie.max_speed_gts", "5"),
        ],
    );
}

#[test]
fn processors_and_rates() {
    let read = read_one(file("mpstat.txt"));
    whole(&read);
    let of = |key: &str| fact(&read, "store-1", key).map(ToString::to_string).unwrap_or_default();
    assert_eq!((of("cpu.busiest"), of("cpu.0.soft_percent")), ("0".to_owned(), "99".to_owned()));
    let read = read_one(file("sar-n.txt"));
    whole(&read);
    let of = |key: &str| fact(&read, "store-1", key).map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        (of("nic.eth0.rate.rx_dropped_per_s"), of("tcp.rate.retransmits_per_s")),
        ("30".to_owned(), "112".to_owned())
    );
    let read = all("numactl-H.txt", "numactl -H");
    has(&read, &[("cpu.numa_nodes", "2"), ("cpu.numa.1.cpus", "4 5 6 7")]);
}

#[test]
fn connections_in_short() {
    let read = all("tcpretrans.txt", "tcpretrans");
    has(&read, &[("tcpretrans.count", "3"), ("tcpretrans.to.10/0/0/2", "2")]);
    let read = all("ss-s.txt", "ss -s");
    has(&read, &[("sockets.tcp.estab", "40"), ("sockets.tcp.orphaned", "3")]);
    let read = all("docker-network.json", "docker network inspect ingress");
    has(&read, &[("docker.network.ingress.driver", "overlay"), ("docker.network.ingress.mtu", "9000")]);
}

#[test]
fn collectives_of_nccl() {
    let read = read_one(file("nccl-tests.txt"));
    whole(&read);
    let best = fact(&read, "gpu02", "nccl.busbw_best_gbyte_per_s");
    assert_eq!(best, Some(&FactValue::Float(11.69)));
}

#[test]
fn drops_of_several_hosts_by_interval() {
    let read = read_one(file("drops-per-interval.md"));
    whole(&read);
    let series: Vec<(&str, f64, &[f64])> =
        read.watched.iter().map(|w| (w.host.as_str(), w.every_s, w.growth.as_slice())).collect();
    assert_eq!(series[2], ("vs-4", 10.0, [30.0, 24.0, 11.0, 9.0].as_slice()));
    assert_eq!(read.watched[0].key, "nic.any.stat.rx_dropped");
    let read = read_one(Document::new(
        "mail.txt",
        "I sampled /sys/class/net/em1/statistics/rx_dropped every\n10 s and took the differences:\n\n\
         time      vs-2  vs-3\n14:20:10    30     0\n14:20:20    22     0\n14:20:30    13     1\n",
    ));
    assert_eq!((read.watched.len(), read.watched[0].key.as_str()), (2, "nic.em1.stat.rx_dropped"));
}

#[test]
fn lists_of_rates_and_sentences_about_groups() {
    let read = read_one(Document::new(
        "mail.txt",
        "Sixteen pairs at once (Gbits/sec of [SUM]):\n\nwn01  -> wn65    4.71\nwn02  -> wn66    4.69\n\n\
         wn01 and wn02 are on switch sw1, wn65 and wn66\non switch sw2.\n",
    ));
    assert_eq!(super::rates(&read), [super::is("wn01", "wn65", 4710.0), super::is("wn02", "wn66", 4690.0)]);
    let groups: Vec<(&str, &str)> = read
        .inventory
        .hosts
        .iter()
        .filter_map(|h| Some((h.name.as_str(), h.groups.first()?.as_str())))
        .collect();
    assert_eq!(groups, [("wn01", "sw1"), ("wn65", "sw2"), ("wn02", "sw1"), ("wn66", "sw2")]);
    assert_eq!(read.inventory.groups[0].kind, "switch");
}

#[test]
fn copies_of_dd_and_queueing_disciplines() {
    let read = all("dd.txt", "dd if=/dev/zero of=/mnt/drbd/x bs=1M count=8192 oflag=direct");
    assert_eq!(
        (read.storage[0].pattern, read.storage[0].bytes_per_s.round()),
        (StoragePattern::Write, 170_092_662.0)
    );
    let read = all("tc-qdisc.txt", "tc -s qdisc show dev eth0");
    has(&read, &[("nic.eth0.qdisc", "tbf"), ("nic.eth0.qdisc_rate_bit", "10000000")]);
    counts(&read, &[("nic.eth0.stat.qdisc_dropped", 712)]);
}

#[test]
fn a_loop_over_hosts_names_each_of_them() {
    let read = read_one(Document::new(
        "mail.txt",
        "root@vs-4:~# for h in vs-2 vs-3; do ssh $h 'hostname; ethtool -k em1 | grep gro'; done\nvs-2\n\
         rx-gro-hw: off [fixed]\nvs-3\nrx-gro-hw: on\n",
    ));
    whole(&read);
    for (host, on) in [("vs-2", false), ("vs-3", true)] {
        assert_eq!(fact(&read, host, "nic.em1.feature.rx-gro-hw"), Some(&FactValue::Flag(on)), "{host}");
    }
}

#[test]
fn parts_of_ifconfig_and_of_drivers() {
    let read = read_one(Document::new(
        "mail.txt",
        "[root@arc-1 ~]# ifconfig eth0 | grep errors\n          RX packets:204564288 errors:3193970 dropped:0 overruns:0 frame:3138402\n\
         [root@arc-1 ~]# ethtool -S eth0 | grep miss\n     rx_missed_errors: 7012345\n",
    ));
    whole(&read);
    counts(
        &read,
        &[
            ("nic.eth0.stat.rx_frame_errors", 3_138_402),
            ("nic.eth0.stat.rx_errors", 3_193_970),
            ("nic.eth0.stat.rx_missed_errors", 7_012_345),
        ],
    );
}

#[test]
fn a_resource_file_that_a_mail_broke() {
    let read = read_one(Document::new(
        "mail.txt",
        "[root@arc-1 ~]# cat /etc/drbd.conf\ncommon { syncer { rate 300M; } }\nresource r0 {\n  protocol C;\n  net { max-buffers\n8000; }\n  on left { device /dev/drbd0; address sdp\n192.168.40.1:7788; }\n}\n",
    ));
    whole(&read);
    has(
        &read,
        &[
            ("drbd.common.disk.resync-rate", "300M"),
            ("drbd.r0.net.protocol", "C"),
            ("drbd.r0.net.max-buffers", "8000"),
            ("drbd.r0.address_family", "sdp"),
        ],
    );
}

#[test]
fn flow_control_and_energy_saving() {
    let pause = "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\nRX negotiated: off\n";
    let eee = "EEE settings for eth0:\n\tEEE status: enabled - active\n\tTx LPI: 17 (us)\n\t\
               Supported EEE link modes:  100baseT/Full\n\t                           1000baseT/Full\n";
    let read = read_one(Document::new("x.txt", format!("[root@arc-1 ~]# ethtool -a eth0\n{pause}{eee}")));
    whole(&read);
    has(
        &read,
        &[
            ("nic.eth0.pause.rx", "on"),
            ("nic.eth0.pause.tx", "off"),
            ("nic.eth0.pause.rx_negotiated", "off"),
            ("nic.eth0.eee.active", "on"),
            ("nic.eth0.eee.tx_lpi_enabled", "on"),
        ],
    );
    let off = "[root@arc-1 ~]# ethtool --show-eee eth1\nEEE settings for eth1:\n\tEEE status: disabled\n";
    has(
        &read_one(Document::new("x.txt", off)),
        &[("nic.eth1.eee.enabled", "off"), ("nic.eth1.eee.active", "off")],
    );
}

#[test]
fn caches_of_a_controller() {
    let drive = |number: u32, current: &str| {
        format!(
            "Virtual Drive: {number} (Target Id: {number})\nState               : Optimal\n\
             Strip Size          : 64 KB\nDefault Cache Policy: WriteBack, Direct\nCurrent Cache Policy: {current}, Direct\n"
        )
    };
    let both = format!(
        "[root@arc-1 ~]# megacli -LDInfo -Lall -aALL\n\nAdapter 0 -- Virtual Drive Information:\n{}\n{}\n\
         Exit Code: 0x00\n",
        drive(0, "WriteBack"),
        drive(1, "WriteThrough")
    );
    let read = read_one(Document::new("x.txt", both));
    whole(&read);
    has(
        &read,
        &[
            ("raid.vd0.cache_current", "WriteBack, Direct"),
            ("raid.vd1.cache_current", "WriteThrough, Direct"),
            ("raid.vd1.state", "Optimal"),
        ],
    );
}

#[test]
fn mounts_and_the_sizes_of_their_requests() {
    let lines = "store:/ on /mnt type nfs4 (rw,relatime,rsize=1024,wsize=2048,hard)\n/dev/sda1 on / type ext4 (rw)\n\
                 store:/x /mnt/a.b nfs4 rw,rsize=1048576 0 0\n";
    let read = read_one(Document::new("x.txt", format!("[root@arc-1 ~]# mount\n{lines}")));
    whole(&read);
    has(
        &read,
        &[
            ("nfs./mnt.rsize", "1024"),
            ("nfs./mnt.wsize", "2048"),
            ("nfs./mnt/a_b.rsize", "1048576"),
            ("mount./", "ext4 /dev/sda1 rw"),
        ],
    );
}

#[test]
fn pools_of_zfs() {
    let status = "  pool: tank\n state: DEGRADED\n  scan: resilver in progress since Mon Jun 22 12:58:29 2020\n\
                  \t526G resilvered, 56,89% done, no estimated completion time\nconfig:\n\n\
                  \tNAME        STATE     READ WRITE CKSUM\n\ttank        DEGRADED     0     0     0\n\
                  \t  mirror-0  DEGRADED     0     0     0\n\t    sda       ONLINE       0     0     3\n\
                  \t    sdb       ONLINE       0     0     0  (resilvering)\n\nerrors: No known data errors\n";
    let read = read_one(Document::new("x.txt", format!("[root@arc-1 ~]# zpool status\n{status}")));
    whole(&read);
    has(
        &read,
        &[
            ("zpool.tank.state", "DEGRADED"),
            ("zpool.tank.running", "resilver"),
            ("zpool.tank.done_percent", "56.89"),
        ],
    );
    counts(&read, &[("zpool.tank.sda.errors", 3), ("zpool.tank.sdb.errors", 0)]);
}

#[test]
fn rules_that_were_counted() {
    let read = typed("iptables -L -t nat | wc -l", "164757\n");
    has(&read, &[("firewall.prerouting.rules", "164757")]);
    for command in ["iptables -L | grep -c x | wc -l", "ls | wc -l"] {
        assert!(
            typed(command, "164757\n").facts.values().all(|facts| facts.readings.is_empty()),
            "{command}"
        );
    }
}

#[test]
fn quotas_of_cgroups() {
    let read = typed("cat cpu.stat", "nr_periods 5312\nnr_throttled 34\nthrottled_time 4021\n");
    has(&read, &[("cpu.quota.periods", "5312"), ("cpu.quota.throttled", "34")]);
}

#[test]
fn arrays_of_md() {
    let text = "Personalities : [raid1] [raid6] [raid5] [raid4] [raid10]\n\
                md2 : active raid5 sdd3[3] sdc3[1](F) sdb3[0] sde3[4](S)\n\
                \x20     1932506048 blocks super 1.2 level 5, 512k chunk, algorithm 2 [3/2] [U_U]\n\
                \x20     [>....................]  recovery =  1.6% (15423100/976630464) finish=80.0min speed=200000K/sec\n\
                \x20     bitmap: 3/15 pages [12KB], 65536KB chunk\n\n\
                md_d1 : active (auto-read-only) raid1 nvme1n1p2[1] nvme0n1p2[0]\n\
                \x20     976630464 blocks super 1.2 [2/2] [UU]\n\
                \x20     [=>...................]  check =  9.1% (89000000/976630464) finish=300.1min speed=97000K/sec\n\n\
                md3 : inactive sdf1[2](S)\n      5242880 blocks super 1.2\n\nunused devices: <none>\n";
    let read = read_one(Document::new("x.txt", format!("[root@arc-1 ~]# cat /proc/mdstat\n{text}")));
    whole(&read);
    has(
        &read,
        &[
            ("disk.md2.md_level", "raid5"),
            ("disk.md2.md_degraded", "1"),
            ("disk.md2.failed_legs", "sdc3"),
            ("disk.md2.rebuilding_legs", "sdd3 sdb3"),
            ("disk.md_d1.md_degraded", "0"),
            ("disk.md_d1.checked_legs", "nvme1n1p2 nvme0n1p2"),
        ],
    );
    assert!(!read.facts["arc-1"].readings.contains_key("disk.md3.md_degraded"));
}

/// Reads a session of arc-1.
fn typed(command: &str, output: &str) -> Snapshot {
    read_one(Document::new("x.txt", format!("[root@arc-1 ~]# {command}\n{output}")))
}

#[test]
fn ports_of_a_bond_that_do_not_take_part() {
    let of = |active: &str| {
        format!(
            "Ethernet Channel Bonding Driver: v6.1.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\n\
             Transmit Hash Policy: layer2+3 (2)\nMII Status: up\n\n802.3ad info\nLACP active: on\n{active}\n\
             Slave Interface: eth1\nMII Status: up\nSpeed: 25000 Mbps\nDuplex: full\nAggregator ID: 1\n\n\
             Slave Interface: eth2\nMII Status: down\nSpeed: Unknown\nDuplex: Unknown\nAggregator ID: 2\n"
        )
    };
    let kernel = "Active Aggregator Info:\n\tAggregator ID: 1\n\tNumber of ports: 1\n";
    for active in [kernel, "Active Aggregator Info:\n\tAggregator ID: 1\n", ""] {
        let read = typed("cat /proc/net/bonding/bond7", &of(active));
        whole(&read);
        has(
            &read,
            &[
                ("nic.bond7.bond.mode", "802.3ad"),
                ("nic.bond7.bond.xmit_hash_policy", "layer2+3"),
                ("nic.bond7.bond.slaves", "2"),
                ("nic.bond7.bond.active_ports", "1"),
                ("nic.eth1.speed_mbit", "25000"),
                ("nic.eth2.state", "down"),
                ("nic.eth2.speed_mbit", ""),
            ],
        );
    }
}

#[test]
fn health_of_drives() {
    let attributes = "SMART overall-health self-assessment test result: FAILED!\n\
        ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE\n\
        \x20 5 Reallocated_Sector_Ct   0x0033   001   001   010    Pre-fail  Always   FAILING_NOW 1 024\n\
        194 Temperature_Celsius     0x0022   038   045   000    Old_age   Always       -       38 (Min/Max 20/45)\n";
    let read = typed("smartctl -A -H /dev/sdc", attributes);
    let sdc = [("smart_status", "failing"), ("reallocated_sectors", "1"), ("temperature_c", "38")];
    has(
        &read,
        &sdc.map(|(key, value)| (format!("disk_health.sdc.{key}"), value))
            .each_ref()
            .map(|(k, v)| (k.as_str(), *v)),
    );
    let flags = "197 Current_Pending_Sector  -O--CK   100   100   000    -    7\n";
    has(&typed("smartctl -x /dev/sdd", flags), &[("disk_health.sdd.pending_sectors", "7")]);
    let nvme = "SMART/Health Information (NVMe Log 0x02)\nCritical Warning:                   0x06\n\
        Temperature:                        81 Celsius\nMedia and Data Integrity Errors:    1,204\n";
    has(
        &typed("smartctl -a /dev/nvme1", nvme),
        &[
            ("disk_health.nvme1n1.warnings", "temperature unreliable"),
            ("disk_health.nvme1n1.temperature_c", "81"),
            ("disk_health.nvme1n1.media_errors", "1204"),
        ],
    );
}

#[test]
fn the_nfs_client_and_its_mounts() {
    let stats = "device proc mounted on /proc with fstype proc\n\
        device s:/a mounted on /data/v1.2 with fstype nfs statvers=1.1\n\topts:\trw,vers=3,rsize=32768,proto=tcp,timeo=7\n\
        \txprt:\ttcp 803 0 2 0 13 1000 1000 0 1000 0 17 100 200\n\tper-op statistics\n\
        \t        READ: 1000 1450 4 15 10 9000 200000 210000\n";
    let read = typed("cat /proc/self/mountstats", stats);
    whole(&read);
    let keys = [
        ("rsize", "32768"),
        ("timeo", "7"),
        ("calls", "1000"),
        ("repeated_percent", "45"),
        ("read_rtt_ms", "200"),
        ("slots_used", "17"),
    ];
    for (key, value) in keys {
        assert_eq!(text(&read, &format!("nfs./data/v1_2.{key}")), value, "{key}");
    }
    let read = typed(
        "nfsstat -rc",
        "Client rpc stats:\ncalls      retrans    authrefrsh\n20000      340      20000\n",
    );
    has(&read, &[("nfs.all.calls", "20000"), ("nfs.all.repeated_percent", "1.7")]);
}

#[test]
fn interrupts_of_one_cpu_with_and_without_the_heading() {
    let rows =
        " 40:   4000000   1   PCI-MSI 1-edge   eth3-rx-0\n 41:   2000000   1   PCI-MSI 2-edge   eth3-rx-1\n";
    for (command, heading) in
        [("cat /proc/interrupts", "   CPU0   CPU1\n"), ("grep eth3 /proc/interrupts", "")]
    {
        let read = typed(command, &format!("{heading}{rows}"));
        whole(&read);
        has(&read, &[("nic.eth3.queues.busiest_cpu_percent", "100")]);
        counts(&read, &[("irq.40", 4_000_001)]);
    }
    // One queue has one CPU, and few interrupts show nothing.
    for rows in [rows.lines().next().unwrap().to_owned(), rows.replace("000000", "000")] {
        has(&typed("grep eth3 /proc/interrupts", &rows), &[("nic.eth3.queues.busiest_cpu_percent", "")]);
    }
}

#[test]
fn routes_are_no_hosts() {
    for line in ["192.0.2.7 dev eth0 src 192.0.2.1", "192.0.2.0 UP", "192.0.2.9 via 192.0.2.1"] {
        let read = read_one(Document::new("x.txt", format!("{line}\n")));
        assert!(read.imported.unwrap().pieces.is_empty(), "{line}");
    }
}

#[test]
fn the_cache_of_a_smart_array() {
    let read = read_one(Document::new(
        "mail.txt",
        "[root@arc-1 ~]# cat ticket\nController: HP P420\n\n   Cache Board Present: True\n   Cache Status: Permanently Disabled\n   \
         Cache Status Details: Cache disabled; backup power source failed to charge to an acceptable level\n",
    ));
    has(&read, &[("raid.cache.state", "permanently disabled"), ("raid.bbu.state", "failed")]);
    let text = "Smart Array P440ar in Slot 0 (Embedded)\n   Controller Status: OK\n   Cache Status: OK\n   \
                Battery/Capacitor Status: OK\n";
    let read =
        read_one(Document::new("x.txt", format!("[root@arc-1 ~]# ssacli ctrl all show status\n{text}")));
    whole(&read);
    has(&read, &[("raid.cache.state", "ok"), ("raid.bbu.state", "ok")]);
}

#[test]
fn quotas_and_races_and_the_model_of_a_drive() {
    let read = read_one(Document::new(
        "x.txt",
        "[root@arc-1 ~]# conntrack -S\ncpu=0   \tfound=27 insert=0 insert_failed=7 drop=6 early_drop=0\n\
         cpu=1   \tfound=3 insert=0 insert_failed=2 drop=1 early_drop=0\n",
    ));
    whole(&read);
    counts(&read, &[("conntrack.insert_failed", 9), ("conntrack.drop", 7)]);
    let read = read_one(Document::new(
        "x.txt",
        "[root@arc-1 ~]# btrfs quota rescan -s /mnt\nrescan operation running (current key 0)\n[root@arc-1 ~]# hdparm -I /dev/sdb | grep Model\n\
         \tModel Number:       ST4000DM004-2CV104\n",
    ));
    whole(&read);
    has(&read, &[("storage.sdb.model", "ST4000DM004-2CV104")]);
    has(&read, &[("btrfs.quota_rescans", "1")]);
}

#[test]
fn what_waits_in_sockets_of_netstat() {
    let read = read_one(Document::new(
        "x.txt",
        "[root@arc-1 ~]# netstat -unlp\nAktive Internetverbindungen (Nur Server)\nProto Recv-Q Send-Q Lokale Adresse          \
         Gegenadresse            Status      PID/Program name\n\
         udp        0      0 0.0.0.0:68              0.0.0.0:*                           2580/dhclient\n\
         udp   8390400      0 0.0.0.0:1900            0.0.0.0:*                           17804/perl\n\
         udp        0      0 10.0.0.1:1900           0.0.0.0:*                           17804/perl\n",
    ));
    has(&read, &[("socket.udp.68.waiting_bytes", "0"), ("socket.udp.1900.waiting_bytes", "8390400")]);
}

#[test]
fn times_of_requests_one_for_each_line() {
    let lookups = "[root@arc-1 ~]# curl -w %{time_namelookup}\\n -o /dev/null -s http://store.example\n\nin a loop:\n\n\
                   0.022099\n0.017307\n2.505759\n0.002889\n0.003336\n";
    has(
        &read_one(Document::new("x.txt", lookups)),
        &[
            ("request.lookup.count", "5"),
            ("request.lookup.slow_percent", "20"),
            ("request.lookup.slow_ms", "2506"),
        ],
    );
    let handshakes = lookups.replace("namelookup", "appconnect");
    has(&read_one(Document::new("x.txt", handshakes)), &[("request.handshake.slow_percent", "20")]);
    // All alike: nothing waits for a time-out. Three numbers are no series.
    let alike = read_one(Document::new("x.txt", "[root@arc-1 ~]# ./loop\n0.310\n0.305\n0.402\n0.299\n"));
    has(&alike, &[("request.whole.slow_percent", "0")]);
    assert!(
        read_one(Document::new("x.txt", "[root@arc-1 ~]# ./loop\n0.310\n0.305\n0.402\n"))
            .facts
            .values()
            .all(|facts| facts.readings.is_empty())
    );
}

#[test]
fn the_write_policy_of_a_perc() {
    let read = read_one(Document::new(
        "x.txt",
        "[root@arc-1 ~]# omreport storage vdisk\nList of Virtual Disks in the System\n\nController PERC 5/i Integrated \
         (Embedded)\nID                        : 0\nStatus                    : Ok\nName                      : Virtual \
         Disk 0\nWrite Policy              : Write Through\n[root@arc-1 ~]# omreport storage battery\nBattery 0 on \
         Controller PERC 5/i Integrated (Embedded)\n\nID                  : 0\nName                : Battery 0\nState  \
                      : Degraded\n",
    ));
    whole(&read);
    has(&read, &[("raid.vd0.cache_policy", "WriteThrough"), ("raid.bbu.state", "degraded")]);
}

#[test]
fn a_log_without_a_host_and_a_mount_that_was_cut() {
    let log = "Mon Dec 31 10:50:03 2018 kern.err kernel: [40155.078978] e1000e 0000:00:19.0 eth0: Detected Hardware Unit \
               Hang:\n";
    let read = read_one(Document::new("mail.txt", log));
    assert!(!read.facts.contains_key("kern.err") && !read.facts.contains_key("kern"), "{:?}", read.facts);
    let bare = "[root@arc-1 ~]# tail -1 log\nneighbour: arp_cache: neighbor table overflow!\n";
    has(&read_one(Document::new("x.txt", bare)), &[("kernel.log.neighbour_overflow", "1")]);
    let mount = "[root@arc-1 ~]# mount | grep nfs4\nstore:/ on /mnt type nfs4 (rw,vers=4.0,rsize=1024,wsize=1024,hard\n";
    has(&read_one(Document::new("x.txt", mount)), &[("nfs./mnt.rsize", "1024")]);
}
