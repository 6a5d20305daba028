//! Device settings by the ethtool ioctl: the classic offload switches, all feature bits (to restore them
//! exactly), the speed of devices that let it be set (TAP), and the MTU.
//!
//! In: a device name in the namespace of the handle. Out: switches. It never decides on a value.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
// linux/ethtool.h
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_SSET: u32 = 0x02;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const BLOCKS_MAX: usize = 8;

/// A switch that one ioctl reads and another one sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffloadSwitch {
    /// Transmit checksums.
    TxChecksum,
    /// Scatter-gather.
    ScatterGather,
    /// TCP segmentation.
    Tso,
    /// Generic segmentation.
    Gso,
    /// Generic receive offload.
    Gro,
}

impl OffloadSwitch {
    fn commands(self) -> (u32, u32) {
        match self {
            Self::TxChecksum => (0x16, 0x17),
            Self::ScatterGather => (0x18, 0x19),
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
        }
    }
}

/// All wanted feature bits of a device, for [`Ethtool::restore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features {
    /// Per block of 32 features: which can be changed, and which are wanted.
    blocks: Vec<(u32, u32)>,
}

/// A socket in one network namespace for ethtool requests.
#[derive(Debug)]
pub struct Ethtool {
    socket: File,
}

#[repr(C)]
struct Value {
    cmd: u32,
    data: u32,
}

#[repr(C)]
struct GetFeatures {
    cmd: u32,
    size: u32,
    /// available, requested, active, never changed
    blocks: [[u32; 4]; BLOCKS_MAX],
}

#[repr(C)]
struct SetFeatures {
    cmd: u32,
    size: u32,
    /// valid, requested
    blocks: [[u32; 2]; BLOCKS_MAX],
}

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct LinkSettings {
    cmd: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    maxtxpkt: u32,
    maxrxpkt: u32,
    speed_hi: u16,
    eth_tp_mdix: u8,
    eth_tp_mdix_ctrl: u8,
    lp_advertising: u32,
    reserved: [u32; 2],
}

impl Ethtool {
    /// A handle on the network namespace of the calling thread; it stays on that namespace when the thread
    /// moves on.
    pub fn open() -> io::Result<Self> {
        // SAFETY: a plain system call; the descriptor is checked before it is owned.
        let descriptor = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and owned by nobody else.
        Ok(Self { socket: unsafe { File::from_raw_fd(descriptor) } })
    }

    /// Reads a switch.
    pub fn get(&self, device: &str, switch: OffloadSwitch) -> io::Result<bool> {
        let mut value = Value { cmd: switch.commands().0, data: 0 };
        self.request(device, &mut value)?;
        Ok(value.data != 0)
    }

    /// Sets a switch.
    pub fn set(&self, device: &str, switch: OffloadSwitch, on: bool) -> io::Result<()> {
        self.request(device, &mut Value { cmd: switch.commands().1, data: u32::from(on) })
    }

    /// All wanted feature bits.
    pub fn features(&self, device: &str) -> io::Result<Features> {
        let mut get =
            GetFeatures { cmd: ETHTOOL_GFEATURES, size: BLOCKS_MAX as u32, blocks: [[0; 4]; BLOCKS_MAX] };
        self.request(device, &mut get)?;
        let count = (get.size as usize).min(BLOCKS_MAX);
        Ok(Features { blocks: get.blocks[..count].iter().map(|b| (b[0] & !b[3], b[1])).collect() })
    }

    /// Makes the feature bits wanted again as they were when [`Self::features`] read them.
    pub fn restore(&self, device: &str, features: &Features) -> io::Result<()> {
        let mut set = SetFeatures {
            cmd: ETHTOOL_SFEATURES,
            size: features.blocks.len() as u32,
            blocks: [[0; 2]; BLOCKS_MAX],
        };
        for (to, (changeable, wanted)) in set.blocks.iter_mut().zip(&features.blocks) {
            *to = [*changeable, *wanted & *changeable];
        }
        self.request(device, &mut set)
    }

    /// Sets the speed that a device reports (TAP devices let it be set).
    pub fn set_speed(&self, device: &str, mbit: u32) -> io::Result<()> {
        let mut link = LinkSettings { cmd: ETHTOOL_GSET, ..LinkSettings::default() };
        self.request(device, &mut link)?;
        link.cmd = ETHTOOL_SSET;
        link.speed = mbit as u16;
        link.speed_hi = (mbit >> 16) as u16;
        self.request(device, &mut link)
    }

    /// MTU of a device, bytes.
    pub fn mtu(&self, device: &str) -> io::Result<u32> {
        let mut request = named(device)?;
        // SAFETY: the request outlives the call, which fills the MTU in.
        if unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFMTU as libc::Ioctl, &raw mut request) }
            < 0
        {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a successful SIOCGIFMTU has filled this member of the union.
        Ok(u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
    }

    fn request<T>(&self, device: &str, data: &mut T) -> io::Result<()> {
        let mut request = named(device)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(data).cast();
        // SAFETY: request and data outlive the call; every T here begins with the command and is as large as
        // the kernel's struct for that command (variable-size ones say their number of blocks).
        if unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// A request for a device.
fn named(device: &str) -> io::Result<libc::ifreq> {
    if device.is_empty() || device.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("device name {device:?}: 1 to 15 bytes wanted"),
        ));
    }
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}
