//! `disk-health`: a drive that reports its end, that the kernel gave up, or whose errors grow.

use linerate_model::fact::FactValue;
use linerate_sys::root::Root;

use super::super::growth::GrowthRule;
use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Rule, Severity, TWICE, Threshold};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct DiskHealth;

const ERRORS: Threshold = Threshold {
    name: "errors",
    default: 1.0,
    unit: "errors",
    meaning: "New errors of the medium, or of requests, within the window that are bad. They have to \
        come at two calls.",
};
/// Most drives that are asked.
const DRIVES_MAX: usize = 256;
/// Critical warnings that mean an end; as in knowledge/storage/drive-failing.toml.
const FATAL: [&str; 3] = ["spare-low", "unreliable", "read-only"];
/// States of the kernel for a drive that gets no requests any more.
const GONE: [&str; 4] = ["offline", "transport-offline", "blocked", "dead"];
/// Counts that grow when a drive gets worse.
const COUNTS: [&str; 6] = [
    "media_errors",
    "pending_sectors",
    "uncorrectable_sectors",
    "reallocated_sectors",
    "kernel_errors",
    "filesystem_errors",
];

static ABOUT: About = About {
    id: "disk-health",
    title: "a drive reports its end, or its errors grow",
    reads: "health page of NVMe, SMART of SATA, error counters of the kernel; no drive is woken",
    severity: Severity::Fail,
    rule: Rule { window_s: 86_400, ..TWICE },
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[ERRORS],
    takes_expected: false,
};

impl Check for DiskHealth {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, settings: &Settings) -> Vec<String> {
        let names = root.list("/sys/block").unwrap_or_default();
        let is_drive = |name: &String| {
            // A path of a drive with several (`nvme0c1n1`) has no health of its own.
            let is_path = name.starts_with("nvme") && name.contains('c');
            let is_known = ["sd", "nvme", "vd", "hd"].iter().any(|head| name.starts_with(head));
            is_known && !is_path && !settings.leaves(name)
        };
        names.into_iter().filter(is_drive).take(DRIVES_MAX).collect()
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let facts = linerate_facts::drive_health(reading.root, reading.item);
        let head = format!("disk_health.{}.", reading.item.replace('.', "/"));
        let mut row = Row::new(reading.item);
        for (key, value) in &facts.readings {
            let Some(name) = key.strip_prefix(&head) else { continue };
            row = match value {
                FactValue::Int(number) => row.value(name, *number as f64),
                other => row.word(name, other.to_string()),
            };
        }
        let gap = facts.gaps.first().map(|gap| gap.reason.clone()).unwrap_or_default();
        Ok(vec![row.word("gap", gap)].into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let failing = |text: String| Observation::bad(row, text).because("drive-failing");
        // All counts are followed, whatever is found first.
        let window_s = settings.rule(ABOUT.rule).window_s;
        let rule = GrowthRule { window_s, events_min: settings.number(&ERRORS), share_min: 0.0 };
        let mut grown = Vec::new();
        for name in COUNTS {
            let Some(count) = row.get(name) else { continue };
            let series = past.series(&format!("{} {name}", row.subject));
            if let Some(growth) = series.add(now.up_s, count, now.up_s as f64, rule)
                && growth.is_bad
            {
                grown.push(format!("{} {} in {} s", growth.events, name.replace('_', " "), growth.over_s));
            }
        }
        if let Some(word) = FATAL.iter().find(|word| row.text("warnings").contains(**word)) {
            return failing(format!("critical warning: {word}"));
        }
        if row.text("smart_status") == "failing" {
            return failing("SMART: failing by its own limits".to_owned());
        }
        if GONE.contains(&row.text("state")) {
            return failing(format!("state of the kernel: {}", row.text("state")));
        }
        if !grown.is_empty() {
            return failing(grown.join(", "));
        }
        if let (Some(heat), Some(limit)) = (row.get("temperature_c"), row.get("critical_temperature_c"))
            && limit > 0.0
            && heat >= limit
        {
            let text = format!("{heat} °C, and {limit} °C are critical");
            return Observation::bad(row, text).because("drive-hot").only_warns();
        }
        Observation::good(row, row.text("gap"))
    }
}
