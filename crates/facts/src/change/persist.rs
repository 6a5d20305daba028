//! Files that make a change survive a reboot, and the way back from them.
//!
//! In: what a setting says about its persistence, and what is on the disk. Out: files before and after; lines
//! of other people and of other trials in the same file stay as they are. It never writes before the journal
//! holds what was there.

use std::path::{Path, PathBuf};

use linerate_model::change::{Change, PlannedFile};
use serde::{Deserialize, Serialize};

use super::ChangeError;
use super::host::{ChangingHost, Content};
use super::lines::{find, with_line};
use super::setting::{FileError, FileSyntax, Persist};
use super::unit::unit_text;

/// One line of a file that several settings share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineEdit {
    section: Option<String>,
    #[serde(default)]
    syntax: FileSyntax,
    name: String,
    line: String,
}

impl LineEdit {
    fn put_into(&self, text: &str, line: Option<&str>) -> String {
        with_line(text, self.section.as_deref(), self.syntax, &self.name, line)
    }

    fn find_in(&self, text: &str) -> Option<String> {
        find(text, self.section.as_deref(), self.syntax, &self.name)
    }
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
    /// What a file begins with that is ours alone: when nothing else is left in it, it is removed.
    #[serde(default)]
    preamble: String,
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
pub(crate) fn plan<H: ChangingHost>(
    host: &H,
    name: &str,
    etc_dir: &Path,
    changes: &[Change],
) -> Result<Vec<FileEdit>, ChangeError> {
    let mut edits: Vec<FileEdit> = Vec::new();
    for change in changes {
        let beside = host.persist_beside(etc_dir, &change.key);
        for part in [host.persist(etc_dir, &change.key, &change.to)].into_iter().chain(beside) {
            add(host, name, etc_dir, &mut edits, &change.key, part)?;
        }
    }
    let after: Vec<(PathBuf, Content)> = edits.iter().map(|e| (e.path.clone(), e.after.clone())).collect();
    match host.overridden(etc_dir, &after, changes) {
        Some((key, reason)) => Err(ChangeError::CannotStay { host: name.to_owned(), key, reason }),
        None => Ok(edits),
    }
}

/// Adds what one change does to files.
fn add<H: ChangingHost>(
    host: &H,
    name: &str,
    etc_dir: &Path,
    edits: &mut Vec<FileEdit>,
    key: &str,
    part: Persist,
) -> Result<(), ChangeError> {
    match part {
        Persist::Impossible { reason } => {
            Err(ChangeError::CannotStay { host: name.to_owned(), key: key.into(), reason })
        }
        Persist::File { path, preamble, section, syntax, name: field, line } => {
            let edit = LineEdit { section, syntax, name: field, line };
            add_line(host, name, edits, &below(host, name, etc_dir, &path)?, &preamble, edit)
        }
        Persist::Unit { name: unit, description, exec } => {
            let service = PathBuf::from(format!("systemd/system/{unit}.service"));
            let wants = PathBuf::from(format!("systemd/system/multi-user.target.wants/{unit}.service"));
            let text = Content::Text(unit_text(&unit, &description, &exec));
            let link = Content::Link(PathBuf::from(format!("../{unit}.service")));
            for (path, after) in [(service, text), (wants, link)] {
                let path = below(host, name, etc_dir, &path)?;
                let before = load(host, name, &path)?;
                edits.push(FileEdit { path, before, after, lines: Vec::new(), preamble: String::new() });
            }
            Ok(())
        }
    }
}

fn add_line<H: ChangingHost>(
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
        let preamble = preamble.to_owned();
        edits.push(FileEdit { path: path.to_owned(), before, after, lines: Vec::new(), preamble });
    }
    let file = edits.iter_mut().find(|e| e.path == path).expect("it was added above");
    let Content::Text(text) = &file.after else {
        let reason = FileError::Link;
        return Err(ChangeError::StrayFile { host: name.to_owned(), path: path.to_owned(), reason });
    };
    file.after = Content::Text(edit.put_into(text, Some(&edit.line)));
    file.lines.push(edit);
    Ok(())
}

