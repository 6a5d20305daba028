//! An alarm of loss, and the steps of a watch.

use linerate_model::suspect::{Direction, Suspect};

use crate::rules::{CLEAN_EXPECTED, CLEAN_MS};

/// Something loses more than is normal.
#[derive(Debug, Clone, PartialEq)]
pub struct LossAlarm {
    /// Its number in this watch, from 1.
    pub id: u64,
    /// What loses.
    pub suspect: Suspect,
    /// Which direction of its traffic; of a pair, what the first sends to the second.
    pub direction: Direction,
    /// The first loss, Unix milliseconds.
    pub since_ms: u64,
    /// When it was told, Unix milliseconds.
    pub told_ms: u64,
    /// Probes that were lost since.
    pub lost: u64,
    /// Probes that were sent since.
    pub sent: u64,
    /// Hosts with which it was seen.
    pub partners: usize,
}

impl LossAlarm {
    /// The share that is lost, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The host and its partners send more probes for [`crate::rules::FASTER_MS`].
    Faster(usize),
    /// Tell of it.
    Opened(LossAlarm),
    /// An alarm that was told is larger than it was told: both directions, or a whole group.
    Widened(LossAlarm),
    /// It is over.
    Closed(LossAlarm),
}

/// What loses, by indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Host(usize),
    Pair(usize, usize),
    Group(usize),
    All,
}

/// An alarm that is not over.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) place: Place,
    pub(crate) alarm: LossAlarm,
    last_loss_ms: u64,
    clean: u64,
}

impl Open {
    pub(crate) fn new(place: Place, alarm: LossAlarm) -> Self {
        let last_loss_ms = alarm.told_ms;
        Self { place, alarm, last_loss_ms, clean: 0 }
    }

    pub(crate) fn learn(&mut self, at_ms: u64, sent: u64, lost: u64) {
        self.alarm.sent += sent;
        self.alarm.lost += lost;
        if lost > 0 {
            self.last_loss_ms = at_ms;
            self.clean = 0;
        } else {
            self.clean += sent;
        }
    }

    /// Whether so much came through that what was lost would be lost again by now.
    pub(crate) fn is_over(&self, at_ms: u64) -> bool {
        at_ms >= self.last_loss_ms + CLEAN_MS && self.clean as f64 * self.alarm.share() >= CLEAN_EXPECTED
    }
}
