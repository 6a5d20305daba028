//! The older interface to a network device's driver: ethtool by ioctl. For what ethtool netlink does not have
//! (driver information, hash fields, driver counters) and for kernels without ethtool netlink (before 5.6).
//!
//! In: the name of a device. Out: numbers and names, or the kernel's reason. Buffers are always at least as
//! large as what the kernel writes for their command.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::netlink::u32_at;

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GPFLAGS: u32 = 0x27;
const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_SRXFH: u32 = 0x2a;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;

const SET_STATS: u32 = 1;
const SET_PRIVATE: u32 = 2;
const SET_FEATURES: u32 = 4;
const NAME_BYTES: usize = 32;
/// More names than any driver has.
const NAMES_MAX: usize = 16_384;

/// Which driver runs a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Name of the driver.
    pub name: String,
    /// Its version; often that of the kernel.
    #[serde(default)]
    pub version: String,
    /// Firmware of the device.
    #[serde(default)]
    pub firmware: String,
    /// Address on its bus.
    #[serde(default)]
    pub bus: String,
}

/// State of one feature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// In force.
    pub active: bool,
    /// Can be switched.
    pub changeable: bool,
}

/// A family of numbers that is read by one command and written by another: the names stand for the 32-bit
/// numbers after the command. An empty name is one that is not shown.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    get: u32,
    set: u32,
    names: &'static [&'static str],
}

/// Ring sizes.
pub const RINGS: Numbers = Numbers {
    get: 0x10,
    set: 0x11,
    names: &["rx_max", "rx_mini_max", "rx_jumbo_max", "tx_max", "rx", "rx_mini", "rx_jumbo", "tx"],
};
/// Numbers of queues.
pub const CHANNELS: Numbers = Numbers {
    get: 0x3c,
    set: 0x3d,
    names: &["rx_max", "tx_max", "other_max", "combined_max", "rx", "tx", "other", "combined"],
};
/// Interrupt coalescing.
pub const COALESCE: Numbers = Numbers {
    get: 0x0e,
    set: 0x0f,
    names: &[
        "rx-usecs",
        "rx-frames",
        "rx-usecs-irq",
        "rx-frames-irq",
        "tx-usecs",
        "tx-frames",
        "tx-usecs-irq",
        "tx-frames-irq",
        "stats-block-usecs",
        "adaptive-rx",
        "adaptive-tx",
        "pkt-rate-low",
        "rx-usecs-low",
        "rx-frames-low",
        "tx-usecs-low",
        "tx-frames-low",
        "pkt-rate-high",
        "rx-usecs-high",
        "rx-frames-high",
        "tx-usecs-high",
        "tx-frames-high",
        "sample-interval",
    ],
};
/// Flow control by pause frames.
pub const PAUSE: Numbers = Numbers { get: 0x12, set: 0x13, names: &["autoneg", "rx", "tx"] };

/// `struct ifreq` with a pointer.
#[repr(C)]
struct Request {
    name: [u8; 16],
    data: *mut u8,
    rest: [u8; 16],
}

/// A socket for ioctls in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct EthtoolSocket {
    fd: OwnedFd,
}

impl EthtoolSocket {
    /// Opens one.
    pub fn open() -> io::Result<Self> {
        // SAFETY: plain system call; the result is checked before it becomes an owned descriptor.
        let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is fresh and nobody else owns it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// `buffer` starts with the command and is at least as large as its answer.
    fn call(&self, nic: &str, buffer: &mut [u64]) -> io::Result<()> {
        let mut name = [0; 16];
        if nic.is_empty() || nic.len() >= name.len() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        name[..nic.len()].copy_from_slice(nic.as_bytes());
        let mut request = Request { name, data: buffer.as_mut_ptr().cast(), rest: [0; 16] };
        // SAFETY: the request names a buffer that is aligned, outlives the call and, by the contract of this
        // private function, holds the answer of its command.
        let result = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), libc::SIOCETHTOOL as _, std::ptr::from_mut(&mut request))
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Driver, firmware and bus address.
    pub fn driver(&self, nic: &str) -> io::Result<Driver> {
        let mut buffer = command(ETHTOOL_GDRVINFO, &[], 256);
        self.call(nic, &mut buffer)?;
        let bytes = as_bytes(&buffer);
        let field = |i: usize| text(&bytes[4 + 32 * i..4 + 32 * (i + 1)]);
        Ok(Driver { name: field(0), version: field(1), firmware: field(2), bus: field(3) })
    }

