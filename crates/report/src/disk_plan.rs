//! A plan of a volume as text: layouts side by side, the pairs as a picture, the commands of one. Fits 100
//! columns but for the commands.

use linerate_model::printable::one_line;
use std::fmt::Write as _;

use linerate_storage::plan::{LayoutComparison, LayoutPlan};

use super::heat::Style;
use super::steps;
use super::wrap::wrap;
use linerate_model::units::short;

/// Width of the column of what is compared, and of a layout.
const WHAT: usize = 25;
const LAYOUT: usize = 24;
/// Columns and lines of the picture.
const PICTURE_WIDTH: usize = 98;
const PICTURE_LINES: usize = 8;

/// What a row compares.
type Row = (&'static str, fn(&LayoutPlan) -> String);
const ROWS: [Row; 13] = [
    ("capacity", |l| binary(l.capacity_bytes as f64)),
    ("random reads", |l| format!("{}/s", short(l.rates.random_reads_per_s))),
    ("  with one drive failed", |l| format!("{}/s", short(l.degraded_reads_per_s))),
    ("random writes", |l| format!("{}/s", short(l.rates.random_writes_per_s))),
    ("reading in a row", |l| decimal_rate(l.rates.read_bytes_per_s)),
    ("writing in a row", |l| decimal_rate(l.rates.write_bytes_per_s)),
    ("first sync at least", |l| hours(l.first_sync_s)),
    ("one failure takes out", |l| match l.failures.lost_with_one {
        1 => "1 drive".to_owned(),
        many => format!("{many} drives"),
    }),
    ("a second one loses data", |l| match l.failures.second_loses {
        none if none <= 0.0 => "never".to_owned(),
        all if all >= 1.0 => "always".to_owned(),
        some => format!("in {} of 100", short(some * 100.0)),
    }),
    ("copied after a failure", |l| decimal(l.failures.rebuild_bytes as f64)),
    ("read for that", |l| decimal(l.failures.rebuild_read_bytes as f64)),
    ("which takes at least", |l| hours(l.failures.rebuild_s)),
    ("data lost within a year", |l| one_in(l.failures.loss_per_year)),
];

fn binary(bytes: f64) -> String {
    for (scale, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB")] {
        let one = f64::from(2).powi(scale);
        if bytes >= one {
            return format!("{} {unit}", short(bytes / one));
        }
    }
    format!("{bytes:.0} bytes")
}

fn decimal(bytes: f64) -> String {
    for (one, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")] {
        if bytes >= one {
            return format!("{} {unit}", short(bytes / one));
        }
    }
    format!("{bytes:.0} bytes")
}

fn decimal_rate(bytes_per_s: f64) -> String {
    format!("{}/s", decimal(bytes_per_s))
}

/// A duration as people say it.
#[must_use]
pub fn hours(seconds: f64) -> String {
    match seconds {
        s if s >= 2.0 * 86_400.0 => format!("{} days", short(s / 86_400.0)),
        s if s >= 2.0 * 3600.0 => format!("{} h", short(s / 3600.0)),
        s if s >= 120.0 => format!("{} min", short(s / 60.0)),
        s => format!("{} s", short(s)),
    }
}

fn one_in(chance: f64) -> String {
    if chance <= 0.0 { "never".to_owned() } else { format!("1 in {:.0}", (1.0 / chance).max(1.0)) }
}

/// The whole plan, with the commands of one layout.
#[must_use]
pub fn text(plan: &LayoutComparison, chosen: &LayoutPlan, style: Style) -> String {
    let (mut text, width) = (String::new(), style.width - 2);
    let _ = writeln!(
        text,
        "{} drives of {}, chunk {} KiB; one drive ({}): {} random requests a second, {}",
        plan.drives,
        decimal(plan.drive_bytes as f64),
        plan.chunk_bytes >> 10,
        plan.class.name,
        short(plan.class.requests_per_s),
        decimal_rate(plan.class.bytes_per_s),
    );
    text.push('\n');
    let layouts = compared(plan, chosen);
    let heads = columns(&layouts, |l| l.title.to_owned());
    let _ = writeln!(text, "{:WHAT$}{}", "", style.bold(heads.trim_end()));
    for (what, value) in ROWS {
        let values = columns(&layouts, value);
        let _ = writeln!(text, "{what:WHAT$}{}", values.trim_end());
        if what == "capacity" && chosen.free_bytes.is_some() {
            let values = columns(&layouts, |l| binary(l.free_bytes.unwrap_or_default() as f64));
            let _ = writeln!(text, "{:WHAT$}{}", "  left for another", values.trim_end());
        }
    }
    if layouts.iter().any(|layout| layout.failures.shelf_may_fail.is_some()) {
        let may =
            |l: &LayoutPlan| if l.failures.shelf_may_fail == Some(true) { "yes" } else { "no" }.to_owned();
        let _ = writeln!(text, "{:WHAT$}{}", "a whole shelf may fail", columns(&layouts, may).trim_end());
    }
    text.push('\n');
    for level in &plan.levels {
        let _ = writeln!(text, "{}", level.small_write());
    }
    text.push_str("Merging comes on top. Copying is slower beside programs, two to five times.\n");
    for layout in &plan.not_offered {
        let why = layout.why.lines().next().unwrap_or_default();
        let _ = writeln!(text, "{}", wrap(&format!("not offered: {why}"), width).join("\n  "));
    }
    let title = format!("{}: {}", chosen.title, chosen.failures.says);
    let _ = writeln!(text, "\n{}", style.bold(&wrap(&title, width).join("\n  ")));
    text.push_str(&picture(chosen));
    for remark in &chosen.remarks {
        let _ = writeln!(text, "- {}", wrap(remark, width).join("\n  "));
    }
    let _ = writeln!(text, "\n{}", style.bold("Steps"));
    text.push_str(&steps::text(&chosen.steps));
    let _ = writeln!(text, "\n{}", style.bold("Way back"));
    text.push_str(&steps::undo_text(chosen.steps.iter()));
    text
}

/// What stands side by side: the layouts of one level, or one layout of each of several levels.
fn compared<'a>(plan: &'a LayoutComparison, chosen: &LayoutPlan) -> Vec<&'a LayoutPlan> {
    let is_shown = |layout: &&LayoutPlan| plan.levels.len() == 1 || layout.tool == chosen.tool;
    plan.layouts.iter().filter(is_shown).collect()
}

