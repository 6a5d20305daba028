//! The command line as people and scripts see it: help, errors with their hints, exit codes, the empty store.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::process::{Command, Output};

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("LINERATE_DATA", self.0.path())
            .env_remove("LINERATE_NODE")
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Commands that the help lists.
const SHOWN: [&str; 20] = [
    "survey",
    "diagnose",
    "try",
    "keep",
    "drift",
    "undo",
    "show",
    "serve",
    "runs",
    "history",
    "diff",
    "changes",
    "facts",
    "explain",
    "measure",
    "disk",
    "drbd",
    "inventory",
    "clean",
    "completions",
];

#[test]
fn every_command_has_help_with_an_example() {
    let home = Home::new();
    let overview = text(&home.run(&["--help"]).stdout);
    for command in SHOWN {
        assert!(overview.contains(&format!("  {command} ")), "{overview}");
    }
    let before =
        ["latency", "udp", "mtu", "connects", "http", "import", "report", "case record", "disk bench"];
    for command in SHOWN.iter().chain(&["knowledge", "man"]).chain(&before) {
        if ["disk", "drbd"].contains(command) {
            continue;
        }
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = home.run(&words);
        assert_eq!(help.status.code(), Some(0), "{command}");
        assert!(text(&help.stdout).contains("Example"), "{}", text(&help.stdout));
    }
    assert!(overview.contains("Exit codes") && overview.contains("linerate demo"), "{overview}");
}

