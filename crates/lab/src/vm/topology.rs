//! Topology of a lab of guests: `labs/vm-*.toml` read and checked.
//!
//! In: TOML with `[[guest]]` and `[[guest.drives]]`. Out: guests with their drives and addresses, all names
//! checked. It starts nothing.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::Deserialize;

use super::disk::{Behaviour, Cache};
use crate::error::{LabError, Result};
use crate::lab_file::{self, LabFile, check_name};

/// Two cores carry two busy guests, and four that mostly wait.
const GUESTS_MAX: usize = 4;
/// More than any lab needs.
const MORE_NICS_MAX: u8 = 8;
/// One controller carries more; no lab needs them.
const DRIVES_MAX: usize = 64;

/// The labs of guests that come with the program, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("vm-pair", include_str!("../../../../labs/vm-pair.toml")),
    ("vm-replica", include_str!("../../../../labs/vm-replica.toml")),
    ("vm-36", include_str!("../../../../labs/vm-36.toml")),
    ("vm-systemd", include_str!("../../../../labs/vm-systemd.toml")),
];

/// What guests run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestSystem {
    /// Few programs, started by a script: up in seconds.
    #[default]
    Small,
    /// systemd with all that configures networks and kernels on a server of Debian: up in half a minute. Its
    /// first drive holds all that it writes.
    Systemd,
}

/// A lab of guests.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmTopology {
    /// Its name.
    pub name: String,
    /// What its guests run.
    #[serde(default)]
    pub system: GuestSystem,
    /// The machines.
    #[serde(rename = "guest")]
    pub guests: Vec<GuestPlan>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestPlan {
    /// Its name, also its hostname.
    pub name: String,
    /// Memory, MiB.
    #[serde(default = "usual_memory")]
    pub memory_mib: u32,
    /// NICs beside the two of the lab, connected to nothing: eth2, eth3, and so on.
    #[serde(default)]
    pub more_nics: u8,
    /// Its drives, one kind after the other.
    #[serde(default)]
    pub drives: Vec<DriveSet>,
}

/// Drives that are alike.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSet {
    /// Beginning of their names: `d` gives `d1`, `d2`, and so on.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: usize,
    /// Size of each, MiB.
    pub size_mib: u64,
    /// Whether they report as rotating.
    #[serde(default)]
    pub rotating: bool,
    /// Requests per second of each, one at a time; 0 is unlimited.
    #[serde(default)]
    pub ops_per_s: f64,
    /// Additional delay of each request, ms.
    #[serde(default)]
    pub delay_ms: f64,
    /// Cache and handling of flushes.
    #[serde(default)]
    pub cache: Cache,
}

impl DriveSet {
    fn behaviour(&self) -> Behaviour {
        let Self { ops_per_s, delay_ms, cache, .. } = *self;
        Behaviour { ops_per_s, delay_ms, cache, ..Behaviour::default() }
    }
}

fn usual_memory() -> u32 {
    384
}

fn one() -> usize {
    1
}

/// A drive with what follows from its index in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct DrivePlan {
    /// Name and serial number.
    pub name: String,
    /// What the guest calls it: `sda` is the first one.
    pub device: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Whether it reports as rotating.
    pub rotating: bool,
    /// Initial behaviour.
    pub behaviour: Behaviour,
}

impl GuestPlan {
    /// Its drives, in the order in which it sees them.
    pub fn drives(&self) -> Vec<DrivePlan> {
        let of = |kind: &DriveSet| {
            let kind = kind.clone();
            (1..=kind.count).map(move |number| DrivePlan {
                name: format!("{}{number}", kind.name),
                device: String::new(),
                size_bytes: kind.size_mib << 20,
                rotating: kind.rotating,
                behaviour: kind.behaviour(),
            })
        };
        let mut drives: Vec<DrivePlan> = self.drives.iter().flat_map(of).collect();
        drives.iter_mut().enumerate().for_each(|(index, drive)| drive.device = device(index));
        drives
    }
}

/// Name that the kernel gives to the drive of this number: `sda` to `sdz`, `sdaa`, and so on.
fn device(index: usize) -> String {
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    let first = (index / 26).checked_sub(1).map(letter);
    ["sd".to_owned(), first.into_iter().collect(), letter(index).to_string()].concat()
}

impl VmTopology {
    /// Reads a lab: a file, or the name of one that comes with the program.
    ///
    /// # Errors
    /// There is no such lab, or it is invalid.
    pub fn load(lab: &str) -> Result<Self> {
        lab_file::load(lab)
    }

