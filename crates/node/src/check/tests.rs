//! Lanes with children that never answer, and whole judgements of made-up answers.

use std::cell::Cell;
use std::io::{self, PipeReader, Write as _};
use std::process::Command;

use linerate_model::check::{CheckReport, CheckState};
use linerate_sys::root::Root;
use linerate_sys::sched;

use super::core::READING_S;
use super::judge;
use super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::lanes;
use super::options::DEADLINE_S;
use super::past::{Memory, Past};
use super::rule::{Moment, Severity, TWICE, Verdict};
use super::settings::Settings;
use super::worker::{Answer, Job};
use super::{Watch, printed};

const SECOND_NS: u64 = 1_000_000_000;

fn job(item: &str, patience_ms: u64) -> Job {
    let settings = Settings::default();
    Job { check: "mounts".into(), item: item.into(), settings, cursor: None, patience_ms }
}

/// A child that answers one line for each item of its request, and hangs in those that begin with `hang`; it
/// does not end at a polite signal.
fn child() -> Command {
    let script = r#"
        trap '' TERM
        read -r request || :
        printf '%s' "$request" | tr ',' '\n' | sed -n 's/.*"item":"\([^"]*\)".*/\1/p' | while read -r item; do
            case $item in
                hang*) sleep 600 ;;
                garbage) echo 'no answer' ;;
                end) exit 1 ;;
                *) echo '{"seen":{"rows":[{"subject":"'"$item"'"}]}}' ;;
            esac
        done
    "#;
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn words(answers: &[(Job, Answer)], item: &str) -> String {
    let found: Vec<&Answer> =
        answers.iter().filter(|(job, _)| job.item == item).map(|(_, answer)| answer).collect();
    match found[..] {
        [Answer::Seen(evidence)] => evidence.rows[0].subject.clone(),
        [Answer::Failed(reason)] => reason.clone(),
        [Answer::Silent] => "silent".to_owned(),
        [Answer::NotAsked] => "not asked".to_owned(),
        _ => panic!("{} answers for {item}", found.len()),
    }
}

