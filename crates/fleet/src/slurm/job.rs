//! The job that holds the nodes.
//!
//! What comes in: a request. What goes out: the number of a job and the nodes in it. A job of our own is a
//! `salloc` whose only command (`watchdog.sh`) reads a pipe that this process holds: when this process ends,
//! in whatever way, the pipe closes, the command ends and Slurm takes the nodes back at once; where `salloc`
//! itself was killed, the command cancels the job. A second line of defence is the job's time limit; a third
//! that node programs leave when they hear nothing for four seconds. It never ends a job that it did not
//! make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::inventory::SlurmJob;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::error::{ANSWER_WAIT, NodeError, OUTPUT_BYTES_MAX, SlurmError, ask, run, words};
use super::nodes;
use super::request::NodeRequest;
use super::step::place_on_node;

/// Longest wait for nodes: a queue may be long, and a person may give up earlier.
const QUEUE_WAIT: Duration = Duration::from_secs(15 * 60);
/// Longest time of copying the node program.
const SPREAD_WAIT: Duration = Duration::from_secs(60);
/// Longest time of copying it to one node, and nodes to which it is copied at the same time. A step alone may
/// take many seconds to begin where disks are busy.
const COPY_WAIT: Duration = Duration::from_secs(45);
const COPIES_AT_ONCE: usize = 16;
/// Longest time of removing a copy that never ran, and how many are removed: each is a step of its own.
const REMOVE_WAIT: Duration = Duration::from_secs(4);
const REMOVED_MAX: usize = 64;
/// Longest wait for `salloc` to give the nodes back.
const END_WAIT: Duration = Duration::from_secs(8);
/// A job that holds nodes.
#[derive(Debug)]
pub struct Allocation {
    id: u32,
    /// Names of the nodes in it.
    nodes: Vec<String>,
    /// Nodes that were wanted and cannot take a job, with the reason.
    refused: Vec<(String, String)>,
    /// `salloc`, for a job of our own. Dropping it closes its pipe.
    watchdog: Option<Watchdog>,
}

/// A running `salloc`. Dropped in any state it gives its nodes, or its place in the queue, back.
#[derive(Debug)]
struct Watchdog {
    child: Option<Child>,
    /// Its command reads the pipe.
    granted: bool,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        // While it waits for nodes nobody reads the pipe, but it gives up its place at this signal.
        if let Some(pid) = child.id().filter(|_| !self.granted) {
            let kill = std::process::Command::new("kill").args(["-TERM", &pid.to_string()]).status();
            drop(kill);
        }
    }
}

impl Allocation {
    /// The job that this program runs in, or a new one.
    pub async fn get(request: &NodeRequest) -> Result<Self, SlurmError> {
        let inside = std::env::var("SLURM_JOB_ID").ok().and_then(|id| id.parse().ok());
        match inside {
            Some(id) => Self::existing(id, request).await,
            None => Self::own(request).await,
        }
    }

    async fn existing(id: u32, request: &NodeRequest) -> Result<Self, SlurmError> {
        let list = match std::env::var("SLURM_JOB_NODELIST") {
            Ok(list) => list,
            Err(_) => ask("squeue", &["--noheader", "--format=%N", &format!("--jobs={id}")]).await?,
        };
        let mut nodes = nodes::expanded(list.trim()).await?;
        let mut refused = Vec::new();
        if let Some(list) = &request.list {
            let wanted = nodes::expanded(list).await?;
            let missing = wanted.iter().filter(|n| !nodes.contains(n));
            refused = missing.map(|n| (n.clone(), format!("is not in job {id}"))).collect();
            nodes.retain(|node| wanted.contains(node));
        }
        if let Some(want) = request.count {
            if nodes.len() < want as usize {
                return Err(SlurmError::TooFew { job: id, have: nodes.len(), want });
            }
            nodes.truncate(want as usize);
        }
        Ok(Self { id, nodes, refused, watchdog: None })
    }

