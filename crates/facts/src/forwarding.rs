//! Facts and settings `nic.<if>.fdb.<hardware address>`: where a tunnel sends a frame, and through which port
//! a bridge does, where it is a permanent entry. What was learned is left out: it changes by itself.
//!
//! A bridge may have one entry for all VLANs and one for each: `nic.<if>.fdb_exact.<hardware address>` is all
//! of a device in the kernel's own messages, journalled and restored beside the words. It is no fact, because
//! people cannot read it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::fdb::{ENTRIES_MAX, ForwardingEntry};
use linerate_sys::fdb_entry::{
    delete, entries_of, entry_of, has_many_ends, message_of, ports_with, put, with_remote,
};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rtnetlink::NetDevice;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, bytes_of, flawed, hex_of, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Forwarding;

/// Value of an entry of a bridge: the device of its key is the port.
const PORT: &str = "port";
/// Value of an address without an entry.
const NONE: &str = "none";
const HEAD: &str = "fdb.";
const EXACT: &str = "fdb_exact.";

/// What a key is about.
struct Subject {
    nic: String,
    hardware: String,
    bytes: Vec<u8>,
    vlan: Option<u16>,
    is_exact: bool,
}

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some()
}

/// `nic.vx0.fdb.02:00:00:00:00:07@5` -> `vx0`, the hardware address, VLAN 5.
fn split(key: &str) -> Option<Subject> {
    let (nic, field) = split_key(key)?;
    let (is_exact, rest) = match field.strip_prefix(HEAD) {
        Some(rest) => (false, rest),
        None => (true, field.strip_prefix(EXACT)?),
    };
    let (hardware, vlan) = match rest.split_once('@').filter(|_| !is_exact) {
        Some((hardware, vlan)) => (hardware, Some(vlan.parse().ok()?)),
        None => (rest, None),
    };
    let is_pair = |part: &str| {
        part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
    };
    let bytes = bytes_of(&hardware.replace(':', ""))?;
    let is_address = bytes.len() == 6 && hardware.split(':').all(is_pair);
    is_address.then(|| Subject { nic, hardware: hardware.to_owned(), bytes, vlan, is_exact })
}

impl Fact for Forwarding {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "nic.*.fdb.*",
            "text",
            "Where frames for a hardware address go for good: addresses of the other ends of a tunnel, or `port` for \
             this port of a bridge; all zeros stand for addresses without an entry; none to remove it.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for entry in view.forwarding() {
            let Some(nic) = view.name_of(entry.link) else { continue };
            let vlan = entry.vlan.map(|tag| format!("@{tag}")).unwrap_or_default();
            let key = format!("nic.{}.{HEAD}{}{vlan}", key_name(nic), entry.hardware);
            values.entry(key).or_default().insert(word(entry));
        }
        for (key, ends) in values {
            out.text(key, joined(&ends));
        }
        if view.forwarding().len() >= ENTRIES_MAX {
            out.gap("nic.*.fdb.*", &format!("only the first {ENTRIES_MAX} entries are kept"));
        }
    }
}

fn word(entry: &ForwardingEntry) -> String {
    entry.remote.map_or_else(|| PORT.to_owned(), |address| address.to_string())
}

