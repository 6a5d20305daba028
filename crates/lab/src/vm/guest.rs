//! One emulated machine: its qemu, its drives, its console; power on and power cut.
//!
//! In: a plan, an image, the sockets of drives and of the network. Out: a running guest. Its qemu is killed
//! by number, and with the lab.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::spawn;

use super::console::Console;
use super::disk::{Drive, Keep, NbdServer};
use super::image::Image;
use super::power;
use super::switch::Port;
use super::topology::GuestPlan;
use crate::error::{LabError, Result};

/// Programs of the host, with their packages.
pub(super) const NEEDED: &[(&str, &str)] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
];

/// What all machines have: no hardware virtualisation, no defaults, one controller for all drives. The CPU is
/// the oldest one with the instructions for CRC-32C: page tables of five levels and the registers of newer
/// ones cost a third more at every switch between programs, and no test needs them.
const MACHINE: &str = "-accel tcg,thread=multi -machine q35 -cpu Nehalem -smp 1 -nodefaults -no-user-config -display none -no-reboot \
     -serial stdio -device virtio-rng-pci -device virtio-scsi-pci,id=scsi";
/// For the kernel: a panic ends the guest, drives are scanned one by one (see `init.sh`), NICs keep the names
/// of the kernel, nothing is spent on attacks from inside, and a timer that is late on a busy machine is no
/// broken one.
const COMMAND_LINE: &str =
    "console=ttyS0 loglevel=4 panic=-1 scsi_mod.scan=manual net.ifnames=0 mitigations=off no_timer_check";
/// For the kernel of a guest with systemd: nothing on the console but what the lab waits for, and no waits
/// for grace periods: a service costs dozens.
const QUIET: &str = " quiet systemd.show_status=0 rcupdate.rcu_expedited=1";

/// The file with the table of frequencies and idle states, for guests with systemd: a driver of idle states
/// costs the others a part of their CPU.
const POWER: &str = "power.aml";

/// A guest boots in seconds; a machine that is busy with other things makes it many times longer.
pub(super) const BOOT_WITHIN: Duration = Duration::from_secs(600);
const MONITOR_WITHIN: Duration = Duration::from_secs(120);
/// Longest answer of the monitor, bytes.
const ANSWER_MAX: usize = 64 * 1024;

/// A machine, on or off.
#[derive(Debug)]
pub struct Guest {
    /// What it was made from.
    pub plan: GuestPlan,
    /// Address in the network of the guests.
    pub address: Ipv4Addr,
    /// Its drives, in the order in which it sees them.
    pub drives: Vec<Arc<Drive>>,
    server: NbdServer,
    folder: PathBuf,
    machine: Option<Machine>,
}

/// What is there while it is on.
#[derive(Debug)]
struct Machine {
    qemu: Child,
    console: Console,
    errors: PathBuf,
}

/// What only the lab knows about a guest.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) image: &'a Image,
    pub(super) port: &'a Port,
    /// Names with addresses of all guests: `one:10.79.0.1,two:10.79.0.2`.
    pub(super) hosts: &'a str,
    /// Public key that may log in.
    pub(super) key: &'a str,
}

