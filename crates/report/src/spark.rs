//! Values in a row of small bars: one character each.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// What stands where nothing was measured.
pub(crate) const GAP: char = '·';

/// The bar of a value between 0 and the largest.
pub(crate) fn bar(value: f64, most: f64) -> char {
    if most <= 0.0 {
        return BARS[0];
    }
    BARS[((value / most * 7.0).round().max(0.0) as usize).min(7)]
}
