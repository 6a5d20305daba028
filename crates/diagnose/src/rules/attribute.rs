//! Numbers of the stage `attribute`.

super::number::stage! {
    /// Why: causes by what was read and measured.
    AttributeRules {
        prior_medium: f64 = -0.7, "log odds", "A cause of medium prior, against a high one";
        prior_low: f64 = -1.6, "log odds", "A cause of low prior, against a high one";
        unknown: f64 = -1.5, "log odds", "A cause that no file knows";
        difference: f64 = -3.0, "log odds", "A difference at the suspect that no file knows";
        difference_harmful: f64 = 2.0, "log odds", "Gained by one whose kind can hold traffic back by itself";
        unseen: f64 = 3.0, "log odds", "Lost by a cause without any reading in evidence that could not show one";
        unread: f64 = 1.5, "log odds", "Lost by a setting that was not read, although something supports it";
        standing: f64 = 2.0, "log odds", "Gained by a cause that left counts or events behind, in imported evidence";
        alias: f64 = -0.1, "log odds", "A cause of hosts at a group of one host, or the reverse";
        widened: f64 = -1.5, "log odds", "A cause of both directions where one suffers";
        alias_widened: f64 = -1.6, "log odds", "Both";
        half: f64 = -2.5, "log odds", "A cause of one direction, read there, where both suffer";
        two_hosts_end: f64 = -0.5, "log odds", "A cause of a host at a pair that is all there is";
        first_metric: f64 = 1.0, "log odds", "A cause whose symptom is the strongest metric";
        layer_match: f64 = 1.0, "log odds", "A cause of one layer where only it suffers";
        layer_alone: f64 = 0.3, "log odds", "A cause of one layer where only it was measured";
        contrast_peers: f64 = 3.0, "factor", "Weight of a healthy peer with the same value";
        contrast_min: f64 = -2.5, "log odds", "Most that healthy peers with the same value speak against";
        contrast_max: f64 = 2.0, "log odds", "Most that peers without it speak for";
        reading_contrast_min: f64 = -1.5, "log odds", "The first within one reading of a cause";
        reading_contrast_max: f64 = 1.0, "log odds", "The second within it";
        usual_min: f64 = 0.6, "share", "Peers that agree on what is usual";
        missing_min: f64 = 0.8, "share", "Peers that have what a host lacks";
        peers_min: usize = 2, "hosts", "Peers from which on a difference counts";
        peers_asked: usize = 8, "hosts", "Peers whose keys are listed to find what a host lacks";
        peers_max: usize = 256, "hosts", "Peers that stand for all of them";
        below_peers: f64 = 0.9, "factor", "Less than the usual value";
        above_peers: f64 = 1.1, "factor", "More than the usual value";
        close: f64 = 1e-6, "share", "Difference of two numbers that is noise";
        window_fit_min: f64 = 0.74, "factor", "Least that a binding window allows over the measured rate";
        window_fit_max: f64 = 1.35, "factor", "Most";
        rate_fit_min: f64 = 0.6, "factor", "Least measured rate over that of a binding link";
        rate_fit_max: f64 = 1.05, "factor", "Most";
        rtt_inside_us: f64 = 20_000.0, "us", "Longest RTT inside a cluster: 16 MiB of buffer at 6 Gbit/s";
        tunnel_bytes: f64 = 160.0, "B", "Headers of IPv6, TCP and a tunnel: a route may reduce its MTU by them";
        lines_max: usize = 4, "lines", "Readings quoted for one test of a cause";
        differences_max: usize = 12, "", "Benign differences that are listed";
        segments_min: f64 = 100.0, "segments", "Segments that give a share of retransmissions";
        segment_bytes: f64 = 1448.0, "B", "Payload of a full segment with timestamps", "MTU 1500 less 52";
        good_cells_max: usize = 2000, "cells", "Healthy cells that stand for all of them";
        idle_ratio_floor_us: f64 = 200.0, "us", "Added to both sides of `rtt_idle_ratio`";
        loaded_ratio_floor_us: f64 = 500.0, "us", "Added to both sides of `rtt_loaded_ratio`";
        retransmits_ratio_floor: f64 = 20.0, "1/s", "Added to both sides of `retransmits_ratio`";
        cpu_ratio_floor: f64 = 0.02, "s/GB", "Added to both sides of `cpu_ratio`";
        udp_clean: f64 = 0.003, "share", "Less loss is none";
        offered_margin: f64 = 1.1, "factor", "Throughput over the offered rate below which loss comes from the rate";
        full_share: f64 = 0.75, "share", "Share of the expected rate that is full";
        low_share: f64 = 0.5, "share", "Share of it that is low";
        full_intervals_min: usize = 12, "intervals", "Intervals that show whether a rate is intermittently full";
        full_cells_min: usize = 2, "cells", "Cells that do, where there are more";
        full_part_min: f64 = 0.12, "share", "Smallest share of intervals at the full rate";
        low_part_min: f64 = 0.25, "share", "Smallest share of intervals at the low rate";
        steadiness_min: usize = 5, "intervals", "Series that shows how steady it is";
        explains_min: f64 = 0.9, "share", "A cause less probable than this share of none of these explains nothing";
        others_are_fine: f64 = 2.0, "log odds", "Against a host whose other paths are healthy";
        same_loss_min: f64 = 0.2, "share", "Effect on a layer over that on the other from which both suffer";
        slow_direction_min: f64 = 5.0, "factor", "Loss of one direction, over what is a finding; the other has none";
        direction_min: f64 = 0.25, "probability", "A cause that decides the direction of its suspect";
        mismatch_min: f64 = 0.3, "probability", "A cause that names the setting that differs as its suspect";
        mismatch_share: f64 = 0.9, "share", "Probability moved to that suspect";
        mismatch_rest: f64 = 0.1, "share", "Probability that stays";
        setting_score_min: f64 = 0.5, "log odds", "A wrong setting without a measured loss";
        everywhere_min: f64 = 0.5, "share", "Hosts that have it where it stands for all";
    }
}
