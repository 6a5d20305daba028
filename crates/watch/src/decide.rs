//! The smallest measurement that decides whether an alarm is right: a flow of datagrams with the suspect, and
//! one without it, from or to the same partner.
//!
//! In: a suspect, who can be measured. Out: pairs to measure; of what they lost, or of their RTTs, the
//! verdict.

use linerate_model::slow::{DecidingRtt, RttVerdict};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::{DecidingFlow, LossVerdict};

use crate::evidence::at_least;
use crate::partners::Member;
use crate::rules::{
    DECIDING_CHANCE, DECIDING_LOST, DECIDING_REQUESTS, DECIDING_REQUESTS_MS, DECIDING_SENT, NORMAL_MAX,
    RTT_RISE, RTT_RISE_US,
};

/// Pairs to measure, sender first, by indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecidingPairs {
    /// With the suspect.
    pub flows: Vec<(usize, usize)>,
    /// Without it.
    pub controls: Vec<(usize, usize)>,
}

/// A pair to measure the RTT of, by indices, and what is usual for it, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsualRtt {
    /// Who asks.
    pub from: usize,
    /// Who answers.
    pub to: usize,
    /// By its probes.
    pub usual_us: f64,
}

/// Pairs to measure the RTTs of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecidingRtts {
    /// With the suspect.
    pub pairs: Vec<UsualRtt>,
    /// Without it.
    pub controls: Vec<UsualRtt>,
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

/// Requests of a pair whose RTT is this, microseconds.
pub fn deciding_requests(rtt_us: f64) -> u16 {
    let (least, most) = DECIDING_REQUESTS;
    let more_ms = (rtt_us / 1e3 - 10.0).max(f64::MIN_POSITIVE);
    (DECIDING_REQUESTS_MS / more_ms).clamp(f64::from(least), f64::from(most)) as u16
}

/// What measured RTTs show. Requests and answers of programs take longer than probes, whose times are the
/// kernel's: what the control pair has above its usual is due to that, or has risen too.
pub fn decide_rtts(pairs: &[DecidingRtt], controls: &[DecidingRtt]) -> RttVerdict {
    let above = |one: &DecidingRtt| (one.rtt_us - one.usual_us).max(0.0);
    let by_method = controls.iter().map(above).reduce(f64::min).unwrap_or(0.0);
    let has_risen = |one: &DecidingRtt, off: f64| is_late(one.rtt_us - off, one.usual_us);
    match () {
        () if pairs.is_empty() => RttVerdict::NotMeasured,
        () if pairs.iter().any(|one| has_risen(one, by_method)) => RttVerdict::Confirmed,
        () if pairs.iter().any(|one| has_risen(one, 0.0)) => RttVerdict::ControlRoseToo,
        () => RttVerdict::NotSeen,
    }
}

/// Whether an RTT is longer than what is usual, both microseconds.
pub(crate) fn is_late(rtt_us: f64, usual_us: f64) -> bool {
    rtt_us > usual_us * RTT_RISE && rtt_us > usual_us + RTT_RISE_US
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
    fn requests_fit_into_the_time_of_their_test() {
        use linerate_model::kind::{RttPlan, TestPlan as _};
        for rtt_us in [50.0, 9e3, 11e3, 25e3, 60e3, 100e3] {
            let plan = RttPlan { count: deciding_requests(rtt_us) };
            let needed_s = f64::from(plan.count) * rtt_us / 1e6;
            assert!(plan.count >= 5 && needed_s < plan.time_max().as_secs_f64(), "{plan:?} {rtt_us}");
        }
        assert_eq!((deciding_requests(900.0), deciding_requests(35e3)), (200, 10));
    }

    #[test]
    fn rtts_are_compared_with_what_is_usual_and_with_the_control_pair() {
        let pair =
            |usual_us, rtt_us| vec![DecidingRtt { from: "a".into(), to: "b".into(), usual_us, rtt_us }];
        let usual = pair(60.0, 70.0);
        assert_eq!(decide_rtts(&pair(180.0, 900.0), &usual), RttVerdict::Confirmed);
        assert_eq!(decide_rtts(&pair(180.0, 900.0), &[]), RttVerdict::Confirmed);
        assert_eq!(decide_rtts(&pair(180.0, 200.0), &usual), RttVerdict::NotSeen);
        // The method alone takes 200 us here.
        assert_eq!(decide_rtts(&pair(60.0, 270.0), &pair(60.0, 260.0)), RttVerdict::ControlRoseToo);
        assert_eq!(decide_rtts(&pair(60.0, 470.0), &pair(60.0, 260.0)), RttVerdict::Confirmed);
        assert_eq!(decide_rtts(&pair(180.0, 900.0), &pair(180.0, 880.0)), RttVerdict::ControlRoseToo);
        assert_eq!(decide_rtts(&[], &usual), RttVerdict::NotMeasured);
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
