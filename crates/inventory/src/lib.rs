//! Inventories: files in, checked [`linerate_model::inventory::Inventory`] out. One file per format, and one
//! line for each in [`readers::READERS`].
#![deny(missing_docs)]

mod agents;
mod ansible;
mod ansible_ini;
mod ansible_yaml;
mod check;
pub mod confusables;
mod docker;
pub mod draft;
mod drbd;
mod error;
mod etc_hosts;
mod files;
mod host_list;
mod http;
mod json;
mod kubernetes;
mod named;
mod notify;
pub mod place;
mod range;
pub mod reader;
pub mod readers;
pub mod seen;
mod slurm;
mod ssh_config;
mod tables;
mod throughput;
mod toml;
mod value;
pub mod write;
pub mod yaml;

use std::path::Path;

use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};

pub use draft::Understood;
pub use error::{Flaw, InventoryError};
pub use named::{THIS_MACHINE, named, selected};

/// Reads and checks an inventory file of any format.
pub fn load(path: &Path) -> Result<Inventory, InventoryError> {
    let file = path.display().to_string();
    let understood = files::read(path, None)?;
    understood.into_inventory().map_err(|flaw| InventoryError::new(file, 0, flaw))
}

/// The same with only the hosts of these names; without names all of the file.
pub fn load_selected(path: &Path, names: &[String]) -> Result<Inventory, InventoryError> {
    selected(load(path)?, names, &path.display().to_string())
}

/// Reads a file in the format of this name or in the detected one; `-` is standard input.
pub fn understand(path: &Path, format: Option<&str>) -> Result<Understood, InventoryError> {
    files::read(path, format)
}

/// Checks the text of an inventory in our own format; `file` is for error texts only.
#[cfg(test)]
fn parse(file: &str, text: &str) -> Result<Inventory, InventoryError> {
    let source = reader::SourceText::alone(file, text);
    let understood =
        readers::READERS.iter().find(|r| r.name() == "toml").expect("it is in the list").read(&source)?;
    understood.into_inventory().map_err(|flaw| source.at(0, flaw))
}

/// The machine that this program runs on, alone: for `linerate facts localhost` without an inventory.
pub fn localhost() -> Inventory {
    Inventory {
        name: "localhost".to_owned(),
        hosts: vec![Host {
            name: "localhost".to_owned(),
            transport: TransportSpec::Local,
            groups: Vec::new(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        }],
        ..Inventory::default()
    }
}

/// The machine that this program runs on as both ends, over loopback: host `local`.
pub fn loopback() -> Inventory {
    let mut inventory = localhost();
    "loopback".clone_into(&mut inventory.name);
    for host in &mut inventory.hosts {
        "local".clone_into(&mut host.name);
        host.endpoints = vec![Endpoint {
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }];
    }
    inventory
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod tests;
