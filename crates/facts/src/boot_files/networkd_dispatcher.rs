//! Scripts that networkd-dispatcher runs when a device reaches a state, for those that systemd-networkd
//! configures at boot.

use super::flow::Variables;
use super::hooks;
use super::networkd::devices;
use super::owner::HostFiles;
use super::script::{OwnerOfScripts, Script};

/// The owner.
pub(super) const NETWORKD_DISPATCHER: OwnerOfScripts = OwnerOfScripts { name: FOLDER, read };

const FOLDER: &str = "networkd-dispatcher";
/// States of a device that comes up, in their order; each has a folder.
const STATES: [&str; 5] = ["carrier", "degraded", "routable", "configuring", "configured"];

fn read(host: &HostFiles<'_>) -> Result<Script, String> {
    let mut whole = Script::default();
    if !host.starts("networkd-dispatcher.service")? {
        return Ok(whole);
    }
    for nic in devices(host)? {
        for state in STATES {
            let variables = Variables::new([("IFACE", nic.as_str()), ("STATE", state)]);
            let folders = hooks::folders(host, &format!("{FOLDER}/{state}.d"));
            whole.extend(hooks::read(host, &folders, |_| true, &variables)?);
        }
    }
    Ok(whole)
}
