//! Which host, direction, pair or group loses more than is normal.
//!
//! In: for each pair what was sent and lost of late. Out: steps. Two directions of each host are tested one
//! by one; what a partner with stronger evidence explains is not counted twice, and what several members of a
//! group lose is the group's.

use std::cmp::Reverse;

use linerate_model::inventory::{GroupName, HostName};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::watch::LossAlarm;

use crate::alarm::{AlarmIds, AlarmStep, Open, Suspected};
use crate::evidence::{Belongs, Evidence, Weights};
use crate::partners::Member;
use crate::rules::{
    GROUP_EXPLAINS, GROUP_MEMBERS, GROUP_SHARE, LEARN_KEEP, LEARN_MS, LOSS, SCORE, SUSPECTED, TestRules,
};

/// What was sent from one host to another since it was reported last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairLoss {
    /// When, Unix milliseconds; never goes back.
    pub at_ms: u64,
    /// Index of the sender.
    pub from: usize,
    /// Index of the receiver.
    pub to: usize,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams of them that did not arrive.
    pub lost: u64,
}

/// One direction of a host: of what it sends, of what it receives.
type End = (usize, Direction);

/// The test over all hosts.
#[derive(Debug)]
pub struct LossWatch {
    names: Vec<HostName>,
    groups: Vec<GroupName>,
    group_of: Vec<Option<usize>>,
    sending: Vec<Evidence>,
    receiving: Vec<Evidence>,
    open: Vec<Open>,
    rules: &'static TestRules,
    weights: Weights,
    learned_ms: Option<u64>,
    ids: AlarmIds,
}

