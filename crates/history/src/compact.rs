//! Minutes to blocks of their series, blocks to summaries, and what is too old goes.
//!
//! Each block of time is one transaction: a kill leaves it as it was.

use std::collections::BTreeMap;

use linerate_store::database::{Database, Rows};
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
    // A minute that came after its hour was made a block.
    each_block(change, start, end, |number, before| {
        if let Some(slots) = series.get_mut(&number) {
            for (slot, before) in slots.iter_mut().zip(before) {
                *slot = slot.or(before);
            }
        }
    })?;
    insert(change, tier, start, series)?;
    let done = "delete from minute where at >= ?1 and at < ?2";
    change.execute(DOING, done, params![start as i64, end as i64])?;
    Ok(())
}

/// Gives each block of minutes that starts between two minutes to a function, with its series: in the order
/// of time.
fn each_block(
    database: &Database,
    from: u64,
    to: u64,
    mut use_block: impl FnMut(i64, Vec<Option<Coded>>),
) -> Result<(), HistoryError> {
    let tier = Tier::MINUTES;
    let query = "select series, start, data from block where tier = ?1 and start >= ?2 and start < ?3
                 order by start, series";
    database.each(DOING, query, params![tier.number, from as i64, to as i64], |row| {
        let (series, start, data): (i64, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let start = start as u64;
        let slots = codec::decode(&data, tier.slot, tier.block).ok_or(HistoryError::Damaged { start })?;
        use_block(series, slots);
        Ok(())
    })
}

/// Writes blocks of series that start together.
pub(crate) fn insert(
    database: &Database,
    tier: Tier,
    start: u64,
    blocks: impl IntoIterator<Item = (i64, Vec<Option<Coded>>)>,
) -> Result<(), HistoryError> {
    let mut rows = Rows::new(DOING);
    for (series, slots) in blocks {
        rows.add(params![tier.number, start as i64, series, codec::encode(&slots, tier.slot)])?;
    }
    let put = "insert into block (tier, start, series, data) values (?1, ?2, ?3, ?4)
               on conflict (tier, start, series) do update set data = excluded.data";
    Ok(database.execute_each(put, rows)?)
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

/// Makes the summaries of a block of time. All series are read together, an hour or a slot at a time, the
/// longer of both: the minutes of a whole block would be hundreds of megabytes.
fn summarise(change: &Database, tier: Tier, start: u64) -> Result<(), HistoryError> {
    let mut series: BTreeMap<i64, Vec<Option<Coded>>> = BTreeMap::new();
    // A slot is a part of an hour, or hours are a part of it.
    let step = tier.slot.max(Tier::MINUTES.span());
    for from in (start..start + tier.span()).step_by(step as usize) {
        let mut minutes: BTreeMap<i64, Vec<Option<Coded>>> = BTreeMap::new();
        each_block(change, from, from + step, |number, slots| {
            minutes.entry(number).or_default().extend(slots);
        })?;
        for (number, minutes) in minutes {
            let slots = series.entry(number).or_insert_with(|| vec![None; tier.block as usize]);
            let first = ((from - start) / tier.slot) as usize;
            for (slot, part) in slots[first..].iter_mut().zip(minutes.chunks(tier.slot as usize)) {
                *slot = summary(part);
            }
        }
    }
    insert(change, tier, start, series)
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
