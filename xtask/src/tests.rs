//! Runs all tests and counts them: passed, failed, skipped with the reason.
//!
//! A test that cannot run here prints `SKIPPED <name>: <reason>` and returns. In CI, as root, a skip is a
//! failure, because CI can run everything, except what needs hardware that a virtual machine lacks: such a
//! reason starts with `hardware`.
//!
//! Property tests get the same inputs each time, so that one commit has one answer. Others are for
//! `PROPTEST_RNG_SEED=N script/test` and for `cargo xtask fuzz`.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};

use crate::shell::{am_root, sh, target_debug};
use crate::test_programs::{self, Choice};

/// Seed of the property tests' inputs, unless the environment has another.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "2026");

/// How a reason begins that is no failure in CI.
const UNAVOIDABLE: &str = ": hardware";

/// Builds the programs, runs the tests, prints the sum.
pub(crate) fn run(choice: Choice<'_>) -> Result<()> {
    if choice.is_quick {
        // Some of the programs that tests run have no test that is built.
        sh("cargo", &["build", "--workspace", "--locked"])?;
    }
    let programs = test_programs::build(choice)?;
    let bin = target_debug();
    let seed = std::env::var_os(SEED.0).unwrap_or_else(|| SEED.1.into());
    let environment = [
        ("LINERATE", bin.join("linerate")),
        ("LINERATE_NODE", bin.join("linerate-node")),
        ("LINERATE_LAB", bin.join("linerate-lab")),
        ("LINERATE_JUDGE", bin.join("linerate-judge")),
        (SEED.0, seed.into()),
    ];
    let mut sum = Sum { filtered: choice.filter.is_some() || choice.is_quick, ..Sum::default() };
    let ran = test_programs::run(&programs, choice, &environment, |line| {
        if sum.line(line) {
            println!("{line}");
        }
    })?;
    for skip in &sum.skipped {
        println!("{skip}");
    }
    // Once more where everybody looks first: at the end.
    for line in &sum.failures {
        println!("{line}");
    }
    println!("{}", ran.slowest());
    println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped.len());
    ensure!(ran.all_well && sum.failed == 0, "tests failed");
    ensure!(choice.filter.is_some() || sum.passed > 0, "no test ran");
    let avoidable = sum.skipped.iter().filter(|s| !s.contains(UNAVOIDABLE)).count();
    if avoidable > 0 && std::env::var_os("CI").is_some() && am_root() {
        bail!("CI can run all but tests of hardware, yet {avoidable} others were skipped");
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
    /// Only some of the tests were asked for.
    filtered: bool,
}

impl Sum {
    /// Whether it is the ending of a test program that a test started again, in a namespace of its own, for
    /// one of its tests.
    fn is_nested(&self, ending: &str) -> bool {
        !self.filtered && number(ending, "filtered out") > 0
    }

    /// Whether a line is to be shown: failures as they come, and what each program needed. The rest is
    /// counted, and what passed tests print is read for skips only.
    fn line(&mut self, line: &str) -> bool {
        if let Some(at) = line.find("SKIPPED ") {
            self.skipped.insert(line[at..].to_string());
        }
        let ending = line.strip_prefix("test result: ").filter(|ending| !self.is_nested(ending));
        match line {
            "successes:" => self.part = Part::Successes,
            "failures:" => self.part = Part::Failures,
            _ if ending.is_some() => self.part = Part::Progress,
            _ => {}
        }
        if self.part == Part::Successes {
            return false;
        }
        if self.part == Part::Failures {
            self.failures.push(line.to_owned());
        }
        if let Some(ending) = ending {
            self.passed += number(ending, "passed");
            self.failed += number(ending, "failed");
            return true;
        }
        !(line.is_empty() || line.starts_with("test ") && line.ends_with("... ok"))
    }
}

/// The number in front of a word in the last line of a test program.
fn number(ending: &str, word: &str) -> u64 {
    let of = |part: &str| part.trim().strip_suffix(word)?.trim().parse::<u64>().ok();
    ending.split([';', '.']).find_map(of).unwrap_or(0)
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
running 1 test
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.48s
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
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| sum.line(line)).collect();
        assert!(shown.contains(&"left: 1") && !shown.contains(&"500 simulated nodes"));
        assert_eq!((sum.passed, sum.failed), (2, 1));
        assert_eq!(sum.skipped.iter().collect::<Vec<_>>(), ["SKIPPED a::gone: hardware: no such card"]);
        assert!(sum.failures.iter().any(|line| line == "left: 1"));
        assert!(!sum.failures.iter().any(|line| line.contains("simulated")));
    }
}
