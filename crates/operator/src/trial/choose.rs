//! What to try and where to measure it: a diagnosis, the name of a remedy and hosts in; a trial that has not
//! begun out. Pure.

use linerate_model::change::Remedy;
use linerate_model::disk_load::{DiskPhase, REQUESTS_MIN};
use linerate_model::finding::{Cell, Diagnosis, Finding, LayerScope, Metric};
use linerate_model::inventory::{GroupName, HostName, Inventory, Layer};
use linerate_model::kind::DiskPlan;
use linerate_model::plan::Test;
use linerate_model::snapshot::{Snapshot, StorageFigure, StorageSubject};
use linerate_model::trial::{Trial, TrialMeasure};
use thiserror::Error;

use super::machine::Course;
use linerate_model::drbd_bench::PHASES;

/// A pair whose throughput is below this share of its ceiling is judged by throughput even when packet sizes
/// are at fault: that is what its users feel, and what a remedy that makes packets smaller cures.
const THROUGHPUT_SUFFERS: f64 = 0.8;
/// An arm on a disk gets time for so many times the requests that a figure needs: a change may be for the
/// worse, and a disk is not equally fast all the time.
const REQUESTS_TO_SPARE: f64 = 8.0;
/// Longest time of an arm on a disk, milliseconds.
const DISK_ARM_MS_MAX: f64 = 30e3;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct TrialOptions {
    /// Id of the remedy.
    pub remedy: String,
    /// Hosts to change; empty for all that the remedy names.
    pub on: Vec<HostName>,
    /// Arms, deadline, keep, seed.
    pub course: Course,
    /// Length of one transfer in milliseconds; 0 for the default.
    pub transfer_ms: u32,
}

/// Why nothing can be tried.
#[derive(Debug, Error)]
pub enum TrialError {
    /// No cause of the diagnosis has this remedy.
    #[error("run {run} has no remedy '{id}'\nhint: {hint}")]
    UnknownRemedy {
        /// Run.
        run: String,
        /// What was asked for.
        id: String,
        /// What there is.
        hint: String,
    },
    /// People have to do it.
    #[error(
        "remedy '{id}' ({title}) cannot be applied by the program; do this by hand:\n{instruction}\nhint: then run \
             `linerate survey` again and compare with `linerate diff`"
    )]
    OnlyInstruction {
        /// Remedy.
        id: String,
        /// What it does.
        title: String,
        /// What to do.
        instruction: String,
    },
    /// The remedy changes other hosts.
    #[error("remedy '{id}' changes nothing on host {host}\nhint: it changes {}", hosts.join(", "))]
    NotOnHost {
        /// Remedy.
        id: String,
        /// What was asked for.
        host: HostName,
        /// Where it would change something.
        hosts: Vec<HostName>,
    },
    /// No pair shows the response.
    #[error(
        "remedy '{id}': no measured pair shows {what}, so that an effect could not be seen\nhint: {hint}"
    )]
    NoPair {
        /// Remedy.
        id: String,
        /// Response.
        what: String,
        /// What to do.
        hint: String,
    },
}

/// A trial that has not begun.
pub fn plan(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    options: &TrialOptions,
    id: String,
) -> Result<Trial, TrialError> {
    let (finding, mut remedy) = remedy(diagnosis, options)?;
    if let Some((host, device)) = drive_of(&remedy) {
        // One drive at a time: its own reads judge it.
        remedy
            .changes
            .retain(|change| change.host == host && device_of(&change.key) == Some(device.as_str()));
        return of_storage(snapshot, diagnosis, remedy, id);
    }
    if finding.responses.first() == Some(&Metric::Storage) || remedy.is_of_replicas() {
        return of_storage(snapshot, diagnosis, remedy, id);
    }
    let (cell, response) = affected(finding, diagnosis, &remedy, &snapshot.inventory)?;
    let pair = (cell.from.clone(), cell.to.clone());
    let control = control(cell, &finding.affected, diagnosis, &remedy, &snapshot.inventory);
    let measure = TrialMeasure { response, layer: cell.layer, pair, control };
    Ok(Trial::planned(id, diagnosis.run.clone(), remedy, measure))
}

/// The drive that a remedy changes settings of: the first, where it has several; none for any other remedy.
fn drive_of(remedy: &Remedy) -> Option<(HostName, String)> {
    let first = remedy.changes.first()?;
    Some((first.host.clone(), device_of(&first.key)?.to_owned()))
}

