//! Options of a running resource of DRBD: which can be read and changed while it runs, what their values look
//! like, and the program that sets them.
//!
//! In: a name and a value. Out: whether the value is one, and a program with its arguments. Sources:
//! drbd.conf-8.4(5), drbdsetup-8.4(8), and for 9 drbdsetup(8).

use super::check::{StepError, check_name, shown};
use super::drbd::DrbdStep;
use super::operation::{Act, Argv, StepOperation as _, argv};
use crate::fact::FactValue;

/// Where an option stands in a resource file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrbdSection {
    /// `net { … }`: of a connection.
    Net,
    /// `disk { … }`: of a device.
    Disk,
    /// `disk { … }` as well, but in release 9 a matter of a device and a peer.
    PeerDisk,
}

impl DrbdSection {
    /// The word of the file, which keys use too.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Disk | Self::PeerDisk => "disk",
        }
    }
}

/// What values look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrbdForm {
    /// A number between two others.
    Count(i64, i64),
    /// `yes` or `no`.
    Switch,
    /// A number with or without `s` (sectors), `k`, `M` or `G`, as the kernel's tool shows it.
    Size,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A checksum of the kernel, such as `crc32c` or `sha1`, or `none`.
    Digest,
}

/// Word for no checksum, for which DRBD's own program has an empty one.
const NO_DIGEST: &str = "none";

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrbdOption {
    /// Where it stands.
    pub section: DrbdSection,
    /// Its name in files and programs.
    pub name: &'static str,
    /// Its values.
    pub form: DrbdForm,
    /// What it does, for the reference.
    pub describes: &'static str,
}

const fn option(
    section: DrbdSection,
    name: &'static str,
    form: DrbdForm,
    describes: &'static str,
) -> DrbdOption {
    DrbdOption { section, name, form, describes }
}

use DrbdForm::{Count, Digest, Size, Switch, Word};
use DrbdSection::{Disk, Net, PeerDisk};

/// Options that take effect while the resource runs. `sndbuf-size` and `rcvbuf-size` are not among them: the
/// kernel asks for the buffers of its sockets when a connection is made, so that a change while it stands
/// would measure nothing. To leave the peer and connect again within an arm does not help: `drbdadm` of 8.4
/// makes the connection anew from its file, without the value that is tried, and to name all of a connection
/// to `drbdsetup` takes its secret, which is never read. 8.4 sizes them by itself where they are 0, as they
/// are by default.
pub const DRBD_OPTIONS: &[DrbdOption] = &[
    option(
        Net,
        "protocol",
        Word(&["A", "B", "C"]),
        "When a write is done: own disk (A), memory of the peer (B), disk of the peer (C).",
    ),
    option(Net, "max-buffers", Count(32, 131_072), "Pages that the peer may use for writes on their way."),
    option(Net, "max-epoch-size", Count(1, 20_000), "Writes between two barriers of the replication."),
    option(
        Net,
        "unplug-watermark",
        Count(1, 131_072),
        "Requests that wait at the peer before its disk is told to begin.",
    ),
    option(
        Net,
        "data-integrity-alg",
        Digest,
        "Checksum of every block on its way to the peer, which one core of each side computes; none.",
    ),
    option(Net, "tcp-cork", Switch, "Whether small messages wait until a packet is full."),
    option(
        Disk,
        "al-extents",
        Count(67, 65_534),
        "Parts of 4 MiB that may be written without a note on the disk first.",
    ),
    option(
        Disk,
        "al-updates",
        Switch,
        "Whether the activity log is written; without it a crash means a whole synchronisation.",
    ),
    option(Disk, "disk-barrier", Switch, "Whether writes are kept in order by barriers."),
    option(Disk, "disk-flushes", Switch, "Whether writes are kept in order by flushes."),
    option(Disk, "md-flushes", Switch, "Whether metadata are flushed."),
    option(
        PeerDisk,
        "resync-rate",
        Size,
        "Rate of a synchronisation, bytes a second; where c-plan-ahead is 0.",
    ),
    option(
        PeerDisk,
        "c-plan-ahead",
        Count(0, 300),
        "How far the rate of a synchronisation is planned, tenths of a second; 0 for a fixed rate.",
    ),
    option(PeerDisk, "c-max-rate", Size, "Most that a synchronisation may take, bytes a second."),
    option(
        PeerDisk,
        "c-min-rate",
        Size,
        "What a synchronisation gets also while programs write, bytes a second.",
    ),
    option(PeerDisk, "c-fill-target", Size, "Data of a synchronisation that are kept on their way, bytes."),
    option(
        PeerDisk,
        "c-delay-target",
        Count(1, 100),
        "Delay of the peer that a synchronisation aims at, tenths of a second.",
    ),
];

