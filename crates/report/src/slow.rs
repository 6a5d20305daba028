//! What a watch finds slow, in words: RTTs, downloads. Alarms in, parts of lines and labels out.

use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::shell;
use linerate_model::slow::{
    DecidedRtt, DecidingRtt, DownloadSuspect, RttVerdict, SlowAlarm, SlowOf, UsualOf,
};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::units;
use linerate_model::verdict::VerdictItem;

/// What is slow, and how slow.
pub(crate) fn is_slow(alarm: &SlowAlarm) -> String {
    let how = how_slow(alarm);
    match &alarm.of {
        SlowOf::Rtt(suspect) => format!("RTT {} {how}", with(suspect)),
        SlowOf::Download(of) => format!("downloads {} {how}{}", whose(of), of_url(of)),
    }
}

/// How slow it is.
pub(crate) fn how_slow(alarm: &SlowAlarm) -> String {
    let (usual, now) = (value(alarm, alarm.usual), value(alarm, alarm.now));
    match &alarm.of {
        SlowOf::Rtt(_) => format!("rose from {usual} to {now}"),
        SlowOf::Download(_) if alarm.now <= 0.0 => {
            let why = alarm.failure.as_deref().map_or(String::new(), |why| format!(" ({})", one_line(why)));
            format!("fail{why}")
        }
        SlowOf::Download(_) => {
            let than = match alarm.usual_of {
                UsualOf::Peers => "the best",
                UsualOf::Before => "before",
            };
            let times = alarm.times().map(|times| format!(", {} times slower", units::factor(times)));
            format!("at {now}, {than} {usual}{}", times.unwrap_or_default())
        }
    }
}

/// The same of what is over.
pub(crate) fn was_slow(alarm: &SlowAlarm) -> String {
    match &alarm.of {
        SlowOf::Rtt(suspect) => format!("RTT {} is as usual", with(suspect)),
        SlowOf::Download(of) => format!("downloads {}{} are as usual", whose(of), of_url(of)),
    }
}

/// With how many it was seen.
pub(crate) fn rests_on(alarm: &SlowAlarm) -> String {
    match alarm.of {
        SlowOf::Rtt(_) => format!("seen with {}", units::counted(alarm.seen_with, "pair")),
        SlowOf::Download(_) => {
            format!("{} of a host, URL and front end", units::counted(alarm.seen_with, "path"))
        }
    }
}

/// What the measurement of an alarm of RTTs showed.
pub(crate) fn verdict(decided: &DecidedRtt) -> String {
    let one = |one: &DecidingRtt| {
        let (from, to) = (one_line(&one.from), one_line(&one.to));
        let (rtt, usual) = (units::duration_us(one.rtt_us), units::duration_us(one.usual_us));
        format!("{from} to {to} took {rtt}, usual {usual}")
    };
    let all = |rtts: &[DecidingRtt]| rtts.iter().map(one).collect::<Vec<String>>().join(", ");
    let (own, control) = (all(&decided.pairs), all(&decided.controls));
    let control =
        if control.is_empty() { "no control pair".to_owned() } else { format!("control {control}") };
    match decided.verdict {
        RttVerdict::Confirmed => format!("confirmed: {own}; {control}"),
        RttVerdict::ControlRoseToo => format!("the control pair rose too: {own}; {control}"),
        RttVerdict::NotSeen => format!("not seen by requests: {own}; {control}"),
        RttVerdict::NotMeasured => {
            format!("not measured: {}", one_line(&lines_of_error(&decided.reason)))
        }
    }
}

/// The same as a finding.
pub(crate) fn stated(alarm: &SlowAlarm) -> VerdictItem {
    let (host, subject) = match &alarm.of {
        SlowOf::Rtt(suspect) => (host_of(suspect), suspect.label(Direction::Both)),
        SlowOf::Download(of) => (of.host.as_deref(), whose(of) + &of_url(of)),
    };
    let measured = alarm.decided.as_ref().map_or(String::new(), |decided| format!("; {}", verdict(decided)));
    VerdictItem::stated(host, &subject, format!("{}: {}{measured}", is_slow(alarm), rests_on(alarm)))
}

/// The command that shows in which step a download is slow.
pub(crate) fn command(alarm: &SlowAlarm) -> Option<String> {
    let SlowOf::Download(DownloadSuspect { url: Some(url), .. }) = &alarm.of else { return None };
    Some(format!("linerate measure http {}", shell::word(url)))
}

