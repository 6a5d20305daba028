//! The waves of a rollout: host by host, each step in the journal of its wave before it is taken. A wave ends
//! with its first host that is harmed, undecided or failed, and is undone as a whole; earlier waves stay.

use linerate_kept::profile::{ProfileHost, readings};
use linerate_kept::rollout::{HostResult, Rollout, RolloutWave, WaveStatus};
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Trial, TrialStatus};

use super::super::profile::read_facts_of;
use super::super::sequence::{Sequence, is_interrupted};
use super::super::watcher::{self, Watcher, takes_part};
use linerate_fleet::Fleet;
use linerate_fleet::changes::FleetChanges;
use linerate_fleet::progress::Progress;
use linerate_operator::trial::drive::Scene;
use linerate_operator::trial::machine::{Course, KeepWhen};
use linerate_operator::trial::profile::{nic_of, rtt_of};
use linerate_operator::trial::rollout::{HostStart, start};
use linerate_operator::trial::{self as trials, FleetActions};
use linerate_store::{Rollouts, Store, StoreError};

/// Measurements of a host at most, when an undecided one is measured again.
const ARMS_MAX: usize = 64;

/// What the waves are made with.
pub(super) struct Waves<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) snapshot: &'a Snapshot,
    pub(super) diagnosis: &'a Diagnosis,
    /// Length of one transfer, milliseconds; 0 for the default.
    pub(super) transfer_ms: u32,
    pub(super) store: &'a Store,
    pub(super) rollouts: &'a Rollouts,
    pub(super) progress: &'a dyn Progress,
}

/// The waves as their journals have them; those without one are planned.
pub(super) fn journal(rollouts: &Rollouts, rollout: &Rollout) -> anyhow::Result<Vec<RolloutWave>> {
    let mut waves = Vec::new();
    for (number, hosts) in (1..).zip(&rollout.waves) {
        let known = rollouts.load_wave(&rollout.id, number)?;
        waves.push(known.unwrap_or_else(|| RolloutWave::planned(number, hosts)));
    }
    Ok(waves)
}

