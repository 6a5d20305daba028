//! `node_drbd_*`: whether a replica has its peer, and both sides their data.

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Drbd;

const ROWS: &[Row] = &[
    ("node_drbd_connected", "drbd.{device}.connection", Use::Own, 1.0),
    ("node_drbd_disk_state_is_up_to_date", "drbd.{device}.disks", Use::Own, 1.0),
];

impl Family for Drbd {
    fn name(&self) -> &'static str {
        "drbd"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn query(&self, name: &str) -> String {
        // Both sides are good, or not.
        if name == "node_drbd_connected" { name.to_owned() } else { format!("min without (node) ({name})") }
    }

    fn take(&self, name: &str, series: &Series, taken: &mut Taken<'_>) {
        let device = series.label("device");
        let minor = device.strip_prefix("drbd").unwrap_or(device);
        let Some(is_good) = series.last().map(|value| value > 0.0) else { return };
        if name == "node_drbd_connected" {
            let text = if is_good { "Connected" } else { "not connected" };
            taken.text(&format!("drbd.{minor}.connection"), text);
        } else {
            let text = if is_good { "UpToDate/UpToDate" } else { "a side is not UpToDate" };
            taken.text(&format!("drbd.{minor}.disks"), text);
        }
    }
}
