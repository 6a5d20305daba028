//! eBPF programs that packets of a device meet outside the filters of `tc`: XDP, and TCX since Linux 6.6.
//!
//! In: devices of the network namespace of the calling thread. Out: what is attached there, as plain types,
//! which are also what a recorded tree keeps (`packet_programs.json`). Attaching is for the lab.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use serde::{Deserialize, Serialize};

use crate::bpf::{self, BpfProgram, TrafficHook};
use crate::filter::FilterPoint;
use crate::netlink::{NetlinkError, Payload, Socket};
use crate::rtnetlink::NetDevice;

const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_FLAGS: u16 = 3;
/// `XDP_FLAGS_SKB_MODE`: in the network stack, which needs nothing of the driver.
const GENERIC: u32 = 2;
/// Most programs that are kept.
pub const PROGRAMS_MAX: usize = 1024;

/// A program at a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketProgram {
    /// Index of the device.
    pub link: u32,
    /// Where packets meet it; `None` for XDP.
    #[serde(default)]
    pub point: Option<FilterPoint>,
    /// Its name and a hash of its instructions; absent where they may not be read.
    #[serde(default)]
    pub name: Option<String>,
    /// See [`Self::name`].
    #[serde(default)]
    pub tag: Option<String>,
}

/// Programs of these devices, and why those of TCX are not known, where they are not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketPrograms {
    /// The programs, the first [`PROGRAMS_MAX`].
    pub programs: Vec<PacketProgram>,
    /// The reason.
    #[serde(default)]
    pub unseen: Option<String>,
}

fn named(link: u32, point: Option<FilterPoint>, number: Option<u32>) -> PacketProgram {
    let known = number.and_then(|number| bpf::name_of(number).ok());
    let (name, tag) = known.map(|known| (known.name, known.tag)).unzip();
    PacketProgram { link, point, name, tag }
}

/// What is attached to the devices.
#[must_use]
pub fn attached(links: &[NetDevice]) -> PacketPrograms {
    let mut found = PacketPrograms::default();
    for link in links {
        if let Some(xdp) = link.xdp {
            found.programs.push(named(link.index, None, xdp.program));
        }
        let hooks =
            [(FilterPoint::Ingress, TrafficHook::Ingress), (FilterPoint::Egress, TrafficHook::Egress)];
        for (point, hook) in hooks {
            if found.unseen.is_some() {
                continue;
            }
            match bpf::programs_at(link.index, hook) {
                Ok(numbers) => {
                    let programs = numbers.into_iter().map(|n| named(link.index, Some(point), Some(n)));
                    found.programs.extend(programs);
                }
                Err(error) => match error.raw_os_error() {
                    // The device is gone, or this kernel has no such hooks: then nothing is attached.
                    Some(libc::ENODEV | libc::EINVAL | libc::ENOSYS) => {}
                    _ => found.unseen = Some(NetlinkError::from(error).to_string()),
                },
            }
        }
    }
    found.programs.truncate(PROGRAMS_MAX);
    found
}

/// Has everything that a device receives meet a program, in the network stack.
///
/// # Errors
/// No right, or another program is there.
pub fn attach_xdp(link: u32, program: &BpfProgram) -> Result<(), NetlinkError> {
    set_xdp(link, program.as_fd().as_raw_fd())
}

/// Undoes [`attach_xdp`].
///
/// # Errors
/// No right, or the device is gone.
pub fn detach_xdp(link: u32) -> Result<(), NetlinkError> {
    set_xdp(link, -1)
}

fn set_xdp(link: u32, descriptor: i32) -> Result<(), NetlinkError> {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    let inner = Payload::default().bytes(IFLA_XDP_FD, &descriptor.to_ne_bytes()).u32(IFLA_XDP_FLAGS, GENERIC);
    let payload = Payload::new(&header).nest(libc::IFLA_XDP, &inner);
    Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_NEWLINK, 0, &payload, |_| {})
}

/// A program that drops packets by chance, as many of 65 536 as asked for, and lets the rest pass.
///
/// # Errors
/// No right, or a kernel that does not take it.
pub fn dropping(kind: bpf::ProgramKind, of_65536: u16, name: &str) -> io::Result<BpfProgram> {
    use crate::bpf_code::{By, Call, Code, Register, Sum, When};
    // `XDP_DROP`, `XDP_PASS`; `TC_ACT_SHOT`, `TCX_NEXT`.
    let (drop, pass) = if kind == bpf::ProgramKind::Xdp { (1, 2) } else { (2, -1) };
    let mut code = Code::default();
    let passes = code.label();
    code.call(Call::Random);
    code.sum(Sum::And, Register::R0, By::Value(0xffff));
    // 0 to n are n + 1 values; none are dropped by a share of nothing.
    code.jump_when(Register::R0, When::Above, i32::from(of_65536) - 1, passes);
    code.set(Register::R0, drop);
    code.exit();
    code.here(passes);
    code.set(Register::R0, pass);
    code.exit();
    let code = code.finish().map_err(io::Error::other)?;
    BpfProgram::load_named(kind, &code, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::ProgramKind;
    use crate::{netns, rtnetlink};

    fn attached_everywhere() -> Option<PacketPrograms> {
        let loopback = rtnetlink::links().unwrap().into_iter().find(|l| l.loopback)?;
        let xdp = dropping(ProgramKind::Xdp, 600, "lr_xdp").ok()?;
        let traffic = dropping(ProgramKind::Traffic, 600, "lr_tc").ok()?;
        attach_xdp(loopback.index, &xdp).unwrap();
        let with_hooks = traffic.attach(loopback.index, TrafficHook::Egress).is_ok();
        let found = attached(&rtnetlink::links().unwrap());
        detach_xdp(loopback.index).unwrap();
        if with_hooks {
            traffic.detach(loopback.index, TrafficHook::Egress).unwrap();
        }
        assert!(attached(&rtnetlink::links().unwrap()).programs.is_empty(), "nothing is left");
        with_hooks.then_some(found)
    }

    #[test]
    fn programs_are_found_by_their_names_where_they_are() {
        let name = "programs_are_found_by_their_names_where_they_are";
        let Ok(namespace) = netns::create() else {
            return println!("SKIPPED {name}: no network namespace can be made");
        };
        let Ok(Some(found)) = netns::run_in(&namespace, attached_everywhere) else {
            return println!("SKIPPED {name}: no programs may be attached here");
        };
        let seen: Vec<_> = found.programs.iter().map(|p| (p.point, p.name.as_deref())).collect();
        assert_eq!(seen, [(None, Some("lr_xdp")), (Some(FilterPoint::Egress), Some("lr_tc"))]);
        assert!(found.programs.iter().all(|p| p.tag.as_ref().is_some_and(|tag| tag.len() == 16)));
    }
}
