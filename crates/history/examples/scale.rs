//! Writes the history of two years of so many hosts, and reads a series of it: size and times. Arguments: a
//! file that is made, and a number of hosts.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use linerate_history::{History, HistoryLimits, fill};

/// Series of a host: throughput, loss, two RTTs, retransmits and CPU cost, sent and received.
const SERIES: u64 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("no file")?);
    let hosts: u64 = arguments.next().as_deref().unwrap_or("1000").parse()?;
    let mut out = std::io::stdout();
    let began = Instant::now();
    let mut progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
    let filled = fill::fill(&path, hosts * SERIES, &mut progress)?;
    writeln!(
        out,
        "{hosts} hosts, {} million slots: {} MB, written in {:.0} s",
        filled.slots / 1_000_000,
        filled.bytes / 1_000_000,
        began.elapsed().as_secs_f64()
    )?;
    let history = History::open(&path, HistoryLimits::default())?;
    let (series, _) = history.list()?.pop().ok_or("no series")?;
    let end_ms = filled.end * 60_000;
    for days in [1, 7, 90, 730] {
        let began = Instant::now();
        let points = history.read(series, end_ms - days * 86_400_000, end_ms)?;
        writeln!(
            out,
            "{days} days: {} points in {:.1} ms",
            points.len(),
            began.elapsed().as_secs_f64() * 1e3
        )?;
    }
    Ok(())
}
