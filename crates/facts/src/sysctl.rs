//! Facts and settings `sysctl.*`: everything below `net`, `vm`, `kernel` and `sunrpc`.
//!
//! Left out are secrets, values that change by themselves (they would differ on every host), and files whose
//! reading does something.

use std::path::PathBuf;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_model::writable::writable;
use linerate_sys::root::{ReadError, Root};
use linerate_sys::sysctl;

use super::fact::Fact;
use super::readings::{Readings, fact, settings, text_of};
use super::view::View;
use crate::change::setting::{FileSyntax, Persist, Setting, SettingError};

/// Folders of `/proc/sys` that are read.
const TOPS: [&str; 4] = ["net", "vm", "kernel", "sunrpc"];

/// Secrets: their value must not reach a snapshot.
const SECRETS: [&str; 2] = ["stable_secret", "tcp_fastopen_key"];

/// Values that move by themselves, and files whose reading does something (`stat_refresh`).
const RESTLESS: [&str; 12] = [
    "kernel.random",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.cad_pid",
    "kernel.usermodehelper",
    "net.netfilter.nf_conntrack_count",
    "net.nf_conntrack_count",
    "vm.stat_refresh",
    "vm.compact_memory",
    "vm.drop_caches",
    "kernel.sched_domain",
    "net.ipv4.route.flush",
];

/// Limits of changed pages, in bytes or in percent of the memory: writing one sets the other to 0.
const DIRTY: [(&str, &str); 2] =
    [("vm.dirty_bytes", "vm.dirty_ratio"), ("vm.dirty_background_bytes", "vm.dirty_background_ratio")];

/// The topic.
pub(super) struct Sysctls;

pub(super) fn is_setting(key: &str) -> bool {
    name_of(key).is_some()
}

/// Name of a sysctl that may be written.
fn name_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix("sysctl.")?;
    (writable(key).is_some() && !skip(name)).then_some(name)
}

fn skip(name: &str) -> bool {
    SECRETS.iter().any(|s| name.ends_with(s))
        || RESTLESS
            .iter()
            .any(|r| name.strip_prefix(r).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

pub fn value_of(text: String) -> FactValue {
    match text.parse::<i64>() {
        // Only the usual form: `007` and `+7` stay text, so that what is read can be written back as it is.
        Ok(number) if number.to_string() == text => FactValue::Int(number),
        _ => FactValue::Text(text),
    }
}

impl Fact for Sysctls {
    fn declarations(&self) -> Vec<FactDecl> {
        let unit = "as the kernel documents";
        let read = [
            fact("sysctl.net.*", unit, "Network sysctl; fields separated by one space."),
            fact("sysctl.vm.*", unit, "Memory sysctl."),
            fact("sysctl.kernel.*", unit, "Kernel sysctl."),
            fact("sysctl.sunrpc.*", unit, "Sysctl of SUN RPC and NFS."),
        ];
        settings("sysctl.", unit).chain(read).collect()
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for top in TOPS {
            let head = format!("sysctl.{top}");
            if !view.prefixes.is_empty() && !view.prefixes.iter().any(|p| related_prefix(p, &head)) {
                continue;
            }
            let walk = sysctl::walk(view.root, top, skip);
            if walk.values.is_empty() && walk.refused.is_empty() && top != "sunrpc" {
                out.gap(format!("{head}.*"), "this kernel does not have it");
            }
            for (name, value) in walk.values {
                out.put(format!("sysctl.{name}"), value_of(value));
            }
            for (name, error) in walk.refused {
                match error {
                    // Files that can only be written have no value, and EIO stands for a value that was never
                    // set.
                    ReadError::Denied => {
                        out.gap_of(&format!("{head}.*"), "cannot be read with these rights", &name);
                    }
                    ReadError::Missing => {}
                    other => out.gap_of(&format!("{head}.*"), &other, &name),
                }
            }
        }
    }
}

fn related_prefix(prefix: &str, head: &str) -> bool {
    prefix.starts_with(head) || head.starts_with(prefix)
}

impl Setting for Sysctls {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let name = name_of(key).ok_or(SettingError::NotAKey("not a sysctl that can be written"))?;
        Ok(sysctl::read(root, name).map(value_of)?)
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let name = name_of(key).ok_or(SettingError::NotAKey("not a sysctl that can be written"))?;
        Ok(sysctl::write(root, name, &text_of(value)?)?)
    }

    fn related(&self, key: &str) -> Vec<String> {
        match name_of(key) {
            // One of each pair is 0 while the other is in force, and the kernel refuses to be given that 0.
            Some(name) => DIRTY
                .iter()
                .find_map(|(a, b)| if *a == name { Some(b) } else { (*b == name).then_some(a) })
                .map(|other| format!("sysctl.{other}"))
                .into_iter()
                .collect(),
            None => Vec::new(),
        }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let Some(name) = name_of(key) else {
            return Persist::Impossible { reason: "not a sysctl that can be written".to_string() };
        };
        Persist::File {
            path: PathBuf::from("sysctl.d/90-linerate.conf"),
            preamble: "# Written by linerate; `linerate undo` takes its lines out.\n".to_string(),
            section: None,
            syntax: FileSyntax::Assign,
            name: name.to_string(),
            line: format!("{name} = {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_restless_values_are_left_out() {
        for name in [
            "net.ipv6.conf.all.stable_secret",
            "kernel.random.uuid",
            "vm.stat_refresh",
            "net.ipv4.tcp_fastopen_key",
        ] {
            assert!(skip(name), "{name}");
        }
        assert!(!skip("kernel.randomize_va_space"));
        assert!(!is_setting("sysctl.fs.file-max"));
        assert!(!is_setting("sysctl.kernel.core_pattern"));
        assert!(is_setting("sysctl.net.ipv4.tcp_rmem"));
    }

    #[test]
    fn limits_of_changed_pages_go_back_by_the_one_that_was_in_force() {
        let related = |name: &str| Sysctls.related(&format!("sysctl.{name}"));
        assert_eq!(related("vm.dirty_bytes"), ["sysctl.vm.dirty_ratio"]);
        assert_eq!(related("vm.dirty_background_ratio"), ["sysctl.vm.dirty_background_bytes"]);
        assert!(related("vm.swappiness").is_empty());
    }

    #[test]
    fn only_plain_numbers_become_numbers() {
        assert_eq!(value_of("1".into()), FactValue::Int(1));
        assert_eq!(value_of("007".into()), FactValue::Text("007".into()));
        assert_eq!(value_of("4096 87380 6291456".into()), FactValue::Text("4096 87380 6291456".into()));
    }
}
