//! Faults of DRBD replicas: settings that slow them down, a split brain, sides that differ, a full
//! filesystem.

use super::fault::{DriveTarget, VmFault};
use crate::error::Result;
use crate::vm::lab::VmLab;
use crate::vm::stages::replica::{IN_SYNC, PEER, PRIMARY, Pair, RESOURCE, verdict};
use crate::vm::stages::{Stage, StageVerdict};
use crate::vm::switch::TrafficDirection;
use crate::vm::topology::VmTopology;

/// A fault of [`Pair`]. Both sides have the resource: there is one target.
pub(super) struct OneReplica {
    name: &'static str,
    summary: &'static str,
    what: &'static str,
    inject: fn(&VmLab, f64) -> Result<()>,
    heal: fn(&VmLab) -> Result<()>,
}

/// From the minimum of DRBD upwards.
pub(super) static SMALL_LOG: OneReplica = OneReplica {
    name: "small-log",
    summary: "the activity log of a replica covers 268 to 400 MiB of its 512 instead of all",
    what: "small-activity-log",
    inject: |lab, strength| disk_option(lab, &format!("--al-extents={:.0}", 100.0 - 33.0 * strength)),
    heal: |lab| disk_option(lab, "--al-extents=1237"),
};

/// Recommended by old instructions.
pub(super) static BARRIER: OneReplica = OneReplica {
    name: "barrier",
    summary: "both sides of a replica keep writes in order by barriers",
    what: "barriers",
    inject: |lab, _| disk_option(lab, "--disk-barrier=yes"),
    heal: |lab| disk_option(lab, "--disk-barrier=no"),
};

/// A forgotten daytime limit: copying 64 MiB takes two minutes or more.
pub(super) static THROTTLED: OneReplica = OneReplica {
    name: "throttled",
    summary: "a synchronisation of 64 MiB may take 256 to 512 KiB/s",
    what: "resync-throttled",
    inject: |lab, strength| {
        disk_option(lab, &format!("--c-max-rate={:.0}k --c-min-rate=0", 512.0 - 256.0 * strength))?;
        sh(lab, PEER, "drbdadm disconnect r0")?;
        sh(lab, PRIMARY, "dd if=/dev/urandom of=/mnt/new bs=1M count=64 conv=fsync")?;
        sh(lab, PEER, "drbdadm connect r0")?;
        // It begins slowly, and is at its limit after some seconds.
        let begun = "for i in $(seq 600); do grep -q 'cs:SyncSource' /proc/drbd && exec sleep 6; sleep 0.2; done; exit 1";
        sh(lab, PRIMARY, begun)
    },
    heal: |lab| {
        disk_option(lab, "--c-max-rate=102400k --c-min-rate=0 --c-plan-ahead=0 --resync-rate=102400k")?;
        sh(lab, PRIMARY, IN_SYNC)?;
        disk_option(lab, USUAL_RATES)?;
        sh(lab, PRIMARY, "rm /mnt/new; sync")
    },
};

/// Both were primary while the link was cut, and are connected again.
pub(super) static SPLIT_BRAIN: OneReplica = OneReplica {
    name: "split-brain",
    summary: "both sides of a replica were written to without each other",
    what: "split-brain",
    inject: |lab, strength| {
        let link = lab.link(PEER)?.clone();
        link.update(TrafficDirection::Both, |s| s.loss_ppm = 1_000_000);
        let alone =
            "for i in $(seq 600); do grep -q 'cs:WFConnection' /proc/drbd && exit 0; sleep 0.2; done; exit 1";
        sh(lab, PEER, alone)?;
        sh(lab, PRIMARY, alone)?;
        sh(lab, PRIMARY, "echo own >/mnt/own; sync")?;
        let kib = 4.0 + 1000.0 * strength;
        sh(
            lab,
            PEER,
            &format!(
                "drbdadm primary r0; dd if=/dev/urandom of=/dev/drbd0 bs=1k seek=150000 count={kib:.0} conv=fsync; drbdadm secondary r0"
            ),
        )?;
        link.update(TrafficDirection::Both, |s| s.loss_ppm = 0);
        let met = "for i in $(seq 600); do dmesg | grep -q 'Split-Brain detected' && grep -q 'cs:StandAlone' /proc/drbd && exit 0; \
            sleep 0.2; done; exit 1";
        sh(lab, PRIMARY, met)
    },
    heal: |lab| {
        sh(lab, PRIMARY, "dmesg -c >/dev/null")?;
        sh(lab, PEER, "drbdadm disconnect r0 || true; drbdadm connect --discard-my-data r0")?;
        sh(lab, PRIMARY, &format!("drbdadm connect r0 || true; {IN_SYNC}"))
    },
};

