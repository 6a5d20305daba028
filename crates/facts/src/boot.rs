//! How the settings of a device survive a reboot: a line in its `.link` file, or a unit that runs a command
//! at boot.

use std::path::PathBuf;

use linerate_sys::root::Root;

use super::view::View;
use crate::change::setting::{FileSyntax, Persist};

/// A line in the `.link` file of a device. The first file that matches a device is the only one that counts,
/// so the file also says what the system's default one does: the name stays as it is, also after a reboot.
pub(super) fn link_file(nic: &str, field: &str, value: &str) -> Persist {
    if !is_plain(nic) {
        return Persist::Impossible { reason: format!("'{nic}' cannot stand in the name of a file") };
    }
    Persist::File {
        path: PathBuf::from(format!("systemd/network/10-linerate-{nic}.link")),
        preamble: link_preamble(nic, USUAL_LINK.into_iter()),
        section: Some("[Link]".to_string()),
        syntax: FileSyntax::Assign,
        name: field.to_string(),
        line: format!("{field}={value}"),
    }
}

/// Lines of the file of systemd that matches every device, but for the name.
const USUAL_LINK: [(&str, &str); 2] =
    [("AlternativeNamesPolicy", "database onboard slot path mac"), ("MACAddressPolicy", "persistent")];

/// Beginning of the `.link` file of a device, with the lines of the file that matched it before.
pub(super) fn link_preamble<'a>(nic: &str, lines: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let kept = lines.filter(|(name, _)| !["Name", "NamePolicy", "Description"].contains(name));
    let kept = kept.fold(String::new(), |kept, (name, value)| kept + name + "=" + value + "\n");
    format!(
        "# Written by linerate; `linerate undo` takes its lines out.\n[Match]\n{}\n\n[Link]\nName={nic}\n{kept}",
        match_line(nic)
    )
}

/// Names are given after `.link` files are matched, so that a renamed device is only found by its hardware
/// address.
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
    fn odd_names_reach_no_file_and_no_command() {
        assert!(matches!(link_file("../x", "MTUBytes", "1"), Persist::Impossible { .. }));
        assert!(!is_plain("a;b") && !is_plain("-rf") && is_plain("eth0.100"));
    }
}
