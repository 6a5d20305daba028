//! Facts `cpu.idle_*` and the setting `cpu.idle_latency_us`: how deep a CPU that has nothing to do may sleep,
//! and how long it takes to wake up.
//!
//! A limit alone does not bring back a state in the middle that was forbidden before: `cpu.idle_exact` names
//! every state of every CPU that is forbidden, journalled and restored beside the limit. It is no fact, as
//! people can read nothing more from it.

use std::collections::BTreeSet;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};

use super::boot::unit;
use super::cpu::online;
use super::fact::Fact;
use super::readings::{Readings, fact, flawed, number_of, setting, text_of};
use super::view::View;
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Idle;

const CPUS: &str = "/sys/devices/system/cpu";
/// Kernels have at most ten (`CPUIDLE_STATE_MAX`).
const STATES_MAX: usize = 16;
const LIMIT: &str = "cpu.idle_latency_us";
const EXACT: &str = "cpu.idle_exact";
/// Value of the exact form when no state is forbidden.
const NONE: &str = "none";

pub(super) fn is_setting(key: &str) -> bool {
    key == LIMIT || key == EXACT
}

/// An idle state of one CPU.
struct State {
    folder: String,
    number: u32,
    latency_us: i64,
    allowed: bool,
}

fn states(root: &Root, cpu: u32) -> Result<Vec<State>, ReadError> {
    let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
    let names = root.list(&folder)?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix("state")?.parse().ok()).take(STATES_MAX);
    let one = |number: u32| {
        let folder = format!("{folder}/state{number}");
        let file = |file: &str| root.number(&format!("{folder}/{file}")).ok();
        let allowed = file("disable").unwrap_or(0) == 0;
        Some(State { latency_us: file("latency")?, number, allowed, folder })
    };
    Ok(numbers.filter_map(one).collect())
}

fn deepest(states: &[State]) -> Option<&State> {
    // A state that is switched off does not count.
    states.iter().filter(|s| s.allowed).max_by_key(|s| s.latency_us)
}

impl Fact for Idle {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting(
                LIMIT,
                "us",
                "Longest time to wake up from an idle state that the first CPU may use; a limit that a program asks for by `/dev/cpu_dma_latency` is not in it.",
            ),
            fact("cpu.idle_deepest", "text", "Name of that state."),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let states = match states(view.root, 0) {
            Ok(states) => states,
            Err(error) => return out.gap(LIMIT, &error),
        };
        if let Some(deepest) = deepest(&states) {
            out.int(LIMIT, deepest.latency_us);
            if let Ok(name) = view.root.line(&format!("{}/name", deepest.folder)) {
                out.text("cpu.idle_deepest", name);
            }
        }
    }
}

/// Allows exactly the states that `allowed` names, on all CPUs.
fn allow(root: &Root, allowed: impl Fn(u32, &State) -> bool) -> Result<(), SettingError> {
    if !root.is_writable() {
        return Err(ReadError::Recorded.into());
    }
    for cpu in online(root).ok_or(SettingError::NoCpus)? {
        for state in states(root, cpu).unwrap_or_default() {
            let wanted = allowed(cpu, &state);
            if wanted != state.allowed {
                let file = format!("{}/disable", state.folder);
                root.write(&file, if wanted { "0" } else { "1" })
                    .map_err(|source| SettingError::Cpu { cpu, source })?;
            }
        }
    }
    Ok(())
}

/// States that are forbidden: `cpu:state`, separated by spaces.
fn forbidden(root: &Root) -> Result<String, SettingError> {
    let mut all = Vec::new();
    for cpu in online(root).ok_or(SettingError::NoCpus)? {
        let states = states(root, cpu).unwrap_or_default();
        all.extend(states.iter().filter(|s| !s.allowed).map(|s| format!("{cpu}:{}", s.number)));
    }
    Ok(if all.is_empty() { NONE.to_owned() } else { all.join(" ") })
}

fn write_exact(root: &Root, text: &str) -> Result<(), SettingError> {
    let mut wanted = BTreeSet::new();
    for pair in text.split_ascii_whitespace().filter(|word| *word != NONE) {
        let pair =
            pair.split_once(':').and_then(|(cpu, state)| Some((cpu.parse().ok()?, state.parse().ok()?)));
        let pair: (u32, u32) = pair.ok_or_else(|| flawed(&text, "not a list of CPUs and states"))?;
        wanted.insert(pair);
    }
    allow(root, |cpu, state| !wanted.contains(&(cpu, state.number)))
}

