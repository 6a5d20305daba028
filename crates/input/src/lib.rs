//! Files from outside: inventories, evidence, knowledge, snapshots, cases. A path comes in, at most so many
//! bytes go out.
//!
//! Only regular files are read, and the pipe that the user's own shell made: `/dev/stdin`, `/dev/fd/N`, as in
//! `linerate diagnose <(ssh arc-1 dmesg)`. A named FIFO, a device or a socket is refused before it is opened,
//! so that no command waits for a writer that never comes. So is every file of the kernel: reading it may
//! block, consume or set off something. Those of `/proc` that `linerate diagnose` understands are read. Every
//! file that a user names is read here: a new kind of file needs a limit and a call, nothing else.
#![deny(missing_docs)]

use std::fs::{File, FileType, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use linerate_model::shell;
use rustix::fs::OFlags;

/// Largest file with knowledge: the largest of those that are built in has 8 KiB.
pub const KNOWLEDGE_BYTES_MAX: usize = 1 << 20;
/// Largest file with certificates.
pub const CERTIFICATES_BYTES_MAX: usize = 4 << 20;
/// Largest case file, and largest list of disturbances.
pub const CASE_BYTES_MAX: usize = 64 << 20;
/// Largest snapshot: a survey of a thousand hosts has some 300 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 1 << 30;

/// Filesystems whose files are the kernel's: `f_type` of statfs(2).
const KERNEL_FILESYSTEMS: [u64; 17] = [
    PROC,
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x6265_6570, // configfs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
    0x4249_4e4d, // binfmt_misc
    0x6e66_7364, // nfsd
    0x6759_6969, // rpc_pipefs
    0x0765_5821, // resctrl
    0x1980_0202, // mqueue
];
const PROC: u64 = 0x9fa0;
/// Files of `/proc` that are read: reading one gives all of it and changes nothing.
const PROC_FILES: [&str; 4] = ["diskstats", "drbd", "interrupts", "net/softnet_stat"];

/// A file that is not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {problem}{}{hint}", path.display(), if hint.is_empty() { "" } else { "\nhint: " })]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong: thing, value, limit.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
}

/// All bytes of a file; an error when there are more than `limit`.
pub fn bytes(path: &Path, limit: usize) -> Result<Vec<u8>, InputError> {
    bounded(path, open(path)?, limit)
}

/// The text of a file, without a byte order mark; an error when it has more than `limit` bytes or is no
/// UTF-8.
pub fn text(path: &Path, limit: usize) -> Result<String, InputError> {
    to_text(path, bytes(path, limit)?)
}

/// The text of a file that holds a secret: the user's or root's, and of no use to anyone else.
pub fn private_text(path: &Path, limit: usize) -> Result<String, InputError> {
    let file = open(path)?;
    let meta = file.metadata().map_err(|error| refused(path, error.to_string(), ""))?;
    let owner = meta.uid();
    if (owner != 0 && owner != rustix::process::geteuid().as_raw()) || meta.mode() & 0o077 != 0 {
        let problem = format!(
            "it holds a key, and others may read or write it (owner uid {owner}, mode {:04o})",
            meta.mode() & 0o7777
        );
        let named = shell::word(&path.display().to_string());
        let hint = format!("`chmod 600 {named}` as its owner; if others may have read it, make a new key");
        return Err(refused(path, problem, &hint));
    }
    to_text(path, bounded(path, file, limit)?)
}

/// All bytes of standard input; an error when there are more than `limit`.
pub fn stdin(limit: usize) -> Result<Vec<u8>, InputError> {
    bounded(Path::new("standard input"), std::io::stdin().lock(), limit)
}

/// Bytes as text, without a byte order mark; an error names the line that is no UTF-8.
pub fn to_text(path: &Path, mut bytes: Vec<u8>) -> Result<String, InputError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|byte| *byte == b'\n').count();
        refused(path, format!("line {line} is not UTF-8 text"), "")
    })
}

