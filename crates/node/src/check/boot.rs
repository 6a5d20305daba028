//! The kept set after a boot: compared again until it is in force, for what has to wait for it (`--as boot`).
//!
//! In: the check `kept-set`. Out: a report about it alone. The past takes no part: what differs after all of
//! these readings was seen often enough.

use std::process::Command;
use std::time::Duration;

use linerate_model::check::{CHECK_REPORT_VERSION, CheckReport, CheckResult, CheckState};
use linerate_sys::root::Root;
use linerate_sys::{sched, spawn};

use super::checks::kept_set::KeptSet;
use super::config::Config;
use super::kind::Check;
use super::options::Options;
use super::past::Memory;
use super::reading;

/// How long what sets values at boot may take, seconds: below the deadline of a call.
const WAIT_S: u64 = 25;
/// Between two readings.
const PAUSE: Duration = Duration::from_millis(500);
const SECOND_NS: u64 = 1_000_000_000;

/// The last reading: the first that finds everything in force, or the one at the end of the wait. Where that
/// one had no time left to be read, the one before it counts.
pub(super) fn report(
    options: &Options,
    config: &Config,
    make: &dyn Fn() -> Command,
    begun_ns: u64,
) -> CheckReport {
    let root = Root::live();
    let until_ns = begun_ns + WAIT_S * SECOND_NS;
    let asked: [&dyn Check; 1] = [&KeptSet];
    let (mut stuck, mut earlier) = (Vec::new(), None);
    loop {
        let now = reading::moment(&root);
        // What hangs is not started again.
        let mut memory = Memory::default();
        memory.stuck = std::mem::take(&mut stuck);
        let outcome = reading::read(&root, &asked, config, &mut memory, make, until_ns + SECOND_NS, now);
        let mut results = reading::judged(&asked, config, &outcome, &mut memory, now);
        let is_in_force = results.iter().all(|one| matches!(one.state, CheckState::Ok | CheckState::Off));
        let ended_ns = sched::monotonic_ns();
        if !is_in_force && ended_ns < until_ns {
            stuck = memory.stuck;
            std::thread::sleep(PAUSE);
            if sched::monotonic_ns() < until_ns {
                if is_read(&results) {
                    earlier = Some(results);
                }
                continue;
            }
        }
        if let Some(earlier) = earlier.filter(|_| !is_read(&results)) {
            results = earlier;
        }
        for one in results.iter_mut().filter(|one| one.state == CheckState::Suspect) {
            one.state = CheckState::Failing;
        }
        return CheckReport {
            version: CHECK_REPORT_VERSION,
            host: reading::host_name(options),
            at_unix_s: now.unix_s,
            boot_id: root.line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            dry_run: reading::is_dry_run(options, config),
            results,
            notes: outcome.notes,
            took_ms: (ended_ns - begun_ns) / 1_000_000,
            cpu_ms: u64::try_from(spawn::cpu_time().as_millis()).unwrap_or(u64::MAX),
            busy_age_s: None,
        };
    }
}

/// Whether everything could be read.
fn is_read(results: &[CheckResult]) -> bool {
    results.iter().all(|one| one.state != CheckState::Unknown)
}
