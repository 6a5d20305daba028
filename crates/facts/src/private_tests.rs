//! The state folder: what is made private, what is tightened, what is refused. Other owners need root.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use super::*;

/// Some other user.
const STRANGER: u32 = 54_321;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder of journals as an older version left it.
fn old_folder(above: &Path) -> PathBuf {
    let trials = above.join("state/trials");
    fs::create_dir_all(&trials).unwrap();
    fs::write(trials.join("t1.json"), "{}").unwrap();
    for folder in [trials.parent().unwrap(), &trials] {
        set_mode(folder, 0o755);
    }
    set_mode(&trials.join("t1.json"), 0o644);
    trials
}

fn read(trials: &Path) -> io::Result<Option<String>> {
    Folder::open(trials)?.map_or(Ok(None), |folder| folder.read(OsStr::new("t1.json")))
}

/// What is wrong, and the hint.
fn refused(result: io::Result<Option<String>>) -> (String, String) {
    let error = result.unwrap_err();
    let refused = NotPrivate::of(&error).unwrap_or_else(|| panic!("{error}"));
    (refused.to_string(), refused.hint.clone())
}

fn is_root(test: &str) -> bool {
    let root = process::effective_user() == 0;
    if !root {
        println!("SKIPPED {test}: only root can give files to another user");
    }
    root
}

#[test]
fn folders_and_files_are_made_for_their_user_alone() {
    let above = tempfile::tempdir().unwrap();
    let trials = above.path().join("state/trials");
    assert!(Folder::open(&trials).unwrap().is_none(), "nothing is made by looking");
    assert!(!above.path().join("state").exists());
    let folder = Folder::make(&trials).unwrap();
    let name = OsStr::new("t1.json");
    folder.write(name, "one").unwrap();
    folder.write(name, "two").unwrap();
    assert_eq!(folder.read(name).unwrap().as_deref(), Some("two"));
    drop(folder.lock_file(OsStr::new(".lock")).unwrap());
    assert_eq!(mode_of(&trials), 0o700);
    assert_eq!(mode_of(trials.parent().unwrap()), 0o700);
    for file in [".lock", "t1.json"] {
        assert_eq!(mode_of(&trials.join(file)), 0o600, "{file}");
    }
    assert_eq!(folder.paths().unwrap().len(), 2, "nothing half written is left");
    folder.remove(name).unwrap();
    folder.remove(name).unwrap();
    assert_eq!(folder.read(name).unwrap(), None);
}

#[test]
fn folders_above_the_state_folder_stay_open_to_other_programs() {
    let above = tempfile::tempdir().unwrap();
    let trials = above.path().join("var/lib/linerate/trials");
    drop(Folder::make(&trials).unwrap());
    let modes = ["var", "var/lib", "var/lib/linerate", "var/lib/linerate/trials"];
    assert_eq!(modes.map(|path| mode_of(&above.path().join(path))), [0o755, 0o755, 0o700, 0o700]);
}

#[test]
fn what_an_older_version_left_readable_is_made_private() {
    let above = tempfile::tempdir().unwrap();
    let trials = old_folder(above.path());
    assert_eq!(read(&trials).unwrap().as_deref(), Some("{}"));
    assert_eq!((mode_of(trials.parent().unwrap()), mode_of(&trials)), (0o700, 0o700));
    assert_eq!(mode_of(&trials.join("t1.json")), 0o600);
}

#[test]
fn a_state_folder_with_other_things_in_it_keeps_its_mode() {
    let above = tempfile::tempdir().unwrap();
    let trials = old_folder(above.path());
    fs::create_dir(above.path().join("state/dpkg")).unwrap();
    assert!(read(&trials).unwrap().is_some());
    assert_eq!((mode_of(trials.parent().unwrap()), mode_of(&trials)), (0o755, 0o700));
}

#[test]
fn what_other_users_may_write_is_refused_with_owner_and_mode() {
    for (path, mode) in [
        ("state", 0o777),
        ("state", 0o775),
        ("state", 0o1777),
        ("state/trials", 0o757),
        ("state/trials/t1.json", 0o666),
        ("state/trials/t1.json", 0o620),
    ] {
        let above = tempfile::tempdir().unwrap();
        let trials = old_folder(above.path());
        let path = above.path().join(path);
        set_mode(&path, mode);
        let (problem, hint) = refused(read(&trials));
        let user = process::effective_user();
        let wanted =
            format!("{} is writable by other users (owner uid {user}, mode {mode:04o})", path.display());
        assert_eq!(problem, wanted);
        assert!(hint.contains(&format!("`ls -ld {}`", path.display())), "{hint}");
        assert_eq!(mode_of(&path), mode, "it is left as it is");
    }
}

