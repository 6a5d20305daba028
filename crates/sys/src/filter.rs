//! Filters of `tc` in the network namespace of the calling thread, with their actions, by rtnetlink.
//!
//! In: the queueing disciplines that can hold some. Out: plain types, which are also what a recorded tree
//! keeps (`filters.json`). What a filter selects is left out: it names addresses. Bounded in number; it never
//! decides whether a filter does harm.

use serde::{Deserialize, Serialize};

use crate::netlink::{NetlinkError, Socket, attribute, i32_at, u32_at};
use crate::qdisc::{INGRESS, Qdisc};

/// Most filters that are kept: nodes of clusters have some for each container.
pub const FILTERS_MAX: usize = 2048;
/// Most actions of one filter; the kernel takes no more either (`TCA_ACT_MAX_PRIO`).
const ACTIONS_MAX: usize = 32;
/// Class of the ingress side, and of the egress side, of `clsact` (`TC_H_MIN_INGRESS`, `TC_H_MIN_EGRESS`).
const INGRESS_SIDE: u32 = 0xffff_fff2;
const EGRESS_SIDE: u32 = 0xffff_fff3;
const TCA_CHAIN: u16 = 11;

const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_ID: u16 = 11;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_POLICE_TBF: u16 = 1;
const TCA_POLICE_RATE64: u16 = 8;
/// Parameters of all actions but the policer; they begin with `struct tc_gen`.
const TCA_PARMS: u16 = 2;
const TCA_ACT_BPF_NAME: u16 = 6;

/// Where packets meet a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterPoint {
    /// What the device receives.
    Ingress,
    /// What it sends, before the queueing discipline.
    Egress,
    /// In a queueing discipline, to choose a class.
    Queue,
}

/// A filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Index of the device.
    pub link: u32,
    /// Where packets meet it.
    pub point: FilterPoint,
    /// Classifier: `u32`, `flower`, `bpf`, …
    pub kind: String,
    /// Name of its program, as it was given to `tc`.
    #[serde(default)]
    pub program: Option<String>,
    /// Number of its program in this kernel.
    #[serde(default)]
    pub program_id: Option<u32>,
    /// Whether the program itself decides what becomes of a packet.
    #[serde(default)]
    pub decides: bool,
    /// Actions, in their order.
    #[serde(default)]
    pub actions: Vec<FilterAction>,
}

/// An action of a filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterAction {
    /// `police`, `gact`, `mirred`, `bpf`, …
    pub kind: String,
    /// What becomes of the packet, a number of `TC_ACT_*`; of a policer what becomes of too many.
    #[serde(default)]
    pub verdict: Option<i32>,
    /// Rate of a policer, bit/s.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Index of the device to which `mirred` sends.
    #[serde(default)]
    pub to: Option<u32>,
    /// Name of a program.
    #[serde(default)]
    pub program: Option<String>,
}

/// Filters of these disciplines, the first [`FILTERS_MAX`].
pub fn filters(qdiscs: &[Qdisc]) -> Result<Vec<Filter>, NetlinkError> {
    let mut found: Vec<Filter> = Vec::new();
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    for qdisc in qdiscs.iter().filter(|q| q.handle != 0) {
        let points: &[(FilterPoint, u32)] = match (qdisc.parent, qdisc.kind.as_str()) {
            (INGRESS, "clsact") => {
                &[(FilterPoint::Ingress, INGRESS_SIDE), (FilterPoint::Egress, EGRESS_SIDE)]
            }
            (INGRESS, _) => &[(FilterPoint::Ingress, INGRESS_SIDE)],
            _ => &[(FilterPoint::Queue, qdisc.handle)],
        };
        for (point, parent) in points {
            let mut of_point: Vec<Filter> = Vec::new();
            let answer =
                socket.dump(libc::RTM_GETTFILTER, &crate::qdisc::header(qdisc.link, 0, *parent), |message| {
                    if let Some(filter) = parse(message.payload, *point)
                        && found.len() + of_point.len() < FILTERS_MAX
                    {
                        of_point.push(filter);
                    }
                });
            match answer {
                Ok(()) => found.append(&mut of_point),
                // The device is gone meanwhile, or the discipline holds no filters.
                Err(NetlinkError::Refused { errno: libc::ENODEV | libc::EINVAL | libc::ENOENT, .. }) => {}
                Err(other) => return Err(other),
            }
        }
    }
    Ok(found)
}

fn parse(payload: &[u8], point: FilterPoint) -> Option<Filter> {
    let header = payload.get(..20)?;
    let body = &payload[20..];
    let kind = attribute(body, libc::TCA_KIND)?.text();
    let options = attribute(body, libc::TCA_OPTIONS).map(|a| a.data);
    // Without options it is the head of a list, and with a handle of 0 a whole table: neither is a filter.
    let options = options.filter(|_| u32_at(header, 8) != Some(0) && attribute(body, TCA_CHAIN).is_some())?;
    let (actions_at, policer_at) = match kind.as_str() {
        "bpf" | "cgroup" => (1, Some(2)),
        "matchall" => (2, None),
        "flower" => (3, None),
        "basic" => (3, Some(4)),
        "fw" => (4, Some(2)),
        "route" => (6, Some(5)),
        "u32" => (7, Some(6)),
        "flow" => (9, Some(10)),
        _ => (0, None),
    };
    if kind == "u32" && attribute(options, U32_SELECTOR).is_none() {
        return None;
    }
    let is_program = kind == "bpf";
    let of_program = |at: u16| attribute(options, at).filter(|_| is_program);
    let mut actions: Vec<FilterAction> = attribute(options, actions_at)
        .filter(|_| actions_at != 0)
        .map(|all| all.nested().take(ACTIONS_MAX).filter_map(|a| action(a.data)).collect())
        .unwrap_or_default();
    let old_policer = policer_at.and_then(|at| attribute(options, at));
    actions.extend(old_policer.map(|policer| police(policer.data)));
    Some(Filter {
        link: u32_at(header, 4)?,
        point,
        program: of_program(TCA_BPF_NAME).map(|a| a.text()),
        program_id: of_program(TCA_BPF_ID).and_then(|a| a.u32()),
        decides: of_program(TCA_BPF_FLAGS).and_then(|a| a.u32()).unwrap_or(0) & TCA_BPF_FLAG_ACT_DIRECT != 0,
        kind,
        actions,
    })
}

