//! Settings that are worth a finding although nothing was measured of them: causes marked `static`. Never for
//! a host that a measured finding already speaks of, unless no loss between hosts comes from the cause; and
//! never for differences that no cause knows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use linerate_knowledge::{Cause, FactTest, Knowledge, LayerFit, Op, SuspectKind, features};
use linerate_model::fact::FactValue;
use linerate_model::finding::{Direction, LayerScope, Suspect};
use linerate_model::inventory::Group;
use linerate_model::snapshot::Snapshot;

use super::gathered::{Wrong, gathered};
use crate::attribute::{self, Subjects, SuspectContext, shape, subjects};
use crate::context::Context;

/// All wrong settings of hosts and machines that `covered` does not name, and those that stand apart from it.
pub(crate) fn wrong<'k>(
    context: &Context<'_>,
    knowledge: &'k Knowledge,
    covered: &dyn Fn(&str) -> bool,
) -> Vec<Wrong<'k>> {
    let inventory = &context.facts.snapshot.inventory;
    let ground = Ground::new(context, knowledge);
    let causes: Vec<&Cause> = knowledge.causes().filter(|c| c.is_static).collect();
    let mut of_hosts = at_hosts(context, &ground, &causes, covered);
    let mut found = Vec::new();
    for (number, cause) in causes.into_iter().enumerate() {
        if cause.symptom.suspects.contains(&SuspectKind::All) {
            let all = Suspicion::of(context, &ground, Suspect::All, Direction::Both);
            if let Some(everywhere) = at(context, &ground, cause, &all) {
                found.push(everywhere);
                continue;
            }
        }
        if is_of_groups(cause) {
            let uncovered = |g: &&Group| g.machine.as_deref().is_some_and(|m| !covered(m));
            for group in inventory.groups.iter().filter(uncovered) {
                let suspect = Suspect::Group(group.name.clone());
                found.extend(at(
                    context,
                    &ground,
                    cause,
                    &Suspicion::of(context, &ground, suspect, direction_of(cause)),
                ));
            }
        } else {
            let hit = of_hosts.remove(&number).unwrap_or_default();
            let hit = if cause.is_independent() { once_per_kernel(context.facts.snapshot, hit) } else { hit };
            found.extend(gathered(hit, inventory.hosts.len(), &context.facts.rules.merge));
        }
    }
    found.sort_by(|a, b| b.scored.score.total_cmp(&a.scored.score));
    found
}

/// Whether a cause can sit in one host, or one pair, or be reported there.
fn is_of_one(cause: &Cause) -> bool {
    !is_of_groups(cause) && cause.symptom.suspects.iter().any(|e| *e != SuspectKind::All)
}

/// Whether a cause sits in groups alone, never in a host.
fn is_of_groups(cause: &Cause) -> bool {
    cause.symptom.suspects.iter().all(|e| e.is_group())
}

/// What is wrong at single hosts, by the number of its cause and in the order of the hosts. Host by host, for
/// whose facts count at one is the same for every cause.
fn at_hosts<'k>(
    context: &Context<'_>,
    ground: &Ground<'_>,
    causes: &[&'k Cause],
    covered: &dyn Fn(&str) -> bool,
) -> BTreeMap<usize, Vec<Wrong<'k>>> {
    let inventory = &context.facts.snapshot.inventory;
    let machines: BTreeSet<&str> = inventory.groups.iter().filter_map(|g| g.machine.as_deref()).collect();
    let mut found: BTreeMap<usize, Vec<Wrong<'k>>> = BTreeMap::new();
    for host in &inventory.hosts {
        // Imported evidence may be facts alone, of hosts between which nobody measured.
        let counts = !host.endpoints.is_empty() || !machines.contains(host.name.as_str());
        let is_covered = covered(&host.name);
        let mut suspicions: Vec<Suspicion<'_>> = Vec::new();
        for (number, cause) in causes.iter().enumerate().filter(|(_, c)| is_of_one(c)) {
            let apart = cause.is_independent();
            // Through a machine it may be everywhere at once; where nothing is measured it is a host like any
            // other.
            let of_machines = apart && cause.symptom.suspects.iter().any(|e| e.is_group());
            if !(of_machines || counts) || (is_covered && !apart) {
                continue;
            }
            let direction = direction_of(cause);
            let known = suspicions.iter().position(|s| s.direction == direction);
            let known = known.unwrap_or_else(|| {
                let suspect = Suspect::Host(host.name.clone());
                let mut suspicion = Suspicion::of(context, ground, suspect, direction);
                suspicion.subjects.suspects.retain(|h| *h == host.name);
                suspicions.push(suspicion);
                suspicions.len() - 1
            });
            if let Some(wrong) = at(context, ground, cause, &suspicions[known]) {
                found.entry(number).or_default().push(wrong);
            }
        }
    }
    found
}

