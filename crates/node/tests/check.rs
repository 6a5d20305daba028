//! `linerate-node check` as it is called: state, lock, configuration, contexts, what a call costs.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use linerate_model::check::{CheckReport, CheckState};
use linerate_testkit::{self as testkit, TestEnvironment};

fn call(state: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
    command.arg("check").arg("--state").arg(state).args(words).env_remove("SLURMD_NODENAME");
    command.output().unwrap()
}

fn json(state: &Path, words: &[&str]) -> CheckReport {
    let output = call(state, &[&["--as", "json"], words].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("checks.toml");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_call_fails_nothing_at_first() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let report = json(&state, &["--name", "n1"]);
    assert_eq!((report.host.as_str(), report.dry_run, report.version), ("n1", true, 1));
    assert!(
        report.results.iter().all(|one| one.state != CheckState::Failing && one.state != CheckState::Warning)
    );
    assert!(report.results.iter().any(|one| one.check == "mounts"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&state.join("check")), mode(&state.join("check/state.json"))), (0o700, 0o600));
    let second = json(&state, &[]);
    assert!(second.notes.is_empty(), "{:?}", second.notes);
}

/// What a call does in a namespace of processes of its own, whose first process is this shell. Processes are
/// numbered in turn there; bytes and reads are those of all that ended below the shell, and its own.
const COUNTED: &str = r#"
    "$0" check --state "$1" --as json --name n1 > "$2"
    sh -c 'echo number $$'
    # What it did not wait for ends by itself.
    until [ "$(cat /proc/[0-9]*/comm | grep -vc '^\(sh\|cat\|grep\)$')" = 0 ]; do :; done
    cat /proc/$$/io
"#;
/// What the shell itself does there.
const OF_SHELL: u64 = 200;
/// Processes of a call: itself, the core, a worker for each of four lanes, and one behind each of at most
/// eight jobs that wait for a device.
const PROCESSES_MAX: u64 = 2 + 4 + 8;

#[test]
fn a_call_reads_and_writes_little_and_leaves_no_process() {
    let name = "a_call_reads_and_writes_little_and_leaves_no_process";
    if !testkit::is_root() {
        testkit::skip(name, "a namespace of processes needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (state, out) = (folder.path().join("state"), folder.path().join("report"));
    let words = ["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", COUNTED];
    let mut command = Command::new("unshare");
    command.args(words).arg(env!("CARGO_BIN_EXE_linerate-node")).arg(&state).arg(&out);
    let counted = command.env_remove("SLURMD_NODENAME").output().unwrap();
    assert!(counted.status.success(), "{}", testkit::text(&counted.stderr));
    let counted = testkit::text(&counted.stdout);
    if !counted.contains("syscr") {
        testkit::skip(name, "this kernel counts no reads (CONFIG_TASK_IO_ACCOUNTING)");
        return;
    }
    let of = |what: &str| -> u64 {
        let line = counted.lines().find_map(|line| line.strip_prefix(what));
        line.unwrap_or_else(|| panic!("no {what}: {counted}")).trim_start_matches(':').trim().parse().unwrap()
    };
    let report: CheckReport = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let results = report.results.len() as u64;
    println!("{results} results, {} ms of CPU: {counted}", report.cpu_ms);
    assert!(results >= 5, "{report:?}");
    // The shell is the first, the one that prints its number comes after the call.
    let processes = of("number") - 2;
    assert!((3..=PROCESSES_MAX).contains(&processes), "{processes}");
    assert!(of("syscr") <= OF_SHELL + 40 * results, "{counted}");
    assert!(of("rchar") <= (128 << 10) + results * (32 << 10), "{counted}");
    assert!(of("syscw") <= OF_SHELL + 4 * results, "{counted}");
    // Its state, its answer, and what its processes pass on to each other.
    assert!(of("wchar") <= (16 << 10) + results * (4 << 10), "{counted}");
}

#[test]
fn a_second_call_answers_at_once_with_the_last_result() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let first = json(&state, &[]);
    let lock = File::open(state.join("check/.lock")).unwrap();
    lock.lock().unwrap();
    let busy = json(&state, &[]);
    assert!(busy.busy_age_s.is_some());
    assert_eq!((busy.at_unix_s, busy.results), (first.at_unix_s, first.results));
    assert_eq!(call(&state, &["--as", "slurm"]).status.code(), Some(0));
    drop(lock);
    assert_eq!(json(&state, &[]).busy_age_s, None);
}

/// Whether a process, or one below it, has a file open.
fn has_open(pid: u32, file: &Path) -> bool {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
    targets.any(|target| target == file)
        || testkit::children(pid).into_iter().any(|child| has_open(child, file))
}

#[test]
fn a_job_waits_for_the_call_that_runs_and_is_judged_itself() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let expected = folder.path().join("scratch");
    fs::create_dir(&expected).unwrap();
    let text = format!(
        "enforce = true\n[mount-points]\nexpect = ['{}']\nstrikes = 1\npasses = 1\n",
        expected.display()
    );
    let path = config(folder.path(), &text);
    for context in ["prolog", "epilog"] {
        let words = ["--as", context, "--only", "mount-points", "--config", &path];
        assert_eq!(call(&state, &words).status.code(), Some(1));
        let lock = state.join("check/.lock");
        let held = File::open(&lock).unwrap();
        held.lock().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-node"));
        command.arg("check").arg("--state").arg(&state).args(words).env_remove("SLURMD_NODENAME");
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        testkit::wait_until("the call waits for the lock", || has_open(child.id(), &lock));
        drop(held);
        assert_eq!(child.wait().unwrap().code(), Some(1), "{context}");
    }
}

