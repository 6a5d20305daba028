//! `[agents]`: hosts whose agents dial the watch. A table in, a checked list out.

use std::net::SocketAddr;

use ::toml::Spanned;
use linerate_model::agents::AgentsSpec;
use linerate_model::inventory::{Inventory, TransportSpec, check_folder};

use super::error::{Problem, problem};
use super::tables::RawAgents;
use linerate_input::quoted;

/// Addresses at most.
const LISTEN_MAX: usize = 8;

/// The checked table.
pub(super) fn agents(raw: &Spanned<RawAgents>) -> Result<AgentsSpec, Problem> {
    let RawAgents { listen, keys, hosts } = raw.get_ref();
    if listen.get_ref().is_empty() || listen.get_ref().len() > LISTEN_MAX {
        let what = format!("listen has {} addresses", listen.get_ref().len());
        return Err(problem(listen, what, format!("1 to {LISTEN_MAX}, such as [\"10.0.0.9:9442\"]")));
    }
    if let Err(wrong) = check_folder(keys.get_ref()) {
        let what = format!("keys `{}` {wrong}", quoted(&keys.get_ref().display().to_string()));
        return Err(problem(keys, what, "a folder of this machine, such as /etc/linerate/agents"));
    }
    Ok(AgentsSpec {
        listen: listen.get_ref().iter().map(address).collect::<Result<_, _>>()?,
        keys: keys.get_ref().clone(),
        hosts: hosts.iter().map(|name| name.get_ref().clone()).collect(),
    })
}

/// An address that agents can dial: each has it in its file.
fn address(text: &Spanned<String>) -> Result<SocketAddr, Problem> {
    let parsed: Option<SocketAddr> = text.get_ref().parse().ok();
    let fits = |address: &SocketAddr| {
        address.port() != 0 && !address.ip().is_unspecified() && !address.ip().is_multicast()
    };
    parsed.filter(fits).ok_or_else(|| {
        let what = format!("listen `{}` is no address of this machine with a port", quoted(text.get_ref()));
        problem(text, what, "the one that agents dial, such as \"10.0.0.9:9442\"")
    })
}

/// A host with an agent is probed at its address, which a watch does not ask it for.
pub(super) fn with_addresses(raw: &Spanned<RawAgents>, inventory: &Inventory) -> Result<(), Problem> {
    let is_bare =
        |host: &&linerate_model::inventory::Host| host.endpoints.is_empty() && inventory.has_agent(host);
    if let Some(host) = inventory.hosts.iter().find(is_bare) {
        let what = format!("host `{}` has an agent but no address", host.name);
        let hint = "add a table [[host.endpoint]] with `address`, or name other `hosts` in [agents]";
        return Err(problem(raw, what, hint));
    }
    let has_none = |name: &&Spanned<String>| {
        let host = inventory.host(name.get_ref());
        host.is_some_and(|host| matches!(host.transport, TransportSpec::Iperf3 { .. }))
    };
    match raw.get_ref().hosts.iter().find(has_none) {
        Some(name) => {
            let what = format!("host `{}` of [agents] only has iperf3", name.get_ref());
            Err(problem(name, what, "no agent runs there: remove it from `hosts`"))
        }
        None => Ok(()),
    }
}
