//! The part of linerate that runs on a measured host, `linerate-node`: reads facts, makes load, applies and
//! undoes changes on the host it runs on, and checks it.
//!
//! In: requests of an operator on stdin, or over a connection to the operator that an order on stdin, or the
//! file of an agent, names.
//! Out: answers. It listens on nothing but the loads it was told to receive (and as `iperf3 -s`, started by
//! hand, for iperf3's clients), changes nothing whose old value is not on its disk, and decides nothing but
//! whether a check fails.

mod against_iperf3;
mod agent;
mod audit;
mod build;
mod change_worker;
mod check;
mod dial;
mod disk_times;
mod load_once;
mod notices;
mod observe;
mod packet_drops;
mod serve;
mod session_event;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;
use linerate_model::exit::ExitCode as Code;
use linerate_sys::place::{self, PlaceError};
use linerate_sys::root::{RecordError, Root};
use thiserror::Error;

use agent::{AgentError, AgentOptions};
use dial::DialError;
use load_once::LoadOnceError;

/// Takes all rights of group and others from new files.
const UMASK: u32 = 0o077;

const HELP: &str = "\
linerate-node: the part of linerate that runs on a measured host

usage: linerate-node [--netns PLACE] [COMMAND]

  (no command)       serve an operator on stdin and stdout
  dial               read from stdin where an operator waits and with which key, connect and serve it
  agent              dial the operator of a watch, again and again; /etc/linerate/agent.toml or `--config FILE`
  check [OPTIONS]    check this host, for people, Slurm, Nagios, Prometheus; `check --help` lists the options
  facts [PREFIX...]  print facts and counters as JSON, all or those whose keys start so
  declarations       print what can be read and set, as JSON
  iperf3 FLAGS...    client or server of iperf3's protocol; `iperf3 --help` lists the flags
  record DIR         write a copy of what the facts are read from into an empty folder

  --netns PLACE      enter this network namespace first: a path, a name of `ip netns`, pid:1234 or container:NAME
  --version          print the version
  --help             print this
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Serve,
    Dial,
    Agent(AgentOptions),
    Check(Vec<OsString>),
    CheckCore(Vec<OsString>),
    CheckWorker,
    Facts(Vec<String>),
    Declarations,
    Iperf3(Vec<String>),
    Record(PathBuf),
    Guard { journal: PathBuf, etc_dir: PathBuf },
    Load,
    Version,
    Help,
}

/// What comes before the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Namespace to enter.
    netns: Option<PathBuf>,
}

fn parse(mut parser: lexopt::Parser) -> Result<(Options, Command), lexopt::Error> {
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        let command = match &argument {
            Long("netns") => {
                options.netns = Some(parser.value()?.into());
                continue;
            }
            Long("version") | Short('V') => Command::Version,
            Long("help") | Short('h') => Command::Help,
            Value(word) => match word.to_str() {
                Some("dial") => Command::Dial,
                Some("agent") => Command::Agent(agent_options(&mut parser)?),
                Some("check") => Command::Check(parser.raw_args()?.collect()),
                Some(check::CORE) => Command::CheckCore(parser.raw_args()?.collect()),
                Some(check::WORKER) => Command::CheckWorker,
                Some("facts") => Command::Facts(rest(&mut parser)?),
                Some("iperf3") => Command::Iperf3(rest(&mut parser)?),
                Some("declarations") => Command::Declarations,
                Some("load") => Command::Load,
                Some("record") => Command::Record(parser.value()?.into()),
                Some("guard") => {
                    Command::Guard { journal: parser.value()?.into(), etc_dir: parser.value()?.into() }
                }
                _ => return Err(argument.unexpected()),
            },
            _ => return Err(argument.unexpected()),
        };
        return parser.next()?.map_or(Ok((options, command)), |surplus| Err(surplus.unexpected()));
    }
    Ok((options, Command::Serve))
}

