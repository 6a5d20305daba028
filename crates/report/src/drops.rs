//! What hosts drop, as a page: for each host a line for each reason, then the hosts that drop the same.
//! A report in, text of at most the width out.

use std::fmt::Write;

use linerate_model::drops::{DropGroup, DropReport, DropRow, HostDrops, HostResent, ResentTo};
use linerate_model::inventory::HostName;
use linerate_model::names::ranges;
use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::units;
use linerate_model::verdict::{Certainty, HostCommand, Verdict, VerdictItem};

use crate::names;
use crate::wrap::wrap;

/// Columns of a row: packets a second, packets, reason, packets and device.
const RATE: usize = 8;
const PACKETS: usize = 9;
const REASON: usize = 24;
const WHERE: usize = 16;
/// Peers and kinds that are listed for a host.
const RESENT_MAX: usize = 8;
/// Harmless reasons that are counted in the line for them.
const HARMLESS_MAX: usize = 5;

/// The page; with `all` harmless drops too.
#[must_use]
pub fn text(report: &DropReport, all: bool, width: usize) -> String {
    let mut out = String::new();
    let mut quiet: Vec<&str> = Vec::new();
    for host in &report.hosts {
        match of_host(host, report.seconds, all, width) {
            text if text.is_empty() => quiet.push(&host.host),
            text => out += &text,
        }
    }
    if !quiet.is_empty() {
        let text = format!("no drops on {} in {}", one_line(&ranges(&quiet)), units::span_s(report.seconds));
        push(&mut out, "", &text, width);
    }
    resent(&mut out, report, width);
    if !report.groups.is_empty() {
        out.push_str("\nThe same packets\n");
    }
    for (number, group) in report.groups.iter().enumerate() {
        of_group(&mut out, number + 1, group, width);
    }
    notes(&mut out, report, width);
    out
}

fn of_host(host: &HostDrops, seconds: f64, all: bool, width: usize) -> String {
    let mut out = String::new();
    if host.rows.is_empty() {
        return out;
    }
    let packets: u64 = host.rows.iter().map(|row| row.packets).sum();
    let head = format!("{}: {packets} packets dropped in {}", one_line(&host.host), units::span_s(seconds));
    let _ = writeln!(out, "{}", names::cut(&head, width));
    let (harmless, others): (Vec<_>, Vec<_>) = host.rows.iter().partition(|row| row.is_harmless() && !all);
    for row in others {
        let _ = writeln!(out, "{}", line(row, seconds, width));
    }
    if !harmless.is_empty() {
        let mut counts: Vec<String> = harmless
            .iter()
            .take(HARMLESS_MAX)
            .map(|row| format!("{} {}", short(&row.reason), row.packets))
            .collect();
        if harmless.len() > HARMLESS_MAX {
            counts.push(format!("{} more", harmless.len() - HARMLESS_MAX));
        }
        push(&mut out, "  ", &format!("harmless: {} (--all)", counts.join(", ")), width);
    }
    out
}

fn line(row: &DropRow, seconds: f64, width: usize) -> String {
    let rate = format!("{}/s", units::short(row.packets as f64 / seconds.max(f64::MIN_POSITIVE)));
    let kind = row.ether_type.map_or_else(String::new, protocol);
    let device = row.device.as_deref().map(one_line).unwrap_or_default();
    let location = format!("{kind} {device}");
    let meaning = row.class.as_ref().map_or("", |class| class.title.as_str());
    let text = format!(
        "  {rate:>RATE$} {:>PACKETS$}  {:REASON$} {:WHERE$} {meaning}",
        row.packets,
        names::cut(&one_line(&short(&row.reason)), REASON),
        names::cut(location.trim(), WHERE),
    );
    names::cut(text.trim_end(), width)
}

/// A reason, or the name of a counter without what its column shows.
#[must_use]
pub fn short(reason: &str) -> String {
    if let Some((_, name)) = reason.split_once(".stat.") {
        return name.to_owned();
    }
    let family = ["snmp.", "netstat."].iter().find_map(|family| reason.strip_prefix(family));
    family.unwrap_or(reason).to_owned()
}

/// An EtherType by its usual name; empty for packets without.
#[must_use]
pub fn protocol(ether_type: u16) -> String {
    let name = match ether_type {
        0x0000 => "",
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x86dd => "IPv6",
        0x8100 => "VLAN",
        0x88cc => "LLDP",
        other => return format!("{other:04x}"),
    };
    name.to_owned()
}

