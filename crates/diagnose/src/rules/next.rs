//! Numbers of the stage `next`.

super::number::stage! {
    /// Which measurement would decide.
    NextRules {
        repeats: u16 = 3, "tests", "Repetitions of a test: a median of three survives one disturbance";
        streams: u16 = 8, "streams", "Connections of the second kind of TCP test";
        partners: usize = 2, "hosts", "Healthy partners of a suspect";
        partner_hosts_min: usize = 2, "hosts", "More hosts are needed for a partner";
        weak: f64 = 15.0, "log odds", "Weaker findings are repeated";
        cells_max: usize = 6, "cells", "Bad cells that are repeated";
        probed_max: usize = 2, "cells", "Bad cells that are probed again, each beside up to four others";
        tests_max: usize = 30, "tests", "Tests of one finding";
        metrics_max: usize = 2, "metrics", "Metrics that are repeated";
        open: f64 = 0.95, "probability", "Less probable suspects and causes are worth tests";
        certain: f64 = 0.99, "probability", "Less probable suspects are worth a proposal";
        possible: f64 = 0.03, "probability", "Less probable causes are worth no test";
        deciding_cells: usize = 2, "cells", "Bad cells in which causes are compared";
        deciding_repeats: u16 = 2, "tests", "Repetitions of those tests";
        small_per_s_min: f64 = 500.0, "1/s", "Least packet rate that a probe of small datagrams tests";
        small_per_s_max: f64 = 60_000.0, "1/s", "Packet rate that one thread cannot send any more";
        small_ms: u32 = 500, "ms", "Duration of that probe";
        small_factor: f64 = 2.0, "factor", "Its packet rate over that of TCP";
        longer_ms: u32 = 2500, "ms", "Transfer where a limiter is suspected", "buckets of rented machines and of tc-tbf(8) hold up to 1 to 2 s of the full rate";
        longer_max: usize = 4, "tests", "Such transfers of one round of the second stage";
        falling: f64 = 0.75, "share", "Rate of the last third of a transfer over that of the first below which it falls";
        falling_intervals_min: usize = 3, "intervals", "Intervals of a third that show it";
        duration_ms: u32 = 1000, "ms", "Duration of a transfer where the survey had none";
    }
}
