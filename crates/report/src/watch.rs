//! What a watch reports, as lines: alarms of loss and of what is slow, gaps, changes; and an alarm as the
//! alert that is delivered. Events in, text of at most the width out.

use std::collections::BTreeMap;
use std::fmt::Write;

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::fact_change::FactChange;
use linerate_model::notify::Alert;

use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::slow::{SlowAlarm, SlowOf};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::units;
use linerate_model::verdict::{Verdict, VerdictItem};
use linerate_model::watch::{
    ChangeBefore, DecidedLoss, DecidingFlow, LossAlarm, LossVerdict, WatchAlarm, WatchEvent, WatchTotals,
};

use crate::{changes, names, slow};

/// Name of the alert of a loss.
pub const ALERT: &str = "LinerateLoss";
/// Name of that of what is slow.
pub const SLOW_ALERT: &str = "LinerateSlow";
/// Changes that an alert quotes.
const CHANGES_MAX: usize = 5;

/// The lines of an event; `at_ms` is now.
#[must_use]
pub fn event(event: &WatchEvent, at_ms: u64, width: usize) -> String {
    let line = |text: &str| names::cut(&format!("{} {text}", clock(at_ms)), width) + "\n";
    match event {
        // Rounds are for programs and the history.
        WatchEvent::Watched { gap_ms: None, .. }
        | WatchEvent::Downloaded { .. }
        | WatchEvent::Throughput { .. } => String::new(),
        WatchEvent::Watched { host, gap_ms: Some(gap_ms) } => {
            line(&format!("{}: watched again after {}", one_line(host), span(*gap_ms)))
        }
        WatchEvent::Gap { host, reason } => {
            line(&format!("{}: not watched: {}", one_line(host), one_line(&lines_of_error(reason))))
        }
        WatchEvent::Changed { host, notice } => changes::notice(host, notice, width),
        WatchEvent::Opened { alarm, changes: before } => {
            let mut out = line(&format!("ALARM {}: {}", alarm.id, loses(alarm)));
            let _ = writeln!(out, "  {}", rests_on(alarm));
            out + &quoted(before, width)
        }
        WatchEvent::Measured { alarm, decided, .. } => {
            let (first, flows) = measured_lines(alarm.id, &verdict(decided));
            line(&first) + &flows
        }
        WatchEvent::Widened { alarm } => {
            line(&format!("alarm {} is more: {}", alarm.id, loses(alarm)))
                + &format!("  {}\n", rests_on(alarm))
        }
        WatchEvent::Closed { alarm } => {
            let lasted = span(at_ms.saturating_sub(alarm.since_ms));
            line(&format!(
                "alarm {} is over after {lasted}: {}",
                alarm.id,
                loses(alarm).replacen("loses", "lost", 1)
            ))
        }
        WatchEvent::Slowed { alarm, changes: before } => {
            line(&format!("ALARM {}: {}", alarm.id, slow::is_slow(alarm)))
                + &format!("  {} since {}\n", slow::rests_on(alarm), clock(alarm.since_ms))
                + &quoted(before, width)
        }
        WatchEvent::Remeasured { alarm, .. } => {
            let (first, pairs) = measured_lines(alarm.id, &slow_verdict(alarm));
            line(&first) + &pairs
        }
        WatchEvent::Recovered { alarm } => {
            let lasted = span(at_ms.saturating_sub(alarm.since_ms));
            line(&format!("alarm {} is over after {lasted}: {}", alarm.id, slow::was_slow(alarm)))
        }
    }
}

/// The two lines of a measurement: its verdict, and on what that rests.
fn measured_lines(alarm: u64, text: &str) -> (String, String) {
    let (verdict, rests_on) = text.split_once(": ").unwrap_or((text, ""));
    (format!("alarm {alarm} measured: {verdict}"), format!("  {rests_on}\n"))
}

/// What the measurement of something slow showed; a download is one itself.
#[must_use]
pub fn slow_verdict(alarm: &SlowAlarm) -> String {
    match (&alarm.decided, &alarm.of) {
        (Some(decided), _) => slow::verdict(decided),
        (None, SlowOf::Rtt(_)) => "not measured".to_owned(),
        (None, SlowOf::Download(_)) => "by downloads".to_owned(),
    }
}