/// What hosts sent again, by peer and kind.
fn resent(out: &mut String, report: &DropReport, width: usize) {
    let hosts = report.hosts.iter().filter(|host| host.resent.again > 0);
    for (number, host) in hosts.enumerate() {
        if number == 0 {
            out.push_str("\nSent again (TCP)\n");
        }
        let HostResent { sent, again, per_gigabyte, needless, rows } = &host.resent;
        let mut text = format!("{}: {again} of {sent} segments", one_line(&host.host));
        if let Some(count) = per_gigabyte {
            let _ = write!(text, ", {} a gigabyte", units::short(*count));
        }
        if *needless > 0 {
            let _ = write!(text, "; {needless} had arrived");
        }
        push(out, "", &text, width);
        for row in rows.iter().take(RESENT_MAX) {
            let rate =
                format!("{}/s", units::short(row.segments as f64 / report.seconds.max(f64::MIN_POSITIVE)));
            let peer = row.host.as_ref().map_or_else(|| row.peer.to_string(), |host| one_line(host));
            let text =
                format!("  {rate:>RATE$} {:>PACKETS$}  {:REASON$} to {peer}", row.segments, row.kind.word());
            let _ = writeln!(out, "{}", names::cut(&text, width));
        }
        if rows.len() > RESENT_MAX {
            let _ = writeln!(out, "  {} more (--json)", rows.len() - RESENT_MAX);
        }
    }
    if let Some(most) = &report.resent_to {
        push(out, "", &resent_to(most), width);
    }
}

/// Where most of what is sent again goes.
#[must_use]
pub fn resent_to(most: &ResentTo) -> String {
    format!(
        "{} of it goes to {}, from {} hosts: its receive side, or the path to it",
        units::percent(most.share),
        one_line(&most.host),
        most.from
    )
}

/// Who drops the same, what, how certain that is and what it means.
#[must_use]
pub fn same(group: &DropGroup) -> String {
    let hosts: Vec<String> = group.hosts.iter().map(|host| one_line(host)).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let kind = group.ether_type.map_or_else(String::new, |kind| format!(" {}", protocol(kind)));
    let meaning = group.class.as_ref().map_or(String::new(), |class| {
        format!(": {}{}", class.title, if class.harmless { "; harmless" } else { "" })
    });
    format!(
        "{} drop the same: {}{kind}, {} packets, correlation {:.2} ({}){meaning}",
        ranges(&hosts),
        one_line(&short(&group.reason)),
        group.packets,
        group.correlation,
        Certainty::of(group.probability).word(),
    )
}

fn of_group(out: &mut String, number: usize, group: &DropGroup, width: usize) {
    push(out, "", &format!("{number}. {}", same(group)), width);
    if !group.shared.is_empty() {
        let shared: Vec<String> =
            group.shared.iter().map(|fact| one_line(&names::cut(fact, width / 2))).collect();
        push(out, "   ", &format!("only they have: {}", shared.join("; ")), width);
    }
}

/// Drops that are not harmless, host by host and reason by reason, and what hosts drop together.
#[must_use]
pub fn verdict(report: &DropReport) -> Verdict {
    let rows = || report.hosts.iter().flat_map(|host| host.rows.iter().map(move |row| (&host.host, row)));
    let of_row = |(host, row): (&HostName, &DropRow)| {
        let title = row.class.as_ref().map_or(String::new(), |class| format!(" ({})", class.title));
        let device = row.device.as_ref().map_or(String::new(), |device| format!(" on {device}"));
        let sentence = format!(
            "{host}: {} dropped in {}: {}{device}{title}",
            units::counted(row.packets as usize, "packet"),
            units::span_s(report.seconds),
            short(&row.reason)
        );
        VerdictItem {
            check: check(row).map(|command| HostCommand { host: Some(host.clone()), command }),
            ..VerdictItem::stated(Some(host), &row.reason, sentence)
        }
    };
    let of_group = |group: &DropGroup| VerdictItem::stated(None, &group.reason, same(group));
    let is_bad = |group: &&DropGroup| !group.class.as_ref().is_some_and(|class| class.harmless);
    let mut bad: Vec<_> = rows().filter(|(_, row)| !row.is_harmless()).collect();
    bad.sort_by_key(|(_, row)| std::cmp::Reverse(row.packets));
    let harmless = rows().filter(|(_, row)| row.is_harmless()).count();
    let groups = report.groups.iter().filter(is_bad).map(of_group);
    let found = groups.chain(bad.into_iter().map(of_row));
    Verdict { harmless, ..Verdict::stating(found, report.gaps.clone()) }
}

