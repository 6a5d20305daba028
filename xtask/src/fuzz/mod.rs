//! `cargo xtask fuzz TARGET --time 60s`: throws mutated input at the parsers and state machines of the
//! workspace.
//!
//! In: a target of the list in `targets.rs`, a time, a seed. Out: how many inputs, how many of them behaved
//! in a new way, and every finding (a panic, or an input that took long) as a file in `target/fuzz/`. It
//! needs no nightly compiler and knows no code coverage: what it is guided by is what a target answers. The
//! same seed gives the same inputs as long as the targets behave the same.

mod mutate;
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use linerate_model::random::Random;
use targets::{TARGETS, Target};

/// An input that takes longer is a finding: none of the parsers has a reason to.
const SLOW: Duration = Duration::from_secs(1);
/// Inputs with an answer of their own that are kept as a start for others.
const CORPUS_MAX: usize = 4000;
/// Longest input, bytes.
const INPUT_BYTES_MAX: usize = 1 << 16;

/// Runs one target, or all of them one after the other when it is called `all`.
pub(crate) fn run(name: &str, time: &str, seed: u64) -> Result<()> {
    let time = duration(time).with_context(|| format!("`{time}` is no time; such as 60s, 5m, 1h"))?;
    let chosen: Vec<&Target> = TARGETS.iter().filter(|t| name == "all" || t.name == name).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        bail!("no target is called {name}; known are: all, {}", known.join(", "));
    }
    // A panic is what is looked for: its words are printed once, with the input.
    std::panic::set_hook(Box::new(|_| {}));
    let mut findings = 0;
    for target in &chosen {
        findings += fuzz(target, time / chosen.len() as u32, seed)?;
    }
    let _ = std::panic::take_hook();
    ensure!(findings == 0, "{findings} findings in target/fuzz/");
    Ok(())
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Duration::from_secs)
}

fn fuzz(target: &Target, time: Duration, seed: u64) -> Result<usize> {
    let mut random = Random(seed);
    let mut corpus = (target.seeds)();
    ensure!(!corpus.is_empty(), "{} has no seeds", target.name);
    let (mut answers, mut found) = (BTreeSet::new(), BTreeSet::new());
    let until = Instant::now() + time;
    let mut inputs = 0_u64;
    let mut next_seed = 0;
    while Instant::now() < until {
        // The seeds as they are come first.
        let input = if let Some(seed) = corpus.get(next_seed).filter(|_| inputs == next_seed as u64) {
            next_seed += 1;
            seed.clone()
        } else {
            mutate::mutated(&corpus, &mut random, INPUT_BYTES_MAX)
        };
        inputs += 1;
        let begun = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let slow = begun.elapsed() > SLOW && still_slow(target, &input);
        let what = match answer {
            Err(panic) => words(&*panic),
            Ok(_) if slow => "it took longer than a second".to_owned(),
            Ok(answer) => {
                if answers.insert(shape(&answer)) && corpus.len() < CORPUS_MAX {
                    corpus.push(input);
                }
                continue;
            }
        };
        if found.insert(what.clone()) {
            report(target, found.len(), &what, &input)?;
        }
    }
    println!(
        "{}: {inputs} inputs in {} s, {} different answers, {} findings (seed {seed})",
        target.name,
        time.as_secs(),
        answers.len(),
        found.len()
    );
    Ok(found.len())
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// An answer without its numbers and quoted parts, so that ten values of one error are one answer.
fn shape(answer: &str) -> u64 {
    let mut shape: String = answer.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    while shape.contains("00") {
        shape = shape.replace("00", "0");
    }
    // Millions of them are remembered in an hour: a number each, not their words.
    let mut hasher = DefaultHasher::new();
    shape.chars().take(300).for_each(|c| c.hash(&mut hasher));
    hasher.finish()
}

/// Whether an input takes long each time: once may be the machine's other work.
fn still_slow(target: &Target, input: &[u8]) -> bool {
    (0..3).all(|_| {
        let begun = Instant::now();
        let _ = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        begun.elapsed() > SLOW
    })
}

fn report(target: &Target, number: usize, what: &str, input: &[u8]) -> Result<()> {
    let folder = Path::new("target/fuzz");
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{}-{number}", target.name));
    fs::write(&path, input)?;
    println!("{}: {what}: {}", target.name, path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_takes_its_own_seeds_and_answers_alike() {
        for target in TARGETS {
            for seed in (target.seeds)() {
                assert_eq!((target.run)(&seed), (target.run)(&seed), "{}", target.name);
            }
        }
    }

    #[test]
    fn times_and_shapes() {
        assert_eq!(duration("5m"), Some(Duration::from_secs(300)));
        assert_eq!(duration("x"), None);
        assert_eq!(shape("12 of 4096"), shape("7 of 3"));
        assert_ne!(shape("12 of 4096"), shape("7 in 3"));
    }
}
