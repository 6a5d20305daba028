//! The effect of a change in a sentence.

use linerate_model::finding::Metric;
use linerate_model::trial::{Effect, EffectSize};
use linerate_model::units::{ratio, value};

/// All of it.
pub(super) fn sentence(size: &EffectSize, response: Metric) -> String {
    if let Some(least) = size.fewer_than {
        return format!(
            "not shown: fewer than {least} valid measurements with the old or with the new values."
        );
    }
    let what = response.label();
    let control = if size.control_interval.1 < f64::MAX {
        format!("; the untouched control is at {} of before", ratio(size.control_ratio))
    } else {
        String::new()
    };
    let numbers = format!(
        "{} before, {} after, ratio {} (95 % interval {} to {}){control}.",
        value(size.before, response.unit()),
        value(size.after, response.unit()),
        ratio(size.ratio),
        ratio(size.interval.0),
        ratio(size.interval.1),
    );
    match size.effect {
        Effect::Better => format!("{what} became better: {numbers}"),
        Effect::Worse => format!("{what} became worse: {numbers}"),
        Effect::NoEffect => format!("{what} did not change: {numbers}"),
        Effect::NotShown => format!("not shown: {what} {numbers}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::trial::Arm;

    #[test]
    fn an_effect_says_what_was_measured_and_too_few_measurements_say_so() {
        let arms = [false, false, false, true, true, true].map(|changed| {
            let value = Some(if changed { 1e8 } else { 5e7 });
            Arm { changed, value, control: Some(1e8) }
        });
        let of = |arms: &[Arm]| {
            let size = linerate_diagnose::trial::effect(arms, Metric::Throughput, 1);
            sentence(&size, Metric::Throughput)
        };
        assert_eq!(
            of(&arms),
            "throughput became better: 50 Mbit/s before, 100 Mbit/s after, ratio 2x (95 % interval 2x to 2x); \
             the untouched control is at 1x of before."
        );
        assert!(of(&arms[..4]).starts_with("not shown: fewer than 3 valid measurements"));
    }
}
