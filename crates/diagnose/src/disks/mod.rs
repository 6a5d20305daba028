//! Block devices: counters and facts come in; what they are, how fast they went, and what is wrong with them
//! go out.
//!
//! What the devices did under whatever load there was is in `rates` and `findings`, when each finding began
//! and ended in `history`; what a volume is made of, what it should reach under a load of ours, and what it
//! did reach, in `volume` and `ceiling`.

mod ceiling;
mod degraded;
pub(crate) mod equals;
pub(crate) mod figures;
mod findings;
mod history;
mod link;
mod rates;
mod readings;
mod survey;
#[cfg(test)]
mod survey_tests;
mod times;
mod tree;
mod users;
mod volume;

use crate::rules::{DiskRules, Rules};

/// Drives are judged by the numbers in force.
const RULES: &DiskRules = &Rules::DEFAULT.disks;

pub use ceiling::{AlsoSafe, Arithmetic, Beside, DiskExpectation, DiskLimit, Term, beside, reach};
pub use findings::findings;
pub use history::{DriveHistory, IntervalChange};
pub use link::{DriveBus, DriveLink};
pub use rates::{between, join_paths};
pub use survey::{
    DriveFigure, DriveNote, DrivePromise, DriveState, SurveyedDrive, again, hosts_with_drives, is_busy,
    is_of_survey, survey, surveyed, surveyed_in,
};
pub use tree::{Layout, Leaf, layout};
pub use users::users;
pub use volume::{Class, VolumeMembers, volume};

#[cfg(test)]
mod ceiling_tests;
#[cfg(test)]
mod tests;
