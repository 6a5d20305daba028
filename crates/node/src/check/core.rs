//! One call of the checks: configuration, lock, past, readings, judgement, and what is printed.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_model::check::{CHECK_REPORT_VERSION, CheckReport};
use linerate_sys::root::Root;
use linerate_sys::{bounded, sched, spawn};
use serde::{Deserialize, Serialize};

use super::boot;
use super::config::{self, Config};
use super::kind::Check;
use super::list::CHECKS;
use super::options::Options;
use super::past::Memory;
use super::reading::{host_name, is_dry_run, judged, moment, read};
use super::rule::Moment;
use linerate_facts::private::{self, CHECK_FOLDER, Folder};

/// CPU time after which a worker, or a script that it runs, is ended.
pub(super) const WORKER_CPU_S: u32 = 3;
/// When workers that have not answered are left: before the deadline of the process that was called.
pub(super) const READING_S: u64 = 30;
const CONFIG: &str = "/etc/linerate/checks.toml";
const CONFIG_BYTES_MAX: usize = 1 << 20;
const STATE: &str = "state.json";
const LOCK: &str = ".lock";
/// Between two attempts to get the lock.
const ATTEMPTS: Duration = Duration::from_millis(20);
/// A last result that is older is none.
const LAST_MAX_S: i64 = 3600;
const SECOND_NS: u64 = 1_000_000_000;

/// What the process that was called prints and exits with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Printed {
    pub(super) text: String,
    pub(super) code: u8,
}

/// One call.
pub(super) fn run(options: &Options, make: &dyn Fn() -> Command) -> Printed {
    let shown = match checked(options, make) {
        Ok(report) => options.context.show(&report),
        Err(reason) => options.context.unable(&reason),
    };
    let Some(path) = options.to.as_ref().filter(|_| !shown.text.is_empty()) else {
        return Printed { text: shown.text, code: shown.code };
    };
    match write_in_one_step(path, &shown.text) {
        Ok(()) => Printed { text: String::new(), code: shown.code },
        Err(error) => {
            let unable = options.context.unable(&format!("cannot write {}: {error}", path.display()));
            Printed { text: unable.text, code: unable.code }
        }
    }
}

/// A reader of the file sees the old text or the new one. Other users may read it: the node exporter does.
fn write_in_one_step(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut fresh = std::ffi::OsString::from(".");
    fresh.push(name);
    fresh.push(format!(".{}", std::process::id()));
    let fresh = path.with_file_name(fresh);
    let fill = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        std::fs::rename(&fresh, path)
    };
    fill().inspect_err(|_| {
        let _ = std::fs::remove_file(&fresh);
    })
}

/// The configuration; a missing file at its usual path is an empty one.
fn read_config(options: &Options) -> Result<Config, String> {
    let path = options.config.as_deref().unwrap_or(Path::new(CONFIG));
    let named = |flaw: String| format!("{}: {flaw}", path.display());
    let bytes = match bounded::read(path, CONFIG_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && options.config.is_none() => {
            return Ok(Config::default());
        }
        other => other.map_err(|error| named(error.to_string()))?,
    };
    private::check_unwritable(path)?;
    let text = String::from_utf8(bytes).map_err(|_| named("not UTF-8".to_owned()))?;
    config::parse(&text, CHECKS).map_err(|flaws| flaws.into_iter().map(named).collect::<Vec<_>>().join("\n"))
}

/// The folder of the past, locked.
struct State {
    folder: Folder,
    _lock: File,
}

enum Opened {
    Ours(State),
    /// Another call has the lock; the text of the last state.
    Busy(Option<String>),
}

fn open_state(options: &Options) -> io::Result<Opened> {
    let folder = Folder::make(&options.state_dir.join(CHECK_FOLDER))?;
    let lock = folder.lock_file(OsStr::new(LOCK))?;
    let until = Instant::now() + options.context.patience();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Opened::Ours(State { folder, _lock: lock })),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Ok(Opened::Busy(folder.read(OsStr::new(STATE)).ok().flatten()));
            }
            // The kernel has no lock with a time limit.
            Err(TryLockError::WouldBlock) => std::thread::sleep(ATTEMPTS),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn checked(options: &Options, make: &dyn Fn() -> Command) -> Result<CheckReport, String> {
    let begun_ns = sched::monotonic_ns();
    let config = read_config(options)?;
    let root = Root::live();
    let (now, host) = (moment(&root), host_name(options));
    if options.context.waits_for_kept_set() {
        return Ok(boot::report(options, &config, make, begun_ns));
    }
    let mut notes = Vec::new();
    let state = match open_state(options) {
        Ok(Opened::Busy(text)) => return Ok(last(text.as_deref(), &host, now)),
        Ok(Opened::Ours(state)) => Some(state),
        Err(error) => {
            notes.push(format!("no past, so nothing can fail: {error}"));
            None
        }
    };
    let boot_id = root.line("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let text = match state.as_ref().map(|state| state.folder.read(OsStr::new(STATE))) {
        Some(Ok(text)) => text,
        Some(Err(error)) => {
            notes.push(format!("state file cannot be read, history begins anew: {error}"));
            None
        }
        None => None,
    };
    let (mut memory, more) = Memory::restore(text.as_deref(), &boot_id, now);
    notes.extend(more);
    let is_asked =
        |check: &&&dyn Check| options.only.is_empty() || options.only.iter().any(|id| id == check.about().id);
    let asked: Vec<&dyn Check> = CHECKS.iter().filter(is_asked).copied().collect();
    let outcome = read(&root, &asked, &config, &mut memory, make, begun_ns + READING_S * SECOND_NS, now);
    let results = judged(&asked, &config, &outcome, &mut memory, now);
    notes.extend(outcome.notes);
    let mut report = CheckReport {
        version: CHECK_REPORT_VERSION,
        host,
        at_unix_s: now.unix_s,
        boot_id,
        dry_run: is_dry_run(options, &config),
        results,
        notes,
        took_ms: (sched::monotonic_ns() - begun_ns) / 1_000_000,
        cpu_ms: u64::try_from(spawn::cpu_time().as_millis()).unwrap_or(u64::MAX),
        busy_age_s: None,
    };
    if let Some(state) = state {
        if options.only.is_empty() {
            memory.last = Some(report.clone());
        }
        let stored = memory
            .text()
            .map_err(io::Error::from)
            .and_then(|text| state.folder.write(OsStr::new(STATE), &text));
        if let Err(error) = stored {
            report.notes.push(format!("state cannot be stored: {error}"));
        }
    }
    Ok(report)
}

/// The last result, for who comes while another call runs.
pub(super) fn last(text: Option<&str>, host: &str, now: Moment) -> CheckReport {
    let memory = text.and_then(|text| serde_json::from_str::<Memory>(text).ok());
    let report = memory.and_then(|memory| memory.last);
    let age_s = report.as_ref().map_or(i64::MAX, |report| now.unix_s.saturating_sub(report.at_unix_s));
    match report {
        Some(report) if (0..=LAST_MAX_S).contains(&age_s) => {
            CheckReport { busy_age_s: Some(age_s as u64), ..report }
        }
        _ => CheckReport {
            version: CHECK_REPORT_VERSION,
            host: host.to_owned(),
            at_unix_s: now.unix_s,
            dry_run: true,
            busy_age_s: Some(0),
            notes: vec!["another check is running, and there is no result yet".to_owned()],
            ..CheckReport::default()
        },
    }
}
