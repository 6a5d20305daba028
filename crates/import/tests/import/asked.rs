//! What is asked for can be read: every command of the table of what to measure next has an example of its
//! output here, and an importer that makes something of it.

use linerate_import::Document;
use linerate_model::fact::pattern_fits;

use super::read_one;

/// A beginning of commands, and what such a command prints on a host. Those of a moment make tests, counters
/// or figures.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "btrfs qgroup show",
        "qgroupid         rfer         excl \n--------         ----         ---- \n0/5          16.00KiB     16.00KiB \n0/257         1.20GiB    112.00MiB \n",
    ),
    (
        "conntrack -S",
        "cpu=0   \tfound=27 invalid=1 insert=0 insert_failed=7 drop=7 early_drop=0 error=0 search_restart=12 \ncpu=1   \tfound=3 invalid=0 insert=0 insert_failed=2 drop=2 early_drop=0 error=0 search_restart=0 \n",
    ),
    (
        "fio --name=t",
        "t: (groupid=0, jobs=1): err= 0: pid=4711: Tue Nov  3 10:00:00 2026\n  write: IOPS=212, BW=476KiB/s (488kB/s)(22.0MiB/47301msec); 0 zone resets\n    clat (usec): min=8, max=12, avg=9.11, stdev= 1.22\n",
    ),
    ("cat /etc/fstab", "store:/data /data nfs4 rw,vers=4.2,timeo=600 0 0\n"),
    (
        "cat /proc/drbd",
        " 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----\n    ns:8 nr:0 dw:8 dr:16 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0\n",
    ),
    (
        "cat /proc/net/bonding/bond0",
        "Ethernet Channel Bonding Driver: v6.1.0\n\nBonding Mode: load balancing (round-robin)\nMII Status: up\n\nSlave Interface: eth0\nMII Status: up\nSpeed: 10000 Mbps\nDuplex: full\n",
    ),
    (
        "cat /proc/interrupts",
        "            CPU0       CPU1\n 56:  1990338          0   PCI-MSI 5767168-edge      eth0-rx-0\n",
    ),
    (
        "cat /proc/net/softnet_stat",
        "0000049d 00000000 00000074 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n",
    ),
    (
        "cat /proc/self/mountstats",
        "device store:/data mounted on /data with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,rsize=65536,proto=tcp,timeo=600\n\tper-op statistics\n\t        READ: 1000 1020 0 100 200 300 400 500 0\n",
    ),
    (
        "grep . /sys/class/scsi_host/host*/link_power_management_policy",
        "/sys/class/scsi_host/host0/link_power_management_policy:med_power_with_dipm\n/sys/class/scsi_host/host1/link_power_management_policy:max_performance\n",
    ),
    ("iw dev DEV get power_save", "Power save: on\n"),
    (
        "iw dev DEV station dump",
        "Station 02:00:00:00:00:07 (on wlan0)\n\tinactive time:\t12 ms\n\ttx packets:\t9000\n\ttx retries:\t4100\n\ttx failed:\t350\n\tsignal:  \t-79 [-81, -83] dBm\n\ttx bitrate:\t13.0 MBit/s MCS 1\n",
    ),
    (
        "lsusb -t",
        "/:  Bus 02.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 5000M\n/:  Bus 01.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/2p, 480M\n    |__ Port 2: Dev 3, If 0, Class=Mass Storage, Driver=usb-storage, 480M\n",
    ),
    ("cat /sys/class/net/ib0/mode", "datagram\n"),
    ("cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    (
        "cpupower idle-info",
        "CPUidle driver: intel_idle\nCPUidle governor: menu\nanalyzing CPU 0:\n\nNumber of idle states: 2\nAvailable idle states: POLL C6\nPOLL:\nFlags/Description: CPUIDLE CORE POLL IDLE\nLatency: 0\nUsage: 10\nDuration: 20\nC6:\nFlags/Description: MWAIT 0x20\nLatency: 133\nUsage: 10\nDuration: 20\n",
    ),
    ("dmesg", "[   12.5] ixgbe 0000:03:00.0 eth0: NIC Link is Up 1 Gbps, Flow Control: None\n"),
    ("drbdadm dump all", "resource r0 {\n    net {\n        max-buffers 2048;\n    }\n}\n"),
    ("drbdsetup show", "resource r0 {\n    net {\n        max-buffers 2048;\n    }\n}\n"),
    ("ethtool --show-eee NIC", "EEE settings for eth0:\n\tEEE status: enabled - active\n"),
    ("ethtool -S NIC", "NIC statistics:\n     rx_missed_errors: 7\n     bw_in_allowance_exceeded: 12\n"),
    ("ethtool -a NIC", "Pause parameters for eth0:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\ton\n"),
    (
        "ethtool -g NIC",
        "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\n",
    ),
    ("ethtool -i NIC", "driver: ixgbe\nversion: 6.1\nfirmware-version: 1.2\nbus-info: 0000:03:00.0\n"),
    ("ethtool -k NIC", "Features for eth0:\nrx-checksumming: on\ntx-udp_tnl-segmentation: off [fixed]\n"),
    ("ethtool NIC", "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n"),
    (
        "findmnt",
        "TARGET SOURCE FSTYPE OPTIONS\n/ /dev/sda1 ext4 rw,relatime\n└─/data store:/data nfs4 rw,timeo=600\n",
    ),
    (
        "grep NIC /proc/interrupts",
        " 56:  1990338          0   PCI-MSI 5767168-edge      eth0-rx-0\n 57:  1106142          0   PCI-MSI 5767169-edge      eth0-rx-1\n",
    ),
    ("hdparm -W /dev/DRIVE", "\n/dev/sdb:\n write-caching =  0 (off)\n"),
    (
        "iostat -x 1",
        "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util\nsda              1.00    2.00     10.00     20.00     0.00     0.00   0.00   0.00    1.00    2.00   0.01    10.00    10.00   1.00   1.00\n\nDevice            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util\nsda              1.00    90.00     10.00     20.00     0.00     0.00   0.00   0.00    1.00    20.00   1.90    10.00    10.00   1.00   99.00\n",
    ),
    (
        "ip ",
        "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n    RX: bytes  packets  errors  dropped overrun mcast\n    1000       10       0       3       0       0\n    TX: bytes  packets  errors  dropped carrier collsns\n    1000       10       0       0       0       0\n",
    ),
    (
        "dmesg | grep",
        "[   12.5] fec 2188000.ethernet eth0: Link is Down\n[   14.5] fec 2188000.ethernet eth0: Link is Up - 100Mbps/Full - flow control off\n",
    ),
    (
        "ethtool -l NIC",
        "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t4\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t1\n",
    ),
    (
        "zpool status",
        "  pool: tank\n state: DEGRADED\nconfig:\n\n\tNAME        STATE     READ WRITE CKSUM\n\ttank        DEGRADED     0     0     0\n\t  mirror-0  DEGRADED     0     0     0\n\t    sda     ONLINE       0     0     0\n\t    sdb     FAULTED      3     0     0\n",
    ),
    ("ip neigh", "192.0.2.7 dev eth0 lladdr 02:00:00:00:00:07 REACHABLE\n192.0.2.8 dev eth0  FAILED\n"),
    (
        "iperf3 -c",
        "Connecting to host 192.0.2.2, port 5201\n[  5] local 192.0.2.1 port 40000 connected to 192.0.2.2 port 5201\n[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec    0             sender\n",
    ),
    (
        "iptables-save -c",
        "*filter\n:INPUT DROP [12:720]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n[5:300] -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n",
    ),
    (
        "lspci -vv",
        "03:00.0 Ethernet controller: Intel Corporation 82599ES (rev 01)\n\t\tLnkCap:\tPort #0, Speed 8GT/s, Width x8, ASPM L0s\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (ok)\n",
    ),
    (
        "mpstat -P ALL 1",
        "10:00:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n10:00:02 AM  all    1.00    0.00    1.00    0.00    0.00   10.00    0.00    0.00    0.00   88.00\n10:00:02 AM    0    1.00    0.00    1.00    0.00    0.00   98.00    0.00    0.00    0.00    0.00\n",
    ),
    (
        "nfsstat -m",
        "/data from store:/data\n Flags:\trw,relatime,vers=4.2,rsize=1048576,wsize=1048576,proto=tcp,timeo=600,retrans=2\n",
    ),
    (
        "nft list ruleset",
        "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t\ttcp dport 22 counter packets 5 bytes 300 accept\n\t}\n}\n",
    ),
    (
        "nstat -az",
        "#kernel\nTcpRetransSegs                  12                 0.0\nUdpRcvbufErrors                 1000               0.0\n",
    ),
    (
        "nvme smart-log /dev/nvme0",
        "Smart Log for NVME device:nvme0 namespace-id:ffffffff\ncritical_warning\t\t\t: 0x4\ntemperature\t\t\t\t: 38°C (311 Kelvin)\nmedia_errors\t\t\t\t: 12\n",
    ),
    (
        "ping -M do",
        "PING 192.0.2.7 (192.0.2.7) 1472(1500) bytes of data.\n\n--- 192.0.2.7 ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 2040ms\n",
    ),
    (
        "smartctl -a /dev/DRIVE",
        "smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)\nSMART overall-health self-assessment test result: PASSED\n197 Current_Pending_Sector  0x0012   099   098   000    Old_age   Always       -       24\n",
    ),
    (
        "ss -ti",
        "State Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 192.0.2.1:5201 192.0.2.2:44520\n\t cubic wscale:7,7 rto:204 rtt:0.5/0.1 mss:1448 cwnd:10 bytes_sent:100000000 bytes_acked:100000000 busy:900ms retrans:0/12\n",
    ),
    (
        "ss -uamn",
        "State   Recv-Q  Send-Q   Local Address:Port   Peer Address:Port\nUNCONN  212992  0        0.0.0.0:514          0.0.0.0:*\n\t skmem:(r212992,rb212992,t0,tb212992,f0,w0,o0,bl0,d1418)\n",
    ),
    (
        "storcli /c0 show all",
        "Status = Success\nBBU_Info :\n========\n\n------------------------\nModel State  Temp Mode\n------------------------\nBBU   Failed 38C  -\n------------------------\n",
    ),
    ("sysctl ", "net.core.somaxconn = 4096\nvm.dirty_ratio = 20\n"),
    (
        "arping -c 3 HOST",
        "ARPING 192.0.2.7 from 192.0.2.9 eth0\nUnicast reply from 192.0.2.7 [02:00:00:00:00:07]  0.7ms\nUnicast reply from 192.0.2.7 [02:00:00:00:00:08]  0.9ms\nSent 2 probes (1 broadcast(s))\nReceived 2 response(s)\n",
    ),
    (
        "cat /proc/mdstat",
        "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n      976630464 blocks super 1.2 [2/2] [UU]\n\nunused devices: <none>\n",
    ),
    (
        "grep . /sys/block/DRIVE/queue/",
        "/sys/block/sdb/queue/nr_requests:256\n/sys/block/sdb/queue/scheduler:[mq-deadline] none\n",
    ),
    (
        "lvs -a",
        "  LV    VG  Attr       LSize   Pool Origin Data%  Meta%  Move Log Cpy%Sync Convert\n  home  vg0 -wi-ao---- 100.00g\n",
    ),
    (
        "numactl -H",
        "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 64000 MB\nnode 0 free: 1000 MB\nnode 1 cpus: 2 3\nnode 1 size: 64000 MB\nnode 1 free: 900 MB\nnode distances:\nnode   0   1\n  0:  10  21\n  1:  21  10\n",
    ),
    (
        "scontrol show node",
        "NodeName=arc-1 Arch=x86_64 CoresPerSocket=8\n   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1\n   Reason=mount missing [root@2026-11-20T10:00:00]\n",
    ),
    (
        "sinfo -lN",
        "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\narc-1          1      main     drained 16     2:8:1  64000        0      1   (null) mount missing\n",
    ),
    ("ss -s", "Total: 210\nTCP:   1200 (estab 100, closed 1000, orphaned 0, timewait 990)\n"),
    ("sysctl -a | grep rp_filter", "net.ipv4.conf.all.rp_filter = 1\n"),
    ("sysctl -a | grep bridge-nf-call", "net.bridge.bridge-nf-call-iptables = 1\n"),
    ("sysctl net.core.rmem_max", "net.core.rmem_max = 212992\n"),
    ("sysctl net.ipv4.neigh.default.gc_thresh3", "net.ipv4.neigh.default.gc_thresh3 = 1024\n"),
    (
        "sysctl net.ipv4.tcp_rmem",
        "net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_wmem = 4096 16384 4194304\n",
    ),
    (
        "tc -s qdisc show dev NIC",
        "qdisc tbf 8001: root refcnt 2 rate 15Mbit burst 256Mb lat 25ms\n Sent 1000 bytes 10 pkt (dropped 3, overlimits 5 requeues 0)\n",
    ),
];