/// Puts the files of a kept trial in place and reads them back.
pub(crate) fn write<H: ChangingHost>(host: &H, name: &str, files: &[FileEdit]) -> Result<(), ChangeError> {
    for file in files {
        let now = load(host, name, &file.path)?;
        if now != file.before && now.as_ref() != Some(&file.after) {
            let reason = FileError::Changed;
            return Err(ChangeError::StrayFile { host: name.to_owned(), path: file.path.clone(), reason });
        }
        store(host, name, &file.path, Some(&file.after))?;
        if load(host, name, &file.path)?.as_ref() != Some(&file.after) {
            let reason = FileError::NotReadBack;
            return Err(ChangeError::StrayFile { host: name.to_owned(), path: file.path.clone(), reason });
        }
    }
    Ok(())
}

/// Takes the files of a trial back, last one first. What others wrote into them meanwhile stays.
pub(crate) fn restore<H: ChangingHost>(host: &H, name: &str, files: &[FileEdit]) -> Vec<String> {
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
        if edit.find_in(&text).as_deref() == Some(edit.line.as_str()) {
            text = edit.put_into(&text, edit.find_in(before).as_deref());
        }
    }
    let is_empty = !file.preamble.is_empty() && text.trim() == file.preamble.trim();
    (!is_empty).then_some(Content::Text(text))
}

/// Where a persistent setting can be: folder below the one that stands for `/etc` (`*` is any one), and what
/// the names of files there start and end with.
const FILES: [(&str, &str, &str); 17] = [
    ("", "sysctl.conf", "sysctl.conf"),
    ("sysctl.d", "90-linerate", ".conf"),
    ("sysctl.d", "zz-linerate", ".conf"),
    ("modules-load.d", "90-linerate-", ".conf"),
    ("systemd/network", "00-linerate-", ".link"),
    ("systemd/network", "10-linerate-", ".link"),
    ("systemd/network/*.network.d", "90-linerate", ".conf"),
    ("udev/rules.d", "90-linerate-", ".rules"),
    ("udev/rules.d", "zz-linerate-", ".rules"),
    ("systemd/system", "linerate-", ".service"),
    ("systemd/system/multi-user.target.wants", "linerate-", ".service"),
    ("NetworkManager/system-connections", "", ".nmconnection"),
    ("netplan", "zz-linerate-", ".yaml"),
    ("network", "interfaces", "interfaces"),
    ("network/interfaces.d", "", ""),
    ("tuned/*", "tuned.conf", "tuned.conf"),
    ("tuned/profiles/*", "tuned.conf", "tuned.conf"),
];

/// Whether a folder is one of a pattern with at most one `*` in each of its parts.
fn is_folder(pattern: &str, folder: &Path) -> bool {
    let (parts, names) = (Path::new(pattern).components(), folder.components());
    parts.clone().count() == names.clone().count()
        && parts.zip(names).all(|(part, name)| {
            let (part, name) = (part.as_os_str().to_string_lossy(), name.as_os_str().to_string_lossy());
            match part.split_once('*') {
                Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                None => part == name,
            }
        })
}

/// Refuses an edit that this program would not plan: its lines make the text after of the text before, and
/// none of them runs a program.
pub(crate) fn check_edit<H: ChangingHost>(
    host: &H,
    etc_dir: &Path,
    file: &FileEdit,
) -> Result<(), FileError> {
    check(host, etc_dir, &file.path)?;
    if file.lines.is_empty() {
        // All of a file is ours alone only where its name is.
        let is_unit = file.path.starts_with(etc_dir.join("systemd/system"));
        return if is_unit { Ok(()) } else { Err(FileError::OtherText) };
    }
    let Content::Text(after) = &file.after else { return Ok(()) };
    let before = match &file.before {
        Some(Content::Text(text)) => text.clone(),
        _ => file.preamble.clone(),
    };
    let made = file.lines.iter().fold(before, |text, edit| edit.put_into(&text, Some(&edit.line)));
    let runs = |edit: &LineEdit| {
        edit.syntax == FileSyntax::Stanza && (edit.name.ends_with("up") || edit.name.ends_with("down"))
    };
    // Journals of earlier versions have no preamble.
    let is_known = file.before.is_some() || !file.preamble.is_empty();
    if is_known && made != *after || file.lines.iter().any(|edit| runs(edit) || edit.line.contains('\n')) {
        return Err(FileError::OtherText);
    }
    Ok(())
}

