//! The file of a kept set: text to cohorts with their settings, and a setting added to the text. Comments and
//! order of the file stay.

use std::fmt::Write as _;

use linerate_model::drift::DriftPolicy;
use linerate_model::fact::FactValue;
use linerate_model::inventory::HostName;
use linerate_model::writable::writable;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{KeptError, line_of};

/// What a new file starts with.
const HEAD: &str =
    "# Settings that were kept, by `linerate keep`. `linerate drift` compares them with the hosts.\n";
/// Settings of one file: a bound against a file that is none.
const SETTINGS_MAX: usize = 10_000;

/// A kept set.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSet {
    /// File, for messages.
    pub file: String,
    /// Cohorts in the order of the file.
    pub cohorts: Vec<Cohort>,
}

/// Hosts that share settings: all conditions that are given hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cohort {
    /// Names of hosts; any where empty.
    pub hosts: Vec<HostName>,
    /// Group of the inventory, at any depth: a role, a rack.
    pub group: Option<String>,
    /// Driver of a NIC.
    pub driver: Option<String>,
    /// Speed of its link, Mbit/s.
    pub speed_mbit: Option<i64>,
    /// Settings.
    pub settings: Vec<CohortSetting>,
    /// A profile whose values it keeps too, where no setting of the file names the key.
    pub profile: Option<CohortProfile>,
    /// Line of its heading.
    pub line: usize,
}

/// A profile that was chosen for a cohort.
#[derive(Debug, Clone, PartialEq)]
pub struct CohortProfile {
    /// Its name, or a file of one.
    pub name: String,
    /// What is done where one of its settings drifted.
    pub policy: DriftPolicy,
    /// Line of its name.
    pub line: usize,
}

