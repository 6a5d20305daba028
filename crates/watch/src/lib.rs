//! What a watch does between hosts: who probes whom, when loss is worth an alarm and of what.
//!
//! In: hosts with their groups, counts of probes, the time. Out: partners, steps to take. Pure: no clock, no
//! I/O, and the same input gives the same output. All numbers are in `rules.rs`.
#![deny(missing_docs)]

mod alarm;
mod decide;
mod deliver;
mod downloads;
mod evidence;
mod idle;
mod loss;
pub mod metrics;
mod minute;
mod partners;
mod rtt;
pub mod rules;
mod slow;

pub use alarm::{AlarmIds, AlarmStep};
pub use decide::{
    DecidingPairs, DecidingRtts, UsualRtt, decide, decide_rtts, deciding_datagrams, deciding_pairs,
    deciding_requests,
};
pub use deliver::{Deliveries, DeliveryOutcome};
pub use downloads::{DownloadRound, DownloadWatch};
pub use idle::{LinkCounts, busiest};
pub use loss::{LossWatch, PairLoss};
pub use minute::{MinuteCounts, SeenFigure, SeenMinute, SeenOf};
pub use partners::{Member, partners, partners_of_round};
pub use rtt::RttWatch;
pub use slow::SlowStep;