/// A location that may have a wrong setting.
struct Suspicion<'a> {
    suspect: Suspect,
    direction: Direction,
    /// The rows that a setting there may have harmed.
    rows: Vec<usize>,
    subjects: Subjects<'a>,
}

impl<'a> Suspicion<'a> {
    fn of(context: &Context<'a>, ground: &Ground<'_>, suspect: Suspect, direction: Direction) -> Self {
        let rows = ground.rows(&suspect, direction);
        let subjects = subjects(context, &suspect, &rows);
        Self { suspect, direction, rows, subjects }
    }
}

/// Beginning of the keys of block devices: the kernel's, not those of a namespace or container.
const DEVICES: &str = "disk.";

/// Of hosts that show the same block devices of the same machine, one: the machine where it is among them,
/// else the first.
///
/// Namespaces and containers see the `/sys/block` of their machine, so that one volume would be a finding of
/// each of them. Facts of other topics may be each host's own, although they are alike.
fn once_per_kernel<'k>(snapshot: &Snapshot, hit: Vec<Wrong<'k>>) -> Vec<Wrong<'k>> {
    let mut kept: Vec<(String, Wrong<'k>)> = Vec::new();
    // Machine and devices, and who stands for them: of thousands of hosts all may be hit.
    let mut seen: HashMap<(&str, String), usize> = HashMap::new();
    for wrong in hit {
        let Suspect::Host(host) = wrong.suspect.clone() else { continue };
        let shown = devices(snapshot, &host, &wrong);
        let machines = if shown.is_empty() { Vec::new() } else { kernels(snapshot, &host, &wrong, &shown) };
        let text: Vec<String> = shown.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let text = text.join("\n");
        let before = machines.iter().find_map(|machine| seen.get(&(*machine, text.clone())).copied());
        let at = before.unwrap_or(kept.len());
        for machine in &machines {
            seen.entry((*machine, text.clone())).or_insert(at);
        }
        if before.is_none() {
            kept.push((host, wrong));
            continue;
        }
        let groups = snapshot.inventory.groups_of(&kept[at].0);
        if groups.iter().any(|group| group.machine.as_deref() == Some(host.as_str())) {
            kept[at] = (host, wrong);
        }
    }
    kept.into_iter().map(|(_, wrong)| wrong).collect()
}

/// All facts of the block devices of which something is wrong at a host; none where anything else is wrong
/// too.
fn devices<'a>(snapshot: &'a Snapshot, host: &str, wrong: &Wrong<'_>) -> Vec<(&'a str, &'a FactValue)> {
    let hits = &wrong.scored.hits;
    if !hits.iter().all(|hit| hit.key.starts_with(DEVICES)) {
        return Vec::new();
    }
    // `disk.md0.` of `disk.md0.failed_legs`.
    let start = |key: &str| key.rfind('.').map_or(0, |at| at + 1);
    let starts: Vec<&str> = hits.iter().map(|hit| &hit.key[..start(&hit.key)]).collect();
    let readings = snapshot.facts.get(host).into_iter().flat_map(|facts| facts.readings.iter());
    let shown = readings.filter(|(key, _)| starts.iter().any(|start| key.starts_with(*start)));
    shown.map(|(key, value)| (key.as_str(), value)).collect()
}

