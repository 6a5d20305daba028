//! Minutes to blocks of their series, blocks to summaries, and what is too old goes.
//!
//! Each block of time is one transaction: a kill leaves it as it was.

use std::collections::BTreeMap;

use linerate_store::database::Database;
use rusqlite::{ToSql, params};

use super::codec::{self, Coded};
use super::error::HistoryError;
use super::tier::Tier;

const DOING: &str = "sum up";

/// Sums up all that is over before this hour.
pub(crate) fn up_to(database: &Database, hour: u64) -> Result<(), HistoryError> {
    // First what makes space.
    expire(database, hour)?;
    while let Some(start) = oldest_minute(database, hour)? {
        let change = database.begin(DOING)?;
        hour_to_blocks(&change, start)?;
        change.commit()?;
    }
    for tier in Tier::SUMMARIES {
        while let Some(start) = next_block(database, tier, hour)? {
            let change = database.begin(DOING)?;
            summarise(&change, tier, start)?;
            let done = "insert into summed (tier, until) values (?1, ?2)
                        on conflict (tier) do update set until = excluded.until";
            change.execute(DOING, done, params![tier.number, (start + tier.span()) as i64])?;
            change.commit()?;
        }
    }
    Ok(())
}

/// Deletes what is older than its resolution is kept.
fn expire(database: &Database, now: u64) -> Result<(), HistoryError> {
    for tier in Tier::ALL {
        // Whole days, so that the next resolution takes over at one of its slots.
        let before = now.saturating_sub(tier.kept) / (24 * 60) * (24 * 60);
        let old = params![tier.number, before.saturating_sub(tier.span() - 1) as i64];
        let delete = "delete from block where tier = ?1 and start < ?2";
        database.execute("delete what is old", delete, old)?;
    }
    Ok(())
}

/// Start of the oldest hour that has minutes and is over.
fn oldest_minute(database: &Database, hour: u64) -> Result<Option<u64>, HistoryError> {
    let oldest: Result<Option<Option<i64>>, HistoryError> =
        database.first(DOING, "select min(at) from minute", &[], |row| Ok(row.get(0)?));
    Ok(oldest?.flatten().map(|at| Tier::MINUTES.start(at as u64)).filter(|start| *start < hour))
}

fn hour_to_blocks(change: &Database, start: u64) -> Result<(), HistoryError> {
    let tier = Tier::MINUTES;
    let end = start + tier.span();
    let mut series: BTreeMap<i64, Vec<Option<Coded>>> = BTreeMap::new();
    let query = "select at, data from minute where at >= ?1 and at < ?2";
    change.each(DOING, query, params![start as i64, end as i64], |row| {
        let (minute, data): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let values = codec::decode_minute(&data).ok_or(HistoryError::Damaged { start })?;
        let slot = (minute as u64 - start) as usize;
        for (number, code) in values {
            series.entry(number).or_insert_with(|| vec![None; tier.block as usize])[slot] =
                Some(Coded::minute(code));
        }
        Ok::<_, HistoryError>(())
    })?;
    for (number, mut slots) in series {
        // A minute that came after its hour was made a block.
        for (slot, before) in slots.iter_mut().zip(block(change, tier, start, number)?.unwrap_or_default()) {
            *slot = slot.or(before);
        }
        insert(change, tier, start, number, &slots)?;
    }
    let done = "delete from minute where at >= ?1 and at < ?2";
    change.execute(DOING, done, params![start as i64, end as i64])?;
    Ok(())
}

pub(crate) fn insert(
    database: &Database,
    tier: Tier,
    start: u64,
    series: i64,
    slots: &[Option<Coded>],
) -> Result<(), HistoryError> {
    let put = "insert into block (tier, start, series, data) values (?1, ?2, ?3, ?4)
               on conflict (tier, start, series) do update set data = excluded.data";
    database.execute(
        DOING,
        put,
        params![tier.number, start as i64, series, codec::encode(slots, tier.slot)],
    )?;
    Ok(())
}

/// Start of the oldest block of summaries that is to be made: over, and with minutes.
fn next_block(database: &Database, tier: Tier, hour: u64) -> Result<Option<u64>, HistoryError> {
    let one = |query: &str, values: &[&dyn ToSql]| -> Result<Option<i64>, HistoryError> {
        database.first(DOING, query, values, |row| Ok(row.get(0)?))
    };
    let until = one("select until from summed where tier = ?1", params![tier.number])?;
    let oldest = one(
        "select start from block where tier = ?1 and start >= ?2 order by start limit 1",
        params![Tier::MINUTES.number, until.unwrap_or(0)],
    )?;
    Ok(oldest.map(|start| tier.start(start as u64)).filter(|start| start + tier.span() <= hour))
}

/// Makes the summaries of a block of time, a series at a time.
fn summarise(change: &Database, tier: Tier, start: u64) -> Result<(), HistoryError> {
    let range = params![Tier::MINUTES.number, start as i64, (start + tier.span()) as i64];
    let query = "select distinct series from block where tier = ?1 and start >= ?2 and start < ?3";
    let series: Result<Vec<i64>, HistoryError> = change.list(DOING, query, range, |row| Ok(row.get(0)?));
    for number in series? {
        let mut slots = vec![None; tier.block as usize];
        for hour in (start..start + tier.span()).step_by(Tier::MINUTES.span() as usize) {
            let Some(minutes) = block(change, Tier::MINUTES, hour, number)? else { continue };
            let slot = tier.slot as usize;
            // A slot is a part of an hour, or hours are a part of it: then it is made once, with its first.
            if slot <= minutes.len() {
                for (i, part) in minutes.chunks(slot).enumerate() {
                    slots[((hour - start) as usize) / slot + i] = summary(part);
                }
            } else {
                let at = ((hour - start) / tier.slot) as usize;
                if slots[at].is_none() {
                    slots[at] = slot_of_hours(change, tier, start + at as u64 * tier.slot, number)?;
                }
            }
        }
        insert(change, tier, start, number, &slots)?;
    }
    Ok(())
}

fn slot_of_hours(
    database: &Database,
    tier: Tier,
    start: u64,
    series: i64,
) -> Result<Option<Coded>, HistoryError> {
    let mut minutes = Vec::new();
    for hour in (start..start + tier.slot).step_by(Tier::MINUTES.span() as usize) {
        minutes.extend(block(database, Tier::MINUTES, hour, series)?.unwrap_or_default());
    }
    Ok(summary(&minutes))
}

fn summary(minutes: &[Option<Coded>]) -> Option<Coded> {
    let mut codes: Vec<u16> = minutes.iter().flatten().map(|coded| coded.median).collect();
    Coded::of(&mut codes)
}

/// The slots of a block, if it is there.
pub(crate) fn block(
    database: &Database,
    tier: Tier,
    start: u64,
    series: i64,
) -> Result<Option<Vec<Option<Coded>>>, HistoryError> {
    let query = "select data from block where tier = ?1 and start = ?2 and series = ?3";
    let key = params![tier.number, start as i64, series];
    let data: Result<Option<Vec<u8>>, HistoryError> =
        database.first("read", query, key, |row| Ok(row.get(0)?));
    data?
        .map(|data| codec::decode(&data, tier.slot, tier.block).ok_or(HistoryError::Damaged { start }))
        .transpose()
}
