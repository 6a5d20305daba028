//! A running lab of guests: machines, drives, switch, and ssh access.
//!
//! In: a topology, requests. Out: guests that are up, and what was done to them. Dropping it ends every qemu
//! and removes its folder.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_sys::interrupt::Interrupt;

use super::disk::Keep;
use super::guest::{Guest, Surroundings};
use super::image::Image;
use super::reach::{self, Listener, Reach};
use super::request::GuestRequest;
use super::switch::{GuestLink, VirtualSwitch};
use super::topology::VmTopology;
use crate::control::ControlAnswer;
use crate::error::{LabError, Result};
use crate::folder::LabFolder;

/// See the file's head.
#[derive(Debug)]
pub struct VmLab {
    /// What it was built from.
    pub topology: VmTopology,
    guests: Vec<Guest>,
    listeners: Vec<Option<Listener>>,
    switch: VirtualSwitch,
    image: Image,
    reach: Reach,
    /// Removed last: the others have sockets and drives in it.
    folder: LabFolder,
}

impl VmLab {
    /// Makes the image if there is none, boots all guests and waits until they are ready. `interrupt` aborts
    /// the wait.
    ///
    /// # Errors
    /// Something is missing, or a guest does not come up; nothing is left then.
    pub fn up(
        topology: VmTopology,
        interrupt: Option<&Interrupt>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        if let Some(reason) = super::missing() {
            return Err(LabError::Unknown(reason));
        }
        let image = Image::ready(topology.system, progress)?;
        let folder = LabFolder::create()?;
        let switch = VirtualSwitch::start(topology.guests.len(), folder.path())?;
        let reach = Reach::create(folder.path().join("ssh"))?;
        let make = |(index, plan): (usize, &super::topology::GuestPlan)| {
            Guest::create(plan, VmTopology::address(index), folder.path().join(&plan.name))
        };
        let guests = topology.guests.iter().enumerate().map(make).collect::<Result<Vec<_>>>()?;
        let listeners = vec![None; guests.len()];
        let mut lab = Self { topology, guests, listeners, switch, image, reach, folder };
        progress(&format!("booting {} guests under emulation …", lab.guests.len()));
        for index in 0..lab.guests.len() {
            lab.switch_on(index)?;
        }
        let stop = || interrupt.is_some_and(Interrupt::taken);
        for index in 0..lab.guests.len() {
            lab.wait_ready(index, &stop)?;
            progress(&format!("guest {} is up", lab.guests[index].plan.name));
        }
        Ok(lab)
    }

    fn switch_on(&mut self, index: usize) -> Result<()> {
        let pairs: Vec<String> =
            self.addresses().into_iter().map(|(name, address)| format!("{name}:{address}")).collect();
        let around = Surroundings {
            image: &self.image,
            port: self.switch.port(index),
            hosts: &pairs.join(","),
            key: &self.reach.key,
        };
        self.guests[index].switch_on(&around)
    }

    fn wait_ready(&mut self, index: usize, stop: &dyn Fn() -> bool) -> Result<()> {
        let guest = &self.guests[index];
        let (key, port) = guest.ready(stop)?;
        self.listeners[index] = Some(Listener { name: guest.plan.name.clone(), key, port });
        self.describe()
    }

    fn describe(&self) -> Result<()> {
        let listeners: Vec<Listener> = self.listeners.iter().flatten().cloned().collect();
        self.reach.describe(&self.topology.name, &listeners, &self.addresses())
    }

    fn addresses(&self) -> Vec<(String, String)> {
        self.guests.iter().map(|g| (g.plan.name.clone(), g.address.to_string())).collect()
    }

    /// The folder of the lab.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// For `linerate -i`.
    pub fn inventory(&self) -> PathBuf {
        self.reach.inventory()
    }

    /// Environment variables of `linerate`.
    pub fn environment(&self) -> (&'static str, OsString) {
        self.reach.environment()
    }

