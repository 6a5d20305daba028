//! What some hosts have in common that others lack: series of counters, and facts.

use std::collections::BTreeSet;

use linerate_model::fact::HostFacts;

/// Pearson's correlation of values that both have; `None` where one of the two does not move.
pub(crate) fn correlation(a: &[f64], b: &[f64], least: usize) -> Option<f64> {
    let both: Vec<(f64, f64)> =
        a.iter().copied().zip(b.iter().copied()).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let n = both.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| both.iter().map(f).sum::<f64>() / n;
    let (ma, mb) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(f64, f64) -> f64| both.iter().map(|(x, y)| f(x - ma, y - mb)).sum::<f64>();
    let (product, of_a, of_b) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    let size = (of_a * of_b).sqrt();
    (both.len() >= least && size > 0.0).then(|| product / size)
}

/// Facts that all of some hosts have alike and none of the others; and keys that only the others have.
pub(crate) struct Shared {
    /// Key and value.
    pub(crate) facts: Vec<(String, String)>,
    /// Keys.
    pub(crate) lacking: Vec<String>,
}

/// Of these hosts beside the others; nothing without others.
pub(crate) fn shared(mine: &[&HostFacts], others: &[&HostFacts]) -> Shared {
    let none = Shared { facts: Vec::new(), lacking: Vec::new() };
    let (Some((first, rest)), Some((other, further))) = (mine.split_first(), others.split_first()) else {
        return none;
    };
    let facts = first.readings.iter().filter(|(key, value)| {
        rest.iter().all(|host| host.readings.get(key.as_str()) == Some(value))
            && others.iter().all(|host| host.readings.get(key.as_str()) != Some(value))
    });
    let lacking: BTreeSet<&String> = other
        .readings
        .keys()
        .filter(|key| {
            further.iter().all(|host| host.readings.contains_key(key.as_str()))
                && mine.iter().all(|host| !host.readings.contains_key(key.as_str()))
        })
        .collect();
    Shared {
        facts: facts.map(|(key, value)| (key.clone(), value.to_string())).collect(),
        lacking: lacking.into_iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
        super::correlation(a, b, 5)
    }

    #[test]
    fn counters_that_move_together_correlate() {
        let a = [30.0, 22.0, 13.0, 9.0, 8.0, 12.0];
        assert!(correlation(&a, &[30.0, 24.0, 11.0, 9.0, 8.0, 12.0]).unwrap() > 0.98);
        assert!(correlation(&a, &[0.0; 6]).is_none());
        assert!(correlation(&a, &[8.0, 9.0, 13.0, 22.0, 30.0, 12.0]).unwrap() < 0.0);
        assert!(correlation(&a, &[1.0]).is_none());
        assert!(correlation(&a, &[30.0, f64::NAN, 11.0, 9.0, 8.0, 12.0]).unwrap() > 0.98);
    }
}
