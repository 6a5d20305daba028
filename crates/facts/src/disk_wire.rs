//! The wire to a drive: facts `disk.*.sata_gbit`, `disk.*.sas_gbit`, `disk.*.pcie.*`.
//!
//! In: the name of a block device. Out: what its link runs at now. A drive whose link nobody tells has no
//! fact and no gap: virtual ones have none.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::Root;

use super::pcie;
use super::readings::{Readings, fact};

pub(super) fn declarations() -> [FactDecl; 5] {
    [
        fact(
            "disk.*.controller",
            "text",
            "PCI function that the drive is at; drives of one share what it can do.",
        ),
        fact("disk.*.sata_gbit", "Gbit/s", "Speed of the SATA link to the drive, as the two ends agreed."),
        fact(
            "disk.*.sata_limit_gbit",
            "Gbit/s",
            "To which the kernel lowered the SATA link, after errors or by its command line.",
        ),
        fact(
            "disk.*.sas_gbit",
            "Gbit/s",
            "Speed of the SAS link to the drive, of the slowest where there are several.",
        ),
        fact(
            "disk.*.pcie.*",
            "as the name says",
            "speed_gts, width, max_speed_gts, max_width of an NVMe drive's PCIe link.",
        ),
    ]
}

/// Reads the link of the drive whose folder is `/sys/block/<name>`.
pub(super) fn read(root: &Root, name: &str, key: &str, out: &mut Readings) {
    if let Ok(path) = root.link(&format!("/sys/block/{name}"))
        && let Some(controller) = path.rsplit('/').find(|part| is_pci(part))
    {
        out.text(format!("{key}.controller"), controller);
    }
    if name.starts_with("nvme") {
        // The first is the controller, the second its PCI function.
        pcie::link_of(root, &format!("/sys/block/{name}/device/device"), &format!("{key}.pcie"), out);
    } else if name.starts_with("sd")
        && let Ok(path) = root.link(&format!("/sys/block/{name}"))
    {
        let seen = [
            ("sata_gbit", sata(root, &path, "sata_spd")),
            ("sata_limit_gbit", lowered(root, &path)),
            ("sas_gbit", sas(root, &path)),
        ];
        for (fact, speed) in seen {
            if let Some(speed) = speed {
                out.put(format!("{key}.{fact}"), FactValue::Float(speed));
            }
        }
    }
}

/// A part of the path of a device: `ata1` of `../devices/pci0000:00/0000:00:1f.2/ata1/host0/…`.
fn part<'a>(path: &'a str, start: &str) -> Option<&'a str> {
    let plain = |rest: &str| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.bytes().all(|b| b.is_ascii_digit() || b == b':')
    };
    path.rsplit('/').find(|part| part.strip_prefix(start).is_some_and(plain))
}

/// `0000:3b:00.0`
fn is_pci(part: &str) -> bool {
    let hex = |text: &str, long: usize| text.len() >= long && text.bytes().all(|b| b.is_ascii_hexdigit());
    let numbers: Vec<&str> = part.split([':', '.']).collect();
    matches!(numbers[..], [domain, bus, slot, function] if hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && hex(function, 1))
        && part.matches(':').count() == 2
}

/// `6.0 Gbps` of libata, `12.0 Gbit` of the SAS transport; `<unknown>` and `Unknown` where there is no link.
fn gbit(text: &str) -> Option<f64> {
    let number = text.split_ascii_whitespace().next()?;
    number.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0)
}

fn sata(root: &Root, path: &str, file: &str) -> Option<f64> {
    let port = part(path, "ata")?.strip_prefix("ata")?;
    gbit(&root.line(&format!("/sys/class/ata_link/link{port}/{file}")).ok()?)
}

/// A limit below that of the hardware. Without any limit the kernel says `<unknown>`.
fn lowered(root: &Root, path: &str) -> Option<f64> {
    let limit = sata(root, path, "sata_spd_limit")?;
    let hardware = sata(root, path, "hw_sata_spd_limit");
    hardware.is_none_or(|hardware| limit < hardware).then_some(limit)
}

fn sas(root: &Root, path: &str) -> Option<f64> {
    // The last port is the one at which the drive hangs; those before it lead to expanders.
    let port = part(path, "port-")?;
    let names = root.list(&format!("/sys/class/sas_port/{port}/device")).ok()?;
    let phys = names.iter().filter(|name| name.starts_with("phy-"));
    phys.filter_map(|phy| gbit(&root.line(&format!("/sys/class/sas_phy/{phy}/negotiated_linkrate")).ok()?))
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_and_speeds() {
        let ata = "../devices/pci0000:00/0000:00:1f.2/ata11/host0/target0:0:0/0:0:0:0/block/sda";
        assert_eq!(part(ata, "ata"), Some("ata11"));
        assert_eq!(part(ata, "port-"), None);
        let sas = "../devices/pci0000:80/host7/port-7:0/expander-7:0/port-7:0:13/end_device-7:0:13/target7:0:13/7:0:13:0/block/sdn";
        assert_eq!(part(sas, "port-"), Some("port-7:0:13"));
        assert_eq!(part(sas, "ata"), None);
        assert_eq!(part("../devices/virtual/port-x/atalanta/port-1..", "port-"), None);
        assert!(is_pci("0000:3b:00.0") && is_pci("10000:01:00.0"));
        assert!(!is_pci("0:0:0:0") && !is_pci("pci0000:80") && !is_pci("virtio0"));
        assert_eq!((gbit("6.0 Gbps"), gbit("12.0 Gbit\n")), (Some(6.0), Some(12.0)));
        assert_eq!(
            (gbit("<unknown>"), gbit(""), gbit("NaN Gbit"), gbit("-3 Gbit")),
            (None, None, None, None)
        );
    }
}
