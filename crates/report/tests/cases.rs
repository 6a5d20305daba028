//! The screens of all recorded cases: their lines, widths and words. With LINERATE_SCREENS naming a folder
//! they are written there for a person to read.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use linerate_cases as case;
use linerate_knowledge::Knowledge;
use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::finding::{Clue, Diagnosis, FactHit};
use linerate_model::remark::Remark;
use linerate_model::snapshot::Snapshot;
use linerate_report::heat::Style;
use linerate_report::{text, verdict, words};

/// Lines that a finding may have, and columns of a line.
const LINES_MAX: usize = 4;
const COLUMNS_MAX: usize = 100;
/// Columns of the narrowest terminal that people use.
const NARROW: usize = 80;
/// Words of the median case below its matrices.
const WORDS_MAX: usize = 90;

/// Each case with its snapshot and its diagnosis.
fn cases() -> Vec<(String, Snapshot, Diagnosis)> {
    let knowledge = Knowledge::builtin().unwrap();
    let diagnosed = |(name, case): (String, case::Case)| {
        let diagnosis = words::written(case::diagnose(&case, &knowledge));
        (name, case.snapshot, diagnosis)
    };
    case::builtin().unwrap().into_iter().map(diagnosed).collect()
}

fn below_the_matrix(snapshot: &Snapshot, diagnosis: &Diagnosis) -> String {
    let verdict = verdict::of(snapshot, diagnosis);
    verdict::text(&verdict, &words::whole(diagnosis), "linerate show RUN", Style::default())
}

#[test]
fn screens_of_cases_are_short() {
    let folder = std::env::var_os("LINERATE_SCREENS").map(PathBuf::from);
    let mut counts = Vec::new();
    for (name, snapshot, diagnosis) in cases() {
        let screen = text::screen(&snapshot, &diagnosis, "linerate show RUN", Style::default());
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{name}.txt")), &screen).unwrap();
            let all = text::page(&snapshot, &diagnosis, Style::default());
            std::fs::write(folder.join(format!("{name}.all")), all).unwrap();
        }
        for line in screen.lines() {
            assert!(line.chars().count() <= COLUMNS_MAX, "{name}: {} columns: {line}", line.chars().count());
        }
        let narrow = Style { width: NARROW, ..Style::default() };
        for line in text::screen(&snapshot, &diagnosis, "linerate show RUN", narrow).lines() {
            // A command is never cut.
            let is_command = ["Check ", "Fix "].iter().any(|label| line.trim_start().starts_with(label));
            let columns = line.chars().count();
            assert!(is_command || columns <= NARROW, "{name}: {columns} columns: {line}");
        }
        let text = below_the_matrix(&snapshot, &diagnosis);
        assert!(screen.ends_with(&text), "{name}: the verdict is not last:\n{screen}");
        let mut lines = 0;
        for line in text.lines() {
            let is_first = line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(". ");
            lines = if is_first { 1 } else { lines + 1 };
            assert!(!line.starts_with("   ") || lines <= LINES_MAX, "{name}: more than four lines:\n{text}");
            assert_eq!(placeholder(line), None, "{name}: {line}");
        }
        counts.push((text.split_whitespace().count(), name));
    }
    counts.sort();
    let (median, most) = (&counts[counts.len() / 2], &counts[counts.len() - 1]);
    println!("{} cases: median {} words, most {most:?}", counts.len(), median.0);
    assert!(median.0 <= WORDS_MAX, "{counts:?}");
}

/// The first `<something to be replaced>` or `{hole}` of a line.
fn placeholder(line: &str) -> Option<&str> {
    [('<', '>'), ('{', '}')].into_iter().find_map(|(open, close)| {
        let from = line.find(open)?;
        let to = from + line[from..].find(close)?;
        let inner = &line[from + 1..to];
        (inner.starts_with(|c: char| c.is_alphabetic()) && !inner.ends_with(' ')).then(|| &line[from..=to])
    })
}