/// A value of each layout, side by side.
fn columns(layouts: &[&LayoutPlan], value: impl Fn(&LayoutPlan) -> String) -> String {
    layouts.iter().fold(String::new(), |mut line, layout| {
        let _ = write!(line, "{:<LAYOUT$}", value(layout));
        line
    })
}

/// The pairs: what stands in one box holds the same.
fn picture(layout: &LayoutPlan) -> String {
    let name = |path: &str| one_line(path.strip_prefix("/dev/").unwrap_or(path));
    let longest = layout.pairs.iter().flat_map(|(a, b)| [name(a).len(), name(b).len()]).max().unwrap_or(0);
    let mut text = String::new();
    let in_line = (PICTURE_WIDTH / (2 * longest + 3)).max(1);
    for (at, line) in layout.pairs.chunks(in_line).enumerate() {
        if at == PICTURE_LINES {
            let _ = writeln!(text, "  … {} pairs", layout.pairs.len());
            break;
        }
        text.push_str("  ");
        for (a, b) in line {
            let _ = write!(text, "[{:>longest$}={:<longest$}]", name(a), name(b));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use linerate_storage::plan::{CLASSES, Filesystem, LEVELS, Level, VolumeSpec, plan};

    use super::*;

    fn spec(drives: usize) -> VolumeSpec {
        VolumeSpec {
            levels: vec![Level::Raid10],
            shelves: vec![(0..drives).map(|n| format!("/dev/sd{n}")).collect()],
            drive_bytes: 3_000_000_000_000,
            chunk_bytes: 64 << 10,
            class: CLASSES[0],
            volume_bytes: None,
            filesystem: Filesystem::Xfs,
            group: "vg0".to_owned(),
            name: "data".to_owned(),
        }
    }

    #[test]
    fn tables_and_pictures_fit() {
        let every = VolumeSpec { levels: LEVELS.to_vec(), volume_bytes: Some(2_000_000_000_000), ..spec(36) };
        let plans = [plan(&spec(512)).unwrap(), plan(&every).unwrap()];
        for (plan, layout) in plans.iter().flat_map(|plan| plan.layouts.iter().map(move |l| (plan, l))) {
            let text = text(plan, layout, Style::default());
            for line in text.lines().take_while(|line| *line != "Steps") {
                let wide = line.chars().count();
                assert!(wide <= 100, "{wide}: {line}");
            }
        }
    }

    #[test]
    fn levels_stand_side_by_side() {
        let every = VolumeSpec { levels: LEVELS.to_vec(), ..spec(12) };
        let plan = plan(&every).unwrap();
        let chosen = plan.layouts.iter().find(|layout| layout.name == "lvm").unwrap();
        let text = text(&plan, chosen, Style::default());
        let row = |what: &str| text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
        assert_eq!(
            row(&" ".repeat(WHAT)).split_whitespace().collect::<Vec<_>>().join(" "),
            "LVM RAID10 LVM RAID5 LVM RAID6"
        );
        let cells = |what: &str| row(what).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(cells("random reads "), "1800/s 1800/s 1800/s");
        assert_eq!(cells("random writes"), "900/s 450/s 300/s");
        assert_eq!(cells("  with one drive failed"), "1650/s 900/s 943/s");
        assert_eq!(cells("a second one loses data"), "in 9.09 of 100 always never");
        assert_eq!(cells("read for that"), "3 TB 33 TB 33 TB");
        assert!(!text.contains("left for another"), "{text}");
    }

    #[test]
    fn the_plan_of_36_drives_reads_as_the_casebook_has_it() {
        let plan = plan(&spec(36)).unwrap();
        let text = text(&plan, &plan.layouts[0], Style::default());
        for part in
            ["5400/s", "2700/s", "49.1 TiB", "in 2.86 of 100", "in 51.4 of 100", "5.56 h", "su=64k,sw=18"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
