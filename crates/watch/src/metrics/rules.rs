//! Alert rules for Prometheus, and for each a case that fires and one that is silent, for `promtool test
//! rules`.

use std::fmt::Write as _;

use super::{
    ACTIVE, DOWNLOADS_FAILED, HOSTS, LEFT_OUT, RECEIVED, RECEIVED_LOST, SENT, SENT_LOST, SLOW, UNDELIVERED,
    UNWRITTEN, WATCHED,
};

/// Name of the file with the rules, for their tests.
pub const RULES_FILE: &str = "linerate.rules.yml";

/// Minutes after which a case is evaluated.
const EVALUATED_MIN: u32 = 60;

/// Series of a case with their labels and their values, a minute each.
type Case = Vec<(String, &'static str)>;

/// An alert.
struct AlertRule {
    name: &'static str,
    expr: String,
    lasts: &'static str,
    severity: &'static str,
    summary: &'static str,
    description: &'static str,
    /// Labels that it has in its case.
    labels: &'static [(&'static str, &'static str)],
    firing: Case,
    silent: Case,
}

/// Loss above this is an alert of Prometheus by itself: what the watch finds it reports sooner.
const LOSS: &str = "0.01";

fn share(lost: &str, all: &str) -> String {
    format!("increase({lost}[15m]) / increase({all}[15m]) > {LOSS}")
}

fn of_host(name: &str) -> String {
    format!("{name}{{host=\"arc-1\"}}")
}

/// Labels of a host in its cases.
const HOST: &[(&str, &str)] = &[("host", "arc-1")];

/// All of them.
fn all() -> Vec<AlertRule> {
    of_loss().into_iter().chain(of_slow()).chain(of_watch()).collect()
}

/// Of what is lost. To add one: an entry here.
fn of_loss() -> Vec<AlertRule> {
    let loss = |name, lost: &str, all: &str, summary, description| AlertRule {
        name,
        expr: share(lost, all),
        lasts: "10m",
        severity: "warning",
        summary,
        description,
        labels: HOST,
        firing: vec![(of_host(lost), "0+20x60"), (of_host(all), "0+960x60")],
        silent: vec![(of_host(lost), "0+1x60"), (of_host(all), "0+960x60")],
    };
    let active = |value: &'static str| {
        let labels = "kind=\"host\",suspect=\"arc-1\",direction=\"receive\"";
        vec![(format!("{}{{{labels}}}", ACTIVE.name), value)]
    };
    vec![
        AlertRule {
            name: "LinerateAlarm",
            expr: format!("{} == 1", ACTIVE.name),
            lasts: "0m",
            severity: "warning",
            summary: "{{ $labels.suspect }} loses packets ({{ $labels.direction }})",
            description: "linerate watch has an alarm; run: linerate survey",
            labels: &[("kind", "host"), ("suspect", "arc-1"), ("direction", "receive")],
            firing: active("1+0x60"),
            // The series of an alarm ends with it.
            silent: active("1+0x30 stale"),
        },
        loss(
            "LinerateHostReceiveLoss",
            RECEIVED_LOST.name,
            RECEIVED.name,
            "{{ $labels.host }} loses more than 1 % of what it receives",
            "Probes of linerate watch do not arrive at {{ $labels.host }}; run: linerate survey",
        ),
        loss(
            "LinerateHostSendLoss",
            SENT_LOST.name,
            SENT.name,
            "{{ $labels.host }} loses more than 1 % of what it sends",
            "Probes of linerate watch from {{ $labels.host }} do not arrive; run: linerate survey",
        ),
    ]
}

/// Of what is slow. To add one: an entry here.
fn of_slow() -> Vec<AlertRule> {
    let suspect = "kind=\"download\",suspect=\"through 192.0.2.11\"";
    let slow = |values| vec![(format!("{}{{{suspect}}}", SLOW.name), values)];
    let path = "front_end=\"192.0.2.11\",host=\"arc-1\",url=\"http://files.example/a\"";
    let failed = |values| vec![(format!("{}{{{path}}}", DOWNLOADS_FAILED.name), values)];
    vec![
        AlertRule {
            name: "LinerateSlow",
            expr: format!("{} >= 0", SLOW.name),
            lasts: "0m",
            severity: "warning",
            summary: "{{ $labels.kind }} {{ $labels.suspect }} is slower than usual",
            description: "linerate watch has an alarm: {{ $value }} times slower, 0 where nothing arrives",
            labels: &[("kind", "download"), ("suspect", "through 192.0.2.11")],
            firing: slow("3125+0x60"),
            // The series of an alarm ends with it.
            silent: slow("3125+0x30 stale"),
        },
        AlertRule {
            name: "LinerateDownloadsFail",
            expr: format!("increase({}[30m]) > 3", DOWNLOADS_FAILED.name),
            lasts: "15m",
            severity: "warning",
            summary: "Downloads of {{ $labels.url }} through {{ $labels.front_end }} fail",
            description: "Run: linerate measure http {{ $labels.url }} --from {{ $labels.host }}",
            labels: &[("front_end", "192.0.2.11"), ("host", "arc-1"), ("url", "http://files.example/a")],
            firing: failed("0+1x60"),
            silent: failed("0+0x40 1+0x20"),
        },
    ]
}

