//! What a text is about, by its words, and which command decides it. One line per topic: rare words, plain
//! words, broad words, what is asked for, the commands, where they run. Rare words weigh more than any number
//! of the others, so that a list of words that stand in every text decides nothing.
//!
//! A word stands alone, in the plural or within hyphens; `nfs*` is a beginning.

/// Weight of a word that hardly stands in a text about anything else.
const RARE: usize = 5;
/// Weight of a word of this topic that texts about others have too.
const PLAIN: usize = 2;
/// Weight of a word of many topics.
const BROAD: usize = 1;
/// A topic applies from this weight on: one plain word or two broad ones.
const LEAST: usize = 2;
/// All words that are not rare together.
const COMMON_MAX: usize = RARE - 1;

/// A topic.
pub(super) struct Topic {
    rare: Words,
    plain: Words,
    broad: Words,
    pub what: &'static str,
    pub commands: Words,
    pub at: &'static str,
}

type Words = &'static [&'static str];

impl Topic {
    /// How much a text is about it, by a count of the words of a list that it has; 0: not at all.
    pub(super) fn weight(&self, count: impl Fn(&[&str]) -> usize) -> usize {
        let common = PLAIN * count(self.plain) + BROAD * count(self.broad);
        let weight = RARE * count(self.rare) + common.min(COMMON_MAX);
        if weight < LEAST { 0 } else { weight }
    }
}

const fn topic(
    [rare, plain, broad]: [Words; 3],
    what: &'static str,
    commands: Words,
    at: &'static str,
) -> Topic {
    Topic { rare, plain, broad, what, commands, at }
}

/// Rare and other words of texts about disks.
pub(super) const DISKS: [Words; 2] = [
    &[
        "smartctl",
        "badblocks",
        "hdd",
        "osd",
        "zfs",
        "zpool*",
        "resilver*",
        "sata*",
        "scsi",
        "uas",
        "lvm",
        "dm-crypt",
        "luks",
        "iowait",
    ],
    &["disk*", "ssd", "raid*", "nvme*", "drive", "mirror", "storage"],
];

/// What the link of a small NIC negotiated: also asked where packets are lost in such a text.
pub(super) const PHY: Topic = topic(
    [
        &[
            "phy",
            "phylib",
            "mdio",
            "mii",
            "rgmii",
            "rmii",
            "sgmii",
            "magnetics",
            "ksz*",
            "dp83*",
            "rtl8211*",
            "lan87*",
            "lan95*",
            "lan78*",
            "smsc95*",
            "fec",
            "stmmac",
            "dwmac",
            "macb",
            "cpsw",
            "genet",
            "eee",
        ],
        &[
            "embedded",
            "soc",
            "sbc",
            "devboard",
            "imx*",
            "mx6*",
            "mx8*",
            "stm32*",
            "rk3*",
            "am335*",
            "zynq*",
            "beaglebone",
            "beagle",
            "jetson",
            "raspberry",
            "rpi*",
            "cm4",
            "orangepi",
            "rockpi",
        ],
        &["board", "module", "soldered", "carrier-board", "arm", "arm64", "armhf", "gateway"],
    ],
    "what the PHY reports and negotiates, and what the NIC counts",
    &[
        "dmesg | grep -i -e phy -e link",
        "ethtool NIC",
        "ethtool -S NIC",
        "ethtool -a NIC",
        "ethtool --show-eee NIC",
    ],
    "on the board",
);