#[test]
fn a_placeholder_is_seen() {
    assert_eq!(placeholder("ip route get <address of a peer>"), Some("<address of a peer>"));
    assert_eq!(placeholder("ethtool {nic}"), Some("{nic}"));
    assert_eq!(placeholder("disk { al-extents 6007; } < 5 > 3"), None);
}

/// Stories that blame something without a located loss: the exit code alone has to show them.
#[test]
fn what_is_blamed_without_a_finding_is_in_the_verdict() {
    for (name, snapshot, diagnosis) in cases() {
        let blamed = ["casebook-a1", "casebook-a6", "casebook-a7", "casebook-d1"].contains(&name.as_str());
        if blamed {
            assert!(diagnosis.findings.is_empty(), "{name}");
            assert!(diagnosis.remarks.iter().any(Remark::blames), "{name}: the exit code is 0");
            assert!(!verdict::of(&snapshot, &diagnosis).findings.is_empty(), "{name}");
        }
    }
}

/// Every check of a verdict can be pasted: it names its host or is one of this program.
#[test]
fn checks_can_be_pasted() {
    for (name, snapshot, diagnosis) in cases() {
        for item in verdict::of(&snapshot, &diagnosis).findings {
            let Some(check) = item.check else { continue };
            let runs = check.command.starts_with("linerate ") || check.command.starts_with("ssh ");
            assert!(runs && !check.command.contains("NIC"), "{name}: {}", check.command);
        }
    }
}

#[test]
fn the_setting_of_a_cause_is_quoted_before_what_is_lost() {
    let (_, snapshot, diagnosis) = cases().into_iter().find(|(name, ..)| name == "casebook-a3").unwrap();
    let page = linerate_report::html::page(&snapshot, &diagnosis, &[], None);
    let at = |text: &str| page.find(text).unwrap_or(usize::MAX);
    assert!(at("rx-gro-hw: on, peers: off") < at("bulk TCP gets"), "{}", at("rx-gro-hw: on, peers: off"));
}

/// Recorded cases whose line of a cause quotes a change, where each reading that speaks for the cause
/// changed a day before, with the key that is quoted.
const QUOTED: &[(&str, &str)] = &[
    ("accept-queue-full", "sysctl.net.core.somaxconn"),
    ("array-check", "disk.md0.checked_legs"),
    ("bluefs-spillover", "sentence.bluefs_spillover"),
    ("btrfs-quotas", "btrfs.quota_groups"),
    ("bus-errors", "sentence.bus_errors"),
    ("casebook-d4", "audit.hadoop.meta-missing./data/1/dfs/dn"),
    ("clocks-apart", "sentence.clock_skew"),
    ("conntrack-full", "sysctl.net.netfilter.nf_conntrack_max"),
    ("cpu-quota-throttled", "cpu.quota.throttled"),
    ("disk-pressure", "disk_limit.pressure.full_percent"),
    ("disk-queue-short", "disk.sda.queue_depth"),
    ("disk-read-ahead-small", "disk.md0.read_ahead_kb"),
    ("disk-scheduler-heavy", "disk.nvme0n1.scheduler"),
    ("disk-scheduler", "disk.sda.scheduler"),
    ("disk-write-cache-off", "disk.sda.write_cache"),
    ("disk-writes-held-back", "disk.sda.wbt_lat_usec"),
    ("docker-mtu-above-uplink", "nic.eth0.mtu"),
    ("drbd-blocks-differ", "drbd.0.out_of_sync_kib"),
    ("drive-failing", "disk_health.nvme0n1.media_errors"),
    ("drive-hot", "disk_health.nvme0n1.temperature_c"),
    ("drive-lanes-narrow", "disk.nvme0n1.pcie.width"),
    ("drive-shingled", "storage.sdb.model"),
    ("entropy-short", "sentence.no_entropy"),
    ("ext4-lazy-init", "sentence.lazy_init"),
    ("file-system-full", "sentence.no_space"),
    ("flow-control-off", "nic.eth2.pause.rx"),
    ("gateway-redirects", "sentence.redirect"),
    ("gluster-orphans", "audit.gluster.orphan./bricks/b1"),
    ("half-duplex", "nic.eth2.duplex"),
    ("interrupt-disabled", "sentence.interrupt_off"),
    ("ipv6-unanswered", "sentence.ipv6_unanswered"),
    ("log-drive-slow", "sentence.slow_log"),
    ("measured-before-read", "disk.dm-72.failed_legs"),
    ("memory-errors", "sentence.memory_errors"),
    ("names-searched", "sentence.ndots"),
    ("nfs-requests-repeated", "nfs./home.repeated_percent"),
    ("nfs-slots", "sysctl.sunrpc.tcp_max_slot_table_entries"),
    ("nfs-timeout-short", "nfs./home.timeo"),
    ("nfs-transfer-small", "nfs./home.wsize"),
    ("nvme-interrupts-lost", "sentence.nvme_polled"),
    ("open-files-limit", "sentence.open_files"),
    ("pool-degraded", "zpool.tank.state"),
    ("radio-modes-off", "sentence.radio_modes_off"),
    ("radio-power-save", "nic.wlan0.wifi.power_save"),
    ("sata-link-lowered", "disk.sdb.sata_limit_gbit"),
    ("tcp-tw-recycle", "sysctl.net.ipv4.tcp_tw_recycle"),
    ("under-voltage", "sentence.under_voltage"),
    ("vendor-sysctl-script", "sysctl.net.core.rmem_max"),
    ("virtio-one-queue", "nic.eth2.channels.combined"),
    ("volume-degraded-shared", "disk.dm-72.failed_legs"),
    ("volume-degraded", "disk.dm-72.failed_legs"),
    ("volume-rebuilding", "disk.md0.rebuilding_legs"),
];

