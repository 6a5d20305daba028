//! Numbers of the stage `ceilings`.

super::number::stage! {
    /// What should be reached.
    CeilingRules {
        ethernet_bytes: f64 = 38.0, "B", "Ethernet bytes around an IP packet: preamble 8, header 14, FCS 4, gap 12",
            "IEEE 802.3";
        tcp_bytes: f64 = 52.0, "B", "IPv4 and TCP headers with timestamps", "RFC 791, 9293, 7323";
        vxlan_bytes: f64 = 50.0, "B", "Outer IPv4, UDP and VXLAN headers, inner Ethernet header", "RFC 7348";
        mtu_usual: f64 = 1500.0, "B", "MTU where none was read", "IEEE 802.3";
        mtu_min: f64 = 576.0, "B", "A smaller MTU is an error of reading", "RFC 791";
        pcie_share: f64 = 0.88, "share", "PCIe line rate left for packet data with payloads of 256 bytes";
        pcie_coding_change_gts: f64 = 8.0, "GT/s", "Lane speed from which lanes code 128b/130b", "PCIe 3.0";
        pcie_coding_old: f64 = 0.8, "share", "Data share of 8b/10b", "PCIe 1.0";
        pcie_coding_new: f64 = 128.0 / 130.0, "share", "Data share of 128b/130b", "PCIe 3.0";
        receive_window_share: f64 = 0.5, "share", "Part of `tcp_rmem` that becomes window", "tcp_adv_win_scale = 1";
        core_busy_min: f64 = 0.05, "share", "Less busy, a CPU does not show what it would carry";
        level_max: f64 = 1.2, "factor", "Upper level over the ceiling that no path can carry: it was queued before";
        mean_max: f64 = 0.95, "share", "Mean over the ceiling from which on two levels lost nothing";
        link_speeds_bps: [f64; 11] = [1e9, 2.5e9, 5e9, 10e9, 20e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9], "bit/s",
            "Port speeds on the market, bonds included", "IEEE 802.3";
        link_share_min: f64 = 0.85, "share", "Least that a healthy transfer reaches of its link";
        link_share_max: f64 = 1.0, "share", "Most that a transfer reaches of its link";
        class_ratio_min: f64 = 1.5, "factor", "Distance of two classes of ports; the closest on the market are 1.6";
        class_fit: f64 = 1.15, "factor", "Distance of a cell from the rate of its class";
        class_fit_min: f64 = 0.75, "share", "Share of the cells that fit their class; the others may be faulty";
        class_hosts_min: usize = 2, "hosts", "Hosts of a class; a single one is a suspect";
        class_slower_min: f64 = 1.0 / 3.0, "share", "Share of the hosts with slower ports; fewer are suspects";
    }
}
