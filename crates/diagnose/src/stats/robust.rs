//! Medians and the Student-t density. Empty input gives `None`, never a panic; values that are not finite are
//! left out.

pub use linerate_model::statistics::median;

/// Finite values in ascending order.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut kept: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    kept.sort_by(f64::total_cmp);
    kept
}

/// The mean, of shares that count alike.
pub fn mean(values: &[f64]) -> Option<f64> {
    let kept: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

/// Median absolute deviation from the median, scaled by 1.4826 so that it estimates a standard deviation.
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let away: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    median(&away).map(|m| 1.4826 * m)
}

/// The value at rank `ceil(q * (n - 1))`, `q` from 0 to 1: always one of the values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let v = sorted(values);
    let last = v.len().checked_sub(1)?;
    Some(v[((q.clamp(0.0, 1.0) * last as f64 - 1e-9).ceil().max(0.0) as usize).min(last)])
}

/// Log density of a Student-t with so many degrees of freedom, scale `sigma`, at distance `x` from its
/// centre;
/// up to the constant that is the same for all scales.
pub fn student_t_log_density(x: f64, sigma: f64, freedom: f64) -> f64 {
    -sigma.ln() - f64::midpoint(freedom, 1.0) * (1.0 + (x / sigma).powi(2) / freedom).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.8), Some(5.0));
        assert_eq!(quantile(&[7.0], 0.8), Some(7.0));
        assert_eq!(mean(&[1.0, f64::NAN, 4.0]), Some(2.5));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn far_values_cost_only_logarithmically() {
        let near = student_t_log_density(0.0, 0.1, 3.0);
        let far = student_t_log_density(10.0, 0.1, 3.0);
        assert!(near - far > 10.0 && near - far < 25.0);
    }
}