/// What an event finds wrong: an alarm that is open, with what its flows showed.
#[must_use]
pub fn event_verdict(event: &WatchEvent) -> Verdict {
    let mut gaps = Vec::new();
    let stated = |alarm: &LossAlarm, more: String| {
        let host = slow::host_of(&alarm.suspect);
        let subject = alarm.suspect.label(alarm.direction);
        VerdictItem::stated(host, &subject, format!("{}: {}{more}", loses(alarm), rests_on(alarm)))
    };
    let found = match event {
        WatchEvent::Opened { alarm, .. } | WatchEvent::Widened { alarm } => {
            Some(stated(alarm, String::new()))
        }
        WatchEvent::Measured { alarm, decided, .. } => Some(stated(alarm, format!("; {}", verdict(decided)))),
        WatchEvent::Gap { host, reason } => {
            gaps.push(Gap { what: GapSubject::Host(host.clone()), reason: reason.clone() });
            None
        }
        WatchEvent::Slowed { alarm, .. } | WatchEvent::Remeasured { alarm, .. } => Some(slow::stated(alarm)),
        WatchEvent::Watched { .. }
        | WatchEvent::Changed { .. }
        | WatchEvent::Downloaded { .. }
        | WatchEvent::Throughput { .. }
        | WatchEvent::Recovered { .. }
        | WatchEvent::Closed { .. } => None,
    };
    Verdict::stating(found, gaps)
}

/// Changes before an alarm, below it.
fn quoted(before: &[ChangeBefore], width: usize) -> String {
    let mut out = String::new();
    for one in before {
        for text in changes::notice(&one.host, &one.notice, width.saturating_sub(2)).lines() {
            let _ = writeln!(out, "  {text}");
        }
    }
    out
}

/// An alarm as an alert. Its labels are what it is of.
#[must_use]
pub fn alert(cluster: &str, alarm: &LossAlarm, decided: &DecidedLoss, changed: &[FactChange]) -> Alert {
    let (severity, mut labels) = slow::of_suspect(&alarm.suspect);
    let direction = match alarm.direction {
        Direction::Tx => "send",
        Direction::Rx => "receive",
        Direction::Both => "both",
    };
    labels.extend([("alertname", ALERT.to_owned()), ("direction", direction.to_owned())]);
    let measured = verdict(decided);
    let description = format!("{}.\nMeasured: {measured}.", rests_on(alarm));
    let mut alert = of_labels(cluster, severity, labels, (&loses(alarm), description, changed));
    alert.annotations.extend([text("measured", &measured)]);
    alert.starts_at = rfc3339(alarm.since_ms);
    alert
}

/// The same of what is slow.
#[must_use]
pub fn slow_alert(cluster: &str, alarm: &SlowAlarm, changed: &[FactChange]) -> Alert {
    let (severity, mut labels) = slow::labels(alarm);
    labels.push(("alertname", SLOW_ALERT.to_owned()));
    let measured = alarm.decided.as_ref().map(slow::verdict);
    let also = measured.as_ref().map_or(String::new(), |text| format!("\nMeasured: {text}."));
    let description = format!("{} since {}.{also}", slow::rests_on(alarm), clock(alarm.since_ms));
    let mut alert = of_labels(cluster, severity, labels, (&slow::is_slow(alarm), description, changed));
    alert.annotations.extend(measured.map(|measured| text("measured", &measured)));
    alert.starts_at = rfc3339(alarm.since_ms);
    alert
}

/// What a person types next about what is slow; `None`: a survey shows it.
#[must_use]
pub fn slow_command(alarm: &SlowAlarm) -> Option<String> {
    slow::command(alarm)
}