/// Every reading that speaks for a cause changed a day before: it is quoted where it fits the line of the
/// cause, and only where it made the value that was read.
#[test]
fn a_change_is_quoted_where_it_fits_and_made_the_value() {
    let mut quoted = Vec::new();
    for (name, mut snapshot, diagnosis) in cases() {
        let plain = below_the_matrix(&snapshot, &diagnosis);
        snapshot.changes = changed_a_day_before(&diagnosis);
        let verdict = verdict::of(&snapshot, &diagnosis);
        let text = below_the_matrix(&snapshot, &diagnosis);
        assert_eq!(text.lines().count(), plain.lines().count(), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS_MAX, "{name}: {} columns: {line}", line.chars().count());
        }
        let lines = text.lines().filter(|line| line.trim_start().starts_with("Cause "));
        let quotes = lines.map(|line| line.contains("; changed "));
        let causes = verdict.findings.iter().filter_map(|item| item.cause.as_ref());
        for (cause, _) in causes.zip(quotes).filter(|(_, is_quoted)| *is_quoted) {
            let key = cause.changed.as_ref().map_or_else(String::new, |change| change.key.clone());
            quoted.push((name.clone(), key));
        }
        for change in &mut snapshot.changes {
            change.to = None;
        }
        assert_eq!(below_the_matrix(&snapshot, &diagnosis), plain, "{name}");
    }
    let expected: Vec<_> = QUOTED.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned())).collect();
    assert_eq!(quoted, expected);
}

/// A change of each reading that speaks for a first cause, made a day before.
fn changed_a_day_before(diagnosis: &Diagnosis) -> Vec<FactChange> {
    const DAY_MS: u64 = 86_400_000;
    let causes = diagnosis.findings.iter().filter_map(|finding| finding.causes.first());
    let hits = causes.flat_map(|cause| &cause.supports).filter_map(|clue| match clue {
        Clue::Read(hit) => Some(hit),
        _ => None,
    });
    let change = |hit: &FactHit| FactChange {
        host: hit.host.clone(),
        key: hit.key.clone(),
        from: None,
        to: Some(hit.value.clone()),
        after_ms: 20_000 * DAY_MS,
        seen_ms: 20_001 * DAY_MS,
        seen_by: SeenBy::Facts,
        who: None,
    };
    hits.map(change).collect()
}