#[test]
fn a_damaged_state_file_is_named_and_one_of_others_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    json(&state, &[]);
    let file = state.join("check/state.json");
    fs::write(&file, "{ half").unwrap();
    let report = json(&state, &[]);
    assert_eq!(report.notes, ["state file is damaged: history begins anew"]);
    assert!(json(&state, &[]).notes.is_empty());
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let report = json(&state, &[]);
    assert!(report.notes[0].contains("is writable by other users"), "{:?}", report.notes);
}

#[test]
fn kill_switches_count_and_flaws_name_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let path = config(folder.path(), "enforce = true\n[mounts]\noff = true\n");
    let report = json(&state, &["--config", &path]);
    let mounts: Vec<CheckState> =
        report.results.iter().filter(|one| one.check == "mounts").map(|one| one.state).collect();
    assert_eq!((mounts, report.dry_run), (vec![CheckState::Off], false));
    assert!(json(&state, &["--config", &path, "--dry-run"]).dry_run);
    let path = config(folder.path(), "[mounts]\nof = true\n");
    let output = call(&state, &["--config", &path]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("could not check: {path}: line 2: unknown key `of` of check `mounts`\n"));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(call(&state, &["--as", "nagios", "--config", &path]).status.code(), Some(3));
    assert_eq!(call(&state, &["--as", "prolog", "--config", &path]).status.code(), Some(0));
    for (context, code) in [("--as=prolog", 0), ("--as=npd", 2), ("--as=x", 2)] {
        assert_eq!(call(&state, &[context, "--misspelled"]).status.code(), Some(code), "{context}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    let text = String::from_utf8(call(&state, &["--config", &path]).stdout).unwrap();
    assert!(text.contains("others can write it"), "{text}");
}

#[test]
fn the_collector_of_the_node_exporter_gets_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let (state, file) = (folder.path().join("state"), folder.path().join("linerate.prom"));
    let words = ["--as", "prometheus", "--to", file.to_str().unwrap(), "--only", "pressure,clock"];
    let output = call(&state, &words);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("# TYPE linerate_check_state gauge\n") && text.ends_with('\n'));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let missing = folder.path().join("gone/x.prom");
    let output = call(&state, &["--as", "prometheus", "--to", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_call_without_a_folder_for_its_past_fails_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let report = json(&folder.path().join("file"), &["--only", "pressure"]);
    assert!(report.notes[0].starts_with("no past, so nothing can fail: "), "{:?}", report.notes);
}

#[test]
fn a_full_disk_is_named_and_fails_nothing() {
    let name = "a_full_disk_is_named_and_fails_nothing";
    if !testkit::inside(name, TestEnvironment::Mounts) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_str().unwrap();
    testkit::run("mount", &["-t", "tmpfs", "-o", "size=64k,mode=755", "none", state]);
    // As much as there is.
    assert!(fs::write(folder.path().join("fill"), vec![0; 1 << 20]).is_err());
    let report = json(folder.path(), &["--only", "pressure,clock"]);
    assert!(report.notes.iter().any(|note| note.contains("No space left on device")), "{:?}", report.notes);
    assert!(report.results.iter().any(|one| one.check == "pressure"), "{report:?}");
    for (context, code) in [("slurm", 0), ("prolog", 0), ("epilog", 0)] {
        assert_eq!(
            call(folder.path(), &["--enforce", "--as", context]).status.code(),
            Some(code),
            "{context}"
        );
    }
    let file = folder.path().join("linerate.prom");
    let output = call(folder.path(), &["--as", "prometheus", "--to", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!file.exists(), "a part of the metrics is none");
}
