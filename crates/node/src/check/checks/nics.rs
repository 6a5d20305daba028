//! Network devices with hardware behind them, as the checks of links see them.

use linerate_sys::root::Root;
use linerate_sys::rtnetlink::{self, NetDevice};

/// `IF_OPER_UP`
const UP: u8 = 6;

/// Real devices that are administratively up: not virtual, not the loopback. A port that was never switched
/// on is no fault.
pub(super) fn in_use(root: &Root) -> Result<Vec<NetDevice>, String> {
    let links = root.answer("links", || Ok(rtnetlink::links()?)).map_err(|e| e.to_string())?;
    let is_real =
        |link: &NetDevice| link.up && !link.loopback && link.kind.is_none() && !link.name.contains('/');
    Ok(links.into_iter().filter(is_real).collect())
}

/// The same with a link: an unplugged port has no speed, and may be meant to have none.
pub(super) fn linked(root: &Root) -> Result<Vec<NetDevice>, String> {
    Ok(in_use(root)?.into_iter().filter(|link| link.operstate.is_none_or(|state| state == UP)).collect())
}

/// A counter of a device.
pub(super) fn stat(link: &NetDevice, name: &str) -> f64 {
    link.stats.get(name).copied().unwrap_or(0) as f64
}

/// `2.5 Gbit/s`, `100 Mbit/s`
pub(super) fn speed(mbit: f64) -> String {
    if mbit >= 1000.0 { format!("{} Gbit/s", mbit / 1000.0) } else { format!("{mbit} Mbit/s") }
}
