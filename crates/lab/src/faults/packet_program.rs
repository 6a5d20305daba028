//! An eBPF program at the NIC of a host that drops by chance: before the network stack (XDP), or behind it
//! (a filter of `tc` without a classifier).

use std::sync::Arc;

use linerate_model::finding::Direction;
use linerate_sys::bpf::{BpfProgram, ProgramKind, TrafficHook};
use linerate_sys::{packet_program, rtnetlink};

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::cluster::Cluster;
use crate::damage::{ClusterMachine, Damage};
use crate::error::{LabError, Result};

pub(super) struct DroppingProgram {
    about: FaultInfo,
    kind: ProgramKind,
}

pub(super) static XDP: DroppingProgram = DroppingProgram {
    about: FaultInfo::host(
        "xdp-drops",
        "xdp-program-drops",
        "an XDP program at a host's NIC drops 1-2 % of what it receives",
        &[Direction::Rx],
    )
    .root_only(),
    kind: ProgramKind::Xdp,
};

pub(super) static FILTER: DroppingProgram = DroppingProgram {
    about: FaultInfo::host(
        "filter-drops",
        "filter-drops",
        "a filter program at a host's NIC drops 1-2 % of what it sends",
        &[Direction::Tx],
    )
    .root_only(),
    kind: ProgramKind::Traffic,
};

/// Part of 65 536 packets that is dropped at least, and how much more at the highest strength: 1 % each.
const DROPPED: f64 = 655.0;

impl DroppingProgram {
    /// Attaches the program to the NIC, or detaches it.
    fn switch(
        &self,
        cluster: &Cluster,
        machine: ClusterMachine,
        program: &BpfProgram,
        on: bool,
    ) -> Result<()> {
        let work = || -> std::io::Result<()> {
            let links = rtnetlink::links().map_err(std::io::Error::other)?;
            let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
            let link = links.iter().find(|l| l.name == "eth0").ok_or_else(missing)?.index;
            match (self.kind == ProgramKind::Xdp, on) {
                (true, true) => packet_program::attach_xdp(link, program).map_err(std::io::Error::other),
                (true, false) => packet_program::detach_xdp(link).map_err(std::io::Error::other),
                (false, true) => program.attach(link, TrafficHook::Egress),
                (false, false) => program.detach(link, TrafficHook::Egress),
            }
        };
        machine.of(cluster).run(work)?.map_err(LabError::at("a program at eth0"))
    }
}

impl Fault for DroppingProgram {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn unavailable(&self) -> Option<String> {
        if self.kind == ProgramKind::Traffic
            && let Err(error) = linerate_sys::bpf::programs_at(1, TrafficHook::Egress)
        {
            return Some(format!("no programs without a classifier (since Linux 6.6): {error}"));
        }
        let tried = packet_program::dropping(self.kind, 0, "");
        tried.err().map(|error| format!("this kernel takes no program: {error}"))
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (_, machine) = damage.host(target.host()?)?;
        let share = (DROPPED * (1.0 + strength)) as u16;
        let program = packet_program::dropping(self.kind, share, "rate_guard");
        let program = Arc::new(program.map_err(LabError::at("a program that drops"))?);
        let kept = Arc::clone(&program);
        let of = if self.kind == ProgramKind::Xdp { &XDP } else { &FILTER };
        damage.step(|c| of.switch(c, machine, &program, true), move |c| of.switch(c, machine, &kept, false))
    }
}
