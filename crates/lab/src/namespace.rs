//! One machine of the lab: a network namespace held only as an open file of this process, so that nothing of
//! it is left when the process is gone.
//!
//! In: commands for `ip`, `bridge`, `tc` and `nft`, sysctls. Out: their output. It never names a namespace in
//! the file system and never touches the one that the process started in.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linerate_sys::offload::{Ethtool, Features, OffloadSwitch};
use linerate_sys::{netns, spawn};

use crate::error::{LabError, Result};

/// A network namespace with a name for messages.
#[derive(Debug)]
pub struct Namespace {
    /// Name of the machine that it stands for.
    pub name: String,
    file: File,
    ethtool: Ethtool,
}

impl Namespace {
    /// A fresh one with `lo` up and IPv6 off (its own chatter would be unwanted traffic).
    pub fn create(name: &str) -> Result<Self> {
        let file = netns::create().map_err(LabError::at(format!("making a network namespace for {name}")))?;
        let ethtool = netns::run_in(&file, Ethtool::open)
            .and_then(|opened| opened)
            .map_err(LabError::at(format!("opening a socket in {name}")))?;
        let namespace = Self { name: name.into(), file, ethtool };
        namespace.write_sysctl("net.ipv6.conf.all.disable_ipv6", "1").ok();
        namespace.write_sysctl("net.ipv6.conf.default.disable_ipv6", "1").ok();
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Another handle on the same namespace.
    pub fn again(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(LabError::at(format!("opening {} again", self.name)))?;
        let ethtool = self.run(Ethtool::open)?.map_err(self.device_error("its sockets"))?;
        Ok(Self { name: self.name.clone(), file, ethtool })
    }

    /// A path for other processes; good as long as this process lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// The open namespace.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Number of the namespace, as `/proc/PID/ns/net` shows it.
    pub fn inode(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.ino())
    }

    /// Runs `work` on a thread inside.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        netns::run_in(&self.file, work).map_err(LabError::at(format!("entering {}", self.name)))
    }

    /// Runs the lines with `ip -batch`.
    pub fn ip(&self, lines: &str) -> Result<()> {
        self.feed("ip", &["-batch", "-"], lines).map(drop)
    }

    /// Runs the lines with `bridge -batch`.
    pub fn bridge(&self, lines: &str) -> Result<()> {
        self.feed("bridge", &["-batch", "-"], lines).map(drop)
    }

    /// Runs the lines with `tc -batch`.
    pub fn tc(&self, lines: &str) -> Result<()> {
        self.feed("tc", &["-batch", "-"], lines).map(drop)
    }

    /// Runs nftables commands.
    pub fn nft(&self, lines: &str) -> Result<()> {
        self.feed("nft", &["-f", "-"], lines).map(drop)
    }

    /// Runs a program inside and returns what it printed.
    pub fn output(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.feed(program, arguments, "")
    }

    fn feed(&self, program: &str, arguments: &[&str], input: &str) -> Result<String> {
        let shown = || format!("{}: {program} {} <<< {:?}", self.name, arguments.join(" "), input);
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn::in_namespace(&mut command, &self.file);
        let mut child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => missing(program),
            _ => LabError::Kernel { step: shown(), source },
        })?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ended early reports why on its standard error.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().map_err(LabError::at(shown()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LabError::Command { command: shown(), message })
    }

    /// Reads a sysctl; fields separated by one space.
    pub fn read_sysctl(&self, key: &str) -> Result<String> {
        let path = sysctl_path(key);
        let text = self.run(|| std::fs::read_to_string(&path))?;
        let text = text.map_err(LabError::at(format!("{}: reading {key}", self.name)))?;
        Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Writes a sysctl.
    pub fn write_sysctl(&self, key: &str, value: &str) -> Result<()> {
        let path = sysctl_path(key);
        let written = self.run(|| std::fs::write(&path, value))?;
        written.map_err(LabError::at(format!("{}: setting {key} = {value}", self.name)))
    }

    /// Reads an offload switch.
    pub fn offload(&self, device: &str, switch: OffloadSwitch) -> Result<bool> {
        self.ethtool.get(device, switch).map_err(self.device_error(device))
    }

    /// Sets an offload switch.
    pub fn set_offload(&self, device: &str, switch: OffloadSwitch, on: bool) -> Result<()> {
        self.ethtool.set(device, switch, on).map_err(self.device_error(device))
    }

    /// All feature bits of a device.
    pub fn features(&self, device: &str) -> Result<Features> {
        self.ethtool.features(device).map_err(self.device_error(device))
    }

    /// Restores feature bits.
    pub fn restore_features(&self, device: &str, features: &Features) -> Result<()> {
        self.ethtool.restore(device, features).map_err(self.device_error(device))
    }

    /// MTU of a device, bytes.
    pub fn mtu(&self, device: &str) -> Result<u32> {
        self.ethtool.mtu(device).map_err(self.device_error(device))
    }

    /// Sets the speed that a TAP reports.
    pub fn set_speed(&self, device: &str, mbit: u32) -> Result<()> {
        self.ethtool.set_speed(device, mbit).map_err(self.device_error(device))
    }

    fn device_error(&self, device: &str) -> impl FnOnce(io::Error) -> LabError + use<> {
        LabError::at(format!("{}: ethtool request for {device}", self.name))
    }
}

fn sysctl_path(key: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", key.replace('.', "/")))
}

fn missing(program: &str) -> LabError {
    let package = if program == "nft" { "nftables" } else { "iproute2" };
    LabError::MissingProgram { program: program.into(), package }
}

/// Fails with the name of a program of the lab that is not installed.
pub fn check_programs() -> Result<()> {
    for program in ["ip", "bridge", "tc", "nft"] {
        let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Err(missing(program));
        }
    }
    Ok(())
}
