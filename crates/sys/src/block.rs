//! Files and block devices opened for measuring: direct I/O, exclusive, unnamed; and their properties.
//!
//! In: paths and open files. Out: open files, sizes, free space. It never overwrites and never removes a file
//! that has a name.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// `BLKROGET` of linux/fs.h: whether the device is read-only.
const BLKROGET: libc::c_ulong = 0x125e;
/// `BLKGETSIZE64` of linux/fs.h for 64-bit systems.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;
/// `LOOP_GET_STATUS64` of linux/loop.h, and the length of its `struct loop_info64` in words.
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
const LOOP_INFO_WORDS: usize = 29;

/// How a file is opened.
// Flags of open(2): each is by itself, and most calls want one or two.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct How {
    /// Also for writing.
    pub write: bool,
    /// Around the cache (`O_DIRECT`).
    pub direct: bool,
    /// Every write is safe when it ends (`O_DSYNC`).
    pub safe: bool,
    /// A block device, exclusive within the kernel (`O_EXCL`).
    pub alone: bool,
}

/// Opens an existing file; never creates, truncates or blocks (a pipe, a drive without a disc).
pub fn open(path: &Path, how: How) -> io::Result<File> {
    open_with(path, how, libc::O_NONBLOCK)
}

fn open_with(path: &Path, how: How, more: libc::c_int) -> io::Result<File> {
    let flag = |wanted: bool, flag: libc::c_int| if wanted { flag } else { 0 };
    let flags = flag(how.direct, libc::O_DIRECT)
        | flag(how.safe, libc::O_DSYNC)
        | flag(how.alone, libc::O_EXCL)
        | more
        | libc::O_NOCTTY;
    OpenOptions::new().read(true).write(how.write).custom_flags(flags).open(path)
}

/// The same file once more, in another way: through its entry in `/proc`, for it may have no name. Requests
/// to it wait as usual: io_uring takes `O_NONBLOCK` of a file for a spec that no request waits, and arrays of
/// md and LVM then refuse those that have to (`EAGAIN`).
pub fn reopen(file: &File, how: How) -> io::Result<File> {
    open_with(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), how, 0)
}

/// A new file without a name in a folder (`O_TMPFILE`): it is gone when the last program that has it open is.
/// `Unsupported` where the file system cannot do that.
pub fn nameless(folder: &Path) -> io::Result<File> {
    let opened =
        OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder);
    opened.map_err(|error| match error.raw_os_error() {
        // Linux before 3.11 says EISDIR, file systems without it EOPNOTSUPP.
        Some(libc::EISDIR | libc::EOPNOTSUPP) => io::ErrorKind::Unsupported.into(),
        _ => error,
    })
}

/// Allocates the space of a file ahead of its content; does nothing where the file system cannot.
pub fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open; the arguments are numbers.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => Ok(()),
        error => Err(error),
    }
}

/// Lets the kernel forget what it keeps of a file in its cache, as far as it is on the disk.
pub fn forget(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the arguments are numbers.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// A file system, as far as it matters for a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// All of its bytes.
    pub size_bytes: u64,
    /// Bytes that are free for everybody.
    pub free_bytes: u64,
    /// It is memory: tmpfs, ramfs, hugetlbfs.
    pub is_memory: bool,
}

/// The file system of an open file.
pub fn filesystem(file: &File) -> io::Result<FileSystem> {
    // linux/magic.h.
    const MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
    // SAFETY: all zero bytes are a valid statfs, and the call fills it.
    let (result, stat) = unsafe {
        let mut stat: libc::statfs = zeroed();
        (libc::fstatfs(file.as_raw_fd(), &raw mut stat), stat)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // The type of the numbers differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    let size_bytes = (stat.f_blocks as u64).saturating_mul(stat.f_bsize as u64);
    #[allow(clippy::unnecessary_cast)]
    let free_bytes = (stat.f_bavail as u64).saturating_mul(stat.f_bsize as u64);
    #[allow(clippy::unnecessary_cast)]
    let is_memory = MEMORY.contains(&(stat.f_type as i64));
    Ok(FileSystem { size_bytes, free_bytes, is_memory })
}

/// Size of an open block device, bytes.
pub fn size(device: &File) -> io::Result<u64> {
    let mut bytes = 0_u64;
    // SAFETY: the call writes eight bytes, which `bytes` has.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64 as _, &raw mut bytes) };
    if result == 0 { Ok(bytes) } else { Err(io::Error::last_os_error()) }
}

/// Whether an open block device cannot be written.
pub fn is_read_only(device: &File) -> io::Result<bool> {
    let mut answer: libc::c_int = 0;
    // SAFETY: the call writes one int.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), BLKROGET as _, &raw mut answer) };
    if result == 0 { Ok(answer != 0) } else { Err(io::Error::last_os_error()) }
}

/// Which block device an open loop device stands on, whatever the path of that was; `None` where it stands on
/// a file, or on nothing.
pub fn below_loop(device: &File) -> io::Result<Option<Number>> {
    let mut info = [0_u64; LOOP_INFO_WORDS];
    // SAFETY: the call writes one `struct loop_info64`, as long as `info`.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    match (result, io::Error::last_os_error()) {
        // `lo_rdevice` is the third word, 0 for a file, in the form of `new_encode_dev()`.
        (0, _) => Ok(Some(info[2]).filter(|device| *device != 0).map(decoded)),
        (_, error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        (_, error) => Err(error),
    }
}

fn decoded(device: u64) -> Number {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    Number { major: major as u32, minor: minor as u32 }
}

/// A major and a minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// Driver.
    pub major: u32,
    /// Device of the driver.
    pub minor: u32,
}