impl Setting for Idle {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        match key {
            EXACT => Ok(FactValue::Text(forbidden(root)?)),
            LIMIT => {
                let states = states(root, 0)?;
                let lacks =
                    || SettingError::Lacks { device: "the CPU".to_owned(), what: "idle state".to_owned() };
                Ok(FactValue::Int(deepest(&states).ok_or_else(lacks)?.latency_us))
            }
            _ => Err(SettingError::NotAKey("not a key of idle states")),
        }
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        match key {
            EXACT => write_exact(root, &text_of(value)?),
            LIMIT => {
                let limit = i64::from(number_of(value)?);
                allow(root, |_, state| state.latency_us <= limit)
            }
            _ => Err(SettingError::NotAKey("not a key of idle states")),
        }
    }

    /// A limit is read back as the time of the deepest state below it, so that it has to be one.
    fn check(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        if key != LIMIT {
            return Ok(());
        }
        let limit = i64::from(number_of(value)?);
        let known: Vec<i64> = states(root, 0)?.iter().map(|s| s.latency_us).collect();
        if known.contains(&limit) {
            Ok(())
        } else {
            Err(SettingError::NoIdleState { limit_us: limit, known })
        }
    }

    fn related(&self, key: &str) -> Vec<String> {
        if key == LIMIT { vec![EXACT.to_owned()] } else { Vec::new() }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let (LIMIT, Ok(limit)) = (key, number_of(value)) else {
            return Persist::Impossible {
                reason: "only a limit in microseconds can be made to stay".to_owned(),
            };
        };
        let states = format!("{CPUS}/cpu*/cpuidle/state*");
        unit(
            "cpu-idle",
            "limit of the time that CPUs take to wake up",
            format!(
                "/bin/sh -c 'for s in {states}; do [ \"$$(cat $$s/latency)\" -le {limit} ] || echo 1 > $$s/disable; done'"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::setting::conformance;
    use crate::setting_for;

    /// Two CPUs with states of 0, 10 and 133 us; on the second one the middle state is forbidden.
    fn machine() -> (tempfile::TempDir, Root) {
        let tree = tempfile::tempdir().unwrap();
        let cpus = tree.path().join("sys/devices/system/cpu");
        for cpu in 0..2 {
            for (number, latency) in [(0, 0), (1, 10), (2, 133)] {
                let folder = cpus.join(format!("cpu{cpu}/cpuidle/state{number}"));
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("latency"), format!("{latency}\n")).unwrap();
                std::fs::write(folder.join("name"), format!("C{number}\n")).unwrap();
                let off = u8::from(cpu == 1 && number == 1);
                std::fs::write(folder.join("disable"), format!("{off}\n")).unwrap();
            }
        }
        std::fs::write(cpus.join("online"), "0-1\n").unwrap();
        let root = Root::fixture(tree.path());
        (tree, root)
    }

    #[test]
    fn a_limit_forbids_deeper_states_and_goes_back_state_by_state() {
        let (_tree, root) = machine();
        let setting = setting_for(LIMIT).unwrap();
        let exact = || setting_for(EXACT).unwrap().read(&root, EXACT).unwrap().to_string();
        assert_eq!(exact(), "1:1");
        setting.write(&root, LIMIT, &FactValue::Int(10)).unwrap();
        assert_eq!(setting.read(&root, LIMIT), Ok(FactValue::Int(10)));
        assert_eq!(exact(), "0:2 1:2", "the limit allows the middle state of the second CPU");
        setting.write(&root, LIMIT, &FactValue::Int(133)).unwrap();
        setting_for(EXACT).unwrap().write(&root, EXACT, &FactValue::Text("1:1".into())).unwrap();
        assert_eq!(exact(), "1:1");
        assert_eq!(setting.read(&root, LIMIT), Ok(FactValue::Int(133)));
        let refused = setting.check(&root, LIMIT, &FactValue::Int(20)).unwrap_err();
        assert_eq!(refused.to_string(), "no idle state takes 20 us to wake up; they take 0, 10, 133");
        conformance::check(setting, &root, LIMIT, &FactValue::Int(10));
    }
}