/// The nightly comparison found differences, and no one noticed.
pub(super) static DIFFERS: OneReplica = OneReplica {
    name: "differs",
    summary: "a comparison found 64 KiB to 1 MiB that differ, while both sides report UpToDate",
    what: "out-of-sync",
    inject: |lab, strength| {
        let count = 16.0 + 240.0 * strength;
        let damage = format!(
            "drbdadm down r0; dd if=/dev/urandom of=/dev/sda bs=4k seek=50000 count={count:.0} conv=notrunc,fsync; drbdadm up r0"
        );
        sh(lab, PEER, &damage)?;
        sh(lab, PRIMARY, IN_SYNC)?;
        // A comparison yields to other I/O as a synchronisation does; a night is longer than a test.
        disk_option(lab, "--c-plan-ahead=0 --resync-rate=204800k --c-min-rate=0")?;
        let compared = "drbdadm verify r0; for i in $(seq 1200); do grep -q 'cs:Verify' /proc/drbd || exit 0; sleep 0.2; done; exit 1";
        sh(lab, PRIMARY, compared)?;
        disk_option(lab, USUAL_RATES)
    },
    heal: |lab| {
        sh(lab, PEER, "drbdadm disconnect r0; drbdadm connect r0")?;
        sh(lab, PRIMARY, IN_SYNC)
    },
};

/// The replica is healthy, and no program can write to it.
pub(super) static FULL: OneReplica = OneReplica {
    name: "full",
    summary: "the filesystem on a replica is full",
    what: "full",
    inject: |lab, _| {
        // Until ENOSPC: dd has to fail.
        sh(
            lab,
            PRIMARY,
            "busybox dd if=/dev/zero of=/mnt/fill bs=64k 2>/dev/null || true; sync; test -s /mnt/fill",
        )
    },
    heal: |lab| sh(lab, PRIMARY, &format!("rm /mnt/fill; sync; {IN_SYNC}")),
};

/// Defaults of DRBD (drbd.conf-8.4(5)).
const USUAL_RATES: &str = "--c-plan-ahead=20 --resync-rate=250k --c-min-rate=250k";

fn sh(lab: &VmLab, guest: &str, lines: &str) -> Result<()> {
    lab.exec(guest, &["bash", "-ec", lines]).map(drop)
}

/// Sets options of the device on both sides while it runs.
fn disk_option(lab: &VmLab, options: &str) -> Result<()> {
    [PRIMARY, PEER]
        .iter()
        .try_for_each(|guest| sh(lab, guest, &format!("drbdsetup disk-options 0 {options}")))
}

impl VmFault for OneReplica {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn stage(&self) -> &'static dyn Stage {
        &Pair
    }

    fn targets(&self, _: &VmTopology) -> Vec<DriveTarget> {
        vec![DriveTarget { guest: PRIMARY.to_owned(), drive: RESOURCE.to_owned() }]
    }

    fn inject(&self, lab: &VmLab, _: &DriveTarget, strength: f64) -> Result<()> {
        (self.inject)(lab, strength)
    }

    fn heal(&self, lab: &VmLab, _: &DriveTarget) -> Result<()> {
        (self.heal)(lab)
    }

    fn truth(&self, _: &VmTopology, _: &DriveTarget) -> Result<StageVerdict> {
        Ok(verdict(RESOURCE, self.what))
    }
}
