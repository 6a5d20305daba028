//! Numbers that decide which hosts drop the same packets.

super::number::stage! {
    /// Which hosts drop the same packets.
    DropRules {
        packets_min: f64 = 5.0, "packets", "A host that dropped fewer is compared with no other";
        intervals_min: usize = 5, "intervals", "Fewer are no series";
        exact_max: usize = 7, "intervals", "Up to so many all orders are tried: 5040";
        correlated: f64 = 0.8, "correlation", "Series of the same packets; at the limits of an interval some fall into the next one";
        chance_max: f64 = 0.05, "probability", "That any pair of a watch agrees so by chance", "Bonferroni";
        beyond_min: f64 = 0.1, "share", "Of a counter beyond what the kernel gives reasons for that is reported: both are not read at the same moment";
        hosts_max: usize = 400, "hosts", "Hosts that are compared for one reason, those with most packets";
        groups_max: usize = 20, "groups", "Groups that are reported";
        resent_min: f64 = 20.0, "segments", "Fewer that are sent again to a host point at nothing";
        resent_share: f64 = 0.7, "share", "Of all that hosts of a watch send each other again, to one of them by two or more";
        bytes_min: f64 = 1e6, "bytes", "Sent bytes that give retransmissions for each gigabyte";
        peers_max: usize = 50, "rows", "Peers and kinds that are listed for a host";
        shared_max: usize = 6, "facts", "Facts that are listed for a group";
    }
}
