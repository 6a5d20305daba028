//! Which faults are put where: every fault equally often, each in all labs that have a place for it, healthy runs in between.
//!
//! In: options. Out: runs to come, the same for the same seed. Faults and labs come from their lists; none is named here.

use std::collections::BTreeSet;

use super::Options;
use super::record::Case;
use crate::error::{LabError, Result};
use crate::faults::{self, Fault, Place};
use crate::random::Random;
use crate::topology::Topology;

/// One run to come.
pub(super) struct Job {
    /// Number.
    pub(super) index: usize,
    /// Lab.
    pub(super) lab: String,
    /// Time budget of the survey.
    pub(super) time: String,
    /// What sort of run.
    pub(super) case: Case,
    /// What is broken, and where.
    pub(super) faults: Vec<(&'static dyn Fault, Place)>,
    /// Seed of everything that is left to chance in it.
    pub(super) seed: u64,
}

/// A lab with the time that its survey gets.
struct Ground {
    name: String,
    time: String,
    topology: Topology,
}

/// A fault in a lab, without its place.
type Wanted = (Case, usize, Vec<(&'static dyn Fault, Place)>);

/// All runs in their order.
pub(super) fn plan(options: &Options) -> Result<Vec<Job>> {
    let grounds = grounds(options)?;
    let faults = usable(options)?;
    let mut random = Random::new(options.seed);
    let mut deck: Vec<Wanted> = Vec::new();
    for (case, runs, fits) in [
        (Case::One, options.runs, (|_, _| true) as fn(&dyn Fault, &Place) -> bool),
        (Case::Beside, options.beside, |_, place| *place != Place::Everywhere),
        (Case::ComesAndGoes, options.flicker, |fault, place| {
            fault.about().outside_the_hosts && *place != Place::Everywhere
        }),
    ] {
        deck.extend(single(&grounds, &faults, case, runs, fits, &mut random)?);
    }
    deck.extend(double(&grounds, &faults, options.two, &mut random)?);
    let healthy = |i: usize| {
        let case = if i.is_multiple_of(2) { Case::Healthy } else { Case::HealthyBeside };
        (case, i / 2 % grounds.len(), Vec::new())
    };
    deck.extend((0..options.healthy).map(healthy));
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

fn grounds(options: &Options) -> Result<Vec<Ground>> {
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
fn usable(options: &Options) -> Result<Vec<&'static dyn Fault>> {
    if !options.faults.is_empty() {
        return options.faults.iter().map(|name| faults::find(name)).collect();
    }
    let can = |f: &&&'static dyn Fault| (options.root || !f.about().needs_root) && f.unavailable().is_none();
    Ok(faults::ALL.iter().filter(can).copied().collect())
}

/// Runs with one fault: round after round through all faults, each in the next of the labs that have a place for it.
fn single(
    grounds: &[Ground],
    faults: &[&'static dyn Fault],
    case: Case,
    runs: usize,
    fits: fn(&dyn Fault, &Place) -> bool,
    random: &mut Random,
) -> Result<Vec<Wanted>> {
    let places = |fault: &dyn Fault, ground: &Ground| -> Vec<Place> {
        fault.about().places(&ground.topology).into_iter().filter(|p| fits(fault, p)).collect()
    };
    // Where each fault can go, in an order of its own.
    let mut turns: Vec<(&'static dyn Fault, Vec<usize>)> = Vec::new();
    for fault in faults {
        let mut labs: Vec<usize> =
            (0..grounds.len()).filter(|g| !places(*fault, &grounds[*g]).is_empty()).collect();
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
        return Err(LabError::Unknown(format!("{case:?}: none of the faults has a place in these labs")));
    }
    let mut wanted = Vec::new();
    for round in 0.. {
        random.shuffle(&mut turns);
        for (fault, labs) in &turns {
            if wanted.len() == runs {
                return Ok(wanted);
            }
            let lab = labs[round % labs.len()];
            let place = random.pick(&places(*fault, &grounds[lab])).cloned();
            wanted.extend(place.map(|place| (case, lab, vec![(*fault, place)])));
        }
    }
    Ok(wanted)
}

/// Draws until a couple fits.
const DRAWS_MAX: usize = 2000;

/// Runs with two faults at once, labs in turn; labs in which no couple fits are passed over.
fn double(
    grounds: &[Ground],
    faults: &[&'static dyn Fault],
    runs: usize,
    random: &mut Random,
) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    let mut labs: Vec<usize> = (0..grounds.len()).collect();
    while wanted.len() < runs {
        labs.retain(|lab| {
            if wanted.len() == runs {
                return true;
            }
            let couple = (0..DRAWS_MAX).find_map(|_| couple(&grounds[*lab].topology, faults, random));
            let found = couple.is_some();
            wanted.extend(couple.map(|couple| (Case::Two, *lab, couple)));
            found
        });
        if labs.is_empty() {
            return Err(LabError::Unknown("no two of the faults fit into one of these labs".into()));
        }
    }
    Ok(wanted)
}

/// Two different faults at random places that do not touch the same machine and leave at least half of the hosts alone: with
/// fewer healthy hosts nobody could say which half is the sick one.
fn couple(
    topology: &Topology,
    faults: &[&'static dyn Fault],
    random: &mut Random,
) -> Option<Vec<(&'static dyn Fault, Place)>> {
    let mut draw = || {
        let fault = *random.pick(faults)?;
        Some((fault, random.pick(&fault.about().places(topology)).cloned()?))
    };
    let (one, other) = (draw()?, draw()?);
    let (mine, theirs) = (touched(topology, &one.1), touched(topology, &other.1));
    let machines = |hosts: &BTreeSet<String>| -> BTreeSet<usize> {
        topology.hosts().into_iter().filter(|h| hosts.contains(&h.name)).map(|h| h.hypervisor).collect()
    };
    let fits = one.0.about().name != other.0.about().name
        && machines(&mine).is_disjoint(&machines(&theirs))
        && 2 * (mine.len() + theirs.len()) <= topology.hosts().len();
    fits.then(|| vec![one, other])
}

/// The hosts whose traffic a fault at this place harms.
pub(super) fn touched(topology: &Topology, place: &Place) -> BTreeSet<String> {
    let on = |names: &[&String]| {
        let named = topology.hypervisors.iter().filter(|h| names.contains(&&h.name));
        named.flat_map(|h| h.hosts.clone()).collect()
    };
    match place {
        Place::Host(host) => BTreeSet::from([host.clone()]),
        Place::Pair(a, b) => BTreeSet::from([a.clone(), b.clone()]),
        Place::Hypervisor(name) => on(&[name]),
        Place::Between(a, b) => on(&[a, b]),
        Place::Everywhere => topology.hosts().into_iter().map(|h| h.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn options() -> Options {
        Options {
            runs: 4 * faults::ALL.len(),
            healthy: 5,
            two: 9,
            beside: 7,
            flicker: 6,
            seed: 3,
            labs: crate::topology::BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
            ..Options::default()
        }
    }

    fn names(options: &Options) -> Vec<(String, Case, Vec<String>)> {
        let place =
            |(fault, place): &(&'static dyn Fault, Place)| format!("{} at {place}", fault.about().name);
        let jobs = plan(options).unwrap();
        jobs.iter().map(|j| (j.lab.clone(), j.case, j.faults.iter().map(place).collect())).collect()
    }

    #[test]
    fn a_fault_that_fits_no_other_sort_of_run_still_makes_a_plan() {
        let faults = vec!["sack-off".to_owned()];
        let options = Options { runs: 2, healthy: 0, two: 0, beside: 0, flicker: 0, faults, ..options() };
        assert_eq!(plan(&options).unwrap().len(), 2);
    }

    #[test]
    fn the_plan_is_fair_and_repeatable() {
        assert_eq!(names(&options()), names(&options()));
        assert_ne!(names(&options()), names(&Options { seed: 4, ..options() }));
        let (mut faults, mut cases): (BTreeMap<_, usize>, BTreeMap<_, usize>) = Default::default();
        for job in plan(&options()).unwrap() {
            *cases.entry(job.case).or_default() += 1;
            if job.case == Case::One {
                *faults.entry(job.faults[0].0.about().name).or_default() += 1;
            }
        }
        assert!(faults.values().all(|n| (4..=6).contains(n)), "{faults:?}");
        assert!(!faults.contains_key("cpu-starved"), "it needs root");
        let count = |case| cases.get(&case).copied();
        assert_eq!(
            [count(Case::Two), count(Case::Beside), count(Case::ComesAndGoes)],
            [Some(9), Some(7), Some(6)]
        );
        assert_eq!([count(Case::Healthy), count(Case::HealthyBeside)], [Some(3), Some(2)]);
    }

    #[test]
    fn two_faults_never_share_a_machine_and_leave_half_of_the_hosts_alone() {
        for job in plan(&options()).unwrap().iter().filter(|j| j.case == Case::Two) {
            let topology = Topology::load(&job.lab).unwrap();
            let hosts: Vec<_> = job.faults.iter().map(|(_, place)| touched(&topology, place)).collect();
            assert!(hosts[0].is_disjoint(&hosts[1]), "{hosts:?}");
            assert!(2 * (hosts[0].len() + hosts[1].len()) <= topology.hosts().len(), "{hosts:?}");
            assert_ne!(job.faults[0].0.about().name, job.faults[1].0.about().name);
        }
        let small = Options { labs: vec!["three".into()], ..options() };
        assert!(plan(&small).err().unwrap().to_string().contains("no two"));
    }
}
