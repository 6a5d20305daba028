//! Two guests with a resource of DRBD, a filesystem on it and a program that writes now and then; asked with
//! `linerate drbd status`.

use serde::Deserialize;

use super::{Stage, StageVerdict};
use crate::error::{LabError, Result};
use crate::vm::lab::VmLab;

/// The guest that writes, and the one that it replicates to.
pub const PRIMARY: &str = "one";
/// See [`PRIMARY`].
pub const PEER: &str = "two";
/// The resource.
pub const RESOURCE: &str = "r0";

/// As an administrator writes it, with DRBD's defaults.
const FILE: &str = "resource r0 { device /dev/drbd0; meta-disk internal; disk /dev/sda; \
    net { protocol C; ping-int 2; timeout 20; verify-alg crc32c; } \
    on one { address 10.79.0.1:7788; } on two { address 10.79.0.2:7788; } }";

/// Shell that waits until both sides are connected, idle and in sync. Healing ends with it.
pub const IN_SYNC: &str = "for i in $(seq 900); do drbdsetup events2 --now r0 | grep -q 'peer-disk:UpToDate' && \
    grep -q 'cs:Connected .* ds:UpToDate/UpToDate' /proc/drbd && exit 0; sleep 0.2; done; cat /proc/drbd; exit 1";

/// Small synchronous writes in a loop.
const LOAD: &str =
    "while :; do dd if=/dev/zero of=/mnt/log bs=64k count=4 conv=notrunc,fsync; sleep 0.5; done";

/// See the file's head.
#[derive(Debug)]
pub struct Pair;

impl Stage for Pair {
    fn name(&self) -> &'static str {
        "a replica"
    }

    fn lab(&self) -> &'static str {
        "vm-replica"
    }

    fn build(&self, lab: &VmLab) -> Result<()> {
        for guest in [PRIMARY, PEER] {
            let lines = format!(
                "echo '{FILE}' >/etc/drbd.d/r0.res; modprobe drbd; modprobe ext4; drbdadm create-md --force r0; drbdadm up r0"
            );
            lab.exec(guest, &["bash", "-ec", &lines])?;
        }
        // Both sides are empty, so that they hold the same already; a first synchronisation is no part of
        // what is judged.
        let met =
            "for i in $(seq 900); do grep -q 'cs:Connected' /proc/drbd && exit 0; sleep 0.2; done; exit 1";
        lab.exec(PRIMARY, &["bash", "-c", met])?;
        lab.exec(PRIMARY, &["drbdadm", "--", "--clear-bitmap", "new-current-uuid", "r0/0"])?;
        lab.exec(PRIMARY, &["bash", "-c", IN_SYNC])?;
        lab.exec(
            PRIMARY,
            &["bash", "-ec", "drbdadm primary r0; mkfs.ext4 -q /dev/drbd0; mount /dev/drbd0 /mnt"],
        )?;
        let load = format!("setsid bash -c '{LOAD}' </dev/null >/dev/null 2>&1 &");
        lab.exec(PRIMARY, &["bash", "-c", &load]).map(drop)
    }

    fn question(&self, lab: &VmLab) -> Vec<String> {
        let inventory = lab.inventory().display().to_string();
        ["drbd", "status", "--inventory", &inventory, "--json"].map(str::to_owned).to_vec()
    }

    fn answer(&self, printed: &str) -> Result<Vec<StageVerdict>> {
        #[derive(Deserialize)]
        struct Last {
            alarms: Vec<Alarm>,
        }
        #[derive(Deserialize)]
        struct Alarm {
            resource: String,
            what: String,
        }
        let line = printed.lines().last().unwrap_or_default();
        let last: Last = serde_json::from_str(line).map_err(|e| {
            LabError::Unknown(format!("the last line of drbd status has no alarms: {e}: {line:?}"))
        })?;
        Ok(last.alarms.into_iter().map(|Alarm { resource, what }| verdict(&resource, &what)).collect())
    }
}

/// An alarm is one of a resource, which both sides share.
#[must_use]
pub fn verdict(resource: &str, what: &str) -> StageVerdict {
    StageVerdict { host: "both".to_owned(), device: resource.to_owned(), what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_alarms_of_the_status_are_its_answer() {
        let printed = "{\"replicas\":[],\"alarms\":[{\"resource\":\"r0\",\"what\":\"split-brain\",\"sentence\":\"x\",\"advice\":\"y\"}]}\n";
        assert_eq!(Pair.answer(printed).unwrap()[0].to_string(), "r0 of both is split-brain");
        assert!(Pair.answer("{}\n").is_err() && Pair.answer("").is_err());
    }
}
