//! Numbers that decide which hosts stand out in what a database stored. What a measured pair has to lose to
//! be a finding: `metrics.rs`.

super::number::stage! {
    /// Hosts that stand out among their equals in stored series.
    OutlierRules {
        equals_min: usize = 4, "hosts", "Fewer have no majority";
        ratio: f64 = 4.0, "factor", "Beyond the usual of its equals", "as that of a slow drive among its equals, doubled: loads differ more between hosts than between legs of an array";
        spread: f64 = 5.0, "deviations", "Beyond the median of its equals, by their own median deviation";
        intervals_min: usize = 3, "intervals", "Shortest time that a host stands out";
        share_max: f64 = 0.25, "share", "What more of the equals have is of no host";
        named_max: usize = 20, "hosts", "Hosts that are named, the furthest off";
    }
}