    /// The guest of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn guest(&self, name: &str) -> Result<&Guest> {
        self.topology.guest(name).map(|index| &self.guests[index])
    }

    /// The link of the guest of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn link(&self, name: &str) -> Result<&GuestLink> {
        self.topology.guest(name).map(|index| self.switch.link(index))
    }

    /// Runs an argument vector in a guest as root; returns its output.
    ///
    /// # Errors
    /// It failed; the error has its output.
    pub fn exec(&self, guest: &str, arguments: &[&str]) -> Result<String> {
        let words: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let machine = self.guest(guest)?;
        let output =
            reach::command(self.folder(), guest, &words).output().map_err(LabError::at("running ssh"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let mut printed = text(&[output.stdout, output.stderr].concat());
        if output.status.code() == Some(reach::CONNECTION_LOST) {
            // ssh itself is silent where the connection that its commands share ends.
            let _ = write!(printed, "\n{guest}: {}", machine.console());
        }
        Err(LabError::Command {
            command: format!("{guest}: {}", arguments.join(" ")),
            message: format!("{}: {}", output.status, printed.trim()),
        })
    }

    /// Cuts the power of a guest. Returns the number of lost sectors.
    ///
    /// # Errors
    /// There is no such guest, or what survives could not be written.
    pub fn power_cut(&mut self, name: &str, keep: Keep, seed: u64) -> Result<u64> {
        let index = self.topology.guest(name)?;
        self.listeners[index] = None;
        let lost = self.guests[index].power_cut(keep, seed)?;
        self.describe()?;
        Ok(lost)
    }

    /// Powers a guest on again, with its drives, and waits until it is up.
    ///
    /// # Errors
    /// It is on, or does not come up.
    pub fn boot(&mut self, name: &str) -> Result<()> {
        self.power_on(name)?;
        self.wait_up(name)
    }

    /// Powers a guest on again, with its drives; it boots meanwhile.
    ///
    /// # Errors
    /// It is on.
    pub fn power_on(&mut self, name: &str) -> Result<()> {
        let index = self.topology.guest(name)?;
        if self.guests[index].has_ended() {
            self.guests[index].power_cut(Keep::All, 0)?;
        }
        self.switch_on(index)
    }

    /// Waits until a guest that was powered on is up.
    ///
    /// # Errors
    /// It does not come up.
    pub fn wait_up(&mut self, name: &str) -> Result<()> {
        let index = self.topology.guest(name)?;
        self.wait_ready(index, &|| false)
    }

    /// Answers a request from outside.
    pub fn answer(&mut self, request: &GuestRequest) -> ControlAnswer {
        match self.act(request) {
            Ok(text) => ControlAnswer { done: true, text },
            Err(error) => ControlAnswer { done: false, text: error.to_string() },
        }
    }

    fn act(&mut self, request: &GuestRequest) -> Result<String> {
        match request {
            GuestRequest::Status { json: false } => Ok(self.status()),
            GuestRequest::Status { json: true } => Ok(format!("{:#}", self.status_json())),
            GuestRequest::Drive { guest, drive, change } => {
                let drive = self.guest(guest)?.drive(drive)?;
                if !change.is_empty() {
                    drive.behave(|behaviour| change.apply(behaviour))?;
                }
                let about =
                    serde_json::json!({ "behaviour": drive.behaviour(), "counters": drive.counters() });
                Ok(format!("{about:#}"))
            }
            GuestRequest::Link { guest, direction, change } => {
                self.link(guest)?.update(*direction, |settings| change.apply(settings));
                Ok(format!("the link of {guest} is changed"))
            }
            GuestRequest::Cut { guest, keep, seed } => {
                let lost = self.power_cut(guest, *keep, *seed)?;
                Ok(format!("{guest} is off; {lost} sectors were lost that had not been flushed"))
            }
            GuestRequest::Boot { guest } => self.boot(guest).map(|()| format!("{guest} is up")),
            GuestRequest::Down => Ok("going down".into()),
        }
    }

    /// The state as text.
    pub fn status(&self) -> String {
        let (variable, value) = self.environment();
        let mut text = format!(
            "lab {} of process {}: {} guests\n",
            self.topology.name,
            std::process::id(),
            self.guests.len()
        );
        for (guest, listener) in self.guests.iter().zip(&self.listeners) {
            let state = listener
                .as_ref()
                .map_or("off".to_owned(), |listener| format!("ssh at 127.0.0.1:{}", listener.port));
            let drives = match guest.drives.as_slice() {
                [] => "no drives".to_owned(),
                [first, .., last] if guest.drives.len() > 4 => {
                    format!("{} drives {} to {}", guest.drives.len(), first.name, last.name)
                }
                some => {
                    format!("drives {}", some.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(" "))
                }
            };
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "  {} ({}): {state}; {drives}", guest.plan.name, guest.address);
        }
        let _ = writeln!(text, "inventory: {}", self.inventory().display());
        let _ = writeln!(text, "environment: {variable}={}", value.display());
        text
    }

    /// The same for programs.
    fn status_json(&self) -> serde_json::Value {
        let (variable, value) = self.environment();
        let guests = self.guests.iter().zip(&self.listeners).enumerate().map(|(index, (guest, listener))| {
            let drive = |d: &std::sync::Arc<super::disk::Drive>| {
                serde_json::json!({ "name": d.name, "size_bytes": d.size_bytes, "behaviour": d.behaviour(), "counters": d.counters() })
            };
            let (into, out) = self.switch.link(index).settings();
            let link = |s: crate::wire::settings::Settings| {
                serde_json::json!({ "delay_ns": s.delay_ns, "loss_ppm": s.loss_ppm, "rate_bps": s.rate_bps })
            };
            serde_json::json!({
                "name": guest.plan.name,
                "address": guest.address,
                "ssh_port": listener.as_ref().map(|d| d.port),
                "drives": guest.drives.iter().map(drive).collect::<Vec<_>>(),
                "link": { "in": link(into), "out": link(out) },
            })
        });
        serde_json::json!({
            "lab": self.topology.name,
            "folder": self.folder(),
            "inventory": self.inventory(),
            "environment": { variable: value.to_string_lossy() },
            "guests": guests.collect::<Vec<_>>(),
        })
    }
}
