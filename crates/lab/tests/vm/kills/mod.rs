//! `kill -9` of the operator's program, of the node program of a guest, and of both, at ten points and more
//! of each command that builds, moves or undoes; then the command that the program itself suggests. Files on
//! devices that a command was not given, and on the side of a replica that is copied, have the same checksums
//! before and after, and every command comes to its end.
//!
//! A point is never a guessed time. A gate stands in front of each program of a step in the guest: the
//! command stands there until its victims are dead. Where something is to be killed while it writes, the
//! drives answer so many writes and no more. The points are a table beside each command. The tests kill at
//! every second point, the three kinds of victims in turns: a point costs half a minute of an emulated CPU.
//! `cargo xtask lab kills`, every night, kills each of them at every point (`LINERATE_KILLS=all`).

mod replica;
mod volume;

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linerate_lab::vm::disk::Ration;
use linerate_testkit::{pause, text};

use crate::{PATIENCE, Scene, wait_for};

/// Puts all victims at each point, instead of one in turns at every second one.
const ALL: &str = "LINERATE_KILLS";
const GATE: &str = include_str!("gate.sh");
const FUNCTIONS: &str = include_str!("guest.sh");

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Operator,
    Node,
    Both,
}

const VICTIMS: [Victim; 3] = [Victim::Operator, Victim::Node, Victim::Both];