/// The example with the longest beginning of a command.
fn example(command: &str) -> Option<&'static str> {
    let fits = EXAMPLES.iter().filter(|(head, _)| command.starts_with(head));
    fits.max_by_key(|(head, _)| head.len()).map(|(_, text)| *text)
}

/// A command as it would be typed: with names for the words that stand for them.
fn typed(command: &str) -> String {
    [
        ("NIC", "eth0"),
        ("DRIVE", "sdb"),
        ("DEV", "wlan0"),
        ("HOST", "192.0.2.7"),
        ("SERVER", "192.0.2.7"),
        ("PEER", "192.0.2.2"),
    ]
    .iter()
    .fold(command.replace("{to}", "192.0.2.7"), |text, (word, name)| text.replace(word, name))
}

/// The session of a command and its output.
fn session(command: &str, text: &str) -> Document {
    Document::new("x.txt", format!("[root@arc-1 ~]# {}\n{text}", typed(command)))
}

/// All examples.
pub(super) fn sessions() -> impl Iterator<Item = Document> {
    EXAMPLES.iter().map(|(command, text)| session(command, text))
}

#[test]
fn what_is_asked_for_is_read() {
    let mut lost = Vec::new();
    let knowledge = crate::knowledge();
    for (command, keys) in linerate_diagnose::commands_asked(knowledge.topics()) {
        // Its own report has a format of its own, which other tests read.
        if command.starts_with("linerate ") {
            continue;
        }
        let head = command.split(" | ").next().unwrap_or(command);
        let Some(text) = example(command).or_else(|| example(head)) else {
            lost.push(format!("no example of `{command}`"));
            continue;
        };
        let read = read_one(session(command, text));
        let facts = read.facts.get("arc-1");
        let has = |pattern: &str| {
            let keys = facts.iter().flat_map(|f| f.readings.keys().chain(f.counters.keys()));
            keys.into_iter().any(|k| pattern_fits(pattern, k))
        };
        let is_read = read.imported.as_ref().is_some_and(|account| !account.pieces.is_empty());
        if !is_read || !keys.is_empty() && !keys.iter().any(|key| has(key)) {
            lost.push(format!("`{command}` wants {keys:?}: {:?} {:?}", facts, read.imported));
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}