/// Opens a file from outside for reading, after a look at what it is.
pub fn open(path: &Path) -> Result<File, InputError> {
    let failed = |error: std::io::Error| refused(path, error.to_string(), "");
    let shell_pipe = is_shell_pipe(path);
    check_kind(path, std::fs::metadata(path).map_err(failed)?.file_type(), shell_pipe)?;
    if !shell_pipe {
        let named = path.canonicalize().map_err(failed)?;
        check_filesystem(
            path,
            &named,
            rustix::fs::statfs(path).map_err(|error| failed(error.into()))?.f_type,
        )?;
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).map_err(failed)?;
    // The name may mean another file by now.
    let kind = file.metadata().map_err(failed)?.file_type();
    check_kind(path, kind, shell_pipe)?;
    if !shell_pipe {
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
        check_filesystem(
            path,
            &opened,
            rustix::fs::fstatfs(&file).map_err(|error| failed(error.into()))?.f_type,
        )?;
    }
    if kind.is_fifo() {
        let flags = rustix::fs::fcntl_getfl(&file).map_err(|error| failed(error.into()))?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
    }
    Ok(file)
}

/// A text of someone else as a message may show it: control characters escaped, cut behind 120 characters.
pub fn quoted(text: &str) -> String {
    cut(
        &text.chars().take(QUOTE_CHARS_MAX + 1).flat_map(char::escape_debug).collect::<String>(),
        QUOTE_CHARS_MAX,
    )
}

/// Longest quotation of a value in a message, characters.
const QUOTE_CHARS_MAX: usize = 120;

/// A text of at most `chars` characters, with an ellipsis where more was there.
pub fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn refused(path: &Path, problem: impl Into<String>, hint: impl Into<String>) -> InputError {
    InputError { path: path.to_owned(), problem: problem.into(), hint: hint.into() }
}

/// Whether a path names a descriptor of this process, which the user's shell opened.
fn is_shell_pipe(path: &Path) -> bool {
    let Some(path) = path.to_str() else { return false };
    let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"));
    path == "/dev/stdin"
        || number.is_some_and(|n| !n.is_empty() && n.len() <= 9 && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Refuses a file of the kernel but for those of `/proc` that are read; `named` is its path without links.
fn check_filesystem(path: &Path, named: &Path, kind: impl TryInto<i128>) -> Result<(), InputError> {
    // Its type differs from machine to machine; the numbers have 32 bits.
    let kind = kind.try_into().map_or(0, |kind| (kind & 0xffff_ffff) as u64);
    if !KERNEL_FILESYSTEMS.contains(&kind) || kind == PROC && is_read_of_proc(named) {
        return Ok(());
    }
    let hint = format!("timeout 10 cat {} > input.txt", shell::path(path));
    Err(refused(path, "is a file of the kernel: reading it may block or change something", hint))
}

fn is_read_of_proc(path: &Path) -> bool {
    let Some(name) = path.to_str().and_then(|path| path.strip_prefix("/proc/")) else { return false };
    // `/proc/net` is that of this process.
    let name = match name.split_once('/') {
        Some((pid, rest)) if pid.bytes().all(|b| b.is_ascii_digit()) && rest.starts_with("net/") => rest,
        _ => name,
    };
    PROC_FILES.contains(&name)
}

fn check_kind(path: &Path, kind: FileType, shell_pipe: bool) -> Result<(), InputError> {
    let what = match kind {
        kind if kind.is_file() || kind.is_fifo() && shell_pipe => return Ok(()),
        kind if kind.is_dir() => return Err(refused(path, "is a folder, not a file", "")),
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_block_device() => "a block device",
        _ => "a special file",
    };
    let hint = if kind.is_fifo() {
        format!("timeout 10 cat {} > input.txt", shell::path(path))
    } else {
        String::new()
    };
    Err(refused(path, format!("is {what}, not a regular file"), hint))
}

fn bounded(path: &Path, from: impl Read, limit: usize) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    from.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            refused(path, "has nothing to read now: reading it would block", "")
        }
        _ => refused(path, error.to_string(), ""),
    })?;
    if bytes.len() > limit {
        return Err(refused(path, format!("is longer than {}", size(limit)), ""));
    }
    Ok(bytes)
}

