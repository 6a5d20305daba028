//! Options of an import: defaults for what the texts themselves do not name.

use linerate_model::inventory::{Inventory, Layer};

/// How texts are read.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Host of everything that has no prompt with a name.
    pub host: Option<String>,
    /// Read every text as this format.
    pub format: Option<String>,
    /// Layer of all measurements; without it they are underlay, except where a command enters a container's
    /// network.
    pub layer: Option<Layer>,
    /// Hosts, groups and addresses that are known already.
    pub inventory: Option<Inventory>,
}