/// `sda` of `disk.sda.scheduler`.
fn device_of(key: &str) -> Option<&str> {
    key.strip_prefix("disk.")?.split('.').next()
}

/// The reads of a survey of drives for this one: at random offsets alone; for the read-ahead in a row and
/// through the cache, around which there is none.
fn drive_test(snapshot: &Snapshot, remedy: &Remedy) -> Option<Test> {
    let (host, device) = drive_of(remedy)?;
    let path = format!("/dev/{}", device.replace('/', "."));
    let ahead = remedy.changes.iter().any(|change| change.key.ends_with(".read_ahead_kb"));
    snapshot.samples.iter().filter(|sample| sample.test.from == host).find_map(|sample| {
        let plan = sample.test.kind.get::<DiskPlan>()?;
        let is_it = !plan.target.is_writable() && plan.target.path().to_str() == Some(path.as_str());
        let phase = plan.phases.iter().find(|phase| phase.random != ahead).filter(|_| is_it)?;
        let plan = DiskPlan { phases: vec![DiskPhase { direct: !ahead, ..*phase }], ..plan.clone() };
        Some(Test { kind: plan.into(), ..sample.test.clone() })
    })
}

/// A trial on a replicated volume or a drive: the host that writes to it, and the one that it replicates to.
/// There is no untouched pair of the same kind.
fn of_storage(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    remedy: Remedy,
    id: String,
) -> Result<Trial, TrialError> {
    let hint = match drive_of(&remedy) {
        Some((host, device)) => format!(
            "`linerate disk survey --device {device} {host}` measures the drive; then try it on that run"
        ),
        None => "`linerate drbd bench RESOURCE HOST HOST` measures where it shows; then try it on that run"
            .to_owned(),
    };
    let no_pair = || TrialError::NoPair {
        id: remedy.id.clone(),
        what: Metric::Storage.label().to_owned(),
        hint: hint.clone(),
    };
    let test = storage_test(snapshot, diagnosis, &remedy).ok_or_else(no_pair)?;
    // A drive needs no other host.
    let alone = drive_of(&remedy).map(|_| &test.from);
    let other =
        alone.or_else(|| snapshot.facts.keys().find(|host| **host != test.from)).ok_or_else(no_pair)?;
    let pair = (test.from.clone(), other.clone());
    let measure = TrialMeasure { response: Metric::Storage, layer: test.layer, pair, control: None };
    Ok(Trial::planned(id, diagnosis.run.clone(), remedy, measure))
}

/// The test of a bench of a replica that showed the finding of a remedy: its first test on the replica, with
/// the pattern of that finding alone. A setting that was only read has no figure; then it is the pattern that
/// lost most against the disk.
pub fn storage_test(snapshot: &Snapshot, diagnosis: &Diagnosis, remedy: &Remedy) -> Option<Test> {
    if drive_of(remedy).is_some() {
        return drive_test(snapshot, remedy);
    }
    let with = |f: &&Finding| f.causes.iter().any(|c| c.remedy.as_ref().is_some_and(|r| r.id == remedy.id));
    let finding = diagnosis.findings.iter().find(with)?;
    let replicated = || snapshot.storage.iter().filter(|f| f.what == StorageSubject::Replicated);
    // The finding has the figure itself.
    let is_it = |f: &&StorageFigure| f.bytes_per_s.total_cmp(&finding.measured).is_eq();
    let share = |f: &StorageFigure| {
        let disk =
            snapshot.storage.iter().find(|d| d.what == StorageSubject::LocalDisk && d.pattern == f.pattern);
        disk.map_or(1.0, |disk| f.bytes_per_s / disk.bytes_per_s)
    };
    let worst = || replicated().min_by(|a, b| share(a).total_cmp(&share(b)));
    let figure = replicated().find(is_it).or_else(worst)?;
    let (_, phase) = PHASES.iter().find(|(name, _)| *name == figure.pattern)?;
    // A bench begins with the replica; where it leaves the peer it measures the same once more.
    snapshot.samples.iter().find_map(|sample| {
        let plan = sample.test.kind.get::<DiskPlan>()?;
        let phase_ms = plan.phase_ms.max(arm_ms(phase, figure.bytes_per_s));
        let plan = DiskPlan { phases: vec![*phase], phase_ms, ..plan.clone() };
        Some(Test { kind: plan.into(), ..sample.test.clone() })
    })
}

