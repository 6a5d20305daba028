//! The kept set on real hosts in network namespaces of our own: drift, what a reboot loses, put back, two
//! owners, and a host out of reach. Needs root or user namespaces, `ip`, `unshare`, `nsenter` and a built
//! `linerate-node`; what is missing is printed as a skip with its reason.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use linerate_testkit::{self as testkit, Holder, TestEnvironment};
use serde_json::Value;

const KEY: &str = "sysctl.net.ipv4.tcp_rmem";
const KEPT: &str = "4096 131072 33554432";
const OTHER: &str = "4096 65536 212992";

fn node_program() -> Option<PathBuf> {
    testkit::node_program(env!("CARGO_BIN_EXE_linerate"))
}

fn inside(name: &str) -> bool {
    if node_program().is_none() {
        return testkit::skip(name, "no linerate-node beside linerate and LINERATE_NODE is not set");
    }
    testkit::inside(name, TestEnvironment::Mounts)
}

/// Two hosts of a group, and one that is out of reach.
struct Cluster {
    folder: tempfile::TempDir,
    hosts: [Holder; 2],
    /// Address of the store; empty for the file in the folder.
    store: String,
}

impl Cluster {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hosts = [Holder::new(), Holder::new()];
        let mut toml =
            "name = \"kept\"\n[[group]]\nname = \"storage\"\nkind = \"role\"\n[[group]]\nname = \"lost\"\nkind = \"role\"\n".to_owned();
        let pids = [hosts[0].pid(), hosts[1].pid(), "0".to_owned()];
        for (number, pid) in pids.iter().enumerate() {
            let group = if number < 2 { "storage" } else { "lost" };
            let state = folder.path().join(format!("h{number}"));
            let _ = write!(
                toml,
                "[[host]]\nname = \"h{number}\"\nnetns = \"/proc/{pid}/ns/net\"\ngroups = [\"{group}\"]\n\
                 state_dir = \"{0}/state\"\netc_dir = \"{0}/etc\"\n",
                state.display()
            );
        }
        std::fs::write(folder.path().join("cluster.toml"), toml).unwrap();
        let cohort = |group: &str| {
            format!(
                "[[cohort]]\ngroup = \"{group}\"\npolicy = \"{policy}\"\n[[cohort.setting]]\nkey = \"{KEY}\"\nvalue = \"{KEPT}\"\n"
            )
        };
        std::fs::write(folder.path().join("kept.toml"), cohort("storage")).unwrap();
        std::fs::write(folder.path().join("lost.toml"), cohort("lost")).unwrap();
        let cluster = Self { folder, hosts, store: String::new() };
        (0..2).for_each(|host| cluster.set(host, KEPT));
        cluster
    }

    fn set(&self, host: usize, value: &str) {
        self.hosts[host].run(&["sh", "-c", &format!("echo '{value}' > /proc/sys/net/ipv4/tcp_rmem")]);
    }

    fn now(&self, host: usize) -> String {
        let text = self.hosts[host].run(&["cat", "/proc/sys/net/ipv4/tcp_rmem"]);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn etc(&self, host: usize, file: &str) -> PathBuf {
        self.folder.path().join(format!("h{host}/etc/{file}"))
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("LINERATE_DATA", self.folder.path().join("data"))
            .env("LINERATE_NODE", node_program().unwrap())
            .env("LINERATE_STORE", &self.store)
            .env_remove("LINERATE_INVENTORY")
            .output()
            .unwrap();
        let code = output.status.code().unwrap_or(-1);
        (code, testkit::text(&output.stdout), testkit::text(&output.stderr))
    }

    /// What a line of a shell prints.
    fn shell(&self, line: &str) -> String {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_linerate"));
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("LINERATE_DATA", self.folder.path().join("data"))
            .env("LINERATE_STORE", &self.store)
            .env_remove("LINERATE_INVENTORY")
            .output()
            .unwrap();
        testkit::text(&output.stdout) + &testkit::text(&output.stderr)
    }

    /// Exit code, states of both hosts, and the document.
    fn drift(&self, more: &[&str]) -> (i32, Vec<String>, Value) {
        let (code, out, err) = self.run(&[&["drift", "--json"], more].concat());
        let value: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        linerate_testkit::schemas::hold("drift", &value);
        let state = |row: &Value| row["state"].as_str().unwrap_or_default().to_owned();
        let states = value["rows"].as_array().unwrap().iter().map(state).collect();
        (code, states, value)
    }
}

