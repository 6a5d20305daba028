//! Settings inside a network namespace of this host (`netns.<path>|<key>`), and how the settings of a device are made to
//! stay.

use std::path::{Path, PathBuf};

use linerate_model::fact::FactValue;
use linerate_sys::place;
use linerate_sys::root::Root;

use super::setting_for;
use super::view::View;
use crate::change::setting::{Persist, Setting};

/// Runs the setting of the key inside the namespace.
pub(super) struct InNamespace;

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some_and(|(_, inner)| !inner.starts_with("netns.") && setting_for(inner).is_some())
}

fn split(key: &str) -> Option<(&Path, &str)> {
    let (path, inner) = key.strip_prefix("netns.")?.split_once('|')?;
    let place = ["/", "pid:", "container:"].iter().any(|head| path.starts_with(head));
    place.then(|| (Path::new(path), inner))
}

fn inside<T: Send>(
    root: &Root,
    key: &str,
    work: impl FnOnce(&dyn Setting, &Root, &str) -> Result<T, String> + Send,
) -> Result<T, String> {
    let (path, inner) = split(key).ok_or("not a key of a namespace")?;
    let setting = setting_for(inner).filter(|_| is_setting(key)).ok_or("not a setting")?;
    place::in_namespace(root, path, |root, _| work(setting, root, inner))?
}

impl Setting for InNamespace {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, String> {
        inside(root, key, |setting, root, inner| setting.read(root, inner))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), String> {
        inside(root, key, |setting, root, inner| setting.write(root, inner, value))
    }

    fn check(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), String> {
        inside(root, key, |setting, root, inner| setting.check(root, inner, value))
    }

    fn related(&self, key: &str) -> Vec<String> {
        let Some((path, _)) = split(key) else { return Vec::new() };
        let related = inside(&Root::live(), key, |setting, _, inner| Ok(setting.related(inner)));
        related.unwrap_or_default().into_iter().map(|k| format!("netns.{}|{k}", path.display())).collect()
    }

    fn persist(&self, _key: &str, _value: &FactValue) -> Persist {
        Persist::Impossible {
            reason: "the namespace belongs to another program, which makes it anew at every start; \
                     set it where that program is configured"
                .to_string(),
        }
    }
}

/// A line in the `.link` file of a device. The first file that matches a device is the only one that counts, so the
/// file also says what the system's default one does: the name stays as it is, also after a reboot.
pub(super) fn link_file(nic: &str, field: &str, value: &str) -> Persist {
    if !is_plain(nic) {
        return Persist::Impossible { reason: format!("'{nic}' cannot stand in the name of a file") };
    }
    Persist::File {
        path: PathBuf::from(format!("systemd/network/10-linerate-{nic}.link")),
        preamble: format!(
            "# Written by linerate; `linerate undo` takes its lines out.\n[Match]\n{}\n\n[Link]\nName={nic}\n\
             AlternativeNamesPolicy=database onboard slot path mac\nMACAddressPolicy=persistent\n",
            match_line(nic)
        ),
        section: Some("[Link]".to_string()),
        name: field.to_string(),
        line: format!("{field}={value}"),
    }
}

/// Names are given after `.link` files are matched, so that a renamed device is only found by its hardware address.
fn match_line(nic: &str) -> String {
    let root = Root::live();
    let view = View::new(&root, None, &[]);
    let link = view.links().iter().find(|l| l.name == nic);
    match link.and_then(|l| l.permanent_address.as_ref()) {
        Some(address) => format!("PermanentMACAddress={address}"),
        None => format!("OriginalName={nic}"),
    }
}

/// A unit that runs a command at boot.
pub(super) fn unit(name: &str, description: &str, command: String) -> Persist {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    Persist::Unit {
        name: format!("linerate-{}", name.chars().map(plain).collect::<String>()),
        description: description.to_string(),
        exec: vec![command],
    }
}

/// Whether a name of a device can stand in a file name or a command without quoting.
pub(super) fn is_plain(nic: &str) -> bool {
    !nic.is_empty()
        && nic.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
        && !nic.starts_with(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_namespaces_lead_to_the_setting_inside() {
        assert!(is_setting("netns./run/netns/a|nic.vx0.mtu"));
        assert!(!is_setting("netns./run/netns/a|nic.vx0.driver"));
        assert!(!is_setting("netns./a|netns./b|nic.vx0.mtu"));
        assert!(!is_setting("netns.a|nic.vx0.mtu"));
        assert!(is_setting("netns.container:web|nic.eth0.mtu") && is_setting("netns.pid:17|nic.eth0.mtu"));
    }

    #[test]
    fn odd_names_reach_no_file_and_no_command() {
        assert!(matches!(link_file("../x", "MTUBytes", "1"), Persist::Impossible { .. }));
        assert!(!is_plain("a;b") && !is_plain("-rf") && is_plain("eth0.100"));
    }
}