/// `TCA_U32_SEL`: what a filter of `u32` has, and its hash tables lack.
const U32_SELECTOR: u16 = 5;

fn action(data: &[u8]) -> Option<FilterAction> {
    let kind = attribute(data, TCA_ACT_KIND)?.text();
    let options = attribute(data, TCA_ACT_OPTIONS).map(|a| a.data).unwrap_or_default();
    if kind == "police" {
        return Some(police(options));
    }
    let parameters = attribute(options, TCA_PARMS).map(|a| a.data).unwrap_or_default();
    Some(FilterAction {
        verdict: i32_at(parameters, 8),
        // Behind `struct tc_gen` of 20 bytes: what is done, and the device.
        to: u32_at(parameters, 24).filter(|_| kind == "mirred"),
        program: attribute(options, TCA_ACT_BPF_NAME).filter(|_| kind == "bpf").map(|a| a.text()),
        kind,
        rate_bps: None,
    })
}

/// A policer: `struct tc_police`, whose rate is the last field of its `struct tc_ratespec`.
fn police(options: &[u8]) -> FilterAction {
    let parameters = attribute(options, TCA_POLICE_TBF).map(|a| a.data).unwrap_or_default();
    let wide = attribute(options, TCA_POLICE_RATE64).and_then(|a| a.number());
    let narrow = u32_at(parameters, 28).map(u64::from).filter(|rate| *rate > 0);
    FilterAction {
        kind: "police".into(),
        verdict: i32_at(parameters, 4),
        rate_bps: wide.or(narrow).and_then(|rate| rate.checked_mul(8)),
        ..FilterAction::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::Payload;

    /// A message of the kernel for a filter with these options.
    fn message(kind: &str, handle: u32, options: &Payload) -> Vec<u8> {
        let header = crate::qdisc::header(7, handle, INGRESS_SIDE);
        let mut bytes = header.into_bytes();
        let body = Payload::default().text(libc::TCA_KIND, kind).u32(TCA_CHAIN, 0);
        bytes.extend(body.nest(libc::TCA_OPTIONS, options).into_bytes());
        bytes
    }

    fn one_action(kind: &str, options: &Payload) -> Payload {
        let action = Payload::default().text(TCA_ACT_KIND, kind).nest(TCA_ACT_OPTIONS, options);
        Payload::default().nest(1, &action)
    }

    #[test]
    fn a_policer_of_each_age_is_found_with_its_rate() {
        let mut parameters = [0_u8; 52];
        parameters[4..8].copy_from_slice(&2_i32.to_ne_bytes());
        parameters[28..32].copy_from_slice(&1_250_000_u32.to_ne_bytes());
        let policer = Payload::default().bytes(TCA_POLICE_TBF, &parameters);
        let new = Payload::default().nest(2, &one_action("police", &policer));
        let old = Payload::default().bytes(U32_SELECTOR, &[0; 16]).nest(6, &policer);
        let wanted = FilterAction {
            kind: "police".into(),
            verdict: Some(2),
            rate_bps: Some(10_000_000),
            ..FilterAction::default()
        };
        for (kind, options) in [("matchall", new), ("u32", old)] {
            let filter = parse(&message(kind, 1, &options), FilterPoint::Ingress).unwrap();
            assert_eq!((filter.link, filter.kind.as_str()), (7, kind));
            assert_eq!(filter.actions, std::slice::from_ref(&wanted));
        }
    }

    #[test]
    fn programs_and_redirections_are_read_and_tables_are_none() {
        let program = Payload::default()
            .text(TCA_BPF_NAME, "drop.o:[tc]")
            .u32(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT)
            .u32(TCA_BPF_ID, 12);
        let filter = parse(&message("bpf", 1, &program), FilterPoint::Egress).unwrap();
        assert_eq!(filter.program.as_deref(), Some("drop.o:[tc]"));
        assert!(filter.decides && filter.program_id == Some(12), "{filter:?}");
        let mut parameters = [0_u8; 28];
        parameters[8..12].copy_from_slice(&4_i32.to_ne_bytes());
        parameters[24..28].copy_from_slice(&9_u32.to_ne_bytes());
        let redirect = one_action("mirred", &Payload::default().bytes(TCA_PARMS, &parameters));
        let options = Payload::default().bytes(U32_SELECTOR, &[0; 16]).nest(7, &redirect);
        let filter = parse(&message("u32", 0x8000_0800, &options), FilterPoint::Ingress).unwrap();
        assert_eq!((filter.actions[0].to, filter.actions[0].verdict), (Some(9), Some(4)));
        assert_eq!(
            parse(&message("u32", 0x8000_0000, &Payload::default().u32(4, 1)), FilterPoint::Ingress),
            None
        );
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in "(u32|bpf|fw)") {
            let _ = parse(&bytes, FilterPoint::Queue);
            let _ = parse(&message(&kind, 1, &Payload::new(&bytes)), FilterPoint::Queue);
            let _ = action(&bytes);
        }
    }
}
