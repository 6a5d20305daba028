//! Minutes to blocks of their series, blocks to summaries, and what is too old goes.
//!
//! Each block of time is one transaction: a kill leaves it as it was.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::codec::{self, Coded};
use super::error::{HistoryError, at};
use super::tier::Tier;

const DOING: &str = "sum up";

/// Sums up all that is over before this hour.
pub(crate) fn up_to(connection: &mut Connection, hour: u64) -> Result<(), HistoryError> {
    // First what makes space.
    expire(connection, hour)?;
    while let Some(start) = oldest_minute(connection, hour)? {
        let change = connection.transaction().map_err(at(DOING))?;
        hour_to_blocks(&change, start)?;
        change.commit().map_err(at(DOING))?;
    }
    for tier in Tier::SUMMARIES {
        while let Some(start) = next_block(connection, tier, hour)? {
            let change = connection.transaction().map_err(at(DOING))?;
            summarise(&change, tier, start)?;
            let done = "insert or replace into summed (tier, until) values (?1, ?2)";
            change.execute(done, params![tier.number, (start + tier.span()) as i64]).map_err(at(DOING))?;
            change.commit().map_err(at(DOING))?;
        }
    }
    Ok(())
}

/// Deletes what is older than its resolution is kept.
fn expire(connection: &Connection, now: u64) -> Result<(), HistoryError> {
    for tier in Tier::ALL {
        // Whole days, so that the next resolution takes over at one of its slots.
        let before = now.saturating_sub(tier.kept) / (24 * 60) * (24 * 60);
        connection
            .execute(
                "delete from block where tier = ?1 and start < ?2",
                params![tier.number, before.saturating_sub(tier.span() - 1) as i64],
            )
            .map_err(at("delete what is old"))?;
    }
    Ok(())
}

/// Start of the oldest hour that has minutes and is over.
fn oldest_minute(connection: &Connection, hour: u64) -> Result<Option<u64>, HistoryError> {
    let oldest: Option<i64> =
        connection.query_row("select min(at) from minute", [], |row| row.get(0)).map_err(at(DOING))?;
    Ok(oldest.map(|at| Tier::MINUTES.start(at as u64)).filter(|start| *start < hour))
}

fn hour_to_blocks(change: &Transaction<'_>, start: u64) -> Result<(), HistoryError> {
    let tier = Tier::MINUTES;
    let end = start + tier.span();
    let mut series: BTreeMap<i64, Vec<Option<Coded>>> = BTreeMap::new();
    let query = "select at, data from minute where at >= ?1 and at < ?2";
    let mut statement = change.prepare_cached(query).map_err(at(DOING))?;
    let mut rows = statement.query(params![start as i64, end as i64]).map_err(at(DOING))?;
    while let Some(row) = rows.next().map_err(at(DOING))? {
        let (minute, data): (i64, Vec<u8>) = (row.get(0).map_err(at(DOING))?, row.get(1).map_err(at(DOING))?);
        let values = codec::decode_minute(&data).ok_or(HistoryError::Damaged { start })?;
        let slot = (minute as u64 - start) as usize;
        for (number, code) in values {
            series.entry(number).or_insert_with(|| vec![None; tier.block as usize])[slot] =
                Some(Coded::minute(code));
        }
    }
    for (number, mut slots) in series {
        // A minute that came after its hour was made a block.
        for (slot, before) in slots.iter_mut().zip(block(change, tier, start, number)?.unwrap_or_default()) {
            *slot = slot.or(before);
        }
        insert(change, tier, start, number, &slots)?;
    }
    let done = "delete from minute where at >= ?1 and at < ?2";
    change.execute(done, params![start as i64, end as i64]).map_err(at(DOING))?;
    Ok(())
}

pub(crate) fn insert(
    connection: &Connection,
    tier: Tier,
    start: u64,
    series: i64,
    slots: &[Option<Coded>],
) -> Result<(), HistoryError> {
    connection
        .prepare_cached("insert or replace into block (tier, start, series, data) values (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| {
            insert.execute(params![tier.number, start as i64, series, codec::encode(slots, tier.slot)])
        })
        .map_err(at(DOING))?;
    Ok(())
}

/// Start of the oldest block of summaries that is to be made: over, and with minutes.
fn next_block(connection: &Connection, tier: Tier, hour: u64) -> Result<Option<u64>, HistoryError> {
    let until: Option<i64> = connection
        .query_row("select until from summed where tier = ?1", [tier.number], |row| row.get(0))
        .optional()
        .map_err(at(DOING))?;
    let oldest: Option<i64> = connection
        .query_row(
            "select start from block where tier = ?1 and start >= ?2 order by start limit 1",
            params![Tier::MINUTES.number, until.unwrap_or(0)],
            |row| row.get(0),
        )
        .optional()
        .map_err(at(DOING))?;
    Ok(oldest.map(|start| tier.start(start as u64)).filter(|start| start + tier.span() <= hour))
}

/// Makes the summaries of a block of time, a series at a time.
fn summarise(change: &Transaction<'_>, tier: Tier, start: u64) -> Result<(), HistoryError> {
    let range = params![Tier::MINUTES.number, start as i64, (start + tier.span()) as i64];
    let query = "select distinct series from block where tier = ?1 and start >= ?2 and start < ?3";
    let mut statement = change.prepare_cached(query).map_err(at(DOING))?;
    let series: Vec<i64> =
        statement.query_map(range, |row| row.get(0)).and_then(Iterator::collect).map_err(at(DOING))?;
    for number in series {
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
    connection: &Connection,
    tier: Tier,
    start: u64,
    series: i64,
) -> Result<Option<Coded>, HistoryError> {
    let mut minutes = Vec::new();
    for hour in (start..start + tier.slot).step_by(Tier::MINUTES.span() as usize) {
        minutes.extend(block(connection, Tier::MINUTES, hour, series)?.unwrap_or_default());
    }
    Ok(summary(&minutes))
}

fn summary(minutes: &[Option<Coded>]) -> Option<Coded> {
    let mut codes: Vec<u16> = minutes.iter().flatten().map(|coded| coded.median).collect();
    Coded::of(&mut codes)
}

/// The slots of a block, if it is there.
pub(crate) fn block(
    connection: &Connection,
    tier: Tier,
    start: u64,
    series: i64,
) -> Result<Option<Vec<Option<Coded>>>, HistoryError> {
    let data: Option<Vec<u8>> = connection
        .prepare_cached("select data from block where tier = ?1 and start = ?2 and series = ?3")
        .and_then(|mut find| {
            find.query_row(params![tier.number, start as i64, series], |row| row.get(0)).optional()
        })
        .map_err(at("read"))?;
    data.map(|data| codec::decode(&data, tier.slot, tier.block).ok_or(HistoryError::Damaged { start }))
        .transpose()
}
