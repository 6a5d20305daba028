//! `kept-set`: settings that were kept and that are not in force.
//!
//! In: the kept settings that the operator handed over with `linerate check install`, of every family, and
//! the lines of the file of sysctls that `keep` writes, for what the first file does not name.

use std::path::Path;

use linerate_model::drift::KeptSetting;
use linerate_model::fact::FactValue;
use linerate_model::step::KEPT_FILE;
use linerate_sys::root::{ReadError, Root};

use linerate_facts::private;
use linerate_facts::setting_for;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct KeptSet;

/// Where `keep` writes sysctls in files of its own.
const FILES: [&str; 2] = ["/etc/sysctl.d/90-linerate.conf", "/etc/sysctl.d/zz-linerate.conf"];

static ABOUT: About = About {
    id: "kept-set",
    title: "a setting that was kept is not in force",
    reads: "/etc/linerate/kept.json, /etc/sysctl.d/90-linerate.conf and the settings in them",
    severity: Severity::Warn,
    rule: TWICE,
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

/// One space between words.
fn plain(value: &FactValue) -> String {
    value.to_string().split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(root: &Root, key: &str, kept: &FactValue) -> Row {
    let row = Row::new(key).word("kept", plain(kept));
    match setting_for(key).map(|setting| setting.read(root, key)) {
        Some(Ok(now)) => {
            let is_same = now.is_same(kept) || plain(&now) == plain(kept);
            row.value("same", f64::from(u8::from(is_same))).word("now", plain(&now))
        }
        Some(Err(error)) => row.word("gap", error.to_string()),
        None => row.word("gap", "no setting of this version"),
    }
}

/// The text of a file; empty where nothing was kept.
fn text(root: &Root, path: &str) -> Result<String, String> {
    match root.read(path) {
        Err(ReadError::Missing) => Ok(String::new()),
        other => other.map_err(|error| format!("{path}: {error}")),
    }
}

/// What the operator handed over.
fn handed_over(text: &str) -> Result<Vec<(String, FactValue)>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let kept: Vec<KeptSetting> =
        serde_json::from_str(text).map_err(|_| format!("{KEPT_FILE}: no list of kept settings"))?;
    Ok(kept.into_iter().map(|one| (one.key, one.value)).collect())
}

/// Lines of the file of sysctls.
fn sysctls(text: &str) -> Vec<(String, FactValue)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let one = |(name, kept): (&str, &str)| {
        (format!("sysctl.{}", name.trim()), FactValue::Text(kept.trim().to_owned()))
    };
    pairs.map(one).collect()
}

impl Check for KeptSet {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let handed = text(reading.root, KEPT_FILE)?;
        if reading.root.is_live() && !handed.is_empty() {
            private::check_unwritable(Path::new(KEPT_FILE))?;
        }
        let mut kept = handed_over(&handed)?;
        for file in FILES {
            let others: Vec<_> = sysctls(&text(reading.root, file)?)
                .into_iter()
                .filter(|(key, _)| !kept.iter().any(|(known, _)| known == key))
                .collect();
            kept.extend(others);
        }
        let rows = kept.iter().map(|(key, value)| row(reading.root, key, value));
        Ok(rows.collect::<Vec<_>>().into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        let (kept, now, gap) = (row.text("kept"), row.text("now"), row.text("gap"));
        if !gap.is_empty() {
            return Observation::unknown(row, gap);
        }
        if row.get("same") != Some(1.0) {
            return Observation::bad(row, format!("{now}, and {kept} was kept"));
        }
        Observation::good(row, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule::Verdict;
    use super::*;

    #[test]
    fn what_was_handed_over_is_compared_as_values_and_a_damaged_file_is_named() {
        assert_eq!(handed_over(""), Ok(Vec::new()), "nothing was handed over");
        let text = r#"[{"host":"a","key":"sysctl.vm.swappiness","value":"30000","policy":"report","line":3},
                       {"host":"a","key":"nic.lo.of.next.year","value":1,"policy":"report","line":4}]"#;
        let kept = handed_over(text).unwrap();
        let rows: Vec<Row> = kept.iter().map(|(key, value)| row(&Root::live(), key, value)).collect();
        let judged = |row: &Row| {
            let now = Moment { up_s: 1, unix_s: 1 };
            KeptSet.judge(row, &mut Past::default(), now, &Settings::default())
        };
        assert_eq!(judged(&rows[0]).verdict, Verdict::Bad, "{rows:?}");
        assert!(judged(&rows[0]).text.ends_with("and 30000 was kept"));
        assert_eq!(judged(&rows[1]).verdict, Verdict::Unknown);
        let now = setting_for("sysctl.vm.swappiness").unwrap().read(&Root::live(), "sysctl.vm.swappiness");
        let same = row(&Root::live(), "sysctl.vm.swappiness", &FactValue::Text(now.unwrap().to_string()));
        assert_eq!(judged(&same).verdict, Verdict::Good, "a text and a number of one value");
        let lines = sysctls("# vm.a = 1\n vm.swappiness = 10\n");
        assert_eq!(lines, [("sysctl.vm.swappiness".to_owned(), FactValue::Text("10".to_owned()))]);
        assert!(handed_over("{}").unwrap_err().contains("no list of kept settings"));
    }
}