impl Guest {
    /// Makes its drives in a folder of its own. It stays off.
    pub(super) fn create(plan: &GuestPlan, address: Ipv4Addr, folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder).map_err(LabError::at(format!("making {}", folder.display())))?;
        let make = |d: super::topology::DrivePlan| {
            let file = folder.join(format!("{}.drive", d.name));
            Drive::create(&d.name, d.size_bytes, d.behaviour, &file).map(Arc::new)
        };
        let drives = plan.drives().into_iter().map(make).collect::<Result<Vec<_>>>()?;
        let server = NbdServer::start(&drives, &folder.join("drives.sock"))?;
        Ok(Self { plan: plan.clone(), address, drives, server, folder, machine: None })
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.machine.is_some()
    }

    /// The drive of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn drive(&self, name: &str) -> Result<&Arc<Drive>> {
        self.drives.iter().find(|d| d.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.drives.iter().map(|d| d.name.as_str()).collect();
            LabError::Unknown(format!(
                "no drive {name:?} in guest {}\nhint: there are {}",
                self.plan.name,
                names.join(", ")
            ))
        })
    }

    /// Powers it on; [`Self::ready`] waits until it is up.
    pub(super) fn switch_on(&mut self, around: &Surroundings<'_>) -> Result<()> {
        if self.machine.is_some() {
            return Err(LabError::Unknown(format!("guest {} is on already", self.plan.name)));
        }
        let step = || format!("starting qemu for guest {}", self.plan.name);
        let errors = self.folder.join("qemu.log");
        if around.image.root.is_some() {
            std::fs::write(self.folder.join(POWER), power::table()).map_err(LabError::at(step()))?;
        }
        // Left by the qemu before, which was killed.
        for path in [&around.port.guest, &self.folder.join("monitor.sock")] {
            let _ = std::fs::remove_file(path);
        }
        let mut command = Command::new(NEEDED[0].0);
        command.args(self.arguments(around)).stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&errors).map_err(LabError::at(step()))?);
        spawn::killed_with_parent(&mut command);
        spawn::without_inherited_descriptors(&mut command);
        let mut qemu = command.spawn().map_err(LabError::at(step()))?;
        let recorded = std::fs::write(self.folder.join("qemu.pid"), format!("{}\n", qemu.id()));
        let console = match (recorded, qemu.stdout.take()) {
            (Ok(()), Some(output)) => Console::read(output, &self.folder.join("console.log")),
            (Err(error), _) => Err(LabError::Kernel { step: step(), source: error }),
            (_, None) => Err(LabError::Unknown(format!("{}: no output", step()))),
        };
        match console {
            Ok(console) => self.machine = Some(Machine { qemu, console, errors }),
            Err(error) => {
                let _ = qemu.kill();
                let _ = qemu.wait();
                return Err(error);
            }
        }
        Ok(())
    }

    fn arguments(&self, around: &Surroundings<'_>) -> Vec<String> {
        let name = &self.plan.name;
        let mut arguments: Vec<String> = MACHINE.split_ascii_whitespace().map(str::to_owned).collect();
        let quiet = if around.image.root.is_some() { QUIET } else { "" };
        let mut put = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        put("-name", name.clone());
        put("-m", self.plan.memory_mib.to_string());
        put("-kernel", around.image.kernel.display().to_string());
        put("-initrd", around.image.initramfs.display().to_string());
        put(
            "-append",
            format!(
                "{COMMAND_LINE}{quiet} linerate.drives={} linerate.name={name} linerate.address={} linerate.hosts={} linerate.key={}",
                self.drives.len(),
                self.address,
                around.hosts,
                around.key
            ),
        );
        put("-monitor", format!("unix:{},server=on,wait=off", escaped(&self.folder.join("monitor.sock"))));
        // Access by ssh only, at a port that the host chooses; the guest reaches nothing through it.
        put("-netdev", "user,id=in,restrict=on,hostfwd=tcp:127.0.0.1:0-:22".to_owned());
        put("-device", "virtio-net-pci,netdev=in,mac=02:4c:79:01:00:01".to_owned());
        let (own, switch) = (escaped(&around.port.guest), escaped(&around.port.switch));
        put(
            "-netdev",
            format!("dgram,id=lab,local.type=unix,local.path={own},remote.type=unix,remote.path={switch}"),
        );
        let last = self.address.octets()[3];
        put("-device", format!("virtio-net-pci,netdev=lab,mac=02:4c:79:00:00:{last:02x}"));
        for number in 2..2 + u32::from(self.plan.more_nics) {
            put("-netdev", format!("hubport,id=more{number},hubid={number}"));
            put(
                "-device",
                format!("virtio-net-pci,netdev=more{number},mac=02:4c:79:02:{number:02x}:{last:02x}"),
            );
        }
        arguments.extend(self.drive_arguments());
        if let Some(root) = &around.image.root {
            let root = escaped(root);
            let power = escaped(&self.folder.join(POWER));
            arguments.extend([
                "-acpitable".to_owned(),
                format!("sig=SSDT,data={power}"),
                "-blockdev".to_owned(),
                format!("driver=raw,node-name=root,read-only=on,file.driver=file,file.filename={root}"),
                "-device".to_owned(),
                "virtio-blk-pci,drive=root".to_owned(),
            ]);
        }
        arguments
    }

    fn drive_arguments(&self) -> Vec<String> {
        let socket = escaped(self.server.path());
        let of = |(number, drive): (usize, super::topology::DrivePlan)| {
            let name = drive.name;
            // 1 is the word of SCSI for a medium that does not rotate.
            let rotation = if drive.rotating { 7200 } else { 1 };
            [
                "-blockdev".to_owned(),
                format!("driver=nbd,node-name={name},export={name},server.type=unix,server.path={socket}"),
                "-device".to_owned(),
                format!(
                    "scsi-hd,bus=scsi.0,scsi-id={number},drive={name},serial={name},vendor=LINERATE,product=LAB,\
                     rotation_rate={rotation},write-cache=on,rerror=report,werror=report"
                ),
            ]
        };
        self.plan.drives().into_iter().enumerate().flat_map(of).collect()
    }

    /// Waits until it is up; returns its public host key and the host port of its ssh.
    pub(super) fn ready(&self, stop: &dyn Fn() -> bool) -> Result<(String, u16)> {
        let name = &self.plan.name;
        let off = || LabError::Unknown(format!("guest {name} is off"));
        let machine = self.machine.as_ref().ok_or_else(off)?;
        let key = machine.console.wait(name, BOOT_WITHIN, stop).map_err(|error| {
            let errors = std::fs::read_to_string(&machine.errors).unwrap_or_default();
            match error {
                LabError::Unknown(text) if !errors.trim().is_empty() => {
                    LabError::Unknown(format!("{text}\nqemu: {}", errors.trim()))
                }
                other => other,
            }
        })?;
        let answer = self.monitor("info usernet")?;
        let port = forwarded_port(&answer).ok_or_else(|| {
            LabError::Unknown(format!("guest {name}: qemu names no port for ssh: {answer}"))
        })?;
        Ok((key, port))
    }

    /// What its console printed last, for an error about it.
    pub(super) fn console(&self) -> String {
        self.machine.as_ref().map_or_else(|| "it is off".to_owned(), |machine| machine.console.last())
    }

    /// Sends a line to qemu's monitor and reads up to the next prompt.
    fn monitor(&self, line: &str) -> Result<String> {
        let path = self.folder.join("monitor.sock");
        let step = || format!("asking qemu of guest {}: {line}", self.plan.name);
        let talk = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(&path)?;
            stream.set_read_timeout(Some(MONITOR_WITHIN))?;
            until_prompt(&mut stream)?;
            stream.write_all(format!("{line}\n").as_bytes())?;
            until_prompt(&mut stream)
        };
        talk().map_err(LabError::at(step()))
    }

    /// Cuts the power: kills qemu; unflushed writes may be lost. Returns the number of lost sectors.
    ///
    /// # Errors
    /// What survives could not be written.
    pub fn power_cut(&mut self, keep: Keep, seed: u64) -> Result<u64> {
        self.end();
        let mut lost = 0;
        for (number, drive) in self.drives.iter().enumerate() {
            lost += drive.power_cut(keep, seed.wrapping_add(number as u64))?;
        }
        Ok(lost)
    }

    fn end(&mut self) {
        if let Some(mut machine) = self.machine.take() {
            // Both fail only when it is gone already.
            let _ = machine.qemu.kill();
            let _ = machine.qemu.wait();
            let _ = std::fs::remove_file(self.folder.join("qemu.pid"));
        }
        self.server.hang_up();
    }

    /// Whether its qemu ended by itself: the guest crashed or was shut down.
    pub(super) fn has_ended(&mut self) -> bool {
        self.machine.as_mut().is_some_and(|m| !matches!(m.qemu.try_wait(), Ok(None)))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

/// A path inside an option of qemu, where a comma ends the value.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn until_prompt(stream: &mut UnixStream) -> std::io::Result<String> {
    const PROMPT: &[u8] = b"(qemu) ";
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    while !output.ends_with(PROMPT) {
        let count = stream.read(&mut buffer)?;
        if count == 0 || output.len() > ANSWER_MAX {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        output.extend_from_slice(&buffer[..count]);
    }
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// The port of the host in a line such as `TCP[HOST_FORWARD]  14  127.0.0.1 43215  10.0.2.15  22  0  0`.
fn forwarded_port(answer: &str) -> Option<u16> {
    let line = answer.lines().find(|line| line.contains("HOST_FORWARD"))?;
    line.split_ascii_whitespace().nth(3)?.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_port_is_read_from_what_qemu_prints() {
        let output = "info usernet\r\nHub -1 (in):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                    TCP[HOST_FORWARD]  13       127.0.0.1 43215       10.0.2.15    22     0     0\r\n(qemu) ";
        assert_eq!(forwarded_port(output), Some(43215));
        assert_eq!(forwarded_port("(qemu) "), None);
        assert_eq!(forwarded_port("TCP[HOST_FORWARD] 13"), None);
    }
}