/// Machines whose kernel a host may share, itself among them. One that has other devices has another kernel:
/// its hosts are virtual machines.
fn kernels<'a>(
    snapshot: &'a Snapshot,
    host: &str,
    wrong: &Wrong<'_>,
    shown: &[(&str, &FactValue)],
) -> Vec<&'a str> {
    let is_hit = |key: &str| wrong.scored.hits.iter().any(|hit| hit.key == key);
    let shares = |machine: &&str| {
        let Some(facts) = snapshot.facts.get(*machine) else { return true };
        // What is wrong may be hidden there from those without rights; what the device is may not.
        let same = |(key, value): &(&str, &FactValue)| is_hit(key) || facts.readings.get(key) == Some(*value);
        !facts.readings.iter().any(|(key, _)| key.starts_with(DEVICES)) || shown.iter().all(same)
    };
    let groups = snapshot.inventory.groups_of(host);
    let above = groups.into_iter().filter_map(|group| group.machine.as_deref()).filter(shares);
    let own = snapshot.inventory.host(host).map(|host| host.name.as_str());
    own.into_iter().chain(above).collect()
}

fn direction_of(cause: &Cause) -> Direction {
    match cause.symptom.suspects.first() {
        Some(SuspectKind::HostTx | SuspectKind::GroupTx) => Direction::Tx,
        Some(SuspectKind::HostRx | SuspectKind::GroupRx) => Direction::Rx,
        _ => Direction::Both,
    }
}

/// The cause at one location.
fn at<'k>(
    context: &Context<'_>,
    ground: &Ground<'_>,
    cause: &'k Cause,
    suspicion: &Suspicion<'_>,
) -> Option<Wrong<'k>> {
    use linerate_model::inventory::Layer;
    let Suspicion { suspect, direction, rows, subjects } = suspicion;
    let direction = *direction;
    let layer = match cause.symptom.layers {
        LayerFit::OverlayOnly => LayerScope::Only(Layer::Overlay),
        LayerFit::UnderlayOnly => LayerScope::Only(Layer::Underlay),
        _ => LayerScope::Any,
    };
    let mut location = SuspectContext::read(suspect, direction, layer, &ground.frame, subjects);
    // The values are looked at only where a fact is suspicious: of thousands of hosts nearly none.
    let counted = counts(cause) && ground.counted(cause, &location.subjects.suspects);
    if !counted && !attribute::possible(&context.facts, &location, cause) {
        return None;
    }
    let shape = looks_at_shape(cause)
        .then(|| shape::of(&context.facts, &context.cells, &context.rows, rows, &location.subjects.suspects));
    if let Some(shape) = &shape {
        location.shape = shape;
    }
    let scored = attribute::score(&context.facts, &location, cause)?;
    let rules = &context.facts.rules.attribute;
    // What stands for every host has to be found on most of them.
    let everywhere = *suspect != Suspect::All || {
        let hosts: BTreeSet<&str> = scored.hits.iter().map(|h| h.host.as_str()).collect();
        hosts.len() as f64 > rules.everywhere_min * location.subjects.suspects.len() as f64
    };
    // Without a fact, or a counter that moved, there is no wrong setting.
    let direction = scored.direction_of_hooks().unwrap_or(direction);
    (everywhere && (counted || !scored.hits.is_empty()) && scored.score > rules.setting_score_min)
        .then_some(Wrong { suspect: suspect.clone(), direction, layer, scored })
}

/// Whether a cause cannot be without the growth of a counter: then that is worth a finding also where no loss
/// was measured.
fn counts(cause: &Cause) -> bool {
    cause.shape.iter().any(|t| t.required && features::counter(&t.value).is_some())
}

/// Whether a cause asks for measured values at all; most settings speak for themselves.
fn looks_at_shape(cause: &Cause) -> bool {
    let of_rate = |op: Op| matches!(op, Op::WindowBinds | Op::WindowAmple | Op::RateBinds);
    let asks = |tests: &[FactTest]| tests.iter().any(|t| of_rate(t.op));
    !cause.shape.is_empty() || asks(&cause.indicators) || asks(&cause.excludes)
}

/// What is the same for every host, made once.
struct Ground<'b> {
    /// Rows in which a host sends, and in which it receives.
    of_host: HashMap<&'b str, [Vec<usize>; 2]>,
    all: Vec<usize>,
    frame: shape::Shape,
    /// Counters that moved at a host.
    moved: BTreeMap<&'b str, BTreeSet<&'b str>>,
}

