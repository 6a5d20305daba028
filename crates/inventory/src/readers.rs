//! The list of inventory formats, and how one is chosen.

use super::draft::Understood;
use super::error::{Flaw, InventoryError, did_you_mean};
use super::reader::{Reader, SourceText, TEXT_BYTES_MAX};
use super::{
    ansible_ini, ansible_yaml, docker, drbd, etc_hosts, host_list, kubernetes, slurm, ssh_config, toml,
};

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

/// Reads a text in the format of this name, or in the detected one.
pub fn understand(source: &SourceText<'_>, format: Option<&str>) -> Result<Understood, InventoryError> {
    if source.text.len() > TEXT_BYTES_MAX {
        let what = format!("the text has {} bytes, at most {TEXT_BYTES_MAX}", source.text.len());
        return Err(source.at(0, Flaw::new(what, "leave out what is not about hosts")));
    }
    let reader = match format {
        Some(name) => READERS.iter().find(|reader| reader.name() == name).ok_or_else(|| {
            let what = format!("no format is called `{}`", name.escape_debug());
            source.at(0, Flaw::new(what, did_you_mean(name, names())))
        })?,
        None => READERS.iter().find(|reader| reader.detects(source.text)).ok_or_else(|| {
            let known: Vec<&str> = names().collect();
            let what = "the text is in no known inventory format";
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
