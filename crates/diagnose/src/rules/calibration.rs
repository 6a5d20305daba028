//! Numbers that turn log odds into the probabilities that are shown.

super::number::stage! {
    /// From log odds to probabilities.
    CalibrationRules {
        finding_temperature: f64 = 1.23, "factor", "Divides the log odds of a finding", "judge, docs/dev/accuracy.md";
        finding_lapse: f64 = 0.086, "share", "Wrong findings however clear", "judge, docs/dev/accuracy.md";
        location_temperature: f64 = 1.0, "factor", "Divides the log odds of suspects", "judge, docs/dev/accuracy.md";
        location_lapse: f64 = 0.02, "share", "Wrong suspects however clear", "judge, docs/dev/accuracy.md";
        cause_temperature: f64 = 1.0, "factor", "Divides the log odds of causes", "judge, docs/dev/accuracy.md";
        cause_lapse: f64 = 0.02, "share", "Wrong causes however clear", "judge, docs/dev/accuracy.md";
        import_cause_temperature: f64 = 1.0, "factor", "The same in imported evidence, for which none is fitted";
        import_cause_lapse: f64 = 0.02, "share", "The same in imported evidence";
    }
}

impl CalibrationRules {
    /// No map: what the reasoning concludes by itself, to fit maps on.
    pub const NONE: Self = Self {
        finding_temperature: 1.0,
        finding_lapse: 0.0,
        location_temperature: 1.0,
        location_lapse: 0.0,
        cause_temperature: 1.0,
        cause_lapse: 0.0,
        import_cause_temperature: 1.0,
        import_cause_lapse: 0.0,
    };
}
