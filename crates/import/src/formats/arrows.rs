//! Lists of measurements as people type them: `wn01 -> wn65    4.71`. Lines come in, tests go out. The unit
//! is that of the line, else of the lines above, else Mbit/s, which is noted.

use linerate_model::kind::TcpPlan;
use linerate_model::sample::{Measurement, Outcome};

use super::table_words::{bare_unit_in, unit_in};
use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::{Raw, Sink};
use crate::units::{number, spoken, spoken_bare, spoken_rate};

/// The format.
pub(crate) struct Arrows;

/// `A -> B  4.71 [unit]`: ends, number, unit in bit/s.
fn row(line: &str) -> Option<(&str, &str, f64, Option<f64>)> {
    let (from, rest) = ["->", "=>", "→"].iter().find_map(|sign| line.split_once(sign))?;
    let mut words = rest.trim_start_matches(['-', '>', '=']).split_whitespace();
    let (from, to) = (from.trim().trim_end_matches(['-', '=']).trim(), words.next()?.trim_end_matches(':'));
    let mut value = words.next()?;
    if [":", "="].contains(&value) {
        value = words.next()?;
    }
    let unit = words.next();
    let fits = is_host(from) && is_host(to) && from != to && unit.is_none_or(|u| !u.starts_with("->"));
    if let Some(bps) = spoken(value) {
        return fits.then_some((from, to, bps, Some(1.0)));
    }
    let unit = unit.and_then(|unit| spoken_rate(unit).or_else(|| spoken_bare(unit)));
    fits.then_some((from, to, number(value)?, unit))
}

impl Reader for Arrows {
    fn name(&self) -> &'static str {
        "arrows"
    }

    fn describes(&self) -> &'static str {
        "lines `A -> B  RATE`"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let lines = || block.at.label.lines().rev();
        let above = lines().find_map(unit_in).or_else(|| lines().find_map(|line| bare_unit_in(line, true)));
        let mut taken = 0;
        for line in block.lines {
            let Some((from, to, value, unit)) = row(line) else { break };
            taken += 1;
            out.used_label |= unit.is_none() && above.is_some();
            if unit.or(above).is_none() {
                out.note(format!(
                    "{}: no unit is named: numbers behind `->` are read as Mbit/s",
                    block.at.file
                ));
            }
            let bps = value * unit.or(above).unwrap_or(1e6);
            let outcome = if bps > 0.0 {
                let measured = Measurement { throughput_bps: Some(bps), ..Measurement::default() };
                Outcome::Measured(Box::new(measured))
            } else {
                Outcome::NothingThrough { reason: "as the list reports".to_owned() }
            };
            out.sample(Raw {
                from: from.to_owned(),
                to: to.to_owned(),
                layer: block.at.layer(),
                // The duration is unknown; ten seconds is the default of the usual tools.
                kind: TcpPlan::single(10_000).into(),
                outcome,
                flow: None,
                start_ms: 0,
                variant: None,
            });
        }
        taken.max(1)
    }
}
