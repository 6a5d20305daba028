//! A series between two moments: the finest resolution that is kept of each part.

use linerate_store::database::Database;
use rusqlite::params;

use super::codec::{self, Coded};
use super::compact;
use super::error::HistoryError;
use super::point::{HistoryPoint, SeriesId};
use super::tier::{MINUTE_MS, Tier};

/// From one minute to another, in time order.
pub(crate) fn points(
    database: &Database,
    series: SeriesId,
    from: u64,
    to: u64,
) -> Result<Vec<HistoryPoint>, HistoryError> {
    let mut parts = Vec::new();
    // The finest first: what it does not reach is left to the next.
    let mut until = to;
    for tier in Tier::ALL {
        let oldest = oldest(database, tier)?.max(tier.start(from));
        let mut blocks = Vec::new();
        let mut start = tier.start(oldest);
        while start < until {
            blocks.extend(of_block(database, tier, start, series)?);
            start += tier.span();
        }
        blocks.retain(|point| point.start_ms < until * MINUTE_MS && point.start_ms >= from * MINUTE_MS);
        // Without the parts that the finer resolution has.
        if let Some(last) = blocks.last_mut() {
            last.span_ms = last.span_ms.min(until * MINUTE_MS - last.start_ms);
        }
        until = until.min(oldest.max(from));
        parts.push(blocks);
    }
    Ok(parts.into_iter().rev().flatten().collect())
}

/// Start of the oldest block of a resolution of any series; of minutes also those of the current hour.
fn oldest(database: &Database, tier: Tier) -> Result<u64, HistoryError> {
    let of = |query: &str, number: i64| -> Result<Option<i64>, HistoryError> {
        let oldest = database.first("read", query, params![number], |row| row.get(0));
        Ok(oldest?.flatten())
    };
    let mut oldest = of("select min(start) from block where tier = ?1", tier.number)?;
    if tier == Tier::MINUTES && oldest.is_none() {
        oldest = of("select min(at) from minute where ?1 = 0", tier.number)?;
    }
    Ok(oldest.map_or(u64::MAX / 2, |start| tier.start(start as u64)))
}

fn of_block(
    database: &Database,
    tier: Tier,
    start: u64,
    series: SeriesId,
) -> Result<Vec<HistoryPoint>, HistoryError> {
    let mut slots = compact::block(database, tier, start, series.0)?;
    if slots.is_none() && tier == Tier::MINUTES {
        slots = current(database, start, series)?;
    }
    let point = |start: u64, span: u64, coded: Option<Coded>| HistoryPoint {
        start_ms: start * MINUTE_MS,
        span_ms: span * MINUTE_MS,
        measured: coded.map(Coded::summary),
    };
    let Some(slots) = slots else { return Ok(vec![point(start, tier.span(), None)]) };
    let starts = (start..).step_by(tier.slot as usize);
    Ok(starts.zip(slots).map(|(start, coded)| point(start, tier.slot, coded)).collect())
}

/// Minutes that are no block yet.
fn current(
    database: &Database,
    start: u64,
    series: SeriesId,
) -> Result<Option<Vec<Option<Coded>>>, HistoryError> {
    let tier = Tier::MINUTES;
    let query = "select at, data from minute where at >= ?1 and at < ?2";
    let range = params![start as i64, (start + tier.span()) as i64];
    let mut slots = None;
    database.each("read", query, range, |row| {
        let (minute, data): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let values = codec::decode_minute(&data).ok_or(HistoryError::Damaged { start })?;
        let slots = slots.get_or_insert_with(|| vec![None; tier.block as usize]);
        if let Ok(found) = values.binary_search_by_key(&series.0, |(number, _)| *number) {
            slots[(minute as u64 - start) as usize] = Some(Coded::minute(values[found].1));
        }
        Ok::<_, HistoryError>(())
    })?;
    Ok(slots)
}
