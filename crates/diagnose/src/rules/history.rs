//! Numbers that decide what moved over many runs.

super::number::stage! {
    /// What moved over many runs.
    HistoryRules {
        segment_min: usize = 3, "points", "Shortest level: two values in a row are no change", "apache/otava#150: without it single spikes are change points";
        points_max: usize = 200, "points", "Newest points of a series that are searched";
        clip: f64 = 10.0, "standard deviations", "A value further away counts as this far";
        noise_floor: f64 = 0.15, "share", "Least noise of a series, of the smallest move that counts";
        screen: f64 = 3.5, "standard errors", "Smaller steps are chance without a closer test";
        permutations: usize = 400, "", "Shuffled series that show the steps of chance";
        chance_enough: usize = 8, "", "Steps of chance as large as the one tested after which no more are shuffled";
        tail_share: f64 = 0.2, "share", "Largest steps of chance that give the tail beyond them";
        tail_exponent_max: f64 = 8.0, "", "Steepest tail: a step twice as large is 256 times as rare";
        autocorrelation_min: f64 = 0.15, "", "Correlation of neighbouring values from which on they are shuffled together";
        autocorrelation_max: f64 = 0.9, "", "Correlation of neighbouring values that is accounted for at most";
        false_discoveries: f64 = 0.05, "share", "Of the moves that are reported, over all series", "Benjamini and Hochberg 1995";
        throughput_min: f64 = 0.1, "doublings", "Smallest move of throughput that counts: 7 %";
        throughput_floor: f64 = 1000.0, "bit/s", "Added to throughput so that its logarithm exists";
        hosts_min: usize = 3, "hosts", "Fewer do not show which end of a pair moved";
        partners_min: usize = 2, "partners", "Of a host with fewer in a run it is not known which of both moved";
        polish_done: f64 = 1e-4, "doublings", "A fit that moves less is done";
        polish_rounds: usize = 40, "", "Repetitions of the fit of effects of hosts";
        cycle_bins: usize = 6, "", "Parts of a day whose levels are compared";
        cycle_days_min: usize = 5, "days", "Shorter series show no daily cycle";
        cycle_bin_min: usize = 5, "points", "Points of each part of the day that show a daily cycle";
    }
}