/// When it is killed, in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// A program is about to begin: its step stands in the journal. It never begins where the node is killed.
    Before(&'static str),
    /// A program that another one started is about to begin: the outer one goes on by itself after the kill.
    Within(&'static str),
    /// A program has ended, and the node does not know it yet.
    Behind(&'static str),
    /// The step of a program is done in the journal, and the operator has not asked for the next one.
    Between(&'static str),
    /// So many writes of the rationed drives were begun, since a program ended or since the command began;
    /// further ones wait.
    Writing(Option<&'static str>, u64),
    /// A function of the guest holds.
    While(&'static str),
}

/// A row of the table of a command.
#[derive(Debug, Clone, Copy)]
struct Point {
    guest: &'static str,
    at: At,
}

const fn point(guest: &'static str, at: At) -> Point {
    Point { guest, at }
}

/// The cases of a table: all victims at each point, or one of them in turns at every second one.
fn cases(points: &'static [Point]) -> Vec<(Point, Victim)> {
    if std::env::var_os(ALL).is_some_and(|value| value == "all") {
        return points.iter().flat_map(|point| VICTIMS.map(|victim| (*point, victim))).collect();
    }
    points.iter().copied().zip(VICTIMS.into_iter().cycle()).skip(1).step_by(2).collect()
}

/// One kill.
#[derive(Debug, Clone, Copy)]
struct Case<'a> {
    /// Names it where it fails.
    what: &'a str,
    /// The command.
    words: &'a [&'a str],
    point: Point,
    victim: Victim,
    /// The command that is given after it.
    next: &'a [&'a str],
}

/// A running command of the operator. Its output goes to files, which remain when it is killed.
struct Run {
    child: Child,
    /// Of its own: another command may be started before this one ends.
    files: [PathBuf; 2],
}

impl Run {
    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    fn signal(&self, name: &str) {
        linerate_testkit::run("kill", &[&format!("-{name}"), &self.child.id().to_string()]);
    }

    /// Exit code, `None` after a signal, and everything that it printed.
    fn end(mut self) -> Ended {
        let begun = Instant::now();
        while !self.has_ended() {
            assert!(begun.elapsed() < PATIENCE, "linerate does not end: {}", self.words());
            pause();
        }
        Ended { code: self.child.wait().unwrap().code(), words: self.words() }
    }

    fn words(&self) -> String {
        self.files.each_ref().map(|file| text(&std::fs::read(file).unwrap())).concat()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Only a failed test leaves one behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    words: String,
}

impl Ended {
    /// The command that its last hint names, without its first word; it has to run as it was printed.
    fn hinted(&self) -> Option<Vec<String>> {
        let (_, hint) = self.words.rsplit_once("hint: ")?;
        let command = hint.split('`').nth(1)?.strip_prefix("linerate ")?;
        Some(command.split_whitespace().map(str::to_owned).collect())
    }
}

/// Guests with gates, and what must not change in them.
struct Killing {
    scene: Scene,
    rationed: Vec<String>,
    /// Commands so far.
    started: AtomicU64,
}

impl Killing {
    /// Puts gates in front of programs of the guests. `rationed` are drives of the first guest that are held
    /// where a point needs it.
    fn new(scene: Scene, gates: &[(&str, &[&str])], rationed: &[&str]) -> Self {
        for (guest, programs) in gates {
            for (path, content) in [("/run/gate.sh", GATE), ("/run/guest.sh", FUNCTIONS)] {
                scene.exec(guest, &["bash", "-ec", "echo \"$1\" >$2; chmod 755 $2", "sh", content, path]);
            }
            scene.sh(guest, &format!(". /run/guest.sh; gates {}", programs.join(" ")));
        }
        Self {
            scene,
            rationed: rationed.iter().map(|name| (*name).to_owned()).collect(),
            started: AtomicU64::new(0),
        }
    }

    fn sh(&self, guest: &str, lines: &str) -> String {
        self.scene.sh(guest, &format!(". /run/guest.sh; {lines}"))
    }

    /// Waits in a guest until one of its functions holds, or the command has ended.
    fn wait_in(&self, guest: &str, holds: &str, run: &mut Run) -> bool {
        let begun = Instant::now();
        loop {
            let has_ended = run.has_ended();
            if self.sh(guest, &format!("soon {holds}")) == "yes\n" {
                return true;
            }
            if has_ended {
                return false;
            }
            assert!(begun.elapsed() < PATIENCE, "{guest}: never {holds}; {}", run.words());
        }
    }

    fn wait_gone(&self, guest: &str) {
        wait_for("the node program ends", || self.sh(guest, "soon gone"), |answer| answer == "yes\n");
    }

    /// Lets the rationed drives together take so many more writes, or any number.
    fn ration(&self, writes: Option<u64>) -> Ration {
        let ration = Ration::new(writes.unwrap_or_default().into());
        for drive in &self.scene.lab.guest("one").unwrap().drives {
            if self.rationed.contains(&drive.name) {
                drive.ration(writes.map(|_| Ration::clone(&ration)));
            }
        }
        ration
    }

    fn start(&self, words: &[&str]) -> Run {
        let folder = self.scene.lab.folder().to_owned();
        let (variable, value) = self.scene.lab.environment();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let files = ["out", "err"].map(|name| folder.join(format!("{name}-{number}")));
        let into = |file: &PathBuf| File::create(file).unwrap();
        let mut command = Command::new(&self.scene.programs.linerate);
        command.args(words).env(variable, value).env("LINERATE_NODE", &self.scene.programs.node);
        command.env("LINERATE_DATA", folder.join("data")).stdin(Stdio::null());
        let child = command.stdout(into(&files[0])).stderr(into(&files[1])).spawn().unwrap();
        Run { child, files }
    }

    /// Runs a command to its end; again, as its hint demands, while the program of a killed node still runs.
    fn command(&self, words: &[&str]) -> Ended {
        let begun = Instant::now();
        loop {
            let ended = self.start(words).end();
            if !ended.words.contains("still runs") {
                return ended;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", ended.words);
        }
    }

    /// Runs a command that has to end with one of these codes.
    fn good(&self, what: &str, words: &[&str], codes: &[i32]) -> Ended {
        let ended = self.command(words);
        assert!(
            ended.code.is_some_and(|code| codes.contains(&code)),
            "{what}: linerate {}: {:?}: {}",
            words.join(" "),
            ended.code,
            ended.words
        );
        ended
    }

    /// Lets what stands at the gate of a guest go on, or not. What only reads was ended by its node already.
    fn open(&self, guest: &str, word: &str) {
        self.sh(guest, &format!("echo {word} 1<>/run/gate/word"));
    }

    /// Starts a command and goes to its point; it stands there, or its writes wait.
    fn reach(&self, Case { what, words, point: Point { guest, at }, .. }: Case<'_>) -> Run {
        let gate = match at {
            At::Before(program) | At::Within(program) => Some(("before", program)),
            At::Behind(program) | At::Between(program) | At::Writing(Some(program), _) => {
                Some(("behind", program))
            }
            At::Writing(None, _) | At::While(_) => None,
        };
        self.sh(guest, "rm -f /run/gate/before /run/gate/behind /run/gate/stands");
        if let Some((side, program)) = gate {
            self.sh(guest, &format!("echo '{program}' >/run/gate/{side}"));
        }
        let mut ration = match at {
            At::Writing(None, writes) => self.ration(Some(writes)),
            _ => Ration::default(),
        };
        let mut run = self.start(words);
        if gate.is_some() {
            let stands = self.wait_in(guest, "stands", &mut run);
            assert!(stands, "{what}: the point is never reached: {}", run.words());
        }
        match at {
            At::Between(_) => {
                run.signal("STOP");
                self.open(guest, "go");
                assert!(self.wait_in(guest, "whole", &mut run), "{what}: never whole: {}", run.words());
            }
            At::Writing(program, writes) => {
                if program.is_some() {
                    ration = self.ration(Some(writes));
                    self.open(guest, "go");
                }
                let begun = Instant::now();
                while ration.load(Ordering::Relaxed) > 0 {
                    assert!(!run.has_ended(), "{what}: it ended before: {}", run.words());
                    assert!(begun.elapsed() < PATIENCE, "{what}: nothing is written: {}", run.words());
                    pause();
                }
            }
            At::While(holds) => {
                assert!(self.wait_in(guest, holds, &mut run), "{what}: never {holds}: {}", run.words());
            }
            At::Before(_) | At::Within(_) | At::Behind(_) => {}
        }
        run
    }

    /// Goes to a point of a command and kills the victim there. Gives how the operator ended.
    fn kill(&self, case: Case<'_>) -> Ended {
        let Case { what, point: Point { guest, at }, victim, next, .. } = case;
        let run = self.reach(case);
        if victim == Victim::Both {
            // It does nothing about the end of the node.
            run.signal("STOP");
        }
        if victim != Victim::Operator {
            let killed = self.sh(guest, "for node in $(nodes); do kill -9 $node && echo $node; done");
            // One whose operator stands still between two steps may have ended by itself.
            let is_there = !killed.is_empty() || matches!(at, At::Between(_));
            assert!(is_there, "{what}: no node program: {}", run.words());
        }
        if victim != Victim::Node {
            run.signal("KILL");
        }
        self.ration(None);
        if matches!(at, At::Within(_)) && victim != Victim::Operator {
            // The program that goes on is not overtaken.
            let refused = self.start(next).end();
            assert!(refused.words.contains("still runs") && refused.code != Some(0), "{what}: {refused:?}");
        }
        match at {
            At::Before(_) if victim != Victim::Operator => self.open(guest, "never"),
            At::Before(_) | At::Within(_) | At::Behind(_) => self.open(guest, "go"),
            At::Between(_) if victim == Victim::Node => run.signal("CONT"),
            At::Between(_) | At::Writing(..) | At::While(_) => {}
        }
        let ended = run.end();
        self.wait_gone(guest);
        assert_eq!(ended.code.is_none(), victim != Victim::Node, "{what}: {}", ended.words);
        ended
    }
}