/// Of the watch itself. To add one: an entry here.
fn of_watch() -> Vec<AlertRule> {
    let grows = |name, counter: &str, summary, description| AlertRule {
        name,
        expr: format!("increase({counter}[30m]) > 0"),
        lasts: "0m",
        severity: "warning",
        summary,
        description,
        labels: &[],
        firing: vec![(counter.to_owned(), "0+1x60")],
        silent: vec![(counter.to_owned(), "5+0x60")],
    };
    vec![
        AlertRule {
            name: "LinerateHostNotWatched",
            expr: format!("{} == 0", WATCHED.name),
            lasts: "15m",
            severity: "warning",
            summary: "{{ $labels.host }} is not watched",
            description: "linerate watch has had no session with {{ $labels.host }} for 15 minutes",
            labels: HOST,
            firing: vec![(of_host(WATCHED.name), "1+0x10 0+0x50")],
            silent: vec![(of_host(WATCHED.name), "1+0x48 0+0x5 1+0x10")],
        },
        AlertRule {
            name: "LinerateWatchAbsent",
            expr: format!("absent({})", HOSTS.name),
            lasts: "15m",
            severity: "critical",
            summary: "linerate watch does not run",
            description: "No target has had its metrics for 15 minutes",
            labels: &[],
            firing: vec![(HOSTS.name.to_owned(), "8+0x20 stale")],
            silent: vec![(HOSTS.name.to_owned(), "8+0x60")],
        },
        AlertRule {
            name: "LinerateHostsLeftOut",
            expr: format!("{} > 0", LEFT_OUT.name),
            lasts: "0m",
            severity: "warning",
            summary: "{{ $value }} hosts have no metrics",
            description: "linerate watch shows at most 50000 series; watch a part of the hosts in a second watch",
            labels: &[],
            firing: vec![(LEFT_OUT.name.to_owned(), "7+0x60")],
            silent: vec![(LEFT_OUT.name.to_owned(), "0+0x60")],
        },
        grows(
            "LinerateNotificationsFail",
            UNDELIVERED.name,
            "alarms of linerate watch are not delivered",
            "A target of [[notify]] fails; linerate watch prints why",
        ),
        grows(
            "LinerateHistoryNotWritten",
            UNWRITTEN.name,
            "linerate watch writes no history",
            "Its disk is full or does not answer; linerate watch prints why",
        ),
    ]
}

/// The rules as a file.
#[must_use]
pub fn rules() -> String {
    let mut out =
        "# Made by `linerate watch --print rules`.\ngroups:\n  - name: linerate\n    rules:\n".to_owned();
    for rule in all() {
        let _ = write!(
            out,
            "      - alert: {}\n        expr: '{}'\n        for: {}\n        labels:\n          severity: {}\n        \
             annotations:\n          summary: '{}'\n          description: '{}'\n",
            rule.name, rule.expr, rule.lasts, rule.severity, rule.summary, rule.description
        );
    }
    out
}

/// Their tests as a file beside [`RULES_FILE`]: of each a case that fires and one that is silent.
#[must_use]
pub fn rule_tests() -> String {
    let mut out = format!(
        "# Made by `linerate watch --print rule-tests`.\nrule_files:\n  - {RULES_FILE}\nevaluation_interval: 1m\ntests:\n"
    );
    for rule in all() {
        for (series, fires) in [(&rule.firing, true), (&rule.silent, false)] {
            out += "  - interval: 1m\n    input_series:\n";
            for (series, values) in series {
                let _ = writeln!(out, "      - series: '{series}'\n        values: '{values}'");
            }
            let _ = writeln!(
                out,
                "    alert_rule_test:\n      - eval_time: {EVALUATED_MIN}m\n        alertname: {}",
                rule.name
            );
            if fires {
                let _ = writeln!(
                    out,
                    "        exp_alerts:\n          - exp_labels:\n              severity: {}",
                    rule.severity
                );
                for (label, text) in rule.labels {
                    let _ = writeln!(out, "              {label}: {text}");
                }
                let _ = writeln!(
                    out,
                    "            exp_annotations:\n              summary: '{}'\n              description: '{}'",
                    expanded(rule.summary, &rule),
                    expanded(rule.description, &rule)
                );
            }
        }
    }
    out
}

/// A text with the labels and the value of its case.
fn expanded(text: &str, rule: &AlertRule) -> String {
    let value = rule.firing[0].1.split('+').next().unwrap_or_default();
    let labels = rule.labels.iter();
    labels.fold(text.replace("{{ $value }}", value), |text, (label, of)| {
        text.replace(&format!("{{{{ $labels.{label} }}}}"), of)
    })
}
