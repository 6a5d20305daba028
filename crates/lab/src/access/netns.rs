//! The node program is started in the network namespace of each host: nothing between it and `linerate`.

use super::transport::{LabAccess, LabTransport};
use crate::cluster::Cluster;
use crate::error::Result;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Netns;

impl LabTransport for Netns {
    fn name(&self) -> &'static str {
        "netns"
    }

    fn prepare(&self, cluster: &Cluster) -> Result<LabAccess> {
        // The cluster itself describes its hosts so.
        Ok(LabAccess { inventory: cluster.inventory_path(), environment: Vec::new(), running: None })
    }
}
