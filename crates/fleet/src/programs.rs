//! The programs of ours that are started or copied: where they lie, and for which machines they are.
//!
//! What comes in: a name or an architecture. What goes out: a path, or the bytes of a node program with their
//! hash. Nothing is copied or started here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

use linerate_input as input;

/// Largest node program that is read, bytes: a debug build has 30 MB.
const PROGRAM_BYTES_MAX: usize = 256 << 20;

/// The word that makes `linerate` the node program, as the first of its arguments. It is that too where it is
/// called by a name that starts with `linerate-node`, such as its copy on a host.
pub const NODE_ROLE: &str = "node";

/// A program of ours that cannot be found.
#[derive(Debug, thiserror::Error)]
#[error("program `{name}` not found at {}\nhint: {hint}, or set {variable} to its path", looked.display())]
pub struct ProgramMissing {
    name: &'static str,
    hint: &'static str,
    variable: &'static str,
    looked: PathBuf,
}

/// Why there is no node program for a machine.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum ProgramError {
    #[error(transparent)]
    Missing(#[from] ProgramMissing),
    #[error(transparent)]
    Unread(#[from] input::InputError),
    #[error("cannot unpack the node program that this one carries: {0}")]
    Packed(#[from] io::Error),
    #[error("its machine is {0}; node programs are for x86_64 and aarch64")]
    Machine(String),
    #[error("its system is {0}; node programs run on Linux")]
    System(String),
    #[error(
        "{} is no program for {machine} (its ELF machine is {elf})\n\
         hint: `cargo xtask node --arch {machine}` builds one",
        path.display()
    )]
    OtherMachine { path: PathBuf, machine: &'static str, elf: u16 },
    #[error(
        "there is no node program for {machine}; looked at {}\n\
         hint: `cargo xtask node --arch {machine}` builds one; LINERATE_NODE_DIR names its folder",
        looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotBuilt { machine: &'static str, looked: Vec<PathBuf> },
}

/// The node program for this machine, as it is started here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnNode {
    /// Its file.
    pub path: PathBuf,
    /// What comes before its arguments: [`NODE_ROLE`] where the file is `linerate` itself.
    pub role: Option<&'static str>,
}

impl OwnNode {
    /// Named by `LINERATE_NODE`, or beside this program, or this program itself.
    pub fn find() -> Result<Self, ProgramMissing> {
        match find("linerate-node", "LINERATE_NODE", "build it (`cargo build -p linerate-node`)") {
            Ok(path) => Ok(Self { path, role: None }),
            Err(_) if is_linerate() => Ok(Self { path: this_program(), role: Some(NODE_ROLE) }),
            Err(missing) => Err(missing),
        }
    }

    /// Completes a command line that starts with the program, or contains it nowhere.
    pub(super) fn complete(&self, argv: &mut Vec<OsString>) {
        if let Some(role) = self.role.filter(|_| argv.first().is_some_and(|first| *first == self.path)) {
            argv.insert(1, role.into());
        }
    }
}

/// Whether this program is `linerate`, which has the node in it; the lab and the judge have not. What was
/// named and is not there is never replaced.
fn is_linerate() -> bool {
    std::env::var_os("LINERATE_NODE").is_none()
        && this_program().file_name().is_some_and(|name| name == "linerate")
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// Path of `linerate-lab`: `LINERATE_LAB`, or beside this program.
pub fn lab_program() -> Result<PathBuf, ProgramMissing> {
    let hint = "install the package linerate-lab; from source `cargo build -p linerate-lab` makes it";
    // What was named and is not there is never replaced.
    let is_named = std::env::var_os("LINERATE_LAB").is_some();
    let elsewhere = || in_path("linerate-lab").filter(|_| !is_named);
    find("linerate-lab", "LINERATE_LAB", hint).or_else(|missing| elsewhere().ok_or(missing))
}

/// Path of `linerate-judge`: `LINERATE_JUDGE`, or beside this program.
pub fn judge_program() -> Result<PathBuf, ProgramMissing> {
    find("linerate-judge", "LINERATE_JUDGE", "build it (`cargo build -p linerate-judge`)")
}

fn find(name: &'static str, variable: &'static str, hint: &'static str) -> Result<PathBuf, ProgramMissing> {
    let path = std::env::var_os(variable).map_or_else(|| beside(name), PathBuf::from);
    if path.is_file() { Ok(path) } else { Err(ProgramMissing { name, hint, variable, looked: path }) }
}

/// A program as a shell finds it.
fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn beside(name: &str) -> PathBuf {
    this_program().with_file_name(name)
}

/// A machine for which node programs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Architecture {
    /// By the words of `uname -s` and `uname -m`.
    pub fn of(system: &str, machine: &str) -> Result<Self, ProgramError> {
        match (system, machine) {
            ("Linux", "x86_64" | "amd64") => Ok(Self::X86_64),
            ("Linux", "aarch64" | "arm64") => Ok(Self::Aarch64),
            ("Linux", other) => Err(ProgramError::Machine(other.to_owned())),
            (other, _) => Err(ProgramError::System(other.to_owned())),
        }
    }

    /// As in `linerate-node-NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The machine that this program runs on.
    fn own() -> Option<Self> {
        Self::of("Linux", std::env::consts::ARCH).ok()
    }
}

// `CARRIED`: machines, and the node programs for them as gzip made them.
include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// The packed node program that this one carries for a machine.
fn carried(machine: Architecture) -> Option<&'static [u8]> {
    CARRIED.iter().find(|(name, _)| *name == machine.name()).map(|(_, packed)| *packed)
}