/// The option of this section word and name.
#[must_use]
pub fn drbd_option(section: &str, name: &str) -> Option<&'static DrbdOption> {
    DRBD_OPTIONS.iter().find(|o| o.section.word() == section && o.name == name)
}

/// What an option of a running resource belongs to, by the numbers and addresses that the kernel shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrbdSubject {
    /// A device, by its minor.
    Device(u32),
    /// A connection of 8.4: own address and that of the peer, `ipv4:10.0.0.1:7789`.
    Addresses(String, String),
    /// A connection of 9: resource and number of the peer.
    Peer(String, u32),
    /// A device at a peer of 9: resource, number of the peer, number of the volume.
    PeerVolume(String, u32, u32),
}

impl DrbdOption {
    /// The program that sets it.
    ///
    /// # Errors
    /// The value or a name is none.
    pub fn set(&self, subject: &DrbdSubject, value: &FactValue) -> Result<Argv, StepError> {
        let option = format!("--{}={}", self.name, self.text(value)?);
        let (command, mut words) = match subject {
            DrbdSubject::Device(minor) => ("disk-options", vec![minor.to_string()]),
            DrbdSubject::Addresses(own, peer) => {
                check_address(own)?;
                check_address(peer)?;
                ("net-options", vec![own.clone(), peer.clone()])
            }
            DrbdSubject::Peer(resource, peer) => {
                check_name("the resource", resource)?;
                ("net-options", vec![resource.clone(), peer.to_string()])
            }
            DrbdSubject::PeerVolume(resource, peer, volume) => {
                check_name("the resource", resource)?;
                ("peer-device-options", vec![resource.clone(), peer.to_string(), volume.to_string()])
            }
        };
        words.push(option);
        Ok(argv("drbdsetup", &[command], &words))
    }

    /// A value as a fact has it, from what the program shows.
    #[must_use]
    pub fn shown(&self, text: String) -> String {
        if self.form == Digest && text.is_empty() { NO_DIGEST.to_owned() } else { text }
    }

    /// A value as the program takes it.
    fn text(&self, value: &FactValue) -> Result<String, StepError> {
        let text = value.to_string();
        let good = match self.form {
            Count(least, most) => text.parse::<i64>().is_ok_and(|n| (least..=most).contains(&n)),
            Switch => ["yes", "no"].contains(&text.as_str()),
            Word(words) => words.contains(&text.as_str()),
            Digest if text == NO_DIGEST => return Ok(String::new()),
            Digest => is_digest(&text),
            Size => {
                let digits = text.strip_suffix(['s', 'k', 'M', 'G']).unwrap_or(&text);
                (1..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
            }
        };
        let allowed = match self.form {
            Count(..) => "a number that this option takes",
            Switch => "yes or no",
            Size => "a number with or without s, k, M or G",
            Word(_) => "a word that this option takes",
            Digest => "none, or a checksum such as crc32c or sha1",
        };
        if good { Ok(text) } else { Err(StepError { what: self.name, seen: shown(&text), allowed }) }
    }
}

/// A name as kernels give to their checksums: `md5`, `crc32c-generic`, `hmac(sha1)`. Which of them this
/// kernel has, only it knows; whatever was in force has to be accepted, or it could not be put back.
fn is_digest(text: &str) -> bool {
    (3..=63).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"()-_,".contains(&b))
}

/// `ipv4:10.0.0.1:7789`, `ipv6:[fe80::1]:7789`.
fn check_address(address: &str) -> Result<(), StepError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".:[]%".contains(&b);
    let good = address.len() <= 80
        && address.starts_with(|c: char| c.is_ascii_lowercase())
        && address.bytes().all(plain);
    let what = "the address";
    if good {
        Ok(())
    } else {
        Err(StepError { what, seen: shown(address), allowed: "an address of a connection" })
    }
}

