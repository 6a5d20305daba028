//! `iperf -y C` of iperf 2: `time,local,port,remote,port,id,start-end,bytes,bit/s`, one line an interval.
//! Lines come in, a transfer goes out.

use super::iperf_lines::{Figures, Streams};
use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::{Sink, plain_address};
use crate::units::number;

/// The format.
pub(crate) struct Iperf2Csv;

struct Row<'a> {
    local: &'a str,
    local_port: &'a str,
    remote: &'a str,
    remote_port: &'a str,
    figures: Figures,
}

fn row(line: &str) -> Option<Row<'_>> {
    let fields: Vec<&str> = line.trim().split(',').collect();
    let [time, local, local_port, remote, remote_port, id, interval, bytes, bps, rest @ ..] = &fields[..]
    else {
        return None;
    };
    let is_time =
        time.len() >= 14 && time.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'+' || b == b':');
    let (start, end) = interval.split_once('-')?;
    number(bytes)?;
    local_port.parse::<u16>().ok()?;
    remote_port.parse::<u16>().ok()?;
    // UDP adds jitter, lost, all, percent, out of order.
    let datagrams = match rest {
        [_, lost, all, ..] => Some((number(lost)?, number(all)?)),
        _ => None,
    };
    let figures = Figures {
        id: if *id == "-1" { "SUM".to_owned() } else { (*id).to_owned() },
        start: number(start)?,
        end: number(end)?,
        bps: number(bps)?,
        datagrams,
        ..Figures::default()
    };
    (is_time && figures.end >= figures.start).then_some(Row {
        local,
        local_port,
        remote,
        remote_port,
        figures,
    })
}

impl Reader for Iperf2Csv {
    fn name(&self) -> &'static str {
        "iperf2-csv"
    }

    fn describes(&self) -> &'static str {
        "iperf 2 with -y C"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        row(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let rows: Vec<Row<'_>> = block.lines.iter().map_while(|line| row(line)).collect();
        if rows.is_empty() {
            out.unread(0, "not a line of iperf -y C");
        }
        let listens = |row: &Row<'_>| row.local_port == "5001" || block.at.command.has(&["-s", "--server"]);
        let single = || rows.iter().filter(|row| row.figures.id != "SUM");
        let is_mixed = single().any(&listens) && !single().all(&listens);
        for direction in [false, true] {
            // A sum over both directions is of no use.
            let of_direction =
                rows.iter().filter(|row| listens(row) == direction && !(is_mixed && row.figures.id == "SUM"));
            of_one_direction(&of_direction.collect::<Vec<_>>(), direction, block, out);
        }
        rows.len().max(1)
    }
}

/// One transfer of the rows of one direction.
fn of_one_direction(rows: &[&Row<'_>], listens: bool, block: &Block<'_>, out: &mut Sink) {
    let Some(first) = rows.first() else { return };
    let mut streams = Streams::default();
    for row in rows {
        streams.push(row.figures.clone());
    }
    let Some((here, there)) = ends::of_connection(block.at, out, first.local, first.remote) else {
        return out.unread(0, ends::WHO);
    };
    if let Some(mut transfer) = streams.transfer(listens) {
        let local = format!("{}:{}", plain_address(first.local), first.local_port);
        let remote = format!("{}:{}", plain_address(first.remote), first.remote_port);
        transfer.flow = Some(if listens { format!("{remote}>{local}") } else { format!("{local}>{remote}") });
        transfer.ends = if listens { (there, here) } else { (here, there) };
        transfer.udp = transfer.datagrams.is_some();
        transfer.put(block.at, out);
    }
}
