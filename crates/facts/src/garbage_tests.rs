//! No content of a tree makes a reader panic: empty, huge, binary and damaged files, and answers that are no
//! answers.

use std::path::Path;

use linerate_sys::root::Root;
use proptest::prelude::*;

use super::{counters, read};

/// Files that readers parse.
const FILES: [&str; 23] = [
    "proc/net/snmp",
    "proc/net/netstat",
    "proc/net/softnet_stat",
    "proc/stat",
    "proc/interrupts",
    "proc/irq/5/smp_affinity_list",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/cpuinfo",
    "proc/modules",
    "proc/cmdline",
    "proc/sys/net/ipv4/tcp_rmem",
    "proc/sys/kernel/osrelease",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/has_cpu",
    "sys/block/sda/size",
    "sys/class/dmi/id/product_uuid",
    "sys/block/sda/queue/scheduler",
    "sys/class/net/eth0/ifindex",
    "sys/class/net/eth0/queues/rx-0/rps_cpus",
    "sys/bus/pci/devices/0000:00:03.0/current_link_speed",
    "sys/bus/pci/devices/0000:00:03.0/numa_node",
    "sys/bus/pci/devices/0000:00:03.0/msi_irqs/5",
];
const ANSWERS: [&str; 7] = ["files", "links", "addresses", "routes", "qdiscs", "ethtool", "driver_stats"];

fn put(tree: &Path, file: &str, content: &[u8]) {
    let path = tree.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn read_all(tree: &Path) -> usize {
    let root = Root::recorded(tree);
    read(&root, &[], &[]).readings.len() + counters(&root).len()
}

/// A device whose files are then damaged.
fn device(tree: &Path) {
    put(tree, "linerate/links.json", br#"[{"index":2,"name":"eth0","stats":{"rx_bytes":5}}]"#);
    put(tree, "linerate/ethtool.json", br#"{"eth0":{"driver":{"name":"x/../y","bus":"0000:00:03.0"}}}"#);
}

#[test]
fn empty_files_and_an_empty_tree_are_gaps() {
    let tree = tempfile::tempdir().unwrap();
    let facts = read(&Root::recorded(tree.path()), &[], &[Path::new("/run/netns/x").to_path_buf()]);
    assert!(facts.gaps.len() > 8, "{:?}", facts.gaps);
    device(tree.path());
    for file in FILES {
        put(tree.path(), file, b"");
    }
    read_all(tree.path());
    for answer in ANSWERS {
        put(tree.path(), &format!("linerate/{answer}.json"), b"");
    }
    read_all(tree.path());
}

#[test]
fn huge_files_are_refused_not_read() {
    let tree = tempfile::tempdir().unwrap();
    device(tree.path());
    let huge = vec![b'7'; 9 << 20];
    for file in ["proc/interrupts", "proc/net/snmp", "proc/sys/net/ipv4/tcp_rmem", "proc/self/mountinfo"] {
        put(tree.path(), file, &huge);
    }
    // Below the limit of a file, but with far too many fields.
    put(tree.path(), "proc/stat", "intr 1 ".repeat(200_000).as_bytes());
    put(tree.path(), "proc/cpuinfo", "model name : x\n".repeat(100_000).as_bytes());
    let facts = read(&Root::recorded(tree.path()), &[], &[]);
    assert!(facts.gaps.iter().any(|g| g.reason.contains("larger than")), "{:?}", facts.gaps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_files_never_panic(
        contents in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "[0-9a-f ,:\\-\n]{0,200}".prop_map(String::into_bytes),
                "(cpu[0-9]|intr|Tcp:| |9999999999999999999|-1|\n|\t|:){0,60}".prop_map(String::into_bytes),
            ],
            FILES.len(),
        ),
    ) {
        let tree = tempfile::tempdir().unwrap();
        device(tree.path());
        for (file, content) in FILES.iter().zip(&contents) {
            put(tree.path(), file, content);
        }
        read_all(tree.path());
    }

    #[test]
    fn damaged_answers_never_panic(
        answer in proptest::sample::select(&ANSWERS[..]),
        content in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "(\\[|\\]|\\{|\\}|:|,|\"index\"|\"name\"|\"eth0\"|\"stats\"|-1|18446744073709551615|null){0,40}"
                .prop_map(String::into_bytes),
        ],
    ) {
        let tree = tempfile::tempdir().unwrap();
        device(tree.path());
        put(tree.path(), &format!("linerate/{answer}.json"), &content);
        read_all(tree.path());
    }
}
