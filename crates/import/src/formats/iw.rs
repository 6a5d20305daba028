//! `iw dev DEV station dump`, `iw dev DEV link` and `get power_save`: rates, signal and retries of a radio
//! link. Lines come in, facts `nic.<device>.wifi.…` go out. Of several stations the counts are added, and the
//! worst signal and rate count.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Iw;

/// A weaker signal than this leaves only the slow modulations, dBm.
const WEAK_DBM: f64 = -75.0;
/// A slower link than this is none of a station in sight, Mbit/s.
const SLOW_MBIT: f64 = 30.0;
/// Counts of packets, by the name of the fact.
const COUNTS: [(&str, &str); 3] =
    [("tx packets", "tx_packets"), ("tx retries", "tx_retries"), ("tx failed", "tx_failed")];

/// `Station 02:00:00:00:00:07 (on wlan0)`, `Connected to 02:00:00:00:00:07 (on wlan0)`: the device.
fn station(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("Station ").or_else(|| line.strip_prefix("Connected to "))?;
    let device = rest.split_once(" (on ")?.1.strip_suffix(')')?;
    is_device(device).then_some(device)
}

fn is_device(name: &str) -> bool {
    (1..=15).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// `Power save: on`
fn power_save(line: &str) -> Option<&str> {
    line.trim().strip_prefix("Power save: ").filter(|state| ["on", "off"].contains(state))
}

/// What is known of the stations of one device.
#[derive(Default)]
struct Stations {
    counts: [Option<i64>; COUNTS.len()],
    signal_dbm: Option<f64>,
    bitrate_mbit: Option<f64>,
}

impl Stations {
    fn line(&mut self, name: &str, value: &str) {
        let number = value.split_whitespace().next().unwrap_or_default();
        if let Some(at) = COUNTS.iter().position(|(known, _)| *known == name) {
            if let Ok(count) = number.parse::<i64>() {
                self.counts[at] = Some(self.counts[at].unwrap_or(0).saturating_add(count.max(0)));
            }
        } else if name == "signal" {
            let dbm = number.parse::<f64>().ok().filter(|dbm| (-120.0..0.0).contains(dbm));
            self.signal_dbm = [self.signal_dbm, dbm].into_iter().flatten().reduce(f64::min);
        } else if name == "tx bitrate" {
            self.bitrate_mbit = [self.bitrate_mbit, leading(number)].into_iter().flatten().reduce(f64::min);
        }
    }

    fn put(&self, device: &str, out: &mut Sink) {
        let nic = key(device);
        for ((_, fact), count) in COUNTS.iter().zip(self.counts) {
            if let Some(count) = count {
                out.counter(format!("{nic}.wifi.{fact}"), count);
            }
        }
        if let Some(dbm) = self.signal_dbm {
            out.fact(format!("{nic}.wifi.signal_dbm"), FactValue::Int(dbm.round() as i64));
            if dbm < WEAK_DBM {
                out.fact(format!("{nic}.wifi.weak_dbm"), FactValue::Int(-dbm.round() as i64));
            }
        }
        if let Some(mbit) = self.bitrate_mbit {
            out.fact(format!("{nic}.wifi.bitrate_mbit"), FactValue::Float(mbit));
            if (1.0..SLOW_MBIT).contains(&mbit) {
                out.fact(format!("{nic}.wifi.slow_mbit"), FactValue::Float(mbit));
            }
        }
    }
}

impl Reader for Iw {
    fn name(&self) -> &'static str {
        "iw"
    }

    fn describes(&self) -> &'static str {
        "iw dev DEV station dump, link: rates, signal and retries of a radio link"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        station(block.first()).is_some() || power_save(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if let Some(state) = power_save(block.first()) {
            let asked = block.at.command.words.iter().skip_while(|word| *word != "dev").nth(1);
            match asked.filter(|name| is_device(name)) {
                Some(device) => out.text(format!("{}.wifi.power_save", key(device)), state),
                None => out.unread(0, "power saving without its device: keep the command"),
            }
            return 1;
        }
        let mut of_device = (String::new(), Stations::default());
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(device) = station(line) {
                if of_device.0 != device {
                    let before = std::mem::replace(&mut of_device, (device.to_owned(), Stations::default()));
                    before.1.put(&before.0, out);
                }
            } else if let Some((name, value)) =
                line.trim().split_once(':').filter(|_| line.starts_with([' ', '\t']))
            {
                of_device.1.line(name.trim(), value.trim());
            } else {
                break;
            }
            taken = at + 1;
        }
        of_device.1.put(&of_device.0, out);
        taken.max(1)
    }
}
