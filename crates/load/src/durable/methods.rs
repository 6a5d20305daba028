//! How programs write files: the methods, and the calls that ask for durability.
//!
//! In: a file, its content, the calls that ask for durability. Out: nothing, when the kernel has acknowledged
//! all that was asked for.
//!
//! To add a method: one entry in [`METHODS`], and the function that writes when none of those here does.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use linerate_model::durability::{Pattern, PatternRule, Promised};
use linerate_sys::filesystem;

/// Calls that ask for durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    None,
    Data,
    File,
    FileAndFolder,
}

impl Calls {
    fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Data => "+fdatasync",
            Self::File => "+fsync",
            Self::FileAndFolder => "+fsync+folder",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Data => "fdatasync of the file",
            Self::File => "fsync of the file",
            Self::FileAndFolder => "fsync of file and folder",
        }
    }

    /// Makes those that concern the file.
    fn on_file(self, file: &File) -> io::Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Data => file.sync_data(),
            Self::File | Self::FileAndFolder => file.sync_all(),
        }
    }

    /// Makes those that concern the folder.
    fn on_folder(self, folder: &Path) -> io::Result<()> {
        match self {
            Self::FileAndFolder => File::open(folder)?.sync_all(),
            Self::None | Self::Data | Self::File => Ok(()),
        }
    }
}

/// A file that is to be written.
pub(super) struct Target {
    /// Folder of the pattern.
    pub(super) folder: PathBuf,
    /// The file.
    pub(super) file: PathBuf,
    /// A temporary file that replaces it.
    pub(super) temporary: PathBuf,
}

/// A write method.
pub(super) struct Method {
    /// First part of a pattern's name, and of a folder's.
    name: &'static str,
    /// In words.
    doing: &'static str,
    /// What becomes of the files.
    pub(super) shape: PatternRule,
    /// Whether a name is given or moved, so that the folder changes too.
    names: bool,
    /// Calls that it is tried with.
    calls: &'static [Calls],
    write: Write,
}

/// Writes a version; returns when the kernel has acknowledged everything that was asked for.
type Write = fn(&Target, &[u8], Calls) -> io::Result<()>;

/// All methods.
pub(super) static METHODS: &[Method] = &[
    // What an editor, a compiler or a data node does.
    Method {
        name: "create",
        doing: "new file, write, close",
        shape: PatternRule::Fresh,
        names: true,
        calls: &[Calls::None, Calls::File, Calls::FileAndFolder],
        write: create,
    },
    // What mail servers and object stores do.
    Method {
        name: "new-name",
        doing: "temporary file, rename to a name that is new",
        shape: PatternRule::Fresh,
        names: true,
        calls: &[Calls::None, Calls::File, Calls::FileAndFolder],
        write: rename,
    },
    // What logs and journals of databases do.
    Method {
        name: "append",
        doing: "a record at the end of a file",
        shape: PatternRule::Grown,
        names: false,
        calls: &[Calls::None, Calls::Data, Calls::File],
        write: |target, content, calls| into(options().append(true), target, content, calls),
    },
    // What databases and images of virtual machines do.
    Method {
        name: "overwrite",
        doing: "write over the old data where they are",
        shape: PatternRule::InPlace,
        names: false,
        calls: &[Calls::None, Calls::Data, Calls::File],
        write: |target, content, calls| into(options().write(true), target, content, calls),
    },
    // What a shell does with `>`, and careless programs with their configuration.
    Method {
        name: "truncate",
        doing: "make the file empty and write it again",
        shape: PatternRule::Truncated,
        names: false,
        calls: &[Calls::None, Calls::File],
        write: |target, content, calls| into(options().write(true).truncate(true), target, content, calls),
    },
    // What most programs do with their configuration and state.
    Method {
        name: "replace",
        doing: "temporary file, rename over the old one",
        shape: PatternRule::Replaced,
        names: true,
        calls: &[Calls::None, Calls::File, Calls::FileAndFolder],
        write: rename,
    },
];

fn create(target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
    new_file(&target.file, content, calls)?;
    calls.on_folder(&target.folder)
}

fn rename(target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
    temporary_file(&target.temporary, content, calls)?;
    std::fs::rename(&target.temporary, &target.file)?;
    calls.on_folder(&target.folder)
}

/// Writes into a file that is there.
fn into(options: &OpenOptions, target: &Target, content: &[u8], calls: Calls) -> io::Result<()> {
    let mut file = options.open(&target.file)?;
    file.write_all(content)?;
    calls.on_file(&file)
}

/// A method with its calls.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    pub(super) method: &'static Method,
    pub(super) calls: Calls,
}

impl Tried {
    /// All, in the order of a table.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        METHODS.iter().flat_map(|method| method.calls.iter().map(|calls| Self { method, calls: *calls }))
    }

    /// The pattern of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::all().find(|tried| tried.name() == name)
    }

    /// Name of the pattern, and of its folder.
    pub(super) fn name(self) -> String {
        format!("{}{}", self.method.name, self.calls.suffix())
    }

    /// The pattern as it is reported.
    pub(super) fn pattern(self) -> Pattern {
        let promised = match self.calls {
            Calls::None => Promised::Nothing,
            Calls::Data | Calls::File if self.method.names => Promised::Content,
            Calls::Data | Calls::File | Calls::FileAndFolder => Promised::All,
        };
        Pattern {
            name: self.name(),
            doing: self.method.doing.to_owned(),
            calls: self.calls.words().to_owned(),
            shape: self.method.shape,
            promised,
        }
    }

    pub(super) fn write(self, target: &Target, content: &[u8]) -> io::Result<()> {
        (self.method.write)(target, content, self.calls)
    }
}

/// Options that never follow a link that another user put there.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(filesystem::NO_FOLLOW);
    options
}

/// A file that must not be there yet.
pub(super) fn new_file(path: &Path, content: &[u8], calls: Calls) -> io::Result<()> {
    let mut file = options().write(true).create_new(true).open(path)?;
    file.write_all(content)?;
    calls.on_file(&file)
}

/// A temporary file: one that an earlier end left behind is written anew.
fn temporary_file(path: &Path, content: &[u8], calls: Calls) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    new_file(path, content, calls)
}