/// A setting of a cohort.
#[derive(Debug, Clone, PartialEq)]
pub struct CohortSetting {
    /// Key; a NIC `*` stands for each NIC of the cohort.
    pub key: String,
    /// Value that was kept.
    pub value: FactValue,
    /// What is done where it drifted.
    pub policy: DriftPolicy,
    /// The trial that proved it.
    pub trial: Option<String>,
    /// Line of its key.
    pub line: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSet {
    #[serde(default)]
    cohort: Vec<Spanned<RawCohort>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCohort {
    #[serde(default)]
    hosts: Vec<String>,
    group: Option<String>,
    driver: Option<String>,
    speed: Option<Spanned<String>>,
    profile: Option<Spanned<String>>,
    #[serde(default)]
    policy: DriftPolicy,
    #[serde(default)]
    setting: Vec<RawSetting>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSetting {
    key: Spanned<String>,
    value: FactValue,
    policy: Option<DriftPolicy>,
    trial: Option<String>,
}

impl KeptSet {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, with its lines.
    pub fn parse(file: &str, text: &str) -> Result<Self, KeptError> {
        let raw: RawSet = toml::from_str(text).map_err(|e| {
            let what = e.message().lines().next().unwrap_or("not TOML").to_owned();
            error(file, text, e.span().map_or(0, |span| span.start), what, "")
        })?;
        let mut errors = Vec::new();
        let mut wrong = |at: usize, what: String, hint: &str| errors.push(error(file, text, at, what, hint));
        let count: usize = raw.cohort.iter().map(|cohort| cohort.get_ref().setting.len()).sum();
        if count > SETTINGS_MAX {
            wrong(0, format!("{count} settings, at most {SETTINGS_MAX}"), "use cohorts");
        }
        let cohorts = raw.cohort.into_iter().map(|cohort| cohort_of(cohort, text, &mut wrong)).collect();
        match KeptError::all(errors) {
            Some(error) => Err(error),
            None => Ok(Self { file: file.to_owned(), cohorts }),
        }
    }
}

fn error(file: &str, text: &str, at: usize, problem: String, hint: &str) -> KeptError {
    let (file, hint) = (file.to_owned(), hint.to_owned());
    KeptError { file, line: line_of(text, at), problem, hint, others: Vec::new() }
}

/// A cohort as far as it can be understood; what is wrong with it goes to `wrong`, with its byte.
fn cohort_of(raw: Spanned<RawCohort>, text: &str, wrong: &mut impl FnMut(usize, String, &str)) -> Cohort {
    let at = raw.span().start;
    let raw = raw.into_inner();
    if raw.hosts.is_empty() && raw.group.is_none() && raw.driver.is_none() && raw.speed.is_none() {
        let hint = "give `hosts`, `group`, `driver` or `speed`";
        wrong(at, "a cohort that chooses no hosts".to_owned(), hint);
    }
    let speed_mbit = raw.speed.and_then(|speed| {
        let value = mbit(speed.get_ref());
        if value.is_none() {
            let what = format!("`{}` is not a speed", speed.get_ref().escape_debug());
            wrong(speed.span().start, what, "such as \"25G\", \"1000M\"");
        }
        value
    });
    let mut settings = Vec::new();
    for setting in raw.setting {
        let at = setting.key.span().start;
        let key = setting.key.into_inner();
        if writable(&key).is_none() {
            let what = format!("`{}` is not a setting that can be kept", key.escape_debug());
            wrong(at, what, "`linerate explain` and docs/reference/facts.md list them");
        }
        let policy = setting.policy.unwrap_or(raw.policy);
        let (value, trial) = (setting.value, setting.trial);
        settings.push(CohortSetting { key, value, policy, trial, line: line_of(text, at) });
    }
    let profile = raw.profile.map(|name| CohortProfile {
        line: line_of(text, name.span().start),
        name: name.into_inner(),
        policy: raw.policy,
    });
    Cohort {
        profile,
        hosts: raw.hosts,
        group: raw.group,
        driver: raw.driver,
        speed_mbit,
        settings,
        line: line_of(text, at),
    }
}

/// `25G`, `2.5G`, `1000M` as Mbit/s.
fn mbit(text: &str) -> Option<i64> {
    let (number, factor) = match text.strip_suffix('G') {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('M')?, 1.0),
    };
    let mbit = number.parse::<f64>().ok()? * factor;
    ((1.0..1e7).contains(&mbit)).then_some(mbit as i64)
}

/// Settings of a host, and the trial that proved them, as `keep` adds them.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition<'a> {
    /// Host.
    pub host: &'a str,
    /// Setting.
    pub key: &'a str,
    /// Value that was kept.
    pub value: &'a FactValue,
    /// The trial that proved it.
    pub trial: &'a str,
}

/// The text of a file with settings added: below the cohort of exactly this host where there is one, else as
/// a cohort at the end. A setting that the cohort of the host has already gets the new value.
///
/// # Errors
/// The text is no kept set.
pub fn add(file: &str, text: &str, additions: &[Addition<'_>]) -> Result<String, KeptError> {
    let mut text = if text.trim().is_empty() { HEAD.to_owned() } else { text.to_owned() };
    for one in additions {
        let set = KeptSet::parse(file, &text)?;
        let is_own = |cohort: &Cohort| {
            let only = Cohort { hosts: vec![one.host.to_owned()], ..Cohort::default() };
            Cohort { settings: Vec::new(), line: 0, ..cohort.clone() } == only
        };
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let own = set.cohorts.iter().position(is_own);
        let end = own.map(|at| {
            let next = set.cohorts.get(at + 1).map_or(lines.len(), |next| next.line - 1);
            // Comments and blank lines before the next cohort are its own.
            let is_ours = |line: &String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
            lines[..next].iter().rposition(is_ours).map_or(next, |last| last + 1)
        });
        let old = own.and_then(|at| set.cohorts[at].settings.iter().find(|setting| setting.key == one.key));
        match (old, end) {
            (Some(old), Some(end)) => replace(&mut lines, old.line - 1, end, one),
            (_, Some(end)) => {
                let block = block(one);
                lines.splice(end..end, block.lines().map(str::to_owned));
            }
            (_, None) => {
                lines.push(String::new());
                lines.push("[[cohort]]".to_owned());
                lines.push(format!("hosts = [{}]", quoted(one.host)));
                lines.extend(block(one).lines().map(str::to_owned));
            }
        }
        text = lines.join("\n") + "\n";
    }
    KeptSet::parse(file, &text).map(|_| text)
}

/// Gives a setting another value and trial: in the lines from its key to the next heading.
fn replace(lines: &mut Vec<String>, key_line: usize, end: usize, one: &Addition<'_>) {
    let is_heading = |line: &String| line.trim_start().starts_with('[');
    let start = lines[..key_line].iter().rposition(is_heading).map_or(0, |at| at + 1);
    let stop = lines[start..end].iter().position(is_heading).map_or(end, |more| start + more);
    let field = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let mut has_trial = false;
    for line in &mut lines[start..stop] {
        match field(line).as_str() {
            "value" => *line = format!("value = {}", shown(one.value)),
            "trial" => {
                has_trial = true;
                *line = format!("trial = {}", quoted(one.trial));
            }
            _ => {}
        }
    }
    if !has_trial {
        lines.insert(key_line + 1, format!("trial = {}", quoted(one.trial)));
    }
}

fn block(one: &Addition<'_>) -> String {
    let mut text = String::from("\n[[cohort.setting]]\n");
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "key = {}\nvalue = {}", quoted(one.key), shown(one.value));
    if !one.trial.is_empty() {
        let _ = writeln!(text, "trial = {}", quoted(one.trial));
    }
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn shown(value: &FactValue) -> String {
    match value {
        FactValue::Flag(flag) => flag.to_string(),
        FactValue::Int(number) => number.to_string(),
        FactValue::Float(number) => toml::Value::Float(*number).to_string(),
        FactValue::Text(text) => quoted(text),
        FactValue::List(texts) => {
            format!("[{}]", texts.iter().map(|t| quoted(t)).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
