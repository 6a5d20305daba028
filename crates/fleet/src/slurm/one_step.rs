//! One step of a job for all its nodes: how node programs are started where a step per node would take too
//! long.
//!
//! What comes in: a job and names of nodes. What goes out: the node program on each of them, waiting for
//! nothing but the order that this file gives it on the stdin that Slurm broadcasts; and what `srun` says
//! about each node. The step is there before the program is copied, for two reasons: Slurm aborts a whole
//! step, and gives up a whole copy, where one node is dead, so that those are found first and left out; and a
//! shell that waits on the node removes the copy however things end before the program runs. No frame ever
//! goes through the step: it would be cut into those of others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::NodeError;
use super::step::{SHAPING, place_on_node};
use super::{job, nodes};
use crate::pipes::{keep, quoted};
use crate::programs::ProgramSource;
use crate::sealed::Said;

/// Longest wait for the step to be there on all nodes, and for the next of them after one came.
const UP_WAIT: Duration = Duration::from_secs(60);
const NEXT_UP_WAIT: Duration = Duration::from_secs(15);
/// Steps that are begun again because nodes of the one before were dead.
const ROUNDS_MAX: usize = 4;
/// Longest wait for a step to end by itself, and after it was asked to.
const END_WAIT: Duration = Duration::from_secs(2);
const ASKED_WAIT: Duration = Duration::from_secs(4);
/// A line of `srun` that is longer is cut.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Lists such as `n[1-3]` that are taken apart, each by a call of `scontrol`.
const LISTS_MAX: usize = 16;

/// Waits on each node for the copy of the node program and for the order, and runs it.
pub(super) const WAIT_AND_RUN: &str =
    concat!(include_str!("drop.sh"), include_str!("wait.sh"), include_str!("run.sh"));

/// What was said about nodes beside their own streams.
#[derive(Debug, Default)]
pub(super) struct Words {
    by_node: BTreeMap<String, Said>,
    /// About no node in particular.
    step: Said,
}

impl Words {
    fn about(nodes: &[String]) -> Self {
        let by_node = nodes.iter().map(|node| (node.clone(), Said::default())).collect();
        Self { by_node, step: Said::default() }
    }

    /// Where words about a node are kept.
    pub(super) fn of(&self, node: &str) -> Said {
        self.by_node.get(node).map(Arc::clone).unwrap_or_default()
    }

    /// The last words about a node, or about the step.
    pub(super) fn quoted(&self, node: &str) -> String {
        let text = |shown: &Mutex<Vec<u8>>| {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            quoted(&String::from_utf8_lossy(&shown))
        };
        let about = self.by_node.get(node).map(|shown| text(shown)).unwrap_or_default();
        if about.is_empty() { text(&self.step) } else { about }
    }

    fn keep(&self, names: &[&str], line: &str) {
        // Said on every cluster that binds no tasks to CPUs, and of no use to anybody.
        if line.ends_with("lacks support for cpu binding") {
            return;
        }
        let line = format!("{line}\n");
        let mut kept = false;
        for shown in names.iter().filter_map(|name| self.by_node.get(*name)) {
            keep(shown, line.as_bytes());
            kept = true;
        }
        if !kept {
            keep(&self.step, line.as_bytes());
        }
    }
}

/// A running step. Dropped in any state it is asked to end.
#[derive(Debug)]
pub(crate) struct OneStep {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    /// What is said about its nodes.
    pub(super) words: Arc<Words>,
    /// Its nodes.
    pub(super) nodes: Vec<String>,
    /// Where the copy of the node program was on each of them.
    pub(super) place: PathBuf,
}

impl Drop for OneStep {
    fn drop(&mut self) {
        ask_to_end(&self.child);
    }
}

/// `srun` ends its step at this signal; a killed one leaves it running.
fn ask_to_end(child: &Child) {
    if let Some(pid) = child.id() {
        let kill = std::process::Command::new("kill").args(["-TERM", &pid.to_string()]).status();
        drop(kill);
    }
}

/// Why a step cannot be used: nodes that have to be left out, with the reason of each.
struct Unfit(BTreeMap<String, NodeError>);

/// A step whose node programs wait for their order, and the nodes that had to be left out.
pub(super) async fn start(
    id: u32,
    program: &ProgramSource,
    mut nodes: Vec<String>,
) -> (Option<OneStep>, BTreeMap<String, NodeError>) {
    let mut missing = BTreeMap::new();
    for _ in 0..ROUNDS_MAX {
        if nodes.is_empty() {
            return (None, missing);
        }
        match once(id, program, &nodes).await {
            Ok(step) => return (Some(step), missing),
            Err(Unfit(unfit)) => {
                nodes.retain(|node| !unfit.contains_key(node));
                missing.extend(unfit);
            }
        }
    }
    missing.extend(nodes.into_iter().map(|node| (node, NodeError::Steps(ROUNDS_MAX))));
    (None, missing)
}

