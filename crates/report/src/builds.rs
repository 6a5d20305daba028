//! What stands in the journals of hosts, and what is left on drives, as text. Fits 100 columns but for the
//! commands.

use std::fmt::Write as _;

use linerate_model::printable::one_line;
use linerate_model::step::DeviceRefusal;
use schemars::JsonSchema;
use serde::Serialize;

use super::steps;
use linerate_model::units::date;

/// A build of a host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BuildView {
    /// Host.
    pub host: String,
    /// Its name there.
    pub build: String,
    /// Unix milliseconds of its first step, by the clock of the host.
    pub created_ms: u64,
    /// Whether its last step ended well.
    pub whole: bool,
    /// The command that takes it back.
    pub undo: String,
    /// What was done.
    pub steps: Vec<steps::StepView>,
}

/// A line for each build, and the command below it.
#[must_use]
pub fn list(builds: &[BuildView]) -> String {
    if builds.is_empty() {
        return "nothing that was built stands in a journal\n".to_owned();
    }
    let mut text = String::new();
    for build in builds {
        let state = if build.whole { "" } else { ", the last one did not end well" };
        let _ = writeln!(
            text,
            "{}: {} of {}, {} steps{state}",
            one_line(&build.host),
            one_line(&build.build),
            date(build.created_ms),
            build.steps.len()
        );
        let _ = writeln!(text, "  {}", one_line(&build.undo));
    }
    text
}

/// Drives that are named at most.
const NAMED: usize = 6;

/// Whether the drives of a host hold nothing again.
#[must_use]
pub fn drives(host: &str, count: usize, refused: &[DeviceRefusal]) -> String {
    let host = one_line(host);
    let free = count - refused.len().min(count);
    let mut text = format!("{host}: {free} of {count} drives hold nothing again\n");
    for DeviceRefusal { device, why } in refused.iter().take(NAMED) {
        let _ = writeln!(text, "  {}: {}", one_line(device), one_line(why));
    }
    if refused.len() > NAMED {
        let _ = writeln!(text, "  … and {} others", refused.len() - NAMED);
    }
    if !refused.is_empty() {
        text += "What was written into files is still there; a drive is emptied by `blkdiscard --zeroout DRIVE`, hours for a large one.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_and_drives_are_told_with_what_to_do() {
        assert!(list(&[]).starts_with("nothing"));
        let build = BuildView {
            host: "store".into(),
            build: "disk-data".into(),
            created_ms: 1_700_000_000_000,
            whole: false,
            undo: "linerate undo data store".into(),
            steps: Vec::new(),
        };
        let text = list(&[build]);
        assert!(text.contains("did not end well\n  linerate undo data store\n"), "{text}");
        let refused =
            |n: usize| DeviceRefusal { device: format!("/dev/sd{n}"), why: "there is data at byte 7".into() };
        assert_eq!(drives("store", 36, &[]), "store: 36 of 36 drives hold nothing again\n");
        let text = drives("store", 36, &(0..9).map(refused).collect::<Vec<_>>());
        assert!(text.starts_with("store: 27 of 36") && text.contains("… and 3 others"), "{text}");
    }
}