/// A node program that can be copied.
#[derive(Debug)]
pub struct NodeProgram {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// SHA-256 of them, in lower-case hexadecimal.
    pub hash: String,
    /// Needs the libraries of the host it runs on.
    pub dynamic: bool,
}

impl NodeProgram {
    /// Reads a program; refuses one for another machine.
    fn read(path: &Path, machine: Architecture) -> Result<Self, ProgramError> {
        Self::check(input::bytes(path, PROGRAM_BYTES_MAX)?, path, machine)
    }

    /// Unpacks a program that this one carries.
    fn unpack(packed: &[u8], machine: Architecture) -> Result<Self, ProgramError> {
        let mut bytes = Vec::new();
        GzDecoder::new(packed).take(PROGRAM_BYTES_MAX as u64).read_to_end(&mut bytes)?;
        Self::check(bytes, &this_program(), machine)
    }

    fn check(bytes: Vec<u8>, path: &Path, machine: Architecture) -> Result<Self, ProgramError> {
        if let Some(other) = elf_machine(&bytes).filter(|m| *m != machine.elf()) {
            return Err(ProgramError::OtherMachine {
                path: path.to_owned(),
                machine: machine.name(),
                elf: other,
            });
        }
        let hash = hexadecimal(&Sha256::digest(&bytes));
        let dynamic = elf_interpreted(&bytes);
        Ok(Self { bytes, hash, dynamic })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A node program that others copy to hosts, with what it is checked by there.
#[derive(Debug, Clone, Default)]
pub struct ProgramSource {
    /// Its file on this machine.
    pub path: PathBuf,
    /// SHA-256 of it, in lower-case hexadecimal.
    pub hash: String,
}

impl ProgramSource {
    /// The node program for machines like this one.
    pub fn own() -> Result<Self, ProgramError> {
        Self::of(OwnNode::find()?.path)
    }

    /// A program at this path.
    pub(super) fn of(path: PathBuf) -> Result<Self, ProgramError> {
        let bytes = input::bytes(&path, PROGRAM_BYTES_MAX)?;
        Ok(Self { hash: hexadecimal(&Sha256::digest(&bytes)), path })
    }
}

impl Architecture {
    /// `e_machine` of the System V ABI: `EM_X86_64`, `EM_AARCH64`.
    fn elf(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }
}

/// `e_machine` of a 64-bit little-endian ELF file.
fn elf_machine(bytes: &[u8]) -> Option<u16> {
    let head = bytes.get(..64).filter(|h| h.starts_with(b"\x7fELF\x02\x01"))?;
    Some(u16::from_le_bytes([head[18], head[19]]))
}

/// Whether an ELF file names an interpreter (`PT_INTERP`), which loads libraries of the host.
fn elf_interpreted(bytes: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, length: usize| -> Option<usize> {
        let field = bytes.get(at..at.checked_add(length)?)?;
        field.iter().rev().try_fold(0_usize, |sum, byte| Some((sum << 8) | usize::from(*byte)))
    };
    let table = || -> Option<bool> {
        elf_machine(bytes)?;
        let (offset, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        Some((0..count).any(|index| {
            let at = index.checked_mul(size).and_then(|at| at.checked_add(offset));
            at.and_then(|at| number(at, 4)) == Some(PT_INTERP as usize)
        }))
    };
    table().unwrap_or(false)
}

/// A program for everybody who asks for it, or why there is none.
type Found = Result<Arc<NodeProgram>, Arc<ProgramError>>;

/// Where node programs come from; each is read once.
#[derive(Debug, Default)]
pub struct NodePrograms {
    /// This one instead of those that are looked for.
    only: Option<PathBuf>,
    read: Mutex<BTreeMap<Architecture, Found>>,
}

impl NodePrograms {
    /// The same program for every host.
    #[cfg(any(test, feature = "testing"))]
    pub fn only(path: PathBuf) -> Self {
        Self { only: Some(path), read: Mutex::default() }
    }

    /// The program that runs on this machine.
    pub fn own(&self) -> Result<OwnNode, ProgramMissing> {
        self.only.clone().map_or_else(OwnNode::find, |path| Ok(OwnNode { path, role: None }))
    }

    /// The program for a machine, to be copied.
    pub fn of(&self, machine: Architecture) -> Found {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(machine).or_insert_with(|| self.look(machine).map(Arc::new).map_err(Arc::new)).clone()
    }

    /// A file that was built for it, what this program carries for it, or this program itself.
    fn look(&self, machine: Architecture) -> Result<NodeProgram, ProgramError> {
        let places = self.places(machine);
        if let Some(path) = places.iter().find(|p| p.is_file()) {
            return NodeProgram::read(path, machine);
        }
        if let Some(packed) = carried(machine) {
            return NodeProgram::unpack(packed, machine);
        }
        if Architecture::own() == Some(machine) && is_linerate() {
            return NodeProgram::read(&this_program(), machine);
        }
        Err(ProgramError::NotBuilt { machine: machine.name(), looked: places })
    }

    /// In this order: what was named for this machine, the folder that was named, beside this program.
    fn places(&self, machine: Architecture) -> Vec<PathBuf> {
        if let Some(only) = &self.only {
            return vec![only.clone()];
        }
        let name = format!("linerate-node-{}", machine.name());
        let own = Architecture::own() == Some(machine);
        let named = own.then(|| std::env::var_os("LINERATE_NODE").map(PathBuf::from)).flatten();
        let folder = std::env::var_os("LINERATE_NODE_DIR").map(|folder| Path::new(&folder).join(&name));
        let plain = own.then(|| beside("linerate-node"));
        named.into_iter().chain(folder).chain([beside(&name)]).chain(plain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of an ELF file for a machine, with one program header of a type.
    fn elf(machine: u16, header: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, header);
        bytes
    }

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node");
        std::fs::write(&path, elf(183, 1)).unwrap();
        let error = NodeProgram::read(&path, Architecture::X86_64).unwrap_err().to_string();
        assert!(error.contains("is no program for x86_64") && error.contains("hint: "), "{error}");
        assert!(!NodeProgram::read(&path, Architecture::Aarch64).unwrap().dynamic);
        std::fs::write(&path, elf(183, 3)).unwrap();
        assert!(NodeProgram::read(&path, Architecture::Aarch64).unwrap().dynamic);
    }

    #[test]
    fn cut_and_odd_files_are_no_panic() {
        let whole = elf(62, 3);
        for length in 0..whole.len() {
            let _ = (elf_machine(&whole[..length]), elf_interpreted(&whole[..length]));
        }
        let mut far = whole.clone();
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!elf_interpreted(&far));
        assert_eq!(elf_machine(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn the_hash_is_what_sha256sum_prints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(NodeProgram::read(&path, Architecture::X86_64).unwrap().hash, known);
    }

    #[test]
    fn a_program_that_is_a_fifo_or_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let long = folder.path().join("long");
        std::fs::File::create(&long).unwrap().set_len(PROGRAM_BYTES_MAX as u64 + 1).unwrap();
        for (path, why) in [(&fifo, "is a FIFO"), (&long, "longer than 256 MiB")] {
            for error in [
                ProgramSource::of(path.clone()).unwrap_err(),
                NodeProgram::read(path, Architecture::X86_64).unwrap_err(),
            ] {
                assert!(error.to_string().contains(why), "{error}");
            }
        }
    }

    #[test]
    fn machines_are_known_by_uname() {
        assert_eq!(Architecture::of("Linux", "x86_64").unwrap(), Architecture::X86_64);
        assert_eq!(Architecture::of("Linux", "aarch64").unwrap(), Architecture::Aarch64);
        assert!(
            matches!(Architecture::of("Linux", "riscv64"), Err(ProgramError::Machine(m)) if m == "riscv64")
        );
        assert!(
            matches!(Architecture::of("FreeBSD", "amd64"), Err(ProgramError::System(s)) if s == "FreeBSD")
        );
    }
}