#[test]
fn a_job_that_hangs_costs_its_patience_and_the_others_are_answered() {
    let lanes = vec![
        vec![job("a", 5_000), job("hang-1", 200), job("b", 5_000), job("hang-2", 200), job("c", 5_000)],
        vec![job("d", 5_000)],
    ];
    let begun = sched::monotonic_ns();
    let outcome = lanes::run(lanes, &child, begun + 60 * SECOND_NS);
    assert_eq!(outcome.answers.len(), 6);
    for (item, answer) in
        [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d"), ("hang-1", "silent"), ("hang-2", "silent")]
    {
        assert_eq!(words(&outcome.answers, item), answer);
    }
    // These could be killed, with what they had started.
    assert_eq!(outcome.stuck, vec![]);
}

#[test]
fn jobs_that_hang_cost_the_time_of_one() {
    let hanging = ["hang-1", "hang-2", "hang-3", "hang-4", "hang-5", "hang-6"];
    let jobs = hanging.iter().copied().chain(["a"]).map(|item| job(item, 8_000)).collect();
    let begun = sched::monotonic_ns();
    let outcome = lanes::run(vec![jobs], &child, begun + 300 * SECOND_NS);
    let took_ns = sched::monotonic_ns() - begun;
    assert_eq!(words(&outcome.answers, "a"), "a");
    assert!(hanging.iter().all(|item| words(&outcome.answers, item) == "silent"));
    // One after the other they would take 48 s.
    assert!(took_ns < 40 * SECOND_NS, "{took_ns} ns");
}

#[test]
fn a_child_that_ends_or_answers_something_else_costs_one_answer() {
    let lanes = vec![vec![job("a", 5_000), job("garbage", 5_000), job("end", 5_000), job("b", 5_000)]];
    let outcome = lanes::run(lanes, &child, sched::monotonic_ns() + 60 * SECOND_NS);
    for (item, answer) in [
        ("a", "a"),
        ("garbage", "its child answered something else"),
        ("end", "its child ended without an answer"),
        ("b", "b"),
    ] {
        assert_eq!(words(&outcome.answers, item), answer);
    }
}

#[test]
fn behind_the_deadline_nothing_is_asked() {
    let lanes = vec![vec![job("a", 5_000), job("b", 5_000)]];
    let outcome = lanes::run(lanes, &child, sched::monotonic_ns());
    assert_eq!(words(&outcome.answers, "a"), "not asked");
    assert_eq!(words(&outcome.answers, "b"), "not asked");
}

#[test]
fn a_program_that_cannot_be_started_is_a_reason() {
    let lanes = vec![vec![job("a", 5_000)]];
    let outcome = lanes::run(lanes, &|| Command::new("/nonexistent/x"), u64::MAX);
    assert!(words(&outcome.answers, "a").starts_with("no child for it: "));
}

#[test]
fn a_process_is_known_by_its_number_and_when_it_began() {
    let own = std::process::id();
    let began = lanes::began(own).unwrap();
    let stuck = |began| super::past::Stuck {
        check: "mounts".into(),
        item: "/".into(),
        pid: own,
        began,
        since_unix_s: 0,
    };
    assert!(lanes::is_there(&stuck(began)) && !lanes::is_there(&stuck(began + 1)));
    assert_eq!(lanes::began(0), None);
}

/// Asks a pipe into which a byte comes every so many seconds of a clock that passes at once. Gives the answer
/// and the seconds.
fn trickled(every_s: u64, deadline_s: u64) -> (Result<Vec<u8>, String>, u64) {
    let (pipe, mut end) = io::pipe().unwrap();
    let now_ns = Cell::new(7 * SECOND_NS);
    let wait = |_: &PipeReader, until_ns: u64| {
        let next_ns = now_ns.get() + every_s * SECOND_NS;
        now_ns.set(next_ns.min(until_ns));
        next_ns <= until_ns && (&mut &end).write_all(b"x").is_ok()
    };
    let answer = printed(pipe, deadline_s, &Watch { now_ns: &|| now_ns.get(), wait: &wait });
    // It was open all the time.
    end.flush().unwrap();
    (answer, now_ns.get() / SECOND_NS - 7)
}

#[test]
fn a_call_ends_at_its_deadline_however_what_hangs_behaves() {
    for every_s in [1, 39, 40, 41, u64::MAX / SECOND_NS - 100] {
        let (answer, took_s) = trickled(every_s, DEADLINE_S);
        let reason = answer.unwrap_err();
        assert!(reason.starts_with("no result within 40 s: "), "{reason}");
        assert_eq!(took_s, 40, "a byte every {every_s} s");
    }
    // What the core and its children wait for ends before.
    const { assert!(READING_S + 5 < DEADLINE_S) };
}

/// Bad where a row has the value 1, and where a job hangs.
struct Made;

static MADE: About = About {
    id: "made",
    title: "",
    reads: "",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

impl Check for Made {
    fn about(&self) -> &'static About {
        &MADE
    }

    fn read(&self, _reading: &Reading<'_>) -> Result<Evidence, String> {
        Err("is not read".to_owned())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        if row.get("bad") == Some(1.0) {
            Observation::bad(row, "bad")
        } else {
            Observation::good(row, "good")
        }
    }

    fn silent(&self, item: &str) -> Observation {
        Observation::bad(&Row::new(item), "hangs")
    }
}

fn seen(rows: &[(&str, f64)]) -> Answer {
    let rows: Vec<Row> = rows.iter().map(|(subject, bad)| Row::new(*subject).value("bad", *bad)).collect();
    Answer::Seen(rows.into())
}

struct Calls {
    past: Past,
    up_s: u64,
    settings: Settings,
}

impl Calls {
    fn call(&mut self, answers: &[(&str, Answer)]) -> Vec<(String, CheckState, String)> {
        self.up_s += 300;
        let now = Moment { up_s: self.up_s, unix_s: self.up_s as i64 };
        let answers: Vec<(&str, &Answer)> = answers.iter().map(|(item, answer)| (*item, answer)).collect();
        let results = judge::results(&Made, &answers, &mut self.past, now, &self.settings);
        results.into_iter().map(|one| (one.subject, one.state, one.text)).collect()
    }
}

fn calls(settings: Settings) -> Calls {
    Calls { past: Past::default(), up_s: 0, settings }
}

#[test]
fn a_subject_fails_at_the_second_call_and_is_well_after_three_good_ones() {
    let mut calls = calls(Settings::default());
    let bad = || [("", seen(&[("eth0", 1.0), ("eth1", 0.0)]))];
    let good = || [("", seen(&[("eth0", 0.0), ("eth1", 0.0)]))];
    assert_eq!(calls.call(&bad())[0].1, CheckState::Suspect);
    assert_eq!(calls.call(&bad())[0].1, CheckState::Failing);
    let clearing = calls.call(&good());
    assert_eq!(clearing[0].2, "bad (now: good; 1 of 3 passes)");
    assert_eq!(clearing[1].1, CheckState::Ok);
    // What is not seen neither clears nor fails.
    let blind = calls.call(&[("", Answer::Failed("denied".into()))]);
    assert_eq!((blind[0].0.as_str(), blind[0].1), ("", CheckState::Unknown));
    assert_eq!(calls.call(&good())[0].1, CheckState::Failing);
    assert_eq!(calls.call(&good())[0].1, CheckState::Ok);
}

#[test]
fn a_device_that_is_gone_leaves_no_failure_and_exceptions_are_left_alone() {
    let mut gone = calls(Settings::default());
    for _ in 0..2 {
        gone.call(&[("", seen(&[("eth0", 1.0)]))]);
    }
    assert_eq!(gone.call(&[("", seen(&[("eth5", 0.0)]))]).len(), 1);
    assert_eq!(gone.call(&[("", seen(&[("eth0", 1.0)]))])[0].1, CheckState::Suspect, "begins anew");
    let mut excepted = calls(Settings { except: vec!["eth*".into()], ..Settings::default() });
    assert!(excepted.call(&[("", seen(&[("eth0", 1.0)]))]).is_empty());
    let mut mild = calls(Settings { warn_only: true, ..Settings::default() });
    mild.call(&[("", seen(&[("eth0", 1.0)]))]);
    assert_eq!(mild.call(&[("", seen(&[("eth0", 1.0)]))])[0].1, CheckState::Warning);
}

#[test]
fn what_hangs_is_bad_where_the_check_has_it_so() {
    let mut calls = calls(Settings::default());
    let hangs = || [("/home", Answer::Silent), ("/", seen(&[("/", 0.0)]))];
    assert_eq!(calls.call(&hangs())[0].1, CheckState::Suspect);
    let second = calls.call(&hangs());
    assert_eq!((second[0].0.as_str(), second[0].1), ("/home", CheckState::Failing));
    assert_eq!(second[1].1, CheckState::Ok);
}

#[test]
fn every_real_check_survives_rows_that_lack_everything() {
    let now = Moment { up_s: 1000, unix_s: 1000 };
    let settings = Settings::default();
    for check in super::list::CHECKS {
        let mut past = Past::default();
        for row in [Row::new("x"), Row::new("x").value("events", 1e300).value("traffic", 0.0)] {
            let observation = check.judge(&row, &mut past, now, &settings);
            assert_eq!(observation.subject, "x", "{}", check.about().id);
        }
        // The second job of a check that hangs is bad for file systems alone.
        let silent = check.silent("x").verdict;
        assert_eq!(silent == Verdict::Bad, check.about().id == "mounts", "{}", check.about().id);
    }
}

#[test]
fn who_comes_while_another_call_runs_gets_the_last_result_with_its_age() {
    let now = Moment { up_s: 1000, unix_s: 5000 };
    let mut memory = Memory::restore(None, "boot", now).0;
    memory.last = Some(CheckReport { host: "n1".into(), at_unix_s: 4900, ..CheckReport::default() });
    let text = memory.text().unwrap();
    assert_eq!(super::core::last(Some(&text), "n1", now).busy_age_s, Some(100));
    let late = Moment { unix_s: 5000 + 3600, ..now };
    for report in [
        super::core::last(Some(&text), "n1", late),
        super::core::last(None, "n1", now),
        super::core::last(Some("x"), "n1", now),
    ] {
        assert_eq!(report.worst(), CheckState::Unknown);
        assert!(report.busy_age_s.is_some() && report.notes.len() == 1);
    }
}

#[test]
fn the_guide_has_the_list_of_checks() {
    let page = include_str!("../../../../docs/guide/health-checks.md");
    let list = super::listed::markdown();
    assert!(page.ends_with(&list), "the end of docs/guide/health-checks.md is not:\n{list}");
}

/// Subjects by check and verdict of one recorded host, at its first call.
fn recorded(tree: &str) -> Vec<(&'static str, String, Verdict, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../facts/tests/roots").join(tree);
    let root = Root::recorded(&folder);
    let (settings, now) = (Settings::default(), Moment { up_s: 1000, unix_s: 1000 });
    let mut seen = Vec::new();
    // File systems are asked themselves, which a record cannot answer.
    for check in super::list::CHECKS.iter().filter(|check| check.about().id != "mounts") {
        let mut past = Past::default();
        for item in check.items(&root, &settings) {
            let reading = Reading { root: &root, item: &item, settings: &settings, cursor: None };
            let Ok(evidence) = check.read(&reading) else { continue };
            for row in &evidence.rows {
                let one = check.judge(row, &mut past, now, &settings);
                seen.push((check.about().id, one.subject, one.verdict, one.text));
            }
        }
    }
    seen
}

#[test]
fn recorded_hosts_are_read_and_their_first_call_finds_no_growth() {
    for tree in ["many-nics", "old-sparse", "storage-stack", "veth-host"] {
        let seen = recorded(tree);
        for (check, subject, verdict, text) in &seen {
            println!("{tree}: {check} {subject}: {verdict:?} {text}");
            let is_growth = ["frame-errors", "frame-drops", "carrier", "kernel-log"].contains(check);
            assert!(!is_growth || *verdict != Verdict::Bad, "{check} {subject}");
        }
        let count = |id: &str| seen.iter().filter(|(check, ..)| *check == id).count();
        // Hosts with recorded links have their counters judged.
        assert!(tree == "storage-stack" || count("frame-errors") > 0 || count("frame-drops") > 0, "{tree}");
    }
}
