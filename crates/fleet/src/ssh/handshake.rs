//! What is said on a host before its node program runs: which machine, is the program there, is it root.
//!
//! What comes in: a session with `handshake.sh`, the programs that can be copied. What goes out: the
//! beginning of the session with the node, and what was learned. Bounded in time; the program is copied only
//! where its hash is not there yet, and to the first folder that will do.

use std::time::Duration;

use linerate_model::inventory::{Host, SshSpec};
use tokio::time::timeout;

use super::secret;
use super::talk::{SshError, Talk, TalkError};
use super::{by_hand, warning};
use crate::link::ConnectInfo;
use crate::pipes::{Pipes, escaped};
use crate::programs::{Architecture, NodeProgram, NodePrograms};

/// Longest wait for a log-in: connecting, keys, start-up files.
const LOGIN_WAIT: Duration = Duration::from_secs(30);
/// Longest wait for a program to be copied and tried.
const COPY_WAIT: Duration = Duration::from_secs(120);
/// Longest wait for `sudo`, which may ask a directory service.
const SUDO_WAIT: Duration = Duration::from_secs(30);
/// How long `ssh` may take to say why it failed.
const WHY_WAIT: Duration = Duration::from_millis(500);

/// Lines of a whole talk are fewer.
const LINES_MAX: usize = 16;
/// The operator's answer to a question for a password: none, or one on the next line.
const UNTYPED: &[u8] = b"none\n";
const TYPED: &[u8] = b"typed\n";

type Line = (String, String);

/// Talks until the node program starts. `old` is the process id of a program of ours there that no longer
/// answers, or 0.
pub(crate) async fn handshake(
    pipes: &mut Pipes,
    (host, spec): (&Host, &SshSpec),
    programs: &NodePrograms,
    old: u32,
) -> Result<(Vec<u8>, ConnectInfo), SshError> {
    match talk(pipes, (host, spec), programs, old).await {
        Ok((rest, mut reached)) => {
            reached.warning = warning(&pipes.shown());
            pipes.forget_said();
            Ok((rest, reached))
        }
        Err(error) => Err(SshError::end(error, pipes, spec, WHY_WAIT).await),
    }
}

async fn talk(
    pipes: &mut Pipes,
    (host, spec): (&Host, &SshSpec),
    programs: &NodePrograms,
    old: u32,
) -> Result<(Vec<u8>, ConnectInfo), TalkError> {
    let mut talk = Talk::begin(pipes, old, host.cache_dir.as_deref()).await?;
    let hello = next(&mut talk, LOGIN_WAIT, "did not log in").await?;
    let words: Vec<&str> = hello.1.split(' ').collect();
    let ("host", [system, machine, address]) = (hello.0.as_str(), &words[..]) else {
        return Err(odd(&hello));
    };
    let mut reached = ConnectInfo { address: address.parse().ok(), ..ConnectInfo::default() };
    let machine = Architecture::of(&escaped(system), &escaped(machine))?;
    let program = programs.of(machine)?;
    let sudo = if spec.sudo { "sudo" } else { "plain" };
    let order = format!("{} {} {sudo}\n", program.hash, program.bytes.len());
    talk.send(order.as_bytes()).await;
    let mut passed_over = Vec::new();
    for _ in 0..LINES_MAX {
        let line = next(&mut talk, SUDO_WAIT, "did not start the node program").await?;
        let line = if line.0 == "send" {
            reached.copied_bytes = Some(program.bytes.len());
            let copied = timeout(COPY_WAIT, talk.send_and_listen(&program.bytes)).await;
            let what = "could not be given the node program";
            copied.map_err(|_| TalkError::Late { what, wait: COPY_WAIT })??
        } else {
            line
        };
        match line.0.as_str() {
            "have" | "ended" => {}
            "no" => passed_over.push(escaped(&line.1)),
            "copied" => reached.elsewhere = elsewhere(&line.1, &passed_over),
            "password" => match secret::password(&host.name).await {
                Some(secret) => talk.send(&[TYPED, &secret.line()].concat()).await,
                None => talk.send(UNTYPED).await,
            },
            "root" => {
                if let Some(secret) = secret::password(&host.name).await {
                    talk.send(&secret.line()).await;
                }
                return Ok((talk.rest(), reached));
            }
            "plain" => reached.plain = Some(escaped(&line.1)),
            "run" => {
                reached.pid = line.1.parse().unwrap_or_default();
                return Ok((talk.rest(), reached));
            }
            "fail" => return Err(failed(&line.1, spec, machine, &program, &passed_over)),
            _ => return Err(odd(&line)),
        }
    }
    Err(TalkError::Lines(LINES_MAX))
}

/// Where the node program is stored instead of in the first folder, and why not there.
fn elsewhere(folder: &str, passed_over: &[String]) -> Option<String> {
    let why = passed_over.join("; ");
    (!why.is_empty()).then(|| format!("the node program is stored in {}: {why}", escaped(folder)))
}

async fn next(talk: &mut Talk<'_>, wait: Duration, what: &'static str) -> Result<Line, TalkError> {
    timeout(wait, talk.line()).await.map_err(|_| TalkError::Late { what, wait })?
}

fn odd(line: &Line) -> TalkError {
    TalkError::Odd(escaped(&line.0), escaped(&line.1))
}

/// A failure that the script reports: what, and the host's own words about it.
fn failed(
    report: &str,
    spec: &SshSpec,
    machine: Architecture,
    program: &NodeProgram,
    passed_over: &[String],
) -> TalkError {
    let (what, words) = report.split_once(' ').unwrap_or((report, ""));
    let words = escaped(words);
    let megabytes = program.bytes.len().div_ceil(1 << 20);
    let hint = || {
        format!(
            "`{} df -h` shows the room; `cache_dir` of the host in an inventory names another folder",
            by_hand(spec)
        )
    };
    match what {
        "none" => {
            let why = passed_over.join("; ");
            TalkError::NotStored { megabytes, of: " in any folder", why, hint: hint() }
        }
        "write" => TalkError::NotStored { megabytes, of: "", why: words, hint: hint() },
        "hash" => TalkError::Cut(words),
        "tool" => TalkError::NoTool(words),
        "start" => {
            let (code, words) = words.split_once(' ').unwrap_or((&words, ""));
            let name = machine.name();
            let hint = if program.dynamic {
                format!(
                    "it needs libraries of the host; `cargo xtask node --arch {name}` builds one that needs nothing"
                )
            } else {
                format!("is it a program for {name}?")
            };
            TalkError::NotRun { code: code.to_owned(), words: words.to_owned(), hint }
        }
        _ => TalkError::Failed(escaped(what), words),
    }
}
