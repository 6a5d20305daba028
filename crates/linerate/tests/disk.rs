//! `linerate disk watch` and `linerate disk bench` on this machine.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How often the same few blocks are written at most, whatever happens.
const ROUNDS_MAX: usize = 200_000;

#[test]
fn what_is_written_is_seen_by_its_device() {
    const NAME: &str = "what_is_written_is_seen_by_its_device";
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(NAME, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    if !Path::new("/sys/block").is_dir() {
        linerate_testkit::skip(NAME, "no block devices are to be seen here");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["disk", "watch", "-i", "1", "--count", "3", "--json", "--all"])
        .env("LINERATE_DATA", folder.path())
        .env("LINERATE_NODE", node)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let file = std::fs::File::create(folder.path().join("written")).unwrap();
    for _ in 0..ROUNDS_MAX {
        if watch.try_wait().unwrap().is_some() {
            break;
        }
        file.write_all_at(&[7; 8 << 10], 0).unwrap();
        file.sync_data().unwrap();
    }
    let output = watch.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{shown}");
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let intervals: Vec<&Value> = lines.iter().filter(|line| line["disks"].is_array()).collect();
    assert_eq!(intervals.len(), 3, "{lines:?}");
    assert!(lines[0]["layout"].is_array() && lines[lines.len() - 1]["findings"].is_array());
    let others = lines.iter().filter(|line| line["finding"].is_string()).count();
    assert_eq!(lines.len(), 5 + others, "a layout, three intervals, the findings: {lines:?}");
    let written: f64 = intervals
        .iter()
        .flat_map(|interval| interval["disks"].as_array().unwrap())
        .map(|disk| disk["write"]["bytes_per_s"].as_f64().unwrap())
        .sum();
    match lines[0]["times_missing"].as_str() {
        Some(reason) => drop(linerate_testkit::skip(NAME, &format!("no percentiles here: {reason}"))),
        None => plausible(&intervals),
    }
    // A file system in memory has no device: then nothing is to be seen, and that is said so.
    let on_a_device = Command::new("df").arg(folder.path()).output().unwrap();
    if String::from_utf8_lossy(&on_a_device.stdout).contains("/dev/") {
        assert!(written > 0.0, "{lines:?}");
    } else {
        linerate_testkit::skip(NAME, "the folder of the tests is on no block device");
    }
    let runs = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("runs")
        .env("LINERATE_DATA", folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&runs.stdout).contains("disks of 1 hosts watched for "), "{runs:?}");
}

/// Percentiles of all that has them.
fn plausible(intervals: &[&Value]) {
    let disks = intervals.iter().flat_map(|interval| interval["disks"].as_array().unwrap());
    let all = disks.flat_map(|disk| {
        let ways = ["read", "write", "discard"].map(|way| &disk[way]["times"]);
        ways.into_iter().chain([&disk["flush_times"]])
    });
    for times in all.filter(|times| !times.is_null()) {
        assert!(times["requests"].as_u64().unwrap() > 0, "{times}");
        let order = ["p50_ms", "p90_ms", "p99_ms", "max_ms"].map(|name| times[name].as_f64().unwrap());
        assert!(order.is_sorted() && order[0] > 0.0, "{times}");
    }
}

#[test]
fn without_the_right_there_are_means_and_the_reason() {
    const NAME: &str = "without_the_right_there_are_means_and_the_reason";
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(NAME, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    if !linerate_testkit::has(NAME, "setpriv", "util-linux") {
        return;
    }
    // Who is not root has no such right in the first place.
    let drop = ["--bounding-set=-all", "--inh-caps=-all"];
    let drop: &[&str] = if linerate_testkit::is_root() { &drop } else { &["--no-new-privs"] };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let watch = |more: &[&str]| {
        let output = Command::new("setpriv")
            .args(drop)
            .arg(env!("CARGO_BIN_EXE_linerate"))
            .args(["disk", "watch", "-i", "0.2", "--count", "1"])
            .args(more)
            .env("LINERATE_DATA", folder.path())
            .env("LINERATE_NODE", &node)
            .output()
            .unwrap();
        let shown = linerate_testkit::text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{shown}");
        (linerate_testkit::text(&output.stdout), shown)
    };
    let (table, shown) = watch(&["--all"]);
    assert!(shown.contains(": no percentiles: ") && shown.contains("needs root of the machine"), "{shown}");
    assert!(table.starts_with("device") && table.contains("r ms"), "{table}");
    let (json, _) = watch(&["--json"]);
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[..2].iter().all(|line| line["times_missing"].as_str().unwrap().contains("needs root")));
    let (json, shown) = watch(&["--json", "--no-percentiles"]);
    assert!(json.contains("not asked for") && !shown.contains("no percentiles"), "{shown}");
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    for interval in ["0", "-1", "nan", "abc", "1e9"] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(["disk", "watch", &format!("--interval={interval}")])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{interval}");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(shown.contains("hint: 200ms to 1h"), "{interval}: {shown}");
    }
}

