//! The schema of runs and trials, step by step. A step that was released is never edited; a new one is added
//! below.

/// Step `n` brings schema `n` to `n + 1`.
pub(super) const STEPS: &[&str] = &[
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
];
