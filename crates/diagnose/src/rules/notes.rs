//! Numbers of the headline, notes and advice.

super::number::stage! {
    /// Headline, notes and tuning advice.
    NoteRules {
        at_ceiling: f64 = 0.9, "share", "Share of its ceiling at which a cell is at its ceiling";
        retransmits_min: f64 = 20.0, "1/s", "Fewer retransmits mean nothing";
        retransmit_cells_max: usize = 4, "cells", "Cells of a survey whose retransmits get a note each";
        loss_min: f64 = 0.002, "share", "Less loss means nothing: of 4000 datagrams 8";
        lossy_pairs_max: usize = 4, "pairs", "Pairs named for it";
        invalid_max: f64 = 0.1, "share", "Pairs of a layer without a valid transfer";
        front_ends_min: usize = 3, "hosts", "Front ends from which on a round robin is explained";
        intervals_min: usize = 5, "intervals", "Watched intervals that show a correlation";
        correlated: f64 = 0.9, "correlation", "Counters that count the same packets";
        quiet: f64 = 0.15, "share", "Growth over that of the leading counter below which one is quiet";
        shared_max: usize = 6, "facts", "Facts listed for hosts with correlated counters";
        at_rest: f64 = 0.01, "share", "Retransmits without load over those under load that are none";
        concentrated: f64 = 100.0, "1/s", "Retransmits of every sender to one host worth a note";
        elsewhere: f64 = 10.0, "1/s", "While there are fewer to all others";
        concentrated_cells_min: usize = 2, "cells", "Cells on each side of that comparison";
        window_enough: f64 = 1.0, "factor", "Window over what the path needs below which it limits";
        window_binds_min: f64 = 0.6, "factor", "Least measured rate over that of the window";
        window_binds_max: f64 = 1.4, "factor", "Most";
        window_margin: f64 = 1.5, "factor", "Proposed buffer over what the path needs: the RTT grows with the queue";
        marked_min: f64 = 0.001, "share", "Segments with a mark of congestion (CE) worth a note", "one in a thousand lost is what harms TCP (RFC 8257 marks far more)";
        marked_segments_min: f64 = 1000.0, "segments", "Segments that give that share";
        others_min: f64 = 0.2, "share", "Bytes of a NIC that are not of the tests, worth a note", "what headers, retransmissions and acknowledgements can make of a test is below 0.15";
        others_tests_min: usize = 3, "tests", "Tests that show it";
        option_pairs_max: usize = 4, "pairs", "Pairs named that lack an option of TCP";
        drops_min: f64 = 10.0, "packets", "Fewer drops in a test mean nothing";
        drops_loss_max: f64 = 0.001, "share", "Loss from which on drops matter";
    }
}
