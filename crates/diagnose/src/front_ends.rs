//! Which of several front ends is slow, in which step, and how sure that is.
//!
//! What comes in: downloads of the same thing through each of them, in turns. What goes out: per front end
//! medians and ranges of each step, and for the slow ones the step with the largest loss. Pure. A front end
//! is compared with the best ones, not with the average: three slow ones of five must not look normal.

use linerate_model::http::{HttpFetch, HttpStep};

use crate::rules::{HttpRules, Rules};
use crate::stats::median;

/// Values of one step through one front end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Which.
    pub step: HttpStep,
    /// Median.
    pub median: f64,
    /// Smallest and largest.
    pub range: (f64, f64),
}

/// Why a front end stands out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowReason {
    /// The step with the largest loss.
    pub step: HttpStep,
    /// How many times worse than the best front ends, by the medians.
    pub times: f64,
    /// Probability that it is no chance, corrected for the number of comparisons; `None` when there were too
    /// few downloads to tell.
    pub sure: Option<f64>,
}

/// One front end.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontEnd {
    /// As it was named.
    pub name: String,
    /// Downloads, and how many of them failed.
    pub downloads: (usize, usize),
    /// The first reason for a failure.
    pub failure: Option<String>,
    /// Steps that were seen.
    pub steps: Vec<Spread>,
    /// Whether it stands out.
    pub slow: Option<SlowReason>,
}

/// Front ends in the order in which they first appear.
pub fn compare(fetches: &[HttpFetch]) -> Vec<FrontEnd> {
    compare_with(fetches, &Rules::DEFAULT.http)
}

/// The same by other numbers.
pub(crate) fn compare_with(fetches: &[HttpFetch], rules: &HttpRules) -> Vec<FrontEnd> {
    let mut names: Vec<&str> = Vec::new();
    for fetch in fetches {
        if !names.contains(&fetch.via.as_str()) {
            names.push(&fetch.via);
        }
    }
    let of = |name: &str, step: HttpStep| -> Vec<f64> {
        fetches
            .iter()
            .filter(|f| f.via == name)
            .filter_map(|f| step.of(f))
            .filter(|v| v.is_finite())
            .collect()
    };
    let all: Vec<Vec<Vec<f64>>> =
        HttpStep::ALL.iter().map(|step| names.iter().map(|name| of(name, *step)).collect()).collect();
    names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let mine: Vec<&HttpFetch> = fetches.iter().filter(|f| f.via == *name).collect();
            let failed = mine.iter().filter(|f| f.error.is_some()).count();
            let steps =
                HttpStep::ALL.iter().zip(&all).filter_map(|(step, values)| spread(*step, &values[index]));
            let slow = HttpStep::ALL
                .iter()
                .zip(&all)
                .filter_map(|(step, values)| judged(*step, values, index, rules))
                .max_by(|a, b| a.times.total_cmp(&b.times));
            FrontEnd {
                name: (*name).to_owned(),
                downloads: (mine.len(), failed),
                failure: mine.iter().find_map(|f| f.error.clone()),
                steps: steps.collect(),
                slow,
            }
        })
        .collect()
}

fn spread(step: HttpStep, values: &[f64]) -> Option<Spread> {
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    Some(Spread { step, median: median(values)?, range: (least, most) })
}

/// Whether one front end is slow in a step. `values` has those of all front ends.
fn judged(step: HttpStep, values: &[Vec<f64>], index: usize, rules: &HttpRules) -> Option<SlowReason> {
    // Bigger is worse: for a rate the time of a bit.
    let cost = |v: f64| if step == HttpStep::Rate { 1.0 / v.max(1e-9) } else { v.max(1e-6) };
    let costs: Vec<Vec<f64>> = values.iter().map(|list| list.iter().map(|v| cost(*v)).collect()).collect();
    let medians: Vec<Option<f64>> = costs.iter().map(|list| median(list)).collect();
    let best = medians.iter().flatten().copied().reduce(f64::min)?;
    let mine = medians[index]?;
    let times = mine / best;
    if times < rules.slower_min || (step != HttpStep::Rate && mine - best < rules.lost_ms_min) {
        return None;
    }
    let others: Vec<f64> = costs
        .iter()
        .zip(&medians)
        .filter(|(_, m)| m.is_some_and(|m| m <= best * rules.best_max))
        .flat_map(|(list, _)| list.iter().copied())
        .collect();
    let compared = values.iter().filter(|list| !list.is_empty()).count().saturating_sub(1).max(1);
    let enough = costs[index].len().min(others.len()) >= rules.requests_min;
    let chance = (chance(&costs[index], &others, rules) * compared as f64).min(1.0);
    if enough && chance > rules.chance_max {
        return None;
    }
    Some(SlowReason { step, times, sure: enough.then_some(1.0 - chance) })
}

