//! Which host, pair or group has longer RTTs than it had, for some minutes.
//!
//! In: the medians of each minute. Out: steps. A minute of a pair is late when its median is far above all
//! half hours of its last day, so that a daily cycle is no change. Whose the late minutes are, of a host, a
//! pair or a group, is found as for losses, by the same sequential test. A probe and its answer pass both
//! directions: none is named.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linerate_model::slow::{DecidedRtt, SlowAlarm, SlowOf, UsualOf};
use linerate_model::suspect::Suspect;
use linerate_model::watch::LossAlarm;

use crate::alarm::{AlarmIds, AlarmStep};
use crate::decide::{DecidingRtts, UsualRtt, is_late};
use crate::loss::{LossWatch, PairLoss};
use crate::minute::{MINUTE_MS, SeenFigure, SeenMinute, SeenOf};
use crate::partners::Member;
use crate::rules::{LATE, SLOT_MINUTES, SLOT_SEEN, SLOTS_OF_DAY};
use crate::slow::{SlowStep, median};

/// Late pairs that are tried for one that has a control pair.
const CANDIDATES_MAX: usize = 64;

/// Half an hour of a pair.
#[derive(Debug, Clone, Copy)]
struct Slot {
    number: u64,
    level_us: f32,
    /// It was late already then.
    is_late: bool,
}

/// What is usual for a pair.
#[derive(Debug, Clone, Default)]
struct Baseline {
    /// The oldest first.
    slots: VecDeque<Slot>,
    /// Number of the half hour that is not over, and its minutes: as usual, late.
    slot: u64,
    minutes: [Vec<f32>; 2],
    /// The last minute: what was usual, and the median; `None` while it is not late.
    late: Option<(f64, f64)>,
}

impl Baseline {
    /// Learns of a minute; whether it is late, `None` while that is not known.
    fn learn(&mut self, minute: u64, rtt_us: f64) -> Option<bool> {
        let slot = minute / SLOT_MINUTES;
        if slot != self.slot {
            self.end_slot();
            self.slot = slot;
            let is_known = |one: &Slot| one.number + 2 * SLOTS_OF_DAY >= slot;
            self.slots.retain(is_known);
        }
        let usual = self.usual_us();
        let late = usual.filter(|usual| is_late(rtt_us, *usual));
        self.late = late.map(|usual| (usual, rtt_us));
        self.minutes[usize::from(late.is_some())].push(rtt_us as f32);
        usual.map(|_| late.is_some())
    }

    fn end_slot(&mut self) {
        for (is_late, minutes) in [false, true].into_iter().zip(&mut self.minutes) {
            if minutes.len() >= SLOT_SEEN {
                let level_us = median(minutes.iter().map(|rtt| f64::from(*rtt))) as f32;
                self.slots.push_back(Slot { number: self.slot, level_us, is_late });
            }
            minutes.clear();
        }
    }

    /// The highest level of the last day. What was late is usual after a day.
    fn usual_us(&self) -> Option<f64> {
        let is_usual = |one: &&Slot| (one.number + SLOTS_OF_DAY < self.slot) == one.is_late;
        self.slots.iter().filter(is_usual).map(|one| f64::from(one.level_us)).reduce(f64::max)
    }
}

/// An alarm that is not over.
#[derive(Debug, Clone)]
struct OpenRtt {
    alarm: SlowAlarm,
    /// Alarms of the test that it is made of: of each direction one.
    parts: Vec<u64>,
}

/// The reasoner over the RTTs of all pairs.
#[derive(Debug)]
pub struct RttWatch {
    ids: AlarmIds,
    names: Vec<String>,
    group_of: Vec<Option<String>>,
    pairs: BTreeMap<(usize, usize), Baseline>,
    test: LossWatch,
    open: Vec<OpenRtt>,
}

