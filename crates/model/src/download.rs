//! Downloads that a watch repeats: what is fetched, through which front ends, from where, how often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::HttpPlan;

/// Downloads of a URL through a front end in each round. Of one download nothing follows.
pub const DOWNLOADS_EACH: u16 = 3;

/// Downloads of the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadSpec {
    /// What is fetched.
    pub urls: Vec<String>,
    /// Front ends, as [`HttpPlan::via`]; empty: every address of the URL's host.
    pub via: Vec<String>,
    /// Hosts, and groups with one host that downloads; empty: the first host.
    pub from: Vec<String>,
    /// From the begin of a round to that of the next, seconds.
    pub every_s: u32,
    /// A body is read up to here.
    pub bytes_max: u64,
    /// Time of one download.
    pub timeout_ms: u32,
}

impl DownloadSpec {
    /// The test that fetches one of the URLs.
    #[must_use]
    pub fn plan(&self, url: &str) -> HttpPlan {
        HttpPlan {
            url: url.to_owned(),
            via: self.via.clone(),
            repeat: DOWNLOADS_EACH,
            max_bytes: self.bytes_max,
            timeout_ms: self.timeout_ms,
            trusted_pem: None,
            insecure: false,
        }
    }
}

/// A URL as it is shown and stored: what stands behind its path may be a secret.
#[must_use]
pub fn shown_url(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// What is fetched by whom through which front end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct DownloadPath {
    /// The host that downloads.
    pub host: String,
    /// The URL, as [`shown_url`].
    pub url: String,
    /// The front end, as it was named.
    pub via: String,
}

/// Between URL and front end in the name of a sending end.
pub const THROUGH: &str = " through ";

impl DownloadPath {
    /// Name of the sending end: the URL through the front end. No host has such a name.
    #[must_use]
    pub fn source(&self) -> String {
        format!("{}{THROUGH}{}", self.url, self.via)
    }

    /// The path of a sending end and the host that receives; `None` where it is the name of a host.
    #[must_use]
    pub fn of_source(source: &str, host: &str) -> Option<Self> {
        let (url, via) = source.rsplit_once(THROUGH).filter(|_| is_source(source))?;
        Some(Self { host: host.to_owned(), url: url.to_owned(), via: via.to_owned() })
    }
}

/// Whether a name is one of [`DownloadPath::source`].
#[must_use]
pub fn is_source(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// What a round showed of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DownloadSeen {
    /// Which.
    #[serde(flatten)]
    pub path: DownloadPath,
    /// Rates of the bodies, bit/s; also of those that the time limit cut.
    pub rates_bps: Vec<f64>,
    /// Downloads that failed.
    pub failed: u32,
    /// Why the first of them did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl DownloadSeen {
    /// The median rate, bit/s; 0 where all failed.
    #[must_use]
    pub fn rate_bps(&self) -> f64 {
        let mut rates = self.rates_bps.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_the_path_of_a_url_is_not_shown() {
        assert_eq!(shown_url("https://a/b?key=secret#c"), "https://a/b");
        let path = DownloadPath { host: "arc-1".into(), url: "http://a/b".into(), via: "192.0.2.1".into() };
        assert_eq!(DownloadPath::of_source(&path.source(), "arc-1"), Some(path));
        assert_eq!(DownloadPath::of_source("arc-2 through arc-3", "arc-1"), None);
    }

    #[test]
    fn the_rate_of_a_round_is_its_median_and_zero_where_all_failed() {
        let path = DownloadPath { host: "a".into(), url: "http://a/".into(), via: "b".into() };
        let seen = |rates: &[f64]| DownloadSeen {
            path: path.clone(),
            rates_bps: rates.to_vec(),
            failed: 0,
            failure: None,
        };
        assert!((seen(&[9.0, 1.0, 2.0]).rate_bps() - 2.0).abs() < 1e-9);
        assert!(seen(&[]).rate_bps().abs() < 1e-9);
    }
}
