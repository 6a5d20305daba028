//! What of the alerts is delivered to one target, and when: at once, after its quiet hours, again after a
//! failure, and to a webhook every minute while it lasts.
//!
//! In: alerts as they begin and end, what became of a delivery, the time. Out: alerts that are due.

use std::collections::BTreeMap;

use linerate_model::day_hours::DayHours;
use linerate_model::notify::Alert;

use crate::rules::{ALERTS_MAX, DELIVERIES_MAX, REDELIVER_MS, RESEND_MS};

/// An alert is the same while its labels are.
type Labels = BTreeMap<String, String>;

/// An alert that is not over, or whose end is not delivered.
#[derive(Debug, Clone)]
struct Kept {
    alert: Alert,
    /// Its begin was delivered.
    is_known: bool,
    failed: u32,
    /// When it is due; `None` after a delivery that is not repeated.
    due_ms: Option<u64>,
}

/// The alerts of a target.
#[derive(Debug, Clone, Default)]
pub struct Deliveries {
    quiet: Option<DayHours>,
    /// The target forgets what is not repeated.
    repeats: bool,
    kept: BTreeMap<Labels, Kept>,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It arrived.
    Delivered,
    /// It did not, and is tried again.
    Failed,
    /// It did not, and is not tried again.
    Dropped,
}

impl Deliveries {
    /// Of a target with these quiet hours; `repeats`: alerts that last are delivered again and again.
    pub fn new(quiet: Option<DayHours>, repeats: bool) -> Self {
        Self { quiet, repeats, kept: BTreeMap::new() }
    }

    /// An alert began, is another than it was, or has ended.
    pub fn learn(&mut self, alert: Alert, now_ms: u64) {
        let is_known = self.kept.get(&alert.labels).is_some_and(|kept| kept.is_known);
        if alert.ends_at.is_some() && !is_known {
            // What came and went during quiet hours, or before it could be delivered.
            self.kept.remove(&alert.labels);
            return;
        }
        if self.kept.len() >= ALERTS_MAX && !self.kept.contains_key(&alert.labels) {
            let oldest = self.kept.iter().filter(|(_, kept)| kept.is_known);
            let oldest =
                oldest.min_by_key(|(_, kept)| &kept.alert.starts_at).map(|(labels, _)| labels.clone());
            match oldest {
                Some(oldest) => drop(self.kept.remove(&oldest)),
                None => return,
            }
        }
        let kept = Kept { is_known, failed: 0, due_ms: Some(now_ms), alert };
        self.kept.insert(kept.alert.labels.clone(), kept);
    }

    /// What is due now.
    pub fn due(&self, now_ms: u64) -> Vec<Alert> {
        self.kept.values().filter(|kept| self.is_due(kept, now_ms)).map(|kept| kept.alert.clone()).collect()
    }

    fn is_due(&self, kept: &Kept, now_ms: u64) -> bool {
        let is_quiet = self.quiet.is_some_and(|quiet| quiet.holds(now_ms));
        // A webhook that knows of an alert would take its silence for its end.
        let may = !is_quiet || (self.repeats && kept.is_known);
        may && kept.due_ms.is_some_and(|due| now_ms >= due)
    }

