//! Hosts by their names on a command line: an inventory of nothing but names, or some hosts of an inventory
//! file.
//!
//! What comes in: words such as `arc-1`, `ops@arc-2`, `arc-3:2222`, an alias of ssh's configuration,
//! `localhost`. What goes out: a checked inventory of hosts over ssh without endpoints; which addresses are
//! measured is asked of the hosts.

use linerate_model::inventory::{Host, Inventory, SshSpec, TransportSpec};

use super::error::{Flaw, InventoryError, did_you_mean};

/// Names of the machine that this program runs on, which is reached without ssh.
pub const THIS_MACHINE: [&str; 2] = ["local", "localhost"];

/// Reads names. Two that only differ in user or port are two hosts.
pub fn named(words: &[String]) -> Result<Inventory, InventoryError> {
    let refuse =
        |problem: String, hint: &str| InventoryError::new("command line", 0, Flaw::new(problem, hint));
    let mut hosts: Vec<Host> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if words[..index].contains(word) {
            return Err(refuse(format!("host `{}` stands there twice", word.escape_debug()), "name it once"));
        }
        let transport = if THIS_MACHINE.contains(&word.as_str()) {
            TransportSpec::Local
        } else {
            let hint = "such as arc-1, ops@arc-1, arc-1:2222; or -i FILE";
            TransportSpec::Ssh(SshSpec::parse(word).map_err(|problem| refuse(problem, hint))?)
        };
        let short = match &transport {
            TransportSpec::Ssh(spec) => spec.host.clone(),
            _ => word.clone(),
        };
        let taken = hosts.iter().any(|h| h.name == short);
        hosts.push(Host {
            name: if taken { word.clone() } else { short },
            transport,
            groups: Vec::new(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        });
    }
    Ok(Inventory { name: "named hosts".to_owned(), hosts, ..Inventory::default() })
}

/// Leaves the hosts of these names in an inventory; without names all. `file` is for error texts only.
pub fn selected(mut inventory: Inventory, names: &[String], file: &str) -> Result<Inventory, InventoryError> {
    if names.is_empty() {
        return Ok(inventory);
    }
    if let Some(unknown) = names.iter().find(|name| inventory.host(name).is_none()) {
        let known = inventory.hosts.iter().map(|host| host.name.as_str());
        let what = format!("no host `{}` in the inventory", unknown.escape_debug());
        return Err(InventoryError::new(file, 0, Flaw::new(what, did_you_mean(unknown, known))));
    }
    inventory.hosts.retain(|host| names.contains(&host.name));
    Ok(inventory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Inventory, InventoryError> {
        named(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_become_hosts_over_ssh() {
        let inventory = read(&["arc-1", "ops@arc-2:2222", "arc-1:23", "local"]).unwrap();
        let names: Vec<&str> = inventory.hosts.iter().map(|h| h.name.as_str()).collect();
        assert_eq!(names, ["arc-1", "arc-2", "arc-1:23", "local"]);
        assert!(matches!(&inventory.hosts[1].transport, TransportSpec::Ssh(s) if s.port == Some(2222)));
        assert_eq!(inventory.hosts[3].transport, TransportSpec::Local);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for words in [&["-oProxyCommand=x"][..], &["a", "a"], &["a b"], &["$(x)"], &[""]] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.starts_with("command line:") && error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn names_select_hosts_of_an_inventory() {
        let all = read(&["arc-1", "arc-2", "arc-3"]).unwrap();
        let select = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            selected(all.clone(), &names, "cluster.toml")
        };
        let names = |inventory: Inventory| inventory.hosts.into_iter().map(|h| h.name).collect::<Vec<_>>();
        assert_eq!(names(select(&[]).unwrap()), ["arc-1", "arc-2", "arc-3"]);
        assert_eq!(names(select(&["arc-3", "arc-1"]).unwrap()), ["arc-1", "arc-3"]);
        let error = select(&["arc-1", "stranger-9"]).unwrap_err().to_string();
        assert!(error.starts_with("cluster.toml:") && error.contains("no host `stranger-9`"), "{error}");
        assert!(error.contains("hint: known are: arc-1, arc-2, arc-3"), "{error}");
    }
}
