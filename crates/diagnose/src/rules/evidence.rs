//! Numbers of the stage `evidence`.

super::number::stage! {
    /// What was measured, and what of it is valid.
    EvidenceRules {
        peer_quantile: f64 = 0.8, "quantile", "Rate of comparable cells that counts as healthy: a fifth may be bad";
        ramp_ms: f64 = 140.0, "ms", "Start of a transfer left out of its series: slow start and the drain after it";
        smoothing_ms: f64 = 60.0, "ms", "Window over which shorter intervals are averaged";
        long_ms: u32 = 2000, "ms", "Transfer that shows a state and its end";
        part_ms: f64 = 400.0, "ms", "Part of one that jumps between two levels: as good as a short transfer";
        series_min: usize = 8, "intervals", "Shortest series that can show two levels";
        repetitions_min: usize = 2, "tests", "Repetitions that confirm a loss";
        healthy_repetition: f64 = 0.8, "share", "Share of the expected rate at which a repetition is healthy";
        refuting_repetitions: usize = 2, "tests", "Repetitions of a probe that refute it";
        small_payload_max: u16 = 200, "B", "Largest UDP payload that tests the packet rate instead of the bit rate";
        capacity_min: f64 = 0.2, "share", "Share of a healthy rate below which the higher level is no capacity";
        own_work_min: f64 = 0.5, "share", "Share of a busy CPU that a transfer must use itself to be limited by it";
        level_ratio_min: f64 = 1.5, "factor", "Closer levels are one level with noise";
        level_share_min: f64 = 0.15, "share", "Shortest share of the time at each level";
        level_spread_max: f64 = 0.3, "share", "Spread within the levels over their distance, in log2";
        level_high: f64 = 0.85, "quantile", "Value that stands for the upper level: intervals mix the two";
        level_low: f64 = 0.1, "quantile", "Value that stands for the lower level";
        switches_min: usize = 3, "switches", "Changes of level that do not come by chance";
        plateau_min: usize = 4, "intervals", "Length of each of two plateaus with fewer switches";
        plateau_share_min: f64 = 0.3, "share", "Share of the time at the lower of two plateaus";
        level_cells_min: usize = 2, "cells", "Cells at each level when cells are bimodal only together";
        moment_ms: u64 = 1000, "ms", "Tests that begin within this time may share one disturbance";
        rtts_min: usize = 4, "requests", "Requests that give a spread of RTTs";
    }
}
