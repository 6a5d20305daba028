//! Scripts that NetworkManager runs when a device comes up (NetworkManager-dispatcher(8)), for those that it
//! brings up at boot.

use super::flow::Variables;
use super::hooks;
use super::network_manager::devices;
use super::owner::{HostFiles, is_masked};
use super::script::{OwnerOfScripts, Script};

/// The owner.
pub(super) const NM_DISPATCHER: OwnerOfScripts = OwnerOfScripts { name: "NetworkManager dispatcher", read };

const FOLDER: &str = "NetworkManager/dispatcher.d";
const UNIT: &str = "NetworkManager-dispatcher.service";
/// Events of a device that comes up, each with the folders below the one of all, in their order.
const EVENTS: [(&str, &[&str]); 2] = [("pre-up", &["/pre-up.d"]), ("up", &["", "/no-wait.d"])];
/// Ends of names that are not run.
const COPIES: [&str; 9] =
    ["~", ".bak", ".rpmnew", ".rpmorig", ".rpmsave", ".swp", ".dpkg-dist", ".dpkg-new", ".dpkg-old"];

fn is_run(name: &str) -> bool {
    !name.starts_with('.') && !COPIES.iter().any(|end| name.ends_with(end))
}

fn read(host: &HostFiles<'_>) -> Result<Script, String> {
    let mut whole = Script::default();
    if is_masked(host, UNIT)? {
        return Ok(whole);
    }
    for nic in devices(host)? {
        for (event, below) in EVENTS {
            let variables = Variables::new([
                ("1", nic.as_str()),
                ("2", event),
                ("DEVICE_IFACE", &nic),
                ("DEVICE_IP_IFACE", &nic),
                ("NM_DISPATCHER_ACTION", event),
            ]);
            for part in below {
                let folders = hooks::folders(host, &format!("{FOLDER}{part}"));
                whole.extend(hooks::read(host, &folders, is_run, &variables)?);
            }
        }
    }
    Ok(whole)
}
