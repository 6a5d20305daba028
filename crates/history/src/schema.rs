//! The schema of the file, step by step. A step that was released is never edited; a new one is added below.

/// Step `n` brings schema `n` to `n + 1`.
pub(crate) const STEPS: &[&str] = &[
    "
    create table series (
        id integer primary key,
        key text not null unique
    ) strict;
    -- Minutes of the current hour: all series of a minute in one row.
    create table minute (
        at integer primary key,
        data blob not null
    ) strict;
    -- By time: what is added and what is deleted is one range each.
    create table block (
        tier integer not null,
        start integer not null,
        series integer not null,
        data blob not null,
        primary key (tier, start, series)
    ) strict, without rowid;
    -- Until when the minutes are summed up.
    create table summed (
        tier integer primary key,
        until integer not null
    ) strict;
",
    // Alarms of watches and counts of drops, whole.
    "
    create table record (
        kind text not null,
        id text not null,
        at_ms integer not null,
        json text not null,
        primary key (kind, id)
    ) strict;
",
];
