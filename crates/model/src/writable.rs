//! What may be written: every setting that a change, a knowledge file or a journal may name, with its risk.
//!
//! In: a key of a fact, or a pattern of keys. Out: the family that allows it, or nothing. The node writes
//! nothing else, whatever asks for it.
//!
//! Not on the list, and not to be added: what runs programs (`kernel.core_pattern`, `kernel.modprobe`,
//! `kernel.hotplug`, `kernel.poweroff_cmd`), what cannot be taken back (`kernel.modules_disabled`,
//! `kernel.kexec_load_disabled`, `kernel.unprivileged_bpf_disabled`, `net.ipv6.conf.*.disable_ipv6`, which
//! loses the addresses, `net.ipv4.ip_forward` and `net.ipv4.conf.*.forwarding`, which set the forwarding of
//! every device and switch its large receive offload off), what protects the host (`kernel.kptr_restrict`,
//! `kernel.randomize_va_space`, `kernel.yama.*`, `kernel.sysrq`, `net.core.bpf_jit_harden`,
//! `net.ipv4.tcp_syncookies`, everything below `fs`), what a trial could not show (`sunrpc.*`: a mount has
//! the slots of the moment in which it was made), and secrets.

use crate::change::Risk;

/// What a setting is while the kernel has nothing of its name, and its table was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// An entry of a table that is not there: `none`.
    NoEntry,
    /// A switch of something that is not there: off.
    Off,
}

/// Settings of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WritableFamily {
    /// What they are, one sentence for the reference.
    pub what: &'static str,
    /// What writing one of them can cost.
    pub risk: Risk,
    /// Keys; `*` stands for any text without a `.` in it.
    pub keys: &'static [&'static str],
    /// What one is that the kernel does not have, and that is then no fact; nothing where it has no value.
    pub absent: Option<Absent>,
}