async fn once(id: u32, program: &ProgramSource, nodes: &[String]) -> Result<OneStep, Unfit> {
    let all = |error: NodeError| Unfit(nodes.iter().map(|node| (node.clone(), error.clone())).collect());
    let no_name = NodeError::random("name for a copy");
    let place = place_on_node(id).map_err(|error| all(no_name(error)))?;
    let mut step = spawn(id, nodes, place, &program.hash).map_err(all)?;
    let number = match step.up().await {
        Ok(number) => number,
        Err(unfit) => {
            step.end().await;
            return Err(unfit);
        }
    };
    // The folder only now: a step that is given up because a node is dead may be killed without a word.
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let copied = match job::folders(id, &names, &step.place).await {
        Ok(()) => job::broadcast(&format!("{id}.{number}"), &program.path, &step.place).await,
        Err(error) => Err(error),
    };
    if let Err(error) = copied {
        let unfit = named(&error.to_string(), nodes);
        step.end().await;
        return Err(if unfit.is_empty() { all(NodeError::NotCopied(Box::new(error))) } else { Unfit(unfit) });
    }
    Ok(step)
}

fn spawn(id: u32, nodes: &[String], place: PathBuf, hash: &str) -> Result<OneStep, NodeError> {
    let count = nodes.len();
    let mut command = Command::new("srun");
    for name in SHAPING {
        command.env_remove(name);
    }
    let mut child = command
        .args(["--quiet", "--overlap", "--cpu-bind=none", "--ntasks-per-node=1"])
        // One that dies is one that dies, whatever the cluster's configuration says.
        .args(["--no-kill", "--kill-on-bad-exit=0", "--wait=0"])
        .args([format!("--jobid={id}"), format!("--nodes={count}"), format!("--ntasks={count}")])
        .arg(format!("--nodelist={}", nodes::compressed(nodes)))
        .args(["sh", "-c", WAIT_AND_RUN])
        .arg(&place)
        .args([hash, "dial"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(NodeError::srun("cannot run srun"))?;
    let words = Arc::new(Words::about(nodes));
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(listen(stderr, Arc::clone(&words)));
    }
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
    Ok(OneStep { child, stdin, stdout, words, nodes: nodes.to_vec(), place })
}

/// Keeps what `srun` and the node programs say, by node.
async fn listen(stderr: impl AsyncRead + Unpin, words: Arc<Words>) {
    let mut stderr = BufReader::new(stderr);
    let mut lists = 0;
    while let Some(line) = line(&mut stderr).await {
        let mut names: Vec<String> = Vec::new();
        for word in line.split([' ', ':', '(', ')']).filter(|word| !word.is_empty()) {
            if word.contains('[') && lists < LISTS_MAX {
                lists += 1;
                names.extend(nodes::expanded(word).await.unwrap_or_default());
            } else {
                names.push(word.to_owned());
            }
        }
        words.keep(&names.iter().map(String::as_str).collect::<Vec<_>>(), &line);
    }
}

/// The next line, the beginning of it when it is too long; `None` at the end.
async fn line(from: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    match from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
        Ok(1..) => Some(String::from_utf8_lossy(&line).trim().to_owned()),
        _ => None,
    }
}

/// Nodes that `srun` or `sbcast` blame, each with the reason.
fn named(shown: &str, nodes: &[String]) -> BTreeMap<String, NodeError> {
    let known: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
    let mut blamed = BTreeMap::new();
    for line in shown.split(['\n', ';']) {
        // `Task launch for StepId=1.1 failed on node n4: Communication connection failure`
        let launch = line.split_once(" failed on node ").and_then(|(_, rest)| rest.split_once(':'));
        // `REQUEST_FILE_BCAST(n4): Communication connection failure`
        let copy = line.split_once("_BCAST(").and_then(|(_, rest)| rest.split_once("):"));
        for (node, why) in launch.into_iter().chain(copy) {
            if known.contains(node) {
                blamed.insert(node.to_owned(), NodeError::Unreachable(quoted(why)));
            }
        }
    }
    blamed
}