    /// What became of an alert that was due.
    pub fn delivered(&mut self, alert: &Alert, has_arrived: bool, now_ms: u64) -> DeliveryOutcome {
        let Some(kept) = self.kept.get_mut(&alert.labels) else { return DeliveryOutcome::Dropped };
        if has_arrived {
            // It may have changed meanwhile: then that is due.
            if kept.alert == *alert {
                if alert.ends_at.is_some() {
                    self.kept.remove(&alert.labels);
                    return DeliveryOutcome::Delivered;
                }
                kept.due_ms = self.repeats.then_some(now_ms + RESEND_MS);
            }
            (kept.is_known, kept.failed) = (true, 0);
            return DeliveryOutcome::Delivered;
        }
        kept.failed += 1;
        kept.due_ms = Some(now_ms + REDELIVER_MS);
        let is_repeated = self.repeats && alert.ends_at.is_none();
        if kept.failed >= DELIVERIES_MAX && !is_repeated {
            self.kept.remove(&alert.labels);
            return DeliveryOutcome::Dropped;
        }
        DeliveryOutcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20,000 days after the epoch, at 21:00.
    const EVENING: u64 = (20_000 * 24 + 21) * HOUR;
    const HOUR: u64 = 3_600_000;

    fn alert(name: &str, ends_at: Option<&str>) -> Alert {
        Alert {
            labels: BTreeMap::from([("host".to_owned(), name.to_owned())]),
            annotations: BTreeMap::new(),
            starts_at: "2024-10-04T21:00:00Z".to_owned(),
            ends_at: ends_at.map(str::to_owned),
        }
    }

    fn deliver(deliveries: &mut Deliveries, now_ms: u64) -> Vec<Alert> {
        let due = deliveries.due(now_ms);
        for alert in &due {
            assert_eq!(deliveries.delivered(alert, true, now_ms), DeliveryOutcome::Delivered);
        }
        due
    }

    #[test]
    fn an_alarm_is_delivered_once_with_its_end_and_repeated_to_a_webhook() {
        for repeats in [false, true] {
            let mut all = Deliveries::new(None, repeats);
            all.learn(alert("a", None), 0);
            assert_eq!(deliver(&mut all, 0), [alert("a", None)]);
            assert_eq!(deliver(&mut all, RESEND_MS - 1), []);
            assert_eq!(deliver(&mut all, RESEND_MS).len(), usize::from(repeats));
            all.learn(alert("a", Some("x")), RESEND_MS + 1);
            assert_eq!(deliver(&mut all, RESEND_MS + 1), [alert("a", Some("x"))]);
            assert_eq!(deliver(&mut all, 10 * RESEND_MS), []);
        }
    }

    #[test]
    fn quiet_hours_hold_back_what_is_not_known_and_drop_what_ends_in_them() {
        let quiet = DayHours::parse("22:00-07:00");
        let mut all = Deliveries::new(quiet, true);
        all.learn(alert("before", None), EVENING);
        assert_eq!(deliver(&mut all, EVENING).len(), 1);
        let night = EVENING + 2 * HOUR;
        all.learn(alert("stays", None), night);
        all.learn(alert("passes", None), night);
        assert_eq!(deliver(&mut all, night), [alert("before", None)]);
        all.learn(alert("passes", Some("x")), night + HOUR);
        all.learn(alert("before", Some("x")), night + HOUR);
        assert_eq!(deliver(&mut all, night + HOUR), [alert("before", Some("x"))]);
        assert_eq!(deliver(&mut all, EVENING + 10 * HOUR), [alert("stays", None)]);
        // A person is not woken by an end either.
        let mut mail = Deliveries::new(quiet, false);
        mail.learn(alert("before", None), EVENING);
        deliver(&mut mail, EVENING);
        mail.learn(alert("before", Some("x")), night);
        assert_eq!(deliver(&mut mail, night), []);
        assert_eq!(deliver(&mut mail, EVENING + 10 * HOUR), [alert("before", Some("x"))]);
    }

    #[test]
    fn a_failed_delivery_is_tried_again_and_dropped_at_last() {
        let mut all = Deliveries::new(None, false);
        all.learn(alert("a", None), 0);
        let mut now_ms = 0;
        for attempt in 1..=DELIVERIES_MAX {
            assert_eq!(all.due(now_ms).len(), 1, "{attempt}");
            let outcome = all.delivered(&alert("a", None), false, now_ms);
            let is_last = attempt == DELIVERIES_MAX;
            assert_eq!(outcome, if is_last { DeliveryOutcome::Dropped } else { DeliveryOutcome::Failed });
            assert_eq!(all.due(now_ms + REDELIVER_MS - 1), []);
            now_ms += REDELIVER_MS;
        }
        assert_eq!(all.due(now_ms), []);
        // Its end is of no use to who did not learn of it.
        all.learn(alert("a", Some("x")), now_ms);
        assert_eq!(all.due(now_ms), []);
    }

    #[test]
    fn a_change_during_a_delivery_is_due_after_it_and_alerts_are_bounded() {
        let mut all = Deliveries::new(None, false);
        all.learn(alert("a", None), 0);
        let sent = all.due(0);
        all.learn(Alert { starts_at: "2024-10-04T20:00:00Z".into(), ..alert("a", None) }, 1);
        all.delivered(&sent[0], true, 2);
        assert_eq!(deliver(&mut all, 2).len(), 1);
        for number in 0..2 * ALERTS_MAX {
            all.learn(alert(&number.to_string(), None), 3);
        }
        assert_eq!(all.due(3).len(), ALERTS_MAX);
    }
}
