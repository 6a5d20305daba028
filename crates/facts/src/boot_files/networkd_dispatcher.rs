//! Scripts that networkd-dispatcher runs when a device reaches a state, for those that systemd-networkd
//! configures at boot.

use super::flow::Variables;
use super::hooks;
use super::networkd::devices;
use super::owner::{HostFiles, Line, Owner, Unclear};
use super::script::Script;

/// The owner.
pub(super) struct NetworkdDispatcher;

const FOLDER: &str = "networkd-dispatcher";
/// States of a device that comes up, in their order; each has a folder.
const STATES: [&str; 5] = ["carrier", "degraded", "routable", "configuring", "configured"];

impl Owner for NetworkdDispatcher {
    fn name(&self) -> &'static str {
        FOLDER
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        Ok(read(host)?.lines)
    }

    fn unclear(&self, host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        Ok(read(host)?.unclear)
    }
}

fn read(host: &HostFiles<'_>) -> Result<Script, String> {
    let mut whole = Script::default();
    if !host.starts("networkd-dispatcher.service")? {
        return Ok(whole);
    }
    for nic in devices(host)? {
        for state in STATES {
            let variables = Variables::new([("IFACE", nic.as_str()), ("STATE", state)]);
            let own = Some(host.tree.etc(&format!("{FOLDER}/{state}.d")));
            let folders = [own, host.tree.beside(&format!("usr/lib/{FOLDER}/{state}.d"))];
            let folders: Vec<String> = folders.into_iter().flatten().collect();
            whole.extend(hooks::read(host, &folders, |_| true, &variables)?);
        }
    }
    Ok(whole)
}