#[test]
fn what_another_user_owns_is_refused_with_owner_and_mode() {
    if !is_root("what_another_user_owns_is_refused_with_owner_and_mode") {
        return;
    }
    for path in ["state", "state/trials", "state/trials/t1.json"] {
        let above = tempfile::tempdir().unwrap();
        let trials = old_folder(above.path());
        let path = above.path().join(path);
        chown(&path, Some(STRANGER), None).unwrap();
        let (problem, hint) = refused(read(&trials));
        assert!(
            problem.starts_with(&format!("{} is owned by uid {STRANGER} (mode 0", path.display())),
            "{problem}"
        );
        assert!(problem.ends_with("instead of uid 0"), "{problem}");
        assert!(hint.contains(&format!("`mv {0} {0}.moved`", path.display())), "{hint}");
    }
}

#[test]
fn links_and_what_is_no_file_are_refused() {
    for path in ["state", "state/trials", "state/trials/t1.json"] {
        let above = tempfile::tempdir().unwrap();
        let trials = old_folder(above.path());
        let (path, real) = (above.path().join(path), above.path().join("real"));
        fs::rename(&path, &real).unwrap();
        symlink(&real, &path).unwrap();
        let (problem, _) = refused(read(&trials));
        assert!(problem.starts_with(&format!("{} is a symbolic link", path.display())), "{problem}");
    }
    let above = tempfile::tempdir().unwrap();
    let trials = old_folder(above.path());
    let file = trials.join("t1.json");
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(refused(read(&trials)).0.ends_with("is not a regular file"));
    fs::remove_file(&file).unwrap();
    symlink("/etc/passwd", trials.join(".lock")).unwrap();
    let folder = Folder::open(&trials).unwrap().unwrap();
    let lock = folder.lock_file(OsStr::new(".lock")).map(|_| None);
    assert!(refused(lock).0.ends_with(".lock is a symbolic link"));
    fs::remove_dir_all(&trials).unwrap();
    fs::write(&trials, "").unwrap();
    assert!(refused(read(&trials)).0.ends_with("trials is not a folder"));
}

#[test]
fn a_folder_above_that_others_may_exchange_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let shared = above.path().join("shared");
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o777);
    let trials = old_folder(&shared);
    let (problem, hint) = refused(read(&trials));
    assert!(problem.contains("shared is writable by other users"), "{problem}");
    assert!(problem.contains("mode 0777), who may exchange the state folder"), "{problem}");
    assert!(hint.contains(&format!("`chmod go-w {}`", shared.display())), "{hint}");
    let made = Folder::make(&shared.join("fresh/trials")).map(|_| None);
    assert!(refused(made).0.contains("who may exchange"));
    assert!(!shared.join("fresh").exists());
    // As in /tmp: others cannot exchange what is not theirs.
    set_mode(&shared, 0o1777);
    assert!(read(&trials).unwrap().is_some());
    if is_root("a_folder_above_that_others_may_exchange_is_refused (owner)") {
        set_mode(&shared, 0o755);
        chown(&shared, Some(STRANGER), None).unwrap();
        let (problem, _) = refused(read(&trials));
        assert!(
            problem.contains(&format!("shared is owned by uid {STRANGER} (mode 0755), who may")),
            "{problem}"
        );
    }
}

#[test]
fn links_above_are_followed_only_where_no_stranger_made_them() {
    let above = tempfile::tempdir().unwrap();
    old_folder(above.path());
    let (way, real) = (above.path().join("way"), above.path().to_owned());
    for target in [real.clone(), PathBuf::from("."), PathBuf::from("way/..").join(".")] {
        let _ = fs::remove_file(&way);
        let loops = target.starts_with("way");
        symlink(target, &way).unwrap();
        let result = read(&way.join("state/trials"));
        if loops {
            assert_eq!(result.unwrap_err().raw_os_error(), Some(ELOOP));
        } else {
            assert!(result.unwrap().is_some());
        }
    }
    if is_root("links_above_are_followed_only_where_no_stranger_made_them") {
        fs::remove_file(&way).unwrap();
        symlink(&real, &way).unwrap();
        std::os::unix::fs::lchown(&way, Some(STRANGER), None).unwrap();
        let (problem, _) = refused(read(&way.join("state/trials")));
        assert!(
            problem.contains(&format!("way is a symbolic link (owner uid {STRANGER}, mode 0777)")),
            "{problem}"
        );
    }
}

#[test]
fn a_path_that_depends_on_the_working_folder_is_refused() {
    for (path, problem) in
        [("state/trials", "is not an absolute path"), ("/tmp/../etc/trials", "contains `..`")]
    {
        assert!(refused(read(Path::new(path))).0.ends_with(problem));
    }
}

#[test]
fn a_path_in_a_hint_is_one_word_for_a_shell() {
    assert_eq!(quoted(Path::new("/var/lib/a-b_c.d")), "/var/lib/a-b_c.d");
    assert_eq!(quoted(Path::new("/srv/it's $(x)")), r"'/srv/it'\''s $(x)'");
}

#[test]
fn what_others_can_write_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.json");
    std::fs::write(&path, "[]").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(check_unwritable(&path), Ok(()));
    std::fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    assert!(check_unwritable(&path).unwrap_err().contains("others can write it"));
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(check_unwritable(&path).is_err(), "others can exchange it");
}
