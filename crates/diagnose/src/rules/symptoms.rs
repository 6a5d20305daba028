//! Numbers of the symptoms that imported transfers show by themselves.

super::number::stage! {
    /// What imported transfers show by themselves.
    SymptomRules {
        core_full: f64 = 0.85, "share", "Use of one CPU from which on it is the limit";
        intervals_min: usize = 3, "intervals", "Shortest series that can show a standstill";
        standstill_min: f64 = 0.3, "share", "Intervals without a byte from which on a transfer stands still";
        burst_factor: f64 = 1.5, "factor", "First intervals over the fastest later one that are a burst";
        burst_later_min: usize = 4, "intervals", "Least intervals behind a burst that show a level";
        burst_bytes_min: f64 = 1.6e7, "bytes", "Least bytes above the later level", "four times the usual maximum of a send buffer";
        unanswered_min: f64 = 0.01, "share", "Pings without an answer from which on it is a symptom";
        answer_near_us_min: f64 = 200_000.0, "us", "RTT of a ping to a private address from which on it is a symptom";
        answer_far_us_min: f64 = 400_000.0, "us", "The same of any address", "twice around half of the earth in fibre: 200 ms";
        resent_per_s_min: f64 = 100.0, "segments/s", "Retransmissions from which on they are a symptom where no ceiling is known";
        resent_share_min: f64 = 1e-3, "share", "The same, of all segments";
        window_share_min: f64 = 0.75, "share", "Rate over what the window allows in an RTT from which on it is the limit", "a socket buffer holds headers too";
        window_share_max: f64 = 1.1, "share", "Above, window or RTT are not those of the transfer";
        usual_mss_max: f64 = 1460.0, "bytes", "Largest segment with an MTU of 1500", "1500 less 20 of IPv4 and 20 of TCP";
        apart_min: f64 = 1.5, "factor", "Distance of two directions, or of one stream from several";
        below_link: f64 = 0.8, "share", "Share of a stated link below which something limits";
        full_usual_min: f64 = 0.93, "share", "Least rate of a full port with an MTU of 1500", "1448 of 1538 bytes";
        full_usual_max: f64 = 0.951, "share", "Most, without timestamps", "1460 of 1538 bytes";
        full_jumbo_min: f64 = 0.983, "share", "Least rate of a full port with an MTU of 9000", "8948 of 9038 bytes";
        full_jumbo_max: f64 = 0.993, "share", "Most, without timestamps", "8960 of 9038 bytes";
        near_port_min: f64 = 0.85, "share", "Closer to a port, a rate may be that of a nearly full one";
        shared_pairs_min: usize = 4, "pairs", "Pairs without a common end that show what they share";
        shared_alike: f64 = 0.1, "share", "Distance from their median within which all of them reach the same";
        cells_max: usize = 12, "cells", "Cells of a matrix, which shows its own pattern";
        named_max: usize = 8, "symptoms", "Symptoms that are named";
        block_bad: f64 = 0.1, "share", "Rate over the median below which a cell belongs to a bad block";
        block_hosts_min: usize = 2, "hosts", "Hosts on each side of a block";
    }
}
