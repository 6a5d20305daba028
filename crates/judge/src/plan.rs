//! Which faults are injected where: every fault equally often, each in all labs that have a target for it,
//! healthy runs in between.
//!
//! In: options. Out: runs to come, the same for the same seed. Faults and labs come from their lists; none is
//! named here.

use std::collections::BTreeSet;

use linerate_lab::error::{LabError, Result};
use linerate_lab::faults;
use linerate_lab::faults::fault::{Fault, FaultTarget};
use linerate_lab::topology::Topology;
use linerate_model::random::Random;

use crate::options::JudgeOptions;
use crate::record::RunCategory;

/// A planned run.
pub(crate) struct Job {
    /// Number.
    pub(crate) index: usize,
    /// Lab.
    pub(crate) lab: String,
    /// Time budget of the survey.
    pub(crate) time: String,
    /// What sort of run.
    pub(crate) case: RunCategory,
    /// What is broken, and where.
    pub(crate) faults: Vec<(&'static dyn Fault, FaultTarget)>,
    /// Seed of its random choices.
    pub(crate) seed: u64,
}

/// A lab with the time budget of its survey.
struct Ground {
    name: String,
    time: String,
    topology: Topology,
}

/// Faults with their targets, and the index of the lab.
type Wanted = (RunCategory, usize, Vec<(&'static dyn Fault, FaultTarget)>);

/// All runs in their order.
pub(crate) fn plan(options: &JudgeOptions) -> Result<Vec<Job>> {
    let grounds = grounds(options)?;
    let faults = usable(options)?;
    let mut random = Random(options.seed);
    let mut deck: Vec<Wanted> = Vec::new();
    for (case, runs, fits) in [
        (RunCategory::One, options.runs, (|_, _| true) as fn(&dyn Fault, &FaultTarget) -> bool),
        (RunCategory::Beside, options.beside, |_, target| *target != FaultTarget::Everywhere),
        (RunCategory::Intermittent, options.flicker, |fault, target| {
            fault.about().outside_the_hosts && *target != FaultTarget::Everywhere
        }),
    ] {
        deck.extend(single(&grounds, &faults, case, runs, fits, &mut random)?);
    }
    for (case, runs, count) in [(RunCategory::Two, options.two, 2), (RunCategory::Three, options.three, 3)] {
        deck.extend(several(&grounds, &faults, (case, runs, count), &mut random)?);
    }
    let healthy = |i: usize| {
        let case = if i.is_multiple_of(2) { RunCategory::Healthy } else { RunCategory::HealthyBeside };
        (case, i / 2 % grounds.len(), Vec::new())
    };
    deck.extend((0..options.healthy).map(healthy));
    for (case, runs) in
        [(RunCategory::Drawn, options.grammar), (RunCategory::DrawnHarmless, options.harmless)]
    {
        // What is drawn depends on the running cluster: its seed decides.
        deck.extend((0..runs).map(|i| (case, i % grounds.len(), Vec::new())));
    }
    random.shuffle(&mut deck);
    let job = |(index, (case, ground, faults)): (usize, Wanted)| Job {
        index,
        lab: grounds[ground].name.clone(),
        time: grounds[ground].time.clone(),
        case,
        faults,
        seed: options.seed.wrapping_mul(1_000_003).wrapping_add(index as u64),
    };
    Ok(deck.into_iter().enumerate().map(job).collect())
}

fn grounds(options: &JudgeOptions) -> Result<Vec<Ground>> {
    if options.labs.is_empty() {
        return Err(LabError::Unknown("nothing to judge: no lab".into()));
    }
    let ground = |(i, name): (usize, &String)| {
        let topology = Topology::load(name)?;
        let given = options.time.get(i).or(options.time.last()).cloned();
        // Less leaves out the UDP probes, without which loss and reordering are not seen.
        let seconds = match topology.hosts().len() {
            0..=3 => 20,
            4..=6 => 28,
            7..=12 => 40,
            _ => 60,
        };
        let time = given.unwrap_or_else(|| format!("{seconds}s"));
        Ok(Ground { name: name.clone(), time, topology })
    };
    options.labs.iter().enumerate().map(ground).collect()
}

/// The wanted faults, or all that this machine can show.
fn usable(options: &JudgeOptions) -> Result<Vec<&'static dyn Fault>> {
    if !options.faults.is_empty() {
        return options.faults.iter().map(|name| faults::find(name)).collect();
    }
    let can = |f: &&&'static dyn Fault| (options.root || !f.about().needs_root) && f.unavailable().is_none();
    Ok(faults::ALL.iter().filter(can).copied().collect())
}

/// Runs with one fault: round after round through all faults, each in the next of the labs that have a target
/// for it.
fn single(
    grounds: &[Ground],
    faults: &[&'static dyn Fault],
    case: RunCategory,
    runs: usize,
    fits: fn(&dyn Fault, &FaultTarget) -> bool,
    random: &mut Random,
) -> Result<Vec<Wanted>> {
    let targets = |fault: &dyn Fault, ground: &Ground| -> Vec<FaultTarget> {
        fault.about().targets(&ground.topology).into_iter().filter(|p| fits(fault, p)).collect()
    };
    // Where each fault can go, in an order of its own.
    let mut turns: Vec<(&'static dyn Fault, Vec<usize>)> = Vec::new();
    for fault in faults {
        let mut labs: Vec<usize> =
            (0..grounds.len()).filter(|g| !targets(*fault, &grounds[*g]).is_empty()).collect();
        random.shuffle(&mut labs);
        if !labs.is_empty() {
            turns.push((*fault, labs));
        }
    }
    // Without a fault that fits, the rounds below would never end.
    if runs == 0 {
        return Ok(Vec::new());
    }
    if turns.is_empty() {
        return Err(LabError::Unknown(format!("{case:?}: none of the faults has a target in these labs")));
    }
    let mut wanted = Vec::new();
    for round in 0.. {
        random.shuffle(&mut turns);
        for (fault, labs) in &turns {
            if wanted.len() == runs {
                return Ok(wanted);
            }
            let lab = labs[round % labs.len()];
            let target = random.pick(&targets(*fault, &grounds[lab])).cloned();
            wanted.extend(target.map(|target| (case, lab, vec![(*fault, target)])));
        }
    }
    Ok(wanted)
}

/// Draws until a set of faults fits together.
const DRAWS_MAX: usize = 2000;

/// Runs of a case with `count` faults at once, labs in turn; labs in which no such faults fit are passed
/// over.
fn several(
    grounds: &[Ground],
    faults: &[&'static dyn Fault],
    (case, runs, count): (RunCategory, usize, usize),
    random: &mut Random,
) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let mut labs: Vec<usize> = (0..grounds.len()).collect();
    while wanted.len() < runs {
        labs.retain(|lab| {
            if wanted.len() == runs {
                return true;
            }
            let together =
                (0..DRAWS_MAX).find_map(|_| together(&grounds[*lab].topology, faults, count, random));
            let found = together.is_some();
            wanted.extend(together.map(|faults| (case, *lab, faults)));
            found
        });
        if labs.is_empty() {
            return Err(LabError::Unknown(format!("no {count} of the faults fit into one of these labs")));
        }
    }
    Ok(wanted)
}

/// Different faults at random targets. They do not touch the same machine and leave at least half of the
/// hosts healthy: with fewer healthy hosts it is undecidable which half is the bad one.
fn together(
    topology: &Topology,
    faults: &[&'static dyn Fault],
    count: usize,
    random: &mut Random,
) -> Option<Vec<(&'static dyn Fault, FaultTarget)>> {
    let machines = |hosts: &BTreeSet<String>| -> BTreeSet<usize> {
        topology.hosts().into_iter().filter(|h| hosts.contains(&h.name)).map(|h| h.hypervisor).collect()
    };
    let mut drawn: Vec<(&'static dyn Fault, FaultTarget)> = Vec::new();
    let (mut hosts, mut taken) = (0, BTreeSet::new());
    for _ in 0..count {
        let fault = *random.pick(faults)?;
        let target = random.pick(&fault.about().targets(topology)).cloned()?;
        let touched = touched(topology, &target);
        let mine = machines(&touched);
        hosts += touched.len();
        let is_new = drawn.iter().all(|(other, _)| other.about().name != fault.about().name);
        if !is_new || !mine.is_disjoint(&taken) || 2 * hosts > topology.hosts().len() {
            return None;
        }
        taken.extend(mine);
        drawn.push((fault, target));
    }
    Some(drawn)
}

/// The hosts whose traffic a fault at this target harms.
pub(crate) fn touched(topology: &Topology, target: &FaultTarget) -> BTreeSet<String> {
    let on = |names: &[&String]| {
        let named = topology.hypervisors.iter().filter(|h| names.contains(&&h.name));
        named.flat_map(|h| h.hosts.clone()).collect()
    };
    match target {
        FaultTarget::Host(host) => BTreeSet::from([host.clone()]),
        FaultTarget::Pair(a, b) => BTreeSet::from([a.clone(), b.clone()]),
        FaultTarget::Hypervisor(name) => on(&[name]),
        FaultTarget::Between(a, b) => on(&[a, b]),
        FaultTarget::Everywhere => topology.hosts().into_iter().map(|h| h.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn options() -> JudgeOptions {
        JudgeOptions {
            runs: 4 * faults::ALL.len(),
            healthy: 5,
            two: 9,
            three: 5,
            beside: 7,
            flicker: 6,
            seed: 3,
            labs: linerate_lab::topology::BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
            ..JudgeOptions::default()
        }
    }

    fn names(options: &JudgeOptions) -> Vec<(String, RunCategory, Vec<String>)> {
        let target = |(fault, target): &(&'static dyn Fault, FaultTarget)| {
            format!("{} at {target}", fault.about().name)
        };
        let jobs = plan(options).unwrap();
        jobs.iter().map(|j| (j.lab.clone(), j.case, j.faults.iter().map(target).collect())).collect()
    }

    #[test]
    fn a_fault_that_fits_no_other_sort_of_run_still_makes_a_plan() {
        let faults = vec!["sack-off".to_owned()];
        let options = JudgeOptions {
            runs: 2,
            healthy: 0,
            two: 0,
            three: 0,
            beside: 0,
            flicker: 0,
            faults,
            ..options()
        };
        assert_eq!(plan(&options).unwrap().len(), 2);
    }

    #[test]
    fn the_plan_is_fair_and_repeatable() {
        assert_eq!(names(&options()), names(&options()));
        assert_ne!(names(&options()), names(&JudgeOptions { seed: 4, ..options() }));
        let (mut faults, mut cases): (BTreeMap<_, usize>, BTreeMap<_, usize>) = Default::default();
        for job in plan(&options()).unwrap() {
            *cases.entry(job.case).or_default() += 1;
            if job.case == RunCategory::One {
                *faults.entry(job.faults[0].0.about().name).or_default() += 1;
            }
        }
        assert!(faults.values().all(|n| (4..=6).contains(n)), "{faults:?}");
        assert!(!faults.contains_key("cpu-starved"), "it needs root");
        let count = |case| cases.get(&case).copied();
        assert_eq!(
            [
                count(RunCategory::Two),
                count(RunCategory::Three),
                count(RunCategory::Beside),
                count(RunCategory::Intermittent)
            ],
            [Some(9), Some(5), Some(7), Some(6)]
        );
        assert_eq!([count(RunCategory::Healthy), count(RunCategory::HealthyBeside)], [Some(3), Some(2)]);
    }

    #[test]
    fn faults_at_once_never_share_a_machine_and_leave_half_of_the_hosts_alone() {
        let mut seen = BTreeSet::new();
        for job in plan(&options()).unwrap().iter().filter(|j| j.faults.len() > 1) {
            let topology = Topology::load(&job.lab).unwrap();
            let hosts: Vec<_> = job.faults.iter().map(|(_, target)| touched(&topology, target)).collect();
            let all: usize = hosts.iter().map(BTreeSet::len).sum();
            assert_eq!(hosts.iter().flatten().collect::<BTreeSet<_>>().len(), all, "{hosts:?}");
            assert!(2 * all <= topology.hosts().len(), "{hosts:?}");
            let names: BTreeSet<_> = job.faults.iter().map(|(fault, _)| fault.about().name).collect();
            assert_eq!(names.len(), job.faults.len());
            seen.insert((job.case, names.len()));
        }
        assert_eq!(seen, BTreeSet::from([(RunCategory::Two, 2), (RunCategory::Three, 3)]));
        let small = JudgeOptions { labs: vec!["three".into()], ..options() };
        assert!(plan(&small).err().unwrap().to_string().contains("no 2 of"));
    }
}