/// Summary, description, and the settings that changed before, as an alert with these labels.
fn of_labels(
    cluster: &str,
    severity: &str,
    labels: Vec<(&str, String)>,
    (summary, mut description, changed): (&str, String, &[FactChange]),
) -> Alert {
    let mut labels: BTreeMap<String, String> =
        labels.into_iter().map(|(key, name)| text(key, &name)).collect();
    labels.extend([text("severity", severity), text("cluster", cluster)]);
    let changes: Vec<String> = changed
        .iter()
        .take(CHANGES_MAX)
        .map(|one| format!("{} {}", units::date(one.seen_ms), changes::in_short(one)))
        .collect();
    if !changes.is_empty() {
        let _ = write!(description, "\nChanged within a day before:\n{}", changes.join("\n"));
    }
    let mut annotations = BTreeMap::from([text("summary", summary), text("description", &description)]);
    if !changes.is_empty() {
        annotations.extend([text("changes", &changes.join("\n"))]);
    }
    Alert { labels, annotations, starts_at: String::new(), ends_at: None }
}

/// An alert that ends at this moment, Unix milliseconds.
#[must_use]
pub fn until(alert: &Alert, end_ms: u64) -> Alert {
    Alert { ends_at: Some(rfc3339(end_ms)), ..alert.clone() }
}

/// An alert as a mail: header and text.
#[must_use]
pub fn mail(alert: &Alert, to: &[String]) -> String {
    let annotation = |key: &str| alert.annotations.get(key).map_or("", String::as_str);
    let state = if alert.ends_at.is_some() { "resolved" } else { "alarm" };
    let cluster = alert.labels.get("cluster").map_or("", String::as_str);
    let subject = format!("[linerate] {state}: {cluster}: {}", annotation("summary"));
    // A header has no other line and no other letters.
    let subject: String = subject.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
    let ended = alert.ends_at.as_ref().map_or(String::new(), |end| format!("until {end}\n"));
    format!(
        "To: {}\nSubject: {subject}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\
         Content-Transfer-Encoding: 8bit\nAuto-Submitted: auto-generated\n\n\
         {}\nsince {}\n{ended}{}\n\n{}\n",
        to.join(", "),
        annotation("summary"),
        alert.starts_at,
        annotation("description"),
        annotation("command"),
    )
}

/// Key and value on one line, except for line breaks of our own.
fn text(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.split('\n').map(one_line).collect::<Vec<String>>().join("\n"))
}

/// `2026-11-21T08:30:15Z`.
fn rfc3339(unix_ms: u64) -> String {
    units::date(unix_ms).replace(" UTC", "Z").replace(' ', "T")
}

/// What the flows of an alarm showed.
#[must_use]
pub fn verdict(decided: &DecidedLoss) -> String {
    let flow = |flow: &DecidingFlow| {
        let (from, to) = (one_line(&flow.from), one_line(&flow.to));
        format!("{from} to {to} lost {} of {} datagrams", flow.lost, flow.sent)
    };
    let flows = |flows: &[DecidingFlow]| flows.iter().map(flow).collect::<Vec<String>>().join(", ");
    let (own, control) = (flows(&decided.flows), flows(&decided.controls));
    let control =
        if control.is_empty() { "no control pair".to_owned() } else { format!("control {control}") };
    match decided.verdict {
        LossVerdict::Confirmed => format!("confirmed: {own}; {control}"),
        LossVerdict::ControlLosesToo => format!("the control pair loses too: {own}; {control}"),
        LossVerdict::NotSeen => format!("not seen by a flow: {own}; {control}"),
        LossVerdict::NotMeasured => {
            format!("not measured: {}", one_line(&lines_of_error(&decided.reason)))
        }
    }
}

/// What a watch did, in one sentence.
#[must_use]
pub fn totals(totals: &WatchTotals) -> String {
    let WatchTotals { hosts, probes, lost, alarms, gaps, changes } = totals;
    let count = |number: &u64, noun| units::counted(*number as usize, noun);
    format!(
        "watched {}: {lost} of {probes} probes lost, {}, {}, {}",
        units::counted(*hosts, "host"),
        count(alarms, "alarm"),
        count(gaps, "gap"),
        count(changes, "change")
    )
}

