//! `/proc/interrupts`: counts by CPU, with the heading or without, as `grep NIC /proc/interrupts` prints it.
//! The table comes in; counters by number, for devices the names of their interrupts, and which share of them
//! the busiest CPU had go out.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Interrupts;

/// Number of CPUs in the heading.
fn heading(line: &str) -> Option<usize> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_cpu = |w: &&str| w.strip_prefix("CPU").is_some_and(|n| n.parse::<u32>().is_ok());
    (!words.is_empty() && words.iter().all(is_cpu)).then_some(words.len())
}

/// Fewest interrupts that show how a device spreads them.
const COUNT_MIN: i64 = 1_000_000;

/// One line: number or short name, counts by CPU, rest of the line.
struct Row<'l> {
    id: &'l str,
    counts: Vec<i64>,
    what: &'l str,
}

impl<'l> Row<'l> {
    fn of(line: &'l str, cpus: usize) -> Option<Self> {
        let (id, rest) = line.split_once(':')?;
        let id = id.trim();
        let known = !id.is_empty() && id.len() <= 8 && id.bytes().all(|b| b.is_ascii_alphanumeric());
        let mut counts = Vec::new();
        let mut what = rest.trim_start();
        while counts.len() < cpus {
            let word = what.split_whitespace().next().unwrap_or_default();
            let Ok(count) = word.parse::<i64>() else { break };
            counts.push(count);
            what = what[word.len()..].trim_start();
        }
        // ERR and MIS have one count only.
        (known && !counts.is_empty()).then_some(Self { id, counts, what })
    }

    /// A line without a heading: a number, counts, a chip and a device.
    fn alone(line: &'l str) -> Option<Self> {
        let row = Self::of(line, CPUS_MAX)?;
        let chips = ["MSI", "IO-APIC", "IR-", "ITS-", "GIC", "xen-", "PCI-"];
        let is_device = chips.iter().any(|chip| row.what.contains(chip)) && row.nic().is_some();
        (row.id.parse::<u32>().is_ok() && is_device).then_some(row)
    }

    /// The device of an interrupt such as `em1-TxRx-3`, `eth0-rx-0`, `mlx5_comp3@pci:0000:3b:00.0`, where its
    /// name begins with that of a device.
    fn nic(&self) -> Option<(&'l str, &'l str)> {
        let name = self.what.split_whitespace().next_back()?;
        let nic = name.split(['-', '@', ':']).next()?;
        let is_nic = ["eth", "en", "em", "ib", "p"].iter().any(|start| {
            nic.strip_prefix(start)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "opsx".contains(c)))
        });
        (is_nic && nic.len() < name.len() && nic.bytes().any(|b| b.is_ascii_digit())).then_some((nic, name))
    }

    fn sum(&self) -> i64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Most CPUs of a line without a heading.
const CPUS_MAX: usize = 4096;

/// What all queues of a device had: their number, and counts by CPU.
#[derive(Default)]
struct Queues {
    count: i64,
    by_cpu: Vec<i64>,
}

impl Queues {
    fn add(&mut self, counts: &[i64]) {
        self.count += 1;
        self.by_cpu.resize(self.by_cpu.len().max(counts.len()), 0);
        for (all, count) in self.by_cpu.iter_mut().zip(counts) {
            *all = all.saturating_add(*count);
        }
    }

    /// How they are spread; only several queues on several CPUs can be.
    fn put(&self, nic: &str, out: &mut Sink) {
        let sum = self.by_cpu.iter().fold(0_i64, |sum, count| sum.saturating_add(*count));
        let busiest = self.by_cpu.iter().copied().max().unwrap_or_default();
        if self.count < 2 || self.by_cpu.len() < 2 || sum < COUNT_MIN {
            return;
        }
        let percent = (1000.0 * busiest as f64 / sum as f64).round() / 10.0;
        out.fact(format!("{nic}.queues.busiest_cpu_percent"), FactValue::Float(percent));
    }
}

impl Reader for Interrupts {
    fn name(&self) -> &'static str {
        "interrupts"
    }

    fn describes(&self) -> &'static str {
        "/proc/interrupts"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        heading(block.first()).is_some_and(|cpus| (1..8).any(|n| Row::of(block.line(n), cpus).is_some()))
            || Row::alone(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let cpus = heading(block.first());
        let row = |line| cpus.map_or_else(|| Row::alone(line), |cpus| Row::of(line, cpus));
        let mut taken = usize::from(cpus.is_some());
        let mut devices: BTreeMap<String, Queues> = BTreeMap::new();
        for (at, line) in block.lines.iter().enumerate().skip(taken) {
            let Some(row) = row(line) else {
                if line.trim().is_empty() {
                    continue;
                }
                break;
            };
            taken = at + 1;
            // The kernel's own (LOC, RES) are no interrupts of devices.
            let Ok(number) = row.id.parse::<u32>() else { continue };
            out.counter(format!("irq.{number}"), row.sum());
            if let Some((nic, name)) = row.nic() {
                let nic = super::ethtool::key(nic);
                out.text(format!("{nic}.irq.{number}.name"), name);
                devices.entry(nic).or_default().add(&row.counts);
            }
        }
        for (nic, queues) in &devices {
            queues.put(nic, out);
        }
        taken.max(1)
    }
}