/// The command that shows more of what is dropped, on the host.
fn check(row: &DropRow) -> Option<String> {
    let check = row.class.as_ref().filter(|class| !class.harmless)?.check.as_ref()?;
    let device = row.device.as_deref().filter(|device| !device.starts_with('('));
    Some(device.map_or_else(|| check.clone(), |device| check.replace("DEVICE", &device.replace('/', "."))))
}

/// Hosts and the commands that show more there: one for each kind of drop that is not harmless.
#[must_use]
pub fn checks(report: &DropReport) -> Vec<(String, String)> {
    let rows = report.hosts.iter().flat_map(|host| host.rows.iter().map(move |row| (&host.host, row)));
    let mut checks: Vec<(String, String)> = Vec::new();
    for (host, row) in rows {
        let Some(check) = check(row) else { continue };
        if !checks.iter().any(|(_, known)| *known == check) {
            checks.push((one_line(host), one_line(&check)));
        }
    }
    checks
}

/// Commands to type, what was not seen, and what it cost.
fn notes(out: &mut String, report: &DropReport, width: usize) {
    let checks = checks(report);
    if !checks.is_empty() {
        out.push_str("\nNext\n");
    }
    for (host, check) in &checks {
        let _ = writeln!(out, "  {}", names::cut(&format!("on {host}: {check}"), width.saturating_sub(2)));
    }
    let alone = report.hosts.iter().filter_map(|host| Some((&host.host, host.counters_alone.as_ref()?)));
    let alone = alone.map(|(host, reason)| {
        format!(
            "{}: counters alone, without the kernel's reasons: {}",
            one_line(host),
            lines_of_error(reason)
        )
    });
    let gaps = report
        .gaps
        .iter()
        .map(|gap| format!("not seen: {}: {}", one_line(&gap.what.to_string()), lines_of_error(&gap.reason)));
    let rest: Vec<String> = alone.chain(gaps).chain(cost(report)).collect();
    if !rest.is_empty() {
        out.push('\n');
    }
    for text in rest {
        push(out, "", &text, width);
    }
}

/// What counting cost on the host where it cost most.
#[must_use]
pub fn cost(report: &DropReport) -> Option<String> {
    let costs =
        report.hosts.iter().filter_map(|host| Some((&host.host, host.cost.filter(|cost| cost.runs > 0)?)));
    let (host, cost) = costs.max_by(|a, b| a.1.share.total_cmp(&b.1.share))?;
    Some(format!(
        "cost of counting: {} of a core or less ({}: {} packets, {} each)",
        units::percent(cost.share),
        one_line(host),
        cost.runs,
        units::duration_us(cost.ns as f64 / cost.runs as f64 / 1e3)
    ))
}

