//! `lsusb -t`, and the tree that `lsusb` of a NAS prints: with which speed and driver a device is connected.
//! Lines come in, facts `usb.<bus>-<device>.…` go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Lsusb;

/// What USB 2 carries, Mbit/s: drives and NICs of today have more.
const USB_2_MBIT: f64 = 480.0;
/// The version that a device of USB 3 reports where it is connected as USB 2 alone.
const OF_USB_3: &str = "2.10";
/// Drivers of drives.
const STORAGE: [&str; 2] = ["uas", "usb-storage"];
/// Drivers of NICs of 1 Gbit/s and more.
const NETWORK: [&str; 5] = ["r8152", "ax88179_178a", "aqc111", "cdc_ncm", "lan78xx"];
/// Words of the names of drives, and of NICs.
const NAMES: [(&str, &[&str]); 2] = [
    ("storage", &["disk", "storage", "ssd", "hdd", "flash", "sata", "nvme"]),
    ("network", &["lan", "ethernet", "gbe", "gigabit", "network"]),
];

/// One device of the tree.
#[derive(Debug, PartialEq)]
struct Device {
    name: String,
    mbit: f64,
    driver: String,
    kind: Option<&'static str>,
}

/// The number behind a word: `2` of `Bus 02.Port 1:`.
fn behind(line: &str, word: &str) -> Option<u32> {
    let rest = line.split_once(word)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// `/:  Bus 02.Port 1: Dev 1, Class=root_hub, Driver=xhci_hcd/4p, 5000M`: the number of the bus.
fn bus(line: &str) -> Option<u32> {
    behind(line.strip_prefix("/:")?.trim_start(), "Bus ")
}

/// `    |__ Port 1: Dev 2, If 0, Class=Mass Storage, Driver=uas, 5000M`
fn plain(line: &str, bus: u32) -> Option<Device> {
    let rest = line.trim_start().strip_prefix("|__ ")?;
    let mbit = rest.rsplit(", ").next()?.trim().strip_suffix('M')?.parse().ok()?;
    let field = |name: &str| Some(rest.split_once(name)?.1.split(',').next()?.trim().to_owned());
    let class = field("Class=").unwrap_or_default();
    let driver = field("Driver=").unwrap_or_default();
    let driver = driver.split('/').next().unwrap_or_default().to_owned();
    let kind = if class == "Mass Storage" || STORAGE.contains(&driver.as_str()) {
        Some("storage")
    } else {
        NETWORK.contains(&driver.as_str()).then_some("network")
    };
    Some(Device { name: format!("{bus}-{}", behind(rest, "Dev ")?), mbit, driver, kind })
}

/// `  |__1-3   0bda:8156:31f4 00  2.10  480MBit/s 200mA 1IF  (Realtek USB LAN 4F13)`
fn of_nas(line: &str) -> Option<Device> {
    let rest = line.trim_start().strip_prefix("|__")?;
    let (name, rest) = rest.split_once(' ')?;
    let (head, described) = rest.split_once('(').unwrap_or((rest, ""));
    let mbit = head.split_whitespace().find_map(|word| leading(word.strip_suffix("MBit/s")?))?;
    let words: Vec<String> = described.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    // `5GbE` is a word of its own.
    let bare = |word: &str| word.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
    let fits = |known: &[&str]| words.iter().any(|word| known.contains(&bare(word).as_str()));
    let named = NAMES.iter().find(|(_, known)| fits(known)).map(|(kind, _)| *kind);
    let kind = named.or_else(|| head.split_whitespace().any(|word| word == OF_USB_3).then_some("device"));
    let plain = name.len() <= 16 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
    let is_hub = name.starts_with("usb");
    plain.then(|| Device {
        name: name.replace('.', "/"),
        mbit,
        driver: String::new(),
        kind: kind.filter(|_| !is_hub),
    })
}

impl Reader for Lsusb {
    fn name(&self) -> &'static str {
        "lsusb"
    }

    fn describes(&self) -> &'static str {
        "lsusb -t: speed and driver of devices on USB"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        bus(block.first()).is_some() || of_nas(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut on = 0;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(number) = bus(line) {
                on = number;
            } else if let Some(device) = plain(line, on).or_else(|| of_nas(line)) {
                put(&device, out);
            } else if !(line.starts_with([' ', '\t']) && line.trim_start().starts_with(['|', 'I', '/'])) {
                // `lsusb -tv` prints `ID 0bda:8156 …` and the path below each device.
                break;
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}

fn put(device: &Device, out: &mut Sink) {
    let Device { name, mbit, driver, kind } = device;
    out.fact(format!("usb.{name}.speed_mbit"), FactValue::Int(mbit.round() as i64));
    out.text(format!("usb.{name}.driver"), driver);
    if let Some(kind) = kind.filter(|_| *mbit <= USB_2_MBIT) {
        out.fact(format!("usb.{name}.slow_{kind}_mbit"), FactValue::Int(mbit.round() as i64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_with_their_speed_and_kind() {
        let disk = plain("    |__ Port 001: Dev 003, If 0, Class=Mass Storage, Driver=usb-storage, 480M", 2);
        let disk = disk.unwrap();
        assert_eq!((disk.name.as_str(), disk.kind, disk.mbit), ("2-3", Some("storage"), 480.0));
        let mouse =
            plain("|__ Port 2: Dev 5, If 1, Class=Human Interface Device, Driver=usbhid, 12M", 1).unwrap();
        assert_eq!((mouse.name.as_str(), mouse.kind), ("1-5", None));
        let nic =
            of_nas("  |__2-1.4  0b95:1790:0100 00  3.20 5000MBit/s 124mA 1IF  (ASIX Gigabit Ethernet 07)");
        let nic = nic.unwrap();
        assert_eq!((nic.name.as_str(), nic.kind, nic.mbit), ("2-1/4", Some("network"), 5000.0));
        let kind = |line: &str| of_nas(line).unwrap().kind;
        assert_eq!(
            kind("  |__1-2  0b95:0001:0101 00  2.10  480MBit/s 500mA 1IF  (Example 5GbE Adapter 3)"),
            Some("network")
        );
        assert_eq!(
            kind("  |__1-2  0b95:0001:0101 00  2.10  480MBit/s 500mA 1IF  (Example Camera 3)"),
            Some("device")
        );
        assert_eq!(kind("  |__1-2  0b95:0001:0101 00  2.00  480MBit/s 500mA 1IF  (Example Printer 3)"), None);
        assert_eq!(plain("    |__ Port 2: Dev 5, If 1", 1), None);
        assert_eq!(of_nas("|__ a branch of a tree"), None);
    }
}
