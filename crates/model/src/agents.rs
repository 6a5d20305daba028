//! Hosts whose agents dial the operator of a watch.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The table `[agents]` of an inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentsSpec {
    /// Where the watch listens, as agents dial it.
    pub listen: Vec<SocketAddr>,
    /// The operator's folder of keys: a file `HOST.toml` for each agent.
    pub keys: PathBuf,
    /// Names of the hosts, or of groups of them; all hosts when empty.
    pub hosts: Vec<String>,
}
