//! Rules of udev that write attributes of block devices and NICs (udev(7)), those of this program among them.
//! A rule counts where all of its conditions hold; one that cannot be judged from here does not hold.

use std::path::Path;

use linerate_model::fact::FactValue;

use super::super::setting_for;
use super::super::view::split_key;
use super::owner::{HostFiles, Kept, Line, Owner, glob, shown};
use crate::change::setting::Persist;

/// The owner.
pub(super) struct UdevRules;

/// Below `/etc` and its like.
const FOLDER: &str = "udev/rules.d";

impl Owner for UdevRules {
    fn name(&self) -> &'static str {
        "udev"
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let attributes: Vec<Attribute> =
            host.settings.iter().filter_map(|(key, now)| Attribute::of_setting(key, now)).collect();
        let mut lines = Vec::new();
        if attributes.is_empty() {
            return Ok(lines);
        }
        for path in host.tree.merged(FOLDER, ".rules")? {
            let text = host.tree.read(&path)?.unwrap_or_default();
            for (at, rule) in text.lines().enumerate().filter(|(_, rule)| rule.contains("ATTR")) {
                let parts = parts(rule);
                for attribute in &attributes {
                    let assigns = |part: &&Part| part.sign == "=" && attribute.is_named(&part.name);
                    let Some(part) = parts.iter().rfind(assigns) else { continue };
                    if rule != attribute.own && !parts.iter().all(|part| attribute.holds(host, part)) {
                        continue;
                    }
                    let now = host.settings.iter().find(|(key, _)| *key == attribute.key).map(|(_, now)| now);
                    lines.extend(now.map(|now| Line {
                        key: attribute.key.clone(),
                        value: shown(&part.value, &attribute.value, now),
                        at: format!("{path}:{}", at + 1),
                    }));
                }
            }
        }
        Ok(lines)
    }

    /// In a file whose name comes after that of the last rule that sets it.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Persist::File { path, preamble, section, syntax, name, line } = kept.usual else {
            return Ok(None);
        };
        if !path.starts_with(FOLDER) {
            return Ok(None);
        }
        let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let late = own.replacen("90-", "zz-", 1);
        let Some(last) = self.lines(host)?.pop() else { return Ok(None) };
        let file = last.at.rsplit('/').next().and_then(|at| at.split(':').next()).unwrap_or_default();
        if file <= own.as_str() {
            return Ok(None);
        }
        if file > late.as_str() {
            return Err(format!("{} sets it after every file of this program", last.at));
        }
        Ok(Some(Persist::File {
            path: Path::new(FOLDER).join(late),
            preamble: preamble.clone(),
            section: section.clone(),
            syntax: *syntax,
            name: name.clone(),
            line: line.clone(),
        }))
    }
}

/// The attribute behind a setting.
pub(super) struct Attribute {
    pub(super) key: String,
    subsystem: &'static str,
    /// Name of the device.
    device: String,
    /// Its folder.
    folder: String,
    /// Below it: `queue/scheduler`.
    name: String,
    /// As this program writes it.
    value: String,
    /// The rule that this program would write.
    own: String,
}

impl Attribute {
    pub(super) fn of_setting(key: &str, now: &FactValue) -> Option<Self> {
        Self::of(key, setting_for(key)?.persist(key, now))
    }

    /// Whether this file of the kernel is the attribute.
    pub(super) fn is_file(&self, path: &str) -> bool {
        path.strip_prefix(self.folder.as_str()).and_then(|rest| rest.strip_prefix('/')) == Some(&self.name)
    }

    fn of(key: &str, usual: Persist) -> Option<Self> {
        if let Some((nic, field)) = split_key(key) {
            let name = match field {
                "mtu" => "mtu",
                "txqueuelen" => "tx_queue_len",
                _ => return None,
            };
            let folder = format!("/sys/class/net/{nic}");
            let (name, own) = (name.to_owned(), String::new());
            return Some(Self {
                key: key.to_owned(),
                subsystem: "net",
                device: nic,
                folder,
                name,
                value: own.clone(),
                own,
            });
        }
        let Persist::File { path, line, .. } = usual else { return None };
        let part = parts(&line).into_iter().rfind(|part| part.sign == "=")?;
        let name = attribute(&part.name)?.to_owned();
        let device = key.strip_prefix("disk.")?.split('.').next()?.to_owned();
        path.starts_with(FOLDER).then(|| Self {
            key: key.to_owned(),
            subsystem: "block",
            folder: format!("/sys/block/{device}"),
            device,
            name,
            value: part.value,
            own: line,
        })
    }

    fn is_named(&self, name: &str) -> bool {
        attribute(name) == Some(&self.name)
    }

    fn holds(&self, host: &HostFiles<'_>, part: &Part) -> bool {
        let is_inverse = part.sign == "!=";
        if !is_inverse && part.sign != "==" {
            return true;
        }
        let fits =
            |text: &str| part.value.split('|').any(|pattern| glob(pattern.as_bytes(), text.as_bytes()));
        let seen = match part.name.as_str() {
            "ACTION" => return is_inverse || ["add", "change"].into_iter().any(fits),
            "KERNEL" => self.device.clone(),
            "NAME" if self.subsystem == "net" => self.device.clone(),
            "SUBSYSTEM" => self.subsystem.to_owned(),
            "ENV{DEVTYPE}" if self.subsystem == "block" => "disk".to_owned(),
            name => match attribute(name).map(|name| host.view.root.line(&format!("{}/{name}", self.folder)))
            {
                Some(Ok(value)) => value,
                _ => return false,
            },
        };
        fits(seen.trim()) != is_inverse
    }
}

/// The name in `ATTR{name}`.
fn attribute(name: &str) -> Option<&str> {
    name.strip_prefix("ATTR{")?.strip_suffix('}')
}

/// A condition or an assignment.
#[derive(Debug, PartialEq)]
struct Part {
    name: String,
    sign: &'static str,
    value: String,
}

/// The parts of a rule: `NAME=="value", OTHER="value"`.
fn parts(rule: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = rule.trim();
    while let Some((head, tail)) = rest.split_once('"') {
        let Some((value, after)) = tail.split_once('"') else { break };
        let head = head.trim_matches([',', ' ', '\t']);
        let signs = ["==", "!=", "+=", "-=", ":=", "="];
        let Some(sign) = signs.into_iter().find(|sign| head.ends_with(sign)) else { break };
        let name = head[..head.len() - sign.len()].trim().to_owned();
        parts.push(Part { name, sign: if sign == ":=" { "=" } else { sign }, value: value.to_owned() });
        rest = after;
    }
    if rule.trim_start().starts_with('#') { Vec::new() } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_taken_apart() {
        let found = parts("ACTION==\"add|change\", KERNEL!=\"sd*\",ATTR{queue/scheduler}=\"none\"");
        let words: Vec<String> = found.iter().map(|p| format!("{}{}{}", p.name, p.sign, p.value)).collect();
        assert_eq!(words, ["ACTION==add|change", "KERNEL!=sd*", "ATTR{queue/scheduler}=none"]);
        assert_eq!(parts("# KERNEL==\"a\""), []);
        assert_eq!(parts("KERNEL==\"a"), []);
    }
}
