//! Numbers that judge a change, of a trial or between two runs.

super::number::stage! {
    /// The effect of a change.
    TrialRules {
        arm_min: usize = 3, "tests", "Valid measurements of an arm";
        narrow: f64 = 0.1, "share", "An interval this close to 1 on both sides is no effect";
        matters: f64 = 1.03, "factor", "Smallest improvement";
        floor_share: f64 = 0.001, "share", "Added to shares so that a ratio exists";
        floor_count: f64 = 1.0, "", "The same to counts and rates";
        floor_other: f64 = 1e-6, "", "The same to times and costs";
        control_share: f64 = 0.5, "share", "Movement of the control over the effect that casts doubt on it";
        control_min: f64 = 0.03, "share", "Smaller movements of the control are noise";
        resamples: usize = 2000, "", "Resamplings of an interval: its ends vary by a tenth of its width";
        confidence: f64 = 0.95, "probability", "Of the intervals";
        cell_ratio: f64 = 1.2, "factor", "Change of a cell between two runs";
        small_ratio: f64 = 1.05, "factor", "Smallest change of all cells";
        slow_share: f64 = 0.5, "share", "Share of the best that a slow cell reaches";
        cells_min: usize = 2, "cells", "Cells that show a change";
        cell_tests_min: usize = 2, "tests", "Tests of a cell in each run that show a small change";
        proven_min: f64 = 1.1, "factor", "An interval above this proves an improvement";
        proven_max: f64 = 0.9, "factor", "An interval below this proves a decline";
        level_intervals_min: usize = 3, "intervals", "Intervals behind the first that show the level of a transfer";
        nothing_bps: f64 = 1000.0, "bit/s", "Lower rates are none";
    }
}