impl Waves<'_> {
    /// Makes the waves that are left, up to the first that is undone, or an interrupt. Returns all of them.
    /// Beside them the error that ended them: what was done on hosts is printed before it.
    pub(super) async fn run(&self) -> anyhow::Result<(Vec<RolloutWave>, anyhow::Result<()>)> {
        let mut waves = journal(self.rollouts, self.rollout)?;
        let mut ended = Ok(());
        for wave in &mut waves {
            if wave.status == WaveStatus::Done {
                continue;
            }
            ended = self.wave(wave).await;
            if ended.is_err() || wave.status != WaveStatus::Done {
                break;
            }
        }
        Ok((waves, ended))
    }

    fn save(&self, wave: &RolloutWave) -> anyhow::Result<()> {
        Ok(self.rollouts.save_wave(&self.rollout.id, wave.number, wave)?)
    }

    async fn wave(&self, wave: &mut RolloutWave) -> anyhow::Result<()> {
        if wave.is_to_be_undone() {
            // It ended between the host that stops it and its undo.
            return self.undo_all(wave).await;
        }
        wave.status = WaveStatus::Running;
        self.save(wave)?;
        for at in wave.left() {
            let ended = self.host(wave, at).await;
            let saved = self.save(wave);
            if wave.hosts[at].result.stops() {
                // First the hosts, whatever could not be written.
                let undone = self.undo_all(wave).await;
                return ended.and(saved).and(undone);
            }
            ended.and(saved)?;
            if is_interrupted().await {
                return Ok(());
            }
        }
        wave.status = WaveStatus::Done;
        self.save(wave)
    }

    /// Changes one host, as far as its measurement allows.
    async fn host(&self, wave: &mut RolloutWave, at: usize) -> anyhow::Result<()> {
        if self.is_ended(wave, at).await? {
            return Ok(());
        }
        let trial = match self.start(wave, at).await {
            Ok(HostStart::Trial(trial)) => *trial,
            Ok(HostStart::Done(result, why)) => {
                (wave.hosts[at].result, wave.hosts[at].why) = (result, why);
                return Ok(());
            }
            Err(error) => {
                (wave.hosts[at].result, wave.hosts[at].why) = (HostResult::Failed, format!("{error:#}"));
                return Ok(());
            }
        };
        let again = Trial { id: linerate_operator::run_id::new_id(), ..trial.clone() };
        let (mut ended, mut saved) = self.measure(wave, at, trial, self.rollout.arms).await?;
        if saved.is_ok() && HostResult::of(&ended) == HostResult::Undecided && !is_interrupted().await {
            let arms = (2 * self.rollout.arms).min(ARMS_MAX);
            (ended, saved) = self.measure(wave, at, again, arms).await?;
        }
        wave.hosts[at].ended(&ended);
        if ended.status == TrialStatus::Undone && is_interrupted().await {
            // The old values are back: a resumed rollout begins with this host.
            wave.hosts[at].result = HostResult::Planned;
        }
        Ok(saved?)
    }

    /// Whether the trial of a host that was begun before ended by being kept; one that did not is undone, and
    /// begun again.
    async fn is_ended(&self, wave: &mut RolloutWave, at: usize) -> anyhow::Result<bool> {
        let host = &mut wave.hosts[at];
        let Some(id) = host.trial.clone().filter(|_| host.result == HostResult::Begun) else {
            return Ok(false);
        };
        let stored = match self.store.load_trial(&id) {
            // Its journal entry is written before the trial is stored.
            Err(StoreError::Missing { .. }) => return Ok(false),
            stored => stored?,
        };
        if stored.status == TrialStatus::Kept {
            host.ended(&stored);
            return Ok(true);
        }
        let (undone, saved) = self.undo(stored).await;
        if undone.status == TrialStatus::UndoFailed {
            host.ended(&undone);
            saved?;
            return Ok(true);
        }
        saved?;
        Ok(false)
    }

    /// What there is to do, by the values that the host has now.
    async fn start(&self, wave: &RolloutWave, at: usize) -> anyhow::Result<HostStart> {
        let host = &wave.hosts[at].host;
        let inventory = &self.snapshot.inventory;
        let fleet = Fleet::open(inventory, |known| known.name == *host).await;
        let (facts, gaps) = read_facts_of(&fleet, inventory, |name| name == host).await;
        fleet.bye().await;
        if let Some(gap) = gaps.first() {
            anyhow::bail!("{}", gap.reason);
        }
        let facts = facts.get(host).ok_or_else(|| anyhow::anyhow!("no host {host} in the inventory"))?;
        let nic = nic_of(inventory, host, facts);
        let rtt_us = rtt_of(self.diagnosis, host);
        let seen = ProfileHost { name: host, facts, nic: nic.as_deref(), rtt_us };
        let readings = readings(&self.rollout.groups, &seen);
        let id = linerate_operator::run_id::new_id();
        Ok(start(inventory, self.diagnosis, self.rollout, host, &readings, id)?)
    }

    async fn measure(
        &self,
        wave: &mut RolloutWave,
        at: usize,
        trial: Trial,
        arms: usize,
    ) -> anyhow::Result<(Trial, Result<(), StoreError>)> {
        (wave.hosts[at].result, wave.hosts[at].trial) = (HostResult::Begun, Some(trial.id.clone()));
        self.save(wave)?;
        let inventory = &self.snapshot.inventory;
        let fleet =
            Fleet::open_with_progress(inventory, |host| takes_part(&trial, host), self.progress).await;
        let mut hands = FleetActions::new(&fleet, inventory);
        let sequence = Sequence {
            scene: self.scene(),
            course: Course { arms, keep: KeepWhen::Harmless, ..Course::default() },
            transfer_ms: self.transfer_ms,
            store: self.store,
            progress: self.progress,
        };
        let ended = sequence.one(&mut hands, trial).await;
        hands.bye().await;
        fleet.bye().await;
        Ok(ended?)
    }

    fn scene(&self) -> Scene<'_> {
        Scene { snapshot: self.snapshot, diagnosis: self.diagnosis }
    }

    /// Undoes what a wave changed, the last host first: by the journals of the hosts, which need no store.
    /// What could not be written is the error of the end.
    async fn undo_all(&self, wave: &mut RolloutWave) -> anyhow::Result<()> {
        let inventory = &self.snapshot.inventory;
        let kept: Vec<&str> = wave.kept().into_iter().map(|at| wave.hosts[at].host.as_str()).collect();
        let fleet = Fleet::open(inventory, |host| kept.contains(&host.name.as_str())).await;
        let mut hands = FleetChanges::new(&fleet, inventory);
        let (mut written, mut ended) = (Ok(()), Vec::new());
        for at in wave.kept() {
            let host = &mut wave.hosts[at];
            let Some(id) = host.trial.clone() else { continue };
            let status = match hands.undo(&host.host, &id).await {
                Ok(_) => {
                    host.result = HostResult::Undone;
                    TrialStatus::Undone
                }
                Err(failed) => {
                    (host.result, host.why) = (HostResult::UndoFailed, failed.error);
                    TrialStatus::UndoFailed
                }
            };
            ended.push((id, status));
            written = written.and(self.save(wave));
        }
        hands.bye().await;
        fleet.bye().await;
        wave.status = WaveStatus::Undone;
        let written = written.and(self.save(wave));
        written.and(watcher::save_ends(self.store, ended).map_err(anyhow::Error::from))
    }

    async fn undo(&self, stored: Trial) -> (Trial, Result<(), StoreError>) {
        let inventory = &self.snapshot.inventory;
        let changed = |name: &str| stored.remedy.changes.iter().any(|change| change.host == name);
        let fleet = Fleet::open(inventory, |host| changed(&host.name)).await;
        let mut hands = FleetActions::new(&fleet, inventory);
        let mut watch = Watcher::new(self.store, self.progress);
        let mut step = |trial: &Trial, step: &str, left: usize| watch.step(trial, step, left);
        let undone = trials::undo(&mut hands, self.scene(), stored, &mut step).await;
        hands.bye().await;
        fleet.bye().await;
        let saved = watcher::save(self.store, &undone);
        (undone, saved)
    }
}