/// Milliseconds in which a disk of this speed ends enough requests for a figure, with some to spare.
fn arm_ms(phase: &DiskPhase, bytes_per_s: f64) -> u32 {
    let bytes = REQUESTS_MIN as f64 * REQUESTS_TO_SPARE * f64::from(phase.block_bytes);
    // A speed of zero gives the longest time.
    (bytes / bytes_per_s * 1e3).min(DISK_ARM_MS_MAX) as u32
}

/// The most probable finding with this remedy, and the remedy with the changes of the wanted hosts only.
fn remedy<'a>(diagnosis: &'a Diagnosis, options: &TrialOptions) -> Result<(&'a Finding, Remedy), TrialError> {
    let offered = || {
        diagnosis.findings.iter().flat_map(|f| {
            f.causes
                .iter()
                .filter_map(move |c| Some((f, c, c.remedy.as_ref()?)))
                .map(|(f, c, r)| (f, c.probability, r))
        })
    };
    let wanted = |r: &Remedy| r.id == options.remedy;
    let on = |r: &Remedy| r.changes.iter().any(|c| options.on.is_empty() || options.on.contains(&c.host));
    let best = offered().filter(|(_, _, r)| wanted(r)).max_by(|a, b| {
        let rank = |x: &(&Finding, f64, &Remedy)| x.0.probability * x.1;
        on(a.2).cmp(&on(b.2)).then(rank(a).total_cmp(&rank(b)))
    });
    let Some((finding, _, remedy)) = best else {
        let mut ids: Vec<String> = offered().map(|(_, _, r)| r.id.clone()).collect();
        ids.sort();
        ids.dedup();
        let hint = if ids.is_empty() {
            "it has no remedies at all".to_owned()
        } else {
            format!("it has {}", ids.join(", "))
        };
        return Err(TrialError::UnknownRemedy {
            run: diagnosis.run.clone(),
            id: options.remedy.clone(),
            hint,
        });
    };
    if remedy.changes.is_empty() {
        return Err(TrialError::OnlyInstruction {
            id: remedy.id.clone(),
            title: remedy.title.clone(),
            instruction: remedy.instruction.clone(),
        });
    }
    let hosts = remedy.hosts();
    if let Some(host) = options.on.iter().find(|h| !hosts.contains(h)) {
        return Err(TrialError::NotOnHost { id: remedy.id.clone(), host: host.clone(), hosts });
    }
    let mut chosen = remedy.clone();
    chosen.changes.retain(|c| options.on.is_empty() || options.on.contains(&c.host));
    Ok((finding, chosen))
}

/// The worst affected pair and the response to measure on it.
fn affected<'a>(
    finding: &Finding,
    diagnosis: &'a Diagnosis,
    remedy: &Remedy,
    inventory: &Inventory,
) -> Result<(&'a Cell, Metric), TrialError> {
    let hit = |c: &Cell| finding.affected.iter().any(|(f, t)| *f == c.from && *t == c.to);
    let in_layer = |c: &Cell| match finding.layer {
        LayerScope::Any => true,
        LayerScope::Only(layer) => c.layer == layer,
    };
    let response = finding.responses.first().copied().unwrap_or_default();
    let reached = |c: &Cell| touches(c, remedy, inventory);
    let mut cells: Vec<&Cell> =
        diagnosis.cells.iter().filter(|c| in_layer(c) && hit(c) && reached(c)).collect();
    if cells.is_empty() {
        // The change sits on a host that no affected pair names: measure the affected pairs all the same.
        cells = diagnosis.cells.iter().filter(|c| in_layer(c) && hit(c)).collect();
    }
    if cells.is_empty() {
        cells = diagnosis.cells.iter().filter(|c| in_layer(c) && reached(c)).collect();
    }
    let worst = cells.into_iter().max_by(|a, b| effect(a, response).total_cmp(&effect(b, response)));
    let what = response.label().to_owned();
    let no_pair = |hint: &str| TrialError::NoPair { id: remedy.id.clone(), what, hint: hint.to_owned() };
    let Some(cell) = worst else { return Err(no_pair("survey again with both ends reachable")) };
    match response {
        Metric::PathMtu if cell.share.is_none_or(|s| s < THROUGHPUT_SUFFERS) => {
            Ok((cell, Metric::Throughput))
        }
        Metric::Setting | Metric::TcpOptions => Ok((cell, Metric::Throughput)),
        other => Ok((cell, other)),
    }
}

