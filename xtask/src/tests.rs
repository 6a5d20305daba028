//! Runs all tests and counts them: passed, failed, skipped with the reason.
//!
//! A test that cannot run here prints `SKIPPED <name>: <reason>` and returns. In CI, as root, a skip is a failure, because
//! CI can run everything, except what needs hardware that a virtual machine lacks: such a reason starts with `hardware`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Result, bail, ensure};

use crate::{sh, target_debug};

/// Builds the programs, runs the tests, prints the sum.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    sh("cargo", &["build", "--workspace", "--locked"])?;
    let mut args = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
    args.extend(filter);
    args.extend(["--", "--show-output"]);
    println!("$ cargo {}", args.join(" "));
    let bin = target_debug();
    let mut child = Command::new("cargo")
        .args(&args)
        .env("LINERATE", bin.join("linerate"))
        .env("LINERATE_NODE", bin.join("linerate-node"))
        .env("LINERATE_LAB", bin.join("linerate-lab"))
        .stdout(Stdio::piped())
        .spawn()?;
    let mut sum = Sum::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            sum.line(&line?);
        }
    }
    let status = child.wait()?;
    for skip in &sum.skipped {
        println!("{skip}");
    }
    // Once more where everybody looks first: at the end.
    for line in &sum.failures {
        println!("{line}");
    }
    println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped.len());
    ensure!(status.success() && sum.failed == 0, "tests failed");
    ensure!(filter.is_some() || sum.passed > 0, "no test ran");
    let avoidable = sum.skipped.iter().filter(|s| !s.contains(": hardware")).count();
    if avoidable > 0 && std::env::var_os("CI").is_some() && am_root() {
        bail!("CI can run all but hardware tests, yet {avoidable} others were skipped");
    }
    Ok(())
}

/// Where in the output of a test program a line stands.
#[derive(Default, PartialEq)]
enum Part {
    #[default]
    Progress,
    Successes,
    Failures,
}

#[derive(Default)]
struct Sum {
    passed: u64,
    failed: u64,
    skipped: BTreeSet<String>,
    part: Part,
    /// What failed tests printed.
    failures: Vec<String>,
}

impl Sum {
    /// Shows failures as they come and counts the rest. What passed tests print is read for skips only.
    fn line(&mut self, line: &str) {
        if let Some(at) = line.find("SKIPPED ") {
            self.skipped.insert(line[at..].to_string());
        }
        match line {
            "successes:" => self.part = Part::Successes,
            "failures:" => self.part = Part::Failures,
            _ if line.starts_with("test result: ") => self.part = Part::Progress,
            _ => {}
        }
        if self.part == Part::Successes {
            return;
        }
        if self.part == Part::Failures {
            self.failures.push(line.to_owned());
        }
        if let Some(rest) = line.strip_prefix("test result: ") {
            let number = |word: &str| {
                rest.split([';', '.'])
                    .find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok())
                    .unwrap_or(0)
            };
            self.passed += number("passed");
            self.failed += number("failed");
            println!("{line}");
        } else if !(line.is_empty() || line.starts_with("test ") && line.ends_with("... ok")) {
            println!("{line}");
        }
    }
}

fn am_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|s| s.lines().any(|l| l.starts_with("Uid:\t0\t")))
}

#[cfg(test)]
mod counted {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test a::fine ... ok
test a::gone ... ok
test a::broken ... FAILED

successes:

---- a::fine stdout ----
500 simulated nodes
---- a::gone stdout ----
SKIPPED a::gone: hardware: no such card

successes:
    a::fine
    a::gone

failures:

---- a::broken stdout ----
thread 'a::broken' panicked at here:
left: 1

failures:
    a::broken

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.02s
";

    #[test]
    fn only_what_failed_is_shown_again_and_skips_are_counted() {
        let mut sum = Sum::default();
        OUTPUT.lines().for_each(|line| sum.line(line));
        assert_eq!((sum.passed, sum.failed), (2, 1));
        assert_eq!(sum.skipped.iter().collect::<Vec<_>>(), ["SKIPPED a::gone: hardware: no such card"]);
        assert!(sum.failures.iter().any(|line| line == "left: 1"));
        assert!(!sum.failures.iter().any(|line| line.contains("simulated")));
    }
}