#[test]
fn a_wrong_argument_is_code_2() {
    let home = Home::new();
    assert_eq!(home.run(&["survay"]).status.code(), Some(2));
    let wrong = home.run(&["survey", "-i", "x.toml", "--time", "5 parsecs"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("is not a unit of time"), "{}", text(&wrong.stderr));
}

#[test]
fn a_bad_inventory_is_code_2_with_file_line_and_hint() {
    let home = Home::new();
    std::fs::write(home.0.path().join("c.toml"), "[[host]]\nname = \"a\"\ntransprot = \"local\"\n").unwrap();
    let refused = home.run(&["survey", "-i", "c.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("c.toml:3: unknown field `transprot`"), "{stderr}");
    assert!(stderr.contains("hint: did you mean `transport`?"), "{stderr}");
    assert_eq!(text(&refused.stdout), "");
}

#[test]
fn a_missing_node_program_is_code_2_and_says_what_to_do() {
    let home = Home::new();
    let refused = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["facts", "localhost", "cpu"])
        .env("LINERATE_DATA", home.0.path())
        .env("LINERATE_NODE", "/nonexistent/linerate-node")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("/nonexistent/linerate-node") && stderr.contains("LINERATE_NODE"), "{stderr}");
}

#[test]
fn an_empty_store_is_said_so() {
    let home = Home::new();
    let runs = home.run(&["runs"]);
    assert_eq!(runs.status.code(), Some(0));
    assert!(text(&runs.stdout).contains("no runs yet"));
    let json: serde_json::Value = serde_json::from_slice(&home.run(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(json["schema"], 1);
    for command in
        [&["diagnose"][..], &["report"], &["try", "x"], &["keep", "t"], &["undo", "t"], &["diff", "a", "b"]]
    {
        let refused = home.run(command);
        assert_eq!(refused.status.code(), Some(2), "{command:?}");
        assert!(text(&refused.stderr).contains("hint: "), "{}", text(&refused.stderr));
    }
}

#[test]
fn completions_and_man_page_are_made_from_the_same_description() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(text(&home.run(&["completions", shell]).stdout).contains("survey"));
    }
    assert!(text(&home.run(&["man"]).stdout).contains(".TH linerate"));
    assert!(text(&home.run(&["man", "survey"]).stdout).contains("inventory"));
}

#[test]
fn every_visible_command_has_a_man_page() {
    let home = Home::new();
    let folder = home.0.path().join("man1");
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(home.run(&["man", "--all", folder.to_str().unwrap()]).status.code(), Some(0));
    let name = |page: std::fs::DirEntry| page.file_name().into_string().unwrap();
    let pages: Vec<String> = std::fs::read_dir(&folder).unwrap().map(|page| name(page.unwrap())).collect();
    for command in SHOWN {
        assert!(pages.contains(&format!("linerate-{}.1", command.replace(' ', "-"))), "{command}: {pages:?}");
    }
    assert!(pages.contains(&"linerate.1".to_owned()) && !pages.contains(&"linerate-lab.1".to_owned()));
    let survey = std::fs::read_to_string(folder.join("linerate-survey.1")).unwrap();
    assert!(survey.starts_with(".ie") && survey.contains("linerate survey"), "{survey}");
}

#[test]
fn a_snapshot_file_is_diagnosed_and_an_imported_file_refused() {
    let home = Home::new();
    std::fs::write(
        home.0.path().join("s.json"),
        r#"{"schema":1,"id":"r","inventory":{"name":"x","hosts":[]}}"#,
    )
    .unwrap();
    let done = home.run(&["diagnose", "s.json", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["run"], "r");
    std::fs::write(home.0.path().join("f.json"), "[1,2]").unwrap();
    let refused = home.run(&["diagnose", "f.json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("f.json:1: \"[1,2]\": no known format"));
}

#[test]
fn a_list_of_hosts_is_shown_and_written_as_an_inventory() {
    let home = Home::new();
    std::fs::write(home.0.path().join("hosts.ini"), "[web]\nweb[1:2] ansible_host=10.0.0.[1\n").unwrap();
    let refused = home.run(&["inventory", "hosts.ini"]);
    assert_eq!(refused.status.code(), Some(2));
    std::fs::write(home.0.path().join("hosts"), "10.0.0.1 arc-1\n10.0.0.2 arc-2\n127.0.0.1 localhost\n")
        .unwrap();
    let shown = text(&home.run(&["inventory", "hosts"]).stdout);
    for part in
        ["2 hosts, 0 groups; read as etc-hosts", "ssh 10.0.0.1", "underlay 10.0.0.2", "line 3", "loopback"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&home.run(&["inventory", "hosts", "--json"]).stdout).unwrap();
    assert_eq!(json["hosts"][1]["endpoints"][0]["address"], "10.0.0.2");
    let written = text(&home.run(&["inventory", "hosts", "--toml"]).stdout);
    assert!(written.contains("# left out: line 3, 127.0.0.1 localhost"), "{written}");
    assert!(written.contains("[[host]]\nname = \"arc-2\""), "{written}");
    let wrong = home.run(&["inventory", "hosts", "--format", "xml"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("kubernetes"), "{}", text(&wrong.stderr));
    let missing = home.run(&["inventory", "nowhere"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("nowhere"), "{}", text(&missing.stderr));
}

/// Runs in a folder, with an inventory named by the environment where one is given.
fn in_folder(folder: &std::path::Path, inventory: Option<&str>, args: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(args).current_dir(folder).env("LINERATE_DATA", folder).env("HOME", folder);
    command.env_remove("XDG_CONFIG_HOME").env_remove("LINERATE_INVENTORY");
    command.envs(inventory.map(|path| ("LINERATE_INVENTORY", path))).output().unwrap()
}

#[test]
fn the_inventory_is_found_where_none_is_given_and_names_choose_from_it() {
    let home = Home::new();
    let folder = home.0.path();
    let clean = |inventory: Option<&str>, names: &[&str]| {
        let output = in_folder(folder, inventory, &[&["clean"], names].concat());
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, stderr) = clean(None, &[]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("hint: name hosts, or an inventory with -i FILE"), "{stderr}");
    let hosts = |names: &[&str]| -> String {
        let host = |name: &&str| format!("[[host]]\nname = \"{name}\"\ntransport = \"local\"\n");
        names.iter().map(host).collect::<Vec<_>>().concat()
    };
    let config = folder.join(".config/linerate");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("cluster.toml"), hosts(&["own"])).unwrap();
    assert!(clean(None, &[]).1.starts_with("own: "));
    std::fs::write(folder.join("cluster.toml"), hosts(&["one", "two"])).unwrap();
    let (code, cleaned, stderr) = clean(None, &[]);
    assert_eq!((code, cleaned.lines().count()), (0, 2), "{cleaned}{stderr}");
    assert!(stderr.contains("inventory ./cluster.toml"), "{stderr}");
    assert_eq!(clean(None, &["two"]).1.lines().count(), 1);
    // This machine need not be in it.
    let (_, cleaned, _) = clean(None, &["two", "local"]);
    assert!(cleaned.contains("two: ") && cleaned.contains("local: "), "{cleaned}");
    let (code, _, stderr) = clean(None, &["two", "three"]);
    assert!(code == 2 && stderr.contains("no host `three`"), "{stderr}");
    std::fs::write(folder.join("named.toml"), hosts(&["three"])).unwrap();
    assert!(clean(Some("named.toml"), &[]).1.starts_with("three: "));
    let (code, _, stderr) = clean(Some("gone.toml"), &[]);
    assert!(code == 2 && stderr.contains("gone.toml"), "{stderr}");
}

#[test]
fn a_namespace_stands_for_its_host_and_one_host_is_no_survey() {
    let home = Home::new();
    let cleaned = home.run(&["clean", "local!netns:blue"]);
    assert_eq!(cleaned.status.code(), Some(0), "{}", text(&cleaned.stderr));
    assert!(text(&cleaned.stdout).starts_with("local: "), "{}", text(&cleaned.stdout));
    assert!(text(&cleaned.stderr).contains("local: this command is about the whole host"));
    for (words, part) in [
        (&["survey", "local"][..], "one host is no pair"),
        (&["measure", "http", "nope"], "such as http://nope"),
        (&["measure", "tcp", "local", "-P", "9999"], "1..=512"),
        (&["measure", "tcp", "local", "-O", "9s", "-t", "5s"], "at most as long"),
        (&["undo", "nothing"], "no trial `nothing`"),
    ] {
        let refused = home.run(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains(part), "{words:?}: {}", text(&refused.stderr));
    }
    let listed = home.run(&["undo"]);
    assert!(text(&listed.stdout).starts_with("nothing is open"), "{}", text(&listed.stdout));
}