impl<'b> Ground<'b> {
    fn new<'a: 'b>(context: &Context<'a>, knowledge: &Knowledge) -> Self {
        let mut of_host: HashMap<&str, [Vec<usize>; 2]> = HashMap::new();
        for (i, row) in context.rows.iter().enumerate() {
            let cell = &context.cells[row.cell];
            of_host.entry(cell.from).or_default()[0].push(i);
            of_host.entry(cell.to).or_default()[1].push(i);
        }
        let moved = moved(context.facts.snapshot, knowledge, context.facts.rules.evidence.moment_ms);
        Self {
            of_host,
            all: (0..context.rows.len()).collect(),
            frame: shape::frame(&context.facts, &context.cells),
            moved,
        }
    }

    /// Whether a counter that the cause cannot be without moved at one of the hosts.
    fn counted(&self, cause: &Cause, hosts: &[&str]) -> bool {
        let patterns = cause.shape.iter().filter(|t| t.required).filter_map(|t| features::counter(&t.value));
        let mut keys = hosts.iter().filter_map(|host| self.moved.get(host)).flatten();
        let patterns: Vec<&str> = patterns.collect();
        keys.any(|key| patterns.iter().any(|p| linerate_knowledge::keys::pattern_fits(p, key)))
    }

    /// The rows that a setting at a location may have harmed.
    fn rows(&self, suspect: &Suspect, direction: Direction) -> Vec<usize> {
        let Suspect::Host(host) = suspect else { return self.all.clone() };
        let Some([tx, rx]) = self.of_host.get(host.as_str()) else { return Vec::new() };
        match direction {
            Direction::Tx => tx.clone(),
            Direction::Rx => rx.clone(),
            Direction::Both => {
                let both: BTreeSet<usize> = tx.iter().chain(rx).copied().collect();
                both.into_iter().collect()
            }
        }
    }
}

/// First and last of the times at which something was seen.
#[derive(Clone, Copy)]
struct Seen(u64, u64);

impl Seen {
    fn at(ms: u64) -> Self {
        Self(ms, ms)
    }

    fn again(&mut self, at_ms: u64) {
        *self = Self(self.0.min(at_ms), self.1.max(at_ms));
    }

    fn is_long(self, moment_ms: u64) -> bool {
        self.1 - self.0 >= moment_ms
    }
}

/// Counters that moved at each host, as far as a static cause cannot be without them. One that moved for a
/// moment, in a series of tests that was longer, is no state of the host.
fn moved<'b>(
    snapshot: &'b Snapshot,
    knowledge: &Knowledge,
    moment_ms: u64,
) -> BTreeMap<&'b str, BTreeSet<&'b str>> {
    let causes = knowledge.causes().filter(|c| c.is_static);
    let tests = causes.flat_map(|c| &c.shape).filter(|t| t.required);
    let patterns: Vec<&str> = tests.filter_map(|t| features::counter(&t.value)).collect();
    if patterns.is_empty() {
        return BTreeMap::new();
    }
    let mut tested: HashMap<&str, Seen> = HashMap::new();
    let mut moved: BTreeMap<&str, BTreeMap<&str, Seen>> = BTreeMap::new();
    // The same few hundred names come back in every sample.
    let mut known: HashMap<&str, bool> = HashMap::new();
    for sample in &snapshot.samples {
        for (host, counters) in
            [(&sample.test.from, &sample.tx_counters), (&sample.test.to, &sample.rx_counters)]
        {
            let at_ms = sample.start_ms;
            tested.entry(host).and_modify(|seen| seen.again(at_ms)).or_insert(Seen::at(at_ms));
            for (key, _) in counters.iter().filter(|(_, delta)| **delta > 0) {
                let fits =
                    |key: &str| patterns.iter().any(|p| linerate_knowledge::keys::pattern_fits(p, key));
                if *known.entry(key).or_insert_with(|| fits(key)) {
                    let of_host = moved.entry(host).or_default();
                    of_host.entry(key).and_modify(|seen| seen.again(at_ms)).or_insert(Seen::at(at_ms));
                }
            }
        }
    }
    let states = |(host, keys): (&'b str, BTreeMap<&'b str, Seen>)| {
        let short = tested.get(host).is_none_or(|span| !span.is_long(moment_ms));
        (
            host,
            keys.into_iter()
                .filter(|(_, seen)| short || seen.is_long(moment_ms))
                .map(|(key, _)| key)
                .collect(),
        )
    };
    moved.into_iter().map(states).collect()
}
