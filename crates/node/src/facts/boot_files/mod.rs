//! Facts `boot.*`: what the files of a host set at its next boot, in the order in which they do, each line
//! with its owner. Read only when asked for by this prefix, and only for settings that are read with it.
//!
//! In: the folder that stands for `/etc`, and the settings that were read. Out: one fact for each line that
//! sets one of them, a gap where a file cannot be read. It never decides which line counts.
//!
//! Adding an owner: one file with an [`Owner`], one line in [`OWNERS`].

mod declared;
mod link_files;
mod own;
mod owner;
mod sysctl_d;
mod tree;
mod tuned;

use std::path::Path;

use linerate_model::drift::{BOOT, BOOT_READ};
use linerate_model::fact::{FactKey, FactValue, Gap, HostFacts};
use linerate_sys::root::Root;

use super::view::View;
pub(super) use declared::declarations;
use owner::{HostFiles, Owner};
use tree::Tree;

/// Owners in the order in which they act at boot; a later line counts.
const OWNERS: [&dyn Owner; 4] = [&link_files::LinkFiles, &sysctl_d::SysctlD, &tuned::Tuned, &own::Own];

/// Lines of one host: a bound against a folder with absurdly many.
const LINES_MAX: usize = 5000;

/// Adds what files set at boot to what was read, where it is asked for.
pub(crate) fn add(root: &Root, etc_dir: &Path, prefixes: &[FactKey], facts: &mut HostFacts) {
    if !prefixes.iter().any(|prefix| prefix.starts_with(BOOT)) {
        return;
    }
    let is_setting = |key: &str| super::setting_for(key).is_some();
    let settings: Vec<(FactKey, FactValue)> = facts
        .readings
        .iter()
        .filter(|(key, _)| is_setting(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let host = HostFiles { tree: Tree::new(root, etc_dir), settings, view: View::new(root, None, &[]) };
    let mut count = 0;
    for owner in OWNERS {
        let lines = match owner.lines(&host) {
            Ok(lines) => lines,
            Err(reason) => {
                facts.gaps.push(Gap { what: format!("{BOOT}{}", owner.sets()).into(), reason });
                continue;
            }
        };
        for line in lines.into_iter().take(LINES_MAX - count) {
            let key = format!("{BOOT}{count:04}.{}", line.key);
            count += 1;
            if linerate_model::fact::check_key(&key) {
                let parts = vec![owner.name().to_owned(), line.at, line.value];
                facts.readings.insert(key, FactValue::List(parts));
            }
        }
    }
    facts.readings.insert(BOOT_READ.to_owned(), FactValue::Flag(true));
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