    /// Reads the text of a lab file.
    ///
    /// # Errors
    /// It is invalid; the error has the reason.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        lab_file::parse(text, path)
    }

    /// Address of a guest in the network between the guests; the first one has 10.79.0.1.
    pub fn address(index: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 79, 0, index as u8 + 1)
    }

    /// Index of the guest of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn guest(&self, name: &str) -> Result<usize> {
        self.guests.iter().position(|g| g.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.guests.iter().map(|g| g.name.as_str()).collect();
            LabError::Unknown(format!(
                "no guest {name:?} in lab {}\nhint: there are {}",
                self.name,
                names.join(", ")
            ))
        })
    }

    /// What a guest calls one of its drives.
    ///
    /// # Errors
    /// There is no such guest or drive.
    pub fn device(&self, guest: &str, drive: &str) -> Result<String> {
        let drives = self.guests[self.guest(guest)?].drives();
        let found = drives.into_iter().find(|d| d.name == drive).map(|d| d.device);
        found.ok_or_else(|| LabError::Unknown(format!("no drive {drive:?} in guest {guest}")))
    }
}

impl LabFile for VmTopology {
    const BUILT_IN: &'static [(&'static str, &'static str)] = BUILT_IN;

    fn check(&self) -> std::result::Result<(), String> {
        if !(1..=GUESTS_MAX).contains(&self.guests.len()) {
            return Err(format!("{} guests: 1 to {GUESTS_MAX} wanted", self.guests.len()));
        }
        let mut seen = BTreeSet::new();
        for guest in &self.guests {
            check_name(&guest.name)?;
            if !seen.insert(guest.name.clone()) {
                return Err(format!("guest {:?} is there twice", guest.name));
            }
            if !(192..=2048).contains(&guest.memory_mib) {
                return Err(format!(
                    "memory_mib = {} of guest {}: 192 to 2048 wanted",
                    guest.memory_mib, guest.name
                ));
            }
            if guest.more_nics > MORE_NICS_MAX {
                return Err(format!("guest {}: more_nics is at most {MORE_NICS_MAX}", guest.name));
            }
            if self.system == GuestSystem::Systemd && guest.drives.is_empty() {
                return Err(format!(
                    "guest {}: a drive is missing for what systemd's guest writes",
                    guest.name
                ));
            }
            guest.check_drives()?;
        }
        Ok(())
    }
}

impl GuestPlan {
    fn check_drives(&self) -> std::result::Result<(), String> {
        let count = self.drives.iter().map(|d| d.count).fold(0, usize::saturating_add);
        if count > DRIVES_MAX {
            return Err(format!("{count} drives of guest {}: at most {DRIVES_MAX} wanted", self.name));
        }
        let mut seen = BTreeSet::new();
        for kind in &self.drives {
            check_name(&kind.name)?;
            if !(1..=4096).contains(&kind.size_mib) {
                return Err(format!(
                    "size_mib = {} of drives {}: 1 to 4096 wanted",
                    kind.size_mib, kind.name
                ));
            }
            kind.behaviour()
                .check()
                .map_err(|what| format!("drives {} of guest {}: {what}", kind.name, self.name))?;
        }
        match self.drives().into_iter().find(|d| !seen.insert(d.name.clone())) {
            Some(twice) => Err(format!("drive {:?} of guest {} is there twice", twice.name, self.name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_lab_that_comes_with_the_program_is_good() {
        for (name, _) in BUILT_IN {
            assert_eq!(&VmTopology::load(name).unwrap().name, name);
        }
        let many = VmTopology::load("vm-36").unwrap();
        let drives = many.guests[0].drives();
        assert_eq!((drives[25].device.as_str(), drives[26].device.as_str()), ("sdz", "sdaa"));
        assert_eq!(many.device("store", "d36").unwrap(), "sdaj");
        assert_eq!(
            (drives.len(), drives[35].name.as_str(), drives[35].behaviour.ops_per_s),
            (36, "d36", 150.0)
        );
    }

    #[test]
    fn bad_labs_are_refused_with_the_reason() {
        let good = "name = \"x\"\n[[guest]]\nname = \"a\"\n[[guest.drives]]\nname = \"d\"\nsize_mib = 8\n";
        assert!(VmTopology::parse(good, Path::new("x.toml")).is_ok());
        for (from, to, reason) in [
            ("\"a\"", "\"A b\"", "letters"),
            ("size_mib = 8", "size_mib = 0", "1 to 4096"),
            ("size_mib = 8", "size_mib = 8\nops_per_s = -1", "ops_per_s"),
            ("size_mib = 8", "size_mib = 8\ncount = 100", "at most 64"),
            ("size_mib = 8", "size_mib = 8\ncache = \"maybe\"", "unknown variant"),
            ("name = \"a\"", "name = \"a\"\nmemory_mib = 1", "192 to 2048"),
            ("[[guest.drives]]", "[[guest]]\nname = \"a\"\n[[guest.drives]]", "twice"),
        ] {
            let error =
                VmTopology::parse(&good.replacen(from, to, 1), Path::new("x.toml")).unwrap_err().to_string();
            assert!(error.contains("x.toml") && error.contains(reason), "{error}");
        }
    }
}
