//! Facts of a network device that are no numbers of its driver: driver, speed, MTU, state, addresses.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ethtool::{EthtoolFamily, Nic};
use linerate_sys::rtnetlink::NetDevice;

use super::fact::Fact;
use super::readings::{Readings, fact, setting};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Links;

/// Names of `IF_OPER_*`.
const STATES: [&str; 7] = ["unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"];

impl Fact for Links {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("nic.*.driver", "text", "Driver of the device."),
            fact("nic.*.driver_version", "text", "Version that the driver tells; often that of the kernel."),
            fact("nic.*.firmware", "text", "Firmware of the device."),
            fact("nic.*.bus", "text", "Address of the device on its bus."),
            fact("nic.*.speed_mbit", "Mbit/s", "Speed of the link; virtual devices make it up."),
            fact("nic.*.duplex", "text", "full or half."),
            setting("nic.*.autoneg", "flag", "Whether the link negotiates its speed."),
            setting("nic.*.mtu", "bytes", "Largest packet that the device sends."),
            fact("nic.*.max_mtu", "bytes", "Largest MTU that the driver takes."),
            setting("nic.*.txqueuelen", "packets", "Length of the transmit queue."),
            fact("nic.*.state", "text", "Operational state of the link."),
            fact("nic.*.carrier_changes", "count", "How often the carrier came or went since boot."),
            fact(
                "nic.*.addresses",
                "list",
                "Own addresses with the length of their prefix, without link-local IPv6.",
            ),
            fact("nic.*.gso_max_size", "bytes", "Largest aggregated packet that is sent."),
            setting(
                "nic.*.gso_max_segs",
                "packets",
                "Most packets that an aggregated one is cut into; 1 switches aggregation off.",
            ),
            fact("nic.*.gro_max_size", "bytes", "Largest aggregated packet that is received."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links() {
            let nic = format!("nic.{}", key_name(&link.name));
            read_link(view, link, &nic, out);
            if link.loopback {
                continue;
            }
            if let Some(known) = view.nics().get(&link.name) {
                read_driver(known, &nic, &link.name, out);
            }
            if !view.nics().get(&link.name).is_some_and(|n| n.numbers.contains_key(&EthtoolFamily::Link)) {
                read_speed_file(view, link, &nic, out);
            }
        }
    }
}

fn read_link(view: &View<'_>, link: &NetDevice, nic: &str, out: &mut Readings) {
    let mut int = |name: &str, value: Option<u32>| {
        if let Some(value) = value {
            out.int(format!("{nic}.{name}"), value);
        }
    };
    int("mtu", link.mtu);
    int("max_mtu", link.max_mtu);
    int("txqueuelen", link.txqueuelen);
    int("carrier_changes", link.carrier_changes);
    int("gso_max_size", link.gso_max_size);
    int("gso_max_segs", link.gso_max_segs);
    int("gro_max_size", link.gro_max_size);
    let state = link.operstate.and_then(|s| STATES.get(usize::from(s)));
    out.text(format!("{nic}.state"), if link.up { *state.unwrap_or(&"unknown") } else { "off" });
    let addresses: Vec<String> = view
        .addresses()
        .iter()
        .filter(|a| a.link == link.index)
        .filter(|a| !matches!(a.address, std::net::IpAddr::V6(v6) if v6.is_unicast_link_local()))
        .map(|a| format!("{}/{}", a.address, a.prefix))
        .collect();
    if !addresses.is_empty() {
        out.put(format!("{nic}.addresses"), FactValue::List(addresses));
    }
}

fn read_driver(known: &Nic, nic: &str, name: &str, out: &mut Readings) {
    if let Some(driver) = &known.driver {
        out.text(format!("{nic}.driver"), driver.name.as_str());
        out.text(format!("{nic}.driver_version"), driver.version.as_str());
        if driver.firmware != "N/A" {
            out.text(format!("{nic}.firmware"), driver.firmware.as_str());
        }
        out.text(format!("{nic}.bus"), driver.bus.as_str());
    }
    let link = known.numbers.get(&EthtoolFamily::Link);
    let number = |field: &str| link.and_then(|l| l.get(field)).copied();
    // The kernel says "unknown" as all ones.
    if let Some(speed) = number("speed").filter(|s| *s > 0 && *s < u64::from(u32::MAX)) {
        out.int(format!("{nic}.speed_mbit"), speed);
    }
    if let Some(duplex @ (0 | 1)) = number("duplex") {
        out.text(format!("{nic}.duplex"), if duplex == 1 { "full" } else { "half" });
    }
    if let Some(autoneg) = number("autoneg") {
        out.flag(format!("{nic}.autoneg"), autoneg != 0);
    }
    for what in ["driver", "link"] {
        if let Some(reason) = known.missing.get(what) {
            let what = if what == "link" { "speed_mbit" } else { what };
            out.gap_of(&format!("nic.*.{what}"), reason, name);
        }
    }
}

/// Kernels without ethtool netlink.
fn read_speed_file(view: &View<'_>, link: &NetDevice, nic: &str, out: &mut Readings) {
    let Some(folder) = view.sys_folder(link) else { return };
    if let Ok(speed @ 1..) = view.root.number(&format!("{folder}/speed")) {
        out.int(format!("{nic}.speed_mbit"), speed);
    }
    if let Ok(duplex) = view.root.line(&format!("{folder}/duplex"))
        && ["full", "half"].contains(&duplex.as_str())
    {
        out.text(format!("{nic}.duplex"), duplex);
    }
}
