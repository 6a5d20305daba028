//! DRBD: what hosts print comes in; states, alarms, forecasts, remaining times, resource files and the steps
//! of a failover or a repair go out.
//!
//! Nothing here runs a command or knows a clock.

mod alarms;
mod capacity;
mod generation;
mod metadata;
mod moves;
mod progress;
mod readers;
mod resource;
mod setup;
mod shares;

pub use alarms::{KnownGenerations, alarms};
pub use capacity::device_layout;
pub use generation::{Forecast, Generation};
pub use metadata::{DeviceLayout, MetadataLocation, metadata_bytes};
pub use moves::{MoveError, failover, failover_of_the_dead, first_sync, lost_by, repair};
pub use progress::{SyncMeter, SyncProgress};
pub use readers::{ProcDevice, read_names, read_proc, read_state};
pub use resource::{Overlap, Release, ReplicaSide, ResourceSpec, SetupError, file_text};
pub use setup::{On, ResourcePlan, plan};
pub use shares::{PATTERNS, Share, TimeOfWrite, shares};

#[cfg(test)]
mod tests;
