//! `mpstat -P ALL`: how each CPU spends its time. Rows come in, facts `cpu.<n>.soft_percent`,
//! `.steal_percent` and the like go out, and those of the busiest CPU. The average counts where there is
//! one.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct CpuUse;

/// Columns that are kept.
const COLUMNS: [(&str, &str); 7] = [
    ("%usr", "user_percent"),
    ("%sys", "system_percent"),
    ("%iowait", "iowait_percent"),
    ("%irq", "irq_percent"),
    ("%soft", "soft_percent"),
    ("%steal", "steal_percent"),
    ("%idle", "idle_percent"),
];

/// Names of the columns from `CPU` on.
fn heading(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "CPU");
    words.next()?;
    let columns: Vec<&str> = words.collect();
    (columns.contains(&"%idle") && columns.contains(&"%soft")).then_some(columns)
}

/// `10:00:01 AM    3    0.00 …`: the CPU and its values.
fn row<'l>(line: &'l str, columns: &[&str]) -> Option<(&'l str, Vec<f64>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (head, values) = words.split_at_checked(words.len().checked_sub(columns.len())?)?;
    let cpu = head.last().filter(|cpu| **cpu == "all" || cpu.bytes().all(|b| b.is_ascii_digit()))?;
    let values: Option<Vec<f64>> = values.iter().map(|value| number(&value.replace(',', "."))).collect();
    Some((cpu, values?))
}

impl Reader for CpuUse {
    fn name(&self) -> &'static str {
        "mpstat"
    }

    fn describes(&self) -> &'static str {
        "mpstat -P ALL: how each CPU spends its time"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let is_title = block.first().starts_with("Linux ") && block.first().contains(" CPU)");
        heading(block.first()).is_some() || is_title && (1..3).any(|at| heading(block.line(at)).is_some())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut columns: Vec<&str> = Vec::new();
        let mut taken = 0;
        let mut rows: Vec<(&str, Vec<f64>)> = Vec::new();
        let mut host = None;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(found) = heading(line) {
                // A later report replaces an earlier one; the average comes last.
                (columns, rows) = (found, Vec::new());
            } else if let Some(found) = row(line, &columns).filter(|_| !columns.is_empty()) {
                rows.push(found);
            } else if let Some((_, rest)) = line.strip_prefix("Linux ").and_then(|l| l.split_once(" (")) {
                host = rest.split(')').next();
            } else if !line.trim().is_empty() {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        if let Some(host) = host {
            out.speaks_of(block.at, host);
        }
        put(&columns, &rows, out);
        taken.max(1)
    }
}

fn put(columns: &[&str], rows: &[(&str, Vec<f64>)], out: &mut Sink) {
    let at = |column: &str| columns.iter().position(|c| *c == column);
    for (cpu, values) in rows {
        for (column, fact) in COLUMNS {
            let name = if *cpu == "all" { "all" } else { cpu };
            if let Some(value) = at(column).and_then(|at| values.get(at)) {
                out.fact(format!("cpu.{name}.{fact}"), FactValue::Float(*value));
            }
        }
    }
    let idle = at("%idle");
    let single = rows.iter().filter(|(cpu, _)| *cpu != "all");
    let least = single
        .filter_map(|(cpu, values)| Some((*cpu, *values.get(idle?)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((cpu, idle)) = least {
        out.text("cpu.busiest", cpu);
        out.fact("cpu.busiest_percent", FactValue::Float(((100.0 - idle) * 100.0).round() / 100.0));
    }
}
