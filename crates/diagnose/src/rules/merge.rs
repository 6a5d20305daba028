//! Numbers of the stage `merge`, and of what a finding lists.

super::number::stage! {
    /// Findings: what is one, what is listed.
    MergeRules {
        test_odds: f64 = 1.0, "log odds", "Most that one bad test adds to a finding";
        path_share_min: f64 = 0.1, "share", "Probability of a path of a loss that a setting may explain alone";
        setting_share: f64 = 0.9, "share", "Probability moved from a loss to the host whose setting explains it";
        many_hosts: usize = 8, "hosts", "Hosts with the same wrong setting from which on it is one finding";
        majority: f64 = 0.5, "share", "And more than this share of all hosts";
        causes_max: usize = 5, "", "Causes listed in a finding";
        unknown_max: usize = 3, "", "Unknown differences listed as causes";
        listed_min: f64 = 0.01, "probability", "Less probable suspects and causes are not listed";
        explained_min: f64 = 0.05, "probability", "A cause whose readings are no benign differences";
        explained_max: usize = 3, "", "Causes of a finding that are no findings of their own";
        read_finding: f64 = 0.99, "probability", "Of a wrong setting, before calibration: it was read";
        read_cause: f64 = 0.9, "probability", "Of its cause, before calibration";
        standing_finding: f64 = 0.8, "probability", "Of a host with counts or events of the past alone";
        standing_cause: f64 = 0.65, "probability", "Of its causes together, before calibration";
        storage_finding: f64 = 0.95, "probability", "Of a loss of storage";
    }
}
