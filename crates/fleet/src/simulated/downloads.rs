//! Downloads of simulated hosts: nothing is fetched, and what a real one would have taken is reported.

use std::time::Duration;

use linerate_model::http::HttpFetch;
use linerate_model::kind::HttpPlan;
use linerate_model::load::LoadReport;
use linerate_model::random::Random;

use super::world::World;

/// A download before its first byte, milliseconds.
const FIRST_BYTE_MS: f64 = 2.0;

/// All downloads of a test one after another, and how long they take.
pub(super) fn download(world: &World, plan: &HttpPlan, random: &mut Random) -> (LoadReport, Duration) {
    let mut report = LoadReport::default();
    for repeat in 0..plan.repeat {
        for via in &plan.via {
            let bps = world.served_bps(via) * (0.95 + 0.1 * random.fraction());
            let whole_ms = plan.max_bytes as f64 * 8e3 / bps;
            let left_ms = f64::from(plan.timeout_ms) - FIRST_BYTE_MS;
            let is_cut = whole_ms > left_ms;
            let body_ms = whole_ms.min(left_ms);
            report.http.push(HttpFetch {
                via: via.clone(),
                repeat,
                connect_ms: Some(0.2),
                first_byte_ms: Some(FIRST_BYTE_MS),
                body_ms: Some(body_ms),
                total_ms: FIRST_BYTE_MS + body_ms,
                bytes: (bps * body_ms / 8e3) as u64,
                status: Some(200),
                error: is_cut.then(|| format!("could not read the body within {} ms", plan.timeout_ms)),
                ..HttpFetch::default()
            });
        }
    }
    let all_ms: f64 = report.http.iter().map(|fetch| fetch.total_ms).sum();
    report.elapsed_s = all_ms / 1e3;
    (report, Duration::from_secs_f64(all_ms / 1e3))
}
