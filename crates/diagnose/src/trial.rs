//! The effect of a change: ratio of medians with a bootstrap interval, judged beside an untouched control
//! pair. Arms in, effect out. It never decides what to try.

use linerate_model::finding::Metric;
use linerate_model::trial::{Arm, Effect, EffectSize};

use crate::rules::{Rules, TrialRules};
use crate::stats::{median, median_ratio_interval};

const RULES: &TrialRules = &Rules::DEFAULT.trials;

/// Added to both sides of the ratio, in the unit of the response.
fn floor(response: Metric) -> f64 {
    match response {
        Metric::Loss | Metric::Reordering => RULES.floor_share,
        Metric::Retransmits | Metric::Throughput | Metric::TwoState | Metric::PathMtu => RULES.floor_count,
        _ => RULES.floor_other,
    }
}

/// Effect of the change, from its arms in any order. Above 1 is better, whatever the response.
pub fn effect(arms: &[Arm], response: Metric, seed: u64) -> EffectSize {
    let add = floor(response);
    let pick = |changed: bool, control: bool| -> Vec<f64> {
        arms.iter()
            .filter(|a| a.changed == changed)
            .filter_map(|a| if control { a.control } else { a.value })
            .filter(|v| v.is_finite() && *v >= 0.0)
            .map(|v| v + add)
            .collect()
    };
    let less = !response.more_is_better();
    let (before, after) = (pick(false, false), pick(true, false));
    let (ratio, interval) = ratio_with_interval(&before, &after, less, seed);
    let (control_before, control_after) = (pick(false, true), pick(true, true));
    let (control_ratio, control_interval) =
        ratio_with_interval(&control_before, &control_after, less, seed ^ 1);
    let enough = before.len() >= RULES.arm_min && after.len() >= RULES.arm_min;
    let effect = judge(enough, ratio, interval, control_ratio, control_interval);
    let before = median(&before).unwrap_or(add) - add;
    let after = median(&after).unwrap_or(add) - add;
    let fewer_than = (!enough).then_some(RULES.arm_min);
    let sentence = String::new();
    EffectSize {
        effect,
        ratio,
        interval,
        control_ratio,
        control_interval,
        before,
        after,
        fewer_than,
        sentence,
    }
}

/// Ratio above 1 = better, with its interval; (1, (0, infinity)) when nothing can be said.
fn ratio_with_interval(before: &[f64], after: &[f64], less: bool, seed: u64) -> (f64, (f64, f64)) {
    let (from, to) = if less { (after, before) } else { (before, after) };
    let ratio = match (median(from), median(to)) {
        (Some(a), Some(b)) if a > 0.0 => b / a,
        _ => return (1.0, (0.0, f64::MAX)),
    };
    (ratio, median_ratio_interval(from, to, seed).unwrap_or((0.0, f64::MAX)))
}

fn judge(
    enough: bool,
    ratio: f64,
    interval: (f64, f64),
    control: f64,
    control_interval: (f64, f64),
) -> Effect {
    let control_known = control_interval.1 < f64::MAX;
    // The control must not have moved in the same direction by as much as half of the claimed effect.
    let same_way = (control.ln() * ratio.ln()) > 0.0;
    let control_moved = control_known
        && same_way
        && control.ln().abs() > RULES.control_share * ratio.ln().abs()
        && (control - 1.0).abs() > RULES.control_min;
    if !enough {
        Effect::NotShown
    } else if interval.0 > 1.0 && ratio > RULES.matters {
        if control_moved { Effect::NotShown } else { Effect::Better }
    } else if interval.1 < 1.0 && ratio < 1.0 / RULES.matters {
        if control_moved { Effect::NotShown } else { Effect::Worse }
    } else if interval.0 > 1.0 - RULES.narrow && interval.1 < 1.0 + RULES.narrow {
        Effect::NoEffect
    } else {
        Effect::NotShown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms(before: &[f64], after: &[f64], control: impl Fn(bool) -> Option<f64>) -> Vec<Arm> {
        let arm = |changed: bool, v: &f64| Arm { changed, value: Some(*v), control: control(changed) };
        before.iter().map(|v| arm(false, v)).chain(after.iter().map(|v| arm(true, v))).collect()
    }

    #[test]
    fn better_worse_none_and_moved_control() {
        let still = |_| Some(100.0);
        let better =
            effect(&arms(&[50., 51., 49., 50.], &[98., 99., 97., 99.], still), Metric::Throughput, 1);
        assert_eq!(better.effect, Effect::Better);
        assert!(better.interval.0 > 1.8 && better.ratio < 2.1, "{better:?}");
        let worse = effect(&arms(&[98., 99., 97.], &[50., 51., 49.], still), Metric::Throughput, 1);
        assert_eq!(worse.effect, Effect::Worse);
        let none = effect(&arms(&[98., 99., 97., 98.], &[98., 98., 99., 97.], still), Metric::Throughput, 1);
        assert_eq!(none.effect, Effect::NoEffect);
        let moved = |changed| Some(if changed { 200.0 } else { 100.0 });
        let moved = effect(&arms(&[50., 51., 49.], &[98., 99., 97.], moved), Metric::Throughput, 1);
        assert_eq!(moved.effect, Effect::NotShown);
        assert_eq!(effect(&arms(&[1.0], &[2.0], still), Metric::Throughput, 1).effect, Effect::NotShown);
    }

    #[test]
    fn less_is_better_turns_the_ratio() {
        let cpu = effect(&arms(&[5.0, 5.2, 4.9], &[0.5, 0.52, 0.49], |_| None), Metric::CpuCost, 3);
        assert_eq!(cpu.effect, Effect::Better);
        assert!(cpu.ratio > 9.0);
        let loss = effect(&arms(&[0.01, 0.012, 0.011], &[0.0, 0.0, 0.0], |_| None), Metric::Loss, 3);
        assert_eq!(loss.effect, Effect::Better);
    }
}
