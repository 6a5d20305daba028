//! Files that make a change survive a reboot, and the way back from them.
//!
//! In: what a setting says about its persistence, and what is on the disk. Out: files before and after; lines
//! of other people and of other trials in the same file stay as they are. It never writes before the journal
//! holds what was there.

use std::path::{Path, PathBuf};

use linerate_model::change::{Change, PlannedFile};
use serde::{Deserialize, Serialize};

use super::ChangeError;
use super::host::{Content, Host};
use super::setting::{FileError, Persist};

/// One line of a file that several settings share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineEdit {
    section: Option<String>,
    name: String,
    line: String,
}

/// A file before and after a trial was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEdit {
    /// Absolute.
    pub(crate) path: PathBuf,
    before: Option<Content>,
    after: Content,
    /// Empty when the whole file is ours.
    lines: Vec<LineEdit>,
}

impl FileEdit {
    /// For a person: the lines that are set, or all of a file that is ours alone.
    pub(crate) fn planned(&self) -> PlannedFile {
        let lines = match (&self.after, self.lines.is_empty()) {
            (Content::Link(to), _) => vec![format!("-> {}", to.display())],
            (Content::Text(text), true) => text.lines().map(str::to_owned).collect(),
            (Content::Text(_), false) => self.lines.iter().map(|edit| edit.line.clone()).collect(),
        };
        PlannedFile { path: self.path.clone(), is_new: self.before.is_none(), lines }
    }
}

/// What all changes of a trial do to files. Writes nothing.
pub(crate) fn plan<H: Host>(
    host: &H,
    name: &str,
    etc_dir: &Path,
    changes: &[Change],
) -> Result<Vec<FileEdit>, ChangeError> {
    let mut edits: Vec<FileEdit> = Vec::new();
    for change in changes {
        match host.persist(&change.key, &change.to) {
            Persist::Impossible { reason } => {
                return Err(ChangeError::CannotStay {
                    host: name.to_owned(),
                    key: change.key.clone(),
                    reason,
                });
            }
            Persist::File { path, preamble, section, name: field, line } => {
                let edit = LineEdit { section, name: field, line };
                add_line(host, name, &mut edits, &below(host, name, etc_dir, &path)?, &preamble, edit)?;
            }
            Persist::Unit { name: unit, description, exec } => {
                let service = PathBuf::from(format!("systemd/system/{unit}.service"));
                let wants = PathBuf::from(format!("systemd/system/multi-user.target.wants/{unit}.service"));
                let text = Content::Text(unit_text(&description, &exec));
                let link = Content::Link(PathBuf::from(format!("../{unit}.service")));
                for (path, after) in [(service, text), (wants, link)] {
                    let path = below(host, name, etc_dir, &path)?;
                    let before = load(host, name, &path)?;
                    edits.push(FileEdit { path, before, after, lines: Vec::new() });
                }
            }
        }
    }
    Ok(edits)
}

fn add_line<H: Host>(
    host: &H,
    name: &str,
    edits: &mut Vec<FileEdit>,
    path: &Path,
    preamble: &str,
    edit: LineEdit,
) -> Result<(), ChangeError> {
    if !edits.iter().any(|e| e.path == path) {
        let before = load(host, name, path)?;
        let after = before.clone().unwrap_or_else(|| Content::Text(preamble.to_owned()));
        edits.push(FileEdit { path: path.to_owned(), before, after, lines: Vec::new() });
    }
    let file = edits.iter_mut().find(|e| e.path == path).expect("it was added above");
    let Content::Text(text) = &file.after else {
        let reason = FileError::Link;
        return Err(ChangeError::StrayFile { host: name.to_owned(), path: path.to_owned(), reason });
    };
    file.after = Content::Text(with_line(text, edit.section.as_deref(), &edit.name, Some(&edit.line)));
    file.lines.push(edit);
    Ok(())
}

/// Puts the files of a kept trial in place and reads them back.
pub(crate) fn write<H: Host>(host: &H, name: &str, files: &[FileEdit]) -> Result<(), ChangeError> {
    for file in files {
        store(host, name, &file.path, Some(&file.after))?;
        if load(host, name, &file.path)?.as_ref() != Some(&file.after) {
            let reason = FileError::NotReadBack;
            return Err(ChangeError::StrayFile { host: name.to_owned(), path: file.path.clone(), reason });
        }
    }
    Ok(())
}