/// No survey was ever made of this cluster.
#[test]
fn what_was_put_back_is_undone_as_printed() {
    if !inside("what_was_put_back_is_undone_as_printed") {
        return;
    }
    let cluster = Cluster::new("put-back");
    // Each host once: within an hour nothing is put back again, also what was undone.
    for (at, file) in [&[][..], &["-i", "cluster.toml"]].into_iter().enumerate() {
        let host = format!("h{at}");
        cluster.set(at, OTHER);
        let (code, _, err) = cluster.run(&[&["drift", &host, "--put-back"], file].concat());
        assert_eq!((code, cluster.now(at).as_str()), (0, KEPT), "{err}");
        let mut commands = err.split('`').filter(|part| part.starts_with("linerate undo "));
        let command = commands.next().unwrap_or_else(|| panic!("{err}"));
        assert_eq!(command.contains("-i cluster.toml"), !file.is_empty(), "{command}");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let (code, out, err) = cluster.run(&words);
        assert_eq!((code, cluster.now(at).as_str()), (0, OTHER), "{out}{err}");
    }
}

#[test]
fn what_was_put_back_is_printed_where_the_store_is_lost_meanwhile() {
    let test = "what_was_put_back_is_printed_where_the_store_is_lost_meanwhile";
    if !inside(test) {
        return;
    }
    let Some(server) = testkit::postgres::PostgresServer::start(test) else { return };
    let mut cluster = Cluster::new("put-back");
    cluster.store = server.database("team");
    assert_eq!(cluster.run(&["runs"]).0, 0, "the tables are made");
    server.sql("team", "create table lost (times bigint); create sequence ends");
    server.lose_trials("team", "new.status <> 'running' and nextval('ends') <= (select times from lost)");
    let states = || server.sql("team", "select status from trial order by saved_ms");

    // Once: the end is written over a new connection.
    server.sql("team", "insert into lost values (1)");
    cluster.set(0, OTHER);
    let (code, out, err) = cluster.run(&["drift", "h0", "--put-back"]);
    assert_eq!((code, cluster.now(0).as_str(), states().as_str()), (0, KEPT, "kept"), "{out}{err}");

    // For good: the host has the value, so it is printed before the error ends the command.
    server.sql("team", "update lost set times = 1000000");
    cluster.set(1, OTHER);
    let (code, out, err) = cluster.run(&["drift", "h1", "--put-back"]);
    assert_eq!((code, cluster.now(1).as_str(), states().as_str()), (2, KEPT, "kept\nrunning"), "{out}{err}");
    assert!(err.contains("h1: put back sysctl.net.ipv4.tcp_rmem"), "{err}");
    assert!(err.contains("database: write a trial in postgres:///team") && !out.is_empty(), "{out}{err}");

    // And so is what is undone.
    let undo = err.split('`').find_map(|part| part.strip_prefix("linerate ")).unwrap();
    let (code, out, err) = cluster.run(&undo.split(' ').collect::<Vec<_>>());
    assert_eq!((code, cluster.now(1).as_str()), (2, OTHER), "{out}{err}");
    assert!(err.contains("database: write a trial in postgres:///team") && !out.is_empty(), "{out}{err}");
}

