//! Builds: volumes, filesystems and replicas made step by step, each journalled before it is done and taken
//! back in reverse order.
//!
//! In: steps and looks of an operator. Out: what the programs printed. A step names its program and arguments
//! itself and no shell sees them; a device that is written to has to be empty, and that is looked at here, at
//! the last moment. What was built stays when the operator is gone: half a volume is undone by the person who
//! looks at it, not by a clock. An undo refuses where something stands that the build did not make.

mod clear;
mod contents;
mod device_error;
mod error;
mod ext;
mod journal;
mod journals;
mod needs;
mod pieces;
mod program;
mod remains;
mod stamps;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linerate_load::guard::DeviceClaim;
use linerate_model::step::{
    Act, Argv, DeviceRefusal, HostQuery, QueryEffect, QueryOutput, Space, Step, StepOperation,
};
use linerate_wire::message::{BuildRequest, Event};

use clear::Before;
use error::BuildError;
use journal::{Done, Journal};
use journals::{Journals, real_host};
use linerate_facts::change::host::{ChangingHost, Content, Lock};
use linerate_facts::run::{self, Running, Until};
use remains::Obstacle;

/// How long a look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(20);
/// How long a step may take: metadata of a drive of 20 TB are written in a minute.
const STEP_LIMIT: Duration = Duration::from_secs(900);
/// How long the steps under way may take to end when the operator is gone: an undo has several commands.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(3600);
/// How long another session that builds is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the steps of this host are journalled.
pub(crate) struct Builds {
    journals: Journals,
    /// Name in the inventory.
    host: String,
    /// Where the node keeps its state.
    state_dir: PathBuf,
    /// One step at a time in this process; the file lock holds against others.
    one: Mutex<()>,
}

/// Answers a request about builds.
pub(crate) fn answer(builds: Option<&Builds>, request: &BuildRequest, stop: &AtomicBool) -> Vec<Event> {
    let answered = match (builds, request) {
        (Some(builds), BuildRequest::Look(look)) => {
            builds.look(look, stop).map(|seen| Event::Seen(Box::new(seen)))
        }
        (Some(builds), BuildRequest::Step { build, step }) => {
            builds.step(build, step).map(|seen| Event::Seen(Box::new(seen)))
        }
        (Some(builds), BuildRequest::Unbuild { build, discard }) => {
            builds.undo(build, *discard).map(|lines| Event::Unbuilt { lines })
        }
        (Some(builds), BuildRequest::Built { build }) => builds.close(build).map(|()| Event::Done),
        (Some(builds), BuildRequest::Builds) => builds.journals.list().map(Event::Builds),
        (None, _) => Err(BuildError::NoSetup),
    };
    match answered {
        Ok(Event::Done) => vec![Event::Done],
        Ok(event) => vec![event, Event::Done],
        Err(error) => {
            vec![Event::failed(&error.to_string(), matches!(error, BuildError::NotUndone { .. }))]
        }
    }
}

impl Builds {
    /// Journals go below the folder of the node's state.
    pub(crate) fn new(state_dir: &Path, host: &str) -> Self {
        Self {
            journals: Journals::below(state_dir, host),
            host: host.to_owned(),
            state_dir: state_dir.to_owned(),
            one: Mutex::default(),
        }
    }