/// Whether a change of the remedy lies on the way of the pair: on one of its ends, or on the machine of one
/// of its groups.
pub(super) fn touches(cell: &Cell, remedy: &Remedy, inventory: &Inventory) -> bool {
    let machines = |host: &str| -> Vec<HostName> {
        inventory.groups_of(host).into_iter().filter_map(|g| g.machine.clone()).collect()
    };
    remedy.changes.iter().any(|c| {
        c.host == cell.from
            || c.host == cell.to
            || machines(&cell.from).contains(&c.host)
            || machines(&cell.to).contains(&c.host)
    })
}

/// How far a cell is off in a response: more is worse.
pub(super) fn effect(cell: &Cell, response: Metric) -> f64 {
    let value = match response {
        Metric::Loss => cell.loss,
        Metric::CpuCost => cell.cpu_s_per_gb,
        Metric::RttIdle => cell.rtt_idle_us,
        Metric::RttLoaded => cell.rtt_loaded_us,
        Metric::Retransmits => cell.retransmits_per_s,
        Metric::TwoState => cell.two_state_bps.map(|(a, b)| -a.min(b)),
        _ => cell.share.or(cell.throughput_bps).map(|s| -s),
    };
    value.unwrap_or(f64::MIN)
}

/// An untouched pair of the same kind: same layer, across groups or not as the affected one, and without a
/// host, a group or a machine in common with it or with the change. One without the finding, if any.
pub(super) fn control(
    affected: &Cell,
    found: &[(HostName, HostName)],
    diagnosis: &Diagnosis,
    remedy: &Remedy,
    inventory: &Inventory,
) -> Option<(HostName, HostName)> {
    let across =
        |c: &Cell| uplinks(&c.from, inventory).iter().all(|g| !uplinks(&c.to, inventory).contains(g));
    let mut taken_hosts: Vec<HostName> = vec![affected.from.clone(), affected.to.clone()];
    taken_hosts.extend(remedy.hosts());
    let mut taken: Vec<GroupName> = taken_hosts.iter().flat_map(|h| uplinks(h, inventory)).collect();
    taken.extend(
        inventory
            .groups
            .iter()
            .filter(|g| g.machine.as_ref().is_some_and(|m| taken_hosts.contains(m)))
            .map(|g| g.name.clone()),
    );
    let free =
        |h: &HostName| !taken_hosts.contains(h) && uplinks(h, inventory).iter().all(|g| !taken.contains(g));
    let hit = |c: &Cell| found.iter().any(|(f, t)| *f == c.from && *t == c.to);
    let is_seen = |c: &Cell| c.throughput_bps.is_some();
    let is_blocked = |c: &Cell| c.throughput_bps.is_some_and(|t| t <= 0.0);
    diagnosis
        .cells
        .iter()
        .filter(|c| c.layer == affected.layer && !is_blocked(c) && free(&c.from) && free(&c.to))
        .filter(|c| across(c) == across(affected))
        .max_by(|a, b| {
            // A pair that other load hid from the survey may be quiet now, and is better than none.
            let rank = |c: &Cell| (is_seen(c), !hit(c), c.two_state_bps.is_none());
            rank(a).cmp(&rank(b)).then(a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)))
        })
        .map(|c| (c.from.clone(), c.to.clone()))
}

/// Groups of a host that stand for a shared way: all but those that hold every host of the cluster.
fn uplinks(host: &str, inventory: &Inventory) -> Vec<GroupName> {
    let measured = inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).count();
    inventory
        .groups_of(host)
        .into_iter()
        .filter(|g| inventory.members(&g.name).len() < measured)
        .map(|g| g.name.clone())
        .collect()
}

/// What a pair should carry, for the rate of UDP probes.
pub fn ceiling(diagnosis: &Diagnosis, pair: &(HostName, HostName), layer: Layer) -> Option<f64> {
    let cell = diagnosis.cells.iter().find(|c| c.from == pair.0 && c.to == pair.1 && c.layer == layer)?;
    // Never more than the path was seen to carry: the probe must not make the loss that it looks for.
    match (cell.ceiling.bps, cell.throughput_bps.filter(|t| *t > 0.0)) {
        (Some(c), Some(t)) => Some(c.min(t)),
        (one, other) => one.or(other),
    }
}
