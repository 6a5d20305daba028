//! The scripts that run on a host, in every shell that is here, with other users of the host beside them.
//! What stands for the node program is a program of the system that says who runs it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_testkit as testkit;
use sha2::{Digest, Sha256};

use super::{CLEAN, HANDSHAKE};

/// Another user of the host.
const STRANGER: u32 = 65_534;
const ORDINARY: u32 = 61_234;

/// Shells in which the scripts have to work, as far as they are here.
fn shells() -> Vec<Vec<&'static str>> {
    let all = [vec!["sh"], vec!["dash"], vec!["bash"], vec!["mksh"], vec!["busybox", "sh"]];
    let is_here = |shell: &Vec<&str>| {
        let here = is_installed(shell[0]);
        if !here {
            println!("SKIPPED the shell {}: it is not here", shell[0]);
        }
        here
    };
    all.into_iter().filter(is_here).collect()
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file())
}

/// A host: a folder with what its users have.
struct Host {
    folder: tempfile::TempDir,
    program: Vec<u8>,
    /// Runs before the script, as root in a mount namespace of its own.
    before: String,
    variables: Vec<(&'static str, String)>,
    uid: u32,
    cache_dir: String,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let program = std::fs::read("/usr/bin/id").unwrap();
        Self {
            folder,
            program,
            before: String::new(),
            variables: Vec::new(),
            uid: 0,
            cache_dir: String::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn hash(&self) -> String {
        Sha256::digest(&self.program).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// A folder with this owner and mode.
    fn make(&self, name: &str, uid: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn session(&self, shell: &[&str], script: &str) -> Session {
        let line = super::one_line(script);
        let inner = line.strip_prefix("exec sh -c '").and_then(|l| l.strip_suffix('\'')).unwrap();
        // Folders that all users share are the test's own.
        let shared =
            "for d in /dev/shm /var/tmp /run; do mount -t tmpfs -o mode=1777 tmpfs $d || exit 99; done";
        let enter = format!(
            "{shared}; {} exec setpriv --reuid {1} --regid {1} --clear-groups \"$@\"",
            self.before, self.uid
        );
        let mut child = Command::new("unshare")
            .args(["-m", "--propagation", "private", "sh", "-c", &enter, "sh"])
            .args(shell)
            .args(["-c", inner])
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut session = Session { child, stdin, stdout, shown: Vec::new() };
        session.send(format!("word 0\n{}\n", self.cache_dir).as_bytes());
        session
    }

    /// The whole of a first contact: what the script says, and what the program says then.
    fn greeted(&self, shell: &[&str]) -> Vec<String> {
        let mut session = self.session(shell, HANDSHAKE);
        session.send(format!("{} {} plain\n", self.hash(), self.program.len()).as_bytes());
        while let Some(line) = session.line() {
            if line == "word send" {
                session.send(&self.program);
            }
        }
        session.end()
    }
}

/// A script that runs.
struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    shown: Vec<String>,
}

impl Session {
    fn send(&mut self, bytes: &[u8]) {
        // One that has ended takes nothing more; what it said shows why.
        let _ = self.stdin.as_mut().unwrap().write_all(bytes);
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stdout.read_line(&mut line).unwrap();
        let line = line.trim_end().to_owned();
        self.shown.push(line.clone());
        (count > 0).then_some(line)
    }

    fn until(&mut self, wanted: &str) {
        while let Some(line) = self.line() {
            if line == wanted {
                return;
            }
        }
        panic!("no `{wanted}` in {:?}", self.shown);
    }

    fn end(mut self) -> Vec<String> {
        drop(self.stdin.take());
        while self.line().is_some() {}
        self.child.wait().unwrap();
        std::mem::take(&mut self.shown)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this test can run: mounts, and users to be.
fn possible(name: &str) -> bool {
    if !testkit::is_root() {
        return testkit::skip(name, "needs root");
    }
    let mounts = Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|o| o.status.success());
    (mounts || testkit::skip(name, "no mount namespaces here")) && testkit::has(name, "setpriv", "util-linux")
}

fn has(shown: &[String], start: &str) -> bool {
    shown.iter().any(|line| line.starts_with(start))
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Ends the thread that it belongs to, also when the test fails.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_folder_of_another_user_is_refused_before_anything_runs() {
    const NAME: &str = "a_folder_of_another_user_is_refused_before_anything_runs";
    if !possible(NAME) {
        return;
    }
    for shell in shells() {
        let mut host = Host::new();
        let shared = host.make("shared", 0, 0o1777);
        host.variables.push(("XDG_CACHE_HOME", shared.display().to_string()));
        let theirs = host.make("shared/linerate", STRANGER, 0o755);
        let name = theirs.join(format!("linerate-node-{}", host.hash()));
        // The right program under the right name, and another one that takes its place again and again.
        let evil = format!("#!/bin/sh\nid > {}\n", host.path("was-run").display());
        let put = |bytes: &[u8]| {
            let new = theirs.join("new");
            std::fs::write(&new, bytes).unwrap();
            std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
            std::fs::rename(&new, &name).unwrap();
        };
        put(&host.program);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _until = Until(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    put(evil.as_bytes());
                    put(&host.program);
                }
            });
            for _ in 0..5 {
                let shown = host.greeted(&shell);
                assert!(!has(&shown, "word have") || has(&shown, "uid=0"), "{shell:?}: {shown:?}");
                assert!(!host.path("was-run").exists(), "{shell:?}: {shown:?}");
                std::fs::remove_dir_all(host.path("home/.cache")).unwrap();
                let why = format!(
                    "word no {}: it belongs to uid {STRANGER} and has mode drwxr-xr-x",
                    theirs.display()
                );
                assert!(has(&shown, &why), "{shell:?}: {shown:?}");
                let copied = format!("word copied {}", host.path("home/.cache/linerate").display());
                assert!(has(&shown, &copied) && has(&shown, "uid=0"), "{shell:?}: {shown:?}");
            }
        });
        assert_eq!((mode(&theirs), std::fs::metadata(&theirs).unwrap().uid()), (0o755, STRANGER));
    }
}

#[test]
fn links_and_folders_that_others_can_write_or_exchange_are_refused() {
    const NAME: &str = "links_and_folders_that_others_can_write_or_exchange_are_refused";
    if !possible(NAME) {
        return;
    }
    for shell in shells() {
        let mut host = Host::new();
        host.make("shared", 0, 0o1777);
        let target = host.make("etc", 0, 0o755);
        let open = host.make("open", 0, 0o777);
        host.make("writable", 0, 0o755);
        let group = host.make("writable/linerate", 0, 0o775);
        symlink(&target, host.path("shared/linerate")).unwrap();
        for (folder, why) in [
            ("shared", "it is a link: it belongs to uid 0 and has mode lrwxrwxrwx".to_owned()),
            (
                "open",
                format!(
                    "others can exchange it: {} belongs to uid 0 and has mode drwxrwxrwx",
                    open.display()
                ),
            ),
            ("writable", "others may write in it: it belongs to uid 0 and has mode drwxrwxr-x".to_owned()),
        ] {
            host.variables = vec![("XDG_CACHE_HOME", host.path(folder).display().to_string())];
            let shown = host.greeted(&shell);
            let refused = format!("word no {}: {why}", host.path(folder).join("linerate").display());
            assert!(has(&shown, &refused), "{shell:?}: {shown:?}");
            assert!(has(&shown, "word copied ") && has(&shown, "uid=0"), "{shell:?}: {shown:?}");
            std::fs::remove_dir_all(host.path("home/.cache")).unwrap();
        }
        assert_eq!((mode(&target), mode(&group)), (0o755, 0o775), "{shell:?}: nothing of others is changed");
        assert!(std::fs::read_dir(&target).unwrap().next().is_none());
        // A folder of a stranger above ours, though others cannot write in it.
        host.make("theirs", STRANGER, 0o755);
        host.make("theirs/linerate", 0, 0o700);
        host.variables = vec![("XDG_CACHE_HOME", host.path("theirs").display().to_string())];
        let shown = host.greeted(&shell);
        assert!(
            has(&shown, &format!("word no {}", host.path("theirs/linerate").display())),
            "{shell:?}: {shown:?}"
        );
    }
}

#[test]
fn nothing_is_made_through_a_link_or_a_folder_of_another_user() {
    const NAME: &str = "nothing_is_made_through_a_link_or_a_folder_of_another_user";
    if !possible(NAME) {
        return;
    }
    for shell in shells() {
        let mut host = Host::new();
        let shared = host.make("shared", 0, 0o1777);
        let target = host.make("etc", 0, 0o755);
        let link = shared.join("way");
        symlink(&target, &link).unwrap();
        lchown(&link, Some(STRANGER), Some(STRANGER)).unwrap();
        let theirs = host.make("shared/theirs", STRANGER, 0o755);
        let open = host.make("open", 0, 0o777);
        // A link of root, but in a folder where others could have put it.
        symlink(&target, open.join("way")).unwrap();
        let stray =
            format!("{} is a link: it belongs to uid {STRANGER} and has mode lrwxrwxrwx", link.display());
        let exchange = "others can exchange it: ";
        let owned =
            format!("{exchange}{} belongs to uid {STRANGER} and has mode drwxr-xr-x", theirs.display());
        let writable = format!("{exchange}{} belongs to uid 0 and has mode drwxrwxrwx", open.display());
        for (path, why) in [
            (link.clone(), &stray),
            (link.join("new/er"), &stray),
            (theirs.join("new"), &owned),
            (open.join("new"), &writable),
            (open.join("way/new"), &writable),
        ] {
            let path = path.display().to_string();
            // Named by the host, and by the inventory, which has no second.
            host.variables = vec![("XDG_CACHE_HOME", path.clone())];
            let shown = host.greeted(&shell);
            assert!(has(&shown, &format!("word no {path}/linerate: {why}")), "{shell:?}: {shown:?}");
            // Or the copy that it went to instead would be found the next time.
            std::fs::remove_dir_all(host.path("home/.cache")).unwrap();
            host.variables.clear();
            host.cache_dir = path.clone();
            let shown = host.greeted(&shell);
            assert!(has(&shown, &format!("word no {path}/linerate-0: {why}")), "{shell:?}: {shown:?}");
            assert!(has(&shown, "word fail none"), "{shell:?}: {shown:?}");
            host.cache_dir.clear();
        }
        for (folder, entries) in [(&target, 0), (&theirs, 0), (&open, 1), (&shared, 2)] {
            let found = std::fs::read_dir(folder).unwrap().count();
            assert_eq!(found, entries, "{shell:?}: something was made in {}", folder.display());
        }
        // A link of ours leads somewhere, and what is missing there is made.
        symlink("etc/../etc", host.path("own")).unwrap();
        host.cache_dir = host.path("own/./new").display().to_string();
        let shown = host.greeted(&shell);
        let copied = format!("word copied {}", target.join("new/linerate-0").display());
        assert!(shown.contains(&copied) && has(&shown, "uid=0"), "{shell:?}: {shown:?}");
        symlink("circle", host.path("circle")).unwrap();
        host.cache_dir = host.path("circle").display().to_string();
        assert!(host.greeted(&shell).iter().any(|line| line.contains("too many links")), "{shell:?}");
    }
}

#[test]
fn what_is_ours_is_made_private_and_found_again() {
    const NAME: &str = "what_is_ours_is_made_private_and_found_again";
    if !possible(NAME) {
        return;
    }
    for shell in shells() {
        for uid in [0, ORDINARY] {
            let mut host = Host::new();
            host.uid = uid;
            for folder in ["home", "home/.cache", "home/.cache/linerate"] {
                host.make(folder, uid, 0o755);
            }
            let folder = host.path("home/.cache/linerate");
            let program = folder.join(format!("linerate-node-{}", host.hash()));
            // Of another user, with the right content: not ours, so it is replaced.
            std::fs::write(&program, &host.program).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o777)).unwrap();
            chown(&program, Some(STRANGER), Some(STRANGER)).unwrap();
            let (first, second) = (host.greeted(&shell), host.greeted(&shell));
            assert!(has(&first, "word send") && has(&first, "word copied"), "{shell:?}: {first:?}");
            assert!(has(&second, "word have") && !has(&second, "word send"), "{shell:?}: {second:?}");
            let who = format!("uid={uid}");
            assert!(has(&first, &who) && has(&second, &who), "{shell:?}: {second:?}");
            assert_eq!((mode(&folder), mode(&program)), (0o700, 0o700), "{shell:?}");
            assert_eq!(std::fs::metadata(&program).unwrap().uid(), uid);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{shell:?}: no half copy");
            let cleaned = host.session(&shell, CLEAN).end();
            assert!(has(&cleaned, "word removed 0") && has(&cleaned, "word done"), "{shell:?}: {cleaned:?}");
            assert!(!folder.exists(), "{shell:?}");
        }
    }
}

