//! The parent of the children that read: starts one for each lane, waits for each answer only so long, leaves
//! a child that does not answer (killed if it can be). Behind a job that waits in the kernel another child
//! goes on at once, so that several that hang cost the time of one. It never waits for the end of a child.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use linerate_sys::{sched, spawn};

use super::past::Stuck;
use super::worker::{Answer, Job, REQUEST_BYTES_MAX};

/// Longest line of a child.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Children that hang, of one call: what is not asked then is not seen.
const LEFT_MAX: usize = 8;
/// After how long a job that waits gets a child of its own, milliseconds: far above what a file of the kernel
/// takes, and eight of them together are far below a second.
const SLOW_MS: u64 = 50;
/// How long the kernel may take to end a child that was killed.
const GRACE_MS: u64 = 50;
const MS: u64 = 1_000_000;

/// What came of all jobs.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) answers: Vec<(Job, Answer)>,
    /// Children that do not end, with the job that they hang in.
    pub(super) stuck: Vec<(Job, u32)>,
    pub(super) notes: Vec<String>,
}

/// A child that is not waited for any more, with the job that it hangs in.
struct Left {
    child: Child,
    hangs_in: Option<Job>,
}

fn hanging(left: &[Left]) -> usize {
    left.iter().filter(|one| one.hangs_in.is_some()).count()
}

/// One child with its jobs.
struct Running {
    child: Child,
    stdout: ChildStdout,
    lane: usize,
    jobs: VecDeque<Job>,
    /// Only its first job is waited for; another child has the rest.
    is_alone: bool,
    text: Vec<u8>,
    /// When the present job has waited so long that the others go on without it.
    slow_ns: u64,
    /// When the present job has had its time, and when also one that computes has.
    until_ns: u64,
    hard_ns: u64,
    /// When all have.
    deadline_ns: u64,
}

/// Runs the jobs of all lanes side by side, at most until the deadline. `make` makes the command of a child.
pub(super) fn run(lanes: Vec<Vec<Job>>, make: &dyn Fn() -> Command, deadline_ns: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut left: Vec<Left> = Vec::new();
    let mut waiting: Vec<VecDeque<Job>> = lanes.into_iter().map(VecDeque::from).collect();
    let mut running: Vec<Running> = Vec::new();
    loop {
        for (lane, jobs) in waiting.iter_mut().enumerate() {
            let is_served = running.iter().any(|one| one.lane == lane && !one.is_alone);
            if !is_served && !jobs.is_empty() {
                let silent = hanging(&left) + alone(&running);
                running.extend(launch(lane, jobs, make, deadline_ns, silent, &mut outcome));
            }
        }
        if running.is_empty() && waiting.iter().all(VecDeque::is_empty) {
            break;
        }
        let until_ns = running.iter().map(Running::wakes_ns).min().unwrap_or(deadline_ns);
        let pipes: Vec<_> = running.iter().map(|one| one.stdout.as_fd()).collect();
        if !pipes.is_empty() {
            // An interrupted wait is one that found nothing.
            let _ = sched::wait_any_readable(&pipes, until_ns);
        }
        let may_part = hanging(&left) + alone(&running) < LEFT_MAX;
        let mut still = Vec::new();
        for one in running {
            if let Some(jobs) = waiting.get_mut(one.lane) {
                still.extend(attend(one, jobs, may_part, &mut left, &mut outcome));
            }
        }
        running = still;
    }
    reap(left, &mut outcome);
    outcome
}

fn alone(running: &[Running]) -> usize {
    running.iter().filter(|one| one.is_alone).count()
}

/// Starts a child for as many jobs as fit into its request.
fn launch(
    lane: usize,
    jobs: &mut VecDeque<Job>,
    make: &dyn Fn() -> Command,
    deadline_ns: u64,
    left: usize,
    outcome: &mut Outcome,
) -> Option<Running> {
    if sched::monotonic_ns() >= deadline_ns || left >= LEFT_MAX {
        outcome.answers.extend(jobs.drain(..).map(|job| (job, Answer::NotAsked)));
        return None;
    }
    let mut request = Vec::new();
    let mut bytes = 2;
    while let Some(job) = jobs.front() {
        bytes += serde_json::to_string(job).map_or(REQUEST_BYTES_MAX, |text| text.len() + 1);
        if !request.is_empty() && bytes > REQUEST_BYTES_MAX {
            break;
        }
        request.extend(jobs.pop_front());
    }
    match start(&request, make) {
        Ok((child, stdout)) => {
            let (jobs, text, is_alone) = (request.into(), Vec::new(), false);
            let (slow_ns, until_ns, hard_ns) = (0, 0, 0);
            let mut one = Running {
                child,
                stdout,
                lane,
                jobs,
                is_alone,
                text,
                slow_ns,
                until_ns,
                hard_ns,
                deadline_ns,
            };
            one.wait_for_next();
            Some(one)
        }
        Err(error) => {
            let reason = format!("no child for it: {error}");
            outcome.answers.extend(request.into_iter().map(|job| (job, Answer::Failed(reason.clone()))));
            None
        }
    }
}

