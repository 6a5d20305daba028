//! Ansible's YAML inventories: groups with `hosts`, `children` and `vars`.
//!
//! What comes in: a text. What goes out: the same as from the INI form. Anchors and aliases are remarked, not
//! followed.

use super::ansible::Collected;
use super::draft::Understood;
use super::error::{Flaw, InventoryError, shown};
use super::reader::{Reader, SourceText};
use super::yaml::{self, Value, Yaml};

/// The format.
pub(super) struct AnsibleYaml;

impl Reader for AnsibleYaml {
    fn name(&self) -> &'static str {
        "ansible-yaml"
    }

    fn describes(&self) -> &'static str {
        "Ansible's inventory, YAML"
    }

    fn detects(&self, text: &str) -> bool {
        // A key of a group on a line of its own, or behind the group in the short form.
        text.lines().any(|line| {
            let line = line.split(" #").next().unwrap_or_default();
            let word = line.trim_start().trim_start_matches(['{', ' ']);
            ["hosts:", "children:"]
                .iter()
                .any(|key| word.starts_with(key) || line.contains(&format!("{{{key}")))
        })
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let tree = yaml::parse(source.text).map_err(|(line, what)| {
            source.at(line, Flaw::new(format!("not YAML: {what}"), "or name another format with --format"))
        })?;
        let mut collected = Collected::default();
        // A list of groups that are still to be read: nesting costs no stack.
        let mut todo: Vec<(&str, &Yaml)> = Vec::new();
        let Some(entries) = tree.entries() else {
            let flaw =
                Flaw::new("the document is no map of groups", "a playbook? Its inventory is another file");
            return Err(source.at(tree.line, flaw));
        };
        todo.extend(entries.iter().rev().map(|(name, group)| (name.as_str(), group)));
        while let Some((name, group)) = todo.pop() {
            group_of(&mut collected, name, group, &mut todo).map_err(|(line, flaw)| source.at(line, flaw))?;
        }
        collected.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

fn group_of<'a>(
    collected: &mut Collected,
    name: &'a str,
    group: &'a Yaml,
    todo: &mut Vec<(&'a str, &'a Yaml)>,
) -> Result<(), (usize, Flaw)> {
    let at = |line: usize| move |flaw: Flaw| (line, flaw);
    collected.group(name, group.line).map_err(at(group.line))?;
    let Some(parts) = map_of(collected, name, group)? else { return Ok(()) };
    for (part, value) in parts {
        let Some(entries) = map_of(collected, part, value)? else { continue };
        match part.as_str() {
            "hosts" => {
                for (pattern, vars) in entries {
                    let hosts = collected.hosts(name, pattern, vars.line).map_err(at(vars.line))?;
                    for (var, value) in map_of(collected, pattern, vars)?.unwrap_or_default() {
                        let text = text_of(value);
                        for host in &hosts {
                            collected.host_var(host, var, &text, value.line);
                        }
                    }
                }
            }
            "children" => {
                for (child, inner) in entries {
                    collected.child(name, child, inner.line).map_err(at(inner.line))?;
                }
                todo.extend(entries.iter().rev().map(|(child, inner)| (child.as_str(), inner)));
            }
            "vars" => {
                for (var, value) in entries {
                    collected.group_var(name, var, &text_of(value), value.line);
                }
            }
            other => {
                let why = format!("a group has hosts, children and vars, `{name}` has this too");
                collected.ignore(value.line, other, &why);
            }
        }
    }
    Ok(())
}

/// Keys with their values.
type Entries = [(String, Yaml)];

/// The entries of a map; nothing is an empty one.
fn map_of<'a>(
    collected: &mut Collected,
    name: &str,
    value: &'a Yaml,
) -> Result<Option<&'a Entries>, (usize, Flaw)> {
    match &value.value {
        Value::Map(entries) => Ok(Some(entries)),
        Value::Null => Ok(None),
        Value::Alias => {
            collected.ignore(value.line, name, "an alias (`*name`): it is not followed");
            Ok(None)
        }
        Value::Text(_) | Value::List => {
            let what = format!("`{}` is no map", shown(name));
            Err((value.line, Flaw::new(what, "hosts and groups are keys with a `:` behind them")))
        }
    }
}

/// The text of a variable; what is none has no meaning here.
fn text_of(value: &Yaml) -> String {
    if let Value::Text(text) = &value.value { text.clone() } else { String::new() }
}
