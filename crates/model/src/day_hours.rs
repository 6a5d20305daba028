//! Hours of each day, in UTC: when alarms wait, when a watch may load links. A text such as `22:00-07:00` in,
//! whether a moment lies in it out.

use std::fmt;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// A part of each day, UTC, that may go over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayHours {
    from: u16,
    to: u16,
}

impl DayHours {
    /// Reads `22:00-07:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let minute = |text: &str| {
            let (hours, minutes) = text.trim().split_once(':')?;
            let number =
                |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 2 && !text.starts_with('+'));
            let (hours, minutes) = (number(hours)?, number(minutes)?);
            (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
        };
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute(from)?, minute(to)?);
        (from != to).then_some(Self { from, to })
    }

    /// Whether a moment, Unix milliseconds, lies in it.
    #[must_use]
    pub fn holds(self, at_ms: u64) -> bool {
        let minute = (at_ms / 60_000 % u64::from(DAY)) as u16;
        let since = |from: u16| (minute + DAY - from) % DAY;
        since(self.from) < (self.to + DAY - self.from) % DAY
    }
}

impl fmt::Display for DayHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_go_over_midnight() {
        let at = |hour: u64, minute: u64| (20_000 * 1440 + hour * 60 + minute) * 60_000;
        let night = DayHours::parse("22:00-07:30").unwrap();
        for (hour, minute, is_within) in
            [(21, 59, false), (22, 0, true), (0, 0, true), (7, 29, true), (7, 30, false)]
        {
            assert_eq!(night.holds(at(hour, minute)), is_within, "{hour}:{minute}");
        }
        let day = DayHours::parse("08:00 - 18:00").unwrap();
        assert!(day.holds(at(12, 0)) && !day.holds(at(18, 0)) && !day.holds(at(7, 59)));
        assert_eq!(day.to_string(), "08:00-18:00");
        for wrong in ["", "22:00", "22:00-22:00", "24:00-01:00", "1:00-02:00", "22:60-01:00", "+1:00-02:00"] {
            assert_eq!(DayHours::parse(wrong), None, "{wrong}");
        }
    }
}
