//! `pcie-width`: a NIC or drive with fewer PCIe lanes, or slower ones, than it and its slot have, or than it
//! had.

use linerate_sys::root::Root;
use linerate_sys::sysfs;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE, Threshold};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct PcieWidth;

const BEST_DAYS: Threshold = Threshold {
    name: "best_days",
    default: 30.0,
    unit: "days",
    meaning: "How long the own best width is expected after it was last seen.",
};
/// Folders of devices whose rate a narrow link limits.
const CLASSES: [&str; 2] = ["/sys/class/net", "/sys/class/nvme"];

static ABOUT: About = About {
    id: "pcie-width",
    title: "a NIC or NVMe drive has fewer PCIe lanes than it and its slot have, or than it had",
    reads: "current_link_width, max_link_width, current_link_speed of the device and the port above it",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Local,
    is_on: true,
    thresholds: &[BEST_DAYS],
    takes_expected: false,
};

/// Lanes; 255 and 0 stand for unknown.
fn lanes(root: &Root, folder: &str, file: &str) -> Option<f64> {
    let width = root.number(&format!("{folder}/{file}")).ok()?;
    (1..=64).contains(&width).then_some(width as f64)
}

fn speed(root: &Root, folder: &str, file: &str) -> Option<f64> {
    sysfs::pcie_speed_gts(&root.line(&format!("{folder}/{file}")).ok()?)
}

/// The port above a device: the folder that its own one is in (`…/0000:00:1c.0/0000:02:00.0`).
fn port_of(root: &Root, class: &str, name: &str) -> Option<String> {
    let target = root.link(&format!("{class}/{name}")).ok()?;
    let path = target.split("devices/").nth(1)?;
    let functions: Vec<&str> = path.split('/').take_while(|part| part.contains(':')).collect();
    let above = functions.get(..functions.len().checked_sub(1)?)?;
    above.last()?;
    Some(format!("/sys/devices/{}", above.join("/")))
}

fn row_of(root: &Root, class: &str, name: &str) -> Option<Row> {
    let folder = format!("{class}/{name}/device");
    let width = lanes(root, &folder, "current_link_width")?;
    let mut possible = lanes(root, &folder, "max_link_width");
    if let Some(port) = port_of(root, class, name)
        && let Some(slot) = lanes(root, &port, "max_link_width")
    {
        // A card of 16 lanes in a slot of 8 is as it was built.
        possible = possible.map(|own| own.min(slot));
    }
    let gts = speed(root, &folder, "current_link_speed");
    Some(Row::new(name).value("lanes", width).value("possible", possible).value("gts", gts))
}

impl Check for PcieWidth {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let mut rows = Vec::new();
        for class in CLASSES {
            let names = reading.root.list(class).unwrap_or_default();
            rows.extend(names.iter().filter_map(|name| row_of(reading.root, class, name)));
        }
        Ok(rows.into())
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let Some(width) = row.get("lanes") else { return Observation::unknown(row, "no PCIe link") };
        let days = settings.number(&BEST_DAYS);
        let best = past.best(&row.subject, width, now, days);
        let bad = |text: String| Observation::bad(row, text).because("pcie-narrow");
        if let Some(possible) = row.get("possible").filter(|possible| width < *possible) {
            return bad(format!("{width} PCIe lanes of {possible}"));
        }
        if width < best {
            return bad(format!("{width} PCIe lanes, and it had {best}"));
        }
        // Idle devices may lower their speed, so that a lower one alone is worth a line at most.
        if let Some(gts) = row.get("gts") {
            let best = past.best(&format!("{} speed", row.subject), gts, now, days);
            if gts < best {
                return bad(format!("PCIe at {gts} GT/s, and it had {best}")).only_warns();
            }
        }
        Observation::good(row, format!("{width} PCIe lanes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_narrow_by_design_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let links = r#"{"links": {
            "/sys/class/net/eth0": "../../devices/pci0000:00/0000:00:1c.0/0000:02:00.0/net/eth0",
            "/sys/class/net/eth1": "../../devices/pci0000:00/0000:00:1d.0/0000:03:00.0/net/eth1"
        }}"#;
        write("linerate/files.json", links);
        for (nic, port, width) in [("eth0", "0000:00:1c.0", "8\n"), ("eth1", "0000:00:1d.0", "4\n")] {
            write(&format!("sys/class/net/{nic}/device/max_link_width"), "16\n");
            write(&format!("sys/class/net/{nic}/device/current_link_width"), width);
            write(&format!("sys/devices/pci0000:00/{port}/max_link_width"), "8\n");
        }
        let root = Root::recorded(folder.path());
        let settings = Settings::default();
        let reading = Reading { root: &root, item: "", settings: &settings, cursor: None };
        let now = Moment { up_s: 1, unix_s: 1 };
        let judged = PcieWidth.read(&reading).unwrap().rows;
        let texts: Vec<String> = judged
            .iter()
            .map(|row| PcieWidth.judge(row, &mut Past::default(), now, &settings).text)
            .collect();
        assert_eq!(texts, ["8 PCIe lanes", "4 PCIe lanes of 8"]);
    }
}
