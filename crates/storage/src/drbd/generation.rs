//! Generation identifiers: from those of both sides it is known, before they connect, who would copy from
//! whom, and whether they have been written to without each other.
//!
//! The rules are those of the kernel's `drbd_uuid_compare()` (drbd_receiver.c of 8.4; 9 asks the same per
//! peer), with its numbers.

use schemars::JsonSchema;
use serde::Serialize;

/// A generation that has never held data (`UUID_JUST_CREATED`).
const JUST_CREATED: u64 = 4;

/// What `drbdadm get-gi` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Generation {
    /// Of the data.
    pub current: u64,
    /// Since when blocks that differ are marked; 0 while connected.
    pub bitmap: u64,
    /// Before that.
    pub history: [u64; 2],
    /// Whether the data are consistent.
    pub consistent: bool,
    /// Whether it was a primary that died.
    pub crashed_primary: bool,
}

/// What happens when both sides connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forecast {
    /// Nothing: they hold the same.
    Same,
    /// Neither side has data; the operator has to name the good one.
    BothNew,
    /// The first side is copied to the second.
    FirstToSecond {
        /// All of it, not only what is marked.
        all: bool,
    },
    /// The second side is copied to the first.
    SecondToFirst {
        /// All of it, not only what is marked.
        all: bool,
    },
    /// One is copied to the other; DRBD decides which while they connect.
    EitherWay,
    /// Both were written to without each other since the generation that they have in common: they refuse to
    /// connect.
    SplitBrain {
        /// The last common generation; 0 when none is known any more.
        common: u64,
    },
    /// They have nothing in common: they refuse to connect.
    Unrelated,
}

/// The lowest bit marks a side that was a primary, not which data it holds.
fn data(uuid: u64) -> u64 {
    uuid & !1
}

impl Generation {
    /// From the last line that has four identifiers and flags; messages may stand around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.lines().rev().find_map(|line| {
            let parts: Vec<&str> = line.trim().split(':').collect();
            let hex = |at: usize| -> Option<u64> {
                let part: &&str = parts.get(at)?;
                (part.len() == 16).then(|| u64::from_str_radix(part, 16).ok()).flatten()
            };
            let flag = |at: usize| parts.get(at).map(|flag| *flag == "1");
            Some(Self {
                current: hex(0)?,
                bitmap: hex(1)?,
                history: [hex(2)?, hex(3)?],
                consistent: flag(4)?,
                crashed_primary: flag(10)?,
            })
        })
    }

    fn is_new(&self) -> bool {
        data(self.current) == JUST_CREATED || self.current == 0
    }

    /// What happens when this side and another connect.
    #[must_use]
    pub fn forecast(&self, peer: &Self) -> Forecast {
        let (own, theirs) = (data(self.current), data(peer.current));
        match (self.is_new(), peer.is_new()) {
            (true, true) => return Forecast::BothNew, // rule 10
            (true, false) => return Forecast::SecondToFirst { all: true }, // rule 20
            (false, true) => return Forecast::FirstToSecond { all: true }, // rule 30
            (false, false) => {}
        }
        if own == theirs {
            return match (self.bitmap != 0, peer.bitmap != 0) {
                (true, false) => Forecast::FirstToSecond { all: false }, // rules 34 and 36: the end of a synchronisation was missed
                (false, true) => Forecast::SecondToFirst { all: false }, // rules 35 and 37
                _ => match (self.crashed_primary, peer.crashed_primary) {
                    // Rule 40.
                    (true, false) => Forecast::FirstToSecond { all: false },
                    (false, true) => Forecast::SecondToFirst { all: false },
                    (true, true) => Forecast::EitherWay,
                    (false, false) => Forecast::Same,
                },
            };
        }
        let past = |side: &Self| side.history.map(data);
        if own == data(peer.bitmap) {
            return Forecast::SecondToFirst { all: false }; // rule 50
        }
        if past(peer).contains(&own) {
            return Forecast::SecondToFirst { all: true }; // rule 60
        }
        if data(self.bitmap) == theirs {
            return Forecast::FirstToSecond { all: false }; // rule 70
        }
        if past(self).contains(&theirs) {
            return Forecast::FirstToSecond { all: true }; // rule 80
        }
        if self.bitmap != 0 && data(self.bitmap) == data(peer.bitmap) {
            return Forecast::SplitBrain { common: data(self.bitmap) }; // rule 90
        }
        // Rule 100: the common generation is further back. The kernel also takes two unused entries for the
        // same.
        let common = || past(self).into_iter().filter(|uuid| past(peer).contains(uuid));
        let known = common().find(|uuid| *uuid != 0 && *uuid != JUST_CREATED);
        match known.or_else(|| common().next().map(|_| 0)) {
            Some(common) => Forecast::SplitBrain { common },
            None => Forecast::Unrelated,
        }
    }
}
