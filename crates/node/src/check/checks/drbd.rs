//! `drbd`: a resource of DRBD without its disk or its peer.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_model::step::{HostQuery, QueryEffect};
use linerate_sys::root::{ReadError, Root};

use linerate_facts::run;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Drbd;

/// The kernel has the module.
const MODULE: &str = "/sys/module/drbd";
/// The program asks the kernel and ends; the parent of this child waits less.
const LIMIT: Duration = Duration::from_secs(5);
const GOOD_DISK: &str = "UpToDate";
const GOOD_PEER: &str = "Connected";

static ABOUT: About = About {
    id: "drbd",
    title: "a resource of DRBD is without its disk, without its peer, or behind",
    reads: "drbdsetup events2 --now, where the module is loaded",
    severity: Severity::Warn,
    rule: TWICE,
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

fn printed(root: &Root) -> Result<String, String> {
    let asked = || {
        let QueryEffect::Run(argv) = HostQuery::DrbdState.act() else { return Err(ReadError::Missing) };
        match run::run(&argv, LIMIT, run::Until::Limit) {
            Ok(Some(seen)) if seen.is_good() => Ok(seen.out),
            Ok(Some(seen)) => Err(ReadError::Other(format!("{}: {}", argv.join(" "), seen.err.trim()))),
            Ok(None) => Err(ReadError::Other(format!("{}: no answer", argv.join(" ")))),
            Err(error) => Err(ReadError::Other(format!("{}: {error}", argv.join(" ")))),
        }
    };
    root.answer("drbd_state", asked).map_err(|error| error.to_string())
}

/// Rows by resource, the worst state of its devices and connections each.
fn rows(text: &str) -> Vec<Row> {
    let mut found: BTreeMap<&str, Row> = BTreeMap::new();
    for line in text.lines() {
        let Some(words) = line.split("exists ").nth(1) else { continue };
        let field = |name: &str| {
            words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default()
        };
        let name = field("name");
        if name.is_empty() {
            continue;
        }
        let row = found.entry(name).or_insert_with(|| Row::new(name));
        let (word, state, good) = match words.split(' ').next() {
            Some("device") => ("disk", field("disk"), GOOD_DISK),
            Some("connection") => ("peer", field("connection"), GOOD_PEER),
            _ => continue,
        };
        // A client of DRBD 9 has no disk by design.
        let is_meant = field("client") == "yes";
        if row.text(word).is_empty() || (state != good && !is_meant) {
            *row = row.clone().word(word, state);
        }
    }
    found.into_values().collect()
}

impl Check for Drbd {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, _settings: &Settings) -> Vec<String> {
        // Without the module no program is started.
        if root.list(MODULE).is_ok() { vec![String::new()] } else { Vec::new() }
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        Ok(rows(&printed(reading.root)?).into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        let (disk, peer) = (row.text("disk"), row.text("peer"));
        match (disk, peer) {
            ("Diskless" | "Failed" | "Detaching", _) => {
                Observation::bad(row, format!("disk {disk}")).because("drbd-no-disk")
            }
            (_, "StandAlone") => {
                Observation::bad(row, "StandAlone: it does not connect").because("drbd-apart")
            }
            (_, peer) if !peer.is_empty() && peer != GOOD_PEER => {
                Observation::bad(row, format!("peer {peer}"))
            }
            (disk, _) if !disk.is_empty() && disk != GOOD_DISK => {
                Observation::bad(row, format!("disk {disk}"))
            }
            _ => Observation::good(row, "connected, up to date"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_of_a_resource_stands() {
        let text = "2026-11-21T05:50:57.650483+00:00 exists resource name:r0 role:Primary suspended:no\n\
            2026-11-21T05:50:57.650483+00:00 exists connection name:r0 peer-node-id:1 conn-name:n2 connection:Connected role:Secondary\n\
            exists connection name:r0 peer-node-id:2 conn-name:n3 connection:Connecting role:Unknown\n\
            exists device name:r0 volume:0 minor:0 disk:UpToDate client:no\n\
            exists resource name:r1 role:Secondary\nexists device name:r1 volume:0 minor:1 disk:Diskless client:no\n\
            exists connection name:r2 connection:StandAlone\nexists device name:r2 minor:3 disk:UpToDate\n\
            exists device name:r3 minor:4 disk:UpToDate\nexists -\n";
        let now = Moment { up_s: 1, unix_s: 1 };
        let judge = |row: &Row| Drbd.judge(row, &mut Past::default(), now, &Settings::default()).text;
        let seen: Vec<String> = rows(text).iter().map(judge).collect();
        let apart = "StandAlone: it does not connect";
        assert_eq!(seen, ["peer Connecting", "disk Diskless", apart, "connected, up to date"]);
        assert!(rows("garbage exists name: \nexists device\n").is_empty());
    }
}