/// `linerate disk bench …` with a store of its own; nothing when the node program is not there.
fn bench(name: &str, folder: &Path, arguments: &[&str]) -> Option<std::process::Output> {
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return None;
    };
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["disk", "bench", "--quiet"])
        .args(arguments)
        .env("LINERATE_DATA", folder.join("data"))
        .env("LINERATE_NODE", node)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(output)
}

#[test]
fn a_folder_is_measured_stored_and_left_as_it_was() {
    const NAME: &str = "a_folder_is_measured_stored_and_left_as_it_was";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let tests = "random-read,random-write,mixed";
    let shape =
        ["--size", "4M", "--time", "60s", "--requests", "5000", "--cached", "--json", "--do", tests, "--in"];
    let arguments: Vec<&str> = shape.into_iter().chain([place.to_str().unwrap()]).collect();
    let Some(output) = bench(NAME, folder.path(), &arguments) else { return };
    let shown = String::from_utf8_lossy(&output.stderr);
    // 20 MB of a file of 4 MB: what a cache answers is no evidence.
    assert_eq!(output.status.code(), Some(3), "{shown}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    linerate_testkit::schemas::hold("disk-bench", &json);
    let tests = json["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 3, "{json}");
    for test in tests {
        assert!(test["requests_per_s"].as_f64().unwrap() > 0.0 && test["binds"].is_string(), "{test}");
    }
    assert_eq!(tests[0]["test"], "random read 4k x32 cached");
    let phases = &json["samples"][0]["outcome"]["measured"]["tx"]["disk"]["phases"];
    assert_eq!(phases[0]["read"]["requests"], 5000, "{phases}");
    assert!(std::fs::read_dir(&place).unwrap().next().is_none(), "nothing is left");
    let report = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("report")
        .env("LINERATE_DATA", folder.path().join("data"))
        .output()
        .unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("random read 4k x32 cached"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn devices_are_not_written_by_mistake() {
    const NAME: &str = "devices_are_not_written_by_mistake";
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("precious");
    std::fs::write(&file, vec![7_u8; 8 << 20]).unwrap();
    let path = file.to_str().unwrap();
    let cases: [(&[&str], &str); 7] = [
        (
            &["--write-to", "sdx"],
            "/dev/sdx is written only after its name was typed, and there is no terminal",
        ),
        (&["--write-to", "sdx", "--yes", "sdx", "a", "b"], "--write-to is for one host at a time"),
        (&["--yes", "sdx"], "--write-to"),
        (&["--write-to", "sdx", "--read", "sdy"], "cannot be used with"),
        (&["--write-to", path, "--yes", "precious"], "it is no block device"),
        (&["--read", path, "--do", "random-write"], "is only read, and a test would write it"),
        (&["--write-to", "/dev/null", "--yes", "null"], "it is no block device"),
    ];
    for (arguments, answer) in cases {
        let Some(output) = bench(NAME, folder.path(), arguments) else { return };
        let shown = linerate_testkit::text(&output.stderr) + &linerate_testkit::text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {shown}");
        assert!(shown.replace('\n', " ").contains(answer), "{arguments:?}: {shown}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), vec![7_u8; 8 << 20]);
}

/// Loop devices over files with content, gone at the end.
struct Loops {
    devices: Vec<String>,
    images: Vec<std::path::PathBuf>,
}

impl Loops {
    /// `None` where this machine makes none.
    fn make(name: &str, folder: &Path, count: usize) -> Option<Self> {
        let mut loops = Self { devices: Vec::new(), images: Vec::new() };
        for number in 0..count {
            let image = folder.join(format!("image-{number}"));
            let mut content = vec![0; 32 << 20];
            let mut random = std::fs::File::open("/dev/urandom").unwrap();
            std::io::Read::read_exact(&mut random, &mut content).unwrap();
            std::fs::write(&image, &content).unwrap();
            match Command::new("losetup").args(["--find", "--show"]).arg(&image).output() {
                Ok(made) if made.status.success() => {
                    let device = linerate_testkit::text(&made.stdout).trim().to_owned();
                    loops.devices.push(device);
                    loops.images.push(image);
                }
                Ok(made) => {
                    linerate_testkit::skip(name, linerate_testkit::text(&made.stderr).trim());
                    return None;
                }
                Err(error) => {
                    linerate_testkit::skip(name, &format!("losetup: {error}"));
                    return None;
                }
            }
        }
        Some(loops)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for device in &self.devices {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

/// Four equal drives are read and none is written; of a promise that no drive keeps each is measured three
/// times before that is reported.
#[test]
fn drives_are_surveyed_beside_their_equals_and_not_written() {
    const NAME: &str = "drives_are_surveyed_beside_their_equals_and_not_written";
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(NAME, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    if !linerate_testkit::is_root() {
        linerate_testkit::skip(NAME, "loop devices need root");
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(loops) = Loops::make(NAME, folder.path(), 4) else { return };
    let before: Vec<Vec<u8>> = loops.images.iter().map(|image| std::fs::read(image).unwrap()).collect();
    let survey = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["disk", "survey", "--quiet", "--time", "2s", "--size", "32M"]);
        command.args(loops.devices.iter().flat_map(|device| ["--device", device]));
        let command = command.args(more).env("LINERATE_DATA", folder.path()).env("LINERATE_NODE", &node);
        command.output().unwrap()
    };
    let output = survey(&["--json", "--promised", "1000000000iops"]);
    let shown = linerate_testkit::text(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {shown}"));
    linerate_testkit::schemas::hold("disk-survey", &json);
    let drives = json["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 4, "{json}");
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for drive in drives {
        assert_eq!((drive["class"].as_str(), drive["equals"].as_u64()), (Some("made"), Some(3)), "{drive}");
        assert_eq!(drive["rounds"].as_u64(), Some(3), "{drive}");
        let figure = |name: &str| drive[name]["per_s"].as_f64().unwrap_or_else(|| panic!("{name}: {drive}"));
        assert!(figure("random") > 0.0 && figure("sequential") > 0.0);
        let state = drive["state"].as_str().unwrap();
        assert!(["below-promise", "slow"].contains(&state), "{drive}");
    }
    let table = linerate_testkit::text(&survey(&[]).stdout);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("localhost loop")).count(), 4, "{table}");
    for (image, before) in loops.images.iter().zip(&before) {
        assert!(std::fs::read(image).unwrap() == *before, "{} was written", image.display());
    }
}

/// Who writes is named, by process with its number.
#[test]
fn a_watch_names_the_process_that_writes() {
    use std::io::{Seek, Write};
    use std::sync::atomic::{AtomicBool, Ordering};
    const NAME: &str = "a_watch_names_the_process_that_writes";
    let Some(node) = linerate_testkit::node_program(env!("CARGO_BIN_EXE_linerate")) else {
        linerate_testkit::skip(NAME, "no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut file = std::fs::File::create(folder.path().join("written")).unwrap();
    let ended = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            // At most 4 GB, the same megabyte again and again.
            let block = vec![7; 1 << 20];
            for _ in 0..4096 {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                file.rewind().unwrap();
                file.write_all(&block).unwrap();
                file.sync_all().unwrap();
            }
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["disk", "watch", "--by", "process", "--json", "--count", "4", "--interval", "0.5"]);
        command.env("LINERATE_DATA", folder.path()).env("LINERATE_NODE", &node);
        let output = command.output();
        ended.store(true, Ordering::Relaxed);
        output.unwrap()
    });
    let text = linerate_testkit::text(&output.stdout);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let intervals: Vec<Value> = lines.filter(|line| line.get("users").is_some()).collect();
    assert_eq!(intervals.len(), 4, "{text}{}", linerate_testkit::text(&output.stderr));
    let own = format!("({}, ", std::process::id());
    let of_user = |user: &&Value| user["name"].as_str().unwrap().contains(&own);
    let writes = |interval: &Value| {
        let user = interval["users"].as_array().unwrap().iter().find(of_user).cloned();
        user.is_some_and(|user| user["write_bytes_per_s"].as_f64().unwrap() > 0.0)
    };
    assert!(intervals.iter().any(writes), "{text}");
    // The table has them too, and names of processes are not stored.
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["disk", "watch", "--by", "user", "--count", "1", "--interval", "0.5"]);
    let table = command.env("LINERATE_DATA", folder.path()).env("LINERATE_NODE", &node).output().unwrap();
    let table = linerate_testkit::text(&table.stdout);
    assert!(table.contains("who") && table.contains("wMB/s"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}