impl LossWatch {
    /// Of these hosts; indices are positions in the list. Alarms are numbered with those of others.
    pub fn new(members: &[Member<'_>], ids: AlarmIds) -> Self {
        Self::with_rules(members, ids, &LOSS)
    }

    /// The same by other numbers.
    pub(crate) fn with_rules(members: &[Member<'_>], ids: AlarmIds, rules: &'static TestRules) -> Self {
        let mut groups: Vec<GroupName> =
            members.iter().filter_map(|member| member.group.map(str::to_owned)).collect();
        groups.sort_unstable();
        groups.dedup();
        let group_of =
            |member: &Member<'_>| groups.iter().position(|group| Some(group.as_str()) == member.group);
        Self {
            names: members.iter().map(|member| member.name.to_owned()).collect(),
            group_of: members.iter().map(group_of).collect(),
            sending: vec![Evidence::default(); members.len()],
            receiving: vec![Evidence::default(); members.len()],
            open: Vec::new(),
            weights: Weights::of(0.0, rules),
            rules,
            learned_ms: None,
            ids,
            groups,
        }
    }

    /// Alarms that are not over.
    pub fn open(&self) -> impl Iterator<Item = &LossAlarm> {
        self.open.iter().map(|open| &open.alarm)
    }

    /// A host is not watched any more, or begins anew: what was suspected of it is not known.
    pub fn forget_host(&mut self, host: usize) {
        for direction in [Direction::Tx, Direction::Rx] {
            if host < self.names.len() {
                self.forget((host, direction));
            }
        }
    }

    /// Learns of a pair; gives what is to be done.
    pub fn learn(&mut self, seen: PairLoss) -> Vec<AlarmStep> {
        let PairLoss { at_ms, from, to, sent, lost } = seen;
        if from >= self.names.len() || to >= self.names.len() || from == to {
            return Vec::new();
        }
        self.learn_normal(at_ms);
        if let Some(at) = self.open.iter().position(|open| self.explains(open, from, to)) {
            self.open[at].learn(at_ms, sent, lost);
            let is_over = self.open[at].is_over(at_ms, self.rules);
            return is_over.then(|| AlarmStep::Closed(self.open.remove(at).alarm)).into_iter().collect();
        }
        let (weights, memory_ms) = (self.weights, self.rules.memory_ms);
        let counted = [
            self.sending[from].learn(at_ms, to, (sent, lost), weights, memory_ms),
            self.receiving[to].learn(at_ms, from, (sent, lost), weights, memory_ms),
        ];
        let ends: [End; 2] = [(from, Direction::Tx), (to, Direction::Rx)];
        let mut steps: Vec<AlarmStep> = ends
            .iter()
            .zip(counted)
            .filter(|(_, counted)| *counted)
            .map(|(end, _)| AlarmStep::Faster(end.0))
            .collect();
        if lost > 0 {
            // The one that lost more first: the other may be explained by it.
            let mut ends = ends;
            ends.sort_by_key(|end| Reverse(self.evidence(*end).lost));
            steps.extend(ends.into_iter().find_map(|end| self.judge(end, at_ms)).into_iter().flatten());
        }
        steps
    }

    fn evidence(&self, (host, direction): End) -> &Evidence {
        if direction == Direction::Tx { &self.sending[host] } else { &self.receiving[host] }
    }

    fn forget(&mut self, (host, direction): End) {
        if direction == Direction::Tx { self.sending[host].forget() } else { self.receiving[host].forget() }
    }

    /// Whether what is lost between two hosts belongs to an alarm.
    fn explains(&self, open: &Open, from: usize, to: usize) -> bool {
        let (sends, receives) = match open.suspected {
            Suspected::Host(host) => (from == host, to == host),
            Suspected::Pair(a, b) => return (from, to) == (a, b),
            Suspected::Group(group) => (self.group_of[from] == Some(group), self.group_of[to] == Some(group)),
            Suspected::All => return true,
        };
        sends && open.alarm.direction != Direction::Rx || receives && open.alarm.direction != Direction::Tx
    }

    /// The alarm of an end that has lost too much.
    fn judge(&mut self, end: End, at_ms: u64) -> Option<Vec<AlarmStep>> {
        let evidence = self.evidence(end);
        if !evidence.is_enough(at_ms, self.rules.heavy_ms) {
            return None;
        }
        let other = opposite(end.1);
        let belongs = evidence.belongs(|partner| self.evidence((partner, other)).lost > evidence.lost)?;
        let (end, suspected) = match (self.wider(end), belongs) {
            (Some(wider), _) => wider,
            (None, Belongs::ToHost) => (end, Suspected::Host(end.0)),
            (None, Belongs::ToPair(partner)) => self.one_or_several_pairs(end, partner),
        };
        Some(self.report(suspected, end, at_ms))
    }

    /// A pair; its end, where another pair of that end is reported already.
    fn one_or_several_pairs(&self, end: End, partner: usize) -> (End, Suspected) {
        let pair = if end.1 == Direction::Tx { (end.0, partner) } else { (partner, end.0) };
        for open in &self.open {
            match open.suspected {
                Suspected::Pair(from, to) if to == pair.1 && from != pair.0 => {
                    return ((to, Direction::Rx), Suspected::Host(to));
                }
                Suspected::Pair(from, to) if from == pair.0 && to != pair.1 => {
                    return ((from, Direction::Tx), Suspected::Host(from));
                }
                _ => {}
            }
        }
        (end, Suspected::Pair(pair.0, pair.1))
    }

    /// The group of a host, or all hosts, where many of them lose in the same direction; with an end of it.
    fn wider(&self, end: End) -> Option<(End, Suspected)> {
        let (host, direction) = end;
        // What others lost with this host alone is this host's, and what they lost with one that lost more
        // than they did is that one's: a host that stood still for some seconds is no loss of a whole group.
        let lost = |at: usize, direction: Direction| self.evidence((at, direction)).lost;
        let is_own = |at: usize, partner: usize| {
            at == host || partner != host && lost(partner, opposite(direction)) <= lost(at, direction)
        };
        if self.is_wide(direction, &mut (0..self.names.len()), &is_own) {
            return Some(self.one_group(direction).unwrap_or((end, Suspected::All)));
        }
        let group = self.group_of[host];
        let members = &mut (0..self.names.len()).filter(|at| self.group_of[*at] == group);
        self.is_wide(direction, members, &is_own).then_some((end, Suspected::Group(group?)))
    }

    /// Whether many of these hosts lose in a direction, by partners that count.
    fn is_wide(
        &self,
        direction: Direction,
        hosts: &mut dyn Iterator<Item = usize>,
        counts: &dyn Fn(usize, usize) -> bool,
    ) -> bool {
        let is_open = |at: usize| {
            self.open.iter().any(|open| {
                open.suspected == Suspected::Host(at)
                    && [direction, Direction::Both].contains(&open.alarm.direction)
            })
        };
        let (mut all, mut suspected) = (0_usize, 0_usize);
        for at in hosts {
            let partners = || self.evidence((at, direction)).partners();
            let is_one = self.is_suspected((at, direction)) && partners().iter().any(|one| counts(at, *one));
            all += 1;
            suspected += usize::from(is_one || is_open(at));
        }
        suspected >= GROUP_MEMBERS && suspected as f64 > GROUP_SHARE * all as f64
    }

    fn is_suspected(&self, end: End) -> bool {
        self.evidence(end).score() >= SUSPECTED * SCORE
    }

    /// The one group that nearly all losses have one end in, with the end of it that lost most: with few
    /// groups every other host has partners in it, and would be suspected too.
    fn one_group(&self, direction: Direction) -> Option<(End, Suspected)> {
        let ends = (0..self.names.len()).map(|at| (at, direction)).filter(|end| self.is_suspected(*end));
        let pairs: Vec<(usize, usize)> = ends
            .flat_map(|end| self.evidence(end).lost_with().map(move |partner| (end.0, partner)))
            .collect();
        let is_in = |host: usize, group: usize| self.group_of[host] == Some(group);
        let explains = |group: &usize| {
            let explained = pairs.iter().filter(|(a, b)| is_in(*a, *group) != is_in(*b, *group)).count();
            explained as f64 >= GROUP_EXPLAINS * pairs.len() as f64
        };
        let mut groups = (0..self.groups.len()).filter(explains);
        let group = groups.next().filter(|_| !pairs.is_empty())?;
        // Of two groups that explain it, neither is the one.
        if groups.next().is_some() {
            return None;
        }
        // Its own direction: where its partners are the ones that were judged, the other one.
        [direction, opposite(direction)].into_iter().find_map(|direction| {
            let members = || (0..self.names.len()).filter(|at| is_in(*at, group));
            let most = members().max_by_key(|at| self.evidence((*at, direction)).lost)?;
            self.is_wide(direction, &mut members(), &|_, _| true)
                .then_some(((most, direction), Suspected::Group(group)))
        })
    }

    /// Opens an alarm, or makes one wider.
    fn report(&mut self, suspected: Suspected, end: End, at_ms: u64) -> Vec<AlarmStep> {
        let evidence = self.evidence(end);
        let (sent, lost) = (evidence.sent, evidence.lost);
        let partners = evidence.partners().len();
        let since_ms = evidence.since_ms().unwrap_or(at_ms);
        for host in 0..self.names.len() {
            let is_in = match suspected {
                Suspected::Host(_) | Suspected::Pair(..) => host == end.0,
                Suspected::Group(group) => self.group_of[host] == Some(group),
                Suspected::All => true,
            };
            if is_in {
                // What its partners lost with it is explained too.
                for partner in self.evidence((host, end.1)).partners() {
                    self.forget((partner, opposite(end.1)));
                }
                self.forget((host, end.1));
            }
        }
        let is_part = |open: &Open| match (open.suspected, suspected) {
            (Suspected::Host(a), Suspected::Host(b)) | (Suspected::Group(a), Suspected::Group(b)) => a == b,
            (Suspected::Pair(a, b), Suspected::Host(host)) => {
                (if end.1 == Direction::Tx { a } else { b }) == host
            }
            (Suspected::Host(host), Suspected::Group(group)) => self.group_of[host] == Some(group),
            (_, Suspected::All) => true,
            _ => false,
        };
        let (parts, rest): (Vec<Open>, Vec<Open>) = self.open.drain(..).partition(is_part);
        self.open = rest;
        let mut parts = parts.into_iter();
        let first = parts.next();
        let direction = match (&first, suspected) {
            (Some(first), _) if first.alarm.direction != end.1 && first.suspected == suspected => {
                Direction::Both
            }
            (_, Suspected::Pair(..)) => Direction::Tx,
            _ => end.1,
        };
        let id = first.as_ref().map_or_else(|| self.ids.next(), |first| first.alarm.id);
        let alarm = LossAlarm {
            id,
            suspect: self.suspect(suspected),
            direction,
            since_ms: first.as_ref().map_or(since_ms, |first| first.alarm.since_ms.min(since_ms)),
            reported_ms: at_ms,
            sent: first.as_ref().map_or(sent, |first| first.alarm.sent.saturating_add(sent)),
            lost: first.as_ref().map_or(lost, |first| first.alarm.lost.saturating_add(lost)),
            partners,
        };
        self.open.push(Open::new(suspected, alarm.clone()));
        let reported = if first.is_some() { AlarmStep::Widened(alarm) } else { AlarmStep::Opened(alarm) };
        std::iter::once(reported).chain(parts.map(|part| AlarmStep::Closed(part.alarm))).collect()
    }

    fn suspect(&self, suspected: Suspected) -> Suspect {
        match suspected {
            Suspected::Host(host) => Suspect::Host(self.names[host].clone()),
            Suspected::Pair(from, to) => Suspect::Pair(self.names[from].clone(), self.names[to].clone()),
            Suspected::Group(group) => Suspect::Group(self.groups[group].clone()),
            Suspected::All => Suspect::All,
        }
    }

    /// Learns now and then what is normal: what half of the hosts lose.
    fn learn_normal(&mut self, at_ms: u64) {
        let learned = *self.learned_ms.get_or_insert(at_ms);
        if at_ms < learned + LEARN_MS {
            return;
        }
        self.learned_ms = Some(at_ms);
        let all = self.sending.iter_mut().chain(&mut self.receiving);
        let mut shares: Vec<f64> = all.filter_map(|one| one.share(LEARN_KEEP)).collect();
        shares.sort_by(f64::total_cmp);
        self.weights = Weights::of(shares.get(shares.len() / 2).copied().unwrap_or(0.0), self.rules);
    }
}

fn opposite(direction: Direction) -> Direction {
    if direction == Direction::Tx { Direction::Rx } else { Direction::Tx }
}
