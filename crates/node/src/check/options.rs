//! The command line of `linerate-node check`.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use super::contexts::{self, Context};
use super::kind::Check;

/// Longest jitter, seconds: the deadline of a call begins behind it.
const JITTER_MAX_S: u64 = 3600;
/// When a call answers at the latest, seconds; Slurm ends a health check after 60.
pub(super) const DEADLINE_S: u64 = 40;

pub(super) const HELP: &str = "\
linerate-node check: check this host, without load

usage: linerate-node check [OPTIONS]

  --as CONTEXT      form and exit codes: text (default), json, slurm, prolog, epilog, nagios, prometheus, npd;
                    boot waits until the kept set is in force
  --dry-run         no consequences; the default
  --enforce         with consequences, unless checks.toml has `enforce = false`; `linerate check install` gives it
  --only ID,...     only these checks; their results are not stored as the last ones
  --name HOST       name of this host in the report
  --to FILE         write the output into this file in one step instead of stdout
  --jitter SECONDS  wait first, up to so long, by the name of the host
  --deadline SECONDS  answer after so long at the latest, 1 to 40 [40]
  --config FILE     kill switches and thresholds [/etc/linerate/checks.toml]
  --state DIR       where the past is kept [/var/lib/linerate]
  --list            print all checks with their thresholds
  --help            print this
";

/// What is asked for.
pub(super) struct Options {
    pub(super) context: &'static dyn Context,
    pub(super) is_dry_run: bool,
    /// What counts where the configuration has no `enforce`.
    pub(super) enforce: bool,
    /// All when empty.
    pub(super) only: Vec<String>,
    pub(super) name: Option<String>,
    pub(super) to: Option<PathBuf>,
    pub(super) jitter_s: u64,
    pub(super) deadline_s: u64,
    /// Where none is given, one that is missing is no error.
    pub(super) config: Option<PathBuf>,
    pub(super) state_dir: PathBuf,
}

/// What to do.
pub(super) enum Request {
    Check(Options),
    List,
    Help,
}

/// Reads the words behind `check`.
pub(super) fn parse(words: Vec<OsString>, checks: &[&dyn Check]) -> Result<Request, lexopt::Error> {
    let mut options = Options {
        context: contexts::CONTEXTS[0],
        is_dry_run: false,
        enforce: false,
        only: Vec::new(),
        name: None,
        to: None,
        jitter_s: 0,
        deadline_s: DEADLINE_S,
        config: None,
        state_dir: PathBuf::from("/var/lib/linerate"),
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match &argument {
            Long("as") => {
                let word = parser.value()?.string()?;
                options.context = contexts::find(&word).ok_or_else(|| {
                    let known: Vec<&str> = contexts::CONTEXTS.iter().map(|one| one.word()).collect();
                    format!("unknown context `{word}`; known: {}", known.join(", "))
                })?;
            }
            Long("dry-run") => options.is_dry_run = true,
            Long("enforce") => options.enforce = true,
            Long("only") => {
                for id in parser.value()?.string()?.split(',') {
                    if !checks.iter().any(|check| check.about().id == id) {
                        return Err(format!("unknown check `{id}`; `--list` prints all").into());
                    }
                    options.only.push(id.to_owned());
                }
            }
            Long("name") => options.name = Some(parser.value()?.string()?),
            Long("to") => options.to = Some(parser.value()?.into()),
            Long("jitter") => {
                options.jitter_s = parser.value()?.parse()?;
                if options.jitter_s > JITTER_MAX_S {
                    return Err(format!("jitter {} s, limit {JITTER_MAX_S} s", options.jitter_s).into());
                }
            }
            Long("deadline") => {
                options.deadline_s = parser.value()?.parse()?;
                if !(1..=DEADLINE_S).contains(&options.deadline_s) {
                    return Err(
                        format!("deadline {} s, allowed 1 to {DEADLINE_S} s", options.deadline_s).into()
                    );
                }
            }
            Long("config") => options.config = Some(parser.value()?.into()),
            Long("state") => options.state_dir = parser.value()?.into(),
            Long("list") => return Ok(Request::List),
            Long("help") | Short('h') => return Ok(Request::Help),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Request::Check(options))
}

/// The context of a command line that is otherwise wrong.
pub(super) fn context_of(words: &[OsString]) -> Option<&'static dyn Context> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let joined = words.iter().find_map(|word| word.strip_prefix("--as="));
    let apart = words.windows(2).find(|pair| pair[0] == "--as").map(|pair| pair[1]);
    contexts::find(joined.or(apart)?)
}

/// Seconds to wait before the checks of a host, below `most`: the same for each call of one host, spread over
/// many hosts. FNV-1a, which needs to be the same in every release.
pub(super) fn jitter_s(name: &str, most: u64) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    if most == 0 { 0 } else { (hash >> 16) % most }
}

#[cfg(test)]
mod tests {
    use super::super::list::CHECKS;
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        parse(words, CHECKS).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_understood() {
        let line = "--as nagios --dry-run --only link-speed,mounts --name n1 --to /f --jitter 30 --state /s";
        let Ok(Request::Check(options)) = parsed(line) else { panic!("no options") };
        assert_eq!((options.context.word(), options.is_dry_run, options.jitter_s), ("nagios", true, 30));
        assert_eq!((options.only.len(), options.name.as_deref()), (2, Some("n1")));
        for (wrong, words) in [
            ("--as x", "unknown context `x`; known: text"),
            ("--only link", "unknown check `link`"),
            ("--jitter 99999", "limit 3600 s"),
            ("--deadline 41", "allowed 1 to 40 s"),
            ("x", "unexpected argument \"x\""),
        ] {
            let error = parsed(wrong).err().unwrap();
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }

    #[test]
    fn hosts_are_spread_and_each_is_where_it_was() {
        assert_eq!((jitter_s("n1", 0), jitter_s("n1", 300)), (0, jitter_s("n1", 300)));
        let mut buckets = [0; 10];
        for host in 0..1000 {
            buckets[(jitter_s(&format!("node-{host:04}"), 300) / 30) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| (60..150).contains(count)), "{buckets:?}");
    }
}
