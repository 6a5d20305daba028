//! `node_md_*`: arrays of md, and how many of their drives are missing.

use linerate_model::fact::FactValue;

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::range::StoredRange;
use super::super::taken::{Kept, Taken};

/// The family.
pub(super) struct Md;

const REQUIRED: &str = "node_md_disks_required";
const ACTIVE: &str = "node_md_disks";
/// No array has more drives.
const LEGS_MAX: f64 = 4096.0;

const ROWS: &[Row] =
    &[(ACTIVE, "md.{device}.active", Use::Own, 1.0), (REQUIRED, "md.{device}.required", Use::Own, 1.0)];

impl Family for Md {
    fn name(&self) -> &'static str {
        "mdadm"
    }

    fn rows(&self) -> &'static [Row] {
        ROWS
    }

    fn query(&self, name: &str) -> String {
        // Among the failed ones a drive is only until it is removed.
        if name == ACTIVE { format!("{name}{{state=\"active\"}}") } else { name.to_owned() }
    }

    fn take(&self, name: &str, series: &Series, taken: &mut Taken<'_>) {
        let what = if name == ACTIVE { "active" } else { "required" };
        taken.level(format!("md.{}.{what}", series.label("device").replace('.', "/")), series);
    }

    fn finish(&self, kept: &mut Kept, _: &StoredRange) {
        let level = |host: &str, key: String| kept.levels.get(&(host.to_owned(), key)).copied();
        let missing = |((host, key), active): (&(String, String), &f64)| {
            let device = key.strip_prefix("md.")?.strip_suffix(".active")?;
            let required = level(host, format!("md.{device}.required"))?.clamp(0.0, LEGS_MAX);
            let missing = (required - active).clamp(0.0, LEGS_MAX);
            Some((host.clone(), device.to_owned(), [missing, required].map(|count| count as i64)))
        };
        let arrays: Vec<(String, String, [i64; 2])> = kept.levels.iter().filter_map(missing).collect();
        for (host, device, [missing, required]) in arrays {
            kept.fact(&host, &format!("disk.{device}.md_degraded"), FactValue::Int(missing));
            // Which ones they are no metric shows.
            if missing > 0 {
                let legs = vec![format!("{missing} of {required}")];
                kept.fact(&host, &format!("disk.{device}.failed_legs"), FactValue::List(legs));
            }
        }
    }
}