#[rustfmt::skip]
pub(super) const TOPICS: &[Topic] = &[
    topic([&["wifi", "wi-fi", "wlan*", "wireless", "ath9k", "ath10k", "ath11k", "mt76*", "mt79*", "iwlwifi", "mwlwifi", "hostapd", "ssid"], &[], &["radio"]], "rate, signal and retries of the radio link", &["iw dev DEV station dump", "iw dev DEV get power_save", "ethtool -S NIC"], "at both ends of the radio link"),
    PHY,
    topic([&["offload*", "tso", "gso", "gro", "lro"], &["flannel", "calico", "cilium", "cni*"], &["pod", "kubernetes", "k8s", "k3s", "forward*", "vm", "guest", "hypervisor", "proxmox", "kvm", "bridge", "bridged"]], "offloads of the NIC that forwards", &["ethtool -k NIC", "nstat -az", "ethtool -S NIC"], "on each machine between the two ends"),
    topic([&["usb", "usb2", "usb3", "lsusb", "uas", "xhci*"], &[], &[]], "speed and driver of the device on USB", &["lsusb -t", "dmesg"], ""),
    topic([&["alpm", "dipm", "comreset"], &[], &[]], "power saving of the link to the drive, and its health", &["grep . /sys/class/scsi_host/host*/link_power_management_policy", "smartctl -a /dev/DRIVE"], "as root"),
    topic([&["drbd*"], &[], &[]], "settings and state of the replica", &["drbdadm dump all", "cat /proc/drbd", "drbdsetup show"], "on both hosts"),
    topic([&["ipoib", "infiniband", "ib0", "connectx-2"], &[], &[]], "mode of IPoIB", &["cat /sys/class/net/ib0/mode", "ip link show ib0"], "on both hosts"),
    topic([&["nfs*", "autofs", "automount", "rsize", "wsize"], &["filer"], &["mount", "export", "home"]], "options and waits of the mounts", &["findmnt -t nfs,nfs4", "nfsstat -m", "cat /proc/self/mountstats"], "on a client"),
    topic([&["megaraid", "perc", "bbu", "storcli*", "megacli*"], &["battery"], &["controller", "raid*", "cache", "writeback"]], "cache and battery of the controller", &["storcli /c0 show all", "iostat -x 1"], "on the host; of old ones `megacli -AdpBbuCmd -aALL`"),
    topic([&["lanes", "gen3", "gen4"], &["nvme*", "pcie"], &[]], "lanes of the device", &["lspci -vv", "nvme smart-log /dev/nvme0", "iostat -x 1"], "as root"),
    topic([DISKS[0], DISKS[1], &[]], "load, health and write cache of each drive", &["iostat -x 1", "smartctl -a /dev/DRIVE", "hdparm -W /dev/DRIVE", "dmesg"], ""),
    topic([&["statsd", "graphite", "syslog*", "multicast", "datagram"], &["udp"], &[]], "datagrams that the receiver dropped", &["nstat -az | grep Udp", "ss -uamn", "sysctl net.core.rmem_max"], "on the receiver"),
    topic([&["bond", "bond0", "bond1", "bonded", "bonding", "balance-rr", "lacp"], &[], &[]], "state of the bond, and reordering", &["cat /proc/net/bonding/bond0", "nstat -az", "ss -ti"], ""),
    topic([&["neighbour", "neighbor", "arp", "arping", "gc-thresh", "thresh3"], &[], &[]], "the table of neighbours", &["ip neigh", "sysctl net.ipv4.neigh.default.gc_thresh3"], "on a host that is affected"),
    topic([&["mtu", "fragment*", "emsgsize", "jumbo"], &["handshake"], &["large", "bigger"]], "the MTU of each device of the path", &["ip -d link", "ping -M do -c 3 -s 1472 HOST"], "on each host of the path"),
    topic([&["vxlan", "vpn", "wireguard", "ipsec"], &[], &[]], "whether large packets arrive", &["ip -d link", "ping -M do -c 3 -s 1372 HOST"], "on each host of the path"),
    topic([&["docker0", "veth*", "containerd"], &["docker", "podman", "container", "lxc"], &["within", "inside"]], "the MTU of the interface of the container, of its bridge and of the overlay", &["ip -d link", "ping -M do -c 3 -s 1372 HOST"], "inside the container and on the host below"),
    topic([&[], &["tunnel"], &["timed", "connected", "received", "stall", "hangs"]], "whether large packets arrive", &["ping -M do -c 3 -s 1372 HOST", "ip -d link"], "inside and on the host below"),
    topic([&["iptables*", "nftables"], &["firewall*", "unreachable", "filtered"], &[]], "rules that drop", &["iptables-save -c", "nft list ruleset", "sysctl -a | grep bridge-nf-call"], "on the host between"),
    topic([&["dropwatch"], &["dropped", "drops"], &["loss", "lost"]], "where packets are dropped", &["ip -d link", "ethtool -S NIC", "nstat -az"], "on two hosts that differ; `linerate drops HOST` with reasons"),
    topic([&["duplex", "collision", "autonegotiation"], &["crc", "frame", "errors", "cable"], &[]], "errors of the link", &["ethtool NIC", "ethtool -S NIC", "ip -s link"], "at both ends of the cable"),
    topic([&["flapping", "carrier"], &["nic", "driver", "firmware", "hang", "watchdog", "reset", "unresponsive"], &[]], "what the driver reports", &["dmesg | grep NIC", "ethtool -i NIC", "ethtool -k NIC", "ethtool -S NIC", "ethtool --show-eee NIC"], ""),
    topic([&["irq", "irqbalance", "affinity", "cpu0"], &["interrupt"], &[]], "which CPUs serve the NIC", &["grep NIC /proc/interrupts", "mpstat -P ALL 1"], "during a transfer"),
    topic([&["aspm", "pcieport"], &[], &[]], "power saving of the bus", &["lspci -vv"], "as root"),
    topic([&["aws", "ec2", "gce", "azure"], &["instance", "cloud"], &[]], "limits of the instance", &["ethtool -S NIC | grep allowance", "nstat -az", "iperf3 -c PEER -t 60 -i 1"], ""),
    topic([&["governor", "cpufreq", "cpuidle", "c-states"], &[], &["ping", "latency", "idle", "frequency", "ms"]], "power saving of the CPUs", &["cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "cpupower idle-info"], ""),
    topic([&["steal"], &["load"], &[]], "who uses the CPUs", &["mpstat -P ALL 1"], ""),
    topic([&["rmem", "wmem", "transatlantic"], &[], &["window", "rtt", "buffers", "far", "vpn"]], "what a connection waits for", &["ss -ti", "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem"], "at both ends, during a transfer"),
    topic([&[], &[], &["download", "apt", "mirror", "http*", "curl", "wget", "kb"]], "the path below the download", &["ping -M do -c 3 -s 1472 SERVER", "ss -ti", "iperf3 -c HOST -t 20 -J"], "between the hosts, during a download"),
    topic([&["hdfs", "hadoop", "datanode"], &[], &[]], "files that a power cut emptied", &["linerate disk durability --audit DIR"], "on each data node"),
    topic([&["fstab"], &["mount", "drained", "drain"], &[]], "what is mounted", &["findmnt", "cat /etc/fstab"], "on the host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The topic that weighs most, by the words of a text.
    fn first(words: &[&str]) -> &'static str {
        let count = |known: &[&str]| words.iter().filter(|word| known.contains(word)).count();
        let weighed = TOPICS.iter().map(|topic| (topic.weight(count), topic.what));
        weighed.rev().max_by_key(|(weight, _)| *weight).map_or("", |(_, what)| what)
    }

    #[test]
    fn a_rare_word_weighs_more_than_all_broad_ones() {
        let broad = ["ssd", "drive", "storage", "disk", "cache", "controller", "cloud", "driver", "home"];
        assert!(first(&[&broad[..], &["rsize"]].concat()).contains("mounts"));
        assert!(first(&[&broad[..], &["mdio"]].concat()).contains("PHY"));
        assert!(first(&broad).contains("drive"));
    }

    #[test]
    fn one_broad_word_is_about_nothing() {
        let weight = |words: &[&str]| {
            let count = |known: &[&str]| words.iter().filter(|word| known.contains(word)).count();
            TOPICS.iter().map(|topic| topic.weight(count)).max().unwrap_or(0)
        };
        assert_eq!((weight(&["large"]), weight(&["controller"]), weight(&["kvm", "idle"])), (0, 0, 0));
        assert!(weight(&["cache", "controller"]) > 0 && weight(&["driver"]) > 0);
    }
}
