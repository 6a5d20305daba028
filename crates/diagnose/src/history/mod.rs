//! What moved over many runs: the measured cells of each run in, series of hosts and pairs and the changes of
//! their levels out.
//!
//! A pair is explained by what its sender sends and its receiver receives; a pair is named only for what
//! neither explains. `series` separates them, `moved` searches all series at once.

mod moved;
mod series;
mod settings;

pub use moved::{LevelChange, moved};
pub use series::{RunCells, SeriesHistory, doublings, series, share_lost, undoubled};
pub use settings::{RunStart, settings_between};

#[cfg(test)]
mod tests;