    fn disk(&self, what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> BuildError {
        BuildError::disk(&self.host, what, path)
    }

    /// Nothing else is built here while both are held, and no program of an earlier step runs.
    fn lock(&self) -> Result<(Lock, Running), BuildError> {
        let path = self.journals.folder().join(".lock");
        let lock = real_host().lock(&path, PATIENCE).map_err(self.disk("lock", &path))?;
        let lock = lock.ok_or_else(|| BuildError::Locked { host: self.host.clone() })?;
        let path = self.journals.folder().join(".running");
        let running = Running::take(&path, PATIENCE).map_err(self.disk("lock", &path))?;
        Ok((lock, running.ok_or_else(|| BuildError::StillRuns { host: self.host.clone() })?))
    }

    fn look(&self, look: &HostQuery, stop: &AtomicBool) -> Result<QueryOutput, BuildError> {
        look.check()?;
        match look.act() {
            QueryEffect::Run(argv) => self.run(&argv, LOOK_LIMIT, Until::Stopped(stop)),
            QueryEffect::Read(path) => {
                let out = std::fs::read_to_string(path).map_err(self.disk("read", Path::new(path)))?;
                Ok(QueryOutput { out, ..QueryOutput::default() })
            }
            QueryEffect::Space(folder) => {
                let path = Path::new(&folder);
                let of = std::fs::File::open(path).and_then(|file| linerate_sys::block::filesystem(&file));
                let of = of.map_err(self.disk("look at", path))?;
                let space = Space { size_bytes: of.size_bytes, free_bytes: of.free_bytes };
                Ok(QueryOutput {
                    out: serde_json::to_string(&space).unwrap_or_default(),
                    ..QueryOutput::default()
                })
            }
            QueryEffect::Contents(device) => {
                let contents =
                    contents::read(Path::new(&device)).map_err(self.disk("read", Path::new(&device)))?;
                let out = serde_json::to_string(&contents).unwrap_or_default();
                Ok(QueryOutput { out, ..QueryOutput::default() })
            }
            QueryEffect::Empty(devices) => {
                let out = serde_json::to_string(&needs::not_empty(&devices)).unwrap_or_default();
                Ok(QueryOutput { out, ..QueryOutput::default() })
            }
            QueryEffect::Health => {
                let checked = crate::check::of_session(&self.host, &self.state_dir);
                let failed = |why| BuildError::NotChecked { host: self.host.clone(), why };
                Ok(QueryOutput { out: checked.map_err(failed)?, ..QueryOutput::default() })
            }
            QueryEffect::Program => {
                let out = program::own_hash().map_err(self.disk("read", Path::new(program::OWN)))?;
                Ok(QueryOutput { out, ..QueryOutput::default() })
            }
        }
    }

    fn run(&self, argv: &Argv, limit: Duration, until: Until<'_>) -> Result<QueryOutput, BuildError> {
        self.run_with(argv, limit, until, Vec::new())
    }

    fn run_with(
        &self,
        argv: &Argv,
        limit: Duration,
        until: Until<'_>,
        held: Vec<File>,
    ) -> Result<QueryOutput, BuildError> {
        let command = argv.join(" ");
        let program = argv.first().cloned().unwrap_or_default();
        let seen = run::run_with(argv, limit, until, held).map_err(|source| BuildError::Start {
            host: self.host.clone(),
            program,
            source,
        })?;
        seen.ok_or_else(|| BuildError::Late { host: self.host.clone(), command, limit_s: limit.as_secs() })
    }

    fn step(&self, build: &str, step: &Step) -> Result<QueryOutput, BuildError> {
        linerate_model::step::check_name("the build", build)?;
        let operation = step.operation();
        operation.check()?;
        let _one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        let (_lock, running) = self.lock()?;
        let mut journal = self
            .journals
            .read(build)?
            .unwrap_or_else(|| Journal::new(&self.host, build, real_host().now_ms()));
        // The last one once more: what it did before it failed or was killed is removed first, as far as it
        // can be.
        let again = journal.steps.last().filter(|last| !last.whole && last.step == *step).cloned();
        if let Some(last) = &again {
            self.undo_half(&journal, last, &running)?;
        }
        let in_the_way =
            |DeviceRefusal { device, why }| BuildError::InTheWay { host: self.host.clone(), device, why };
        let claims = needs::claim(&operation.needs()).map_err(in_the_way)?;
        let act = operation.act();
        let before = match &act {
            Act::Write { path, .. } => {
                let path = Path::new(path);
                real_host().load(path).map_err(self.disk("read", path))?
            }
            Act::Run(_) | Act::Copy { .. } => None,
        };
        let was_there = operation.may_be_there() && self.is_there(operation, &act);
        let known = journal.clone();
        // What was there before it is what was there before the first time.
        if again.is_none() {
            journal.steps.push(Done {
                step: step.clone(),
                before,
                was_there,
                whole: false,
                stamps: BTreeMap::new(),
            });
        }
        self.journals.write(&journal)?;
        if let Err(refused) = claims.again() {
            // Its program never ran: an undo must not look for what it left.
            self.restore(&known)?;
            return Err(in_the_way(refused));
        }
        let seen = match &act {
            Act::Run(argv) => self.run_with(argv, STEP_LIMIT, Until::Ended(&running), claims.into_files())?,
            Act::Write { path, text, is_program } => {
                let path = Path::new(path);
                let text = Content::Text(text.clone());
                let stored = real_host().store(path, &text);
                let stored =
                    if *is_program { stored.and_then(|()| program::executable(path)) } else { stored };
                stored.map_err(self.disk("write", path))?;
                QueryOutput::default()
            }
            Act::Copy { path, sha256 } => {
                let path = Path::new(path);
                program::copy(path, sha256).map_err(self.disk("write", path))?;
                QueryOutput::default()
            }
        };
        if !seen.is_good() {
            let Act::Run(argv) = act else { return Ok(seen) };
            return Err(self.failed(&argv, &seen));
        }
        if let Some(last) = journal.steps.last_mut() {
            last.whole = true;
            last.stamps = operation.stamp().map(|stamp| stamps::read(&stamp)).unwrap_or_default();
        }
        self.journals.write(&journal)?;
        Ok(seen)
    }

    /// Whether what a step makes is on the host already.
    fn is_there(&self, operation: &dyn StepOperation, act: &Act) -> bool {
        match act {
            Act::Copy { path, sha256 } => program::is_there(Path::new(path), sha256),
            Act::Run(_) | Act::Write { .. } => self.is_listed(operation) == Some(true),
        }
    }

    /// Writes a journal as it was before a step; one without steps goes.
    fn restore(&self, known: &Journal) -> Result<(), BuildError> {
        if !known.steps.is_empty() {
            return self.journals.write(known);
        }
        self.journals.remove(&known.build)
    }

    fn failed(&self, argv: &Argv, seen: &QueryOutput) -> BuildError {
        let shown = if seen.err.trim().is_empty() { &seen.out } else { &seen.err };
        let words = run::words(shown);
        BuildError::Failed { host: self.host.clone(), command: argv.join(" "), code: seen.code, words }
    }

    /// Takes all steps back, the last one first. What fails is named and stays in the journal with everything
    /// before it. Nothing is done where something stands that the build did not make; `discard` gives that
    /// up, but not what is in use.
    fn undo(&self, build: &str, discard: bool) -> Result<Vec<String>, BuildError> {
        linerate_model::step::check_name("the build", build)?;
        let _one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        let (_lock, running) = self.lock()?;
        let no_build = || BuildError::NoBuild { host: self.host.clone(), build: build.to_owned() };
        let mut journal = self.journals.read(build)?.ok_or_else(no_build)?;
        self.refuse(build, self.obstacles(&journal), discard)?;
        let before = Before::of(&journal.steps, discard);
        let mut lines = Vec::new();
        while let Some(done) = journal.steps.last().cloned() {
            journal.was_mounted |= remains::was_mounted(&done.step);
            self.journals.write(&journal)?;
            let claims = remains::claim(&done.step, journal.was_mounted, discard);
            let claims =
                claims.or_else(|obstacle| self.refuse(build, vec![obstacle], false).map(|()| Vec::new()))?;
            let failures = self.undo_step(&done, &before, claims, &running, &mut lines);
            // A step that had failed itself may have left nothing to take back.
            let is_left = done.whole || self.is_listed(done.step.operation()) == Some(true);
            if is_left && !failures.is_empty() {
                self.journals.write(&journal)?;
                return Err(BuildError::NotUndone {
                    host: self.host.clone(),
                    build: build.to_owned(),
                    failures: failures.join("; "),
                });
            }
            journal.steps.pop();
            self.journals.write(&journal)?;
        }
        self.journals.remove(build)?;
        Ok(lines)
    }

    /// What a build made stays.
    fn close(&self, build: &str) -> Result<(), BuildError> {
        linerate_model::step::check_name("the build", build)?;
        let _lock = self.lock()?;
        self.journals.remove(build)
    }

    /// What stands in the way of undoing the steps of a journal.
    fn obstacles(&self, journal: &Journal) -> Vec<Obstacle> {
        let ask = |argv: &Argv| self.run(argv, LOOK_LIMIT, Until::Limit).ok();
        remains::obstacles(journal, &ask, &|done| self.is_changed(done))
    }

    /// Removes what a step did before it failed or was killed, as far as it can be, so that it can be done
    /// again. Fails where something stands on it that the step did not make.
    fn undo_half(&self, journal: &Journal, half: &Done, running: &Running) -> Result<(), BuildError> {
        let in_the_way = |obstacle: Obstacle| {
            let (device, why) = obstacle.what.split_once(": ").unwrap_or(("", &obstacle.what));
            BuildError::InTheWay { host: self.host.clone(), device: device.to_owned(), why: why.to_owned() }
        };
        let alone = Journal { steps: vec![half.clone()], ..journal.clone() };
        if let Some(obstacle) = self.obstacles(&alone).into_iter().next() {
            return Err(in_the_way(obstacle));
        }
        let before = Before::of(std::slice::from_ref(half), false);
        let claims = remains::claim(&half.step, journal.was_mounted, false).map_err(in_the_way)?;
        let _ = self.undo_step(half, &before, claims, running, &mut Vec::new());
        Ok(())
    }

    /// Fails with what stands in the way and is not given up.
    fn refuse(&self, build: &str, obstacles: Vec<Obstacle>, discard: bool) -> Result<(), BuildError> {
        let obstacles: Vec<Obstacle> =
            obstacles.into_iter().filter(|one| !(discard && one.discardable)).collect();
        if obstacles.is_empty() {
            return Ok(());
        }
        Err(BuildError::Stands { host: self.host.clone(), build: build.to_owned(), obstacles })
    }

    /// Why the file of a step cannot be put back.
    fn is_changed(&self, done: &Done) -> Option<String> {
        if done.was_there {
            return None;
        }
        let (path, text) = match done.step.operation().act() {
            Act::Write { path, text, .. } => (path, text),
            Act::Copy { path, sha256 } => return program::changed(Path::new(&path), &sha256),
            Act::Run(_) => return None,
        };
        let path = Path::new(&path);
        match real_host().load(path) {
            Ok(now) => check_own(path, now.as_ref(), &text, done.before.as_ref()).err().map(|e| e.line()),
            Err(error) => Some(self.disk("read", path)(error).line()),
        }
    }

    fn undo_step(
        &self,
        done: &Done,
        before: &Before,
        claims: Vec<DeviceClaim>,
        running: &Running,
        lines: &mut Vec<String>,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        let operation = done.step.operation();
        if done.was_there {
            let what = match operation.act() {
                Act::Run(argv) => argv.join(" "),
                Act::Write { path, .. } | Act::Copy { path, .. } => path,
            };
            lines.push(format!("left as before: {what}"));
            return failures;
        }
        // Nothing is done to any of them where one is not what it was.
        let strangers = |stamp| stamps::strangers(&stamp, &done.stamps, done.whole);
        let strangers = operation.stamp().map(strangers).unwrap_or_default();
        if !strangers.is_empty() {
            // What the host lists by the name of the step is the step's, whatever else stands there.
            if !(before.discard && remains::may_stay(done)) || self.is_listed(operation) == Some(true) {
                return strangers;
            }
            lines.extend(strangers.into_iter().map(|why| format!("left as it is: {why}")));
            return failures;
        }
        match operation.act() {
            Act::Write { path, text, .. } => {
                lines.push(format!("put back {path}"));
                let put_back = self.put_back(Path::new(&path), &text, done.before.as_ref());
                failures.extend(put_back.err().map(|e| e.line()));
            }
            Act::Copy { path, sha256 } => {
                lines.push(format!("remove {path}"));
                failures.extend(program::remove(Path::new(&path), &sha256).err());
            }
            Act::Run(_) => {}
        }
        let mut held: Vec<File> = claims.into_iter().map(DeviceClaim::into_file).collect();
        for argv in operation.undo() {
            lines.push(argv.join(" "));
            match self.run_with(&argv, STEP_LIMIT, Until::Ended(running), std::mem::take(&mut held)) {
                Ok(seen) if seen.is_good() => {}
                Ok(seen) => failures.push(self.failed(&argv, &seen).line()),
                Err(error) => failures.push(error.line()),
            }
            // The next command is for devices that this one was to free.
            if !failures.is_empty() && self.is_listed(operation) != Some(false) {
                break;
            }
        }
        // An undo that was killed had removed it already, or a step that was killed had not made it.
        if !failures.is_empty() && self.is_listed(operation) == Some(false) {
            failures.clear();
        }
        // A command that failed may have left the device to another program.
        if failures.is_empty() {
            for left in operation.clear() {
                lines.push(left.says());
                match clear::clear(&left, done.whole, before) {
                    Ok(left) => lines.extend(left),
                    Err(why) => failures.push(why.to_string()),
                }
            }
        }
        failures
    }

    /// Whether the host lists what a step made; `None` where no command lists it, or that command fails.
    fn is_listed(&self, operation: &dyn StepOperation) -> Option<bool> {
        let listing = operation.listing()?;
        let seen = self.run(&listing.argv, LOOK_LIMIT, Until::Limit).ok()?;
        seen.is_good().then(|| listing.is_in(&seen.out))
    }

    /// Puts a file back as it was, unless somebody else has written it meanwhile.
    fn put_back(&self, path: &Path, ours: &str, before: Option<&Content>) -> Result<(), BuildError> {
        let real = real_host();
        let now = real.load(path).map_err(self.disk("read", path))?;
        check_own(path, now.as_ref(), ours, before)?;
        if now.as_ref() == before {
            return Ok(());
        }
        match before {
            Some(content) => real.store(path, content),
            None => real.remove(path),
        }
        .map_err(self.disk("write", path))
    }
}

/// Whether a file is as a step left it, or as it was before.
fn check_own(
    path: &Path,
    now: Option<&Content>,
    ours: &str,
    before: Option<&Content>,
) -> Result<(), BuildError> {
    if now == before || now == Some(&Content::Text(ours.to_owned())) {
        return Ok(());
    }
    Err(BuildError::Overwritten { path: path.to_owned() })
}

#[cfg(test)]
mod tests;
