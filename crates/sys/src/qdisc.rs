//! Queueing disciplines of a device: read, replace, and put back exactly as they were.
//!
//! In: a device index. Out: the disciplines with the raw bytes of their parameters, so that any of them can
//! be restored without knowing what its parameters mean. Classes and filters are not kept: a discipline that
//! has some is not replaceable (see [`Qdisc::is_restorable`]). It never touches ingress disciplines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::netlink::{
    NLM_F_CREATE, NLM_F_REPLACE, NetlinkError, Payload, Socket, attribute, attributes, u32_at,
};

const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Parent of a root discipline.
pub const ROOT: u32 = 0xffff_ffff;
/// Parent of what stands beside the root for the sake of its filters: `ingress` and `clsact`.
pub const INGRESS: u32 = 0xffff_fff1;
const QDISCS_MAX: usize = 16_384;

/// One discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// Index of the device.
    pub link: u32,
    /// `pfifo_fast`, `tbf`, `fq_codel`, …
    pub kind: String,
    /// Own handle; 0 when the kernel attached it by itself.
    pub handle: u32,
    /// Handle of the parent; [`ROOT`] for the root.
    pub parent: u32,
    /// Parameters as the kernel dumps and takes them.
    #[serde(default)]
    pub options: Vec<u8>,
}

impl Qdisc {
    /// Whether it is the root of its device.
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Whether it stands beside the root and only holds filters.
    pub fn is_ingress(&self) -> bool {
        self.parent == INGRESS
    }

    /// Whether kind, handle and parameters are all there is: no classes and filters that would be lost.
    pub fn is_restorable(&self) -> bool {
        const RESTORABLE: [&str; 15] = [
            "noqueue",
            "noop",
            "mq",
            "pfifo_fast",
            "pfifo",
            "bfifo",
            "pfifo_head_drop",
            "tbf",
            "fq",
            "fq_codel",
            "codel",
            "cake",
            "sfq",
            "fq_pie",
            "netem",
        ];
        RESTORABLE.contains(&self.kind.as_str())
    }

    /// Rate of a token bucket, bit/s.
    pub fn rate_bps(&self) -> Option<u64> {
        if self.kind != "tbf" {
            return None;
        }
        let wide = attribute(&self.options, TCA_TBF_RATE64).and_then(|a| a.number());
        // The rate is the last field of the 12 bytes of `tc_ratespec`.
        let narrow = attribute(&self.options, TCA_TBF_PARMS).and_then(|a| u32_at(a.data, 8)).map(u64::from);
        wide.or(narrow)?.checked_mul(8)
    }
}

/// A token bucket with another rate and everything else as it was: what it holds in time stays, so that a
/// faster one holds more bytes. `None` for other disciplines, and rates that the kernel does not take.
#[must_use]
pub fn with_rate(qdisc: &Qdisc, rate_bps: u64) -> Option<Qdisc> {
    let bytes_per_s = rate_bps / 8;
    let old_rate = qdisc.rate_bps()? / 8;
    if bytes_per_s == 0 || old_rate == 0 {
        return None;
    }
    let mut parms = attribute(&qdisc.options, TCA_TBF_PARMS)?.data.to_vec();
    // A rate that needs 64 bits stands here as all ones.
    let narrow = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    parms.get_mut(8..12)?.copy_from_slice(&narrow.to_ne_bytes());
    let scaled = |at: usize, least: u32| {
        let now = u32_at(&parms, at)?;
        let wanted = u128::from(now) * u128::from(bytes_per_s) / u128::from(old_rate);
        Some(u32::try_from(wanted).unwrap_or(u32::MAX).max(least.min(now)))
    };
    // What waits for longer than before is lost as before: the limit of the queue, in bytes.
    let limit = scaled(TBF_LIMIT, QUEUE_BYTES_MIN)?;
    // Ticks of the clock for a bucket: a slower one needs more of them for the same packet.
    let ticks = u128::from(u32_at(&parms, TBF_BUFFER)?);
    let slower = ticks * u128::from(old_rate) / u128::from(bytes_per_s);
    let buffer = u32::try_from(slower.max(ticks)).ok()?;
    parms.get_mut(TBF_LIMIT..TBF_LIMIT + 4)?.copy_from_slice(&limit.to_ne_bytes());
    parms.get_mut(TBF_BUFFER..TBF_BUFFER + 4)?.copy_from_slice(&buffer.to_ne_bytes());
    let mut options = Payload::default().bytes(TCA_TBF_PARMS, &parms);
    if bytes_per_s > u64::from(u32::MAX) {
        options = options.bytes(TCA_TBF_RATE64, &bytes_per_s.to_ne_bytes());
    }
    Some(Qdisc { options: options.into_bytes(), ..qdisc.clone() })
}

/// Offsets of the limit of the queue and of the size of the bucket in `struct tc_tbf_qopt`.
const TBF_LIMIT: usize = 24;
const TBF_BUFFER: usize = 28;
/// A queue never becomes shorter than this many bytes by a slower rate: 20 packets of Ethernet.
const QUEUE_BYTES_MIN: u32 = 30_000;

