//! The first synchronisation of a volume, watched to its end.

use std::time::{Duration, Instant};

use linerate_model::step::{HostQuery, LvmStep, MdStep, Step};
use linerate_storage::drbd::SyncMeter;
use linerate_storage::plan::{LayoutPlan, parse_mdstat, parse_status};

use crate::cli::out;
use linerate_fleet::Fleet;
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_operator::build;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Steps of the live line.
const STEPS: usize = 100;
/// One that stands still for so long is not waited for any more.
const STUCK: Duration = Duration::from_secs(600);

/// Waits for its end; gives the seconds that it took, or nothing when it cannot be seen or stands still,
/// which is said.
pub(super) async fn wait(
    fleet: &Fleet,
    host: &str,
    chosen: &LayoutPlan,
    progress: &dyn Progress,
) -> anyhow::Result<Option<f64>> {
    let total_kib = chosen.capacity_bytes >> 10;
    let mut pace = SyncMeter::new(total_kib);
    let begun = Instant::now();
    progress.begin(&ProgressPhase {
        name: "first synchronisation",
        unit: "%",
        total: STEPS,
        expected_s: None,
    });
    let why = loop {
        let Some(share) = share(fleet, host, chosen).await? else {
            break "how far the first synchronisation is cannot be seen on this host; it goes on by itself, and nothing was measured";
        };
        if share >= 1.0 {
            progress.step(STEPS, "", None);
            progress.end();
            return Ok(Some(begun.elapsed().as_secs_f64()));
        }
        pace.add(begun.elapsed().as_secs_f64(), ((1.0 - share) * total_kib as f64) as u64);
        let now = pace.now();
        if now.and_then(|now| now.stuck_s).is_some_and(|stuck| stuck >= STUCK.as_secs_f64()) {
            break "the first synchronisation stands still for ten minutes; it is not waited for, and nothing was measured";
        }
        progress.step((share * STEPS as f64) as usize, &chosen.device, now.and_then(|now| now.left_s));
        tokio::time::sleep(LOOK_EVERY).await;
    };
    progress.end();
    out::note(why);
    Ok(None)
}

/// How much is in sync.
async fn share(fleet: &Fleet, host: &str, chosen: &LayoutPlan) -> anyhow::Result<Option<f64>> {
    for step in &chosen.steps {
        match step {
            Step::Lvm(LvmStep::Volume { group, name, .. }) => {
                let look = HostQuery::VolumeSync { group: group.clone(), name: name.clone() };
                return Ok(parse_status(&build::look(fleet, host, look).await?.out));
            }
            Step::Md(MdStep { devices, .. }) => {
                let list = build::look(fleet, host, HostQuery::ArraySync).await?.out;
                let drive = devices.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
                return Ok(parse_mdstat(&list, drive));
            }
            _ => {}
        }
    }
    Ok(None)
}