    async fn own(request: &NodeRequest) -> Result<Self, SlurmError> {
        let mut refused = Vec::new();
        let mut options: Vec<String> = Vec::new();
        if let Some(list) = &request.list {
            let states = nodes::states(&nodes::expanded(list).await?).await?;
            let (fit, unfit): (Vec<_>, Vec<_>) = states.into_iter().partition(|(_, why)| why.is_none());
            refused = unfit.into_iter().filter_map(|(node, why)| Some((node, why?))).collect();
            if fit.is_empty() {
                return Err(SlurmError::NoNode { refused });
            }
            let names: Vec<String> = fit.into_iter().map(|(node, _)| node).collect();
            // Slurm may be asked for more nodes than are listed, but never for fewer.
            let count = request.count.map_or(names.len(), |count| (count as usize).max(names.len()));
            options.push(format!("--nodes={count}"));
            options.push(format!("--nodelist={}", nodes::compressed(&names)));
        } else {
            let count = request.count.ok_or(SlurmError::NoRequest)?;
            options.push(format!("--nodes={count}"));
        }
        options.extend(request.partition.iter().map(|p| format!("--partition={p}")));
        options.push(format!("--time={}", request.limit.as_secs().div_ceil(60).max(1)));
        let (watchdog, line) = granted(&options).await?;
        let odd = || SlurmError::Odd { program: "salloc".to_owned(), shown: line.trim().to_owned() };
        let (id, list) = line.trim().split_once(' ').ok_or_else(odd)?;
        let id = id.parse().map_err(|_| odd())?;
        let nodes = nodes::expanded(list).await?;
        Ok(Self { id, nodes, refused, watchdog: Some(watchdog) })
    }

    /// Number of the job.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Nodes that were wanted and cannot take a job, with the reason.
    pub fn refused(&self) -> &[(String, String)] {
        &self.refused
    }

    /// Whether a node can be used; else why not.
    pub(super) fn holds(&self, node: &str) -> Result<(), NodeError> {
        if self.nodes.iter().any(|n| n == node) {
            return Ok(());
        }
        let why = self.refused.iter().find(|(n, _)| n == node);
        Err(why.map_or(NodeError::NotInJob, |(_, why)| NodeError::Unfit(why.clone())))
    }

    /// Gives the nodes back, if the job is ours.
    pub async fn end(mut self) {
        let Some(mut watchdog) = self.watchdog.take() else { return };
        let Some(child) = &mut watchdog.child else { return };
        if let Some(mut stdin) = child.stdin.take() {
            // A job that ended in order has nothing left on its nodes.
            let _ = stdin.write_all(b"done\n").await;
        }
        if timeout(END_WAIT, child.wait()).await.is_ok() {
            watchdog.child = None;
        }
    }
}

