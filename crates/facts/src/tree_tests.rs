//! Recorded trees, read to the values that a person would read from them: a host of a virtual cluster, a
//! server with many devices and interrupts, an old kernel with little to say.

use std::path::{Path, PathBuf};

use linerate_model::fact::{FactValue, HostFacts, check_key};
use linerate_sys::root::Root;

use super::{counters, declarations, read, record, setting_for};

const TREES: [&str; 3] = ["veth-host", "many-nics", "old-sparse"];

fn tree(name: &str) -> Root {
    Root::recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/roots").join(name))
}

fn facts(name: &str) -> HostFacts {
    read(&tree(name), &[], &[])
}

/// Every line is `key value`.
fn assert_reads(facts: &HostFacts, expected: &str) {
    for line in expected.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (key, value) = line.split_once(' ').unwrap();
        let seen = facts.readings.get(key).map(ToString::to_string);
        assert_eq!(seen.as_deref(), Some(value.trim()), "{key}");
    }
}

fn assert_gap(facts: &HostFacts, what: &str, reason: &str) {
    let found = facts.gaps.iter().any(|g| g.what == what.into() && g.reason.contains(reason));
    assert!(found, "no gap {what}: {reason} in {:#?}", facts.gaps);
}

#[test]
fn a_host_of_a_virtual_cluster() {
    let facts = facts("veth-host");
    assert_reads(
        &facts,
        "nic.eth0.kind veth
         nic.eth0.lower br0p
         nic.eth0.driver veth
         nic.eth0.mtu 1400
         nic.eth0.addresses 10.1.0.1/24
         nic.eth0.qdisc tbf
         nic.eth0.qdisc_rate_bit 100000000
         nic.eth0.speed_mbit 10000
         nic.eth0.state up
         nic.eth0.feature.tcp-segmentation-offload off
         nic.eth0.feature.tx-tcp-segmentation off
         nic.eth0.feature.generic-segmentation-offload on
         nic.eth0.feature.tx-checksumming on
         nic.br0p.master br0
         nic.br0.ports br0p
         nic.vx0.vxlan.id 42
         nic.vx0.vxlan.port 4789
         nic.vx0.vxlan.lower eth0
         nic.vx0.mtu 1350
         nic.eth0.queue.rx-0.rps_cpus 0
         route.default.50 default via 10.1.0.254 dev eth0 metric 50
         module.vxlan.path builtin
         cpu.count 2
         cpu.clocksource tsc
         mount./ ext4 /dev/vda rw,relatime,rw,discard",
    );
    assert!(facts.readings["sysctl.net.ipv4.tcp_rmem"].number(2).unwrap() > 0.0);
    assert!(
        facts
            .readings
            .values()
            .any(|v| v.to_string().contains("10.2.0.0/16 via 10.1.0.253 dev eth0 initcwnd 20 mtu 1300"))
    );
    assert_eq!(facts.counters["cgroup.nr_throttled"], 7, "the group and the one above");
    assert_eq!(facts.counters["cgroup.throttled_us"], 11_000, "version 1 counts nanoseconds");
    assert_gap(&facts, "nic.*.ring.*", "not offered by the driver");
    assert_gap(&facts, "cpu.governor", "this kernel does not have it");
    assert!(facts.readings.len() > 900, "{}", facts.readings.len());
}