/// Takes the files of a trial back, last one first. What others wrote into them meanwhile stays.
pub(crate) fn restore<H: Host>(host: &H, name: &str, files: &[FileEdit]) -> Vec<String> {
    let mut failures = Vec::new();
    for file in files.iter().rev() {
        let result = load(host, name, &file.path).and_then(|now| {
            let wanted = wanted(file, now.as_ref());
            if wanted == now { Ok(()) } else { store(host, name, &file.path, wanted.as_ref()) }
        });
        if let Err(error) = result {
            failures.push(error.line());
        }
    }
    failures
}

/// What should be at the path of a file after undo, given what is there now.
fn wanted(file: &FileEdit, now: Option<&Content>) -> Option<Content> {
    if now == Some(&file.after) {
        return file.before.clone();
    }
    let (Some(Content::Text(text)), false) = (now, file.lines.is_empty()) else { return now.cloned() };
    let before = match &file.before {
        Some(Content::Text(before)) => before.as_str(),
        _ => "",
    };
    let mut text = text.clone();
    for edit in file.lines.iter().rev() {
        let section = edit.section.as_deref();
        if find(&text, section, &edit.name).as_deref() == Some(edit.line.as_str()) {
            text = with_line(&text, section, &edit.name, find(before, section, &edit.name).as_deref());
        }
    }
    Some(Content::Text(text))
}

/// Where a persistent setting can be: folder below the one that stands for `/etc`, and what the names of
/// files there start and end with.
const FILES: [(&str, &str, &str); 5] = [
    ("sysctl.d", "90-linerate", ".conf"),
    ("systemd/network", "10-linerate-", ".link"),
    ("udev/rules.d", "90-linerate-", ".rules"),
    ("systemd/system", "linerate-", ".service"),
    ("systemd/system/multi-user.target.wants", "linerate-", ".service"),
];

/// Says why a path is not one of a persistent setting of this program, or which other user could exchange it.
/// Also asked about every path of a journal.
pub(crate) fn check<H: Host>(host: &H, etc_dir: &Path, path: &Path) -> Result<(), FileError> {
    let outside = || FileError::Outside(etc_dir.to_owned());
    let below = path.strip_prefix(etc_dir).map_err(|_| outside())?;
    let plain = |c: std::path::Component<'_>| matches!(c, std::path::Component::Normal(_));
    let name = below.file_name().and_then(|name| name.to_str()).ok_or_else(outside)?;
    let fits = |(folder, start, end): &(&str, &str, &str)| {
        below.parent() == Some(Path::new(folder)) && name.starts_with(start) && name.ends_with(end)
    };
    if !below.components().all(plain) || !FILES.iter().any(fits) {
        return Err(outside());
    }
    for folder in below.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        let folder = etc_dir.join(folder);
        if host.is_link(&folder).map_err(|source| FileError::Folder { path: folder.clone(), source })? {
            return Err(FileError::FolderLink(folder));
        }
    }
    Ok(host.check_closed(path.parent().unwrap_or(etc_dir))?)
}

fn below<H: Host>(host: &H, name: &str, etc_dir: &Path, path: &Path) -> Result<PathBuf, ChangeError> {
    let path = etc_dir.join(path);
    match check(host, etc_dir, &path) {
        Ok(()) => Ok(path),
        Err(reason) => Err(ChangeError::StrayFile { host: name.to_owned(), path, reason }),
    }
}

fn load<H: Host>(host: &H, name: &str, path: &Path) -> Result<Option<Content>, ChangeError> {
    host.load(path).map_err(|source| ChangeError::Disk {
        host: name.to_owned(),
        what: "read",
        path: path.to_owned(),
        source,
    })
}