fn joined(ends: &BTreeSet<String>) -> String {
    if ends.is_empty() {
        NONE.to_owned()
    } else {
        ends.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The ends that a value names; `None` where they are none, or not as they are read.
fn ends_of(text: &str, of: &Subject) -> Option<BTreeSet<String>> {
    let ends: BTreeSet<String> = text.split(' ').filter(|end| *end != NONE).map(str::to_owned).collect();
    let addresses = ends.iter().filter(|end| *end != PORT);
    let are_addresses = addresses.clone().all(|end| {
        end.parse::<IpAddr>().is_ok_and(|address| !address.is_unspecified() && address.to_string() == *end)
    });
    let fit = addresses.count() <= 1 || has_many_ends(&of.bytes);
    (are_addresses && fit && joined(&ends) == text).then_some(ends)
}

fn link_of<'v>(view: &'v View<'_>, nic: &str) -> Result<&'v NetDevice, SettingError> {
    let link = view.links().iter().find(|l| l.name == nic);
    link.ok_or_else(|| SettingError::NoDevice(nic.to_owned()))
}

/// Entries of a key with their messages.
fn find(link: u32, of: &Subject) -> Result<Vec<(ForwardingEntry, Vec<u8>)>, SettingError> {
    let mut found = entries_of(link, &of.hardware)?;
    found.retain(|(entry, _)| of.is_exact || entry.vlan == of.vlan);
    Ok(found)
}

fn write_words(link: &NetDevice, of: &Subject, text: &str) -> Result<(), SettingError> {
    let ends =
        ends_of(text, of).ok_or_else(|| flawed(&text, "no ends of a tunnel in order, port or none"))?;
    let now = find(link.index, of)?;
    let new = |end: &&String| !now.iter().any(|(entry, _)| word(entry) == **end);
    for end in ends.iter().filter(new) {
        let remote: Option<IpAddr> = end.parse().ok();
        if let Some(bridge) = link.master.filter(|_| remote.is_none())
            && !ports_with(bridge, &of.hardware, of.vlan)?.is_empty()
        {
            // A bridge would move it here, and an undo would leave none at all.
            return Err(flawed(
                &of.hardware,
                "an entry of another port of the bridge; remove it there first",
            ));
        }
        let known = now.iter().find(|(entry, _)| remote.is_some() && entry.remote.is_some());
        let made = || {
            let entry =
                ForwardingEntry { link: link.index, hardware: of.hardware.clone(), remote, vlan: of.vlan };
            message_of(&entry, &of.bytes)
        };
        // The port, the network and the state of a tunnel's entry stay.
        let moved = known.zip(remote).and_then(|((_, message), remote)| with_remote(message, remote));
        put(&moved.unwrap_or_else(made))?;
    }
    // Last, so that of several ends of a tunnel none is missed meanwhile.
    for (_, message) in find(link.index, of)?.iter().filter(|(entry, _)| !ends.contains(&word(entry))) {
        delete(message)?;
    }
    Ok(())
}

fn write_exact(link: &NetDevice, of: &Subject, text: &str) -> Result<(), SettingError> {
    let wanted: Option<Vec<Vec<u8>>> =
        text.split_ascii_whitespace().filter(|hex| *hex != NONE).map(bytes_of).collect();
    let wanted = wanted.ok_or_else(|| flawed(&text, "not hexadecimal"))?;
    let is_of_key = |message: &Vec<u8>| {
        entry_of(message).is_some_and(|entry| entry.link == link.index && entry.hardware == of.hardware)
    };
    if !wanted.iter().all(is_of_key) {
        return Err(flawed(&text, "an entry of another device or address"));
    }
    let missing = || put_missing(link.index, of, &wanted);
    missing()?;
    for (_, message) in find(link.index, of)?.iter().filter(|(_, message)| !wanted.contains(message)) {
        delete(message)?;
    }
    // Removing one for all VLANs has removed those of each.
    missing()
}

/// Puts in force what is not; one for all VLANs makes those of each, and comes first.
fn put_missing(link: u32, of: &Subject, wanted: &[Vec<u8>]) -> Result<(), SettingError> {
    let mut ordered: Vec<&Vec<u8>> = wanted.iter().collect();
    ordered.sort_by_key(|message| entry_of(message).and_then(|entry| entry.vlan));
    for message in ordered {
        if !find(link, of)?.iter().any(|(_, known)| known == message) {
            put(message)?;
        }
    }
    Ok(())
}

impl Setting for Forwarding {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let of = split(key).ok_or(SettingError::NotAKey("not a key of a forwarding entry"))?;
        let view = View::new(root, None, &[]);
        let link = link_of(&view, &of.nic)?.index;
        let values: BTreeSet<String> = if of.is_exact {
            find(link, &of)?.iter().map(|(_, message)| hex_of(message)).collect()
        } else {
            let fits =
                |e: &&ForwardingEntry| e.link == link && e.hardware == of.hardware && e.vlan == of.vlan;
            view.forwarding().iter().filter(fits).map(word).collect()
        };
        Ok(FactValue::Text(joined(&values)))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let of = split(key).ok_or(SettingError::NotAKey("not a key of a forwarding entry"))?;
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let view = View::new(root, None, &[]);
        let link = link_of(&view, &of.nic)?;
        if of.is_exact { write_exact(link, &of, &text) } else { write_words(link, &of, &text) }
    }

    fn related(&self, key: &str) -> Vec<String> {
        let of = split(key).filter(|of| !of.is_exact);
        of.map(|of| format!("nic.{}.{EXACT}{}", key_name(&of.nic), of.hardware)).into_iter().collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let text = value.to_string();
        let of = split(key).filter(|of| !of.is_exact && is_plain(&of.nic));
        let Some((ends, of)) = of.and_then(|of| Some((ends_of(&text, &of)?, of))) else {
            return Persist::Impossible { reason: format!("'{text}' cannot stand in a command") };
        };
        let vlan = of.vlan.map(|tag| format!(" vlan {tag}")).unwrap_or_default();
        let command = |verb: &str, rest: &str| {
            format!("/usr/sbin/bridge fdb {verb} {} dev {}{vlan} {rest}", of.hardware, of.nic)
        };
        // What writes the entry may not have done so this time.
        let removed = format!("{} || {} || true", command("del", "self"), command("del", "master"));
        let written = ends.iter().map(|end| match end.as_str() {
            PORT => command("replace", "master static"),
            address if has_many_ends(&of.bytes) => {
                command("append", &format!("dst {address} self permanent"))
            }
            address => command("replace", &format!("dst {address} self permanent")),
        });
        let written: Vec<String> = written.collect();
        let command = match written.as_slice() {
            [one] if !has_many_ends(&of.bytes) => one.clone(),
            [] => format!("/bin/sh -c '{removed}'"),
            all => format!("/bin/sh -c '{removed}; {}'", all.join(" && ")),
        };
        let name = format!("{}-fdb-{}{}", of.nic, of.hardware, vlan.replace(' ', "-"));
        unit(&name, &format!("forwarding entry {} of {}", of.hardware, of.nic), command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_device_and_one_hardware_address() {
        let of = split("nic.vx0/7.fdb.02:00:00:00:00:07@5").unwrap();
        assert_eq!((of.nic.as_str(), of.hardware.as_str(), of.vlan), ("vx0.7", "02:00:00:00:00:07", Some(5)));
        for odd in [
            "nic.vx0.fdb.*",
            "nic.vx0.fdb.02:00",
            "nic.vx0.fdb.0200:00:00:00:0007",
            "nic.vx0.fdb.02:00:00:00:00:0A",
        ] {
            assert!(!is_setting(odd), "{odd}");
        }
        assert!(
            !is_setting("nic.vx0.fdb_exact.02:00:00:00:00:07@5"),
            "the exact ones are those of all VLANs"
        );
    }

    #[test]
    fn what_stays_is_a_command_of_bridge() {
        let exec = |key: &str, value: &str| match Forwarding.persist(key, &FactValue::Text(value.to_owned()))
        {
            Persist::Unit { exec, .. } => exec.join("; "),
            other => format!("{other:?}"),
        };
        let (one, zeros) = ("nic.vx0.fdb.02:00:00:00:00:07", "nic.vx0.fdb.00:00:00:00:00:00");
        assert_eq!(
            exec(one, "10.0.0.2"),
            "/usr/sbin/bridge fdb replace 02:00:00:00:00:07 dev vx0 dst 10.0.0.2 self permanent"
        );
        assert_eq!(
            exec("nic.p1.fdb.02:00:00:00:00:07@5", "port"),
            "/usr/sbin/bridge fdb replace 02:00:00:00:00:07 dev p1 vlan 5 master static"
        );
        let removed = "/usr/sbin/bridge fdb del 00:00:00:00:00:00 dev vx0 self || \
                       /usr/sbin/bridge fdb del 00:00:00:00:00:00 dev vx0 master || true";
        assert_eq!(exec(zeros, "none"), format!("/bin/sh -c '{removed}'"));
        let append =
            |end| format!("/usr/sbin/bridge fdb append 00:00:00:00:00:00 dev vx0 dst {end} self permanent");
        let both = format!("/bin/sh -c '{removed}; {} && {}'", append("10.0.0.1"), append("10.0.0.2"));
        assert_eq!(exec(zeros, "10.0.0.1 10.0.0.2"), both);
        for odd in ["10.0.0.1 10.0.0.2", "port; reboot", "0.0.0.0", "", "none none"] {
            assert!(exec(one, odd).contains("Impossible"), "{odd}");
        }
    }
}