impl std::str::FromStr for Number {
    type Err = ();

    /// `8:16`, as the kernel writes it.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(|_| ())?, minor: minor.parse().map_err(|_| ())? })
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

fn number(device: u64) -> Number {
    Number { major: libc::major(device), minor: libc::minor(device) }
}

/// What an open file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file, on the device of this number (which has no driver for file systems without one).
    File(Number),
    /// A folder.
    Folder(Number),
    /// A block device of this number.
    Device(Number),
    /// Anything else.
    Other,
}

/// What is behind a path; links are followed.
pub fn kind(path: &Path) -> io::Result<FileKind> {
    Ok(kind_of(&std::fs::metadata(path)?))
}

/// What an open file is.
pub fn kind_of(meta: &std::fs::Metadata) -> FileKind {
    match meta.mode() & libc::S_IFMT {
        libc::S_IFREG => FileKind::File(number(meta.dev())),
        libc::S_IFDIR => FileKind::Folder(number(meta.dev())),
        libc::S_IFBLK => FileKind::Device(number(meta.rdev())),
        _ => FileKind::Other,
    }
}

/// What a path leads to, by its type and number alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceNode {
    /// A block device.
    Block(Number),
    /// A character device.
    Character(Number),
    /// A file of the kernel that is in no file system: io_uring, epoll, eventfd.
    Anonymous,
    /// A file, a folder, a socket, a pipe.
    Other,
}

/// What is behind a path, links followed, as this host knows it: no server of a network file system is
/// queried, because one that is gone would block the caller (`AT_STATX_DONT_SYNC`).
pub fn node(path: &Path) -> io::Result<DeviceNode> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    // SAFETY: all zero bytes are a valid statx, the path ends with a zero byte, and the call fills the rest.
    let (result, stat) = unsafe {
        let mut stat: libc::statx = zeroed();
        let flags = libc::AT_STATX_DONT_SYNC;
        let result = libc::syscall(
            libc::SYS_statx,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            libc::STATX_TYPE,
            &raw mut stat,
        );
        (result, stat)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let number = Number { major: stat.stx_rdev_major, minor: stat.stx_rdev_minor };
    Ok(match libc::mode_t::from(stat.stx_mode) & libc::S_IFMT {
        libc::S_IFBLK => DeviceNode::Block(number),
        libc::S_IFCHR => DeviceNode::Character(number),
        0 => DeviceNode::Anonymous,
        _ => DeviceNode::Other,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::FromRawFd;

    use super::*;

    #[test]
    fn a_nameless_file_leaves_nothing_behind() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut file = match nameless(folder.path()) {
            Ok(file) => file,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Unsupported);
                println!("SKIPPED a_nameless_file_leaves_nothing_behind: no O_TMPFILE on this file system");
                return;
            }
        };
        reserve(&file, 8192).unwrap();
        file.write_all(b"something").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let again = reopen(&file, How { write: true, safe: true, ..How::default() }).unwrap();
        assert_eq!(again.metadata().unwrap().ino(), file.metadata().unwrap().ino());
        forget(&file).unwrap();
        assert!(filesystem(&file).unwrap().free_bytes > 0);
        assert!(matches!(kind_of(&file.metadata().unwrap()), FileKind::File(_)));
        assert!(size(&file).is_err() && is_read_only(&file).is_err(), "it is no device");
        assert!(below_loop(&file).is_err(), "it is no loop device");
        // (8:16), and a minor number of more than eight bits.
        assert_eq!(decoded(0x810), Number { major: 8, minor: 16 });
        assert_eq!(decoded(0x0010_0705), Number { major: 7, minor: 0x105 });
    }

    #[test]
    fn opening_never_creates_and_never_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");
        assert_eq!(
            open(&path, How { write: true, ..How::default() }).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(!path.exists());
        assert_eq!(kind(Path::new("/dev/null")).unwrap(), FileKind::Other);
        assert!(matches!(kind(folder.path()).unwrap(), FileKind::Folder(_)));
        assert_eq!(Number { major: 8, minor: 16 }.to_string(), "8:16");
        assert_eq!("8:16\n".parse(), Ok(Number { major: 8, minor: 16 }));
        assert!(["", "8", "8:", ":16", "8:16:1", "-1:2"].iter().all(|bad| bad.parse::<Number>().is_err()));
    }

    #[test]
    fn a_path_is_known_by_its_type_and_number() {
        let full = Number { major: 1, minor: 7 };
        assert_eq!(node(Path::new("/dev/full")).unwrap(), DeviceNode::Character(full));
        assert_eq!(node(Path::new("/")).unwrap(), DeviceNode::Other);
        assert_eq!(node(Path::new("/nonexistent")).unwrap_err().kind(), io::ErrorKind::NotFound);
        // SAFETY: a plain call without pointers; the descriptor is owned from here on.
        let event = unsafe { std::os::fd::OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let path = format!("/proc/self/fd/{}", event.as_raw_fd());
        assert_eq!(node(Path::new(&path)).unwrap(), DeviceNode::Anonymous);
    }
}
