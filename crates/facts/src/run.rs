//! Runs one program of a step or look: no shell, no input, a fixed environment, bounded in time and in what
//! it may print.
//!
//! The program of a step outlives a node that is killed. It holds a lock as its standard input until it ends:
//! what follows waits for it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::step::{Argv, QueryOutput};
use linerate_sys::spawn::{HandOver, keep_until_exec};

/// Where the programs of an administrator are, whatever the session's own path is.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";
/// Most that is kept of what a program prints, bytes each of output and errors.
const PRINTED_MAX: u64 = 1 << 20;
/// How much of it is kept as the reason of a failure, characters.
const WORDS_MAX: usize = 600;
/// How a line begins that explains a program instead of its failure.
const USAGE: &str = "usage:";
/// How often it is looked whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// The lock that programs of steps hold while they run, one at a time on a host. It is an empty file: who
/// reads it reads nothing.
#[derive(Debug)]
pub struct Running(File);

impl Running {
    /// Takes the lock at a path; `None` when the program of an earlier step did not end in time.
    pub fn take(path: &Path, patience: Duration) -> std::io::Result<Option<Self>> {
        let mut how = OpenOptions::new();
        let file = how.create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= patience => return Ok(None),
                // The kernel has no lock with a time limit.
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
        }
    }

    /// For a program. The lock is freed when this process and all of its programs have closed it.
    pub fn input(&self) -> std::io::Result<Stdio> {
        self.0.try_clone().map(Stdio::from)
    }
}

/// What ends a program early.
#[derive(Debug, Clone, Copy)]
pub enum Until<'a> {
    /// Nothing but its limit.
    Limit,
    /// It only reads: it may be stopped at any time.
    Stopped(&'a AtomicBool),
    /// It changes something, and holds the lock of those that do: half a command is worse than a whole one.
    Ended(&'a Running),
}

/// Runs a program to its end; `None` when it did not end in time or was stopped, and was killed.
pub fn run(argv: &Argv, limit: Duration, until: Until<'_>) -> std::io::Result<Option<QueryOutput>> {
    run_with(argv, limit, until, Vec::new())
}

/// The same; `held` are claims on devices of the program, which are kept until it is executed.
pub fn run_with(
    argv: &Argv,
    limit: Duration,
    until: Until<'_>,
    held: Vec<File>,
) -> std::io::Result<Option<QueryOutput>> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(std::io::Error::other("a command without a program"));
    };
    let begun = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", PATH).env("LC_ALL", "C").current_dir("/");
    let (input, stop) = match until {
        Until::Limit => (Stdio::null(), None),
        Until::Stopped(stop) => (Stdio::null(), Some(stop)),
        Until::Ended(running) => (running.input()?, None),
    };
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let over = if held.is_empty() { None } else { Some(keep_until_exec(&mut command, held)?) };
    let child = command.spawn();
    // It keeps our copy of the lock, and its end is what the other side waits for where nothing was started.
    drop(command);
    over.into_iter().for_each(HandOver::finish);
    let mut child = child?;
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() >= limit || stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    };
    let took_ms = begun.elapsed().as_millis() as u64;
    let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(1));
    Ok(Some(QueryOutput { code, out: joined(out), err: joined(err), took_ms }))
}

/// What a program printed about its failure, in one line, without the text about its usage that many print
/// behind the reason.
pub fn words(printed: &str) -> String {
    let is_usage = |line: &str| {
        let start = line.trim_start().get(..USAGE.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(USAGE))
    };
    let mut lines = printed.trim().lines();
    let first = lines.next().unwrap_or_default();
    let rest = lines.take_while(|line| !is_usage(line));
    let words: Vec<&str> = std::iter::once(first).chain(rest).map(str::trim_end).collect();
    words.join("; ").chars().take(WORDS_MAX).collect()
}

type Reading = std::thread::JoinHandle<String>;

/// Reads to the end, and keeps the beginning.
fn reader(stream: Option<impl Read + Send + 'static>) -> Option<Reading> {
    stream.map(|mut stream| {
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            // What cannot be read was not printed.
            let _ = stream.by_ref().take(PRINTED_MAX).read_to_end(&mut kept);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
            String::from_utf8_lossy(&kept).into_owned()
        })
    })
}

fn joined(reading: Option<Reading>) -> String {
    reading.and_then(|reading| reading.join().ok()).unwrap_or_default()
}
