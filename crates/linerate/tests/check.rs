//! The checks installed on this host, in mounts of its own, with a systemctl that records its calls: what is
//! shown, what is written, and that an undo gives back what was there. Needs root or user namespaces.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_testkit::{self as testkit, TestEnvironment};
use serde_json::Value;

const PROGRAM: &str = "/usr/local/sbin/linerate-node";

/// A host whose folders are the test's own.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    /// `None` outside of the mounts, or where something is missing.
    fn new(name: &str) -> Option<Self> {
        if testkit::node_program(env!("CARGO_BIN_EXE_linerate")).is_none() {
            testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
            return None;
        }
        if !testkit::inside(name, TestEnvironment::Mounts) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let site = Self { folder };
        let etc = site.path("etc");
        for folder in ["etc/systemd/system", "etc/linerate"] {
            std::fs::create_dir_all(site.path(folder)).unwrap();
        }
        for file in ["passwd", "group", "hosts", "nsswitch.conf"] {
            let _ = std::fs::copy(Path::new("/etc").join(file), etc.join(file));
        }
        testkit::run("mount", &["--bind", etc.to_str().unwrap(), "/etc"]);
        for folder in ["/usr/local/sbin", "/var/lib"] {
            testkit::run("mount", &["-t", "tmpfs", "-o", "mode=755", "none", folder]);
        }
        site.systemctl(&format!("echo \"$@\" >> {}", site.path("asked").display()));
        // The node runs programs of the system's folders only.
        let own = site.path("systemctl").display().to_string();
        let mut point = "/usr/bin/systemctl";
        if !Path::new(point).exists() {
            point = "/usr/local/bin/systemctl";
            testkit::run("mount", &["-t", "tmpfs", "none", "/usr/local/bin"]);
            std::fs::write(point, "").unwrap();
        }
        testkit::run("mount", &["--bind", &own, point]);
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn systemctl(&self, line: &str) {
        let path = self.path("systemctl");
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        testkit::run("chmod", &["755", path.to_str().unwrap()]);
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(line.split(' '))
            .current_dir(self.folder.path())
            .env("LINERATE_DATA", self.path("data"))
            .env("PATH", format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap()))
            .env_remove("LINERATE_INVENTORY")
            .output()
            .unwrap();
        (output.status.code().unwrap_or(-1), testkit::text(&output.stdout), testkit::text(&output.stderr))
    }

    fn asked(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("asked")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("asked"));
        text.lines().map(str::to_owned).collect()
    }
}

/// All files of the host that an installation could touch, with mode and content.
fn files() -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut folders = vec![PathBuf::from("/etc"), PathBuf::from("/usr/local/sbin")];
    let mut files = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            }
            let content = if meta.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            files.insert(entry.path(), (meta.permissions().mode(), content));
        }
    }
    files
}

#[test]
fn a_timer_is_shown_installed_and_undone() {
    let Some(site) = Site::new("a_timer_is_shown_installed_and_undone") else { return };
    let before = files();
    let (code, out, err) = site.run("check install local");
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("| ExecStart=/usr/local/sbin/linerate-node check --enforce --jitter 60\n"), "{out}");
    assert!(err.contains("dry run: nothing was written"), "{err}");
    assert_eq!((files(), site.asked()), (before.clone(), Vec::new()));

    let (code, out, err) = site.run("check install --yes local");
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("`linerate check uninstall --yes local` undoes it"), "{err}");
    assert_eq!(
        site.asked(),
        [
            "daemon-reload",
            "show --property=UnitFileState linerate-check.timer",
            "enable --now linerate-check.timer"
        ]
    );
    // The installed program is the node, whatever it was copied from.
    let is_dry_run = || {
        let output = Command::new(PROGRAM)
            .args(["check", "--as", "json", "--only", "clock", "--enforce"])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["dry_run"].clone()
    };
    assert_eq!(is_dry_run(), false);
    // A site that refuses is obeyed.
    std::fs::write("/etc/linerate/checks.toml", "enforce = false\n").unwrap();
    assert_eq!(is_dry_run(), true);
    std::fs::remove_file("/etc/linerate/checks.toml").unwrap();
    assert!(site.run("check install --yes local").1.contains("installed already"));
    assert_eq!(site.asked(), [""; 0]);

    let (_, listed, _) = site.run("undo --list local");
    assert!(listed.contains("linerate check uninstall --yes local"), "{listed}");
    let (code, out, err) = site.run("check uninstall local");
    assert!(code == 0 && out.contains("put back /usr/local/sbin/linerate-node"), "{out}{err}");
    let (code, out, err) = site.run("check uninstall --yes local");
    assert_eq!(code, 0, "{out}{err}");
    let undone = [
        "disable --now linerate-check.timer",
        "stop linerate-check*",
        "reset-failed linerate-check*",
        "daemon-reload",
    ];
    assert_eq!(site.asked(), undone);
    assert_eq!(files(), before);
    assert_eq!(site.run("check uninstall --yes local").0, 2, "nothing is left");
}