/// The program that shows all options of all running resources, those with their default too.
#[must_use]
pub fn drbd_show() -> Argv {
    argv("drbdsetup", &["show", "--show-defaults"], &[])
}

/// The program that looks for the peer of a resource, or leaves it.
///
/// # Errors
/// The name is none.
pub fn drbd_peer(resource: &str, wanted: bool) -> Result<Argv, StepError> {
    let step = if wanted {
        DrbdStep::Connect { resource: resource.to_owned(), discard: false }
    } else {
        DrbdStep::Disconnect { resource: resource.to_owned() }
    };

    step.check()?;
    match step.act() {
        Act::Run(argv) => Ok(argv),
        Act::Write { .. } | Act::Copy { .. } => {
            Err(StepError { what: "the step", seen: shown(resource), allowed: "one that runs a program" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> FactValue {
        FactValue::Text(text.to_owned())
    }

    #[test]
    fn a_checksum_that_was_in_force_can_be_put_back_whatever_its_name_and_none_is_an_empty_word() {
        let option = drbd_option("net", "data-integrity-alg").unwrap();
        let last =
            |value: &str| option.set(&DrbdSubject::Device(0), &text(value)).map(|argv| argv[3].clone());
        for name in ["md5", "sha512", "crc32c-generic", "blake2b-256", "hmac(sha1)"] {
            assert_eq!(last(name).unwrap(), format!("--data-integrity-alg={name}"));
            assert_eq!(option.shown(name.to_owned()), name);
        }
        assert_eq!(last(&option.shown(String::new())).unwrap(), "--data-integrity-alg=");
        assert!(last("sha1 --x").is_err() && last("SHA1").is_err());
    }

    #[test]
    fn every_option_names_its_program_and_refuses_what_is_no_value() {
        for option in DRBD_OPTIONS {
            assert_eq!(drbd_option(option.section.word(), option.name), Some(option));
            assert!(option.describes.ends_with('.'), "{}", option.name);
            let good = match option.form {
                Count(least, _) => FactValue::Int(least),
                Switch => text("no"),
                Size => text("102400k"),
                Word(words) => text(words[0]),
                Digest => text("sha1"),
            };
            let argv = option.set(&DrbdSubject::Device(0), &good).unwrap();
            assert_eq!(argv[..3], ["drbdsetup", "disk-options", "0"]);
            assert_eq!(argv[3], format!("--{}={good}", option.name));
            for bad in ["", "-1", "7; reboot", "x", "1 2", "--help", "99999999999999999999"] {
                assert!(option.set(&DrbdSubject::Device(0), &text(bad)).is_err(), "{}: {bad}", option.name);
            }
        }
        assert_eq!(drbd_option("net", "shared-secret"), None);
    }

    #[test]
    fn a_connection_is_named_as_its_release_wants_it() {
        let buffers = drbd_option("net", "max-buffers").unwrap();
        let value = FactValue::Int(8000);
        let old = DrbdSubject::Addresses("ipv4:10.0.0.1:7789".into(), "ipv4:10.0.0.2:7789".into());
        let argv = buffers.set(&old, &value).unwrap().join(" ");
        assert_eq!(argv, "drbdsetup net-options ipv4:10.0.0.1:7789 ipv4:10.0.0.2:7789 --max-buffers=8000");
        let new = DrbdSubject::Peer("r0".into(), 1);
        assert_eq!(
            buffers.set(&new, &value).unwrap().join(" "),
            "drbdsetup net-options r0 1 --max-buffers=8000"
        );
        let evil = DrbdSubject::Addresses("-x".into(), "ipv4:10.0.0.2:7789".into());
        assert!(buffers.set(&evil, &value).is_err());
        assert!(buffers.set(&DrbdSubject::Peer("-r".into(), 1), &value).is_err());
        assert_eq!(drbd_peer("r0", false).unwrap(), ["drbdadm", "disconnect", "r0"]);
        assert_eq!(drbd_peer("r0", true).unwrap(), ["drbdadm", "connect", "r0"]);
        assert!(drbd_peer("all", false).is_err());
    }
}