fn start(request: &[Job], make: &dyn Fn() -> Command) -> io::Result<(Child, ChildStdout)> {
    let mut command = make();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
    // A group of its own: scripts that it started are killed with it.
    command.process_group(0);
    spawn::without_inherited_descriptors(&mut command);
    let mut child = command.spawn()?;
    let text = serde_json::to_string(request)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It fits into the pipe, so that this does not wait for the child. One that is gone already shows as
        // the end of its answers.
        let _ = stdin.write_all(text.as_bytes());
    }
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
    Ok((child, stdout))
}

impl Running {
    fn wait_for_next(&mut self) {
        let patience_ms = self.jobs.front().map_or(0, |job| job.patience_ms);
        let now_ns = sched::monotonic_ns();
        self.slow_ns = now_ns + SLOW_MS * MS;
        self.until_ns = self.deadline_ns.min(now_ns + patience_ms * MS);
        self.hard_ns = self.deadline_ns.min(now_ns + 2 * patience_ms * MS);
    }

    /// When something has to be decided about the present job.
    fn wakes_ns(&self) -> u64 {
        if self.jobs.len() > 1 { self.until_ns.min(self.slow_ns) } else { self.until_ns }
    }

    /// Takes what came. Whether more can come.
    fn take(&mut self, outcome: &mut Outcome) -> bool {
        let ready = sched::wait_any_readable(&[self.stdout.as_fd()], 0).unwrap_or(false);
        if !ready {
            return true;
        }
        let mut bytes = [0; 16 << 10];
        let read = self.stdout.read(&mut bytes).unwrap_or(0);
        self.text.extend_from_slice(&bytes[..read]);
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            let Some(job) = self.jobs.pop_front() else { return false };
            let answer = serde_json::from_slice(&line)
                .unwrap_or_else(|_| Answer::Failed("its child answered something else".to_owned()));
            outcome.answers.push((job, answer));
            self.wait_for_next();
        }
        read > 0 && self.text.len() <= LINE_BYTES_MAX
    }
}

/// Serves one child; `None` when it is done with or was left.
fn attend(
    mut one: Running,
    jobs: &mut VecDeque<Job>,
    may_part: bool,
    left: &mut Vec<Left>,
    outcome: &mut Outcome,
) -> Option<Running> {
    let goes_on = one.take(outcome);
    let Some(job) = one.jobs.front().cloned() else {
        // It has nothing more to do than to end.
        left.push(Left { child: one.child, hangs_in: None });
        return None;
    };
    let now_ns = sched::monotonic_ns();
    if goes_on && now_ns < one.wakes_ns() {
        return Some(one);
    }
    if goes_on && now_ns < one.hard_ns && is_computing(one.child.id()) {
        // A busy host gives it little CPU time: that is no hanging device.
        one.slow_ns = now_ns + SLOW_MS * MS;
        one.until_ns = one.until_ns.max(one.hard_ns.min(one.slow_ns));
        return Some(one);
    }
    if goes_on && now_ns < one.until_ns {
        if may_part {
            rest_behind(one.jobs.split_off(1), jobs);
            one.is_alone = true;
        } else {
            one.slow_ns = one.until_ns;
        }
        return Some(one);
    }
    one.jobs.pop_front();
    rest_behind(one.jobs, jobs);
    if goes_on {
        // The whole group; a process that hangs in the kernel ends when the kernel lets it.
        let _ = spawn::kill_group(&one.child);
        outcome.answers.push((job.clone(), Answer::Silent));
        left.push(Left { child: one.child, hangs_in: Some(job) });
    } else {
        let reason = "its child ended without an answer".to_owned();
        outcome.answers.push((job, Answer::Failed(reason)));
        left.push(Left { child: one.child, hangs_in: None });
    }
    None
}

/// Whether a process runs or waits for a CPU (`proc_pid_stat(5)`, field 3): not for a device.
fn is_computing(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
}

/// Jobs that a child did not come to go first in the next one.
fn rest_behind(rest: VecDeque<Job>, jobs: &mut VecDeque<Job>) {
    for job in rest.into_iter().rev() {
        jobs.push_front(job);
    }
}

/// Takes the ends of children, for a moment; those that do not end are left.
fn reap(mut left: Vec<Left>, outcome: &mut Outcome) {
    let until_ns = sched::monotonic_ns() + GRACE_MS * MS;
    loop {
        left.retain(|one| matches!(spawn::try_wait_cost(&one.child), Ok(None)));
        if left.is_empty() || sched::monotonic_ns() >= until_ns {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for Left { child, hangs_in } in left {
        let Some(job) = hangs_in else {
            let _ = spawn::kill_group(&child);
            continue;
        };
        outcome.notes.push(format!("a child hangs in {} {} (pid {})", job.check, job.item, child.id()));
        outcome.stuck.push((job, child.id()));
    }
}

/// Whether a child that was left still is there, and not another process with its number.
pub(super) fn is_there(stuck: &Stuck) -> bool {
    began(stuck.pid) == Some(stuck.began)
}

/// When a process began, ticks since boot (`proc_pid_stat(5)`, field 22).
pub(super) fn began(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold anything, also a `)`.
    text.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}