/// Says why a path is not one of a persistent setting of this program, or which other user could exchange it.
/// Also asked about every path of a journal.
pub(crate) fn check<H: ChangingHost>(host: &H, etc_dir: &Path, path: &Path) -> Result<(), FileError> {
    let outside = || FileError::Outside(etc_dir.to_owned());
    let below = path.strip_prefix(etc_dir).map_err(|_| outside())?;
    let plain = |c: std::path::Component<'_>| matches!(c, std::path::Component::Normal(_));
    let name = below.file_name().and_then(|name| name.to_str()).ok_or_else(outside)?;
    let fits = |(folder, start, end): &(&str, &str, &str)| {
        below.parent().is_some_and(|parent| is_folder(folder, parent))
            && name.starts_with(start)
            && name.ends_with(end)
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

fn below<H: ChangingHost>(host: &H, name: &str, etc_dir: &Path, path: &Path) -> Result<PathBuf, ChangeError> {
    let path = etc_dir.join(path);
    match check(host, etc_dir, &path) {
        Ok(()) => Ok(path),
        Err(reason) => Err(ChangeError::StrayFile { host: name.to_owned(), path, reason }),
    }
}

fn load<H: ChangingHost>(host: &H, name: &str, path: &Path) -> Result<Option<Content>, ChangeError> {
    host.load(path).map_err(|source| ChangeError::Disk {
        host: name.to_owned(),
        what: "read",
        path: path.to_owned(),
        source,
    })
}

fn store<H: ChangingHost>(
    host: &H,
    name: &str,
    path: &Path,
    content: Option<&Content>,
) -> Result<(), ChangeError> {
    content.map_or_else(|| host.remove(path), |c| host.store(path, c)).map_err(|source| ChangeError::Disk {
        host: name.to_owned(),
        what: "write",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::host::RealHost;

    #[test]
    fn undo_leaves_what_others_wrote_meanwhile() {
        let edit = LineEdit {
            section: None,
            syntax: FileSyntax::Assign,
            name: "net.a".into(),
            line: "net.a = 2".into(),
        };
        let file = FileEdit {
            path: "f".into(),
            before: Some(Content::Text("net.a = 1\n".into())),
            after: Content::Text("net.a = 2\n".into()),
            lines: vec![edit],
            preamble: "# ours\n".into(),
        };
        let now = |text: &str| Some(Content::Text(text.to_owned()));
        assert_eq!(wanted(&file, now("net.a = 2\n").as_ref()), now("net.a = 1\n"));
        assert_eq!(wanted(&file, now("net.a = 2\nnet.b = 7\n").as_ref()), now("net.a = 1\nnet.b = 7\n"));
        assert_eq!(wanted(&file, now("net.a = 9\n").as_ref()), now("net.a = 9\n"), "not our line any more");
        assert_eq!(wanted(&file, None), None, "somebody removed it");
        let fresh = FileEdit { before: None, ..file };
        assert_eq!(wanted(&fresh, now("# ours\nnet.a = 2\n").as_ref()), None, "nothing of others is left");
    }

    #[test]
    fn a_plan_has_the_lines_that_are_set_and_all_of_what_is_ours_alone() {
        let edit = LineEdit {
            section: None,
            syntax: FileSyntax::Assign,
            name: "net.a".into(),
            line: "net.a = 2".into(),
        };
        let text = |text: &str| Content::Text(text.to_owned());
        let file = |before, after, lines| FileEdit {
            path: "f".into(),
            before,
            after,
            lines,
            preamble: String::new(),
        };
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
            "sysctl.confx",
            "network/interfaces.bak",
            "network/if-up.d/x",
            "netplan/50-cloud-init.yaml",
            "tuned/tuned.conf",
            "tuned/active_profile",
            "NetworkManager/NetworkManager.conf",
            "NetworkManager/dispatcher.d/x",
            "systemd/system/ssh.service.d/linerate-x.service",
        ] {
            let refused = below(&host, "h", etc, Path::new(outside)).unwrap_err().to_string();
            assert!(refused.contains("no file of persistent settings"), "{outside}: {refused}");
        }
        for ours in [
            "sysctl.d/90-linerate.conf",
            "systemd/network/10-linerate-em1.link",
            "udev/rules.d/90-linerate-sda-0-scheduler.rules",
            "sysctl.conf",
            "network/interfaces",
            "netplan/zz-linerate-eth0.yaml",
            "tuned/mine/tuned.conf",
            "NetworkManager/system-connections/x y.nmconnection",
            "systemd/network/10-x.network.d/90-linerate.conf",
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
