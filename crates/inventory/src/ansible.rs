//! What Ansible's INI and YAML inventories have in common: groups with hosts, children and variables. Turns
//! them into hosts with their connection variables, the nearest group's winning as in Ansible.
//!
//! Values of other variables are never kept: passwords stand among them.

use std::collections::BTreeMap;

use linerate_model::inventory::TransportSpec;

use super::draft::{ConnectMethod, Draft, HOSTS_MAX, Understood};
use super::error::Flaw;
use super::host_list::port;
use super::range::{Dialect, expand};

/// Groups that every inventory has, without information.
const IMPLIED: [&str; 2] = ["all", "ungrouped"];
/// Variables that are used.
const USED: [(&str, Var); 7] = [
    ("ansible_host", Var::Host),
    ("ansible_ssh_host", Var::Host),
    ("ansible_user", Var::User),
    ("ansible_ssh_user", Var::User),
    ("ansible_port", Var::Port),
    ("ansible_ssh_port", Var::Port),
    ("ansible_connection", Var::Connection),
];

/// What a variable is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Var {
    Host,
    User,
    Port,
    Connection,
}

/// Values by variable, with the line that they stand in.
type Vars = BTreeMap<Var, (String, usize)>;

/// An inventory of Ansible under construction.
#[derive(Debug, Default)]
pub(super) struct Collected {
    draft: Draft,
    of_hosts: BTreeMap<String, Vars>,
    of_groups: BTreeMap<String, Vars>,
    others: usize,
}

impl Collected {
    /// Hosts of a group, by one name with ranges. Gives their names.
    pub(super) fn hosts(&mut self, group: &str, pattern: &str, line: usize) -> Result<Vec<String>, Flaw> {
        let names = if pattern.contains('[') {
            expand(pattern, Dialect::Colon, HOSTS_MAX)?
        } else {
            vec![pattern.to_owned()]
        };
        for name in &names {
            self.draft.host(name)?;
            if !IMPLIED.contains(&group) {
                self.draft.join(name, group, "group", line)?;
            }
        }
        Ok(names)
    }

    /// Makes sure that a group is there.
    pub(super) fn group(&mut self, group: &str, line: usize) -> Result<(), Flaw> {
        if IMPLIED.contains(&group) { Ok(()) } else { self.draft.group(group, "group", line) }
    }

    /// Puts a group into another one.
    pub(super) fn child(&mut self, group: &str, child: &str, line: usize) -> Result<(), Flaw> {
        self.group(child, line)?;
        if IMPLIED.contains(&group) || IMPLIED.contains(&child) {
            return Ok(());
        }
        self.draft.nest(child, group, "group", line)
    }

    /// A variable of a host.
    pub(super) fn host_var(&mut self, host: &str, name: &str, value: &str, line: usize) {
        if let Some(var) = self.used(name, value, line) {
            self.of_hosts.entry(host.to_owned()).or_default().insert(var, (value.to_owned(), line));
        }
    }

    /// A variable of a group.
    pub(super) fn group_var(&mut self, group: &str, name: &str, value: &str, line: usize) {
        if let Some(var) = self.used(name, value, line) {
            self.of_groups.entry(group.to_owned()).or_default().insert(var, (value.to_owned(), line));
        }
    }

    fn used(&mut self, name: &str, value: &str, line: usize) -> Option<Var> {
        let var = USED.iter().find(|(known, _)| *known == name).map(|(_, var)| *var);
        if var.is_some() && value.contains("{{") {
            self.ignore(line, name, "a template: only Ansible can fill it in");
            return None;
        }
        if var.is_none() && name.starts_with("ansible_") {
            self.ignore(line, name, "a setting of Ansible's own; ssh's belong into ~/.ssh/config");
        } else if var.is_none() {
            self.others += 1;
        }
        var
    }

    /// Remarks that something was left out.
    pub(super) fn ignore(&mut self, line: usize, what: &str, why: &str) {
        self.draft.ignore(line, what, why);
    }

    /// The hosts with their variables.
    pub(super) fn finish(mut self, format: &'static str) -> Result<Understood, (usize, Flaw)> {
        let mut vars: BTreeMap<String, Vars> = BTreeMap::new();
        if let Some(all) = self.of_groups.get("all") {
            vars.extend(self.draft.host_names().into_iter().map(|host| (host, all.clone())));
        }
        // Parents first, so that the nearer group overwrites.
        for group in self.draft.parents_first()? {
            let Some(own) = self.of_groups.get(&group) else { continue };
            for host in self.draft.members(&group) {
                vars.entry(host).or_default().extend(own.clone());
            }
        }
        for (host, own) in std::mem::take(&mut self.of_hosts) {
            vars.entry(host).or_default().extend(own);
        }
        for host in self.draft.host_names() {
            let own = vars.remove(&host).unwrap_or_default();
            resolve(&mut self.draft, &host, &own)?;
        }
        if self.others > 0 {
            self.draft.note(0, format!("{} other variables", self.others), "are not about connecting");
        }
        self.draft.finish(format)
    }
}

fn resolve(draft: &mut Draft, host: &str, vars: &Vars) -> Result<(), (usize, Flaw)> {
    let value = |var: Var| vars.get(&var).map(|(value, line)| (value.as_str(), *line));
    let at = |line: usize| move |flaw: Flaw| (line, flaw);
    if let Some((address, line)) = value(Var::Host) {
        draft.reached_at(host, address, line).map_err(at(line))?;
    } else if let Ok(address) = host.parse() {
        draft.address(host, address, 0).map_err(at(0))?;
    }
    let port_given = value(Var::Port).map(|(text, line)| port(text).map_err(at(line))).transpose()?;
    let reach = draft.reach(host).map_err(at(0))?;
    reach.port = port_given;
    reach.user = value(Var::User).map(|(user, _)| user.to_owned());
    match value(Var::Connection) {
        Some(("local", line)) => {
            draft.host(host).map_err(at(line))?.way = ConnectMethod::Known(TransportSpec::Local);
        }
        Some((other, line)) if !["ssh", "smart", "paramiko", "paramiko_ssh"].contains(&other) => {
            let why = "no transport of ours; the host is taken as one with an ssh server";
            draft.ignore(line, format!("ansible_connection={other} of {host}"), why);
        }
        _ => {}
    }
    Ok(())
}