#[test]
fn the_first_folder_with_room_that_may_execute_is_taken() {
    const NAME: &str = "the_first_folder_with_room_that_may_execute_is_taken";
    if !possible(NAME) {
        return;
    }
    let full = "mount -t tmpfs -o size=8k tmpfs";
    let noexec = "mount -t tmpfs -o noexec tmpfs";
    let read_only = "mount -t tmpfs -o ro tmpfs";
    for shell in shells() {
        let mut host = Host::new();
        let home = host.path("home").display().to_string();
        for (how, why) in [
            (full, "No space left on device".to_owned()),
            (noexec, format!("{home} is mounted noexec")),
            (read_only, "Read-only file system".to_owned()),
        ] {
            host.before = format!("{how} $HOME;");
            let shown = host.greeted(&shell);
            let refused = shown.iter().find(|l| l.starts_with(&format!("word no {home}/.cache/linerate: ")));
            assert!(refused.is_some_and(|line| line.contains(&why)), "{shell:?}: {shown:?}");
            assert!(has(&shown, "word copied /dev/shm/linerate-0"), "{shell:?}: {shown:?}");
            assert!(has(&shown, "uid=0"), "{shell:?}: {shown:?}");
            assert_eq!(shown.iter().filter(|l| *l == "word send").count(), 1, "{shell:?}: sent once");
        }
        // The folder of the session comes before the shared ones, and where nothing will do all of them are
        // named.
        host.before = format!("{noexec} $HOME; mkdir -p -m 700 /run/user/0;");
        let shown = host.greeted(&shell);
        assert!(has(&shown, "word copied /run/user/0/linerate"), "{shell:?}: {shown:?}");
        host.before = format!("{noexec} $HOME; {full} /dev/shm; {noexec} /var/tmp;");
        let shown = host.greeted(&shell);
        for folder in [
            &format!("{home}/.cache/linerate"),
            "/run/user/0/linerate",
            "/dev/shm/linerate-0",
            "/var/tmp/linerate-0",
        ] {
            assert!(has(&shown, &format!("word no {folder}: ")), "{shell:?}: {folder}: {shown:?}");
        }
        assert!(has(&shown, "word fail none") && !has(&shown, "uid="), "{shell:?}: {shown:?}");
    }
}

