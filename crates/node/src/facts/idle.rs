//! Facts `cpu.idle_*`: how deep a CPU that has nothing to do may sleep, and how long it takes to wake up.

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Idle;

const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
/// Kernels have at most ten (`CPUIDLE_STATE_MAX`).
const STATES_MAX: usize = 16;

impl Fact for Idle {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "cpu.idle_latency_us",
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
        let states = match view.root.list(FOLDER) {
            Ok(states) => states,
            Err(error) => return out.gap("cpu.idle_latency_us", &error),
        };
        let folders = states.into_iter().filter(|s| s.starts_with("state")).take(STATES_MAX);
        let deepest = folders
            .filter_map(|state| {
                let number = |file: &str| view.root.number(&format!("{FOLDER}/{state}/{file}")).ok();
                // A state that is switched off does not count.
                let latency = number("latency").filter(|_| number("disable").unwrap_or(0) == 0)?;
                Some((latency, view.root.line(&format!("{FOLDER}/{state}/name")).ok()))
            })
            .max_by_key(|(latency, _)| *latency);
        if let Some((latency, name)) = deepest {
            out.int("cpu.idle_latency_us", latency);
            if let Some(name) = name {
                out.text("cpu.idle_deepest", name);
            }
        }
    }
}