impl OneStep {
    /// Waits until the step is there on all its nodes; gives its number.
    async fn up(&mut self) -> Result<u32, Unfit> {
        let mut waiting: BTreeSet<&str> = self.nodes.iter().map(String::as_str).collect();
        let last = Instant::now() + UP_WAIT;
        let mut until = last;
        let mut number = None;
        while !waiting.is_empty() {
            let Some(stdout) = &mut self.stdout else { break };
            let Ok(Some(line)) = timeout_at(until, line(stdout)).await else { break };
            let mut parts = line.split(' ');
            if let (Some("up"), Some(node), Some(step)) = (parts.next(), parts.next(), parts.next())
                && waiting.remove(node)
            {
                number = number.or(step.parse().ok());
                until = last.min(Instant::now() + NEXT_UP_WAIT);
            }
        }
        match number {
            Some(number) if waiting.is_empty() => Ok(number),
            _ => {
                let waiting: Vec<String> = waiting.into_iter().map(str::to_owned).collect();
                Err(self.unfit(waiting).await)
            }
        }
    }

    /// Which nodes kept the step from coming up, as far as `srun` says it; else those that were waited for.
    async fn unfit(&mut self, waiting: Vec<String>) -> Unfit {
        let ended = timeout(END_WAIT, self.child.wait()).await.is_ok();
        let mut all = String::new();
        for shown in self.words.by_node.values().chain([&self.words.step]) {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            all.push_str(&String::from_utf8_lossy(&shown));
        }
        let blamed = named(&all, &self.nodes);
        if !blamed.is_empty() {
            return Unfit(blamed);
        }
        let reason = |node: &String| {
            let shown = self.words.quoted(node);
            if ended { NodeError::StepEnded { shown } } else { NodeError::StepLate { wait: UP_WAIT, shown } }
        };
        Unfit(waiting.iter().map(|node| (node.clone(), reason(node))).collect())
    }

    /// Tells the node programs to dial. The order holds the key: it goes nowhere else.
    pub(super) async fn order(&mut self, order: &str) -> Result<(), NodeError> {
        // Stdin stays open: its end would tell nothing that the connections do not tell.
        let stdin = self.stdin.as_mut().ok_or(NodeError::NoStdin)?;
        let order = format!("go\n{order}\n");
        stdin.write_all(order.as_bytes()).await.and(stdin.flush().await).map_err(NodeError::srun("srun"))?;
        // Nothing more is to be read, but a full pipe would hold the step up.
        if let Some(mut stdout) = self.stdout.take() {
            tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
        }
        Ok(())
    }

    /// Waits for the step's end.
    pub(super) async fn ended(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Ends the step. Its node programs should have been told bye before.
    pub(crate) async fn end(mut self) {
        self.stdin = None;
        if timeout(END_WAIT, self.child.wait()).await.is_err() {
            ask_to_end(&self.child);
            if timeout(ASKED_WAIT, self.child.wait()).await.is_err() {
                // The job's end, or the silence limit of the node programs, does the rest.
                let _ = self.child.kill().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_slurm_blames_are_found() {
        let nodes = ["n3".to_owned(), "n4".to_owned()];
        let shown = "srun: error: Task launch for StepId=1.1 failed on node n4: Communication connection failure\n\
                    srun: error: Application launch failed: Communication connection failure\n\
                    srun: error: n3: task 2: Killed\n";
        let blamed = named(shown, &nodes);
        assert_eq!(blamed.keys().collect::<Vec<_>>(), ["n4"]);
        assert!(
            matches!(&blamed["n4"], NodeError::Unreachable(why) if why == "Communication connection failure")
        );
        let shown = "sbcast: error: REQUEST_FILE_BCAST(n3): Communication connection failure";
        assert_eq!(named(shown, &nodes).keys().collect::<Vec<_>>(), ["n3"]);
        assert!(named("failed on node x: a; REQUEST_FILE_BCAST(y): b; n3", &nodes).is_empty());
    }

    #[tokio::test]
    async fn words_go_to_the_node_that_they_are_about() {
        let words = Arc::new(Words::about(&["n1".to_owned(), "n2".to_owned()]));
        let shown = b"srun: error: n2: task 1: Killed\nlinerate-node: n1: cannot reach\x1b[2J the operator\nsomething else\n";
        listen(&shown[..], Arc::clone(&words)).await;
        assert_eq!(words.quoted("n2"), "srun: error: n2: task 1: Killed");
        assert_eq!(words.quoted("n1"), "linerate-node: n1: cannot reach\\u{1b}[2J the operator");
        assert_eq!(words.quoted("n3"), "something else");
    }
}