#[test]
fn the_folder_of_the_inventory_is_the_only_one_and_is_never_run() {
    const NAME: &str = "the_folder_of_the_inventory_is_the_only_one_and_is_never_run";
    if !possible(NAME) {
        return;
    }
    for shell in shells() {
        let mut host = Host::new();
        let touched = host.path("touched");
        let name = format!("a b; touch {0} $(touch {0}) `touch {0}` ' * \\n", touched.display());
        // Slashes in a name are folders.
        let folder = host.path("named").join(name.replace('/', "_"));
        host.cache_dir = folder.display().to_string();
        let shown = host.greeted(&shell);
        let copied = format!("word copied {}/linerate-0", folder.display());
        assert!(shown.contains(&copied) && has(&shown, "uid=0"), "{shell:?}: {shown:?}");
        assert!(has(&host.greeted(&shell), "word have"), "{shell:?}");
        assert!(!touched.exists() && !host.path("home/.cache").exists(), "{shell:?}");
        let cleaned = host.session(&shell, CLEAN).end();
        assert!(has(&cleaned, "word removed 0") && has(&cleaned, "word done"), "{shell:?}: {cleaned:?}");
        // One that will not do has no second.
        host.cache_dir = host.make("open", 0, 0o777).display().to_string();
        let shown = host.greeted(&shell);
        assert!(has(&shown, "word fail none"), "{shell:?}: {shown:?}");
        assert_eq!(shown.iter().filter(|l| l.starts_with("word no ")).count(), 1, "{shell:?}: {shown:?}");
    }
}

