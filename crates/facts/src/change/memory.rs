//! A host in memory for tests: settings that move each other, files, a clock, and a crash after any number of
//! effects.
//!
//! In: how many effects may still happen. Out: what a disk and a kernel would hold afterwards. Several
//! "processes" share one [`World`]; each has its own budget of effects.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use linerate_model::change::Change;
use linerate_model::fact::{FactKey, FactValue};

use super::host::{ChangingHost, Content, Lock};
use super::journal;
use super::setting::{FileSyntax, Persist, SettingError};

/// A setting of a queue, which is gone while there are fewer queues.
pub(super) const QUEUE: &str = "nic.eth0.queue.rx-1.rps_cpus";

/// What outlives a process.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) now_ms: u64,
    /// How far somebody has set the time of day.
    pub(super) set_ms: i64,
    pub(super) boot: u32,
    pub(super) namespace: u64,
    pub(super) settings: BTreeMap<String, FactValue>,
    pub(super) files: BTreeMap<PathBuf, Content>,
    /// Journals with a living guardian.
    pub(super) guardians: Vec<PathBuf>,
    /// Settings that were written.
    pub(super) writes: u32,
    /// A guardian that is asked has ended before it could read the journal.
    pub(super) no_guardian: bool,
    /// So many readings of a journal fail, as those of a disk or a file server that is contended for a
    /// moment.
    pub(super) unreadable: u32,
    /// The journal of a trial is removed as soon as its guardian has confirmed.
    pub(super) vanishing: bool,
    /// A setting that takes every value but this.
    pub(super) stubborn: Option<(String, FactValue)>,
}

/// A process on that host.
pub(super) struct Process {
    pub(super) world: Rc<RefCell<World>>,
    /// Effects that may still happen; `None` for no limit.
    left: Cell<Option<u32>>,
    /// Effects that happened.
    pub(super) done: Cell<u32>,
    dead: Cell<bool>,
}

impl Process {
    pub(super) fn new(world: &Rc<RefCell<World>>) -> Self {
        Self { world: Rc::clone(world), left: Cell::new(None), done: Cell::new(0), dead: Cell::new(false) }
    }

    /// A process that dies behind its `effects`-th effect.
    pub(super) fn dying_after(world: &Rc<RefCell<World>>, effects: u32) -> Self {
        let process = Self::new(world);
        process.left.set(Some(effects));
        process
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.get()
    }

    fn effect(&self) -> io::Result<()> {
        if self.left.get() == Some(0) {
            self.dead.set(true);
        }
        self.alive()?;
        self.left.set(self.left.get().map(|n| n - 1));
        self.done.set(self.done.get() + 1);
        Ok(())
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead.get() { Err(io::Error::other("this process is dead")) } else { Ok(()) }
    }
}

impl ChangingHost for Process {
    fn now_ms(&self) -> u64 {
        let world = self.world.borrow();
        world.now_ms.saturating_add_signed(world.set_ms)
    }

    fn running_ms(&self) -> u64 {
        self.world.borrow().now_ms
    }

    fn boot_id(&self) -> String {
        self.world.borrow().boot.to_string()
    }

    fn namespace(&self) -> u64 {
        self.world.borrow().namespace
    }

    fn is_setting(&self, key: &str) -> bool {
        self.world.borrow().settings.contains_key(key) || key == QUEUE
    }

    fn read(&self, key: &str) -> Result<FactValue, SettingError> {
        self.alive().map_err(|e| SettingError::Kernel(e.to_string()))?;
        self.world.borrow().settings.get(key).cloned().ok_or(SettingError::Unknown)
    }

    fn write(&self, key: &str, value: &FactValue) -> Result<(), SettingError> {
        self.effect().map_err(|e| SettingError::Kernel(e.to_string()))?;
        let mut world = self.world.borrow_mut();
        world.writes += 1;
        if world.stubborn.as_ref() == Some(&(key.to_owned(), value.clone())) {
            return Err(SettingError::Kernel("invalid argument".to_owned()));
        }
        // As with a real NIC: segmentation needs checksums.
        if key == "nic.eth0.feature.tso" && value == &FactValue::Flag(true) {
            let checksums = world.settings.get("nic.eth0.feature.tx");
            if checksums == Some(&FactValue::Flag(false)) {
                return Err(SettingError::Kernel("operation not supported".to_owned()));
            }
        }
        if key == "nic.eth0.feature.tx" && value == &FactValue::Flag(false) {
            world.settings.insert("nic.eth0.feature.tso".to_owned(), FactValue::Flag(false));
        }
        if key == "nic.eth0.channels.rx" {
            // A queue that is made anew knows nothing of the old one.
            world.settings.remove(QUEUE);
            if value == &FactValue::Int(2) {
                world.settings.insert(QUEUE.to_owned(), FactValue::Int(0));
            }
        }
        world.settings.insert(key.to_owned(), value.clone());
        Ok(())
    }

