//! What is written comes back in the resolution that is kept; a kill and a full disk lose a minute at most.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::random::Random;
use linerate_store::Store;

use super::*;

const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// A Monday in 2026, at midnight.
const START_MS: u64 = 20_000 * DAY_MS;
const NO_LIMITS: HistoryLimits = HistoryLimits { reserve: 0, file_max: FILE_MAX };

fn key(host: usize, metric: Metric) -> SeriesKey {
    SeriesKey {
        cluster: "three".into(),
        suspect: Suspect::Host(format!("arc-{host}")),
        direction: Direction::Rx,
        layer: Layer::Underlay,
        metric,
        statistic: Statistic::Typical,
    }
}

fn opened(folder: &Path) -> History {
    History::open(&folder.join(schema::SCHEMA.file), NO_LIMITS).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.003
}

#[test]
fn the_series_of_a_suspect_are_found_by_its_whole_name() {
    let folder = tempfile::tempdir().unwrap();
    let history = opened(folder.path());
    let odd = SeriesKey { suspect: Suspect::Host("arc-1\"%_".into()), ..key(12, Metric::Loss) };
    let keys = [key(1, Metric::Throughput), key(12, Metric::Loss), odd, key(1, Metric::Loss)];
    let ids = keys.each_ref().map(|key| history.series(key).unwrap());
    let of = |name: &str| {
        let listed = history.list_of("three", &Suspect::Host(name.into())).unwrap();
        listed.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!((of("arc-1"), of("arc-1\"%_"), of("arc")), (vec![ids[0], ids[3]], vec![ids[2]], vec![]));
    assert_eq!(history.list_of("four", &Suspect::Host("arc-1".into())).unwrap(), []);
}

#[test]
fn minutes_come_back_and_what_was_not_measured_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = opened(folder.path());
    let a = history.series(&key(1, Metric::Throughput)).unwrap();
    let b = history.series(&key(1, Metric::Loss)).unwrap();
    assert_eq!(history.series(&key(1, Metric::Throughput)).unwrap(), a);
    for minute in 0..150 {
        let at = START_MS + minute * MINUTE_MS;
        let mut values = vec![(b, 0.0)];
        if minute % 10 != 3 {
            values.push((a, 9.4e9 + minute as f64 * 1e6));
        }
        history.append(at, &values).unwrap();
    }
    let points = history.read(a, START_MS, START_MS + 150 * MINUTE_MS).unwrap();
    assert_eq!(points.len(), 150);
    for (minute, point) in points.iter().enumerate() {
        assert_eq!((point.start_ms, point.span_ms), (START_MS + minute as u64 * MINUTE_MS, MINUTE_MS));
        let expected = (minute % 10 != 3).then_some(9.4e9 + minute as f64 * 1e6);
        assert_eq!(point.measured.is_some(), expected.is_some(), "{minute}");
        assert!(point.measured.is_none_or(|m| near(m.median, expected.unwrap())), "{point:?}");
    }
    let losses = history.read(b, START_MS + 70 * MINUTE_MS, START_MS + 80 * MINUTE_MS).unwrap();
    assert_eq!(losses.len(), 10);
    assert!(losses.iter().all(|p| p.measured.is_some_and(|m| m.max == 0.0)), "{losses:?}");
    let listed: Vec<SeriesId> = history.list().unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(listed, [a, b]);
    let mode = std::fs::metadata(folder.path().join(schema::SCHEMA.file)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// 100 days with an outage: the last week by minutes, the last season by quarters, the rest by two hours;
/// each moment once, and summaries that hold what the minutes held.
#[test]
fn old_parts_become_summaries_without_a_seam() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = opened(folder.path());
    // A minute is a transaction of its own; what is tested needs no disk.
    history.database.execute("", "pragma synchronous = off", &[]).unwrap();
    let series = history.series(&key(1, Metric::RttIdle)).unwrap();
    let value = |minute: u64| 100.0 + (minute % 120) as f64;
    // Every fourth minute is measured.
    let is_out = |minute: u64| !minute.is_multiple_of(4) || (3000..7020).contains(&minute);
    let minutes = 100 * 24 * 60;
    for minute in (0..minutes).filter(|minute| !is_out(*minute)) {
        history.append(START_MS + minute * MINUTE_MS, &[(series, value(minute))]).unwrap();
    }
    let points = history.read(series, START_MS, START_MS + minutes * MINUTE_MS).unwrap();
    let mut at = START_MS;
    for point in &points {
        assert_eq!(point.start_ms, at, "{point:?}");
        at += point.span_ms;
    }
    assert_eq!(at, START_MS + minutes * MINUTE_MS);
    let spans = |span: u64| points.iter().filter(|p| p.span_ms == span * MINUTE_MS).count() as u64;
    assert!(spans(1) >= Tier::MINUTES.kept && spans(1) <= Tier::MINUTES.kept + 2 * 24 * 60, "{}", spans(1));
    assert!(spans(15) > 80 * 96 && spans(120) > 5 * 12, "{} {}", spans(15), spans(120));
    for point in points.iter().filter(|p| p.span_ms == 120 * MINUTE_MS) {
        let start = (point.start_ms - START_MS) / MINUTE_MS;
        let measured = (start..start + 120).filter(|minute| !is_out(*minute)).count();
        assert_eq!(point.measured.map_or(0, |found| usize::from(found.count)), measured, "{start}");
        let Some(found) = point.measured.filter(|_| measured == 30) else { continue };
        assert!(near(found.min, 100.0) && near(found.max, 216.0) && near(found.median, 156.0), "{found:?}");
    }
}

/// Two programs that watch two clusters write the same minutes, also when one of them is late by an hour.
#[test]
fn two_writers_share_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (opened(folder.path()), opened(folder.path()));
    let a = one.series(&key(1, Metric::Loss)).unwrap();
    let b = two.series(&key(2, Metric::Loss)).unwrap();
    one.append(START_MS, &[(a, 0.25)]).unwrap();
    two.append(START_MS, &[(b, 0.5)]).unwrap();
    let value = |history: &History, series| {
        history.read(series, START_MS, START_MS + MINUTE_MS).unwrap()[0].measured.map(|found| found.median)
    };
    assert!(value(&one, a).is_some_and(|value| near(value, 0.25)));
    assert!(value(&one, b).is_some_and(|value| near(value, 0.5)));
    // The hour becomes blocks, and a late minute of it comes after that.
    two.append(START_MS + 60 * MINUTE_MS, &[(b, 0.5)]).unwrap();
    one.append(START_MS + MINUTE_MS, &[(a, 0.125)]).unwrap();
    two.append(START_MS + 120 * MINUTE_MS, &[(b, 0.5)]).unwrap();
    let points = two.read(a, START_MS, START_MS + 2 * MINUTE_MS).unwrap();
    let found: Vec<f64> = points.iter().filter_map(|point| Some(point.measured?.median)).collect();
    assert!(found.len() == 2 && near(found[0], 0.25) && near(found[1], 0.125), "{points:?}");
}