/// Disciplines of all devices, those for ingress too.
pub fn qdiscs() -> Result<Vec<Qdisc>, NetlinkError> {
    let mut found = Vec::new();
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETQDISC, &Payload::new(&[0; 20]), |message| {
        if let Some(qdisc) = parse(message.payload)
            && found.len() < QDISCS_MAX
            && !found.contains(&qdisc)
        {
            found.push(qdisc);
        }
    })?;
    Ok(found)
}

/// Packets that the root discipline of each device has dropped, by the index of the device.
pub fn root_drops() -> Result<BTreeMap<u32, u32>, NetlinkError> {
    let mut drops = BTreeMap::new();
    Socket::open(libc::NETLINK_ROUTE)?.dump(libc::RTM_GETQDISC, &Payload::new(&[0; 20]), |message| {
        if drops.len() < QDISCS_MAX
            && let Some((link, count)) = dropped(message.payload)
        {
            drops.insert(link, count);
        }
    })?;
    Ok(drops)
}

/// The device of a root discipline, and what it dropped.
fn dropped(payload: &[u8]) -> Option<(u32, u32)> {
    let (header, body) = payload.split_at_checked(20)?;
    if u32_at(header, 12)? != ROOT {
        return None;
    }
    let queue = attribute(attribute(body, TCA_STATS2)?.data, TCA_STATS_QUEUE)?;
    // `struct gnet_stats_queue`: packets and bytes that wait, then what was dropped.
    Some((u32_at(header, 4)?, u32_at(queue.data, 8)?))
}

fn parse(payload: &[u8]) -> Option<Qdisc> {
    let header = payload.get(..20)?;
    let body = &payload[20..];
    Some(Qdisc {
        link: u32_at(header, 4)?,
        handle: u32_at(header, 8)?,
        parent: u32_at(header, 12)?,
        kind: attribute(body, libc::TCA_KIND)?.text(),
        options: attributes(body)
            .find(|a| a.kind == libc::TCA_OPTIONS)
            .map(|a| a.data.to_vec())
            .unwrap_or_default(),
    })
}

pub(crate) fn header(link: u32, handle: u32, parent: u32) -> Payload {
    let mut bytes = [0; 20];
    bytes[4..8].copy_from_slice(&link.to_ne_bytes());
    bytes[8..12].copy_from_slice(&handle.to_ne_bytes());
    bytes[12..16].copy_from_slice(&parent.to_ne_bytes());
    Payload::new(&bytes)
}

/// Removes the root discipline; the kernel attaches its default. Succeeds when only the default was there.
pub fn delete_root(link: u32) -> Result<(), NetlinkError> {
    let result =
        Socket::open(libc::NETLINK_ROUTE)?.request(libc::RTM_DELQDISC, 0, &header(link, 0, ROOT), |_| {});
    match result {
        // What the kernel attached by itself has no handle and cannot be deleted.
        Err(NetlinkError::Refused { errno: libc::ENOENT | libc::EINVAL, .. }) => Ok(()),
        other => other,
    }
}

/// Puts a discipline in force exactly as it was read.
pub fn restore(qdisc: &Qdisc) -> Result<(), NetlinkError> {
    let mut payload = header(qdisc.link, qdisc.handle, qdisc.parent).text(libc::TCA_KIND, &qdisc.kind);
    if !qdisc.options.is_empty() {
        payload = payload.bytes(libc::TCA_OPTIONS | 0x8000, &qdisc.options);
    }
    Socket::open(libc::NETLINK_ROUTE)?.request(
        libc::RTM_NEWQDISC,
        NLM_F_CREATE | NLM_F_REPLACE,
        &payload,
        |_| {},
    )
}

/// Puts a root discipline in force with the kernel's parameters for its kind. A token bucket has none: it
/// gets a rate so high that it limits nothing, until [`restore`] gives it its own.
pub fn replace_root(link: u32, kind: &str) -> Result<(), NetlinkError> {
    let options = if kind == "tbf" { wide_open_tbf() } else { Vec::new() };
    restore(&Qdisc { link, kind: kind.to_string(), handle: 0, parent: ROOT, options })
}

/// Parameters of a token bucket of 4 GB/s with room for 64 aggregated packets.
fn wide_open_tbf() -> Vec<u8> {
    const ETHERNET: u8 = 1;
    const RATE: u32 = 4_000_000_000;
    const BURST: u32 = 4 << 20;
    let mut parms = [0; 36];
    parms[1] = ETHERNET;
    parms[8..12].copy_from_slice(&RATE.to_ne_bytes());
    parms[24..28].copy_from_slice(&BURST.to_ne_bytes());
    let payload = Payload::default().bytes(TCA_TBF_PARMS, &parms).u32(TCA_TBF_BURST, BURST);
    payload.into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
            let _ = Qdisc { kind: "tbf".into(), options: bytes, ..Qdisc::default() }.rate_bps();
        }
    }

    #[test]
    fn the_rate_of_a_token_bucket_is_found() {
        let qdisc = Qdisc { kind: "tbf".into(), options: wide_open_tbf(), ..Qdisc::default() };
        assert_eq!(qdisc.rate_bps(), Some(32_000_000_000));
    }
}
