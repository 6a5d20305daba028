//! Where alarms are delivered, and the alert that is: Alertmanager's JSON (API v2).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::day_hours::DayHours;

/// A target of the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyTarget {
    /// How.
    pub via: NotifyVia,
    /// When not.
    pub quiet: Option<DayHours>,
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
}
