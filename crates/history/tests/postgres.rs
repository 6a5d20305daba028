//! The history in PostgreSQL, on a real server: the same points as in a file, and two writers of one minute.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Barrier;

use linerate_history::{DropsRecord, FILE_MAX, History, HistoryLimits, Recorded, SeriesKey, Statistic};
use linerate_model::drops::DropReport;
use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use linerate_store::Store;
use linerate_testkit::postgres::PostgresServer;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
const START_MS: u64 = 20_000 * DAY_MS;

fn key(host: &str) -> SeriesKey {
    SeriesKey {
        cluster: "three".into(),
        suspect: Suspect::Host(host.into()),
        direction: Direction::Rx,
        layer: Layer::Underlay,
        metric: Metric::Throughput,
        statistic: Statistic::Typical,
    }
}

/// Ten days in minutes, so that hours become blocks, blocks summaries, and the oldest minutes go.
fn story(history: &mut History) -> Vec<String> {
    let hosts = ["arc-1", "arc-1\"%_'"].map(|host| history.series(&key(host)).unwrap());
    for minute in (0..10 * 24 * 60).step_by(10) {
        let value = 9.4e9 + minute as f64 * 1e5;
        history.append(START_MS + minute * MINUTE_MS, &[(hosts[0], value), (hosts[1], 0.0)]).unwrap();
    }
    for number in 0..u64::from(DropsRecord::KEPT_MAX) + 3 {
        let report = DropReport::default();
        let record =
            DropsRecord { cluster: "three".into(), start_ms: START_MS + number, report, command: "x".into() };
        history.keep(&record).unwrap();
    }
    let end_ms = START_MS + 10 * DAY_MS;
    vec![
        format!("{:?}", history.list()),
        format!("{:?}", history.list_of("three", &Suspect::Host("arc-1\"%_'".into()))),
        format!("{:?}", history.read(hosts[0], START_MS - DAY_MS, end_ms)),
        format!("{:?}", history.read(hosts[1], end_ms - 90 * MINUTE_MS, end_ms)),
        format!("{:?}", history.records::<DropsRecord>()),
    ]
}

#[test]
fn a_server_returns_the_points_of_the_file() {
    let Some(server) = PostgresServer::start("a_server_returns_the_points_of_the_file") else { return };
    let folder = tempfile::tempdir().unwrap();
    let limits = HistoryLimits { reserve: 0, file_max: FILE_MAX };
    let of_file = story(&mut History::open(&folder.path().join("h.sqlite"), limits).unwrap());
    let of_server = story(&mut History::connect(&server.database("team")).unwrap());
    for (file, server) in of_file.iter().zip(&of_server) {
        assert_eq!(file, server);
    }
    assert!(of_file[2].matches("Some(").count() > 500, "{}", of_file[2].len());
    assert_ne!(server.sql("team", "select count(*) from block where tier > 0"), "0", "there are summaries");
}

#[test]
fn two_watches_write_one_minute_and_a_server_that_goes_away_is_an_error() {
    let test = "two_watches_write_one_minute_and_a_server_that_goes_away_is_an_error";
    let Some(mut server) = PostgresServer::start(test) else { return };
    let address = server.database("team");
    let write = |host: &str| {
        let mut history = History::connect(&address).unwrap();
        let (shared, own) = (history.series(&key("both")).unwrap(), history.series(&key(host)).unwrap());
        for minute in 0..50 {
            history.append(START_MS + minute * MINUTE_MS, &[(shared, 5e9), (own, 1e9)]).unwrap();
        }
        (shared, own)
    };
    let ids: Vec<_> = std::thread::scope(|scope| {
        let write = &write;
        let threads = ["one", "two"].map(|host| scope.spawn(move || write(host)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids[0].0, ids[1].0, "one series");
    let history = History::connect(&address).unwrap();
    for series in [ids[0].0, ids[0].1, ids[1].1] {
        let points = history.read(series, START_MS, START_MS + 50 * MINUTE_MS).unwrap();
        assert_eq!(points.iter().filter(|point| point.measured.is_some()).count(), 50);
    }
    assert!(history.data_version().unwrap().is_some());
    server.stop();
    let lost = history.records::<DropsRecord>().unwrap_err();
    assert!(lost.is_of_server(), "{lost}");
    assert!(lost.to_string().starts_with("database: read records in postgres:///team?host="), "{lost}");
    assert!(lost.to_string().contains("\nhint: pg_isready -d 'postgres:///team?host="), "{lost}");
}

#[test]
fn both_parts_are_made_at_once_by_several() {
    let Some(server) = PostgresServer::start("both_parts_are_made_at_once_by_several") else { return };
    for number in 0..10 {
        let database = format!("team{number}");
        let address = &server.database(&database);
        let at_once = &Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    at_once.wait();
                    Store::connect(address).unwrap();
                });
                scope.spawn(|| {
                    at_once.wait();
                    History::connect(address).unwrap();
                });
            }
        });
        let versions = server.sql(&database, "select part, version from linerate_schema order by part");
        assert_eq!(versions, "history|1\nruns|2");
    }
}