/// What the tree of the server says.
const MANY_NICS: &str = "
    nic.eno1.driver bnxt_en
    nic.eno1.firmware 218.0.166.0/pkg 21.85.21.92
    nic.eno1.feature.rx-gro-hw on
    nic.ens5f0np0.feature.rx-gro-hw off
    nic.eno1.master bond0
    nic.bond0.bond.mode 802.3ad
    nic.bond0.ports eno1 eno2
    nic.bond0/140.lower bond0
    nic.bond0/140.vlan.id 140
    nic.bond0/140.master br140
    nic.br140.addresses 192.0.2.140/24
    nic.vxlan0.vxlan.lower ens5f0np0
    nic.ens5f0np0.speed_mbit 100000
    nic.ens5f0np0.pcie.speed_gts 8
    nic.ens5f0np0.pcie.width 16
    nic.ens6f0np0.pcie.speed_gts 2.5
    nic.ens6f0np0.pcie.max_speed_gts 16
    nic.ens6f0np0.pcie.width 4
    nic.ens6f0np0.pcie.max_width 16
    nic.ens6f0np0.numa_node 1
    nic.ens6f0np0.local_cpus 8-15
    nic.eno4.state off
    nic.eno2.carrier_changes 7
    nic.ens5f0np0.ring.rx 1024
    nic.ens5f0np0.ring.rx_max 8192
    nic.ens5f0np0.channels.combined 16
    nic.ens5f0np0.coalesce.adaptive-rx on
    nic.eno1.coalesce.rx-usecs 6
    nic.ens5f0np0.pause.rx on
    nic.ens5f0np0.private.skb-tx-mpwqe on
    nic.eno1.eee.enabled off
    nic.eno1.rss.udp4 sd
    nic.eno1.irq.60.name eno1-TxRx-0
    nic.eno1.irq_cpus 0-7
    nic.ens5f0np0.irq_cpus 0
    nic.ens5f1np1.irq.140.affinity 8
    nic.eno1.queue.tx-5.xps_cpus 20
    nic.bond0.queue.rx-0.rps_cpus ff00
    cpu.model Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz
    cpu.governor performance,powersave
    cpu.numa_nodes 2
    cpu.clocksource hpet
    cpu.idle_latency_us 10
    cpu.idle_deepest C1E
    nic.bond0.bond.xmit_hash_policy layer3+4
    nic.bond0.bond.slaves 2
    nic.bond0.bond.active_ports 1
    cpu.isolated 14-15
    module.mlx5_core.path weak-updates/mlnx-ofa_kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko
    module.bnxt_en.path kernel/drivers/net/ethernet/broadcom/bnxt/bnxt_en.ko.xz
    module.mlx5_ib.path weak-updates/mlnx-ofa_kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko
    sysctl.net.iw_cm.default_backlog 256
    sysctl.net.netfilter.nf_log.2 nfnetlink_log
    sysctl.net.ipv4.conf.bond0/140.rp_filter 2
    sysctl.net.ipv4.tcp_rmem 4096 87380 6291456
    sysctl.sunrpc.rdma_memreg_strategy 5
    mount./srv/block_files xfs /dev/mapper/vg-archive rw,noatime,rw,inode64,sunit=256
    disk.dm-2.dm_name vg-archive
    disk.dm-2.on nvme0n1 sda
    disk.sda.rotational on
    disk.sda.scheduler mq-deadline
    disk.nvme0n1.size_bytes 1920383410176
    route.203/0/113/0-24 203.0.113.0/24 mtu 9000 nexthop via 198.51.100.1 dev ens5f0np0 nexthop via 198.51.100.2 dev ens5f1np1
";

#[test]
fn a_server_with_many_devices_and_interrupts() {
    let facts = facts("many-nics");
    assert_reads(&facts, MANY_NICS);
    assert!(!facts.readings.contains_key("nic.eno4.speed_mbit"), "unknown is not a speed");
    assert!(facts.readings.values().all(|v| v.to_string() != "never read"), "secrets and restless values");
    let irqs = facts.readings.keys().filter(|k| k.ends_with(".affinity")).count();
    assert_eq!(irqs, 128);
    for (key, value) in [
        ("snmp.Tcp.OutSegs", 987_654_321_012),
        ("netstat.TcpExt.TCPTimeouts", 11),
        ("netstat.IpExt.InOctets", 123_456_789_012_345),
        ("softnet.time_squeeze", 120),
        ("nic.eno2.stat.rx_discards", 10),
        ("nic.ens5f1np1.stat.rx_out_of_buffer", 85),
        ("nic.bond0/140.stat.rx_bytes", 6),
        ("cgroup.nr_throttled", 5),
        ("cgroup.throttled_us", 12_345),
        ("cpu.3.softirq_us", 30_000),
        ("irq.60", 1000),
        ("irq.187", 1127),
    ] {
        assert_eq!(facts.counters.get(key), Some(&value), "{key}");
    }
}

#[test]
fn a_hypervisor_tells_its_guests_and_its_switch() {
    let root = tree("many-nics");
    let facts = facts("many-nics");
    assert_reads(
        &facts,
        "machine.vendor Dell Inc.
         machine.product PowerEdge R740
         machine.uuid 4c4c4544-0042-3510-8053-b4c04f564433
         machine.guests 6f0e5c1e-1111-4222-8333-444455556666 52:54:00:11:22:33
         nic.eno1.mac 52:54:00:00:00:00",
    );
    assert!(!facts.readings.keys().any(|key| key.starts_with("lldp.")), "it was not asked to listen");
    let heard = read(&root, &["lldp.".into()], &[]);
    assert_reads(
        &heard,
        "lldp.ens5f0np0.system leaf-1\n lldp.ens5f0np0.port Eth1/7\n lldp.ens5f0np0.chassis aa:bb:cc:00:00:01",
    );
    assert!(
        heard
            .gaps
            .iter()
            .any(|g| g.what == "lldp.*".into() && g.reason.contains("nothing heard within 31 s"))
    );
    assert_gap(&self::facts("old-sparse"), "machine.uuid", "this kernel does not have it");
}

