//! Where alarms are delivered, and the alert that is: Alertmanager's JSON (API v2).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// A target of the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyTarget {
    /// How.
    pub via: NotifyVia,
    /// When not.
    pub quiet: Option<QuietHours>,
}

/// How an alarm is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyVia {
    /// A POST with a list of alerts; repeated while they last, as Alertmanager expects.
    Webhook(WebhookUrl),
    /// A mail by the sendmail program of the system.
    Mail {
        /// Addresses.
        to: Vec<String>,
        /// The program.
        sendmail: PathBuf,
    },
    /// A program that reads a list with one alert from its standard input.
    Command(Vec<String>),
}

impl fmt::Display for NotifyVia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What stands behind the host may be a secret.
            Self::Webhook(url) => write!(f, "webhook {}", url.authority),
            Self::Mail { to, .. } => write!(f, "mail to {}", to.join(", ")),
            Self::Command(command) => write!(f, "command {}", command.first().map_or("", String::as_str)),
        }
    }
}

/// An `http://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    /// Host with its port, as it was written.
    pub authority: String,
    /// Host, without the brackets of an IPv6 address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path with its query, from its `/` on.
    pub path: String,
}

impl WebhookUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with("https://") {
            return Err("https is not spoken; let `command` call a client that does, such as curl");
        }
        let rest = text.strip_prefix("http://").ok_or("does not begin with http://")?;
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("has a character that an address cannot have");
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains(['@', '?', '#']) || path.contains('#') {
            return Err("has a user, or a part that is not sent");
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().ok().filter(|port| *port > 0).ok_or("has no port from 1 to 65535")?)
            }
            _ => (authority, 80),
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err("has no host");
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { authority: authority.to_owned(), host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

/// A part of each day, UTC, that may go over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    from: u16,
    to: u16,
}

impl QuietHours {
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

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

/// An alert as Alertmanager reads it. Its labels are what it is of: the same in each report of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// What it is of.
    pub labels: BTreeMap<String, String>,
    /// What is to be read.
    pub annotations: BTreeMap<String, String>,
    /// Since when, RFC 3339.
    pub starts_at: String,
    /// Until when; `None` while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_what_is_none_is_refused() {
        let url = WebhookUrl::parse("http://[::1]:9093/api/v2/alerts?a=b").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 9093, "/api/v2/alerts?a=b"));
        let url = WebhookUrl::parse("http://alerts.example.org").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("alerts.example.org", 80, "/"));
        assert_eq!(WebhookUrl::parse("http://[::1]").unwrap().port, 80);
        for wrong in [
            "https://a/",
            "ftp://a",
            "http://",
            "http://:80/",
            "http://a:0/",
            "http://a:x/",
            "http://u@a/",
            "http://a/\r\nHost: b",
            "http://a/ b",
            "http://a/#b",
        ] {
            assert!(WebhookUrl::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn quiet_hours_go_over_midnight() {
        let at = |hour: u64, minute: u64| (20_000 * 1440 + hour * 60 + minute) * 60_000;
        let night = QuietHours::parse("22:00-07:30").unwrap();
        for (hour, minute, is_quiet) in
            [(21, 59, false), (22, 0, true), (0, 0, true), (7, 29, true), (7, 30, false)]
        {
            assert_eq!(night.holds(at(hour, minute)), is_quiet, "{hour}:{minute}");
        }
        let day = QuietHours::parse("08:00 - 18:00").unwrap();
        assert!(day.holds(at(12, 0)) && !day.holds(at(18, 0)) && !day.holds(at(7, 59)));
        assert_eq!(day.to_string(), "08:00-18:00");
        for wrong in ["", "22:00", "22:00-22:00", "24:00-01:00", "1:00-02:00", "22:60-01:00", "+1:00-02:00"] {
            assert_eq!(QuietHours::parse(wrong), None, "{wrong}");
        }
    }
}
