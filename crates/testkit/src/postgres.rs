//! A PostgreSQL server of a test: made in a temporary folder, reached by a unix socket alone, gone with the
//! test. In: nothing. Out: addresses of empty databases.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The server refuses root: this user has it then.
const UNPRIVILEGED: u32 = 65_534;

/// The running server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl PostgresServer {
    /// Starts a server; reports that the test does not run where PostgreSQL is not installed.
    pub fn start(test: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            crate::skip(test, "no PostgreSQL server below /usr/lib/postgresql (package postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        if crate::is_root() && chown(folder.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).is_err() {
            crate::skip(test, "PostgreSQL refuses root, and this user namespace has no other user");
            return None;
        }
        let mut server = Self { programs, folder, server: None };
        // An order of texts that differs from that of their bytes; no password but for `ann`.
        let made = server
            .program("initdb")
            .args(["--no-sync", "--auth=trust", "--username=linerate", "--encoding=UTF8", "--locale=C"])
            .args(["--locale-provider=icu", "--icu-locale=en", "-D", "data"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let access = "local all ann scram-sha-256\nlocal all all trust\n";
        std::fs::write(server.folder.path().join("data/pg_hba.conf"), access).unwrap();
        server.run();
        Some(server)
    }

    /// Starts the server again after [`PostgresServer::stop`].
    pub fn run(&mut self) {
        let mut child = self
            .program("postgres")
            .args(["-D", "data", "-c", "listen_addresses=", "-c", "fsync=off"])
            .arg(format!("--unix_socket_directories={}", self.folder.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut log = Vec::new();
        let is_ready = lines.by_ref().any(|line| {
            log.push(line);
            log.last().is_some_and(|line| line.contains("ready to accept connections"))
        });
        assert!(is_ready, "{log:#?}");
        // Read to its end, so that the server never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        self.server = Some(child);
    }

    /// Stops all processes of the server where they are: connections stay open, and nothing answers.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Has them go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let Some(server) = &self.server else { return };
        // The first begins the others: where it is stopped there are no new ones.
        let _ = kill_process(Pid::from_child(server), signal);
        for child in crate::children(server.id()).into_iter().filter_map(|child| Pid::from_raw(child as i32))
        {
            let _ = kill_process(child, signal);
        }
    }

    /// Ends the server at once, as a crash does.
    pub fn stop(&mut self) {
        self.thaw();
        let Some(mut server) = self.server.take() else { return };
        let _ = kill_process(Pid::from_child(&server), Signal::QUIT);
        let _ = server.wait();
    }

    /// The address of a new and empty database.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("create database {name}"));
        self.address(name, "linerate")
    }

    /// The address of a database for a user.
    pub fn address(&self, name: &str, user: &str) -> String {
        format!("postgres:///{name}?host={}&user={user}", self.folder.path().display())
    }

    /// What a statement returns, a row a line.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-U", "linerate", "-h"])
            .arg(self.folder.path())
            .args(["-d", database, "-c", statement])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends each connection that writes a trial for which a condition on its row `new` is true.
    pub fn lose_trials(&self, database: &str, condition: &str) {
        let trigger = format!(
            "create function lose() returns trigger language plpgsql as $$ begin
                if {condition} then
                    perform pg_terminate_backend(pg_backend_pid());
                    -- Until the signal has come.
                    perform pg_sleep(60);
                end if;
                return new;
            end $$;
            create trigger lose before insert or update on trial for each row execute function lose()"
        );
        self.sql(database, &trigger);
    }

    /// Exit code and output of a line of a shell in which the programs of the server are found.
    pub fn shell(&self, line: &str) -> (Option<i32>, String) {
        let path = format!("{}:/usr/bin:/bin", self.programs.display());
        let output = Command::new("sh").args(["-c", line]).env("PATH", path).output().unwrap();
        let shown = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&shown).into_owned())
    }

    /// A program of the server in its folder, as the user who may run it; ended with the test.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        if crate::is_root() {
            let user = UNPRIVILEGED.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        }
        command.args(["--pdeathsig", "KILL"]).arg(self.programs.join(name)).current_dir(self.folder.path());
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The folder of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let all = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path());
    let newest = all.filter(|path| path.join("bin/postgres").is_file()).max_by_key(|path| version(path));
    newest.map(|path| path.join("bin"))
}