#[test]
fn an_old_kernel_with_little_to_say() {
    let facts = facts("old-sparse");
    assert_reads(
        &facts,
        "sysctl.net.ipv4.tcp_rmem 4096 16384 4194304
         sysctl.net.core.rmem_default 0112640
         sysctl.vm.overcommit_memory -1
         kernel.release 2.6.32-042stab053.5
         nic.eth0.driver e1000e
         nic.eth0.feature.tcp-segmentation-offload on
         nic.eth1.speed_mbit 1000
         nic.eth1.duplex full
         nic.eth1.numa_node -1
         nic.eth1.state unknown
         nic.eth0.irq.19.affinity 0
         cpu.model POWER7 (architected), altivec supported
         cpu.numa_nodes 1
         mount./ ext3 /dev/sda1 rw
         disk.sdx.scheduler cfq
         disk.md1.on sdx
         disk.md1.md_level raid0",
    );
    for absent in
        ["nic.eth0.speed_mbit", "nic.eth0.pcie.width", "nic.eth1.firmware", "nic.eth1.master", "cpu.count"]
    {
        assert!(!facts.readings.contains_key(absent), "{absent}");
    }
    assert_eq!(facts.readings["sysctl.net.core.rmem_default"], FactValue::Text("0112640".into()));
    assert_gap(&facts, "cpu.count", "no list of CPUs");
    assert_gap(&facts, "nic.*.pcie.*", "tells no PCIe link: eth0");
    assert_gap(&facts, "netstat.*", "this kernel does not have it");
    assert_gap(&facts, "cgroup.*", "no control group of the node counts quotas");
    assert_gap(&facts, "module.*.path", "the list of modules of this kernel cannot be read: e1000e");
    assert_gap(&facts, "nic.*.addresses", "not in the recorded tree");
    assert_eq!(facts.counters["snmp.Tcp.A"], 1);
    assert_eq!(facts.counters["softnet.processed"], 2, "a short row is passed over");
    assert_eq!(facts.counters["nic.eth0.stat.rx_bytes"], i64::MAX);
    assert_eq!(facts.counters["cpu.0.busy_us"], 300_000);
}

#[test]
fn every_key_of_every_tree_is_declared() {
    let declared = declarations();
    let fits = |pattern: &str, key: &str| {
        let mut rest = key;
        let mut parts = pattern.split('*');
        let first = parts.next().unwrap_or_default();
        rest.strip_prefix(first).is_some_and(|r| {
            rest = r;
            parts.all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
        })
    };
    for name in TREES {
        let facts = facts(name);
        for key in facts.readings.keys().chain(facts.counters.keys()) {
            assert!(check_key(key), "{name}: {key}");
            assert!(declared.iter().any(|d| fits(&d.pattern, key)), "{name}: {key} is not declared");
        }
    }
    for decl in &declared {
        assert!(!decl.meaning.is_empty() && !decl.unit.is_empty(), "{decl:?}");
    }
}

#[test]
fn settings_agree_with_facts_and_refuse_to_write_a_tree() {
    for name in TREES {
        let (root, facts) = (tree(name), facts(name));
        let mut seen = 0;
        for (key, value) in &facts.readings {
            let Some(setting) = setting_for(key) else { continue };
            assert_eq!(setting.read(&root, key).as_ref(), Ok(value), "{name}: {key}");
            assert!(setting.write(&root, key, value).is_err(), "{name}: {key} was written");
            seen += 1;
        }
        assert!(seen >= 5, "{name}: {seen}");
    }
}

#[test]
fn prefixes_limit_what_is_read() {
    let root = tree("many-nics");
    let some = read(&root, &["nic.eno1.ring".into(), "cpu.count".into()], &[]);
    let keys: Vec<&str> = some.readings.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["cpu.count", "nic.eno1.ring.rx", "nic.eno1.ring.rx_max", "nic.eno1.ring.tx", "nic.eno1.ring.tx_max"]
    );
    assert!(some.counters.is_empty());
    assert_eq!(read(&root, &["sysctl.vm.".into()], &[]).readings.len(), 1);
    assert_eq!(read(&root, &["snmp.Udp.".into()], &[]).counters.len(), 4);
}

#[test]
fn what_is_recorded_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let start = std::time::Instant::now();
    let live = read(&Root::live(), &[], &[]);
    let took = start.elapsed();
    record(folder.path(), &[PathBuf::from("/no/such/namespace")]).unwrap();
    let recorded = read(&Root::recorded(folder.path()), &[], &[]);
    println!(
        "{} facts, {} counters, {} gaps in {took:?}",
        live.readings.len(),
        live.counters.len(),
        live.gaps.len()
    );
    // Addresses, routes and states may move while this runs; what only the machine decides does not.
    for head in ["cpu.model", "kernel.", "disk.", "sysctl.net.core.", "sysctl.vm.swappiness"] {
        let part = |f: &HostFacts| -> Vec<(String, String)> {
            f.readings
                .iter()
                // Loop devices of other tests come and go.
                .filter(|(k, _)| k.starts_with(head) && !k.starts_with("disk.loop"))
                .map(|(k, v)| (k.clone(), v.to_string()))
                .collect()
        };
        assert_eq!(part(&live), part(&recorded));
    }
    assert!(recorded.readings.len() > live.readings.len() * 9 / 10);
    assert!(!counters(&Root::recorded(folder.path())).is_empty());
    if let Some(name) = recorded.readings.get("sysctl.kernel.hostname") {
        assert_eq!(name.to_string(), "recorded");
    }
}