/// What is wrong, with which suspect, and how much.
#[must_use]
pub fn is_wrong(alarm: &WatchAlarm) -> String {
    match alarm {
        WatchAlarm::Loss(alarm) => loses(alarm),
        WatchAlarm::Slow(alarm) => slow::is_slow(alarm),
    }
}

/// How slow something is, without what it is.
#[must_use]
pub fn how_slow(alarm: &SlowAlarm) -> String {
    slow::how_slow(alarm)
}

/// With how many pairs or downloads it was seen that something is slow.
#[must_use]
pub fn slow_rests_on(alarm: &SlowAlarm) -> String {
    slow::rests_on(alarm)
}

/// How much is lost, by whom and of what.
fn loses(alarm: &LossAlarm) -> String {
    let (who, of) = whom(alarm);
    format!("{who} loses {}{of}", units::percent_lost(alarm.share()))
}

/// What loses, and which direction of its traffic.
fn whom(alarm: &LossAlarm) -> (String, &'static str) {
    let of = match alarm.direction {
        Direction::Tx => " of what it sends",
        Direction::Rx => " of what it receives",
        Direction::Both => " of what it sends and receives",
    };
    match &alarm.suspect {
        Suspect::Host(host) => (one_line(host), of),
        Suspect::Group(group) => (format!("group {}", one_line(group)), of),
        Suspect::Pair(from, to) => (format!("the path from {} to {}", one_line(from), one_line(to)), ""),
        _ => ("every path".to_owned(), ""),
    }
}

fn rests_on(alarm: &LossAlarm) -> String {
    let with = match alarm.partners {
        0 | 1 => String::new(),
        partners => format!(", seen with {partners} hosts"),
    };
    format!("{} of {} probes since {}{with}", alarm.lost, alarm.sent, clock(alarm.since_ms))
}

/// The time of day, UTC.
fn clock(unix_ms: u64) -> String {
    units::date(unix_ms).chars().skip("2026-11-21 ".len()).take("08:30:15".len()).collect()
}

