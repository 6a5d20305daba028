//! `clock`: nothing keeps the clock, its error is large, or the kernel gave up the fast clock source.

use linerate_sys::clock;
use linerate_sys::root::ReadError;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Rule, Severity, TWICE, Threshold};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Clock;

const ERROR: Threshold = Threshold {
    name: "error_ms",
    default: 1000.0,
    unit: "ms",
    meaning: "Largest error that the clock's daemon may admit; munge and Kerberos refuse at minutes, \
        logs of two hosts mislead much earlier.",
};
const SOURCE: &str = "source";
const TIME: &str = "time";

static ABOUT: About = About {
    id: "clock",
    title: "nothing keeps the clock, or the kernel gave up its fast clock source",
    reads: "adjtimex; /sys/devices/system/clocksource/clocksource0",
    severity: Severity::Warn,
    // A daemon that starts needs some minutes.
    rule: Rule { strikes: 3, ..TWICE },
    lane: Lane::Local,
    is_on: true,
    thresholds: &[ERROR],
    takes_expected: false,
};

impl Check for Clock {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let root = reading.root;
        let asked = || clock::state().map_err(ReadError::from);
        let state = root.answer("clock", asked).map_err(|error| error.to_string())?;
        let kept = f64::from(u8::from(state.is_synchronised));
        let time = Row::new(TIME).value("kept", kept).value("error_ms", state.max_error_us as f64 / 1e3);
        let folder = "/sys/devices/system/clocksource/clocksource0";
        let source = root.line(&format!("{folder}/current_clocksource")).unwrap_or_default();
        let mut rows = vec![time];
        if !source.is_empty() {
            // Of the usual ones `tsc`, `kvm-clock`, `arch_sys_counter` are read without leaving the program.
            let is_fast = !["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&source.as_str());
            rows.push(Row::new(SOURCE).value("fast", f64::from(u8::from(is_fast))).word("name", source));
        }
        Ok(rows.into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        if row.subject == SOURCE {
            let fast = row.get("fast").unwrap_or(1.0);
            // A host that never had a fast one has none to lose.
            let had = past.best(SOURCE, fast, now, 365.0);
            let text = format!("clock source {}", row.text("name"));
            if fast < had {
                return Observation::bad(row, text).because("slow-clock-source");
            }
            return Observation::good(row, text);
        }
        if row.get("kept") != Some(1.0) {
            return Observation::bad(row, "no daemon keeps the clock, or it has lost its sources");
        }
        let error_ms = row.get("error_ms").unwrap_or(0.0);
        let text = format!("kept, error up to {error_ms:.0} ms");
        if error_ms > settings.number(&ERROR) {
            return Observation::bad(row, text);
        }
        Observation::good(row, text)
    }
}