const fn family(risk: Risk, what: &'static str, keys: &'static [&'static str]) -> WritableFamily {
    WritableFamily { what, risk, keys, absent: None }
}

const fn entries(risk: Risk, what: &'static str, keys: &'static [&'static str]) -> WritableFamily {
    WritableFamily { what, risk, keys, absent: Some(Absent::NoEntry) }
}

const fn switches(risk: Risk, what: &'static str, keys: &'static [&'static str]) -> WritableFamily {
    WritableFamily { what, risk, keys, absent: Some(Absent::Off) }
}

use Risk::{Brief, Dangerous, Disruptive, Harmless};

/// Everything that may be written.
pub const WRITABLE: &[WritableFamily] = &[
    family(
        Harmless,
        "Buffers of sockets.",
        &[
            "sysctl.net.core.optmem_max",
            "sysctl.net.core.rmem_default",
            "sysctl.net.core.rmem_max",
            "sysctl.net.core.wmem_default",
            "sysctl.net.core.wmem_max",
            "sysctl.net.ipv4.tcp_rmem",
            "sysctl.net.ipv4.tcp_wmem",
            "sysctl.net.ipv4.udp_rmem_min",
            "sysctl.net.ipv4.udp_wmem_min",
            "sysctl.net.unix.max_dgram_qlen",
        ],
    ),
    family(
        Brief,
        "Memory of all sockets of a protocol, pages.",
        &["sysctl.net.ipv4.tcp_mem", "sysctl.net.ipv4.udp_mem"],
    ),
    family(
        Harmless,
        "Queues of received packets and of connections that wait to be accepted.",
        &[
            "sysctl.net.core.flow_limit_cpu_bitmap",
            "sysctl.net.core.flow_limit_table_len",
            "sysctl.net.core.netdev_max_backlog",
            "sysctl.net.core.rps_sock_flow_entries",
            "sysctl.net.core.somaxconn",
            "sysctl.net.ipv4.tcp_max_syn_backlog",
        ],
    ),
    family(
        Brief,
        "Work of the kernel for received packets, which costs CPU time.",
        &[
            "sysctl.net.core.busy_poll",
            "sysctl.net.core.busy_read",
            "sysctl.net.core.dev_weight",
            "sysctl.net.core.dev_weight_rx_bias",
            "sysctl.net.core.dev_weight_tx_bias",
            "sysctl.net.core.gro_normal_batch",
            "sysctl.net.core.netdev_budget",
            "sysctl.net.core.netdev_budget_usecs",
            "sysctl.net.core.netdev_tstamp_prequeue",
        ],
    ),
    family(
        Harmless,
        "How new devices queue and new connections behave.",
        &[
            "sysctl.net.core.default_qdisc",
            "sysctl.net.ipv4.tcp_congestion_control",
            "sysctl.net.core.txrehash",
        ],
    ),
    family(
        Harmless,
        "Behaviour of TCP connections.",
        &[
            "sysctl.net.ipv4.tcp_adv_win_scale",
            "sysctl.net.ipv4.tcp_app_win",
            "sysctl.net.ipv4.tcp_autocorking",
            "sysctl.net.ipv4.tcp_base_mss",
            "sysctl.net.ipv4.tcp_comp_sack_delay_ns",
            "sysctl.net.ipv4.tcp_comp_sack_nr",
            "sysctl.net.ipv4.tcp_comp_sack_slack_ns",
            "sysctl.net.ipv4.tcp_dsack",
            "sysctl.net.ipv4.tcp_early_demux",
            "sysctl.net.ipv4.tcp_early_retrans",
            "sysctl.net.ipv4.tcp_ecn",
            "sysctl.net.ipv4.tcp_ecn_fallback",
            "sysctl.net.ipv4.tcp_fack",
            "sysctl.net.ipv4.tcp_fastopen",
            "sysctl.net.ipv4.tcp_frto",
            "sysctl.net.ipv4.tcp_limit_output_bytes",
            "sysctl.net.ipv4.tcp_low_latency",
            "sysctl.net.ipv4.tcp_max_reordering",
            "sysctl.net.ipv4.tcp_min_rtt_wlen",
            "sysctl.net.ipv4.tcp_min_tso_segs",
            "sysctl.net.ipv4.tcp_moderate_rcvbuf",
            "sysctl.net.ipv4.tcp_mtu_probe_floor",
            "sysctl.net.ipv4.tcp_mtu_probing",
            "sysctl.net.ipv4.tcp_no_metrics_save",
            "sysctl.net.ipv4.tcp_no_ssthresh_metrics_save",
            "sysctl.net.ipv4.tcp_notsent_lowat",
            "sysctl.net.ipv4.tcp_pacing_ca_ratio",
            "sysctl.net.ipv4.tcp_pacing_ss_ratio",
            "sysctl.net.ipv4.tcp_pingpong_thresh",
            "sysctl.net.ipv4.tcp_probe_interval",
            "sysctl.net.ipv4.tcp_probe_threshold",
            "sysctl.net.ipv4.tcp_recovery",
            "sysctl.net.ipv4.tcp_reflect_tos",
            "sysctl.net.ipv4.tcp_reordering",
            "sysctl.net.ipv4.tcp_retrans_collapse",
            "sysctl.net.ipv4.tcp_rto_min_us",
            "sysctl.net.ipv4.tcp_sack",
            "sysctl.net.ipv4.tcp_shrink_window",
            "sysctl.net.ipv4.tcp_slow_start_after_idle",
            "sysctl.net.ipv4.tcp_thin_linear_timeouts",
            "sysctl.net.ipv4.tcp_timestamps",
            "sysctl.net.ipv4.tcp_tso_rtt_log",
            "sysctl.net.ipv4.tcp_tso_win_divisor",
            "sysctl.net.ipv4.tcp_window_scaling",
            "sysctl.net.ipv4.tcp_workaround_signed_windows",
        ],
    ),
    family(
        Disruptive,
        "When TCP gives a connection up, and what it keeps of ended ones.",
        &[
            "sysctl.net.ipv4.tcp_abort_on_overflow",
            "sysctl.net.ipv4.tcp_fin_timeout",
            "sysctl.net.ipv4.tcp_keepalive_intvl",
            "sysctl.net.ipv4.tcp_keepalive_probes",
            "sysctl.net.ipv4.tcp_keepalive_time",
            "sysctl.net.ipv4.tcp_max_orphans",
            "sysctl.net.ipv4.tcp_max_tw_buckets",
            "sysctl.net.ipv4.tcp_orphan_retries",
            "sysctl.net.ipv4.tcp_retries1",
            "sysctl.net.ipv4.tcp_retries2",
            "sysctl.net.ipv4.tcp_rto_max_ms",
            "sysctl.net.ipv4.tcp_syn_retries",
            "sysctl.net.ipv4.tcp_synack_retries",
            "sysctl.net.ipv4.tcp_tw_reuse",
        ],
    ),
    family(
        Harmless,
        "Several paths of one connection (MPTCP).",
        &[
            "sysctl.net.mptcp.add_addr_timeout",
            "sysctl.net.mptcp.allow_join_initial_addr_port",
            "sysctl.net.mptcp.enabled",
            "sysctl.net.mptcp.scheduler",
            "sysctl.net.mptcp.stale_loss_cnt",
        ],
    ),
    family(
        Harmless,
        "Memory and time for fragments of packets.",
        &[
            "sysctl.net.ipv4.ipfrag_high_thresh",
            "sysctl.net.ipv4.ipfrag_low_thresh",
            "sysctl.net.ipv4.ipfrag_max_dist",
            "sysctl.net.ipv4.ipfrag_time",
            "sysctl.net.ipv6.ip6frag_high_thresh",
            "sysctl.net.ipv6.ip6frag_low_thresh",
            "sysctl.net.ipv6.ip6frag_time",
        ],
    ),
    family(
        Brief,
        "Path MTU, ports and the choice among several routes.",
        &[
            "sysctl.net.ipv4.fib_multipath_hash_fields",
            "sysctl.net.ipv4.fib_multipath_hash_policy",
            "sysctl.net.ipv4.fib_multipath_use_neigh",
            "sysctl.net.ipv4.ip_early_demux",
            "sysctl.net.ipv4.ip_local_port_range",
            "sysctl.net.ipv4.ip_no_pmtu_disc",
            "sysctl.net.ipv4.route.min_adv_mss",
            "sysctl.net.ipv4.route.min_pmtu",
            "sysctl.net.ipv4.route.mtu_expires",
            "sysctl.net.ipv4.udp_early_demux",
            "sysctl.net.ipv6.auto_flowlabels",
            "sysctl.net.ipv6.fib_multipath_hash_fields",
            "sysctl.net.ipv6.fib_multipath_hash_policy",
            "sysctl.net.ipv6.route.mtu_expires",
        ],
    ),
    family(
        Disruptive,
        "Tables of neighbours and answers to ARP.",
        &[
            "sysctl.net.ipv4.conf.*.arp_announce",
            "sysctl.net.ipv4.conf.*.arp_filter",
            "sysctl.net.ipv4.conf.*.arp_ignore",
            "sysctl.net.ipv4.conf.*.arp_notify",
            "sysctl.net.ipv4.neigh.*.base_reachable_time_ms",
            "sysctl.net.ipv4.neigh.*.gc_interval",
            "sysctl.net.ipv4.neigh.*.gc_stale_time",
            "sysctl.net.ipv4.neigh.*.gc_thresh1",
            "sysctl.net.ipv4.neigh.*.gc_thresh2",
            "sysctl.net.ipv4.neigh.*.gc_thresh3",
            "sysctl.net.ipv4.neigh.*.mcast_solicit",
            "sysctl.net.ipv4.neigh.*.retrans_time_ms",
            "sysctl.net.ipv4.neigh.*.ucast_solicit",
            "sysctl.net.ipv4.neigh.*.unres_qlen_bytes",
            "sysctl.net.ipv6.neigh.*.base_reachable_time_ms",
            "sysctl.net.ipv6.neigh.*.gc_interval",
            "sysctl.net.ipv6.neigh.*.gc_stale_time",
            "sysctl.net.ipv6.neigh.*.gc_thresh1",
            "sysctl.net.ipv6.neigh.*.gc_thresh2",
            "sysctl.net.ipv6.neigh.*.gc_thresh3",
            "sysctl.net.ipv6.neigh.*.mcast_solicit",
            "sysctl.net.ipv6.neigh.*.retrans_time_ms",
            "sysctl.net.ipv6.neigh.*.ucast_solicit",
            "sysctl.net.ipv6.neigh.*.unres_qlen_bytes",
        ],
    ),
    family(
        Dangerous,
        "Whose source addresses and redirects the host believes.",
        &[
            "sysctl.net.ipv4.conf.*.accept_redirects",
            "sysctl.net.ipv4.conf.*.rp_filter",
            "sysctl.net.ipv4.conf.*.secure_redirects",
            "sysctl.net.ipv4.conf.*.send_redirects",
        ],
    ),
    family(
        Dangerous,
        "Whether packets of a bridge pass the firewall.",
        &[
            "sysctl.net.bridge.bridge-nf-call-arptables",
            "sysctl.net.bridge.bridge-nf-call-ip6tables",
            "sysctl.net.bridge.bridge-nf-call-iptables",
        ],
    ),
    family(
        Harmless,
        "Size of the table of connections (conntrack).",
        &[
            "sysctl.net.netfilter.nf_conntrack_buckets",
            "sysctl.net.netfilter.nf_conntrack_expect_max",
            "sysctl.net.netfilter.nf_conntrack_max",
            "sysctl.net.nf_conntrack_max",
        ],
    ),
    family(
        Disruptive,
        "How long a connection stays in the table of connections.",
        &[
            "sysctl.net.netfilter.nf_conntrack_generic_timeout",
            "sysctl.net.netfilter.nf_conntrack_tcp_timeout_*",
            "sysctl.net.netfilter.nf_conntrack_udp_timeout",
            "sysctl.net.netfilter.nf_conntrack_udp_timeout_stream",
        ],
    ),
    family(
        Disruptive,
        "Cache of files: when changed pages are written, what stays in memory.",
        &[
            "sysctl.vm.dirty_background_bytes",
            "sysctl.vm.dirty_background_ratio",
            "sysctl.vm.dirty_bytes",
            "sysctl.vm.dirty_expire_centisecs",
            "sysctl.vm.dirty_ratio",
            "sysctl.vm.dirty_writeback_centisecs",
            "sysctl.vm.dirtytime_expire_seconds",
            "sysctl.vm.swappiness",
            "sysctl.vm.vfs_cache_pressure",
        ],
    ),
    family(
        Disruptive,
        "Reserves and reclaim of memory.",
        &[
            "sysctl.vm.compaction_proactiveness",
            "sysctl.vm.min_free_kbytes",
            "sysctl.vm.percpu_pagelist_high_fraction",
            "sysctl.vm.stat_interval",
            "sysctl.vm.watermark_boost_factor",
            "sysctl.vm.watermark_scale_factor",
            "sysctl.vm.zone_reclaim_mode",
        ],
    ),
    family(
        Disruptive,
        "Where and for how long the scheduler runs programs.",
        &[
            "sysctl.kernel.numa_balancing",
            "sysctl.kernel.sched_autogroup_enabled",
            "sysctl.kernel.sched_cfs_bandwidth_slice_us",
            "sysctl.kernel.sched_energy_aware",
            "sysctl.kernel.sched_latency_ns",
            "sysctl.kernel.sched_migration_cost_ns",
            "sysctl.kernel.sched_min_granularity_ns",
            "sysctl.kernel.sched_nr_migrate",
            "sysctl.kernel.sched_wakeup_granularity_ns",
            "sysctl.kernel.timer_migration",
        ],
    ),
    family(
        Disruptive,
        "Largest packet of a device; what is larger is lost or cut. Not below 1280 where IPv6 is in use, which \
         loses its addresses.",
        &["nic.*.mtu"],
    ),
    family(
        Harmless,
        "Length of a device's transmit queue, and segments of an aggregated packet.",
        &["nic.*.gso_max_segs", "nic.*.txqueuelen"],
    ),
    family(
        Brief,
        "Offloads of a device, as `ethtool -k` names them; some drivers take the link down for a moment.",
        &[
            "nic.*.feature.generic-receive-offload",
            "nic.*.feature.generic-segmentation-offload",
            "nic.*.feature.large-receive-offload",
            "nic.*.feature.receive-hashing",
            "nic.*.feature.rx-checksumming",
            "nic.*.feature.rx-gro",
            "nic.*.feature.rx-gro-hw",
            "nic.*.feature.rx-gro-list",
            "nic.*.feature.rx-udp-gro-forwarding",
            "nic.*.feature.rx-udp_tunnel-port-offload",
            "nic.*.feature.rx-vlan-offload",
            "nic.*.feature.scatter-gather",
            "nic.*.feature.tcp-segmentation-offload",
            "nic.*.feature.tx-*",
        ],
    ),
    family(
        Brief,
        "Packets in the rings of a device; the link goes down for a moment.",
        &["nic.*.ring.rx", "nic.*.ring.rx_jumbo", "nic.*.ring.rx_mini", "nic.*.ring.tx"],
    ),
    family(
        Brief,
        "Queues of a device; the link goes down for a moment, and the driver may give its interrupts anew.",
        &["nic.*.channels.combined", "nic.*.channels.other", "nic.*.channels.rx", "nic.*.channels.tx"],
    ),
    family(Brief, "When a device interrupts; earlier costs CPU time.", &["nic.*.coalesce.*"]),
    family(
        Brief,
        "CPUs that work for a device.",
        &[
            "nic.*.irq.*.affinity",
            "nic.*.queue.rx-*.rps_cpus",
            "nic.*.queue.rx-*.rps_flow_cnt",
            "nic.*.queue.tx-*.xps_cpus",
        ],
    ),
    family(
        Brief,
        "Whether irqbalance runs or is paused; while it is, nothing spreads interrupts.",
        &["cpu.irqbalance"],
    ),
    family(Brief, "Fields of a packet that choose its receive queue.", &["nic.*.rss.*"]),
    family(
        Brief,
        "Root queueing discipline of a device and its rate; packets in the old one are lost.",
        &["nic.*.qdisc", "nic.*.qdisc_exact", "nic.*.qdisc_rate_bit"],
    ),
    family(
        Disruptive,
        "Flow control by pause frames, which stops other hosts too, and energy saving; the link goes down for a \
         moment.",
        &[
            "nic.*.eee.enabled",
            "nic.*.eee.tx_lpi_enabled",
            "nic.*.eee.tx_lpi_timer",
            "nic.*.pause.autoneg",
            "nic.*.pause.rx",
            "nic.*.pause.tx",
        ],
    ),
    family(
        Disruptive,
        "Negotiation of the speed of a link, which goes down for some seconds.",
        &["nic.*.autoneg", "nic.*.link_exact"],
    ),
    family(
        Disruptive,
        "Agents in the firmware of a device; what they negotiated ends.",
        &["nic.*.private.disable-fw-lldp"],
    ),
    family(
        Brief,
        "Fields by which a bond chooses a port; connections change theirs once.",
        &["nic.*.bond.xmit_hash_policy"],
    ),
    family(
        Disruptive,
        "Mode of IP over InfiniBand; hosts of different modes lose large packets between each other.",
        &["nic.*.ipoib_mode"],
    ),
    entries(
        Disruptive,
        "Routes of the main table; what they lead to may be out of reach.",
        &["route.*", "route.*.*", "route.*.*.*", "route_exact.*", "route_exact.*.*", "route_exact.*.*.*"],
    ),
    entries(
        Disruptive,
        "Policy rules, which choose the routing table; what they lead to may be out of reach.",
        &["rule.*.*", "rule_exact.*"],
    ),
    entries(
        Brief,
        "Hardware addresses that are written down for neighbours; without one the host asks for it.",
        &["nic.*.neighbour.*"],
    ),
    entries(
        Brief,
        "Forwarding entries of tunnels and bridges; without one a bridge learns, a tunnel may reach nothing.",
        &["nic.*.fdb.*", "nic.*.fdb_exact.*"],
    ),
    switches(
        Dangerous,
        "Rules of the firewall that drop by chance or above a rate; without one more gets through.",
        &["firewall.limit_rule.*", "firewall.random_rule.*"],
    ),
    family(Brief, "Frequency governor of the CPUs; a faster one costs energy.", &["cpu.governor"]),
    family(
        Brief,
        "How the kernel queues, reads ahead and holds writes back for a block device; its queue is emptied.",
        &[
            "disk.*.nomerges",
            "disk.*.nr_requests",
            "disk.*.queue_depth",
            "disk.*.read_ahead_kb",
            "disk.*.rq_affinity",
            "disk.*.scheduler",
            "disk.*.wbt_lat_usec",
        ],
    ),
    family(
        Disruptive,
        "Rate of a check or rebuild of md, which slows other requests; `system` for that of all arrays.",
        &["disk.*.md_sync_speed_max", "disk.*.md_sync_speed_min"],
    ),
    family(
        Dangerous,
        "Cache of a drive for writes (drive_cache), and whether the kernel flushes it (write_cache): a power \
         loss destroys what a cache holds that is not flushed.",
        &["disk.*.drive_cache", "disk.*.write_cache"],
    ),
    family(
        Brief,
        "Idle states of the CPUs; without the deep ones they cost energy.",
        &["cpu.idle_exact", "cpu.idle_latency_us"],
    ),
    family(
        Dangerous,
        "Clock of the kernel; one that is not reliable makes the time jump.",
        &["cpu.clocksource"],
    ),
    family(
        Brief,
        "How a resource of DRBD sends writes to its peer.",
        &[
            "drbd.*.disk.al-extents",
            "drbd.*.disk.disk-barrier",
            "drbd.*.net.data-integrity-alg",
            "drbd.*.net.max-buffers",
            "drbd.*.net.max-epoch-size",
            "drbd.*.net.tcp-cork",
            "drbd.*.net.unplug-watermark",
        ],
    ),
    family(
        Disruptive,
        "Rate of a synchronisation of DRBD, which slows other writes.",
        &[
            "drbd.*.disk.c-delay-target",
            "drbd.*.disk.c-fill-target",
            "drbd.*.disk.c-max-rate",
            "drbd.*.disk.c-min-rate",
            "drbd.*.disk.c-plan-ahead",
            "drbd.*.disk.resync-rate",
        ],
    ),
    family(
        Dangerous,
        "What DRBD promises about writes: a second copy, and what a power loss leaves.",
        &[
            "drbd.*.disk.al-updates",
            "drbd.*.disk.disk-flushes",
            "drbd.*.disk.md-flushes",
            "drbd.*.net.protocol",
            "drbd.*.peer",
        ],
    ),
];

/// The family that allows a key to be written, also that of a namespace inside a host (`netns.<path>|<key>`).
/// For a pattern of keys with `*`: the family that allows all of them.
pub fn writable(key: &str) -> Option<&'static WritableFamily> {
    let key = match key.strip_prefix("netns.") {
        Some(inside) => inside.split_once('|')?.1,
        None => key,
    };
    WRITABLE.iter().find(|family| family.keys.iter().any(|pattern| covers(pattern, key)))
}

/// Whether a pattern of the list matches a key. A `*` of the key is an ordinary character, which only a `*`
/// of the pattern matches.
fn covers(pattern: &str, key: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('.'), key.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if part_covers(part, name) => {}
            _ => return false,
        }
    }
}

