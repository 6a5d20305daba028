//! The list of inventory formats, and how one is chosen.
//!
//! What comes in: a text with its name. What goes out: what a reader understood, or one error with file, line and hint. A reader
//! starts no program and asks no resolver; the only further files it may see are those that the text includes.

use super::draft::Understood;
use super::{Flaw, InventoryError};
use super::{
    ansible_ini, ansible_yaml, docker, drbd, etc_hosts, host_list, kubernetes, slurm, ssh_config, toml,
};

/// Longest text of an inventory, bytes: the node list of a large Kubernetes cluster with all its images is some 20 MB.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Gives the files that an `Include` of this pattern means, each with its name and text, or why there is none.
pub type Include<'a> = dyn Fn(&str) -> Result<Vec<(String, String)>, String> + 'a;

/// A text to read.
pub struct Source<'a> {
    /// Name of the file, for error texts.
    pub file: &'a str,
    /// What stands in it.
    pub text: &'a str,
    /// Where included files come from.
    pub include: &'a Include<'a>,
    /// The file is the one that `ssh` itself reads, so that its names mean the same there.
    pub known_to_ssh: bool,
}

impl<'a> Source<'a> {
    /// A text by itself: what it includes is not there.
    pub fn alone(file: &'a str, text: &'a str) -> Self {
        Self { file, text, include: &|_| Err("is not read here".to_owned()), known_to_ssh: false }
    }

    /// An error at a line of this text.
    pub(super) fn at(&self, line: usize, flaw: Flaw) -> InventoryError {
        InventoryError { file: self.file.to_owned(), line, problem: flaw.what, hint: flaw.hint }
    }

    /// The lines, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// One format. To add one: a file beside this one, a line in [`READERS`].
pub trait Reader: Sync {
    /// Name for `--format`.
    fn name(&self) -> &'static str;
    /// What it is, in a few words.
    fn describes(&self) -> &'static str;
    /// Whether a text looks like it. Cheap, and asked in the order of the list: the first that says yes reads.
    fn looks_like(&self, text: &str) -> bool;
    /// Reads a text.
    fn read(&self, source: &Source<'_>) -> Result<Understood, InventoryError>;
}

/// All formats, the ones with the surest marks first.
pub const READERS: &[&dyn Reader] = &[
    &kubernetes::Kubernetes,
    &docker::Docker,
    &slurm::Slurm,
    &toml::Toml,
    &drbd::Drbd,
    &ssh_config::SshConfig,
    &ansible_ini::AnsibleIni,
    &ansible_yaml::AnsibleYaml,
    &etc_hosts::EtcHosts,
    &host_list::HostList,
];

/// Names of all formats.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    READERS.iter().map(|reader| reader.name())
}

/// Reads a text in the format of this name, or in the one it looks like.
pub fn understand(source: &Source<'_>, format: Option<&str>) -> Result<Understood, InventoryError> {
    if source.text.len() > TEXT_BYTES_MAX {
        let what = format!("the text has {} bytes, at most {TEXT_BYTES_MAX}", source.text.len());
        return Err(source.at(0, Flaw::new(what, "leave out what is not about hosts")));
    }
    let reader = match format {
        Some(name) => READERS.iter().find(|reader| reader.name() == name).ok_or_else(|| {
            let what = format!("no format is called `{}`", name.escape_debug());
            source.at(0, Flaw::new(what, super::did_you_mean(name, names())))
        })?,
        None => READERS.iter().find(|reader| reader.looks_like(source.text)).ok_or_else(|| {
            let known: Vec<&str> = names().collect();
            let what = "the text looks like no format of inventories that is known";
            source.at(0, Flaw::new(what, format!("name it with --format: {}", known.join(", "))))
        })?,
    };
    let understood = reader.read(source)?;
    if understood.hosts.is_empty() {
        let flaw = Flaw::new(
            format!("read as {}, but no host is in it", reader.name()),
            "if that is the wrong format, name the right one with --format",
        );
        return Err(source.at(0, flaw));
    }
    Ok(understood)
}
