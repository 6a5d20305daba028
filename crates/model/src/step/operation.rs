//! What all kinds of steps implement, and its vocabulary: what a step does, needs, leaves behind and is known
//! by.

use super::check::StepError;

/// A program and its arguments, as they are given to the kernel.
pub type Argv = Vec<String>;

/// What a step does to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Runs a program.
    Run(Argv),
    /// Writes a file; what was there before goes into the journal.
    Write {
        /// Absolute.
        path: String,
        /// All of it.
        text: String,
        /// Whether it can be run.
        is_program: bool,
    },
    /// Copies the program that does the step.
    Copy {
        /// Absolute; nothing else is there before.
        path: String,
        /// SHA-256 of the program, hexadecimal.
        sha256: String,
    },
}

/// What has to be true of a device before a step may touch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// It holds nothing at all.
    Empty {
        /// Path of the device.
        device: String,
    },
    /// A volume that the steps before made: it is not in use, and still holds nothing.
    Volume {
        /// Path of the device.
        device: String,
    },
    /// The filesystem at its beginning ends before this byte.
    Shrunk {
        /// Path of the device.
        device: String,
        /// Bytes that the filesystem may have.
        filesystem_max_bytes: u64,
    },
    /// There is no file of this name, or one with just this text: somebody else's is not replaced.
    NoOtherFile {
        /// Absolute.
        path: String,
        /// What the step writes.
        text: String,
    },
    /// There is nothing of this name, or just this program.
    NoOtherProgram {
        /// Absolute.
        path: String,
        /// SHA-256 of the program, hexadecimal.
        sha256: String,
    },
}

/// What a step leaves on devices that held nothing before, and that no command takes away: filled with zeros
/// when the step is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clear {
    /// The beginning of devices, where volume managers and arrays keep what they know.
    Head {
        /// Paths.
        devices: Vec<String>,
        /// How much of each.
        bytes: u64,
    },
    /// What `mkfs.xfs` writes all over a device: headers of its allocation groups, and the log.
    Xfs {
        /// Path.
        device: String,
    },
    /// What `mkfs.ext4` writes all over a device: its superblocks and tables, the journal and the first
    /// directories.
    Ext {
        /// Path.
        device: String,
    },
}

/// What is looked at before a step is undone: nothing may stand there that the build did not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains {
    /// A volume that the step made: once the steps behind it are undone, it holds nothing.
    Volume {
        /// Path.
        device: String,
        /// What fails when there is no such volume any more, where a program knows.
        listed: Option<Argv>,
        /// What makes a volume visible that is not active.
        activate: Argv,
    },
    /// A group, in which no volume of others may be.
    Group {
        /// Its name.
        name: String,
        /// What prints the names of its volumes.
        list: Argv,
    },
}

/// Where a step leaves an identifier that it has made for its devices alone. Names of devices change over a
/// reboot, and drives are exchanged: before a step is taken back, what stands there is compared with what
/// stood there right after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Paths.
    pub devices: Vec<String>,
    /// Byte on each device.
    pub at: u64,
    /// That byte counts from the begin of the last whole 4 KiB.
    pub in_last_page: bool,
    /// Length, bytes.
    pub bytes: usize,
    /// Beginnings of the marks that the step itself leaves, in the words of the guard.
    pub marks: &'static [&'static str],
    /// How such a mark is known where the step was killed before the journal had its identifier.
    pub own: Own,
}

/// What tells the mark of a step from one that others left since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// The name that the step gives stands at this byte: behind `HOST:` or alone, cut to fit, and ended by a
    /// zero byte.
    Named {
        /// Byte on the device.
        at: u64,
        /// Length with the zero byte at its end.
        bytes: usize,
        /// Name.
        name: String,
    },
    /// Nothing does. The first bytes of the device are zeros but for these ranges (start and end, multiples
    /// of 512), so that nothing is lost with it.
    Alone {
        /// Where the step writes.
        ranges: &'static [(u64, u64)],
        /// How much of the device.
        bytes: u64,
    },
    /// Nothing does.
    Any,
}

/// A command that lists things of a kind on a host, and the names of those that a step made. An undo that was
/// killed may have removed them before its journal said so: a step none of whose names is listed has nothing
/// left to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Program and arguments. It only reads, and succeeds when there is nothing to list.
    pub argv: Argv,
    /// Words of its output.
    pub names: Vec<String>,
}

impl Listing {
    /// Whether the output of the command has one of the names.
    #[must_use]
    pub fn is_in(&self, output: &str) -> bool {
        output.split_whitespace().any(|word| self.names.iter().any(|name| name == word))
    }
}

impl Clear {
    /// In plain words, without a stop.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::Head { devices, bytes } => {
                format!("zeros into the first {} MiB of {} drives", bytes >> 20, devices.len())
            }
            Self::Xfs { device } => format!("zeros over what mkfs.xfs wrote on {device}"),
            Self::Ext { device } => format!("zeros over what mkfs.ext4 wrote on {device}"),
        }
    }
}

/// What all kinds of steps can say of themselves.
pub trait StepOperation {
    /// In plain words, without a stop.
    fn says(&self) -> String;
    /// What it does.
    fn act(&self) -> Act;
    /// Commands that take it back, in order. None for a step that leaves nothing behind. A file is put back
    /// without a command.
    fn undo(&self) -> Vec<Argv>;
    /// What is filled with zeros when all of these commands went well.
    fn clear(&self) -> Vec<Clear> {
        Vec::new()
    }
    /// What may stand on what it made.
    fn remains(&self) -> Vec<Remains> {
        Vec::new()
    }
    /// Where it leaves an identifier of its own.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
    /// Path of the device that it makes, which is gone when it is taken back.
    fn makes(&self) -> Option<String> {
        None
    }
    /// Which command of the host lists what it made.
    fn listing(&self) -> Option<Listing> {
        None
    }
    /// Whether what it makes may be on the host before it, just as it makes it: then it is left when the step
    /// is undone.
    fn may_be_there(&self) -> bool {
        false
    }
    /// What has to be true before.
    fn needs(&self) -> Vec<Need>;
    /// Whether all names in it are names and nothing else.
    ///
    /// # Errors
    /// The first one that is not.
    fn check(&self) -> Result<(), StepError>;
}

/// The words of a command.
pub(super) fn argv(program: &str, arguments: &[&str], rest: &[String]) -> Argv {
    let first = std::iter::once(program).chain(arguments.iter().copied()).map(str::to_owned);
    first.chain(rest.iter().cloned()).collect()
}