fn store<H: Host>(host: &H, name: &str, path: &Path, content: Option<&Content>) -> Result<(), ChangeError> {
    content.map_or_else(|| host.remove(path), |c| host.store(path, c)).map_err(|source| ChangeError::Disk {
        host: name.to_owned(),
        what: "write",
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn unit_text(description: &str, exec: &[String]) -> String {
    let mut text = format!(
        "# Written by linerate; `linerate undo` removes it.\n[Unit]\nDescription={description}\nAfter=network.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n"
    );
    for line in exec {
        text.push_str("ExecStart=");
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    text
}

/// Name of the field that a line sets, `None` for comments, sections and blank lines.
fn field(line: &str) -> Option<&str> {
    let name = line.split_once('=')?.0.trim();
    // A leading `-` tells sysctl to go on after a failure.
    (!name.starts_with(['#', ';', '['])).then(|| name.trim_start_matches('-'))
}

/// Positions of the lines of a section: all lines when there are no sections, `None` when it is not there.
fn section_lines(lines: &[&str], section: Option<&str>) -> Option<std::ops::Range<usize>> {
    let Some(section) = section else { return Some(0..lines.len()) };
    let start = lines.iter().position(|l| l.trim() == section)? + 1;
    let length =
        lines[start..].iter().position(|l| l.trim_start().starts_with('[')).unwrap_or(lines.len() - start);
    Some(start..start + length)
}

/// The line that sets a field.
fn find(text: &str, section: Option<&str>, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let range = section_lines(&lines, section)?;
    lines[range].iter().rev().find(|l| field(l) == Some(name.trim())).map(|l| (*l).to_owned())
}

/// The text with a field set by exactly this line, or by none.
fn with_line(text: &str, section: Option<&str>, name: &str, line: Option<&str>) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if let Some(section) = section
        && line.is_some()
        && section_lines(&lines, Some(section)).is_none()
    {
        lines.push(section);
    }
    if let Some(range) = section_lines(&lines, section) {
        let ours: Vec<usize> = range.clone().filter(|i| field(lines[*i]) == Some(name.trim())).collect();
        // A new line goes behind the last line of the section that is not blank.
        let end = range.clone().rev().find(|i| !lines[*i].trim().is_empty()).map_or(range.start, |i| i + 1);
        let at = ours.first().copied().unwrap_or(end);
        if let Some(line) = line {
            lines.insert(at, line);
        }
        for i in ours.into_iter().rev() {
            lines.remove(i + usize::from(line.is_some()));
        }
    }
    lines.into_iter().fold(String::new(), |mut text, line| {
        text.push_str(line);
        text.push('\n');
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::host::RealHost;

    #[test]
    fn a_line_is_added_replaced_and_removed_in_its_section_only() {
        let link = "[Match]\nOriginalName=eth0\nMTUBytes=1\n\n[Link]\nName=x\n";
        let with = with_line(link, Some("[Link]"), "MTUBytes", Some("MTUBytes=9000"));
        assert_eq!(with, "[Match]\nOriginalName=eth0\nMTUBytes=1\n\n[Link]\nName=x\nMTUBytes=9000\n");
        let again = with_line(&with, Some("[Link]"), "MTUBytes", Some("MTUBytes=1500"));
        assert_eq!(again, link.to_owned() + "MTUBytes=1500\n");
        assert_eq!(with_line(&again, Some("[Link]"), "MTUBytes", None), link);
        assert_eq!(
            with_line("[Match]\nDriver=virtio_net\n", Some("[Link]"), "MTUBytes", Some("MTUBytes=9000")),
            "[Match]\nDriver=virtio_net\n[Link]\nMTUBytes=9000\n"
        );
    }

    #[test]
    fn several_older_lines_become_one_and_comments_stay() {
        let old = "# net.a = 0\nnet.a=1\nnet.b = 2\n-net.a = 3\n";
        assert_eq!(with_line(old, None, "net.a", Some("net.a = 4")), "# net.a = 0\nnet.a = 4\nnet.b = 2\n");
        assert_eq!(find(old, None, "net.a").as_deref(), Some("-net.a = 3"));
        assert_eq!(with_line("", None, "net.a", Some("net.a = 4")), "net.a = 4\n");
    }

    #[test]
    fn undo_leaves_what_others_wrote_meanwhile() {
        let edit = LineEdit { section: None, name: "net.a".into(), line: "net.a = 2".into() };
        let file = FileEdit {
            path: "f".into(),
            before: Some(Content::Text("net.a = 1\n".into())),
            after: Content::Text("net.a = 2\n".into()),
            lines: vec![edit],
        };
        let now = |text: &str| Some(Content::Text(text.to_owned()));
        assert_eq!(wanted(&file, now("net.a = 2\n").as_ref()), now("net.a = 1\n"));
        assert_eq!(wanted(&file, now("net.a = 2\nnet.b = 7\n").as_ref()), now("net.a = 1\nnet.b = 7\n"));
        assert_eq!(wanted(&file, now("net.a = 9\n").as_ref()), now("net.a = 9\n"), "not our line any more");
        assert_eq!(wanted(&file, None), None, "somebody removed it");
    }

    #[test]
    fn a_plan_has_the_lines_that_are_set_and_all_of_what_is_ours_alone() {
        let edit = LineEdit { section: None, name: "net.a".into(), line: "net.a = 2".into() };
        let text = |text: &str| Content::Text(text.to_owned());
        let file = |before, after, lines| FileEdit { path: "f".into(), before, after, lines };
        let set = file(Some(text("net.b = 1\n")), text("net.b = 1\nnet.a = 2\n"), vec![edit]).planned();
        assert_eq!((set.is_new, set.lines), (false, vec!["net.a = 2".to_owned()]));
        let unit = file(None, text("[Unit]\nX=1\n"), Vec::new()).planned();
        assert_eq!((unit.is_new, unit.lines.len()), (true, 2));
        let link = file(None, Content::Link("../u.service".into()), Vec::new()).planned();
        assert_eq!(link.lines, ["-> ../u.service"]);
    }

    #[test]
    fn a_path_never_leaves_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let etc = folder.path();
        let host = RealHost::new(linerate_sys::root::Root::live());
        for outside in [
            "../passwd",
            "/passwd",
            "passwd",
            "cron.d/x",
            "sysctl.d/x.conf",
            "sysctl.d/90-linerate.conf/..",
            "sysctl.d/../sysctl.d/90-linerate.conf",
            "sysctl.d/../cron.d/90-linerate.conf",
            "systemd/system/ssh.service",
            "systemd/system/linerate-x.timer",
            "udev/rules.d/90-other.rules",
            "systemd/system/ssh.service.d/linerate-x.service",
        ] {
            let refused = below(&host, "h", etc, Path::new(outside)).unwrap_err().to_string();
            assert!(refused.contains("no file of persistent settings"), "{outside}: {refused}");
        }
        for ours in [
            "sysctl.d/90-linerate.conf",
            "systemd/network/10-linerate-em1.link",
            "udev/rules.d/90-linerate-sda-0-scheduler.rules",
            "systemd/system/linerate-em1-qdisc.service",
            "systemd/system/multi-user.target.wants/linerate-em1-qdisc.service",
        ] {
            assert_eq!(below(&host, "h", etc, Path::new(ours)).unwrap(), etc.join(ours));
        }
        std::os::unix::fs::symlink("/tmp", etc.join("sysctl.d")).unwrap();
        let refused = below(&host, "h", etc, Path::new("sysctl.d/90-linerate.conf")).unwrap_err();
        assert!(refused.line().ends_with("sysctl.d is a symbolic link"), "{refused}");
    }

    #[test]
    fn a_folder_of_settings_that_others_can_write_or_exchange_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let temporary = tempfile::tempdir().unwrap();
        let etc = temporary.path().join("etc");
        let folder = etc.join("sysctl.d");
        std::fs::create_dir_all(&folder).unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let host = RealHost::new(linerate_sys::root::Root::live());
        let file = folder.join("90-linerate.conf");
        let text = Content::Text("net.a = 1\n".to_owned());
        for (path, wrong) in [(&etc, 0o777), (&etc, 0o775), (&folder, 0o757), (&folder, 0o1777)] {
            mode(path, wrong);
            let refused = check(&host, &etc, &file).unwrap_err().to_string();
            let words = format!("{} is writable by other users (owner uid ", path.display());
            assert!(refused.starts_with(&words), "{refused}");
            assert!(refused.contains(&format!("mode {wrong:04o}")), "{refused}");
            assert!(host.store(&file, &text).is_err() && !file.exists(), "{}", path.display());
            mode(path, 0o755);
        }
        assert!(check(&host, &etc, &file).is_ok());
        host.store(&file, &text).unwrap();
        if linerate_sys::process::effective_user() != 0 {
            println!(
                "SKIPPED a_folder_of_settings_that_others_can_write_or_exchange_is_refused (owner): no root"
            );
            return;
        }
        for path in [&etc, &folder, &temporary.path().to_owned()] {
            chown(path, Some(54_321), None).unwrap();
            let refused = check(&host, &etc, &file).unwrap_err().to_string();
            assert!(refused.contains(&format!("{} is owned by uid 54321", path.display())), "{refused}");
            chown(path, Some(0), None).unwrap();
        }
    }
}
