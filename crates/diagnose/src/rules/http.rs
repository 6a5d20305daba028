//! Numbers that compare front ends.

super::number::stage! {
    /// Front ends of a service.
    HttpRules {
        slower_min: f64 = 1.5, "factor", "A front end slower by more is slow";
        best_max: f64 = 1.3, "factor", "Front ends within this of the best are among the best";
        lost_ms_min: f64 = 1.0, "ms", "Least time lost in a step";
        chance_max: f64 = 0.2, "probability", "Largest probability of chance";
        requests_min: usize = 3, "requests", "Requests on each side of the comparison";
        exact_max: usize = 900, "", "Product of the counts above which the test is approximated";
    }
}