    /// Whether the link negotiates its speed.
    pub fn autoneg(&self, nic: &str) -> io::Result<bool> {
        let mut buffer = command(ETHTOOL_GSET, &[], 64);
        self.call(nic, &mut buffer)?;
        Ok(as_bytes(&buffer)[18] != 0)
    }

    /// A family of numbers.
    pub fn numbers(&self, nic: &str, family: Numbers) -> io::Result<BTreeMap<String, u64>> {
        let buffer = self.raw_numbers(nic, family)?;
        let values = family.names.iter().enumerate().filter(|(_, n)| !n.is_empty());
        Ok(values
            .filter_map(|(i, n)| Some((n.to_string(), u64::from(u32_at(as_bytes(&buffer), 4 * (i + 1))?))))
            .collect())
    }

    fn raw_numbers(&self, nic: &str, family: Numbers) -> io::Result<Vec<u64>> {
        let mut buffer = command(family.get, &[], 4 * (family.names.len() + 1));
        self.call(nic, &mut buffer)?;
        Ok(buffer)
    }

    /// Changes one number of a family and leaves the others.
    pub fn set_number(&self, nic: &str, family: Numbers, name: &str, value: u32) -> io::Result<()> {
        let at = family.names.iter().position(|n| *n == name);
        let at = at.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        let buffer = self.raw_numbers(nic, family)?;
        let mut words: Vec<u32> = words_of(&buffer).skip(1).take(family.names.len()).collect();
        words[at] = value;
        let mut buffer = command(family.set, &words, 4 * (words.len() + 1));
        self.call(nic, &mut buffer)
    }

    /// Names of a string set, in order.
    fn names(&self, nic: &str, set: u32) -> io::Result<Vec<String>> {
        let mut info = command(ETHTOOL_GSSET_INFO, &[0, 1 << set, 0], 32);
        self.call(nic, &mut info)?;
        let count = words_of(&info).nth(4).unwrap_or(0) as usize;
        let has_set = words_of(&info).nth(2).unwrap_or(0) & (1 << set) != 0;
        if !has_set || count == 0 || count > NAMES_MAX {
            return Ok(Vec::new());
        }
        // Twice the space: the number may grow between the two calls, and the kernel does not look at ours.
        let mut buffer = command(ETHTOOL_GSTRINGS, &[set, count as u32], 12 + NAME_BYTES * (2 * count + 64));
        self.call(nic, &mut buffer)?;
        let bytes = as_bytes(&buffer);
        Ok(bytes[12..].chunks_exact(NAME_BYTES).take(count).map(text).collect())
    }

    /// Features by the kernel's names.
    pub fn features(&self, nic: &str) -> io::Result<BTreeMap<String, Feature>> {
        let names = self.names(nic, SET_FEATURES)?;
        let blocks = names.len().div_ceil(32);
        let mut buffer = command(ETHTOOL_GFEATURES, &[blocks as u32], 8 + 16 * (blocks + 4));
        self.call(nic, &mut buffer)?;
        let words: Vec<u32> = words_of(&buffer).skip(2).collect();
        let bit = |i: usize, word: usize| words[4 * (i / 32) + word] & (1 << (i % 32)) != 0;
        Ok(names
            .into_iter()
            .enumerate()
            .filter(|(_, n)| !n.is_empty())
            .map(|(i, n)| (n, Feature { active: bit(i, 2), changeable: bit(i, 0) && !bit(i, 3) }))
            .collect())
    }

