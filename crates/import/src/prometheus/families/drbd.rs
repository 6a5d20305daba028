//! `node_drbd_*`: whether a replica has its peer, and both sides their data.
//!
//! `node_drbd_connected` is 0 in every state but `Connected`, also while a side is being filled. What it
//! sends and receives makes the difference: a replica without a peer does neither.

use linerate_model::fact::FactValue;

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::range::StoredRange;
use super::super::taken::{Kept, Taken};

/// The family.
pub(super) struct Drbd;

const CONNECTED: &str = "node_drbd_connected";
const UP_TO_DATE: &str = "node_drbd_disk_state_is_up_to_date";

const ROWS: &[Row] = &[
    (CONNECTED, "drbd.{device}.connection", Use::Own, 1.0),
    (UP_TO_DATE, "drbd.{device}.disks", Use::Own, 1.0),
    ("node_drbd_network_received_bytes_total", "drbd.{device}.received_bytes", Use::Counter, 1.0),
    ("node_drbd_network_sent_bytes_total", "drbd.{device}.sent_bytes", Use::Counter, 1.0),
];

/// Whether a counter stood still at the end; none where that is not known.
fn is_still(kept: &Kept, host: &str, key: String, range: &StoredRange) -> Option<bool> {
    let series = kept.series.get(&(host.to_owned(), key))?;
    let last = [range.intervals.checked_sub(2)?, range.intervals - 1].map(|at| series.at(at));
    Some(last[0]? == 0.0 && last[1]? == 0.0)
}

impl Family for Drbd {
    fn name(&self) -> &'static str {
        "drbd"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn take(&self, name: &str, series: &Series, taken: &mut Taken<'_>) {
        let what = if name == CONNECTED { "connected" } else { series.label("node") };
        taken.level(format!("drbd.{}.{what}", series.label("device")), series);
    }

    fn finish(&self, kept: &mut Kept, range: &StoredRange) {
        let mut found: Vec<(String, String, String)> = Vec::new();
        for ((host, key), connected) in &kept.levels {
            let Some(device) = key.strip_prefix("drbd.").and_then(|key| key.strip_suffix(".connected"))
            else {
                continue;
            };
            let level = |side: &str| kept.levels.get(&(host.clone(), format!("drbd.{device}.{side}")));
            let is_up_to_date = |side: &str| level(side).is_some_and(|value| *value > 0.0);
            let still = |what: &str| is_still(kept, host, format!("drbd.{device}.{what}"), range);
            let is_alone = still("received_bytes") == Some(true) && still("sent_bytes") == Some(true);
            if *connected <= 0.0 && !is_alone {
                continue;
            }
            let minor = device.strip_prefix("drbd").unwrap_or(device);
            let connection = if *connected > 0.0 { "Connected" } else { "Unconnected" };
            found.push((host.clone(), format!("drbd.{minor}.connection"), connection.to_owned()));
            // No metric has the state of a side that is not up to date; that of an absent peer is unknown.
            let peer = match (is_up_to_date("remote"), *connected > 0.0) {
                (true, _) => "UpToDate",
                (false, false) => "DUnknown",
                (false, true) => continue,
            };
            if is_up_to_date("local") {
                found.push((host.clone(), format!("drbd.{minor}.disks"), format!("UpToDate/{peer}")));
            }
        }
        for (host, key, value) in found {
            kept.fact(&host, &key, FactValue::Text(value));
        }
    }
}