/// Probability that chance puts `high` above `low` as far or further (Mann and Whitney's U, one-sided; exact
/// where the lists are short, else by the normal distribution). Ties count against.
fn chance(high: &[f64], low: &[f64], rules: &HttpRules) -> f64 {
    let (n, m) = (high.len(), low.len());
    let above: usize = high.iter().map(|h| low.iter().filter(|l| h > l).count()).sum();
    if n == 0 || m == 0 {
        return 1.0;
    }
    if n * m > rules.exact_max {
        let (n, m) = (n as f64, m as f64);
        let z = (above as f64 - 0.5 - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
        return 0.5 * complementary_error(z / std::f64::consts::SQRT_2);
    }
    // ways[i][u]: orders of i of ours among the others so far with a sum of u.
    let most = n * m;
    let mut ways = vec![vec![0.0_f64; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for place in 0..n + m {
        for taken in (1..=n.min(place + 1)).rev() {
            // Ours at this place is above all of the others that came before.
            let others = place + 1 - taken;
            if others > m {
                continue;
            }
            for u in (others..=most).rev() {
                let more = ways[taken - 1][u - others];
                ways[taken][u] += more;
            }
        }
    }
    let all: f64 = ways[n].iter().sum();
    ways[n][above..].iter().sum::<f64>() / all
}

/// Complementary error function, to 1.2e-7 (Press et al., Numerical Recipes, section 6.2).
fn complementary_error(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let c = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let sum = c.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let y = t * (-x * x + sum).exp();
    if x >= 0.0 { y } else { 2.0 - y }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(high: &[f64], low: &[f64]) -> f64 {
        super::chance(high, low, &Rules::DEFAULT.http)
    }

    fn fetch(via: &str, first_byte_ms: f64, bytes_per_s: f64) -> HttpFetch {
        HttpFetch {
            via: via.into(),
            connect_ms: Some(0.3),
            first_byte_ms: Some(first_byte_ms),
            bytes: 100_000_000,
            body_ms: Some(1e11 / bytes_per_s),
            status: Some(200),
            ..HttpFetch::default()
        }
    }

    #[test]
    fn the_casebook_a1_names_the_three_slow_nodes_of_five() {
        // 32 KB/s through arc-1, arc-2 and arc-4, 100 MB/s through the others.
        let rates = [("arc-1", 32e3), ("arc-2", 32e3), ("arc-3", 100e6), ("arc-4", 32e3), ("arc-5", 100e6)];
        let once: Vec<HttpFetch> = rates.iter().map(|(via, rate)| fetch(via, 1.0, *rate)).collect();
        let names = |fetches: &[HttpFetch]| -> Vec<String> {
            compare(fetches).into_iter().filter(|f| f.slow.is_some()).map(|f| f.name).collect()
        };
        assert_eq!(names(&once), ["arc-1", "arc-2", "arc-4"]);
        assert!(
            compare(&once)
                .iter()
                .filter_map(|f| f.slow)
                .all(|s| s.sure.is_none() && s.step == HttpStep::Rate)
        );
        let often: Vec<HttpFetch> = (0..5)
            .flat_map(|n| rates.map(|(via, rate)| fetch(via, 1.0, rate * (1.0 + f64::from(n) / 50.0))))
            .collect();
        assert_eq!(names(&often), ["arc-1", "arc-2", "arc-4"]);
        for slow in compare(&often).iter().filter_map(|f| f.slow) {
            assert!(
                slow.sure.is_some_and(|p| p > 0.99) && (3000.0..3300.0).contains(&slow.times),
                "{slow:?}"
            );
        }
    }

    #[test]
    fn the_slow_step_is_named_and_noise_is_not() {
        let noise = [1.0, 1.4, 0.8, 1.2, 1.1];
        let quiet: Vec<HttpFetch> =
            noise.iter().flat_map(|n| ["a", "b", "c"].map(|via| fetch(via, 5.0 * n, 1e6 * n))).collect();
        assert!(compare(&quiet).iter().all(|f| f.slow.is_none()));
        let late: Vec<HttpFetch> = noise
            .iter()
            .flat_map(|n| {
                ["a", "b", "c"].map(|via| fetch(via, if via == "b" { 60.0 * n } else { 5.0 * n }, 1e6))
            })
            .collect();
        let slow = compare(&late).remove(1).slow.expect("b is slow");
        assert_eq!(slow.step, HttpStep::FirstByte);
        assert!((slow.times - 12.0).abs() < 1e-9 && slow.sure.is_some_and(|p| p > 0.95), "{slow:?}");
        // Three milliseconds that overlap with the others are no news.
        let wild = [2.0, 30.0, 1.0, 40.0, 3.0, 2.0];
        let fetches: Vec<HttpFetch> =
            wild.iter().enumerate().map(|(n, v)| fetch(["a", "b"][n % 2], *v, 1e6)).collect();
        assert!(compare(&fetches).iter().all(|f| f.slow.is_none_or(|s| s.sure.is_none_or(|p| p < 0.97))));
    }

    #[test]
    fn failures_are_counted_with_their_reason() {
        let broken = HttpFetch { via: "b".into(), error: Some("status 503".into()), ..HttpFetch::default() };
        let compared = compare(&[fetch("a", 1.0, 1e6), broken]);
        assert_eq!((compared[1].downloads, compared[1].failure.as_deref()), ((1, 1), Some("status 503")));
        assert!(compare(&[]).is_empty());
    }

    #[test]
    fn the_chance_is_that_of_the_tables() {
        // Three above three: one of 20 orders.
        assert!((chance(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]) - 0.05).abs() < 1e-12);
        // U of 8 of 9: two of 20 orders.
        assert!((chance(&[3.0, 5.0, 6.0], &[1.0, 2.0, 4.0]) - 0.1).abs() < 1e-12);
        assert!((chance(&[1.0], &[1.0]) - 1.0).abs() < 1e-12);
        let (high, low): (Vec<f64>, Vec<f64>) =
            ((0..40).map(f64::from).collect(), (0..40).map(f64::from).collect());
        assert!((0.4..0.6).contains(&chance(&high, &low)));
    }
}