impl RttWatch {
    /// Of these hosts; indices are positions in the list. Alarms are numbered with those of others.
    #[must_use]
    pub fn new(members: &[Member<'_>], ids: AlarmIds) -> Self {
        Self {
            ids,
            names: members.iter().map(|member| member.name.to_owned()).collect(),
            group_of: members.iter().map(|member| member.group.map(str::to_owned)).collect(),
            pairs: BTreeMap::new(),
            test: LossWatch::with_rules(members, AlarmIds::default(), &LATE),
            open: Vec::new(),
        }
    }

    /// Alarms that are not over.
    pub fn open(&self) -> impl Iterator<Item = &SlowAlarm> {
        self.open.iter().map(|open| &open.alarm)
    }

    /// A host is not watched any more, or begins anew: what was suspected of it is not known. What is usual
    /// stays: after a boot it may be slower.
    pub fn forget_host(&mut self, host: usize) {
        self.test.forget_host(host);
    }

    /// Learns of a minute; gives what is to be reported.
    pub fn learn(&mut self, seen: &SeenMinute) -> Vec<SlowStep> {
        let mut medians: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (of, figure, rtt_us) in &seen.values {
            if let (SeenOf::Pair(from, to), SeenFigure::Rtt) = (of, figure) {
                // The end that is starved of CPU sees more than there is.
                let pair = (*from.min(to), *from.max(to));
                medians.entry(pair).and_modify(|least| *least = least.min(*rtt_us)).or_insert(*rtt_us);
            }
        }
        let (minute, at_ms) = (seen.start_ms / MINUTE_MS, seen.start_ms + MINUTE_MS);
        let mut late = Vec::with_capacity(medians.len());
        for (pair, rtt_us) in medians {
            let baseline = self.pairs.entry(pair).or_default();
            late.extend(baseline.learn(minute, rtt_us).map(|is_late| (pair, u64::from(is_late))));
        }
        let mut steps = Vec::new();
        for ((a, b), lost) in late {
            for (from, to) in [(a, b), (b, a)] {
                for step in self.test.learn(PairLoss { at_ms, from, to, sent: 1, lost }) {
                    steps.extend(self.step(at_ms, step));
                }
            }
        }
        steps
    }

    fn step(&mut self, at_ms: u64, step: AlarmStep) -> Option<SlowStep> {
        match step {
            AlarmStep::Faster(_) => None,
            AlarmStep::Opened(part) | AlarmStep::Widened(part) => self.opened(at_ms, &part),
            AlarmStep::Closed(part) => {
                let at = self.open.iter().position(|open| open.parts.contains(&part.id))?;
                self.open[at].parts.retain(|id| *id != part.id);
                let is_over = self.open[at].parts.is_empty();
                is_over.then(|| SlowStep::Closed(self.open.remove(at).alarm))
            }
        }
    }

    /// An alarm of one direction: of the other it is reported already, or it is a new one, or wider.
    fn opened(&mut self, at_ms: u64, part: &LossAlarm) -> Option<SlowStep> {
        let suspect = undirected(&part.suspect);
        let of = SlowOf::Rtt(suspect.clone());
        let before = self.open.iter().position(|open| open.parts.contains(&part.id));
        if let Some(open) = self.open.iter_mut().find(|open| open.alarm.of == of) {
            if open.parts.contains(&part.id) {
                return None;
            }
            open.parts.push(part.id);
            // What the part was of before is a part of this one now.
            let narrow = self.open.remove(before?);
            let wide = self.open.iter_mut().find(|open| open.alarm.of == of)?;
            wide.parts.extend(narrow.parts.into_iter().filter(|id| *id != part.id));
            return Some(SlowStep::Closed(narrow.alarm));
        }
        let (usual, now, seen_with) = self.figures(&suspect);
        let before = before.map(|at| self.open.remove(at));
        // It was late from the begin of the first minute, which was counted at its end.
        let since_ms = part.since_ms.saturating_sub(MINUTE_MS);
        let alarm = SlowAlarm {
            id: before.as_ref().map_or_else(|| self.ids.next(), |open| open.alarm.id),
            of,
            since_ms: before.as_ref().map_or(since_ms, |open| open.alarm.since_ms.min(since_ms)),
            reported_ms: at_ms,
            usual,
            now,
            usual_of: UsualOf::Before,
            seen_with,
            failure: None,
            decided: before.as_ref().and_then(|open| open.alarm.decided.clone()),
        };
        let parts = before.as_ref().map_or_else(|| vec![part.id], |open| open.parts.clone());
        self.open.push(OpenRtt { alarm: alarm.clone(), parts });
        Some(if before.is_some() { SlowStep::Widened(alarm) } else { SlowStep::Opened(alarm) })
    }

    /// What was usual for the late pairs of a suspect, what they have now, and how many they are.
    fn figures(&self, suspect: &Suspect) -> (f64, f64, usize) {
        let late: Vec<(f64, f64)> = self.late(suspect).map(|(_, figures)| figures).collect();
        let usual = median(late.iter().map(|(usual, _)| *usual));
        (usual, median(late.iter().map(|(_, now)| *now)), late.len())
    }

    /// The late pairs of a suspect, with what was usual for each and what it has now.
    fn late<'s>(&'s self, suspect: &'s Suspect) -> impl Iterator<Item = ((usize, usize), (f64, f64))> + 's {
        let own = self.pairs.iter().filter(move |(pair, _)| self.is_of(suspect, **pair));
        own.filter_map(|(pair, one)| Some((*pair, one.late?)))
    }

    /// Whether a suspect is one of the ends of a pair, or the pair.
    fn is_of(&self, suspect: &Suspect, (a, b): (usize, usize)) -> bool {
        match suspect {
            // Pairs are by number here, and by name there.
            Suspect::Pair(first, second) => {
                [(a, b), (b, a)].iter().any(|(x, y)| self.names[*x] == *first && self.names[*y] == *second)
            }
            _ => self.is_in(suspect, a) || self.is_in(suspect, b),
        }
    }

    fn is_in(&self, suspect: &Suspect, host: usize) -> bool {
        match suspect {
            Suspect::Host(name) => self.names[host] == *name,
            Suspect::Group(name) => self.group_of[host].as_ref() == Some(name),
            _ => true,
        }
    }

    /// The smallest measurement that decides whether an alarm is right: a late pair of its suspect, and one
    /// without it that shares an end and has not risen. Empty without a pair to measure.
    #[must_use]
    pub fn deciding(&self, suspect: &Suspect, usable: &[usize]) -> DecidingRtts {
        let usable: BTreeSet<usize> = usable.iter().copied().collect();
        let is_of_ends = matches!(suspect, Suspect::Host(_) | Suspect::Group(_));
        let mut without_control = DecidingRtts::default();
        for ((a, b), (usual_us, _)) in self.late(suspect).take(CANDIDATES_MAX) {
            // The end that stays the same; of a pair both are suspected.
            let stays = |end: &usize| !is_of_ends || (!self.is_in(suspect, *end) && usable.contains(end));
            for partner in [a, b].into_iter().filter(stays) {
                let other = if partner == a { b } else { a };
                let pairs = vec![UsualRtt { from: partner, to: other, usual_us }];
                let control = self.control(suspect, partner, &usable);
                if control.is_some() {
                    return DecidingRtts { pairs, controls: control.into_iter().collect() };
                }
                if without_control.pairs.is_empty() {
                    without_control.pairs = pairs;
                }
            }
        }
        without_control
    }

    /// A pair of this end that has nothing of a suspect and is as usual.
    fn control(&self, suspect: &Suspect, end: usize, usable: &BTreeSet<usize>) -> Option<UsualRtt> {
        self.pairs.iter().find_map(|(pair, one)| {
            let to = if pair.0 == end { pair.1 } else { pair.0 };
            let is_control = (pair.0 == end || pair.1 == end)
                && usable.contains(&to)
                && !self.is_of(suspect, *pair)
                && one.late.is_none();
            let usual_us = one.usual_us().filter(|_| is_control)?;
            Some(UsualRtt { from: end, to, usual_us })
        })
    }

    /// An alarm was measured: what it is now; `None` where it is over meanwhile.
    pub fn decided(&mut self, id: u64, decided: DecidedRtt) -> Option<SlowAlarm> {
        let open = self.open.iter_mut().find(|open| open.alarm.id == id)?;
        open.alarm.decided = Some(decided);
        Some(open.alarm.clone())
    }
}

/// The same pair for both directions.
fn undirected(suspect: &Suspect) -> Suspect {
    match suspect {
        Suspect::Pair(a, b) if a > b => Suspect::Pair(b.clone(), a.clone()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60;

    #[test]
    fn a_level_of_the_last_day_is_usual_and_a_new_one_after_a_day() {
        let mut pair = Baseline::default();
        // The first half hour is learned.
        assert!((0..SLOT_MINUTES).all(|minute| pair.learn(minute, 100.0).is_none()));
        assert!((30..90).all(|minute| pair.learn(minute, 160.0) == Some(false)), "{pair:?}");
        assert_eq!(pair.learn(90, 450.0), Some(true));
        assert_eq!(pair.late, Some((160.0, 450.0)));
        assert!((91..90 + DAY).all(|minute| pair.learn(minute, 450.0) != Some(false)));
        assert_eq!(pair.learn(120 + DAY, 450.0), Some(false));
    }

    fn part(id: u64, suspect: Suspect) -> LossAlarm {
        let direction = linerate_model::suspect::Direction::Tx;
        LossAlarm { id, suspect, direction, since_ms: 0, reported_ms: 0, lost: 5, sent: 5, partners: 1 }
    }

    /// Two hosts whose names are in another order than their numbers, and the pair of them late.
    fn late_pair() -> RttWatch {
        let members = ["arc-9", "arc-10"].map(|name| Member { name, group: None });
        let mut watch = RttWatch::new(&members, AlarmIds::default());
        let late = Baseline { late: Some((100.0, 400.0)), ..Baseline::default() };
        watch.pairs.insert((0, 1), late);
        watch
    }

    #[test]
    fn a_pair_has_its_figures_in_whichever_order_it_is_named() {
        let pair = |a: &str, b: &str| Suspect::Pair(a.to_owned(), b.to_owned());
        for suspect in [pair("arc-9", "arc-10"), pair("arc-10", "arc-9")] {
            let Some(SlowStep::Opened(alarm)) = late_pair().opened(0, &part(1, suspect)) else { panic!() };
            assert_eq!((alarm.usual, alarm.now, alarm.seen_with), (100.0, 400.0, 1));
        }
    }

    #[test]
    fn of_a_pair_both_ends_are_suspected_and_of_a_host_the_partner_has_to_be_usable() {
        let members = ["a", "b", "c"].map(|name| Member { name, group: None });
        let mut watch = RttWatch::new(&members, AlarmIds::default());
        let late = Baseline { late: Some((100.0, 400.0)), ..Baseline::default() };
        let mut usual = Baseline::default();
        for minute in 0..90 {
            usual.learn(minute, 100.0);
        }
        watch.pairs.extend([((0, 1), late), ((1, 2), usual)]);
        let pair = Suspect::Pair("a".into(), "b".into());
        let deciding = watch.deciding(&pair, &[2]);
        assert_eq!(deciding.pairs, [UsualRtt { from: 1, to: 0, usual_us: 100.0 }]);
        assert_eq!(deciding.controls, [UsualRtt { from: 1, to: 2, usual_us: 100.0 }]);
        assert_eq!(watch.deciding(&pair, &[]).controls, []);
        let host = Suspect::Host("a".into());
        assert_eq!(watch.deciding(&host, &[1, 2]), deciding);
        assert_eq!(watch.deciding(&host, &[2]), DecidingRtts::default());
    }

    #[test]
    fn an_alarm_that_becomes_one_that_is_open_is_over_with_it() {
        let mut watch = late_pair();
        let pair = Suspect::Pair("arc-10".into(), "arc-9".into());
        let host = Suspect::Host("arc-9".into());
        let opened =
            [(1, &pair), (3, &host)].map(|(id, of)| watch.step(0, AlarmStep::Opened(part(id, of.clone()))));
        assert!(opened.iter().all(|step| matches!(step, Some(SlowStep::Opened(_)))), "{opened:?}");
        let Some(SlowStep::Closed(of_pair)) = watch.step(1, AlarmStep::Widened(part(1, host.clone()))) else {
            panic!("{watch:?}")
        };
        assert_eq!(of_pair.of, SlowOf::Rtt(pair));
        assert_eq!(watch.step(2, AlarmStep::Closed(part(3, host.clone()))), None);
        assert!(matches!(watch.step(3, AlarmStep::Closed(part(1, host))), Some(SlowStep::Closed(_))));
        assert_eq!(watch.open().count(), 0);
    }

    #[test]
    fn a_gap_of_a_day_begins_anew() {
        let mut pair = Baseline::default();
        for minute in 0..60 {
            pair.learn(minute, 100.0);
        }
        assert_eq!(pair.learn(3 * DAY, 900.0), None);
    }
}