/// Starts `salloc` and waits for the line that its command says when the nodes are there.
async fn granted(options: &[String]) -> Result<(Watchdog, String), SlurmError> {
    let program = || "salloc".to_owned();
    let mut child = Command::new("salloc")
        // Nobody else's load, all memory, and a node that dies does not end the job.
        .args(["--quiet", "--job-name=linerate", "--exclusive", "--mem=0", "--no-kill"])
        .args(options)
        .args(["sh", "-c", include_str!("watchdog.sh")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| SlurmError::Client { program: program(), source })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut watchdog = Watchdog { child: Some(child), granted: false };
    let mut line = String::new();
    let mut lines = BufReader::new(stdout.expect("it was asked for").take(OUTPUT_BYTES_MAX));
    match timeout(QUEUE_WAIT, lines.read_line(&mut line)).await {
        Ok(Ok(count)) if count > 0 => {
            watchdog.granted = true;
            Ok((watchdog, line))
        }
        Ok(_) => {
            let mut shown = Vec::new();
            let mut stderr = stderr.expect("it was asked for").take(OUTPUT_BYTES_MAX);
            let _ = timeout(ANSWER_WAIT, stderr.read_to_end(&mut shown)).await;
            Err(SlurmError::Failed { program: program(), shown: words(&shown), printed: String::new() })
        }
        Err(_) => Err(SlurmError::Late { program: program(), waited: QUEUE_WAIT }),
    }
}

/// Copies the node program to all nodes of a job, or of a step (`JOB.STEP`), over Slurm's own tree, into a
/// folder that is there. A file that is there already is not written over.
pub(super) async fn broadcast(to: &str, program: &Path, place: &Path) -> Result<(), NodeError> {
    let (job, from, to) = (format!("--jobid={to}"), program.to_string_lossy(), place.to_string_lossy());
    run("sbcast", &[&job, "--preserve", &from, &to], SPREAD_WAIT).await.map(drop).map_err(NodeError::client)
}

/// Copies the node program to nodes of a job, to the same place on each: over Slurm's own tree, and where
/// that fails (a node that died holds up the whole copy) or for a single node with a step per node. Gives the
/// place, and the nodes that did not get it with the reason.
pub(super) async fn spread(
    id: u32,
    program: &Path,
    nodes: &[&str],
) -> Result<(PathBuf, BTreeMap<String, NodeError>), NodeError> {
    let no_name = NodeError::random("name for its copy");
    let mut place = place_on_node(id).map_err(&no_name)?;
    if nodes.len() > 1
        && folders(id, nodes, &place).await.is_ok()
        && broadcast(&id.to_string(), program, &place).await.is_ok()
    {
        return Ok((place, BTreeMap::new()));
    }
    // What a failed copy left is still open there, so that it cannot be run: another name, and the old one
    // goes.
    let abandoned = std::mem::replace(&mut place, place_on_node(id).map_err(&no_name)?);
    let turns = Arc::new(Semaphore::new(COPIES_AT_ONCE));
    let mut tasks = tokio::task::JoinSet::new();
    for node in nodes {
        let (node, turns) = ((*node).to_owned(), Arc::clone(&turns));
        let (program, places) = (program.to_owned(), [place.clone(), abandoned.clone()]);
        tasks.spawn(async move {
            let _turn = turns.acquire().await;
            let copied =
                timeout(COPY_WAIT, copy_to(id, &node, &program, TAKE, [&places[0], &places[1]])).await;
            let what = "the node program did not get there";
            (node, copied.unwrap_or(Err(NodeError::Late { what, wait: COPY_WAIT })))
        });
    }
    let mut missing = BTreeMap::new();
    while let Some(done) = tasks.join_next().await {
        if let Ok((node, Err(error))) = done {
            missing.insert(node, error);
        }
    }
    Ok((place, missing))
}

/// Makes the folder of the copy on all nodes of a job.
pub(super) async fn folders(id: u32, nodes: &[&str], place: &Path) -> Result<(), NodeError> {
    let count = nodes.len();
    let names: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
    let (id, nodes) = (format!("--jobid={id}"), format!("--nodelist={}", nodes::compressed(&names)));
    let (count, tasks) = (format!("--nodes={count}"), format!("--ntasks={count}"));
    let place = place.to_string_lossy();
    let step = ["--quiet", "--overlap", "--ntasks-per-node=1", &count, &tasks, &id, &nodes];
    let step = [&step[..], &["sh", "-c", include_str!("make.sh"), &place]].concat();
    run("srun", &step, ANSWER_WAIT).await.map(drop).map_err(NodeError::client)
}

/// On one node: takes the node program from stdin; what is at the other place goes.
const TAKE: &str = concat!(include_str!("drop.sh"), include_str!("take.sh"));

/// The same after programs of ours that were started from the other place have ended.
const TAKE_AGAIN: &str = concat!(include_str!("drop.sh"), include_str!("again.sh"), include_str!("take.sh"));

/// Removes a copy with its folder.
const DROP: &str = concat!(include_str!("drop.sh"), "drop \"$0\"\n");

/// Copies the node program to a node of which a session was lost, and ends what is left of the one at the
/// other place.
pub(super) async fn copy_again(
    id: u32,
    node: &str,
    program: &Path,
    place: &Path,
    old: &Path,
) -> Result<(), NodeError> {
    let copied = timeout(COPY_WAIT, copy_to(id, node, program, TAKE_AGAIN, [place, old])).await;
    let what = "did not take the node program again";
    copied.unwrap_or(Err(NodeError::Late { what, wait: COPY_WAIT }))
}

/// Removes the copy of the node program from nodes on which it never ran. Nodes that are dead keep it, and
/// nobody waits for them.
pub(crate) async fn remove(copies: Vec<(String, SlurmJob)>) {
    let mut tasks = tokio::task::JoinSet::new();
    for (node, job) in copies.into_iter().take(REMOVED_MAX) {
        tasks.spawn(async move {
            let (id, node) = (format!("--jobid={}", job.id), format!("--nodelist={node}"));
            let place = job.program.to_string_lossy();
            let step =
                ["--quiet", "--overlap", "--nodes=1", "--ntasks=1", &id, &node, "sh", "-c", DROP, &place];
            let _ = run("srun", &step, REMOVE_WAIT).await;
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Copies the node program to the first place on one node through the stdin of a step that runs this script
/// there.
async fn copy_to(
    id: u32,
    node: &str,
    program: &Path,
    take: &str,
    places: [&Path; 2],
) -> Result<(), NodeError> {
    let unread = |source| NodeError::Read { path: program.to_owned(), source: Arc::new(source) };
    let file = std::fs::File::open(program).map_err(unread)?;
    let child = Command::new("srun")
        .args(["--quiet", "--unbuffered", "--overlap", "--nodes=1", "--ntasks=1"])
        .args([format!("--jobid={id}"), format!("--nodelist={node}")])
        .args(["sh", "-c", take])
        .args(places)
        .stdin(file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(NodeError::srun("cannot run srun"))?;
    let output = child.wait_with_output().await.map_err(NodeError::srun("srun"))?;
    if output.status.success() { Ok(()) } else { Err(NodeError::Unfit(words(&output.stderr))) }
}
