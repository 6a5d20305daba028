//! Facts `boot.*`: what the files of a host set at its next boot, in the order in which they do, each line
//! with its owner. Read only when asked for by this prefix, and only for settings that are read with it.
//!
//! In: the folder that stands for `/etc`, and the settings that were read. Out: one fact for each line that
//! sets one of them, a gap where a file or a line cannot be read; and for a value that is to be kept the file
//! in which it counts. It writes nothing.
//!
//! Adding an owner: one file with an `Owner`, one line in `OWNERS`.

mod declared;
mod flow;
mod hooks;
mod ifcfg;
mod ifupdown;
mod link_files;
mod modprobe;
mod modules_load;
mod netplan;
mod network_manager;
mod networkd;
mod networkd_dispatcher;
mod nic_words;
mod nm_dispatcher;
mod own;
mod owner;
mod programs;
mod rc_local;
mod script;
mod shell;
mod sysctl_d;
mod tree;
mod tuned;
mod udev_rules;

use std::collections::BTreeMap;
use std::path::Path;

use linerate_model::change::Change;
use linerate_model::drift::{BOOT, BOOT_READ};
use linerate_model::fact::{FactKey, FactValue, Gap, HostFacts, pattern_fits};
use linerate_sys::root::Root;

use super::view::View;
use crate::change::setting::Persist;
pub(super) use declared::declarations;
use owner::{HostFiles, Kept, Line, Owner, Unclear};
use tree::Tree;

/// Owners in the order in which they act at boot; a later line counts.
const OWNERS: [&dyn Owner; 14] = [
    &modprobe::Modprobe,
    &link_files::LinkFiles,
    &udev_rules::UdevRules,
    &sysctl_d::SysctlD,
    &networkd::Networkd,
    &netplan::Netplan,
    &networkd_dispatcher::NETWORKD_DISPATCHER,
    &ifupdown::Ifupdown,
    &ifcfg::Ifcfg,
    &network_manager::NetworkManager,
    &nm_dispatcher::NM_DISPATCHER,
    &tuned::Tuned,
    &rc_local::RC_LOCAL,
    &own::Own,
];

/// Lines of one host: a bound against a folder with absurdly many.
const LINES_MAX: usize = 5000;
/// Lines of one owner that are not understood, likewise.
const UNCLEAR_MAX: usize = 50;

/// Adds what files set at boot to what was read, where it is asked for.
pub fn add(root: &Root, etc_dir: &Path, prefixes: &[FactKey], facts: &mut HostFacts) {
    if !prefixes.iter().any(|prefix| prefix.starts_with(BOOT)) {
        return;
    }
    let settings = asked(prefixes, facts);
    let host = HostFiles { tree: Tree::new(root, etc_dir), settings, view: View::new(root, None, &[]) };
    let mut count = 0;
    for owner in OWNERS {
        let read = owner.lines(&host).and_then(|lines| Ok((lines, owner.unclear(&host)?)));
        let (lines, unclear) = match read {
            Ok(read) => read,
            Err(reason) => {
                facts.gaps.push(Gap { what: format!("{BOOT}{}", owner.sets()).into(), reason });
                continue;
            }
        };
        let gap = |one: Unclear| Gap { what: format!("{BOOT}{}", one.keys).into(), reason: one.reason };
        facts.gaps.extend(unclear.into_iter().filter(|one| host.wants(&one.keys)).take(UNCLEAR_MAX).map(gap));
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

/// The settings that were read, and those that are asked for by their key and are not there: an entry that is
/// `none`, a switch that is off.
fn asked(prefixes: &[FactKey], facts: &HostFacts) -> Vec<(FactKey, FactValue)> {
    let read = facts.readings.iter().map(|(key, value)| (key.clone(), value.clone()));
    let absent = prefixes.iter().filter(|key| !facts.readings.contains_key(key));
    let absent = absent.filter_map(|key| Some((key.clone(), facts.value_of(key)?)));
    read.chain(absent).filter(|(key, _)| super::setting_for(key).is_some()).collect()
}

/// How a value survives a boot of this host: by the owner that acts last of those that rule the setting here.
pub(crate) fn persist(root: &Root, etc_dir: &Path, key: &str, value: &FactValue) -> Persist {
    let Some(usual) = super::setting_for(key).map(|setting| setting.persist(key, value)) else {
        return Persist::Impossible { reason: "no such setting".to_owned() };
    };
    if matches!(usual, Persist::Impossible { .. }) {
        return usual;
    }
    let settings = vec![(key.to_owned(), value.clone())];
    let host = HostFiles { tree: Tree::new(root, etc_dir), settings, view: View::new(root, None, &[]) };
    let kept = Kept { key, value, usual: &usual };
    for owner in OWNERS.iter().rev() {
        match owner.persist(&host, &kept) {
            Ok(None) => {}
            Ok(Some(persist)) => return persist,
            Err(reason) => return Persist::Impossible { reason },
        }
    }
    usual
}

/// What has to be written beside the line of a key.
pub(crate) fn persist_beside(root: &Root, etc_dir: &Path, key: &str) -> Option<Persist> {
    let host =
        HostFiles { tree: Tree::new(root, etc_dir), settings: Vec::new(), view: View::new(root, None, &[]) };
    modules_load::persist(&host, key)
}

/// The first change that another line counts after, were these files written (path and text), with the
/// reason.
pub(crate) fn overridden(
    root: &Root,
    etc_dir: &Path,
    written: BTreeMap<String, String>,
    changes: &[Change],
) -> Option<(FactKey, String)> {
    let settings = changes.iter().map(|change| (change.key.clone(), change.to.clone())).collect();
    let tree = Tree::new(root, etc_dir).with(written);
    let host = HostFiles { tree, settings, view: View::new(root, None, &[]) };
    // A file that cannot be read is a gap of `drift`, no reason against keeping what was proven.
    let lines: Vec<(&str, Line)> = OWNERS
        .iter()
        .flat_map(|owner| owner.lines(&host).unwrap_or_default().into_iter().map(|line| (owner.name(), line)))
        .collect();
    changes.iter().find_map(|change| {
        let named = lines.iter().rev().find(|(_, line)| line.key == change.key);
        let pattern = || lines.iter().rev().find(|(_, line)| pattern_fits(&line.key, &change.key));
        let (owner, line) = named.or_else(pattern)?;
        let is_given = FactValue::Text(line.value.clone()).is_same(&change.to);
        let reason = || format!("{} of {owner} gives {} after a boot", line.at, line.value);
        (!is_given).then(|| (change.key.clone(), reason()))
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "keep_tests.rs"]
mod keep_tests;

#[cfg(test)]
#[path = "hook_tests.rs"]
mod hook_tests;
