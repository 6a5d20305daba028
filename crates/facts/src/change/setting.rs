//! What a setting must offer so that a trial can change it: read, write, name what else moves, say how it
//! survives a reboot.
//!
//! In: a key of the vocabulary and a value. Out: values read back, or a reason in words. A setting never
//! journals, never decides and never writes below `/etc`: that is the work of `change`.

use std::io;
use std::path::PathBuf;

use linerate_model::fact::FactValue;
use linerate_model::step::StepError;
use linerate_sys::ethtool::EthtoolError;
use linerate_sys::netlink::NetlinkError;
use linerate_sys::place::PlaceError;
use linerate_sys::root::{ReadError, Root};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a setting cannot be read or written.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SettingError {
    #[error("no such setting")]
    Unknown,
    /// The key is another one's.
    #[error("{0}")]
    NotAKey(&'static str),
    #[error("cannot be written")]
    ReadOnly,
    #[error("'{value}' is {flaw}")]
    Value { value: String, flaw: &'static str },
    #[error("{0} is not on or off")]
    NotASwitch(FactValue),
    #[error("the text has control characters")]
    ControlCharacters,
    #[error("there is no device {0}")]
    NoDevice(String),
    #[error("{device} has no {what}")]
    Lacks { device: String, what: String },
    #[error("the driver of {nic} does not let {name} be switched")]
    Fixed { nic: String, name: String },
    #[error("{nic} keeps {name} {state}; another feature may require it")]
    Kept { nic: String, name: String, state: &'static str },
    #[error("{device} would lose its IPv6 addresses below {mtu_min}")]
    LosesIpv6 { device: String, mtu_min: u32 },
    #[error("the discipline {0} has classes or filters that could not be put back")]
    NotRestorable(String),
    #[error("cannot attach {kind}: {reason}{}", if *is_back { "" } else { "; the old one could not be put back" })]
    Discipline { kind: String, reason: String, is_back: bool },
    #[error("no resource {0} of DRBD runs here")]
    NoResource(String),
    #[error("{resource} has no connection now, and {field} belongs to one")]
    NoConnection { resource: String, field: String },
    #[error("{resource} shows no {option} now")]
    NotShown { resource: String, option: String },
    #[error("{resource} has more than one value of {option}: {one} and {other}; set them alike first")]
    Differ { resource: String, option: String, one: String, other: String },
    #[error("{command}: {reason}")]
    NotRun { command: String, reason: String },
    #[error("{command} did not end within {limit_s} s")]
    Late { command: String, limit_s: u64 },
    #[error("{command} ended with {code}: {words}")]
    Failed { command: String, code: i32, words: String },
    #[error("no idle state takes {limit_us} us to wake up; they take {}", list(known))]
    NoIdleState { limit_us: i64, known: Vec<i64> },
    #[error("the kernel has no clock {wanted}; it has {known}")]
    NoClock { wanted: String, known: String },
    #[error("the kernel gives no list of CPUs")]
    NoCpus,
    #[error("CPU {cpu}: {source}")]
    Cpu { cpu: u32, source: ReadError },
    #[error("the kernel gave no mask")]
    NoMask,
    #[error(transparent)]
    File(#[from] ReadError),
    /// In the words of the kernel.
    #[error("{0}")]
    Kernel(String),
}

fn list(numbers: &[i64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

macro_rules! in_words {
    ($($error:ty),*) => {$(
        impl From<$error> for SettingError {
            fn from(error: $error) -> Self {
                Self::Kernel(error.to_string())
            }
        }
    )*};
}

in_words!(NetlinkError, EthtoolError, PlaceError, StepError);

/// Why a file is not one that a setting is written to.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("it is a link")]
    Link,
    #[error("what was written does not read back")]
    NotReadBack,
    #[error("it was written meanwhile")]
    Changed,
    #[error("the text to write is not that of the lines to write")]
    OtherText,
    #[error("it is no file of persistent settings below {}", .0.display())]
    Outside(PathBuf),
    #[error("{} is a symbolic link", .0.display())]
    FolderLink(PathBuf),
    #[error("{}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A fact that can be written and undone. One value of this trait usually serves a family of keys
/// (`sysctl.*`, `nic.*.ring.*`).
///
/// Contract, checked by the conformance test: after `write(key, v)` a `read(key)` gives `v` in the same form
/// (so that the value read back can be compared with `==`); writing the value just read changes nothing; a
/// wrong kind of value or an unknown key is an `Err`, never a panic.
pub trait Setting: Sync {
    /// Value in force now.
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError>;

    /// Puts `value` in force. Returns only when the kernel has taken it.
    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError>;

    /// Says why `value` could not be taken back from. Asked before a change is journalled, not by an undo:
    /// the old value can always be written.
    fn check(&self, _root: &Root, _key: &str, _value: &FactValue) -> Result<(), SettingError> {
        Ok(())
    }

    /// Other keys whose values the write of `key` may move (TSO when checksum offload is switched, the MTU of
    /// an overlay when that of its lower device changes). Their old values are journalled and restored too. A
    /// key that cannot be read on this host is passed over.
    fn related(&self, _key: &str) -> Vec<String> {
        Vec::new()
    }

    /// What makes `value` survive a reboot.
    fn persist(&self, key: &str, value: &FactValue) -> Persist;
}

/// How the lines of a file of settings are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSyntax {
    /// `name = value`, sections in brackets.
    #[default]
    Assign,
    /// `name: value`, of YAML; only in files that are ours alone.
    Colon,
    /// `name value`, sections begin with a line of their own: interfaces(5).
    Stanza,
    /// A name alone: modules-load.d(5).
    Word,
}

/// How a value survives a reboot. All paths are relative to the folder that stands for `/etc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Persist {
    /// One line of a configuration file, which several settings may share.
    File {
        /// Such as `sysctl.d/90-linerate.conf` or `systemd/network/10-linerate-eth0.link`.
        path: PathBuf,
        /// What a new file starts with (a comment, a `[Match]` section); empty for nothing.
        preamble: String,
        /// Line that begins the section of the line: `[Link]`, `iface eth0 inet static`; `None` for files
        /// without sections.
        section: Option<String>,
        /// How lines of the file are written.
        syntax: FileSyntax,
        /// Text before the sign of the line: an older line of the section with the same name is replaced.
        name: String,
        /// The whole line without its line end: `net.ipv4.tcp_sack = 1`.
        line: String,
    },
    /// A oneshot unit of its own: `systemd/system/<name>.service`, enabled by a link in
    /// `multi-user.target.wants`.
    Unit {
        /// Name without `.service`; ASCII letters, digits, `-`, `_`, `.`, `@`.
        name: String,
        /// Text of `Description=`.
        description: String,
        /// One `ExecStart=` line each, absolute program first.
        exec: Vec<String>,
    },
    /// It cannot be made to stay.
    Impossible {
        /// Why, for people.
        reason: String,
    },
}

#[cfg(test)]
pub(crate) mod conformance {
    //! The check that every setting passes.

    use super::{FactValue, Persist, Root, Setting};

    /// Writes `other` to `key`, reads it back, undoes it with the value read before, reads that back, and
    /// looks at what the setting says about persistence. Panics with the reason when the contract is broken.
    pub(crate) fn check(setting: &dyn Setting, root: &Root, key: &str, other: &FactValue) {
        let old = setting.read(root, key).unwrap_or_else(|e| panic!("{key} cannot be read: {e}"));
        assert_ne!(&old, other, "{key}: the check needs a value that differs from the one in force");
        let related: Vec<_> =
            setting.related(key).into_iter().map(|k| (setting.read(root, &k).ok(), k)).collect();
        setting.write(root, key, &old).unwrap_or_else(|e| panic!("{key} refuses its own value {old}: {e}"));
        assert_eq!(setting.read(root, key).as_ref(), Ok(&old), "{key} moved by writing its own value");
        setting.write(root, key, other).unwrap_or_else(|e| panic!("{key} refuses {other}: {e}"));
        assert_eq!(setting.read(root, key).as_ref(), Ok(other), "{key} does not read back");
        setting.write(root, key, &old).unwrap_or_else(|e| panic!("{key} cannot be undone to {old}: {e}"));
        assert_eq!(setting.read(root, key).as_ref(), Ok(&old), "{key} is not back after undo");
        for (before, related_key) in related {
            if let Some(before) = before
                && setting.read(root, &related_key).as_ref() != Ok(&before)
            {
                setting
                    .write(root, &related_key, &before)
                    .unwrap_or_else(|e| panic!("{related_key}, moved by {key}, cannot be put back: {e}"));
            }
        }
        match setting.persist(key, other) {
            Persist::File { path, name, line, .. } => {
                assert!(path.is_relative(), "{key}: {} must be relative to /etc", path.display());
                assert!(line.starts_with(&name), "{key}: line '{line}' does not start with '{name}'");
                assert!(!line.contains('\n'), "{key}: more than one line");
            }
            Persist::Unit { name, exec, .. } => {
                assert!(
                    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b)),
                    "{key}: unit name '{name}'"
                );
                assert!(!exec.is_empty() && exec.iter().all(|e| e.starts_with('/')), "{key}: {exec:?}");
            }
            Persist::Impossible { reason } => assert!(!reason.is_empty(), "{key}: no reason"),
        }
        assert!(setting.read(root, "no.such.key").is_err(), "{key}: an unknown key was read");
    }
}
