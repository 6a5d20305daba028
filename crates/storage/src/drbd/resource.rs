//! Resource files: what two sides need to be a resource, in the words of 8.4 or 9.

use std::fmt::Write as _;
use std::net::IpAddr;

use linerate_model::inventory::HostName;
use linerate_model::step::{Contents, StepError};
use schemars::JsonSchema;
use serde::Serialize;

use super::metadata::{DeviceLayout, MetadataLocation};

/// Release of DRBD for which a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Release {
    /// In the kernel since 2.6.33: two hosts.
    #[serde(rename = "8.4")]
    V84,
    /// A module of its own: hosts have numbers.
    #[serde(rename = "9")]
    V9,
}

impl Release {
    /// From what `drbdadm --version` prints: the module counts, not the tools. `0x08040b` is 8.4.11; 0 where
    /// no module is loaded.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.lines().find_map(|line| line.trim().strip_prefix("DRBD_KERNEL_VERSION_CODE=0x"))?;
        match u32::from_str_radix(code.trim(), 16).ok()? >> 16 {
            8 => Some(Self::V84),
            9 => Some(Self::V9),
            _ => None,
        }
    }
}

/// One of the two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReplicaSide {
    /// Name in the inventory.
    pub host: HostName,
    /// What `uname -n` prints there: DRBD finds itself by it.
    pub node_name: String,
    /// Address of the replication.
    pub address: IpAddr,
    /// Path of the data's device.
    pub disk: String,
    /// What is on it.
    pub contents: Contents,
    /// Where metadata go.
    pub meta: MetadataLocation,
}

/// What is wished for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResourceSpec {
    /// Name of the resource.
    pub resource: String,
    /// Release.
    pub release: Release,
    /// Both hosts.
    pub sides: [ReplicaSide; 2],
    /// Host with the good data; without it no side has good data.
    pub from: Option<HostName>,
    /// Number of the device.
    pub minor: u32,
    /// Port of the replication.
    pub port: u16,
    /// `A`, `B` or `C`.
    pub protocol: char,
    /// Most that a synchronisation may take, KiB/s; without it DRBD's own limit of 100 MiB/s.
    pub resync_max_kib_per_s: Option<u64>,
}

/// A filesystem that ends where metadata would begin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{host}: {device} holds a filesystem ({kind}) of {filesystem_bytes} bytes; of the {} bytes of the device \
     {} are left for data beside {} of metadata, so that its end would be overwritten\nhint: {advice}",
    layout.device_bytes, layout.data_bytes, needed
)]
pub struct Overlap {
    /// Host.
    pub host: String,
    /// Path.
    pub device: String,
    /// `ext`, `xfs`.
    pub kind: String,
    /// By its own superblock.
    pub filesystem_bytes: u64,
    /// How the device would be shared.
    pub layout: DeviceLayout,
    /// Size of the metadata.
    pub needed: u64,
    /// What to do.
    pub advice: String,
}

/// Why there is no resource.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetupError {
    /// The device holds at most its metadata.
    #[error(
        "{host}: {device} has {seen} bytes, and the metadata alone take {needed}\nhint: choose a larger device"
    )]
    TooSmall {
        /// Host.
        host: String,
        /// Path.
        device: String,
        /// Size, bytes.
        seen: u64,
        /// Size of the metadata, bytes.
        needed: u64,
    },
    /// The device for metadata is too small.
    #[error(
        "{host}: {device} has {seen} bytes, the metadata take {needed}\nhint: choose a larger device for them"
    )]
    MetadataDevice {
        /// Host.
        host: String,
        /// Path.
        device: String,
        /// Size, bytes.
        seen: u64,
        /// Size of the metadata, bytes.
        needed: u64,
    },
    /// Metadata on what holds something else.
    #[error(
        "{host}: {device} {holds}, which the metadata would overwrite\nhint: choose a device that holds \
         nothing; without --meta-disk the metadata go to the end of the data's own device, where it has free \
         space"
    )]
    MetadataOver {
        /// Host.
        host: String,
        /// Path.
        device: String,
        /// What, as the rest of a sentence.
        holds: String,
    },
    /// A filesystem ends where metadata would begin.
    #[error("{0}")]
    Filesystem(Box<Overlap>),
    /// Data would be overwritten by the first synchronisation.
    #[error(
        "{host}: {device} holds a filesystem ({kind}), which the first synchronisation would overwrite\nhint: if it is the good side, name it with --from {host}; if not, empty the device yourself first (wipefs)"
    )]
    Overwritten {
        /// Host.
        host: String,
        /// Path.
        device: String,
        /// `ext`, `xfs`.
        kind: String,
    },
    /// The target is smaller than the data.
    #[error(
        "{host} has capacity for {seen} bytes, the data of {from} are {needed}\nhint: the device of {host} \
         has to be at least as large"
    )]
    Smaller {
        /// Host.
        host: String,
        /// The good side.
        from: String,
        /// Capacity there, bytes.
        seen: u64,
        /// Of the data, bytes.
        needed: u64,
    },
    /// Not one of both.
    #[error("{seen} is none of the hosts of the resource\nhint: {first} or {second}")]
    From {
        /// What was given.
        seen: String,
        /// Host.
        first: String,
        /// Host.
        second: String,
    },
    /// Both the same.
    #[error("both sides are {seen}\nhint: two hosts with different names and addresses")]
    Same {
        /// Name or address.
        seen: String,
    },
    /// Not A, B or C.
    #[error(
        "`{seen}` is no protocol of DRBD\nhint: C waits for the peer's disk, B for its memory, A for nothing but the own disk"
    )]
    Protocol {
        /// What was given.
        seen: char,
    },
    /// A name that no program may get.
    #[error(transparent)]
    Name(#[from] StepError),
}

fn address(address: IpAddr, port: u16) -> String {
    match address {
        IpAddr::V4(v4) => format!("ipv4 {v4}:{port}"),
        IpAddr::V6(v6) => format!("ipv6 [{v6}]:{port}"),
    }
}

/// The file, the same on both hosts.
#[must_use]
pub fn file_text(spec: &ResourceSpec) -> String {
    let mut text = String::new();
    let mut line = |depth: usize, words: &str| {
        let _ = writeln!(text, "{:width$}{words}", "", width = 4 * depth);
    };
    line(0, &format!("resource {} {{", spec.resource));
    line(1, "net {");
    line(2, &format!("protocol {};", spec.protocol));
    // Without it both sides can never be compared.
    line(2, "verify-alg crc32c;");
    // The defaults of both are below what a fast disk keeps in flight; LINBIT's users' guide, optimising
    // throughput.
    line(2, "max-buffers 8000;");
    line(2, "max-epoch-size 8000;");
    line(1, "}");
    line(1, "disk {");
    // A dead disk is left, and the peer's is used.
    line(2, "on-io-error detach;");
    if let Some(kib) = spec.resync_max_kib_per_s {
        line(2, &format!("c-max-rate {kib}k;"));
    }
    line(1, "}");
    for (number, side) in spec.sides.iter().enumerate() {
        line(1, &format!("on {} {{", side.node_name));
        if spec.release == Release::V9 {
            line(2, &format!("node-id {number};"));
        }
        line(2, &format!("device /dev/drbd{};", spec.minor));
        line(2, &format!("disk {};", side.disk));
        match &side.meta {
            MetadataLocation::Internal => line(2, "meta-disk internal;"),
            MetadataLocation::External { device, .. } => line(2, &format!("meta-disk {device};")),
        }
        line(2, &format!("address {};", address(side.address, spec.port)));
        line(1, "}");
    }
    line(0, "}");
    text
}
