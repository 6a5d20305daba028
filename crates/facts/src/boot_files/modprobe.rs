//! modprobe: options of modules that sysctls show (modprobe.d(5)). They count when a module is loaded, before
//! any file of sysctls.

use super::owner::{HostFiles, Line, Owner};

/// The owner.
pub(super) struct Modprobe;

/// Module, option, and the sysctl that shows it.
const OPTIONS: [(&str, &str, &str); 1] =
    [("nf_conntrack", "hashsize", "sysctl.net.netfilter.nf_conntrack_buckets")];

impl Owner for Modprobe {
    fn name(&self) -> &'static str {
        "modprobe"
    }

    fn sets(&self) -> &'static str {
        "sysctl.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        for path in host.tree.merged("modprobe.d", ".conf")? {
            let text = host.tree.read(&path)?.unwrap_or_default();
            for (at, line) in text.lines().enumerate() {
                let mut words = line.split_whitespace();
                let (Some("options"), Some(module)) = (words.next(), words.next()) else { continue };
                let module = module.replace('-', "_");
                for (name, value) in words.filter_map(|word| word.split_once('=')) {
                    let known = OPTIONS.iter().find(|(of, option, _)| *of == module && *option == name);
                    lines.extend(known.filter(|(_, _, key)| host.wants(key)).map(|(_, _, key)| Line {
                        key: (*key).to_owned(),
                        value: value.to_owned(),
                        at: format!("{path}:{}", at + 1),
                    }));
                }
            }
        }
        Ok(lines)
    }
}
