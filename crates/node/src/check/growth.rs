//! Growth of a counter beside its own past: events for each unit of traffic (packets, seconds), in a window
//! of the recent past against all that came before.
//!
//! In: the history of a counter and its value now. Out: the history after it, and how much it grew. Pure. The
//! first value is never growth; a counter that went back (a driver loaded anew) begins anew.

use serde::{Deserialize, Serialize};

/// Most points of a window; more calls are thinned.
const POINTS_MAX: usize = 48;
/// Past traffic is halved when it reaches so many windows, so that it follows a host that changes.
const WINDOWS_MAX: f64 = 200.0;
/// How many standard deviations of a count above what the past lets expect are chance: below one false alarm
/// in 30 000 windows where events are independent; they come in bursts, so the share decides as well.
const SIGMAS: f64 = 4.0;

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Point {
    up_s: u64,
    events: f64,
    traffic: f64,
}

/// The history of one counter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Series {
    #[serde(default)]
    points: Vec<Point>,
    /// What left the window while it was not bad.
    #[serde(default)]
    past_events: f64,
    #[serde(default)]
    past_traffic: f64,
}

/// When growth is bad.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrowthRule {
    pub(super) window_s: u64,
    /// Fewer events in the window are none.
    pub(super) events_min: f64,
    /// Events for each unit of traffic below which they are no trouble.
    pub(super) share_min: f64,
}

/// How a counter grew within the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    pub(super) events: f64,
    pub(super) traffic: f64,
    /// Over how long, seconds.
    pub(super) over_s: u64,
    /// Events that its own past lets expect for this traffic; `None` without a past.
    pub(super) expected: Option<f64>,
    pub(super) is_bad: bool,
}

impl Series {
    /// Adds a reading. `None` where there is nothing before it to compare with.
    pub(super) fn add(&mut self, up_s: u64, events: f64, traffic: f64, rule: GrowthRule) -> Option<Growth> {
        let went_back = |last: &Point| events < last.events || traffic < last.traffic || up_s <= last.up_s;
        if let Some(last) = self.points.last().copied().filter(went_back) {
            // The same moment asked twice is no reason to forget.
            if up_s != last.up_s || events < last.events || traffic < last.traffic {
                self.points.clear();
            } else {
                self.points.pop();
            }
        }
        // A quiet counter takes two points, however often it is read.
        if let [.., earlier, last] = self.points[..]
            && earlier.events.total_cmp(&events).is_eq()
            && last.events.total_cmp(&events).is_eq()
        {
            self.points.pop();
        }
        let before = self.points.last().copied();
        self.points.push(Point { up_s, events, traffic });
        let (first, before) = (*self.points.first()?, before?);
        let (grown, moved) = (events - first.events, traffic - first.traffic);
        let expected = (self.past_traffic > 0.0).then(|| self.past_events / self.past_traffic * moved);
        let chance = expected.map_or(0.0, |mean| mean + SIGMAS * mean.sqrt());
        let is_bad = grown >= rule.events_min.max(1.0)
            && grown > chance
            && grown >= rule.share_min * moved
            // A burst of an hour ago is not seen anew by every call.
            && events > before.events;
        self.forget(up_s, rule.window_s, is_bad);
        Some(Growth { events: grown, traffic: moved, over_s: up_s - first.up_s, expected, is_bad })
    }

    /// Moves what left the window to the past, unless it is part of what is bad: that must not become usual.
    fn forget(&mut self, up_s: u64, window_s: u64, is_bad: bool) {
        // The last point before the window stays: growth within it is counted from there.
        while self.points.len() > 2 && up_s - self.points[1].up_s >= window_s {
            let gone = self.points.remove(0);
            if !is_bad {
                self.past_events += self.points[0].events - gone.events;
                self.past_traffic += self.points[0].traffic - gone.traffic;
            }
        }
        self.slide(up_s.saturating_sub(window_s), is_bad);
        let recent = self.points.last().map_or(0.0, |last| last.traffic - self.points[0].traffic);
        if self.past_traffic > WINDOWS_MAX * recent.max(1.0) {
            self.past_traffic /= 2.0;
            self.past_events /= 2.0;
        }
        if self.points.len() > POINTS_MAX {
            // Every second one but the first and the last two.
            let last = self.points.len() - 2;
            let mut position = 0;
            self.points.retain(|_| {
                position += 1;
                position % 2 == 1 || position > last
            });
        }
    }

    /// Moves the first point to the beginning of the window, where nothing happened since: its traffic is
    /// then that of a steady flow. Otherwise the traffic of a quiet day would hide a burst.
    fn slide(&mut self, start_s: u64, is_bad: bool) {
        let [first, second, ..] = self.points[..] else { return };
        let is_quiet = first.events.total_cmp(&second.events).is_eq();
        if !is_quiet || start_s <= first.up_s || start_s >= second.up_s {
            return;
        }
        let share = (start_s - first.up_s) as f64 / (second.up_s - first.up_s) as f64;
        let moved = share * (second.traffic - first.traffic);
        if !is_bad {
            self.past_traffic += moved;
        }
        self.points[0] = Point { up_s: start_s, traffic: first.traffic + moved, ..first };
    }

