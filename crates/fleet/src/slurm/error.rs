//! Slurm's clients: what one prints, or why it failed.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use linerate_wire::sealed::ORDER_BYTES_MAX;
use tokio::process::Command;
use tokio::time::timeout;

use crate::link::LinkError;
use crate::programs::ProgramError;

/// Longest wait for an answer of Slurm's controller. Its clients themselves wait 9 s for one that is down.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// Output of a client that is read at most, and how much of its errors is told.
pub(super) const OUTPUT_BYTES_MAX: u64 = 16 << 20;
const SAID_BYTES_MAX: usize = 600;

/// What can go wrong between Slurm and us.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// A client is not installed.
    #[error(
        "cannot run {program}: {source}\nhint: run linerate where Slurm's commands work, such as a login node"
    )]
    Client {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A client failed.
    #[error("{program} failed: {shown}")]
    Failed {
        /// Which.
        program: String,
        /// Its words.
        shown: String,
        /// All that it printed on stdout before.
        printed: String,
    },
    /// Nothing came in time.
    #[error("{program} did not answer within {} s", waited.as_secs())]
    Late {
        /// Which.
        program: String,
        /// How long it was waited.
        waited: Duration,
    },
    /// No node of those that are wanted can take a job.
    #[error(
        "none of the nodes can take a job: {}\nhint: `sinfo -N -l` shows the state of each",
        some(refused)
    )]
    NoNode {
        /// Each with the reason.
        refused: Vec<(String, String)>,
    },
    /// Unexpected output.
    #[error("{program} printed something unexpected: {shown}")]
    Odd {
        /// Which.
        program: String,
        /// What.
        shown: String,
    },
    /// Neither a number nor names of nodes.
    #[error("which nodes?\nhint: -N NUMBER or --nodelist NODES, or run linerate inside a job (salloc)")]
    NoRequest,
    /// More is wanted than the job has that this runs in.
    #[error(
        "job {job} has {have} nodes, {want} are wanted\nhint: leave out -N, or run linerate outside of the job"
    )]
    TooFew {
        /// Job.
        job: u32,
        /// Its nodes.
        have: usize,
        /// Wanted.
        want: u32,
    },
}

/// Why a node has no node program, or no session: the end of a sentence about it.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NodeError {
    #[error(transparent)]
    Program(#[from] Arc<ProgramError>),
    #[error(transparent)]
    Job(Arc<SlurmError>),
    /// A client, without its name where it has words of its own.
    #[error("{}", its_words(.0))]
    Client(Arc<SlurmError>),
    /// In the words of Slurm.
    #[error("{0}")]
    Unfit(String),
    #[error("is not in the job")]
    NotInJob,
    #[error("is the node {node}, as {other} is")]
    Twice { node: String, other: String },
    #[error("no random {what}: {source}")]
    Random { what: &'static str, source: Arc<io::Error> },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: Arc<io::Error> },
    #[error("{what}: {source}")]
    Srun { what: &'static str, source: Arc<io::Error> },
    #[error("srun takes no order")]
    NoStdin,
    #[error("{what} within {} s", wait.as_secs())]
    Late { what: &'static str, wait: Duration },
    #[error("{0} steps for all nodes failed because others of them were dead")]
    Steps(usize),
    #[error("cannot be reached by Slurm: {0}")]
    Unreachable(String),
    #[error("the node program could not be copied: {0}")]
    NotCopied(Box<Self>),
    #[error("srun ended{}", after(shown))]
    StepEnded { shown: String },
    #[error("its step did not start within {} s{}", wait.as_secs(), after(shown))]
    StepLate { wait: Duration, shown: String },
    #[error("cannot listen for node programs: {0}")]
    Listen(String),
    #[error("the order cannot be written: {0}")]
    Order(Arc<serde_json::Error>),
    #[error("the order to dial has {0} bytes, at most {ORDER_BYTES_MAX} are read")]
    LongOrder(usize),
    #[error("LINERATE_DIAL_TO: `{0}` is no address")]
    BadAddress(String),
    #[error(
        "no address of this machine is known to which its nodes could dial back\nhint: name one in LINERATE_DIAL_TO, or use --slurm-steps each"
    )]
    NoAddress,
    #[error("its node program did not dial back to {addresses}{}", after(shown))]
    NotDialled { addresses: String, shown: String },
    #[error(
        "its node program did not dial back to {addresses}\nhint: may the node open connections to this machine? LINERATE_DIAL_TO names other addresses of it"
    )]
    Silent { addresses: String },
    #[error("two programs that know the key of the run said that they are this node; neither is believed")]
    Disputed,
    #[error("{}", .0.clone().reason())]
    Session(#[from] LinkError),
}

impl NodeError {
    /// For `map_err`: what has no random name.
    pub(super) fn random(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Random { what, source: Arc::new(source) }
    }

    /// For `map_err`: what failed of `srun`.
    pub(super) fn srun(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Srun { what, source: Arc::new(source) }
    }

    /// For `map_err`: a client of Slurm.
    pub(super) fn client(error: SlurmError) -> Self {
        Self::Client(Arc::new(error))
    }
}

fn its_words(error: &SlurmError) -> String {
    match error {
        SlurmError::Failed { shown, .. } => shown.clone(),
        error => error.to_string(),
    }
}

fn some(refused: &[(String, String)]) -> String {
    let words: Vec<String> = refused.iter().take(5).map(|(node, why)| format!("{node} {why}")).collect();
    words.join("; ")
}

/// Runs one of Slurm's clients to its end and gives what it printed.
pub(super) async fn ask(program: &str, arguments: &[&str]) -> Result<String, SlurmError> {
    run(program, arguments, ANSWER_WAIT).await
}

/// The same within a time.
pub(super) async fn run(program: &str, arguments: &[&str], wait: Duration) -> Result<String, SlurmError> {
    let mut command = Command::new(program);
    command.args(arguments);
    ended(command, program, wait).await
}

/// The same for a command with an environment of its own.
pub(super) async fn ended(mut command: Command, program: &str, wait: Duration) -> Result<String, SlurmError> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| SlurmError::Client { program: program.to_owned(), source })?;
    let late = |_| SlurmError::Late { program: program.to_owned(), waited: wait };
    let output = timeout(wait, child.wait_with_output())
        .await
        .map_err(late)?
        .map_err(|source| SlurmError::Client { program: program.to_owned(), source })?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    // Some of them complain on stdout.
    let shown = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(SlurmError::Failed { program: program.to_owned(), shown: words(shown), printed })
}

/// What a program printed, after what became of it.
fn after(shown: &str) -> String {
    if shown.is_empty() { " without output".to_owned() } else { format!(": {shown}") }
}

/// The first lines that a client printed, on one line and without what a terminal would obey.
pub(super) fn words(shown: &[u8]) -> String {
    let text = String::from_utf8_lossy(&shown[..shown.len().min(SAID_BYTES_MAX)]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let text: String = lines.join("; ").chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "it gave no reason".to_owned() } else { text }
}