/// Severity, and labels of the alert.
pub(crate) fn labels(alarm: &SlowAlarm) -> (&'static str, Vec<(&'static str, String)>) {
    match &alarm.of {
        SlowOf::Rtt(suspect) => {
            let (severity, mut labels) = of_suspect(suspect);
            labels.push(("kind", "rtt".to_owned()));
            (severity, labels)
        }
        SlowOf::Download(DownloadSuspect { host, url, via }) => {
            let parts = [("host", host), ("url", url), ("front_end", via)];
            let named = parts.into_iter().filter_map(|(key, of)| Some((key, of.clone()?)));
            let kind = ("kind", "download".to_owned());
            // Users have no other front end then.
            let severity = if via.is_none() { "critical" } else { "warning" };
            (severity, named.chain([kind]).collect())
        }
    }
}

/// Severity of what is wrong with a suspect, and its labels.
pub(crate) fn of_suspect(suspect: &Suspect) -> (&'static str, Vec<(&'static str, String)>) {
    match suspect {
        Suspect::Host(host) => ("warning", vec![("host", host.clone())]),
        Suspect::Pair(from, to) => ("warning", vec![("from", from.clone()), ("to", to.clone())]),
        Suspect::Group(group) => ("critical", vec![("group", group.clone())]),
        _ => ("critical", Vec::new()),
    }
}

/// The host that a suspect is; `None` where it is of several.
pub(crate) fn host_of(suspect: &Suspect) -> Option<&str> {
    if let Suspect::Host(host) = suspect { Some(host.as_str()) } else { None }
}

fn value(alarm: &SlowAlarm, value: f64) -> String {
    match alarm.of {
        SlowOf::Rtt(_) => units::duration_us(value),
        SlowOf::Download(_) => units::rate(value),
    }
}

fn with(suspect: &Suspect) -> String {
    match suspect {
        Suspect::Host(host) => format!("of {}", one_line(host)),
        Suspect::Pair(a, b) => format!("between {} and {}", one_line(a), one_line(b)),
        Suspect::Group(group) => format!("of group {}", one_line(group)),
        _ => "of every path".to_owned(),
    }
}

/// The front end and the host: short, so that they come first.
fn whose(of: &DownloadSuspect) -> String {
    let parts = [("through", &of.via), ("by", &of.host)];
    let parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(word, of)| Some(format!("{word} {}", one_line(of.as_ref()?))))
        .collect();
    if parts.is_empty() { "through every front end".to_owned() } else { parts.join(" ") }
}

/// The URL, where it is of one alone. It may be long: it comes last, and a line is cut.
fn of_url(of: &DownloadSuspect) -> String {
    of.url.as_ref().map_or(String::new(), |url| format!(", of {}", one_line(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn download(now: f64, failure: Option<&str>) -> SlowAlarm {
        let of = DownloadSuspect { via: Some("192.0.2.11".into()), ..DownloadSuspect::default() };
        SlowAlarm {
            id: 1,
            of: SlowOf::Download(of),
            since_ms: 0,
            reported_ms: 0,
            usual: 800e6,
            now,
            usual_of: UsualOf::Peers,
            seen_with: 2,
            failure: failure.map(str::to_owned),
            decided: None,
        }
    }

    #[test]
    fn a_slow_front_end_is_named_with_what_the_best_one_reaches() {
        assert_eq!(
            is_slow(&download(256e3, None)),
            "downloads through 192.0.2.11 at 256 kbit/s, the best 800 Mbit/s, 3125 times slower"
        );
        assert_eq!(
            is_slow(&download(0.0, Some("status\n503"))),
            "downloads through 192.0.2.11 fail (status\\n503)"
        );
        assert_eq!(
            labels(&download(0.0, None)).1,
            [("front_end", "192.0.2.11".into()), ("kind", "download".into())]
        );
    }

    #[test]
    fn an_rtt_has_what_it_was_and_what_it_is() {
        let of = SlowOf::Rtt(Suspect::Host("arc-2".into()));
        let alarm =
            SlowAlarm { of, usual: 120.0, now: 1_300.0, usual_of: UsualOf::Before, ..download(0.0, None) };
        assert_eq!(is_slow(&alarm), "RTT of arc-2 rose from 120 us to 1.3 ms");
        assert_eq!(was_slow(&alarm), "RTT of arc-2 is as usual");
    }
}
