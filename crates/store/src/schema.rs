//! The schema of runs and trials, step by step, for each engine. A step that was released is never edited; a
//! new one is added below, to both lists, or to that of the server alone where only teams have it.

use super::migrations::Schema;
use super::paths::FILE;

/// Runs and trials.
pub(super) const SCHEMA: Schema = Schema { file: FILE, part: "runs", sqlite: SQLITE, postgres: POSTGRES };

const SQLITE: &[&str] = &[
    "
    create table run (
        id text primary key,
        parent text,
        start_ms integer not null,
        cluster text not null,
        inventory_path text,
        finished integer not null default 0,
        headline text,
        left_out text,
        json text not null,
        diagnosis text
    ) strict;
    create table sample (
        seq integer primary key,
        run text not null references run(id),
        test integer not null,
        from_host text not null,
        to_host text not null,
        layer text not null,
        kind text not null,
        start_ms integer not null,
        outcome text not null,
        throughput_bps real,
        json text not null
    ) strict;
    create index sample_run on sample (run);
    create table facts (
        run text not null references run(id),
        host text not null,
        json text not null,
        primary key (run, host)
    ) strict;
    create table gap (
        run text not null references run(id),
        what text not null,
        reason text not null
    ) strict;
    create table finding (
        run text not null references run(id),
        rank integer not null,
        cause text,
        sentence text not null,
        json text not null,
        primary key (run, rank)
    ) strict;
    create table trial (
        id text primary key,
        run text not null,
        remedy text not null,
        status text not null,
        saved_ms integer not null,
        json text not null
    ) strict;
",
    // Most hosts have the same keys; the JSON of a host has them itself where `keys` is null.
    "
    create table fact_keys (
        digest text primary key,
        json text not null
    ) strict;
    alter table facts add column keys text references fact_keys(digest);
",
    // 1 for a measurement by itself, which is never diagnosed.
    "
    alter table run add column measurement integer not null default 0;
",
    // What is known last of each host, against which its next reading is compared; the changes that were
    // found, and how many of a reading were beyond the bound.
    "
    create table known_facts (
        cluster text not null,
        host text not null,
        keys text not null references fact_keys(digest),
        json text not null,
        primary key (cluster, host)
    ) strict;
    create table fact_change (
        seq integer primary key,
        cluster text not null,
        host text not null,
        key text not null,
        old text,
        new text,
        after_ms integer not null,
        seen_ms integer not null,
        run text,
        who text
    ) strict;
    create index fact_change_seen on fact_change (seen_ms);
    create index fact_change_cluster on fact_change (cluster, seen_ms);
    create table fact_change_beyond (
        cluster text not null,
        host text not null,
        seen_ms integer not null,
        count integer not null
    ) strict;
",
    // What saw a change, where that is neither a run nor a plain reading.
    "
    alter table fact_change add column seen_by text;
",
    // What a time series database stored of hosts: 100 MB of some runs, which lists of runs need not read.
    "
    create table stored_series (
        seq integer primary key,
        run text not null references run(id),
        json text not null
    ) strict;
    create index stored_series_run on stored_series (run);
",
];

// Texts in the order of their bytes, as SQLite has them; JSON as the text that was written.
const POSTGRES: &[&str] = &[
    "
    create table run (
        id text collate \"C\" primary key,
        parent text,
        start_ms bigint not null,
        cluster text collate \"C\" not null,
        inventory_path text,
        finished bigint not null default 0,
        headline text,
        left_out text,
        json json not null,
        diagnosis json,
        measurement bigint not null default 0
    );
    create table sample (
        seq bigint generated always as identity primary key,
        run text not null references run(id),
        test bigint not null,
        from_host text not null,
        to_host text not null,
        layer text not null,
        kind text not null,
        start_ms bigint not null,
        outcome text not null,
        throughput_bps double precision,
        json text not null
    );
    create index sample_run on sample (run, test);
    create table fact_keys (
        digest text primary key,
        json text not null
    );
    create table facts (
        run text not null references run(id),
        host text not null,
        json text not null,
        keys text references fact_keys(digest),
        primary key (run, host)
    );
    create table gap (
        rowid bigint generated always as identity primary key,
        run text not null references run(id),
        what text not null,
        reason text not null
    );
    create index gap_run on gap (run);
    create table stored_series (
        seq bigint generated always as identity primary key,
        run text not null references run(id),
        json text not null
    );
    create index stored_series_run on stored_series (run);
    create table finding (
        run text not null references run(id),
        rank bigint not null,
        cause text,
        sentence text not null,
        json text not null,
        primary key (run, rank)
    );
    create table trial (
        id text collate \"C\" primary key,
        run text not null,
        remedy text not null,
        status text not null,
        saved_ms bigint not null,
        json text not null
    );
    create table known_facts (
        cluster text not null,
        host text not null,
        keys text not null references fact_keys(digest),
        json text not null,
        primary key (cluster, host)
    );
    create table fact_change (
        seq bigint generated always as identity primary key,
        cluster text collate \"C\" not null,
        host text collate \"C\" not null,
        key text collate \"C\" not null,
        old text,
        new text,
        after_ms bigint not null,
        seen_ms bigint not null,
        run text,
        who text,
        seen_by text
    );
    create index fact_change_seen on fact_change (seen_ms);
    create index fact_change_cluster on fact_change (cluster, seen_ms);
    create table fact_change_beyond (
        cluster text collate \"C\" not null,
        host text collate \"C\" not null,
        seen_ms bigint not null,
        count bigint not null
    );
",
    // The kept sets of a team, each revision whole: the newest one counts. `who` is what the operator's
    // machine names, `role` what the server knows.
    "
    create table kept_set (
        cluster text collate \"C\" not null,
        revision bigint not null,
        at_ms bigint not null,
        who text not null,
        role text not null default session_user,
        what text not null,
        toml text not null check (octet_length(toml) <= 1048576),
        primary key (cluster, revision)
    );
",
];
