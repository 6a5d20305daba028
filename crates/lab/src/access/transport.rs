//! What a transport is: how `linerate` reaches the hosts of a lab, and what it needs for that.
//!
//! In: a running cluster. Out: an inventory, and variables for the environment of `linerate`. It knows no
//! transport by name.

use std::any::Any;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::error::Result;

/// A transport to the hosts. To add one: a file beside this one and a line in the list of `mod.rs`.
pub trait LabTransport: Sync + std::fmt::Debug {
    /// Name on the command line.
    fn name(&self) -> &'static str;
    /// Prepares access for `linerate`.
    ///
    /// # Errors
    /// This machine lacks something for it.
    fn prepare(&self, cluster: &Cluster) -> Result<LabAccess>;
}

/// What `linerate` needs for a lab.
#[derive(Debug, Clone)]
pub struct LabAccess {
    /// For `linerate survey -i`.
    pub inventory: PathBuf,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, OsString)>,
    /// Daemons; they end with the last copy of this.
    pub running: Option<Arc<dyn Any + Send + Sync>>,
}