fn part_covers(part: &str, name: &str) -> bool {
    let Some((head, tail)) = part.split_once('*') else { return part == name };
    name.len() > head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fact::check_key;
    use crate::step::DRBD_OPTIONS;

    #[test]
    fn what_runs_programs_cannot_be_undone_or_protects_the_host_is_not_on_the_list() {
        for name in [
            "kernel.core_pattern",
            "kernel.core_uses_pid",
            "kernel.modprobe",
            "kernel.hotplug",
            "kernel.poweroff_cmd",
            "kernel.usermodehelper.bset",
            "kernel.modules_disabled",
            "kernel.kexec_load_disabled",
            "kernel.unprivileged_bpf_disabled",
            "kernel.kptr_restrict",
            "kernel.dmesg_restrict",
            "kernel.randomize_va_space",
            "kernel.perf_event_paranoid",
            "kernel.sysrq",
            "kernel.panic",
            "kernel.yama.ptrace_scope",
            "kernel.hostname",
            "fs.protected_symlinks",
            "fs.suid_dumpable",
            "net.core.bpf_jit_harden",
            "net.core.bpf_jit_enable",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.tcp_fastopen_key",
            "net.ipv4.tcp_challenge_ack_limit",
            "net.ipv4.conf.all.log_martians",
            "net.ipv4.conf.all.accept_source_route",
            "net.ipv4.conf.all.forwarding",
            "net.ipv4.conf.default.forwarding",
            "net.ipv4.conf.eth0.forwarding",
            "net.ipv4.ip_forward",
            "net.ipv6.conf.all.forwarding",
            "net.ipv6.conf.all.disable_ipv6",
            "vm.overcommit_memory",
            "vm.mmap_min_addr",
            "vm.drop_caches",
            "vm.nr_hugepages",
            "sunrpc.tcp_slot_table_entries",
        ] {
            assert_eq!(writable(&format!("sysctl.{name}")), None, "{name}");
        }
        for key in [
            "nic.eth0.feature.loopback",
            "nic.eth0.feature.rx-all",
            "nic.eth0.speed_mbit",
            "",
            "netns.x",
            "cpu.smt",
            "disk.sda.size_bytes",
            "disk_health.sda.state",
        ] {
            assert_eq!(writable(key), None, "{key}");
        }
    }

    #[test]
    fn settings_of_devices_and_namespaces_are_found_with_their_risk() {
        let risk = |key: &str| writable(key).map(|family| family.risk);
        assert_eq!(risk("sysctl.net.ipv4.tcp_sack"), Some(Harmless));
        assert_eq!(risk("netns./proc/7/fd/9|sysctl.net.ipv4.tcp_sack"), Some(Harmless));
        assert_eq!(risk("netns.pid:7|sysctl.kernel.core_pattern"), None);
        assert_eq!(risk("sysctl.net.ipv4.conf.bond0/140.rp_filter"), Some(Dangerous));
        assert_eq!(risk("nic.bond0/140.ring.rx"), Some(Brief));
        assert_eq!(risk("nic.eth0.feature.tx-udp_tnl-segmentation"), Some(Brief));
        assert_eq!(risk("drbd.r0.net.protocol"), Some(Dangerous));
    }

    #[test]
    fn a_pattern_is_allowed_only_where_everything_it_names_is() {
        for allowed in
            ["nic.*.mtu", "nic.*.feature.tx-*", "drbd.*.net.max-buffers", "sysctl.net.ipv4.conf.*.rp_filter"]
        {
            assert!(writable(allowed).is_some(), "{allowed}");
        }
        for refused in [
            "*",
            "sysctl.*",
            "sysctl.kernel.*",
            "sysctl.net.ipv4.tcp_*",
            "nic.*.feature.*",
            "nic.*",
            "drbd.*.net.*",
        ] {
            assert_eq!(writable(refused), None, "{refused}");
        }
    }

    #[test]
    fn every_key_is_well_formed_and_listed_once_and_every_option_of_drbd_has_a_risk() {
        let mut seen = BTreeSet::new();
        for family in WRITABLE {
            for key in family.keys {
                assert!(check_key(key) && seen.insert(*key), "{key}");
                assert!(key.split('.').all(|part| part.matches('*').count() <= 1), "{key}");
            }
            assert!(family.what.ends_with('.'), "{}", family.what);
        }
        for option in DRBD_OPTIONS {
            let key = format!("drbd.r0.{}.{}", option.section.word(), option.name);
            assert!(writable(&key).is_some(), "{key}");
        }
    }
}