    /// Switches features by the kernel's names.
    pub fn set_features(&self, nic: &str, wanted: &[(String, bool)]) -> io::Result<()> {
        let names = self.names(nic, SET_FEATURES)?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 1 + 2 * blocks];
        words[0] = blocks as u32;
        for (name, on) in wanted {
            let at = names.iter().position(|n| n == name);
            let at = at.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
            words[1 + 2 * (at / 32)] |= 1 << (at % 32);
            words[2 + 2 * (at / 32)] |= u32::from(*on) << (at % 32);
        }
        let mut buffer = command(ETHTOOL_SFEATURES, &words, 8 + 8 * (blocks + 4));
        self.call(nic, &mut buffer)
    }

    /// Private flags of the driver.
    pub fn private_flags(&self, nic: &str) -> io::Result<BTreeMap<String, bool>> {
        let names = self.names(nic, SET_PRIVATE)?;
        let mut buffer = command(ETHTOOL_GPFLAGS, &[], 16);
        self.call(nic, &mut buffer)?;
        let flags = words_of(&buffer).nth(1).unwrap_or(0);
        Ok(names.into_iter().take(32).enumerate().map(|(i, n)| (n, flags & (1 << i) != 0)).collect())
    }

    /// Counters of the driver.
    pub fn stats(&self, nic: &str) -> io::Result<Vec<(String, u64)>> {
        let names = self.names(nic, SET_STATS)?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let count = names.len();
        let mut buffer = command(ETHTOOL_GSTATS, &[count as u32], 8 + 8 * (2 * count + 64));
        self.call(nic, &mut buffer)?;
        Ok(names.into_iter().zip(buffer[1..].iter().copied()).collect())
    }

    /// Fields that decide about the receive queue of a flow, in words as ethtool(8) shortens them: `sdfn`.
    pub fn hash_fields(&self, nic: &str, flow: u32) -> io::Result<String> {
        let mut buffer = command(ETHTOOL_GRXFH, &[flow], 512);
        self.call(nic, &mut buffer)?;
        let data = buffer[1];
        Ok(HASH_LETTERS.iter().filter(|(bit, _)| data & (1 << bit) != 0).map(|(_, c)| c).collect())
    }

    /// Lets these fields decide, as letters; none for an empty text.
    pub fn set_hash_fields(&self, nic: &str, flow: u32, letters: &str) -> io::Result<()> {
        let mut buffer = command(ETHTOOL_SRXFH, &[flow], 512);
        buffer[1] = hash_bits(letters).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        self.call(nic, &mut buffer)
    }
}

/// Bits of `struct ethtool_rxnfc` and their letters.
const HASH_LETTERS: [(u64, char); 8] =
    [(1, 'm'), (2, 'v'), (3, 't'), (4, 's'), (5, 'd'), (6, 'f'), (7, 'n'), (31, 'r')];

fn hash_bits(letters: &str) -> Option<u64> {
    letters.chars().try_fold(0, |bits, letter| {
        let (bit, _) = HASH_LETTERS.iter().find(|(_, known)| *known == letter)?;
        Some(bits | 1 << bit)
    })
}

/// A buffer of at least `bytes` bytes, aligned for every structure, that starts with the command and these
/// words.
fn command(command: u32, words: &[u32], bytes: usize) -> Vec<u64> {
    let mut all = vec![command];
    all.extend(words);
    let length = bytes.div_ceil(8).max(all.len().div_ceil(2)) + 1;
    let mut buffer = vec![0; length];
    for (target, pair) in buffer.iter_mut().zip(all.chunks(2)) {
        let mut joined = [0; 8];
        joined[..4].copy_from_slice(&pair[0].to_ne_bytes());
        joined[4..].copy_from_slice(&pair.get(1).copied().unwrap_or(0).to_ne_bytes());
        *target = u64::from_ne_bytes(joined);
    }
    buffer
}

fn as_bytes(buffer: &[u64]) -> &[u8] {
    // SAFETY: every byte of a slice of u64 is initialised and u8 has no alignment.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), size_of_val(buffer)) }
}

fn words_of(buffer: &[u64]) -> impl Iterator<Item = u32> + '_ {
    as_bytes(buffer).chunks_exact(4).filter_map(|c| Some(u32::from_ne_bytes(c.try_into().ok()?)))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_with_its_command() {
        let buffer = command(7, &[8, 9], 20);
        assert_eq!(words_of(&buffer).take(3).collect::<Vec<_>>(), [7, 8, 9]);
        assert!(size_of_val(buffer.as_slice()) >= 20);
    }

    #[test]
    fn letters_are_the_bits_of_the_kernel() {
        assert_eq!(hash_bits("sdfn"), Some(0xf0));
        assert_eq!((hash_bits(""), hash_bits("sx")), (Some(0), None));
    }

    #[test]
    fn the_loopback_answers_or_refuses() {
        let control = EthtoolSocket::open().unwrap();
        let features = control.features("lo").unwrap();
        assert!(features["tx-scatter-gather"].active, "{features:?}");
        assert!(control.numbers("lo", RINGS).is_err());
        assert!(control.driver("a-name-that-is-too-long").is_err());
        assert!(control.stats("lo").is_ok_and(|s| s.is_empty()) || control.stats("lo").is_err());
    }
}
