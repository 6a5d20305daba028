//! The schema of the history, step by step, for each engine. A step that was released is never edited; a new
//! one is added below, to both lists.

use linerate_store::database::Schema;

/// Series, their minutes and blocks, and records.
pub(crate) const SCHEMA: Schema =
    Schema { file: "linerate-history.sqlite", part: "history", sqlite: SQLITE, postgres: POSTGRES };

const SQLITE: &[&str] = &[
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

const POSTGRES: &[&str] = &["
    create table series (
        id bigint generated always as identity primary key,
        key text not null unique
    );
    create table minute (
        at bigint primary key,
        data bytea not null
    );
    create table block (
        tier bigint not null,
        start bigint not null,
        series bigint not null,
        data bytea not null,
        primary key (tier, start, series)
    );
    create table summed (
        tier bigint primary key,
        until bigint not null
    );
    create table record (
        kind text not null,
        id text collate \"C\" not null,
        at_ms bigint not null,
        json text not null,
        primary key (kind, id)
    );
"];
