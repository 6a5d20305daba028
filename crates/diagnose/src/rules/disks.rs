//! Numbers about drives, volumes and replicas. A watch of drives uses them as they are here.

super::number::stage! {
    /// Drives, volumes and replicas.
    DiskRules {
        cache_factor: f64 = 10.0, "factor", "Reads so many times as fast as writes come from a cache";
        replica_share_min: f64 = 0.7, "share", "Share of disk and transport that a healthy replica reaches";
        saturated: f64 = 0.8, "share", "A drive with one set of heads that is busy for longer has no time left";
        slow_ratio: f64 = 3.0, "factor", "Wait of a drive over that of its equals", "after Perseus, FAST'23";
        slow_ms: f64 = 5.0, "ms", "And so much longer: the difference between an idle and a busy drive";
        slow_share_max: f64 = 0.25, "share", "Slow drives of a group; more are not one drive";
        equals_min: usize = 4, "drives", "Drives from which on there is a majority";
        equal_rate: f64 = 0.1, "share", "Rates that differ by less give no slope";
        expected_range: f64 = 2.0, "factor", "Expected wait over the usual one, and the reverse";
        write_wait_ms_min: f64 = 200.0, "ms", "A synchronous write from which on something holds it back", "twenty revolutions of a drive";
        write_slow_max: f64 = 2e7, "B/s", "Writes in a row below which something holds them back", "a tenth of one rotating drive";
        figure_rate_min: f64 = 1.0, "1/s", "Requests that give an imported figure a mean";
        requests_min: f64 = 4.0, "requests", "Requests that give an interval a mean";
        slow_intervals_min: usize = 2, "intervals", "Intervals in which a slow drive is slow";
        uneven_ratio: f64 = 1.5, "factor", "Writes of a leg over the usual ones";
        uneven_per_s: f64 = 10.0, "1/s", "Writes from which on legs are compared";
        merged_share: f64 = 0.5, "share", "Merged requests from which on a volume has another rate than its drives";
        merged_rate_min: f64 = 20.0, "1/s", "Requests from which on a volume is busy";
        window: usize = 10, "intervals", "Intervals over which a watch judges";
        judged_min: usize = 5, "intervals", "Fewer are judged only at the end of a watch";
        ended_after: usize = 5, "intervals", "Intervals without a finding that end it";
        history_max: usize = 512, "", "Findings of one host that a watch keeps";
        revolution_ms: f64 = 60_000.0 / 7_200.0, "ms", "Revolution of a drive of 7200/min";
        seek_ms: f64 = 8.5, "ms", "Average seek of a drive of 7200/min", "data sheets";
        queue_choice: f64 = 4.0, "factor", "Requests from which a drive chooses that halve its seek";
        sata_bytes_per_s: f64 = 600e6, "B/s", "SATA at 6 Gbit/s", "8b/10b";
        cpu_full: f64 = 0.9, "share", "CPU time of a thread that is all of it";
        flush_share: f64 = 0.5, "share", "Flush over a safe write from which on it limits";
        busy_device: f64 = 0.9, "share", "A device that always has something to do";
        merged_min: f64 = 0.1, "share", "Merged requests worth a word; fewer are the file system's own";
        bits_8b10b: f64 = 10.0, "bit/B", "Bits of a byte in 8b/10b: SATA, SAS up to 12 Gbit/s", "SATA, SAS-3";
        bits_128b150b: f64 = 8.0 * 150.0 / 128.0, "bit/B", "Bits of a byte in 128b/150b", "SAS-4";
        survey_size_min: f64 = 16.0 * 1024.0 * 1024.0, "B", "Smaller devices are no drives of data";
        survey_busy: f64 = 0.3, "share", "A drive that others keep busy for longer is left alone by a survey";
        survey_others: f64 = 0.1, "share", "Bytes of others meanwhile, of those of the load, that spoil a figure";
        survey_others_bytes: f64 = 1e6, "B", "And so many more: a log that is written now and then";
        survey_equals_min: usize = 3, "drives", "Other drives from which on there is a usual figure";
        survey_slow: f64 = 0.7, "share", "Of its equals, below which a drive is slow", "outer to inner tracks: 0.5 to 1, both read at the same offsets";
        survey_low_quantile: f64 = 0.25, "quantile", "Of the equals, the low end of their spread";
        survey_outside: f64 = 0.9, "share", "Of that low end, below which a drive is outside of the spread";
        survey_clear_s: f64 = 0.5, "s", "A shorter test shows no slow drive, it is repeated longer: a moment without a CPU spoils its rate";
        survey_majority: f64 = 0.6, "share", "Equals with one value that make it the usual one";
        survey_promise: f64 = 0.9, "share", "Of a promise, below which it is not kept";
        survey_class: f64 = 0.5, "share", "Of what the class should reach; less is a finding, as in a bench";
        survey_rounds: usize = 3, "", "Measurements of a drive that is in doubt";
        full_filesystem: f64 = 0.01, "share", "A file system with less free space is full";
    }
}
