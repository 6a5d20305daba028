//! Downloads over HTTP through chosen front ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::test_plan::{OutOfLimits, TestPlan, check, ms};
use crate::http::{FRONT_ENDS_MAX, REPEATS_MAX};
use crate::load::LoadReport;

/// What is downloaded, how often, through whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpPlan {
    /// `http://` or `https://`.
    pub url: String,
    /// Front ends or nodes: a name or address, with a port when it is not that of the URL. Empty: every
    /// address of the URL's host.
    #[serde(default)]
    pub via: Vec<String>,
    /// Downloads through each of them.
    pub repeat: u16,
    /// A body is read up to here and then left; one download.
    pub max_bytes: u64,
    /// Time of one download, name resolution and redirects included.
    pub timeout_ms: u32,
    /// Certificates (PEM) to trust instead of the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_pem: Option<String>,
    /// Any certificate is taken: says nothing about whom one talks to.
    #[serde(default)]
    pub insecure: bool,
}

/// Longest time of all downloads of a test.
const TIME_MAX: Duration = Duration::from_secs(900);

impl TestPlan for HttpPlan {
    fn name() -> &'static str {
        "http"
    }

    fn title(&self) -> String {
        "http".to_owned()
    }

    fn has_one_end(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        let fronts = self.via.len();
        check(fronts <= FRONT_ENDS_MAX, "the number of front ends", fronts as f64, "at most 64")?;
        check((1..=REPEATS_MAX).contains(&self.repeat), "repeat", self.repeat, "1 to 100")?;
        let some = self.timeout_ms > 0 && self.max_bytes > 0;
        check(some, "timeout_ms or max_bytes", 0, "more than 0")
    }

    fn time_max(&self) -> Duration {
        let fetches = self.via.len().max(8) as u64 * u64::from(self.repeat);
        ms(fetches.saturating_mul(self.timeout_ms.into())).min(TIME_MAX)
    }

    fn expected(&self) -> Duration {
        // Nobody knows before: a second for each download.
        ms(1000 * u64::from(self.repeat) * self.via.len().max(1) as u64)
    }

    fn missing(&self, tx: &LoadReport, _: &LoadReport) -> Option<&'static str> {
        tx.http.is_empty().then_some("nothing was downloaded")
    }
}
