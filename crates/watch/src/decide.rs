//! The smallest measurement that decides whether an alarm is right: a flow of datagrams with the suspect, and
//! one without it, from or to the same partner.
//!
//! In: a suspect, who can be measured. Out: pairs to measure; of what they lost, the verdict.

use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::{DecidingFlow, LossVerdict};

use crate::evidence::at_least;
use crate::partners::Member;
use crate::rules::{DECIDING_CHANCE, DECIDING_LOST, DECIDING_SENT, NORMAL_MAX};

/// Pairs to measure, sender first, by indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecidingPairs {
    /// With the suspect.
    pub flows: Vec<(usize, usize)>,
    /// Without it.
    pub controls: Vec<(usize, usize)>,
}

/// The pairs that decide; `usable` in the order in which hosts are preferred as partners. Empty without a
/// host to measure with.
pub fn deciding_pairs(
    suspect: &Suspect,
    direction: Direction,
    members: &[Member<'_>],
    usable: &[usize],
) -> DecidingPairs {
    let index = |name: &str| members.iter().position(|member| member.name == name);
    let is_in = |host: usize| match suspect {
        Suspect::Host(name) => members[host].name == name,
        Suspect::Group(group) => members[host].group == Some(group),
        _ => false,
    };
    let mut pairs = DecidingPairs::default();
    if let Suspect::Pair(from, to) = suspect {
        if let (Some(from), Some(to)) = (index(from), index(to)) {
            pairs.flows.push((from, to));
            let control = usable.iter().find(|host| **host != from && **host != to);
            pairs.controls.extend(control.map(|control| (from, *control)));
        }
        return pairs;
    }
    let mut others = usable.iter().copied().filter(|host| !is_in(*host));
    let Some(partner) = others.next() else { return pairs };
    let control = others.next();
    let own = match suspect {
        Suspect::Host(name) => index(name),
        Suspect::Group(_) => usable.iter().copied().find(|host| is_in(*host)),
        // Every path: any of them.
        _ => control,
    };
    let Some(own) = own else { return pairs };
    let control = control.filter(|control| *control != own);
    if direction != Direction::Tx {
        pairs.flows.push((partner, own));
        pairs.controls.extend(control.map(|control| (partner, control)));
    }
    if direction != Direction::Rx {
        pairs.flows.push((own, partner));
        pairs.controls.extend(control.map(|control| (control, partner)));
    }
    pairs
}

/// Datagrams of a flow that shows a loss of this share.
pub fn deciding_datagrams(share: f64) -> u64 {
    ((DECIDING_LOST / share.max(1e-9)) as u64).clamp(DECIDING_SENT.0, DECIDING_SENT.1)
}

/// What the flows show.
pub fn decide(flows: &[DecidingFlow], controls: &[DecidingFlow]) -> LossVerdict {
    let sum = |flows: &[DecidingFlow]| {
        flows.iter().fold((0, 0), |sum, flow| (sum.0 + flow.sent, sum.1 + flow.lost.min(flow.sent)))
    };
    let ((sent, lost), (control_sent, control_lost)) = (sum(flows), sum(controls));
    let is_beyond =
        |sent: u64, lost: u64| at_least(lost as usize, sent as usize, NORMAL_MAX) < DECIDING_CHANCE;
    if sent == 0 {
        return LossVerdict::NotMeasured;
    }
    // Each direction by itself would be diluted by the other: both are in the sums of both.
    let is_more = if control_sent == 0 {
        is_beyond(sent, lost)
    } else {
        let own = sent as f64 / (sent + control_sent) as f64;
        lost > 0 && at_least(lost as usize, (lost + control_lost) as usize, own) < DECIDING_CHANCE
    };
    match () {
        () if is_more => LossVerdict::Confirmed,
        () if is_beyond(sent, lost) => LossVerdict::ControlLosesToo,
        () => LossVerdict::NotSeen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member<'static>> {
        let names = ["a", "b", "c", "d"].into_iter();
        names
            .zip([Some("x"), Some("x"), Some("y"), Some("y")])
            .map(|(name, group)| Member { name, group })
            .collect()
    }

    fn pairs(suspect: &Suspect, direction: Direction, usable: &[usize]) -> DecidingPairs {
        deciding_pairs(suspect, direction, &members(), usable)
    }

    #[test]
    fn the_control_differs_from_the_flow_by_the_suspect_alone() {
        let host = Suspect::Host("b".into());
        let rx = pairs(&host, Direction::Rx, &[0, 1, 2]);
        assert_eq!((rx.flows, rx.controls), (vec![(0, 1)], vec![(0, 2)]));
        let tx = pairs(&host, Direction::Tx, &[0, 1, 2]);
        assert_eq!((tx.flows, tx.controls), (vec![(1, 0)], vec![(2, 0)]));
        assert_eq!(pairs(&host, Direction::Both, &[0, 1, 2]).flows, [(0, 1), (1, 0)]);
        let pair = pairs(&Suspect::Pair("a".into(), "b".into()), Direction::Tx, &[0, 1, 3]);
        assert_eq!((pair.flows, pair.controls), (vec![(0, 1)], vec![(0, 3)]));
        let group = pairs(&Suspect::Group("x".into()), Direction::Rx, &[0, 1, 2, 3]);
        assert_eq!((group.flows, group.controls), (vec![(2, 0)], vec![(2, 3)]));
        let all = pairs(&Suspect::All, Direction::Rx, &[0, 1, 2]);
        assert_eq!((all.flows, all.controls), (vec![(0, 1)], vec![]));
        // With one partner there is no control, alone nothing.
        assert_eq!(pairs(&host, Direction::Rx, &[0, 1]).controls, []);
        assert_eq!(pairs(&host, Direction::Rx, &[1]), DecidingPairs::default());
    }

    #[test]
    fn a_verdict_needs_more_than_chance() {
        let flow = |lost| vec![DecidingFlow { from: "a".into(), to: "b".into(), sent: 2_000, lost }];
        assert_eq!(decide(&flow(20), &flow(0)), LossVerdict::Confirmed);
        assert_eq!(decide(&flow(7), &flow(0)), LossVerdict::Confirmed);
        assert_eq!(decide(&flow(5), &flow(0)), LossVerdict::NotSeen);
        assert_eq!(decide(&flow(20), &flow(19)), LossVerdict::ControlLosesToo);
        assert_eq!(decide(&flow(2_000), &flow(1_999)), LossVerdict::ControlLosesToo);
        assert_eq!(decide(&flow(0), &flow(0)), LossVerdict::NotSeen);
        assert_eq!(decide(&flow(20), &[]), LossVerdict::Confirmed);
        assert_eq!(decide(&flow(3), &[]), LossVerdict::NotSeen);
        assert_eq!(decide(&[], &flow(0)), LossVerdict::NotMeasured);
    }

    #[test]
    fn a_flow_is_as_long_as_its_loss_is_rare() {
        assert_eq!(deciding_datagrams(0.3), 2_000);
        assert_eq!(deciding_datagrams(0.005), 4_000);
        assert_eq!(deciding_datagrams(0.0), 10_000);
    }
}
