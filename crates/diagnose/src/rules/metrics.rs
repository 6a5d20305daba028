//! Numbers of the stage `metrics`. An effect size is 0 where a value is as expected, in doublings otherwise.

super::number::stage! {
    /// How far off each cell is in each metric, against its noise.
    MetricRules {
        loss_floor: f64 = 0.002, "share", "Added to both sides of the ratio of loss";
        loss_sigma: f64 = 0.35, "doublings", "Noise of loss";
        loss_effect_min: f64 = 1.3, "doublings", "Smallest excess loss worth a finding: 0.3 %";
        loss_healthy: f64 = 0.3, "quantile", "Healthy loss among peers, from the best";
        reordering_floor: f64 = 0.003, "share", "Added to both sides of the ratio of reordering";
        reordering_sigma: f64 = 0.4, "doublings", "Noise of reordering";
        reordering_effect_min: f64 = 1.3, "doublings", "Smallest excess reordering worth a finding";
        reordering_healthy: f64 = 0.3, "quantile", "Healthy reordering among peers, from the best";
        retransmits_floor: f64 = 40.0, "1/s", "Added to both sides: a healthy sender overruns any finite queue";
        retransmits_sigma: f64 = 0.8, "doublings", "Noise of retransmits";
        retransmits_effect_min: f64 = 2.3, "doublings", "Smallest excess of retransmits worth a finding";
        retransmits_healthy: f64 = 0.6, "quantile", "Healthy retransmits among peers, from the best";
        stalls_floor: f64 = 20_000.0, "us", "Added to both sides: a busy receiver delays a datagram by as much";
        stalls_sigma: f64 = 0.35, "doublings", "Noise of the longest stall";
        stalls_effect_min: f64 = 1.3, "doublings", "Smallest excess stall worth a finding";
        stalls_healthy: f64 = 0.3, "quantile", "Healthy stalls among peers, from the best";
        rtt_idle_floor: f64 = 400.0, "us", "Added to both sides of the ratio of idle RTTs";
        rtt_idle_sigma: f64 = 0.3, "doublings", "Noise of the idle RTT";
        rtt_idle_effect_min: f64 = 0.65, "doublings", "Smallest excess of the idle RTT worth a finding";
        rtt_scattered_min: f64 = 0.12, "share", "Change between requests above which the idle RTT scatters";
        rtt_steady_max: f64 = 0.06, "share", "The same of peers that are steady: a healthy path has 0.02 to 0.06";
        rtt_scattered_sigma: f64 = 0.15, "doublings", "Noise of an idle RTT that scatters beside steady peers";
        rtt_scattered_effect_min: f64 = 0.45, "doublings", "Smallest excess of it worth a finding";
        rtt_idle_healthy: f64 = 0.2, "quantile", "Healthy idle RTT among peers: of three hosts two thirds wait for one";
        rtt_loaded_floor: f64 = 500.0, "us", "Added to both sides of the ratio of loaded RTTs";
        rtt_loaded_sigma: f64 = 0.25, "doublings", "Noise of the loaded RTT";
        rtt_loaded_effect_min: f64 = 0.8, "doublings", "Smallest excess of the loaded RTT worth a finding";
        rtt_loaded_healthy: f64 = 0.3, "quantile", "Healthy loaded RTT among peers, from the best";
        cpu_cost_floor: f64 = 0.02, "s/GB", "Added to both sides of the ratio of CPU costs";
        cpu_cost_sigma: f64 = 0.5, "doublings", "Noise of the CPU cost: a factor of 1.5 on a busy machine";
        cpu_cost_effect_min: f64 = 1.3, "doublings", "Smallest excess CPU cost worth a finding";
        cpu_cost_healthy: f64 = 0.3, "quantile", "Healthy CPU cost among peers, from the best";
        rtt_pair_sigma: f64 = 0.15, "doublings", "Noise of the idle RTT where there are no peers";
        effect_max: f64 = 10.0, "doublings", "Effect size of a throughput of zero: a thousandth; none is larger";
        dead: f64 = 6.0, "doublings", "Effect size above which nothing got through: a state of its own";
        throughput_min: f64 = 0.2, "doublings", "Loss of throughput worth a finding below a known ceiling: 13 %";
        throughput_peers_min: f64 = 0.5, "doublings", "The same between machines where only peers are known";
        throughput_inside_min: f64 = 1.3, "doublings", "The same inside a machine where only peers are known";
        throughput_sigma_min: f64 = 0.06, "doublings", "Least noise of throughput below a known ceiling";
        throughput_peers_sigma_min: f64 = 0.2, "doublings", "The same between machines where only peers are known";
        throughput_inside_sigma_min: f64 = 0.6, "doublings", "The same inside a machine where only peers are known";
        throughput_sigma_max: f64 = 0.3, "doublings", "Most noise of throughput, where the least is not more";
        healthy_quantile: f64 = 0.8, "quantile", "Throughput of the better cells that stands for a healthy one";
        healthy_share: f64 = 0.97, "share", "Share of the ceiling of a healthy transfer where too few can show it";
        calibration_min: f64 = 0.75, "share", "Share of the ceiling below which even the better cells are too slow";
        common_min: usize = 4, "cells", "Fewer cells do not show what is common to all";
        repeated_min: usize = 4, "cells", "Repeated cells from which on repetitions give the noise";
        repeated_sigma: f64 = 1.5, "factor", "Noise over the median distance of two repetitions";
        better_fifths: usize = 3, "fifths", "Better part of the cells that gives the noise without repetitions";
        queue_usual_us: f64 = 20_000.0, "us", "Queueing of a healthy path under load: 2.5 MB at 1 Gbit/s";
        scatter_min: usize = 12, "values", "Fewer values do not show how much they scatter";
        scatter_max: f64 = 0.6, "doublings", "Most scatter of the loaded RTT taken for chance";
        slower_max: f64 = 4.0, "factor", "Slower paths are slow, whatever their queue";
        unprobed_loss_sigma: f64 = 2.5, "doublings", "Noise of a loss of 0 known from answered requests alone";
        late_series_min: usize = 6, "intervals", "Series whose second half gives the loaded RTT";
        silent_probes_min: u32 = 2, "packets", "Unanswered packets of a size that show a path MTU";
        yes: f64 = 3.0, "doublings", "Effect size of a yes: path MTU, bimodal, held back";
        yes_sigma: f64 = 0.4, "doublings", "Noise of a yes";
        yes_effect_min: f64 = 1.5, "doublings", "Effect size at which it is one";
        throttled_min: i64 = 2, "periods", "Throttled periods of a CPU quota during a test that count";
        held_back_min: f64 = 0.5, "share", "Share of the tests during which a host was held back";
    }
}