#[test]
fn a_password_is_on_no_command_line() {
    const NAME: &str = "a_password_is_on_no_command_line";
    if !possible(NAME) {
        return;
    }
    let password = "correct horse";
    for shell in shells() {
        let mut host = Host::new();
        host.uid = ORDINARY;
        host.make("home", ORDINARY, 0o700);
        let bin = host.make("bin", 0, 0o755);
        let log = host.make("log", 0, 0o777).join("log");
        // Some shells have no printf of their own: whatever is run is written down with its arguments.
        let noting = format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", log.display());
        let real = "/usr/bin/printf";
        // A sudo that asks, takes a line, and lets the right one pass.
        let sudo = format!(
            "{noting}case $1 in -n) exit 1 ;; esac\nread -r line\n[ \"$line\" = \"{password}\" ] || exit 1\n\
             while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
        );
        for (name, text) in [("printf", format!("{noting}exec {real} \"$@\"\n")), ("sudo", sudo)] {
            std::fs::write(bin.join(name), text).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        host.variables = vec![("PATH", format!("{}:/usr/bin:/bin", bin.display()))];
        for (typed, rights) in [
            (Some(password), "word root"),
            (Some("wrong"), "word plain sudo refused the password"),
            (None, "word plain sudo asks for a password"),
        ] {
            let mut session = host.session(&shell, HANDSHAKE);
            session.send(format!("{} {} sudo\n", host.hash(), host.program.len()).as_bytes());
            while let Some(line) = session.line() {
                match line.as_str() {
                    "word send" => session.send(&host.program),
                    "word password" => break,
                    _ => {}
                }
            }
            session.send(typed.map_or("none\n".to_owned(), |line| format!("typed\n{line}\n")).as_bytes());
            session.until(rights);
            if typed == Some(password) {
                session.send(format!("{password}\n").as_bytes());
            }
            let shown = session.end();
            assert!(has(&shown, &format!("uid={ORDINARY}")), "{shell:?}: {shown:?}");
        }
        let arguments = std::fs::read_to_string(&log).unwrap();
        assert!(arguments.contains("sudo -k -S") && !arguments.contains("horse"), "{shell:?}: {arguments}");
    }
}