/// Lines of a text with an indent; those after the first are indented by as many more.
fn push(out: &mut String, indent: &str, text: &str, width: usize) {
    for (number, line) in wrap(text, width.saturating_sub(indent.len() + 3)).iter().enumerate() {
        let further = if number > 0 { "   " } else { "" };
        let _ = writeln!(out, "{indent}{further}{line}");
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::drops::{DropCost, DropMeaning, ResentKind, ResentRow};
    use linerate_model::fact::Gap;
    use linerate_model::verdict::VerdictSubject;

    use super::*;

    fn row(reason: &str, packets: u64, harmless: Option<bool>) -> DropRow {
        let class = harmless.map(|harmless| DropMeaning {
            id: "x".into(),
            title: "a rule of the firewall".into(),
            harmless,
            check: Some("tc -s qdisc show dev DEVICE".into()),
        });
        DropRow {
            reason: reason.into(),
            ether_type: Some(0x86dd),
            device: Some("eth0/5".into()),
            packets,
            class,
        }
    }

    fn report() -> DropReport {
        let of =
            |host: &str, rows: Vec<DropRow>| HostDrops { host: host.into(), rows, ..HostDrops::default() };
        let mut first =
            of("vs-2", vec![row("NETFILTER_DROP", 720, Some(false)), row("NO_SOCKET", 12, Some(true))]);
        first.cost = Some(DropCost { runs: 732, ns: 300_000, share: 5e-6 });
        first.resent = HostResent {
            sent: 12_000,
            again: 36,
            per_gigabyte: Some(2_000.0),
            needless: 4,
            rows: vec![ResentRow {
                peer: "192.0.2.4".parse().unwrap(),
                host: Some("vs-4".into()),
                kind: ResentKind::TailProbe,
                segments: 30,
            }],
        };
        let mut last = of("vs-5", Vec::new());
        last.counters_alone = Some("needs root of the machine\nhint: sudo".into());
        DropReport {
            seconds: 60.0,
            every_s: 1.0,
            hosts: vec![
                first,
                of("vs-3", vec![row("BRAND\u{1b}[31m_NEW", 1, None)]),
                of("vs-4", Vec::new()),
                last,
            ],
            groups: vec![DropGroup {
                reason: "nic.*.stat.rx_dropped".into(),
                ether_type: None,
                hosts: vec!["vs-2".into(), "vs-4".into()],
                packets: 188,
                correlation: 0.987,
                probability: 0.997,
                shared: vec!["no device em1/96".into(), "sysctl.net.ipv6.conf.all.disable_ipv6 is 1".into()],
                shared_by_chance: 1.0 / 6.0,
                class: row("x", 1, Some(true)).class,
            }],
            resent_to: Some(ResentTo { host: "vs-4".into(), from: 3, share: 0.84 }),
            gaps: vec![Gap { what: "vs-9".into(), reason: "ssh exited with 255".into() }],
        }
    }

    #[test]
    fn a_verdict_leaves_out_what_is_harmless_and_counts_it() {
        let mut report = report();
        let verdict = |report: &DropReport| {
            let verdict = super::verdict(report);
            let sentences = verdict.findings.iter().map(|item| match &item.what {
                VerdictSubject::Stated(stated) => stated.sentence.clone(),
                other => panic!("{other:?}"),
            });
            (sentences.collect::<Vec<_>>(), verdict)
        };
        let (sentences, found) = verdict(&report);
        assert_eq!(
            sentences,
            [
                "vs-2: 720 packets dropped in 60 s: NETFILTER_DROP on eth0/5 (a rule of the firewall)",
                "vs-3: 1 packet dropped in 60 s: BRAND\u{1b}[31m_NEW on eth0/5"
            ]
        );
        let check = found.findings[0].check.clone().unwrap();
        assert_eq!((check.host.as_deref(), &*check.command), (Some("vs-2"), "tc -s qdisc show dev eth0.5"));
        assert_eq!((found.harmless, found.unseen.gaps.len()), (1, 1));
        report.groups[0].class = None;
        assert!(verdict(&report).0[0].starts_with("vs-2, vs-4 drop the same: "), "{report:?}");
    }

    #[test]
    fn a_page_has_reasons_groups_commands_and_the_cost() {
        let text = text(&report(), false, 100);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        for part in [
            "vs-2: 732 packets dropped in 60 s\n",
            "      12/s       720  NETFILTER_DROP           IPv6 eth0/5      a rule of the firewall\n",
            "  harmless: NO_SOCKET 12 (--all)\n",
            "no drops on vs-4, vs-5 in 60 s\n",
            "vs-2: 36 of 12000 segments, 2000 a gigabyte; 4 had arrived\n",
            "     0.5/s        30  tail-probe               to vs-4\n",
            "84 % of it goes to vs-4, from 3 hosts: its receive side, or the path to it\n",
            "1. vs-2, vs-4 drop the same: rx_dropped, 188 packets, correlation 0.99 (certain): a rule of the\n",
            "   only they have: no device em1/96; sysctl.net.ipv6.conf.all.disable_ipv6 is 1\n",
            "  on vs-2: tc -s qdisc show dev eth0.5\n",
            "vs-5: counters alone, without the kernel's reasons: needs root of the machine",
            "not seen: vs-9: ssh exited with 255\n",
            "cost of counting: <0.1 % of a core or less (vs-2: 732 packets, 0.41 us each)\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(super::text(&report(), true, 100).contains("NO_SOCKET                IPv6 eth0/5"));
    }

    #[test]
    fn lines_fit_narrow_terminals() {
        for width in [40, 60, 80] {
            let text = text(&report(), true, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
    }
}