/// A process that appends is killed: what it had appended is there.
#[test]
fn a_kill_loses_the_current_minute_at_most() {
    const FOLDER: &str = "LINERATE_HISTORY_TEST_KILLED";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut history = opened(Path::new(&folder));
        let series = history.series(&key(1, Metric::Loss)).unwrap();
        for minute in 0.. {
            history.append(START_MS + minute * MINUTE_MS, &[(series, 0.5)]).unwrap();
            std::io::Write::write_all(&mut std::io::stderr(), format!("at {minute}\n").as_bytes()).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "tests::a_kill_loses_the_current_minute_at_most"])
        .env(FOLDER, folder.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let minute = |line: String| line.strip_prefix("at ").and_then(|n| n.parse::<u64>().ok());
    let last = lines.filter_map(minute).find(|minute| *minute >= 200).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let history = opened(folder.path());
    let (series, _) = history.list().unwrap()[0];
    let points = history.read(series, START_MS, START_MS + (last + 1) * MINUTE_MS).unwrap();
    assert_eq!(points.iter().filter(|p| p.measured.is_some()).count() as u64, last + 1);
}

/// On a disk of 16 MB where 6 MB are to stay free: history ends with an error of its own, runs do not.
#[test]
fn a_full_disk_stops_history_and_not_runs() {
    const FOLDER: &str = "LINERATE_HISTORY_TEST_FULL";
    const NAME: &str = "tests::a_full_disk_stops_history_and_not_runs";
    let Some(folder) = std::env::var_os(FOLDER) else {
        let folder = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs -o size=16m,mode=0700 tmpfs \"$0\" && exec \"$@\"";
        let done = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(folder.path())
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", NAME])
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        return;
    };
    let folder = Path::new(&folder);
    let limits = HistoryLimits { reserve: 6_000_000, file_max: FILE_MAX };
    let mut history = History::open(&folder.join(schema::SCHEMA.file), limits).unwrap();
    let all: Vec<SeriesId> = (0..500).map(|i| history.series(&key(i, Metric::Loss)).unwrap()).collect();
    let mut random = Random(3);
    let mut minute = 0;
    let mut append = |history: &mut History| {
        let values: Vec<(SeriesId, f64)> = all.iter().map(|id| (*id, random.fraction())).collect();
        minute += 1;
        history.append(START_MS + minute * MINUTE_MS, &values)
    };
    let error = (0..10_000).find_map(|_| append(&mut history).err()).unwrap();
    assert!(matches!(error, HistoryError::Full { .. }), "{error}");
    let free = |needed: u64| {
        let found = rustix::fs::statvfs(folder).unwrap();
        found.f_bavail * found.f_frsize >= needed
    };
    assert!(free(5_000_000));
    // Runs are written all the same.
    let store = Store::open(&folder.join("linerate.sqlite")).unwrap();
    let run = linerate_model::snapshot::Snapshot { id: "r1".into(), ..Default::default() };
    store.begin_run(&run, None).unwrap();
    // Another program takes the rest: still the same error, and what was written can be read.
    std::fs::write(folder.join("filler"), vec![0; 16 << 20]).unwrap_err();
    history.reserve = 0;
    let error = (0..10_000).find_map(|_| append(&mut history).err()).unwrap();
    assert!(matches!(error, HistoryError::Full { .. }), "{error}");
    assert!(!history.read(all[7], START_MS, START_MS + DAY_MS).unwrap().is_empty());
    std::fs::remove_file(folder.join("filler")).unwrap();
    append(&mut history).unwrap();
}

/// Two years of 1,000 hosts with 12 series each, by the bytes that a few hosts take in a real file.
#[test]
fn two_years_of_a_thousand_hosts_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(schema::SCHEMA.file);
    let series = 24;
    let filled = fill::fill(&path, series, &mut |_| {}).unwrap();
    let slots: u64 = Tier::ALL.iter().map(|tier| tier.slots_kept()).sum();
    assert!(filled.slots >= series * slots * 97 / 100, "{} of {}", filled.slots, series * slots);
    let whole = filled.bytes * 12_000 / series;
    assert!(whole < FILE_MAX, "{} MB", whole / 1_000_000);
    let history = History::open(&path, NO_LIMITS).unwrap();
    let end_ms = (filled.end + 1) * MINUTE_MS;
    let (first, _) = history.list().unwrap()[0];
    let points = history.read(first, end_ms - 730 * DAY_MS, end_ms).unwrap();
    let measured = points.iter().filter(|p| p.measured.is_some()).count() as u64;
    assert!(measured * 100 > slots * 90, "{measured} of {slots}");
}
