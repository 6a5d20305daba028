//! Folders of scripts that are run for a device when it comes up.
//!
//! In: the folders, in the order in which one hides the other, and what the scripts see. Out: what the
//! scripts set, with file and line. Scripts that packages ship take what they set from options that their
//! owner reads, or set nothing: of these only what is set in so many words counts, as a person adds it.

use std::collections::BTreeMap;

use super::flow::Variables;
use super::owner::HostFiles;
use super::script::Script;

/// Scripts of packages by name, with a word that each of them has: one of the site has another text.
const PACKAGED: [(&str, &str); 26] = [
    ("000resolvconf", "resolvconf"),
    ("01-ifupdown", "run-parts"),
    ("10-dnssec-trigger", "dnssec-trigger"),
    ("11-dhclient", "dhclient"),
    ("20-chrony", "chronyc"),
    ("20-chrony-dhcp", "chronyc"),
    ("20-chrony-onoffline", "chronyc"),
    ("90-console-login-helper-messages-gensnippet_if", "console-login-helper"),
    ("avahi-autoipd", "avahi-autoipd"),
    ("avahi-daemon", "avahi"),
    ("bridge", "IF_BRIDGE_PORTS"),
    ("chrony", "chronyc"),
    ("ethtool", "$SETTINGS"),
    ("ifenslave", "IF_BOND_"),
    ("ip", "IF_IP_"),
    ("mountnfs", "mountnfs"),
    ("ntpdate", "ntpdate"),
    ("ntpsec", "ntpsec"),
    ("ntpsec-ntpdate", "ntpdate"),
    ("openssh-server", "sshd"),
    ("openvpn", "IF_OPENVPN"),
    ("postfix", "postfix"),
    ("resolved", "resolve"),
    ("vlan", "IF_VLAN_RAW_DEVICE"),
    ("wireless-tools", "IF_WIRELESS"),
    ("wpasupplicant", "wpa_"),
];
/// Where packages put theirs, beside the system's folder for configuration.
const OF_PACKAGES: &str = "/usr/lib/";
/// Scripts of one folder: a bound against one with absurdly many.
const SCRIPTS_MAX: usize = 200;

/// Whether run-parts(8) runs a file of this name.
pub(super) fn is_run_part(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

/// A folder of the administrator and that of packages, which it hides.
pub(super) fn folders(host: &HostFiles<'_>, below: &str) -> Vec<String> {
    let own = Some(host.tree.etc(below));
    [own, host.tree.beside(&format!("usr/lib/{below}"))].into_iter().flatten().collect()
}

/// Reads what may be executed in these folders, by name; what the first one has hides its name in the others.
pub(super) fn read(
    host: &HostFiles<'_>,
    folders: &[String],
    is_run: fn(&str) -> bool,
    variables: &Variables,
) -> Result<Script, String> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        for name in host.tree.list(folder)?.into_iter().filter(|name| is_run(name)) {
            paths.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
        }
    }
    let mut whole = Script::default();
    for (name, path) in paths.into_iter().take(SCRIPTS_MAX) {
        // A folder is no script, and a link to `/dev/null` hides one.
        if !host.tree.is_executable(&path).unwrap_or(true) {
            continue;
        }
        let text = match host.tree.read(&path) {
            Ok(text) => text.unwrap_or_default(),
            Err(reason) => {
                whole.extend(Script::unreadable(reason));
                continue;
            }
        };
        if text.is_empty() {
            continue;
        }
        let is_of_package = path.contains(OF_PACKAGES)
            || PACKAGED.iter().any(|(own, word)| *own == name && text.contains(word));
        let mut script = Script::of_file(host, &text, &path, variables)?;
        script.unclear.retain(|one| !is_of_package || !one.keys.contains('*'));
        whole.extend(script);
    }
    Ok(whole)
}