/// What follows `agent`.
fn agent_options(parser: &mut lexopt::Parser) -> Result<AgentOptions, lexopt::Error> {
    let mut options = AgentOptions { config: agent::CONFIG.into(), failed: 0 };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("config") => options.config = parser.value()?.into(),
            Long("failed") => options.failed = parser.value()?.parse()?,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

/// What follows a command, as it is.
fn rest(parser: &mut lexopt::Parser) -> Result<Vec<String>, lexopt::Error> {
    parser.raw_args()?.map(ValueExt::string).collect()
}

/// Why the program ends early.
#[derive(Debug, Error)]
enum MainError {
    #[error("{0}\nhint: linerate-node --help")]
    Arguments(#[from] lexopt::Error),
    #[error("network namespace {}: {reason}", place.display())]
    Place { place: PathBuf, reason: Box<PlaceError> },
    #[error("cannot open {}: {source}\nhint: `ip netns` keeps them in /run/netns", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "cannot enter {}: {source}\nhint: entering a namespace needs root, or to own the user namespace it belongs to",
        path.display()
    )]
    Enter { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Load(#[from] LoadOnceError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// In iperf3's words.
    #[error("{0}")]
    Iperf3(String),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Print(io::Error),
}

fn run(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, MainError> {
    let arguments: Vec<OsString> = arguments.collect();
    let (options, command) = parse(lexopt::Parser::from_args(arguments))?;
    let gap = match &options.netns {
        Some(path) => enter(path)?,
        None => None,
    };
    match command {
        Command::Serve => serve::serve(gap),
        Command::Dial => dial::run(gap)?,
        Command::Agent(_) if options.netns.is_some() => return Err(AgentError::Netns.into()),
        Command::Agent(options) => match agent::run(&options)? {},
        Command::Check(words) => return Ok(check::run(&words)?),
        Command::CheckCore(words) => return Ok(check::run_core(words)),
        Command::CheckWorker => return Ok(check::run_worker()),
        Command::Facts(prefixes) => {
            let mut facts = linerate_facts::read(&Root::live(), &prefixes, &[]);
            facts.gaps.extend(gap.map(|reason| linerate_model::fact::Gap { what: "nic.".into(), reason }));
            let text = serde_json::to_string_pretty(&facts)?;
            print(&format!("{text}\n"))?;
        }
        Command::Declarations => {
            let text = serde_json::to_string_pretty(&observe::declarations())?;
            print(&format!("{text}\n"))?;
        }
        Command::Iperf3(arguments) => {
            return linerate_iperf3::command::run(arguments).map_err(MainError::Iperf3);
        }
        Command::Record(folder) => linerate_facts::record(&folder, &[])?,
        Command::Load => load_once::run()?,
        Command::Guard { journal, etc_dir } => linerate_facts::change::guardian::run(&journal, &etc_dir),
        Command::Version => print(&format!("linerate-node {}\n", env!("CARGO_PKG_VERSION")))?,
        Command::Help => print(HELP)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Moves the whole process, which has one thread yet, into a network namespace. Gives the reason when `/sys`
/// is not that of the namespace.
fn enter(place: &Path) -> Result<Option<String>, MainError> {
    let path = place::resolve(&Root::live(), place)
        .map_err(|e| MainError::Place { place: place.to_owned(), reason: e.into() })?;
    let open = File::open(&path);
    let file = open.map_err(|source| MainError::Open { path: path.clone(), source })?;
    linerate_sys::netns::enter_file_with_sysfs(&file).map_err(|source| MainError::Enter { path, source })
}

fn print(text: &str) -> Result<(), MainError> {
    match io::stdout().write_all(text.as_bytes()) {
        // `linerate-node facts | head` is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(MainError::Print(error)),
        _ => Ok(()),
    }
}

/// The whole program, with the arguments behind its name. Ends with an exit code of `linerate_model::exit`.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // What this program makes is for its user alone; files that other programs need get their mode
    // explicitly.
    linerate_sys::process::set_umask(UMASK);
    // Run by a descriptor, a process is called by its number. A list of processes should show what this is.
    let _ = std::fs::write("/proc/self/comm", "linerate-node");
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do when stderr is closed too.
            let _ = writeln!(io::stderr(), "linerate-node: {error}");
            Code::CouldNotRun.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Options, Command), String> {
        parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_line_is_understood() {
        assert_eq!(parsed(""), Ok((Options::default(), Command::Serve)));
        assert_eq!(parsed("--netns /n"), Ok((Options { netns: Some("/n".into()) }, Command::Serve)));
        assert_eq!(
            parsed("--netns /n facts nic. cpu."),
            Ok((Options { netns: Some("/n".into()) }, Command::Facts(vec!["nic.".into(), "cpu.".into()])))
        );
        assert_eq!(
            parsed("iperf3 -c h"),
            Ok((Options::default(), Command::Iperf3(vec!["-c".into(), "h".into()])))
        );
        assert_eq!(parsed("record d"), Ok((Options::default(), Command::Record("d".into()))));
        assert_eq!(parsed("load"), Ok((Options::default(), Command::Load)));
        let agent = |config: &str, failed| Command::Agent(AgentOptions { config: config.into(), failed });
        assert_eq!(parsed("agent"), Ok((Options::default(), agent(agent::CONFIG, 0))));
        assert_eq!(parsed("agent --config /f --failed 3"), Ok((Options::default(), agent("/f", 3))));
        let guard = Command::Guard { journal: "j".into(), etc_dir: "e".into() };
        assert_eq!(parsed("guard j e"), Ok((Options::default(), guard)));
        for (wrong, words) in [
            ("--netns", "missing argument for option '--netns'"),
            ("record", "missing argument"),
            ("guard j", "missing argument"),
            ("record a b", "unexpected argument \"b\""),
            ("agent x", "unexpected argument \"x\""),
            ("load x", "unexpected argument \"x\""),
            ("serve", "unexpected argument \"serve\""),
            ("--version x", "unexpected argument \"x\""),
            ("--nets /n", "invalid option '--nets'"),
        ] {
            let error = parsed(wrong).unwrap_err();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