fn span(ms: u64) -> String {
    units::span_s(ms as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use linerate_model::slow::{DecidedRtt, DecidingRtt, RttVerdict, UsualOf};
    use linerate_model::verdict::VerdictSubject;

    use super::*;

    fn alarm(suspect: Suspect, direction: Direction) -> LossAlarm {
        LossAlarm {
            id: 2,
            suspect,
            direction,
            since_ms: 1_780_000_000_000,
            reported_ms: 1_780_000_011_000,
            lost: 4,
            sent: 400,
            partners: 3,
        }
    }

    #[test]
    fn an_alarm_has_who_how_much_and_on_what_it_rests() {
        let alarm = alarm(Suspect::Host("arc-2".into()), Direction::Rx);
        let opened = WatchEvent::Opened { alarm: alarm.clone(), changes: Vec::new() };
        let verdict = event_verdict(&opened);
        let VerdictSubject::Stated(stated) = &verdict.findings[0].what else { panic!("{verdict:?}") };
        assert_eq!(stated.host.as_deref(), Some("arc-2"));
        assert!(stated.sentence.starts_with("arc-2 loses 1 % of what it receives: 4 of 400 probes"));
        assert_eq!(event_verdict(&WatchEvent::Closed { alarm }), Verdict::default());
        let text = event(&opened, 1_780_000_011_000, 100);
        assert_eq!(
            text,
            "20:26:51 ALARM 2: arc-2 loses 1 % of what it receives\n  4 of 400 probes since 20:26:40, seen with 3 hosts\n"
        );
    }

    #[test]
    fn an_alert_has_who_since_when_how_much_the_measurement_and_the_changes() {
        let flow = |to: &str, lost| DecidingFlow { from: "arc-1".into(), to: to.into(), sent: 2_000, lost };
        let decided = DecidedLoss {
            verdict: LossVerdict::Confirmed,
            flows: vec![flow("arc-2", 25)],
            controls: vec![flow("arc-3", 0)],
            reason: String::new(),
        };
        let change = FactChange {
            host: "arc-2".into(),
            key: "nic.eth0.ring.rx".into(),
            from: Some(linerate_model::fact::FactValue::Int(4096)),
            to: Some(linerate_model::fact::FactValue::Int(256)),
            after_ms: 1_779_999_000_000,
            seen_ms: 1_779_999_000_000,
            seen_by: linerate_model::fact_change::SeenBy::Facts,
            who: Some("tuned.service".into()),
        };
        let firing =
            alert("three\n", &alarm(Suspect::Host("arc-2".into()), Direction::Rx), &decided, &[change]);
        assert_eq!(firing.labels["alertname"], "LinerateLoss");
        assert_eq!((&*firing.labels["host"], &*firing.labels["direction"]), ("arc-2", "receive"));
        assert_eq!(firing.starts_at, "2026-05-28T20:26:40Z");
        assert_eq!(firing.annotations["summary"], "arc-2 loses 1 % of what it receives");
        assert_eq!(
            firing.annotations["description"],
            "4 of 400 probes since 20:26:40, seen with 3 hosts.\n\
             Measured: confirmed: arc-1 to arc-2 lost 25 of 2000 datagrams; control arc-1 to arc-3 lost 0 of 2000 \
             datagrams.\nChanged within a day before:\n\
             2026-05-28 20:10:00 UTC arc-2 eth0 ring.rx 4096 -> 256 by tuned.service"
        );
        let over = until(&firing, 1_780_000_100_000);
        assert_eq!((over.ends_at.as_deref(), &over.labels), (Some("2026-05-28T20:28:20Z"), &firing.labels));
        let mail = mail(&over, &["ops@example.org".into()]);
        let (header, body) = mail.split_once("\n\n").unwrap();
        assert!(header.starts_with("To: ops@example.org\nSubject: [linerate] resolved: "), "{header}");
        assert_eq!(header.lines().count(), 6, "{header}");
        assert!(body.contains("until 2026-05-28T20:28:20Z") && body.contains("ring.rx 4096"), "{body}");
    }

    #[test]
    fn rtts_that_were_measured_have_their_control_pair_in_each_text() {
        let pair =
            |to: &str, rtt_us| DecidingRtt { from: "arc-1".into(), to: to.into(), usual_us: 180.0, rtt_us };
        let decided = DecidedRtt {
            verdict: RttVerdict::Confirmed,
            pairs: vec![pair("arc-2", 910.0)],
            controls: vec![pair("arc\n3", 190.0)],
            reason: String::new(),
        };
        let alarm = SlowAlarm {
            id: 4,
            of: SlowOf::Rtt(Suspect::Host("arc-2".into())),
            since_ms: 1_780_000_000_000,
            reported_ms: 1_780_000_300_000,
            usual: 180.0,
            now: 900.0,
            usual_of: UsualOf::Before,
            seen_with: 8,
            failure: None,
            decided: Some(decided),
        };
        let measured = WatchEvent::Remeasured { alarm: alarm.clone(), changes: Vec::new() };
        assert_eq!(
            event(&measured, 1_780_000_302_000, 100),
            "20:31:42 alarm 4 measured: confirmed\n  arc-1 to arc-2 took 910 us, usual 180 us; \
             control arc-1 to arc\\n3 took 190 us, usual 180 us\n"
        );
        let firing = slow_alert("three", &alarm, &[]);
        let text = "confirmed: arc-1 to arc-2 took 910 us, usual 180 us; control ";
        assert!(firing.annotations["measured"].starts_with(text), "{firing:?}");
        assert!(firing.annotations["description"].contains("\nMeasured: confirmed: "), "{firing:?}");
        let found = event_verdict(&measured);
        let VerdictSubject::Stated(stated) = &found.findings[0].what else { panic!("{found:?}") };
        assert!(stated.sentence.contains("; confirmed: arc-1"), "{}", stated.sentence);
    }

    #[test]
    fn names_of_strangers_stay_on_their_line() {
        let pair = alarm(Suspect::Pair("a\nb".into(), "c\u{1b}[31m".into()), Direction::Tx);
        let text = event(&WatchEvent::Closed { alarm: pair }, 1_780_000_100_000, 100);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