    /// After a reboot counters begin at zero; how usual events are is still known.
    pub(super) fn after_reboot(&mut self) {
        self.points.clear();
    }

    /// Whether what a file has of it can be calculated with.
    pub(super) fn is_sound(&self) -> bool {
        let all = self.points.iter().flat_map(|p| [p.events, p.traffic]);
        all.chain([self.past_events, self.past_traffic]).all(|n| n.is_finite() && n >= 0.0)
            && self.points.len() <= POINTS_MAX
            && self.points.is_sorted_by(|a, b| a.up_s < b.up_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: GrowthRule = GrowthRule { window_s: 1800, events_min: 10.0, share_min: 1e-5 };

    #[test]
    fn the_first_value_is_no_growth_and_a_reboot_makes_none() {
        let mut series = Series::default();
        assert_eq!(series.add(100, 1e6, 2e6, RULE), None);
        let still = series.add(400, 1e6, 3e6, RULE).unwrap();
        assert!(!still.is_bad && still.events == 0.0);
        // A driver that was loaded anew, and another boot.
        assert_eq!(series.add(700, 50.0, 100.0, RULE), None);
        series.after_reboot();
        assert_eq!(series.add(20, 1e7, 1e8, RULE), None);
        // A boot clock that goes back within one boot.
        assert_eq!(series.add(10, 2e7, 1e9, RULE), None);
    }

    #[test]
    fn errors_are_bad_relative_to_traffic_and_only_while_they_grow() {
        let mut series = Series::default();
        series.add(0, 0.0, 0.0, RULE);
        // Nine damaged frames are chance, and a thousand in a thousand million are no trouble.
        assert!(!series.add(300, 9.0, 1e6, RULE).unwrap().is_bad);
        assert!(!series.add(600, 1009.0, 1e9, RULE).unwrap().is_bad);
        let mut series = Series::default();
        series.add(0, 0.0, 0.0, RULE);
        assert!(series.add(300, 100.0, 1e6, RULE).unwrap().is_bad);
        assert!(!series.add(600, 100.0, 2e6, RULE).unwrap().is_bad, "it stopped");
        assert!(series.add(900, 200.0, 3e6, RULE).unwrap().is_bad);
    }

    #[test]
    fn what_is_usual_here_is_not_bad_and_what_is_bad_does_not_become_usual() {
        let mut series = Series::default();
        let (mut events, mut traffic, mut up_s) = (0.0, 0.0, 0);
        let mut feed = |series: &mut Series, share: f64, calls: u32| {
            let mut last = None;
            for _ in 0..calls {
                up_s += 300;
                traffic += 1e6;
                events += (1e6 * share).round();
                last = series.add(up_s, events, traffic, RULE);
            }
            last.unwrap()
        };
        // Below the share that troubles: the past of this port.
        assert!(!feed(&mut series, 9e-6, 40).is_bad);
        let worse = feed(&mut series, 1e-3, 6);
        assert!(worse.is_bad && worse.expected.unwrap() < 100.0, "{worse:?}");
        // Bad for a day: still bad.
        assert!(feed(&mut series, 1e-3, 288).is_bad);
        assert!(!feed(&mut series, 0.0, 1).is_bad);
    }

    #[test]
    fn a_quiet_counter_takes_two_points_and_hides_no_burst() {
        let mut series = Series::default();
        for call in 0..2000_u64 {
            series.add(call * 300, 5.0, call as f64 * 1e9, RULE);
            assert!(series.points.len() <= 3, "{series:?}");
        }
        // 1e5 damaged frames of the last 1e9 are 1e-4; of those of a week they would be 5e-8.
        let burst = series.add(2000 * 300, 1e5, 2000e9, RULE).unwrap();
        assert!(burst.is_bad && burst.over_s <= 1800 + 300, "{burst:?}");
    }

    proptest! {
        #[test]
        fn any_readings_leave_a_sound_history(
            readings in proptest::collection::vec((any::<u32>(), 0.0..1e15_f64, 0.0..1e15_f64), 0..200),
        ) {
            let mut series = Series::default();
            for (up_s, events, traffic) in readings {
                if let Some(growth) = series.add(u64::from(up_s), events, traffic, RULE) {
                    prop_assert!(growth.events >= 0.0 && growth.traffic >= 0.0);
                    prop_assert!(!growth.is_bad || growth.events >= 10.0);
                }
                prop_assert!(series.is_sound(), "{:?}", series);
            }
        }
    }
}
