//! `cpupower idle-info`, and values of `scaling_governor` alone on their lines: power saving of the CPUs.
//! Lines come in, facts `cpu.idle_…` and `cpu.governor` of the names of our own readers go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// `cpupower idle-info`.
pub(crate) struct IdleInfo;
/// `cat …/scaling_governor` in a longer command.
pub(crate) struct Governor;

/// Governors of the kernel.
const GOVERNORS: [&str; 6] =
    ["performance", "powersave", "ondemand", "conservative", "schedutil", "userspace"];

impl Reader for IdleInfo {
    fn name(&self) -> &'static str {
        "cpupower"
    }

    fn describes(&self) -> &'static str {
        "cpupower idle-info: idle states of the CPUs"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().starts_with("CPUidle driver:")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        // `C6 (DISABLED) :` heads what is printed of a state; one that is disabled is not entered.
        let mut state: Option<&str> = None;
        let mut deepest: Option<(i64, &str)> = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            let Some((name, value)) = text.split_once(':') else {
                if text.is_empty() {
                    continue;
                }
                break;
            };
            let (name, value) = (name.trim(), value.trim());
            match name {
                "CPUidle driver" => out.text("cpu.idle_driver", value),
                "Latency" => {
                    let latency = state.zip(value.parse::<i64>().ok());
                    deepest = latency.map(|(name, us)| (us, name)).max(deepest);
                }
                _ if value.is_empty() && !name.contains("DISABLED") => state = Some(name),
                _ if value.is_empty() => state = None,
                _ => {}
            }
            taken = at + 1;
        }
        if let Some((us, name)) = deepest {
            out.fact("cpu.idle_latency_us", FactValue::Int(us));
            out.text("cpu.idle_deepest", name);
        }
        taken.max(1)
    }
}

impl Reader for Governor {
    fn name(&self) -> &'static str {
        "governor"
    }

    fn describes(&self) -> &'static str {
        "cat scaling_governor: governor of the CPUs"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.at.command.whole.contains("scaling_governor") && GOVERNORS.contains(&block.first().trim())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let of_cpus = block.lines.iter().map(|line| line.trim());
        let mut all: Vec<&str> = of_cpus.take_while(|line| GOVERNORS.contains(line)).collect();
        let taken = all.len();
        all.sort_unstable();
        all.dedup();
        out.text("cpu.governor", &all.join(","));
        taken.max(1)
    }
}
