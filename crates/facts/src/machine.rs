//! Facts `machine.*` and `nic.<if>.mac`: what kind of machine this is, and which virtual machines run on it;
//! with them hosts are told to be on the same hypervisor. Serial numbers are not read.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Machine;

/// Where the firmware's tables are.
const DMI: &str = "/sys/class/dmi/id";
/// Where libvirt keeps the machines that run.
const LIBVIRT: &str = "/run/libvirt/qemu";
/// Pool of values that Hyper-V gives to its guests: entries of 512 bytes of name and 2,048 of value.
const HYPERV_POOL: &str = "/var/lib/hyperv/.kvp_pool_3";
const HYPERV_NAME_BYTES: usize = 512;
const HYPERV_ENTRY_BYTES: usize = 2560;
/// Guests of one machine at most.
const GUESTS_MAX: usize = 1024;

impl Fact for Machine {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("machine.vendor", "text", "Who made the machine; for a virtual one the hypervisor's maker."),
            fact("machine.product", "text", "Name of the product."),
            fact("machine.uuid", "text", "Identifier that the firmware tells; needs root."),
            fact("machine.virtual", "flag", "Whether a hypervisor runs below."),
            fact("machine.host", "text", "Name of the hypervisor, where it tells its guests (Hyper-V)."),
            fact(
                "machine.guests",
                "list",
                "Virtual machines that libvirt runs here: identifier, then hardware addresses, separated by blanks.",
            ),
            fact("nic.*.mac", "text", "Hardware address of the device."),
        ]
    }

    // Inside a namespace the machine is the same.
    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links().iter().filter(|link| !link.loopback) {
            if let Some(address) = &link.address {
                out.text(format!("nic.{}.mac", key_name(&link.name)), address.as_str());
            }
        }
        for (key, file) in [("vendor", "sys_vendor"), ("product", "product_name"), ("uuid", "product_uuid")] {
            match view.root.line(&format!("{DMI}/{file}")) {
                Ok(text) => out.text(format!("machine.{key}"), plain(&text)),
                Err(ReadError::Denied) => out.gap(format!("machine.{key}"), "needs root"),
                // Machines without such tables: ARM boards, containers, some clouds.
                Err(error) => out.gap(format!("machine.{key}"), &error),
            }
        }
        if let Ok(cpus) = view.root.read("/proc/cpuinfo") {
            let flags = cpus.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
            let below = view.root.line("/sys/hypervisor/type").is_ok();
            out.flag("machine.virtual", below || flags.split_whitespace().any(|flag| flag == "hypervisor"));
        }
        // Of these files only what is told here is kept in a recording: secrets and names stand in them.
        if let Ok(Some(host)) = view.root.answer("hypervisor", || Ok(hypervisor(&Root::live()))) {
            out.text("machine.host", host);
        }
        match view.root.answer("guests", || guests(&Root::live())) {
            Ok(guests) if !guests.is_empty() => out.put("machine.guests", FactValue::List(guests)),
            Err(reason) if view.root.is_live() => out.gap("machine.guests", &reason),
            // Most machines are no hypervisors, and most recordings are older than this fact.
            _ => {}
        }
    }
}

/// Name of the hypervisor, where it is told.
fn hypervisor(root: &Root) -> Option<String> {
    let pool = root.read(HYPERV_POOL).unwrap_or_default();
    hyperv_value(&pool, "PhysicalHostName").map(|host| plain(&host))
}

/// Machines that libvirt runs here.
fn guests(root: &Root) -> Result<Vec<String>, ReadError> {
    let names = match root.list(LIBVIRT) {
        Ok(names) => names,
        Err(ReadError::Denied) => return Err(ReadError::Other("needs root".to_owned())),
        Err(_) => return Ok(Vec::new()),
    };
    let machines =
        names.iter().filter_map(|name| name.strip_suffix(".xml")).filter(|name| !name.contains('/'));
    let described =
        machines.take(GUESTS_MAX).filter_map(|name| root.read(&format!("{LIBVIRT}/{name}.xml")).ok());
    Ok(described.filter_map(|text| guest(&text)).collect())
}

/// Identifier and hardware addresses in the description of a running machine. Nothing else of it is kept.
fn guest(description: &str) -> Option<String> {
    let uuid = description.split_once("<uuid>")?.1.split_once("</uuid>")?.0.trim();
    let mut words = vec![plain(uuid)];
    for part in description.split("<mac address=").skip(1).take(64) {
        let quote = part.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        words.push(plain(part[1..].split(quote).next().unwrap_or_default()));
    }
    Some(words.join(" "))
}

/// The value of a name in a pool of Hyper-V. Names and values end at the first zero byte.
fn hyperv_value(pool: &str, name: &str) -> Option<String> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let mut entries = pool.as_bytes().chunks_exact(HYPERV_ENTRY_BYTES);
    let entry = entries.find(|entry| text(&entry[..HYPERV_NAME_BYTES]) == name)?;
    Some(text(&entry[HYPERV_NAME_BYTES..])).filter(|value| !value.is_empty())
}

/// Printable characters of a text, not too many.
fn plain(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(128).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_read_without_their_secrets() {
        let text = "<domstatus><domain><name>arc-1</name><uuid>4f-1</uuid><graphics passwd='x'/>\n\
                    <mac address='52:54:00:aa:bb:cc'/><mac address=\"52:54:00:00:00:01\"/></domain>";
        assert_eq!(guest(text).as_deref(), Some("4f-1 52:54:00:aa:bb:cc 52:54:00:00:00:01"));
        assert_eq!(guest("<uuid>a"), None);
        assert_eq!(guest("<uuid>a</uuid><mac address="), None);
    }

    #[test]
    fn machines_of_libvirt_are_found_in_a_tree() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("run/libvirt/qemu");
        std::fs::create_dir_all(&folder).unwrap();
        let text = "<uuid>6f0e</uuid><interface type='bridge'><mac address='52:54:00:11:22:33'/></interface>";
        std::fs::write(folder.join("arc-1.xml"), text).unwrap();
        std::fs::write(folder.join("arc-1.pid"), "4711").unwrap();
        std::fs::write(folder.join("broken.xml"), "<uuid>").unwrap();
        let root = Root::recorded(tree.path());
        assert_eq!(guests(&root).unwrap(), ["6f0e 52:54:00:11:22:33"]);
        assert_eq!(hypervisor(&root), None);
    }

    #[test]
    fn hyperv_tells_its_name() {
        let entry = |name: &str, value: &str| format!("{name:\0<512}{value:\0<2048}");
        let pool = entry("HostName", "x") + &entry("PhysicalHostName", "HV-7") + "cut";
        assert_eq!(hyperv_value(&pool, "PhysicalHostName").as_deref(), Some("HV-7"));
        assert_eq!(hyperv_value(&pool, "Other"), None);
        assert_eq!(hyperv_value("short", "Other"), None);
    }
}
