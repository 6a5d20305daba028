//! Installs the Debian package in an empty folder and surveys two network namespaces with it, as a user with
//! nothing else on the machine would: no shared library, no other program of ours. Needs root.
//!
//! What it makes outside the folder is two namespaces and one pair of virtual devices; both go with it, also
//! after a failure.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::release::Release;
use crate::shell::{am_root, output, sh};

/// The two namespaces, and the address of each.
const HOSTS: [(&str, &str); 2] = [("linerate-dist-1", "10.213.77.1"), ("linerate-dist-2", "10.213.77.2")];

/// Removes the namespaces, and with them the devices.
struct Namespaces;

impl Namespaces {
    fn new() -> Result<Self> {
        let made = Self;
        for (name, _) in HOSTS {
            // What an earlier check left after it was killed.
            let _ = Command::new("ip").args(["netns", "del", name]).output();
            sh("ip", &["netns", "add", name])?;
        }
        let [(one, _), (two, _)] = HOSTS;
        sh("ip", &["-n", one, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", two])?;
        for (name, address) in HOSTS {
            sh("ip", &["-n", name, "address", "add", &format!("{address}/24"), "dev", "eth0"])?;
            sh("ip", &["-n", name, "link", "set", "eth0", "up"])?;
            sh("ip", &["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(made)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for (name, _) in HOSTS {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

pub(super) fn run(release: &Release) -> Result<()> {
    ensure!(am_root(), "the check installs into a folder with dpkg and makes namespaces: it needs root");
    let root = installed(release)?;
    let version = output(&root.join("usr/bin/linerate").display().to_string(), &["--version"])?;
    ensure!(version.contains(&release.version), "its version is {version}");
    documented(&root)?;
    let namespaces = Namespaces::new()?;
    fs::write(root.join("cluster.toml"), inventory())?;
    let run = alone(&root, &["survey", "-i", "/cluster.toml", "--time", "20s", "--json"])?;
    drop(namespaces);
    let code = run.status.code().context("the survey was killed")?;
    let errors = String::from_utf8_lossy(&run.stderr);
    // 3 is a busy machine, on which not all could be seen.
    ensure!(matches!(code, 0 | 1 | 3), "the survey ended with {code}:\n{errors}");
    let events: Vec<Value> = errors.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let done = |unit: &str| -> u64 {
        let ended = events.iter().filter(|event| event["event"] == "end" && event["unit"] == unit);
        ended.filter_map(|event| event["done"].as_u64()).max().unwrap_or(0)
    };
    let (hosts, tests) = (done("hosts"), done("tests"));
    ensure!(
        hosts == HOSTS.len() as u64 && tests > 0,
        "{hosts} hosts answered, {tests} tests ended:\n{errors}"
    );
    println!("installed and surveyed with it: {hosts} hosts, {tests} tests");
    Ok(())
}

/// Each command of the help has a man page, and the case that the guide names is diagnosed.
fn documented(root: &Path) -> Result<()> {
    let help = alone(root, &["-h"])?;
    let help = String::from_utf8(help.stdout).context("the help is no text")?;
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase()));
    let names: Vec<&str> = names.collect();
    ensure!(names.len() > 10, "the help lists {names:?}");
    for name in &names {
        let page = root.join(format!("usr/share/man/man1/linerate-{name}.1"));
        ensure!(page.is_file(), "`linerate {name}` has no man page");
    }
    let case = alone(root, &["diagnose", "/usr/share/doc/linerate/cases/casebook-a3.toml"])?;
    ensure!(case.status.code() == Some(1), "the recorded case: {}", String::from_utf8_lossy(&case.stderr));
    let demo = alone(root, &["demo", "--help"])?;
    ensure!(demo.status.success(), "`linerate demo`: {}", String::from_utf8_lossy(&demo.stderr));
    println!("{} commands have man pages; the recorded case is diagnosed", names.len());
    Ok(())
}

/// A folder in which nothing is but what the package has.
fn installed(release: &Release) -> Result<PathBuf> {
    let architecture = output("dpkg", &["--print-architecture"])?;
    let package = |name: &str| {
        release.file(&format!("{name}_{}_{}.deb", release.version, architecture.trim())).display().to_string()
    };
    let root = fs::canonicalize(&release.folder)?.join("root");
    for folder in
        ["var/lib/dpkg/info", "var/lib/dpkg/updates", "proc", "sys", "dev", "run/netns", "tmp", "data"]
    {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let root_option = format!("--root={}", root.display());
    // Of the lab its own files are checked, not the programs of the system that it calls.
    let (main, lab) = (package("linerate"), package("linerate-lab"));
    sh("dpkg", &[&root_option, "--force-script-chrootless", "--force-depends", "-i", &main, &lab])?;
    Ok(root)
}

fn inventory() -> String {
    let mut text = String::from("name = \"dist\"\n");
    for (name, address) in HOSTS {
        let host = format!(
            "\n[[host]]\nname = \"{name}\"\ntransport = \"netns\"\nnetns = \"/run/netns/{name}\"\n\
             state_dir = \"/data/{name}\"\n\n[[host.endpoint]]\naddress = \"{address}\"\nlayer = \"underlay\"\n"
        );
        text.push_str(&host);
    }
    text
}

/// Runs the installed program with the folder as its root. The mounts are in a namespace of its own.
fn alone(root: &Path, arguments: &[&str]) -> Result<std::process::Output> {
    let script = "set -e; cd \"$1\"; shift; mount --bind /proc proc; mount --rbind /sys sys; \
                  mount --rbind /run/netns run/netns; mount --bind /dev dev; exec chroot . /usr/bin/linerate \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(root).args(arguments);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LINERATE_DATA", "/data");
    command.process_group(0);
    command.output().context("cannot run unshare")
}
