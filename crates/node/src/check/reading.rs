//! One reading of checks: what workers are sent for, and what their answers come to.

use std::process::Command;

use linerate_model::check::CheckResult;
use linerate_sys::root::Root;

use super::config::Config;
use super::judge;
use super::kind::{Check, Lane};
use super::lanes::{self, Outcome};
use super::options::Options;
use super::past::{Memory, Stuck};
use super::rule::Moment;
use super::worker::{Answer, Job};

/// How long one reading may wait in the kernel, milliseconds; those that hang do so side by side, so that a
/// call takes less than 2 s with all of them.
const PATIENCE_MS: u64 = 1_500;
/// The same for a script of the site.
const SCRIPT_PATIENCE_MS: u64 = 10_000;

/// Name of the host: as given, as slurmd has it, as the kernel has it.
pub(super) fn host_name(options: &Options) -> String {
    let given = options.name.clone().or_else(|| std::env::var("SLURMD_NODENAME").ok());
    given.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        Root::live().line("/proc/sys/kernel/hostname").unwrap_or_else(|_| "localhost".to_owned())
    })
}

/// The file decides where it says anything; then the command line.
pub(super) fn is_dry_run(options: &Options, config: &Config) -> bool {
    options.is_dry_run || !config.enforce.unwrap_or(options.enforce)
}

/// Now, by the clock of the kernel and of the day.
pub(super) fn moment(root: &Root) -> Moment {
    let up = root.line("/proc/uptime").unwrap_or_default();
    let up_s = up.split(['.', ' ']).next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment { up_s, unix_s: unix.map_or(0, |since| since.as_secs() as i64) }
}

/// Has workers read everything that is asked for and not switched off.
pub(super) fn read(
    root: &Root,
    asked: &[&dyn Check],
    config: &Config,
    memory: &mut Memory,
    make: &dyn Fn() -> Command,
    deadline_ns: u64,
    now: Moment,
) -> Outcome {
    memory.stuck.retain(lanes::is_there);
    let mut jobs: Vec<Vec<Job>> = Lane::ALL.iter().map(|_| Vec::new()).collect();
    let mut hanging = Vec::new();
    for check in asked {
        let (about, settings) = (check.about(), config.of(check.about().id));
        if is_off(*check, config) {
            continue;
        }
        for item in check.items(root, &settings) {
            let patience_ms = if about.lane == Lane::Site { SCRIPT_PATIENCE_MS } else { PATIENCE_MS };
            let cursor = memory.cursor(about.id, &item);
            let job =
                Job { check: about.id.to_owned(), item, settings: settings.clone(), cursor, patience_ms };
            // One child that hangs there is enough: a second one would hang as well, and so on.
            if memory.stuck.iter().any(|stuck| stuck.check == job.check && stuck.item == job.item) {
                hanging.push((job, Answer::Silent));
            } else if let Some(lane) = jobs.get_mut(about.lane as usize) {
                lane.push(job);
            }
        }
    }
    let mut outcome = lanes::run(jobs, make, deadline_ns);
    outcome.answers.extend(hanging);
    for (job, pid) in &outcome.stuck {
        if let Some(began) = lanes::began(*pid) {
            let (check, item) = (job.check.clone(), job.item.clone());
            memory.stuck.push(Stuck { check, item, pid: *pid, began, since_unix_s: now.unix_s });
        }
    }
    outcome
}

fn is_off(check: &dyn Check, config: &Config) -> bool {
    config.of(check.about().id).off.unwrap_or(!check.about().is_on)
}

/// What the answers come to.
pub(super) fn judged(
    asked: &[&dyn Check],
    config: &Config,
    outcome: &Outcome,
    memory: &mut Memory,
    now: Moment,
) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for check in asked {
        let id = check.about().id;
        if is_off(*check, config) {
            results.push(judge::off(*check));
            continue;
        }
        let answers = outcome.answers.iter().filter(|(job, _)| job.check == id);
        let answers: Vec<(&str, &Answer)> =
            answers.map(|(job, answer)| (job.item.as_str(), answer)).collect();
        results.extend(judge::results(*check, &answers, memory.of(id), now, &config.of(id)));
    }
    results
}
