//! The operator's store as other users of the host meet it: private whatever the umask, refused where it is
//! not, readable where nothing can be written, and with a sentence where it is damaged.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linerate_model::change::Remedy;
use linerate_model::finding::Metric;
use linerate_model::inventory::Layer;
use linerate_model::trial::{Trial, TrialMeasure};
use linerate_testkit as testkit;

/// A user without rights of its own.
const STRANGER: u32 = 65_534;

struct Site(tempfile::TempDir);

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Site {
    fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        std::fs::write(site.path("sysctl.txt"), "net.ipv4.tcp_sack = 1\n").unwrap();
        site
    }

    /// One with a run in its store.
    fn with_run() -> Self {
        let site = Self::new();
        site.stored("linerate import --host a sysctl.txt");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn database(&self) -> PathBuf {
        self.path("data/linerate.sqlite")
    }

    /// A line of a shell in which `linerate` is the program.
    fn shell(&self, line: &str) -> Ended {
        let output = Command::new("bash")
            .args(["-c", &format!("linerate() {{ \"$LINERATE\" \"$@\"; }}; {line}")])
            .current_dir(self.0.path())
            .env("LINERATE", env!("CARGO_BIN_EXE_linerate"))
            .env("LINERATE_DATA", self.path("data"))
            .env("HOME", self.0.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("LINERATE_STORE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    fn good(&self, line: &str) -> String {
        let ended = self.shell(line);
        assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.out, ended.err);
        ended.out
    }

    /// An import in which nothing is wrong and no pair was seen: code 3, as of `diagnose`.
    fn stored(&self, line: &str) {
        let ended = self.shell(line);
        assert_eq!(ended.code, Some(3), "{line}: {}{}", ended.out, ended.err);
    }

    /// A command that cannot run, and what it says.
    fn refused(&self, line: &str) -> String {
        let ended = self.shell(line);
        assert_eq!(ended.code, Some(2), "{line}: {}{}", ended.out, ended.err);
        ended.err
    }

    /// The same for a command that writes and one that only reads.
    fn refuses(&self, parts: &[&str]) {
        for line in ["linerate import --host a sysctl.txt", "linerate runs", "linerate report"] {
            let shown = self.refused(line);
            for part in parts {
                assert!(shown.contains(part), "{line}: {shown} lacks {part}");
            }
        }
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What a hint says to type.
fn hint(shown: &str) -> &str {
    shown.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap()
}

#[test]
fn folder_and_files_are_private_whatever_the_umask() {
    for umask in ["000", "022", "777"] {
        let site = Site::new();
        // The reader holds the log and its index open while the modes are looked at.
        site.stored(&format!(
            "umask {umask}; LINERATE_DATA=$PWD/new/data linerate import --host a sysctl.txt"
        ));
        for (name, wanted) in [("new", 0o700), ("new/data", 0o700), ("new/data/linerate.sqlite", 0o600)] {
            // Of folders above its own only what the umask leaves is given.
            let wanted = if name == "new" && umask == "777" { mode(&site.path(name)) } else { wanted };
            assert_eq!(mode(&site.path(name)), wanted, "{name} with umask {umask}");
        }
        if umask == "777" && !is_root() {
            chmod(&site.path("new"), 0o700);
        }
    }
}

#[test]
fn what_others_could_only_read_is_closed_to_them() {
    let site = Site::with_run();
    chmod(&site.path("data"), 0o755);
    chmod(&site.database(), 0o644);
    assert!(site.good("linerate runs").contains("imported"));
    assert_eq!((mode(&site.path("data")), mode(&site.database())), (0o700, 0o600));
    // A folder with other things in it may serve other programs, which need its mode.
    std::fs::write(site.path("data").join("other"), "").unwrap();
    chmod(&site.path("data"), 0o755);
    chmod(&site.database(), 0o644);
    assert!(site.good("linerate runs").contains("imported"));
    assert_eq!((mode(&site.path("data")), mode(&site.database())), (0o755, 0o600));
}

#[test]
fn what_others_can_write_is_refused_with_owner_and_mode() {
    let site = Site::with_run();
    let owner = format!("owner uid {}", rustix::process::geteuid().as_raw());
    chmod(&site.path("data"), 0o777);
    site.refuses(&["/data can be written by other users", &owner, "mode 0777", "chmod 0700 "]);
    chmod(&site.path("data"), 0o700);
    for name in ["linerate.sqlite", "linerate.sqlite-wal", "linerate.sqlite-shm"] {
        let file = site.path("data").join(name);
        let is_extra = !file.exists();
        if is_extra {
            std::fs::write(&file, "").unwrap();
        }
        chmod(&file, 0o620);
        site.refuses(&[name, "can be written by other users", "mode 0620", "chmod 0600 "]);
        if is_extra { std::fs::remove_file(&file).unwrap() } else { chmod(&file, 0o600) }
    }
    assert!(site.good("linerate runs").contains("imported"));
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    if !is_root() {
        testkit::skip("what_belongs_to_another_user_is_refused", "needs root");
        return;
    }
    let site = Site::with_run();
    for path in [site.database(), site.path("data")] {
        std::os::unix::fs::chown(&path, Some(STRANGER), None).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        site.refuses(&[&name, "belongs to another user (owner uid 65534", "you are uid 0", "LINERATE_DATA"]);
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    assert!(site.good("linerate runs").contains("imported"));
}

#[test]
fn a_folder_above_that_another_user_could_exchange_is_refused() {
    let site = Site::new();
    std::fs::create_dir(site.path("shared")).unwrap();
    std::os::unix::fs::symlink("shared", site.path("way")).unwrap();
    let refuses = |line: &str, words: &str| {
        for command in ["linerate import --host a sysctl.txt", "linerate runs"] {
            let shown = site.refused(&format!("LINERATE_DATA=$PWD/{line} {command}"));
            assert!(shown.contains(words), "{command}: {shown} lacks {words}");
        }
    };
    chmod(&site.path("shared"), 0o777);
    for line in ["shared/data", "way/data", "shared/../shared/new/data"] {
        refuses(line, "/shared is writable by other users (owner uid ");
        refuses(line, "mode 0777), who may exchange the store in it\nhint: chmod go-w /");
    }
    assert!(std::fs::read_dir(site.path("shared")).unwrap().next().is_none(), "nothing is made there");
    let shown = site.refused("LINERATE_DATA=shared/data linerate runs");
    site.good(hint(&shown));
    site.stored("LINERATE_DATA=$PWD/way/data linerate import --host a sysctl.txt");
    // As in /tmp: others exchange nothing there that is not theirs.
    chmod(&site.path("shared"), 0o1777);
    assert!(site.good("LINERATE_DATA=$PWD/shared/data linerate runs").contains("imported"));
    if !is_root() {
        testkit::skip("a_folder_above_that_another_user_could_exchange_is_refused (owner)", "needs root");
        return;
    }
    std::os::unix::fs::lchown(site.path("way"), Some(STRANGER), None).unwrap();
    refuses("way/data", "/way is a symbolic link (owner uid 65534, mode 0777)");
    std::os::unix::fs::chown(site.path("shared"), Some(STRANGER), None).unwrap();
    refuses("shared/data", "/shared is owned by uid 65534 (mode 1777), who may exchange the store in it");
}

#[test]
fn links_and_special_files_are_refused_before_they_are_opened() {
    let site = Site::with_run();
    std::fs::rename(site.path("data"), site.path("real")).unwrap();
    std::os::unix::fs::symlink(site.path("real"), site.path("data")).unwrap();
    site.refuses(&["/data is a symbolic link, not a folder", "mode 0777"]);
    let shown = site.refused("linerate runs");
    assert!(site.good(hint(&shown)).contains("imported"), "{shown}");
    std::fs::remove_file(site.path("data")).unwrap();
    std::fs::create_dir(site.path("data")).unwrap();
    std::os::unix::fs::symlink(site.path("real/linerate.sqlite"), site.database()).unwrap();
    site.refuses(&["linerate.sqlite is a symbolic link", "hint: mv "]);
    std::fs::remove_file(site.database()).unwrap();
    // An open would wait for a writer.
    site.good("mkfifo data/linerate.sqlite");
    site.refuses(&["linerate.sqlite is a FIFO, not a file of the database", "hint: mv "]);
    let shown = site.refused("linerate runs");
    site.good(hint(&shown));
    assert!(site.good("linerate runs").contains("no run"));
}

#[test]
fn a_damaged_store_names_the_file_and_the_command_that_helps() {
    let site = Site::with_run();
    let whole = std::fs::read(site.database()).unwrap();
    let garbage = vec![b'x'; whole.len()];
    let mut middle = whole.clone();
    middle[100..].fill(0xff);
    for damaged in [garbage, middle, whole[..whole.len() / 2].to_vec()] {
        std::fs::write(site.database(), damaged).unwrap();
        site.refuses(&["linerate.sqlite is damaged", "hint: mv "]);
        let shown = site.refused("linerate runs");
        site.good(hint(&shown));
        site.stored("linerate import --host a sysctl.txt");
        assert!(site.good("linerate runs").contains("imported"));
        std::fs::remove_dir_all(site.path("data.bad")).unwrap();
    }
}

/// A line of a shell, run where the folder of the data cannot be written: root needs a mount for that, others
/// a mode.
fn read_only(site: &Site, line: &str) -> Ended {
    if is_root() {
        let inside = "mount --bind data data && mount -o remount,bind,ro data &&";
        return site.shell(&format!(
            "unshare --mount bash -c '{inside} {}'",
            line.replace("linerate ", "$LINERATE ")
        ));
    }
    chmod(&site.path("data"), 0o500);
    let ended = site.shell(line);
    chmod(&site.path("data"), 0o700);
    ended
}

#[test]
fn what_only_reads_works_where_nothing_can_be_written() {
    let site = Site::with_run();
    chmod(&site.path("data"), 0o755);
    for (line, part) in [
        ("linerate runs", "imported"),
        ("linerate runs --json", "imported"),
        ("linerate report", "a"),
        ("linerate report --json", "sysctl.txt"),
        ("linerate diagnose", "what was read decides nothing"),
        ("linerate diff a a", ""),
        ("linerate case record", "tcp_sack"),
    ] {
        let ended = read_only(&site, line);
        assert!([Some(0), Some(3)].contains(&ended.code), "{line}: {}{}", ended.out, ended.err);
        assert!(ended.out.contains(part), "{line}: {}", ended.out);
    }
    let ended = read_only(&site, "linerate import --host a sysctl.txt");
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("hint: ") && ended.err.contains("LINERATE_DATA"), "{}", ended.err);
}

#[test]
fn a_log_that_is_still_to_be_replayed_needs_a_copy() {
    let site = Site::with_run();
    // What a killed operator leaves: a log that is not empty, without its index.
    let log = site.path("data/linerate.sqlite-wal");
    std::fs::write(&log, vec![7; 4096]).unwrap();
    chmod(&log, 0o600);
    let ended = read_only(&site, "linerate runs");
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("linerate.sqlite cannot be read where it cannot be written"), "{}", ended.err);
    assert!(site.good(hint(&ended.err)).contains("imported"), "{}", ended.err);
}

#[test]
fn nothing_is_made_without_a_home_or_by_what_only_reads() {
    let site = Site::new();
    let before = std::fs::read_dir(site.0.path()).unwrap().count();
    for home in ["", "HOME=", "HOME=here XDG_DATA_HOME=there"] {
        let shown =
            site.refused(&format!("env -u LINERATE_DATA -u HOME -u XDG_DATA_HOME {home} $LINERATE runs"));
        assert!(shown.contains("LINERATE_DATA, XDG_DATA_HOME and HOME are not set"), "{shown}");
        assert!(shown.contains("hint: LINERATE_DATA="), "{shown}");
    }
    assert!(site.good("linerate runs").contains("no run"));
    assert!(site.refused("linerate report").contains("no run"));
    assert_eq!(std::fs::read_dir(site.0.path()).unwrap().count(), before);
}

#[test]
fn a_newer_or_older_schema_is_told_where_nothing_can_be_written() {
    let site = Site::with_run();
    // The number of the schema stands at byte 60 of the file.
    let mut bytes = std::fs::read(site.database()).unwrap();
    for (schema, part) in
        [(1_u32, "has schema 1, which has to become"), (99, "has schema 99, this program knows")]
    {
        bytes[60..64].copy_from_slice(&schema.to_be_bytes());
        std::fs::write(site.database(), &bytes).unwrap();
        let ended = read_only(&site, "linerate runs");
        assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
        assert!(ended.err.contains(part), "{}", ended.err);
    }
}

#[test]
fn show_takes_trials_and_names_the_command_for_a_cause() {
    let site = Site::with_run();
    let store = linerate_store::Store::open(&site.database()).unwrap();
    let run = store.list_runs().unwrap()[0].id.clone();
    let measure = TrialMeasure {
        response: Metric::Throughput,
        layer: Layer::Underlay,
        pair: ("a".into(), "b".into()),
        control: None,
    };
    let id = "20261121-083110-99aa";
    let trial = Trial::planned(id.into(), run.clone(), Remedy::default(), measure);
    store.save_trial(&trial, 1_795_249_815_000).unwrap();
    drop(store);
    let shown = site.good(&format!("linerate show {id}"));
    assert!(shown.contains(id) && shown.contains("every other pair shares a host"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_str(&site.good(&format!("linerate show {id} --json"))).unwrap();
    assert_eq!(json["trial"]["id"], id);
    let page = site.refused(&format!("linerate show {id} --html"));
    assert_eq!(hint(&page), format!("`linerate show {run} --html` writes its run, with its trials"));
    assert!(site.refused("linerate show nic-gro-overlay").contains("`linerate explain nic-gro-overlay`"));
    assert!(site.refused("linerate show nothing").contains("no run `nothing`"));
}

#[test]
fn a_team_shares_runs_in_postgresql_and_a_lost_server_ends_a_command() {
    let test = "a_team_shares_runs_in_postgresql_and_a_lost_server_ends_a_command";
    let Some(mut server) = testkit::postgres::PostgresServer::start(test) else { return };
    let (ann, bob) = (Site::new(), Site::new());
    let store = format!("store = {:?}\n", server.database("team"));
    for site in [&ann, &bob] {
        std::fs::create_dir_all(site.path(".config/linerate")).unwrap();
        std::fs::write(site.path(".config/linerate/config.toml"), &store).unwrap();
    }
    ann.stored("linerate import --host a sysctl.txt");
    let runs = bob.good("linerate runs");
    assert_eq!(runs, ann.good("linerate runs"));
    assert!(!ann.database().exists() && !bob.database().exists(), "nothing in the folders");
    // The file of the data folder, where it is named.
    assert_ne!(runs, bob.good("LINERATE_STORE=sqlite linerate runs"));

    server.stop();
    for command in ["linerate runs", "linerate import --host a sysctl.txt", "linerate try some-remedy"] {
        let lost = bob.shell(command);
        assert_eq!(lost.code, Some(2), "{command}: {}{}", lost.out, lost.err);
        assert!(lost.err.contains("no connection to postgres:///team"), "{command}: {}", lost.err);
        assert!(lost.err.contains("hint: pg_isready -d "), "{command}: {}", lost.err);
    }
    assert!(!bob.database().exists(), "no other store instead");
}
