//! The short help of every command is one screen.

use super::{GROUPS, command};

/// Lines and columns of a screen.
const LINES: usize = 40;
const COLUMNS: usize = 100;

/// What `-h` prints.
fn short_help(path: &[&str]) -> String {
    let words = ["linerate"].iter().chain(path).chain(&["-h"]);
    command().try_get_matches_from(words).unwrap_err().to_string()
}

fn check(path: &[&str]) {
    let help = short_help(path);
    let name = path.join(" ");
    assert!(help.lines().count() <= LINES, "{name}: {} lines:\n{help}", help.lines().count());
    for line in help.lines() {
        assert!(line.chars().count() <= COLUMNS, "{name}: a line of {}: {line}", line.chars().count());
    }
}

#[test]
fn the_help_of_all_commands_fits_a_screen() {
    check(&[]);
    let shown: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let root = command();
    for name in &shown {
        let sub = root.find_subcommand(name).unwrap();
        assert!(sub.get_about().is_some(), "{name}");
        // Another program answers.
        if sub.is_disable_help_flag_set() {
            continue;
        }
        check(&[name]);
        for deeper in sub.get_subcommands() {
            check(&[name, deeper.get_name()]);
        }
    }
    let hidden: Vec<&str> =
        root.get_subcommands().filter(|sub| sub.is_hide_set()).map(clap::Command::get_name).collect();
    assert_eq!(hidden, ["knowledge", "iperf3", "lab", "demo", "man", "schema"]);
}

#[test]
fn every_visible_command_stands_in_the_help_once() {
    let help = short_help(&[]);
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        assert_eq!(help.lines().filter(|line| line.starts_with(&format!("  {name} "))).count(), 1, "{name}");
    }
}