#[test]
fn what_drifted_is_named_put_back_once_and_a_second_owner_is_found() {
    if !inside("what_drifted_is_named_put_back_once_and_a_second_owner_is_found") {
        return;
    }
    let cluster = Cluster::new("put-back");
    assert_eq!(cluster.drift(&[]).1, ["will-not-survive"; 2]);
    cluster.set(1, OTHER);
    let (code, states, value) = cluster.drift(&[]);
    assert_eq!((code, states), (1, vec!["will-not-survive".to_owned(), "drifted".to_owned()]));
    let row = &value["rows"][1];
    assert_eq!((&row["host"], &row["now"], &row["value"]), (&"h1".into(), &OTHER.into(), &KEPT.into()));
    assert_eq!(row["changed"]["from"], KEPT, "{row}");
    let (_, text, _) = cluster.run(&["drift"]);
    assert!(text.contains(&format!("h1: {KEY} is {OTHER}, {KEPT} was kept")), "{text}");
    assert!(text.contains("   Fix    linerate drift h1 --put-back\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let (code, states, value) = cluster.drift(&["--put-back"]);
    assert_eq!((code, states), (0, vec!["same".to_owned(); 2]), "{value}");
    assert_eq!((cluster.now(0), cluster.now(1)), (KEPT.to_owned(), KEPT.to_owned()));
    let file = std::fs::read_to_string(cluster.etc(1, "sysctl.d/90-linerate.conf")).unwrap();
    assert!(file.contains(&format!("net.ipv4.tcp_rmem = {KEPT}")), "{file}");

    // Another owner writes it again within the hour: it is left alone, and is a finding.
    cluster.set(1, OTHER);
    let (code, states, value) = cluster.drift(&["--put-back"]);
    assert_eq!(
        (code, states[1].as_str(), &value["rows"][1]["fight"]),
        (1, "drifted", &true.into()),
        "{value}"
    );
    assert_eq!((cluster.now(1), value["put_back"].as_array().unwrap().len()), (OTHER.to_owned(), 0));

    // A later file of the host gives another value at boot.
    std::fs::write(cluster.etc(0, "sysctl.d/99-vendor.conf"), format!("net.ipv4.tcp_rmem={OTHER}\n"))
        .unwrap();
    let (_, states, value) = cluster.drift(&["h0"]);
    assert_eq!(states, ["will-not-survive"]);
    assert!(value["rows"][0]["boot"]["at"].as_str().unwrap().ends_with("99-vendor.conf:1"), "{value}");
}

#[test]
fn a_policy_of_reporting_changes_nothing_and_proposing_needs_a_yes() {
    if !inside("a_policy_of_reporting_changes_nothing_and_proposing_needs_a_yes") {
        return;
    }
    let cluster = Cluster::new("report");
    cluster.set(0, OTHER);
    assert_eq!(cluster.drift(&["--put-back", "--yes"]).0, 1);
    assert_eq!(cluster.now(0), OTHER);
    let kept = cluster.folder.path().join("kept.toml");
    let text = std::fs::read_to_string(&kept).unwrap().replace("\"report\"", "\"propose\"");
    std::fs::write(&kept, text).unwrap();
    assert_eq!((cluster.drift(&["--put-back"]).0, cluster.now(0).as_str()), (1, OTHER));
    assert_eq!((cluster.drift(&["--put-back", "--yes"]).0, cluster.now(0).as_str()), (0, KEPT));
}

#[test]
fn a_chosen_profile_is_compared_like_what_was_kept() {
    if !inside("a_chosen_profile_is_compared_like_what_was_kept") {
        return;
    }
    let cluster = Cluster::new("report");
    let chosen = |profile: &str| {
        let text = format!("[[cohort]]\ngroup = \"storage\"\nprofile = \"{profile}\"\n");
        std::fs::write(cluster.folder.path().join("chosen.toml"), text).unwrap();
    };
    chosen("tuned-network-throughput");
    cluster.set(1, OTHER);
    let (code, _, value) = cluster.drift(&["--kept", "chosen.toml"]);
    let of = |host: &str| {
        let rows = value["rows"].as_array().unwrap().iter();
        let mut rows = rows.filter(|row| row["host"] == host && row["key"] == KEY);
        rows.next().unwrap_or_else(|| panic!("{value}")).clone()
    };
    // The profile asks for 16 MiB at least: more is as good.
    assert_eq!((&of("h0")["value"], &of("h0")["state"]), (&KEPT.into(), &"will-not-survive".into()));
    assert_eq!((code, &of("h1")["state"]), (1, &"drifted".into()));
    assert_eq!(of("h1")["value"], "4096 131072 16777216");
    assert_eq!((&of("h1")["profile"], &of("h1")["line"]), (&"tuned-network-throughput".into(), &3.into()));
    chosen("of-next-year");
    let (code, _, err) = cluster.run(&["drift", "--kept", "chosen.toml"]);
    assert!(code == 2 && err.contains("chosen.toml:3") && err.contains("no profile of-next-year"), "{err}");
}

#[test]
fn a_host_out_of_reach_is_not_read_and_no_drift() {
    if !inside("a_host_out_of_reach_is_not_read_and_no_drift") {
        return;
    }
    let cluster = Cluster::new("report");
    let (code, states, value) = cluster.drift(&["--kept", "lost.toml"]);
    assert_eq!((code, states), (3, vec!["unreadable".to_owned()]), "{value}");
    let (code, _, err) = cluster.run(&["drift", "--kept", "none.toml"]);
    assert!(code == 2 && err.contains("no kept set at none.toml\nhint: "), "{err}");
    std::fs::write(cluster.folder.path().join("bad.toml"), "[[cohort]]\ngroup = 'a'\nrole = 1\n").unwrap();
    let (code, _, err) = cluster.run(&["drift", "--kept", "bad.toml"]);
    assert!(code == 2 && err.contains("bad.toml:3: unknown field `role`"), "{err}");
}

/// A cluster whose kept set is in a database: `first.toml`, as revision 1.
fn team(test: &str) -> Option<(testkit::postgres::PostgresServer, Cluster)> {
    if !inside(test) {
        return None;
    }
    let server = testkit::postgres::PostgresServer::start(test)?;
    let mut cluster = Cluster::new("report");
    std::fs::rename(cluster.path("kept.toml"), cluster.path("first.toml")).unwrap();
    let (code, _, err) = cluster.run(&["drift", "--revisions"]);
    assert!(code == 2 && err.contains("the store is no PostgreSQL database"), "{err}");
    cluster.store = server.database("team");
    let (code, _, err) = cluster.run(&["drift"]);
    assert!(code == 2 && err.contains("no kept set of kept in the database\nhint: "), "{err}");
    let (code, out, err) = cluster.run(&["drift", "--load", "first.toml"]);
    assert_eq!((code, out), (0, format!("{FIRST}: stored from first.toml\n")), "{err}");
    Some((server, cluster))
}

const FIRST: &str = "kept set of kept in the database (revision 1)";

#[test]
fn a_team_shares_its_kept_set_in_the_database_and_a_file_has_priority() {
    let test = "a_team_shares_its_kept_set_in_the_database_and_a_file_has_priority";
    let Some((mut server, cluster)) = team(test) else { return };
    let (_, states, value) = cluster.drift(&[]);
    assert_eq!((states.len(), &value["kept"]), (2, &FIRST.into()), "{value}");
    let (_, out, _) = cluster.run(&["drift"]);
    assert!(out.starts_with(&format!("{FIRST}: 2 kept settings: 2 will not survive")), "{out}");
    let (code, out, err) = cluster.run(&["check", "install", "h0"]);
    assert!(code == 0 && out.contains("/etc/linerate/kept.json") && out.contains(KEPT), "{out}{err}");
    assert!(err.contains(&format!("kept settings: {FIRST}")), "{err}");

    // A file that was named, or is beside the inventory, has priority, and that is printed.
    let kept = cluster.path("kept.toml");
    std::fs::copy(cluster.path("first.toml"), &kept).unwrap();
    let (_, out, err) = cluster.run(&["drift"]);
    assert!(out.starts_with("kept.toml: 2 kept settings"), "{out}");
    assert!(err.contains(&format!("kept.toml has priority over the {FIRST}")), "{err}");
    let moved = err.split_once("hint: ").unwrap().1.lines().next().unwrap();
    cluster.shell(moved);
    assert!(!kept.exists());
    cluster.shell("linerate drift --print >kept.toml");
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.starts_with("# Revision 1 ") && text.contains("group = \"storage\""), "{text}");
    std::fs::remove_file(&kept).unwrap();
    let (_, out, err) = cluster.run(&["drift", "--kept", "first.toml"]);
    assert!(out.starts_with("first.toml: 2 kept settings") && !err.contains("priority"), "{out}{err}");

    // Without the server nothing else is compared, and nothing is lost.
    server.stop();
    for line in [&["drift"][..], &["drift", "--print"], &["drift", "--load", "first.toml"]] {
        let (code, out, err) = cluster.run(line);
        assert!(code == 2 && out.is_empty(), "{line:?}: {out}{err}");
        assert!(err.contains("no connection to postgres:///team"), "{line:?}: {err}");
        assert!(err.contains("hint: pg_isready -d "), "{line:?}: {err}");
    }
    server.run();
    assert_eq!(cluster.run(&["drift", "--print"]).1, text);

    // What is wrong in the database is named as in a file.
    server.sql("team", "update kept_set set toml = '[[cohort]]\nrole = 1\n'");
    let (code, _, err) = cluster.run(&["drift"]);
    assert!(code == 2 && err.contains(&format!("{FIRST}:2: unknown field `role`")), "{err}");
}

#[test]
fn an_edited_kept_set_is_stored_over_the_revision_that_it_was_printed_from() {
    let test = "an_edited_kept_set_is_stored_over_the_revision_that_it_was_printed_from";
    let Some((_server, cluster)) = team(test) else { return };
    let (_, printed, _) = cluster.run(&["drift", "--print"]);
    let write = |name: &str, text: &str| std::fs::write(cluster.path(name), text).unwrap();
    write("first.toml", &printed.replace("report", "put-back"));
    write("edited.toml", &printed.replace("report", "propose"));
    let (code, out, err) = cluster.run(&["drift", "--load", "first.toml"]);
    assert!(code == 0 && out.contains("(revision 2)"), "{out}{err}");

    // The second operator is refused, and what to type shows what differs.
    let (code, _, err) = cluster.run(&["drift", "-i", "cluster.toml", "--load", "edited.toml"]);
    let refused = "edited.toml was edited from revision 1, which is not the newest kept set of kept";
    assert!(code == 2 && err.contains(refused) && err.contains("drift --load first.toml)"), "{err}");
    let shown = cluster.shell(err.split('`').nth(1).unwrap());
    assert!(shown.contains("> policy = \"put-back\"") && shown.contains("< policy = \"propose\""), "{shown}");
    write("edited.toml", printed.split_once('\n').unwrap().1);
    let (code, _, err) = cluster.run(&["drift", "--load", "edited.toml"]);
    assert!(code == 2 && err.contains("edited.toml does not begin with the revision"), "{err}");
    write("edited.toml", &printed.replace("group", "role"));
    let (code, _, err) = cluster.run(&["drift", "--load", "edited.toml"]);
    assert!(code == 2 && err.contains("edited.toml:3: unknown field `role`"), "{err}");

    // Who wrote which revision, and each text.
    let document = |line: &[&str], name: &str| {
        let (code, out, err) = cluster.run(line);
        assert_eq!(code, 0, "{err}");
        let value: Value = serde_json::from_str(&out).unwrap();
        testkit::schemas::hold(name, &value);
        value
    };
    let listed = document(&["drift", "--revisions", "--json"], "kept-revisions");
    assert_eq!((&listed["cluster"], listed["revisions"].as_array().unwrap().len()), (&"kept".into(), 2));
    assert_eq!(listed["revisions"][0]["what"], "drift --load first.toml");
    let (_, table, _) = cluster.run(&["drift", "--revisions"]);
    assert!(table.lines().count() == 3 && table.contains('@'), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let newest = document(&["drift", "--print", "--json"], "kept-set");
    assert!(newest["toml"].as_str().unwrap().contains("put-back"), "{newest}");
    let old = document(&["drift", "--print=1", "--json"], "kept-set");
    assert_eq!((&old["revision"], old["toml"].as_str()), (&1.into(), Some(printed.as_str())));
    let (code, _, err) = cluster.run(&["drift", "--print=9"]);
    assert!(code == 2 && err.contains("(revision 9)\nhint: `linerate drift --revisions`"), "{err}");
}
