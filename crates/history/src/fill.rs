//! A file as it is after two years, made at once: for the size that it has, and the time that reading takes.

use std::path::Path;

use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::random::Random;

use super::codec::{self, Coded};
use super::{FILE_MAX, History, HistoryError, HistoryLimits, SeriesKey, Statistic, Tier, compact};

/// What was written.
#[derive(Debug, Clone, Copy)]
pub struct Filled {
    /// Size of the file.
    pub bytes: u64,
    /// Slots, measured or not.
    pub slots: u64,
    /// The last minute, since 1970.
    pub end: u64,
}

const METRICS: [Metric; 6] = [
    Metric::Throughput,
    Metric::Loss,
    Metric::RttIdle,
    Metric::RttLoaded,
    Metric::Retransmits,
    Metric::CpuCost,
];

/// Fills a file with so many series as after two years: noise of 5 % with heavy tails, a daily cycle, values
/// that were not measured in 1 % of the minutes.
///
/// # Errors
/// The file cannot be written.
pub fn fill(path: &Path, series: u64, progress: &mut dyn FnMut(&str)) -> Result<Filled, HistoryError> {
    let history = History::open(path, HistoryLimits { reserve: 0, file_max: FILE_MAX * 2 })?;
    let change = history.database.begin("fill")?;
    for number in 0..series {
        let key = SeriesKey {
            cluster: "cluster".into(),
            suspect: Suspect::Host(format!("host-{}", number / 12)),
            direction: if number % 2 == 0 { Direction::Tx } else { Direction::Rx },
            layer: Layer::Underlay,
            metric: METRICS[(number / 2 % 6) as usize],
            statistic: Statistic::Typical,
        };
        history.series(&key)?;
    }
    change.commit()?;
    let days = Tier::LONG.kept.div_ceil(24 * 60) / 5 * 5;
    // Blocks of all resolutions end together there.
    let end = (20_000 + days) / 5 * 5 * 24 * 60;
    let mut slots = 0;
    for tier in Tier::ALL {
        progress(&format!("slots of {} min", tier.slot));
        let mut start = tier.start(end - tier.kept);
        while start < end {
            let change = history.database.begin("fill")?;
            let blocks = (1..=series as i64).map(|number| (number, made(tier, start, number as u64)));
            compact::insert(&history.database, tier, start, blocks)?;
            slots += series * tier.block;
            change.commit()?;
            start += tier.span();
        }
    }
    history.database.checkpoint("fill")?;
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    Ok(Filled { bytes, slots, end })
}

/// A block of a series.
fn made(tier: Tier, start: u64, series: u64) -> Vec<Option<Coded>> {
    let mut random = Random(start ^ series << 32);
    let usual = 1e9 * (1.0 + series as f64 % 10.0);
    let mut one = |minute: u64| {
        let unit = random.fraction();
        if unit < 0.01 {
            return None;
        }
        let daily = 1.0 + 0.1 * (minute as f64 / 1440.0 * std::f64::consts::TAU).sin();
        let spike = if unit > 0.99 { 0.3 } else { 1.0 };
        let noise = (0..4).map(|_| random.fraction()).sum::<f64>() - 2.0;
        codec::code(usual * daily * spike * (1.0 + 0.05 * noise))
    };
    (0..tier.block)
        .map(|slot| {
            let from = start + slot * tier.slot;
            // A sample of the minutes of a slot has its spread.
            let minutes = tier.slot.min(5);
            let mut codes: Vec<u16> = (from..from + minutes).filter_map(&mut one).collect();
            let mut coded = Coded::of(&mut codes)?;
            coded.count = (u64::from(coded.count) * tier.slot / minutes) as u16;
            Some(coded)
        })
        .collect()
}
