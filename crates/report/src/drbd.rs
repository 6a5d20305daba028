//! Replicas of DRBD as text: one table of all hosts, what is under way, what is wrong. Fits 100 columns but
//! for sentences.

use std::fmt::Write as _;
use std::path::Path;

use linerate_model::drbd::{DrbdAlarm, Replica};
use linerate_model::printable::one_line;
use linerate_storage::drbd::{ResourcePlan, SyncProgress};

use super::disk_plan::hours;
use super::heat::Style;
use super::wrap::wrap;
use super::{steps, verdict};
use linerate_model::units::short;

/// Columns of the table.
const HEADS: [(&str, usize); 8] = [
    ("resource", 14),
    ("host", 16),
    ("role", 10),
    ("disk", 13),
    ("connection", 13),
    ("replication", 13),
    ("differs KiB", 12),
    ("size", 9),
];

fn cell(text: &str, width: usize) -> String {
    let text = one_line(text);
    if text.chars().count() < width {
        format!("{text:width$}")
    } else {
        let kept: String = text.chars().take(width.saturating_sub(2)).collect();
        format!("{kept}… ")
    }
}

fn size(kib: u64) -> String {
    for (scale, unit) in [(1u64 << 30, "TiB"), (1 << 20, "GiB"), (1 << 10, "MiB")] {
        if kib >= scale {
            return format!("{} {unit}", short(kib as f64 / scale as f64));
        }
    }
    format!("{kib} KiB")
}

/// A line per host, resource and device; of several peers the first that is not well.
#[must_use]
pub fn table(replicas: &[Replica], style: Style) -> String {
    let mut text = String::new();
    let heads: String = HEADS.iter().map(|(head, width)| cell(head, *width)).collect();
    let _ = writeln!(text, "{}", style.bold(heads.trim_end()));
    for replica in replicas {
        let ill = |peer: &&linerate_model::drbd::Peer| peer.connection != "Connected";
        let peer = replica.peers.iter().find(ill).or(replica.peers.first());
        for volume in &replica.volumes {
            let there = peer.and_then(|peer| peer.volumes.iter().find(|v| v.number == volume.number));
            let values = [
                replica.resource.clone(),
                replica.host.clone(),
                replica.role.clone(),
                volume.disk.clone(),
                peer.map_or_else(|| "no peer".to_owned(), |peer| peer.connection.clone()),
                there.map_or_else(|| "-".to_owned(), |there| there.replication.clone()),
                there.map_or_else(|| "-".to_owned(), |there| there.out_of_sync_kib.to_string()),
                size(volume.size_kib),
            ];
            let line: String =
                values.iter().zip(HEADS).map(|(value, (_, width))| cell(value, width)).collect();
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// Width of the bar.
const BAR: usize = 30;

/// A synchronisation or comparison that is under way.
#[must_use]
pub fn progress(what: &str, now: &SyncProgress) -> String {
    let full = (now.share.clamp(0.0, 1.0) * BAR as f64) as usize;
    let bar: String = (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect();
    let rate = now.kib_per_s.map_or_else(String::new, |kib| format!(", {} MiB/s", short(kib / 1024.0)));
    let left = match (now.stuck_s, now.left_s) {
        (Some(stuck), _) => format!(", stands still for {}", hours(stuck)),
        (None, Some(left)) => format!(", {} left", hours(left)),
        (None, None) => ", no rate yet".to_owned(),
    };
    format!("{} {bar} {:.1} %{rate}{left}", one_line(what), now.share * 100.0)
}

/// Names the inventory in what to do about each, where it is not found unnamed.
pub fn name_inventory(alarms: &mut [DrbdAlarm], typed: Option<&Path>) {
    for alarm in alarms {
        alarm.advice = verdict::command::named_in(&alarm.advice, typed);
    }
}

/// What is wrong, each with what to do.
#[must_use]
pub fn alarms(alarms: &[DrbdAlarm], style: Style) -> String {
    let mut text = String::new();
    for alarm in alarms {
        for (i, line) in wrap(&alarm.sentence, style.width - 2).iter().enumerate() {
            let mark = if i == 0 { style.alarm("!") } else { " ".to_owned() };
            let _ = writeln!(text, "{mark} {line}");
        }
        for line in wrap(&alarm.advice, style.width - 2) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// How a resource would be made.
#[must_use]
pub fn plan(plan: &ResourcePlan, style: Style) -> String {
    let mut text = String::new();
    let spec = &plan.spec;
    let _ = writeln!(
        text,
        "{} on {} and {}, DRBD {}, protocol {}: {} for data",
        spec.resource,
        spec.sides[0].host,
        spec.sides[1].host,
        spec.release_name(),
        spec.protocol,
        size(plan.data_bytes >> 10)
    );
    for (side, room) in spec.sides.iter().zip(&plan.rooms) {
        let holds = match (&side.contents.filesystem, side.contents.filesystem_bytes) {
            (Some(kind), Some(bytes)) => format!("a filesystem ({kind}) of {bytes} bytes, which stays"),
            (Some(kind), None) => format!("a filesystem ({kind})"),
            (None, _) => "has to be empty".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {:16} {}: {} bytes = {} data + {} metadata; {holds}",
            one_line(&side.host),
            side.disk,
            room.device_bytes,
            room.data_bytes,
            room.metadata_bytes
        );
    }
    let _ = writeln!(text, "\n{}", style.bold(&format!("/etc/drbd.d/{}.res on both hosts", spec.resource)));
    for line in plan.file.lines() {
        let _ = writeln!(text, "    {line}");
    }
    for side in &spec.sides {
        let _ = writeln!(text, "\n{}", style.bold(&format!("Steps on {}", one_line(&side.host))));
        let own = plan.steps.iter().chain(&plan.first).filter(|on| on.host == side.host);
        // The file stands above.
        text.push_str(&steps::commands(own.map(|on| &on.step)));
    }
    if plan.first.is_none() {
        text.push_str(
            "\nNo side is named as the good one: --from HOST begins the first synchronisation there.\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use linerate_model::drbd::{DrbdVolume, Peer, PeerVolume};

    use super::*;

    #[test]
    fn the_table_fits_with_the_longest_words() {
        let long = || "x".repeat(70);
        let replica = Replica {
            host: long(),
            resource: long(),
            role: "Secondary".into(),
            volumes: vec![DrbdVolume {
                disk: "Inconsistent".into(),
                size_kib: u64::MAX,
                ..DrbdVolume::default()
            }],
            peers: vec![Peer {
                connection: "NetworkFailure".into(),
                volumes: vec![PeerVolume {
                    replication: "PausedSyncT".into(),
                    out_of_sync_kib: u64::MAX,
                    ..PeerVolume::default()
                }],
                ..Peer::default()
            }],
        };
        let text = table(&[replica], Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn nothing_is_said_about_a_time_that_is_not_known() {
        let now =
            SyncProgress { share: 0.01, left_kib: 400_000, kib_per_s: None, left_s: None, stuck_s: None };
        assert!(progress("r0", &now).ends_with("1.0 %, no rate yet"));
        let now = SyncProgress { kib_per_s: Some(12_288.0), left_s: Some(33.0), ..now };
        assert!(progress("r0", &now).ends_with("12 MiB/s, 33 s left"), "{}", progress("r0", &now));
    }
}