/// `1 MiB`, `4096 bytes`.
fn size(bytes: usize) -> String {
    if bytes > 0 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn fifo(path: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    #[test]
    fn a_file_with_a_secret_is_of_its_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "secret").unwrap();
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)]
        {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            match private_text(&path, 100) {
                Ok(text) => assert!(is_read && text == "secret", "{mode:o}"),
                Err(error) => {
                    assert!(!is_read && error.to_string().contains(&format!("mode {mode:04o}")), "{error}");
                    assert!(!error.to_string().contains("secret"), "{error}");
                }
            }
        }
    }

    #[test]
    fn special_files_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fifo(&path("fifo"));
        std::os::unix::fs::symlink(path("fifo"), path("link")).unwrap();
        let _listener = UnixListener::bind(path("socket")).unwrap();
        for (file, what) in [
            (path("fifo"), "is a FIFO, not a regular file"),
            (path("link"), "is a FIFO, not a regular file"),
            (path("socket"), "is a socket"),
            (PathBuf::from("/dev/zero"), "is a character device"),
            (folder.path().to_owned(), "is a folder"),
            (PathBuf::from("/proc/kmsg"), "/proc/kmsg"),
            (path("absent"), "No such file"),
        ] {
            let error = bytes(&file, 10).unwrap_err().to_string();
            assert!(error.starts_with("cannot read ") && error.contains(what), "{error}");
        }
        assert!(bytes(&path("fifo"), 10).unwrap_err().hint.contains("cat "));
    }

    #[test]
    fn of_the_kernel_only_what_is_understood_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/net/softnet_stat", &link).unwrap();
        for file in ["/proc/interrupts", "/proc/diskstats", "/proc/self/net/softnet_stat"] {
            assert!(text(Path::new(file), 1 << 24).is_ok(), "{file}");
        }
        assert!(!text(&link, 1 << 24).unwrap().is_empty());
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("/proc/sys/vm/stat_refresh", &link).unwrap();
        for file in [
            &link,
            Path::new("/proc/kmsg"),
            Path::new("/proc/version"),
            Path::new("/proc/self/mem"),
            Path::new("/proc/self/environ"),
            Path::new("/proc/self/net/rpc/auth.unix.ip/channel"),
            Path::new("/proc/sys/vm/stat_refresh"),
            Path::new("/sys/kernel/mm/transparent_hugepage/enabled"),
            Path::new("/sys/kernel/debug/tracing/trace_pipe"),
            Path::new("/sys/kernel/tracing/trace_pipe"),
        ] {
            if !file.exists() {
                continue;
            }
            let error = bytes(file, 1 << 24).unwrap_err();
            assert!(error.problem.starts_with("is a file of the kernel"), "{error}");
            assert!(error.hint.starts_with("timeout 10 cat "), "{error}");
        }
        // Another mount of it has the same files under other names.
        assert!(check_filesystem(&link, Path::new("/mnt/proc/drbd"), 0x9fa0_u64).is_err());
        assert!(check_filesystem(&link, Path::new("/proc/drbd"), 0x6265_6572_u64).is_err());
        assert!(check_filesystem(&link, Path::new("/proc/sys/net/drbd"), 0x9fa0_u64).is_err());
    }

    #[test]
    fn the_pipe_of_a_shell_is_read_to_its_end() {
        let (from, mut to) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", from.as_raw_fd()));
        // The writer is there and has not written yet: a read that does not wait would fail.
        let writer = std::thread::spawn(move || {
            use std::io::Write as _;
            to.write_all(&vec![b'a'; 200_000]).unwrap();
        });
        assert_eq!(bytes(&path, 200_000).unwrap().len(), 200_000);
        writer.join().unwrap();
    }

    #[test]
    fn what_is_too_long_or_no_text_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "\u{feff}ab\n").unwrap();
        assert_eq!(text(&path, 6).unwrap(), "ab\n");
        assert!(text(&path, 5).unwrap_err().to_string().contains("longer than 5 bytes"));
        std::fs::write(&path, b"a\nb\n\xff\n").unwrap();
        assert!(text(&path, 10).unwrap_err().to_string().contains("line 3 is not UTF-8"));
        let sparse = File::create(&path).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert!(bytes(&path, 1 << 20).unwrap_err().to_string().contains("longer than 1 MiB"));
    }

    #[test]
    fn quotations_are_short() {
        assert_eq!(quoted("a\nb"), "a\\nb");
        assert_eq!(quoted(&"é".repeat(1 << 20)).chars().count(), QUOTE_CHARS_MAX + 1);
    }
}