#[test]
fn files_of_others_are_kept_and_a_failure_leaves_nothing() {
    let Some(site) = Site::new("files_of_others_are_kept_and_a_failure_leaves_nothing") else { return };
    std::fs::write("/etc/systemd/system/linerate-check.timer", "theirs\n").unwrap();
    let before = files();
    let (code, out, err) = site.run("check install --yes local");
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("/etc/systemd/system/linerate-check.timer"), "{err}");
    assert_eq!(files(), before);
    std::fs::remove_file("/etc/systemd/system/linerate-check.timer").unwrap();

    // A host without a running systemd: nothing but that command was tried.
    let before = files();
    site.systemctl("echo 'System has not been booted with systemd' >&2; exit 1");
    let (code, out, err) = site.run("check install --yes local");
    assert!(code == 4 && err.contains("not been booted with systemd"), "{out}{err}");
    assert_eq!(files(), before);

    // A unit that a person changed since stays, with everything before it.
    site.systemctl("exit 0");
    assert_eq!(site.run("check install --yes local").0, 0);
    std::fs::write("/etc/systemd/system/linerate-check.timer", "mine\n").unwrap();
    let (code, _, err) = site.run("check uninstall --yes local");
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("linerate-check.timer was written by another program"), "{err}");
    assert_eq!(std::fs::read_to_string("/etc/systemd/system/linerate-check.timer").unwrap(), "mine\n");
}

#[test]
fn what_the_site_had_enabled_and_installed_itself_stays() {
    let Some(site) = Site::new("what_the_site_had_enabled_and_installed_itself_stays") else { return };
    assert_eq!(site.run("check install --yes local").0, 0);
    let installed = files();
    // The journal is lost, as on a host that was made from an image of another: all of it is the site's now.
    std::fs::remove_dir_all("/var/lib/linerate").unwrap();
    let asked = site.path("asked").display().to_string();
    site.systemctl(&format!("echo \"$@\" >> {asked}; [ \"$1\" != show ] || echo UnitFileState=enabled"));
    site.asked();
    let (code, out, err) = site.run("check install --yes local");
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = site.run("check uninstall local");
    assert!(code == 0 && !out.contains("disable") && !out.contains("linerate-node"), "{out}{err}");
    site.asked();
    let (code, out, err) = site.run("check uninstall --yes local");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(files(), installed);
    assert_eq!(site.asked(), ["daemon-reload"]);
}

#[test]
fn slurmd_waits_for_the_kept_set() {
    let Some(site) = Site::new("slurmd_waits_for_the_kept_set") else { return };
    let rmem = "/proc/sys/net/ipv4/tcp_rmem";
    std::fs::write(rmem, "4096 131072 33554432").unwrap();
    let kept = "[[cohort]]\nhosts = ['local']\n[[cohort.setting]]\nkey = 'sysctl.net.ipv4.tcp_rmem'\nvalue = '4096 131072 33554432'\n";
    std::fs::write(site.path("kept.toml"), kept).unwrap();
    // As `scontrol show config` of Slurm 22.05 prints it.
    let config = "HealthCheckInterval     = 300 sec\nHealthCheckNodeState    = CYCLE,ANY\n\
                  HealthCheckProgram      = /usr/sbin/nhc\nSLURM_CONF              = /etc/slurm/slurm.conf\n";
    let scontrol = site.path("scontrol");
    std::fs::write(&scontrol, format!("#!/bin/sh\ncat <<'END'\n{config}END\n")).unwrap();
    testkit::run("chmod", &["755", scontrol.to_str().unwrap()]);
    let before = files();
    let (code, out, err) = site.run("check install --slurm --yes local");
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("--- /etc/slurm/slurm.conf"), "{out}");
    assert!(out.contains("-HealthCheckProgram=/usr/sbin/nhc"), "{out}");
    assert!(out.contains("+HealthCheckProgram=/etc/linerate/slurm-check"), "{out}");
    assert!(out.contains("/usr/sbin/nhc is not run any more") && !out.contains("Interval"), "{out}");
    assert_eq!(
        site.asked(),
        [
            "daemon-reload",
            "show --property=UnitFileState linerate-kept.service",
            "enable linerate-kept.service"
        ]
    );
    testkit::run("/etc/linerate/slurm-check", &[]);
    let boot = || {
        let output = Command::new(PROGRAM).args(["check", "--as", "boot", "--enforce"]).output().unwrap();
        (output.status.code(), testkit::text(&output.stdout))
    };
    assert_eq!(boot().0, Some(0), "in force: {}", boot().1);
    // What sets it at boot is late: the unit waits, and slurmd with it.
    std::fs::write(rmem, "4096 65536 212992").unwrap();
    let mut waiting = Command::new(PROGRAM).args(["check", "--as", "boot", "--enforce"]).spawn().unwrap();
    testkit::pause();
    assert_eq!(waiting.try_wait().unwrap(), None);
    std::fs::write(rmem, "4096 131072 33554432").unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    // It never comes.
    std::fs::write(rmem, "4096 65536 212992").unwrap();
    let (code, text) = boot();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("4096 65536 212992, and 4096 131072 33554432 was kept"), "{text}");
    let (code, out, err) = site.run("undo check local --yes=check");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(files(), before);
}

#[test]
fn hosts_are_checked_over_their_sessions() {
    let Some(site) = Site::new("hosts_are_checked_over_their_sessions") else { return };
    let (code, out, err) = site.run("check local --json");
    assert!([0, 1, 3].contains(&code), "{out}{err}");
    let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    linerate_testkit::schemas::hold("checks", &value);
    let host = &value["hosts"][0];
    assert_eq!((&host["host"], &host["report"]["version"]), (&"local".into(), &1.into()), "{value}");
    assert!(host["report"]["results"].as_array().unwrap().len() > 10, "{value}");
    let (_, out, err) = site.run("check local");
    assert!(out.starts_with("local: "), "{out}{err}");
}
