//! A RAID10 of LVM over 36 drives that do 150 requests a second each, written and read without a pause;
//! watched by `linerate disk watch`.

use serde::Deserialize;

use super::{Stage, StageVerdict};
use crate::error::{LabError, Result};
use crate::vm::lab::VmLab;

/// The guest that has the drives.
pub const GUEST: &str = "store";
/// Requests a second of each drive, as in `labs/vm-36.toml`.
pub const OPS_PER_S: f64 = 150.0;

/// As an administrator makes it. Without a first sync: what is measured is the load.
const BUILD: &str = "modprobe dm-raid; modprobe raid10; pvcreate -q /dev/sd*; vgcreate -q -s 1m vg0 /dev/sd*; \
    lvcreate -q -y --type raid10 --mirrors 1 --stripes 18 --stripesize 64k --nosync -l 90%FREE -n home vg0";

/// Four that write and two that read, all over the volume, for as long as the guest runs.
const LOAD: &str = "for n in 0 1 2 3; do (while :; do dd if=/dev/zero of=/dev/vg0/home bs=64k seek=$((n * 1400)) count=1400 \
    oflag=direct conv=notrunc; done) & done; for n in 0 1; do (while :; do dd if=/dev/vg0/home of=/dev/null bs=64k \
    skip=$((n * 2800)) count=2800 iflag=direct; done) & done; wait";

/// See the file's head.
#[derive(Debug)]
pub struct DrivesStage;

impl Stage for DrivesStage {
    fn name(&self) -> &'static str {
        "36 drives"
    }

    fn lab(&self) -> &'static str {
        "vm-36"
    }

    fn build(&self, lab: &VmLab) -> Result<()> {
        let drives = &lab.guest(GUEST)?.drives;
        let all = |ops: f64| drives.iter().try_for_each(|d| d.behave(|b| b.ops_per_s = ops));
        // Building is no part of what is measured.
        all(0.0)?;
        lab.exec(GUEST, &["bash", "-ec", BUILD])?;
        all(OPS_PER_S)?;
        let load = format!("setsid bash -c '{LOAD}' </dev/null >/dev/null 2>&1 &");
        lab.exec(GUEST, &["bash", "-c", &load]).map(drop)
    }

    fn question(&self, lab: &VmLab) -> Vec<String> {
        let inventory = lab.inventory().display().to_string();
        ["disk", "watch", "--inventory", &inventory, "--count", "5", "--interval", "2", "--json"]
            .map(str::to_owned)
            .to_vec()
    }

    fn answer(&self, printed: &str) -> Result<Vec<StageVerdict>> {
        #[derive(Deserialize)]
        struct Last {
            findings: Vec<Finding>,
        }
        #[derive(Deserialize)]
        struct Finding {
            host: String,
            device: String,
            what: String,
        }
        let line = printed.lines().last().unwrap_or_default();
        let last: Last = serde_json::from_str(line).map_err(|e| {
            LabError::Unknown(format!("the last line of disk watch has no findings: {e}: {line:?}"))
        })?;
        let verdict = |Finding { host, device, what }| StageVerdict { host, device, what };
        Ok(last.findings.into_iter().map(verdict).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_last_line_of_the_watch_is_its_answer() {
        let printed = "{\"disks\":[]}\n{\"findings\":[{\"host\":\"store\",\"device\":\"sdh\",\"what\":\"slow-among-equals\",\"sentence\":\"x\"}],\"gaps\":[]}\n";
        let verdicts = DrivesStage.answer(printed).unwrap();
        assert_eq!(verdicts[0].to_string(), "sdh of store is slow-among-equals");
        assert!(DrivesStage.answer("{}\n").is_err() && DrivesStage.answer("").is_err());
    }
}
