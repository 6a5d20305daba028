//! The hosts whose block devices are meant.

use std::path::Path;

use super::super::open;
use super::super::via::{self, Hosts, Via};
use linerate_inventory as inventory;

/// The hosts whose block devices are meant: those of a job, of an inventory, those named, or this one. `None`
/// after an interrupt.
pub(super) async fn hosts(
    via: &Via,
    inventory: Option<&Path>,
    named: &[String],
    no_sudo: bool,
) -> anyhow::Result<Option<Hosts>> {
    if via.is_asked() {
        return via::hosts(via, None).await;
    }
    let mut chosen = match inventory {
        Some(path) => open::inventory(path, named)?,
        None if named.is_empty() => inventory::named(&["localhost".to_owned()])?,
        None => inventory::named(named)?,
    };
    if no_sudo {
        chosen.without_sudo();
    }
    Ok(Some(Hosts::free(chosen, inventory.map(open::absolute))))
}
