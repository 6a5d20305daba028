//! Every context, beside its convention.

use linerate_model::check::{CheckReport, CheckResult, CheckState};

use super::*;

fn result(check: &str, subject: &str, state: CheckState, text: &str) -> CheckResult {
    CheckResult {
        check: check.into(),
        subject: subject.into(),
        state,
        text: text.into(),
        cause: None,
        since_unix_s: None,
        strikes: 0,
        passes: 0,
    }
}

fn report(state: CheckState, dry_run: bool) -> CheckReport {
    CheckReport {
        host: "n1".into(),
        dry_run,
        results: vec![
            result("link-speed", "eth0", state, "1 Gbit/s | two\nlines"),
            result("mounts", "/home", CheckState::Ok, ""),
        ],
        ..CheckReport::default()
    }
}

/// Codes by context for: ok, suspect, unknown, warning, failing; failing in a dry run; failing, but the last
/// result of another call; could not run.
const CODES: &[(&str, [u8; 8])] = &[
    ("text", [0, 0, 3, 1, 1, 1, 1, 2]),
    ("json", [0, 0, 3, 1, 1, 1, 1, 2]),
    ("slurm", [0, 0, 0, 0, 1, 0, 0, 0]),
    ("prolog", [0, 0, 0, 0, 1, 0, 0, 0]),
    ("epilog", [0, 0, 0, 0, 1, 0, 0, 0]),
    ("nagios", [0, 0, 3, 1, 2, 2, 2, 3]),
    ("prometheus", [0, 0, 0, 0, 0, 0, 0, 2]),
    ("npd", [0, 0, 2, 0, 1, 1, 1, 2]),
    ("boot", [0, 0, 0, 1, 1, 0, 1, 0]),
];

#[test]
fn every_context_has_its_codes() {
    use CheckState::{Failing, Ok, Suspect, Unknown, Warning};
    assert_eq!(CODES.len(), CONTEXTS.len());
    for (word, codes) in CODES {
        let context = find(word).unwrap();
        let mut seen: Vec<u8> = [Ok, Suspect, Unknown, Warning, Failing]
            .map(|state| context.show(&report(state, false)).code)
            .to_vec();
        seen.push(context.show(&report(Failing, true)).code);
        let busy = CheckReport { busy_age_s: Some(12), ..report(Failing, false) };
        seen.push(context.show(&busy).code);
        seen.push(context.unable("no time").code);
        assert_eq!(seen, codes, "{word}");
    }
}

#[test]
fn contexts_that_read_lines_get_one() {
    for word in ["slurm", "prolog", "epilog", "nagios", "npd"] {
        for state in CheckState::ALL {
            let text = find(word).unwrap().show(&report(state, false)).text;
            assert!(text.matches('\n').count() <= 1, "{word}: {text}");
        }
    }
    let nagios = find("nagios").unwrap().show(&report(CheckState::Failing, false)).text;
    assert!(nagios.starts_with("LINERATE CRITICAL - link-speed eth0: 1 Gbit/s   two lines | failing=1;;1;0"));
    assert_eq!(nagios.matches('|').count(), 1);
    let slurm = find("slurm").unwrap();
    assert_eq!(slurm.show(&report(CheckState::Ok, false)).text, "", "nothing to report");
    assert!(
        slurm.show(&report(CheckState::Failing, true)).text.starts_with("linerate: (dry run) link-speed")
    );
}

#[test]
fn the_node_problem_detector_gets_80_characters() {
    let mut long = report(CheckState::Failing, false);
    long.results[0].text = "ä".repeat(200);
    let text = find("npd").unwrap().show(&long).text;
    assert_eq!(text.trim_end().chars().count(), 80);
}

#[test]
fn metrics_have_help_type_and_escaped_labels() {
    let mut odd = report(CheckState::Failing, false);
    odd.results[0].subject = "a\"b\\c\nd".into();
    let text = find("prometheus").unwrap().show(&odd).text;
    assert!(
        text.contains(r#"linerate_check_state{check="link-speed",subject="a\"b\\c\nd",state="failing"} 1"#),
        "{text}"
    );
    let names: std::collections::BTreeSet<&str> =
        text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split(['{', ' ']).next()).collect();
    for name in names {
        assert_eq!(text.matches(&format!("# HELP {name} ")).count(), 1, "{name}");
        assert_eq!(text.matches(&format!("# TYPE {name} gauge\n")).count(), 1, "{name}");
    }
}

#[test]
fn json_is_the_report() {
    let one = report(CheckState::Warning, true);
    let text = find("json").unwrap().show(&one).text;
    assert_eq!(serde_json::from_str::<CheckReport>(&text).unwrap(), one);
}
