//! `site`: scripts of the site in `/etc/linerate/checks.d`, with the codes of Nagios: 0 well, 1 warns, 2
//! fails, anything else unknown; the first line that is printed is the text.
//!
//! They run as the user of the check, root under a timer. So only what root alone can write is run: the file
//! and every folder above it are root's (or the own user's), writable by no one else, and no links.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_sys::ancestors::{self, Trusted, WRITABLE_BY_OTHERS};
use linerate_sys::process;
use linerate_sys::root::Root;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, Severity, TWICE};
use super::super::settings::Settings;

/// The check.
pub(in super::super) struct Site;

/// Where the scripts are.
const FOLDER: &str = "/etc/linerate/checks.d";
const SCRIPTS_MAX: usize = 64;
/// Of what a script prints.
const PRINTED_BYTES: u64 = 4096;
const TEXT_CHARS: usize = 200;
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

static ABOUT: About = About {
    id: "site",
    title: "a script of the site fails",
    reads: "/etc/linerate/checks.d/*",
    severity: Severity::Fail,
    rule: TWICE,
    lane: Lane::Site,
    is_on: true,
    thresholds: &[],
    takes_expected: false,
};

/// Whether no other user can exchange or write a script.
fn check_ours(path: &Path) -> Result<(), String> {
    let meta = std::fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not run: no regular file".to_owned());
    }
    if meta.uid() != 0 && meta.uid() != process::effective_user() {
        return Err(format!("not run: owned by uid {}", meta.uid()));
    }
    if meta.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(format!("not run: others can write it (mode {:04o})", meta.mode() & 0o7777));
    }
    Ok(())
}

/// Whether no other user can exchange what is in a folder.
fn check_folder(folder: &Path) -> Result<(), String> {
    let reached = ancestors::reach(folder, &Trusted::new()).map_err(|error| format!("not run: {error}"))?;
    if !reached.missing.is_empty() {
        return Err("not run: the folder is gone".to_owned());
    }
    let meta = reached.folder.metadata().map_err(|error| error.to_string())?;
    Trusted::new().check_closed(folder, &meta).map_err(|error| format!("not run: {error}"))
}

/// Runs a script; its code and its first line.
fn run(path: &Path) -> Result<(i32, String), String> {
    let mut command = Command::new(path);
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C").current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("not run: {error}"))?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // What is printed beyond is not read: a script that goes on printing ends by its closed pipe.
        let _ = stdout.take(PRINTED_BYTES).read_to_end(&mut bytes);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    // By its limit of CPU, or by hand.
    let code = status.code().ok_or_else(|| format!("ended by a signal: {status}"))?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().split('|').next().unwrap_or_default().trim();
    Ok((code, line.chars().filter(|c| !c.is_control()).take(TEXT_CHARS).collect()))
}

/// Names of what is to be run in a folder.
fn scripts(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && !name.ends_with('~') && !name.ends_with(".rpmsave"))
        .collect();
    names.sort();
    names.truncate(SCRIPTS_MAX);
    names
}

fn read_one(folder: &Path, name: &str) -> Row {
    let path = folder.join(name);
    // Held open, so that what was checked has its name until it runs.
    let run_it = || -> Result<(i32, String), String> {
        check_folder(folder)?;
        check_ours(&path)?;
        let _held = File::open(&path).map_err(|error| error.to_string())?;
        run(&path)
    };
    match run_it() {
        Ok((code, text)) => Row::new(name).value("code", f64::from(code)).word("text", text),
        Err(reason) => Row::new(name).word("text", reason),
    }
}

impl Check for Site {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, settings: &Settings) -> Vec<String> {
        if !root.is_live() {
            return Vec::new();
        }
        scripts(Path::new(FOLDER)).into_iter().filter(|name| !settings.leaves(name)).collect()
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        Ok(vec![read_one(Path::new(FOLDER), reading.item)].into())
    }

    fn judge(&self, row: &Row, _past: &mut Past, _now: Moment, _settings: &Settings) -> Observation {
        let text = row.text("text");
        match row.get("code").map(|code| code as i32) {
            Some(0) => Observation::good(row, text),
            Some(1) => Observation::bad(row, text).only_warns(),
            Some(2) => Observation::bad(row, text),
            _ => Observation::unknown(row, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str, mode: u32) {
        std::fs::write(folder.join(name), text).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn scripts_run_with_the_codes_of_nagios_and_only_when_no_one_else_can_write_them() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        put(here, "a-good", "#!/bin/sh\necho fine '| x=1'; echo more\n", 0o755);
        put(here, "b-warn", "#!/bin/sh\necho $HOME$SECRET near; exit 1\n", 0o700);
        put(here, "c-open", "#!/bin/sh\nexit 2\n", 0o777);
        put(here, "d-plain", "exit 2\n", 0o644);
        put(here, ".hidden", "#!/bin/sh\nexit 2\n", 0o755);
        std::os::unix::fs::symlink("/bin/true", here.join("e-link")).unwrap();
        put(here, "f-killed", "#!/bin/sh\nkill -9 $$\n", 0o755);
        let names = scripts(here);
        assert_eq!(names, ["a-good", "b-warn", "c-open", "e-link", "f-killed"]);
        let rows: Vec<Row> = names.iter().map(|name| read_one(here, name)).collect();
        assert_eq!((rows[0].get("code"), rows[0].text("text")), (Some(0.0), "fine"));
        assert_eq!((rows[1].get("code"), rows[1].text("text")), (Some(1.0), "near"), "no environment");
        assert_eq!(
            (rows[2].get("code"), rows[2].text("text")),
            (None, "not run: others can write it (mode 0777)")
        );
        assert_eq!((rows[3].get("code"), rows[3].text("text")), (None, "not run: no regular file"));
        assert_eq!(
            (rows[4].get("code"), rows[4].text("text")),
            (None, "ended by a signal: signal: 9 (SIGKILL)")
        );
        std::fs::set_permissions(here, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(read_one(here, "a-good").text("text").starts_with("not run: "));
    }
}
