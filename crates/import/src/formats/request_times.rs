//! Bare seconds, one for each request, as a loop around `curl -w '%{time_namelookup}\n'` prints them: how
//! many requests wait for seconds while the others do not. Lines come in, facts `request.<part>.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct RequestTimes;

/// Fewer lines are no series.
const LEAST: usize = 4;
/// Decimals of the times of curl.
const DECIMALS: std::ops::RangeInclusive<usize> = 3..=9;
/// Longest time that is one, seconds.
const LONGEST_S: f64 = 3600.0;
/// A time from which on something waited for a time-out, seconds: those of lost packets are 1 s and more.
const SLOW_S: f64 = 0.95;
/// The shortest of the others is a fraction of it.
const APART: f64 = 8.0;

/// Lines above in which the command may stand without a prompt.
const AROUND: usize = 12;

/// Parts of a request, by the names that curl gives their times.
const PARTS: [(&str, &str); 3] =
    [("namelookup", "lookup"), ("appconnect", "handshake"), ("starttransfer", "answer")];

/// `0.022099`
fn seconds(line: &str) -> Option<f64> {
    let text = line.trim();
    let (whole, part) = text.split_once(['.', ','])?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let fits = digits(whole) && digits(part) && DECIMALS.contains(&part.len());
    fits.then(|| text.replace(',', ".").parse().ok())?.filter(|s| (0.0..=LONGEST_S).contains(s))
}

impl Reader for RequestTimes {
    fn name(&self) -> &'static str {
        "request-times"
    }

    fn describes(&self) -> &'static str {
        "times of requests, one for each line (a loop around curl -w)"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        (0..LEAST).all(|at| seconds(block.line(at)).is_some())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let times: Vec<f64> = block.lines.iter().map_while(|line| seconds(line)).collect();
        if times.is_empty() {
            return 1;
        }
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let slow: Vec<f64> = times.iter().copied().filter(|s| *s >= SLOW_S && *s >= APART * least).collect();
        let around = || out.prose.iter().rev().take(AROUND).chain([&block.at.command.whole, &block.at.label]);
        let part = PARTS.iter().find(|(word, _)| around().any(|line| line.contains(word)));
        let part = part.map_or("whole", |(_, part)| *part);
        let percent = 100.0 * slow.len() as f64 / times.len() as f64;
        out.fact(format!("request.{part}.count"), FactValue::Int(times.len() as i64));
        out.fact(format!("request.{part}.slow_percent"), FactValue::Float((percent * 10.0).round() / 10.0));
        if !slow.is_empty() {
            let mean_s = slow.iter().sum::<f64>() / slow.len() as f64;
            out.fact(format!("request.{part}.slow_ms"), FactValue::Int((mean_s * 1e3).round() as i64));
        }
        times.len()
    }
}