    fn check(&self, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let one_way = key == "nic.eth0.mtu" && value == &FactValue::Int(1000);
        let error = SettingError::LosesIpv6 { device: "eth0".to_owned(), mtu_min: 1280 };
        if one_way { Err(error) } else { Ok(()) }
    }

    fn related(&self, key: &str) -> Vec<String> {
        match key {
            "nic.eth0.feature.tx" => vec!["nic.eth0.feature.tso".into(), "nic.eth0.feature.absent".into()],
            "nic.eth0.channels.rx" => vec![QUEUE.into()],
            _ => Vec::new(),
        }
    }

    fn persist(&self, _etc_dir: &Path, key: &str, value: &FactValue) -> Persist {
        if key == "cpu.governor" {
            return Persist::Impossible { reason: "it belongs to the firmware".into() };
        }
        if key.starts_with("nic.") {
            return Persist::Unit {
                name: format!("linerate-{}", key.replace('.', "-")),
                description: key.to_owned(),
                exec: vec![format!("/bin/set {key} {value}")],
            };
        }
        let name = key.trim_start_matches("sysctl.").to_owned();
        Persist::File {
            path: "sysctl.d/90-linerate.conf".into(),
            preamble: "# linerate\n".into(),
            section: None,
            syntax: FileSyntax::Assign,
            line: format!("{name} = {value}"),
            name,
        }
    }

    fn persist_beside(&self, _etc_dir: &Path, _key: &str) -> Option<Persist> {
        None
    }

    fn overridden(
        &self,
        _etc_dir: &Path,
        _files: &[(PathBuf, Content)],
        _changes: &[Change],
    ) -> Option<(FactKey, String)> {
        None
    }

    fn load(&self, path: &Path) -> io::Result<Option<Content>> {
        self.alive()?;
        Ok(self.world.borrow().files.get(path).cloned())
    }

    fn store(&self, path: &Path, content: &Content) -> io::Result<()> {
        self.effect()?;
        self.world.borrow_mut().files.insert(path.to_owned(), content.clone());
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.effect()?;
        self.world.borrow_mut().files.remove(path);
        Ok(())
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        self.alive()?;
        Ok(matches!(self.world.borrow().files.get(path), Some(Content::Link(_))))
    }

    fn check_closed(&self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn load_private(&self, path: &Path) -> io::Result<Option<String>> {
        self.alive()?;
        let mut world = self.world.borrow_mut();
        if world.unreadable > 0 {
            world.unreadable -= 1;
            return Err(io::Error::other("input/output error"));
        }
        match world.files.get(path) {
            None => Ok(None),
            Some(Content::Text(text)) => Ok(Some(text.clone())),
            Some(Content::Link(_)) => Err(io::Error::other("it is a link")),
        }
    }

    fn store_private(&self, path: &Path, text: &str) -> io::Result<()> {
        self.store(path, &Content::Text(text.to_owned()))
    }

    fn remove_private(&self, path: &Path) -> io::Result<()> {
        self.remove(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.alive()?;
        Ok(self.world.borrow().files.keys().filter(|p| p.parent() == Some(folder)).cloned().collect())
    }

    fn lock(&self, _path: &Path, _patience: Duration) -> io::Result<Option<Lock>> {
        self.alive()?;
        Ok(Some(Lock(None)))
    }

    fn ensure_guardian(&self, journal: &Path, _etc_dir: &Path) -> io::Result<()> {
        self.alive()?;
        let lives = self.world.borrow().guardians.iter().any(|g| g == journal);
        if !lives {
            self.effect()?;
            self.world.borrow_mut().guardians.push(journal.to_owned());
        }
        // What it confirms: it has read the journal, and the journal is one to watch over.
        let held = !self.world.borrow().no_guardian
            && matches!(journal::read(self, "", journal), Ok(Some(j)) if j.state.is_armed());
        if held {
            if self.world.borrow().vanishing {
                self.world.borrow_mut().files.remove(journal);
            }
            return Ok(());
        }
        self.world.borrow_mut().guardians.retain(|g| g != journal);
        Err(io::Error::other("it ended before it had read the journal"))
    }
}
