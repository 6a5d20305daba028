//! Good files are read, bad ones are refused with line and hint, and no text makes the reader panic.

use super::*;
use linerate_model::inventory::{Layer, SshSpec};
use proptest::prelude::*;

const GOOD: &str = r#"
name = "lab"
disturbances = "late.jsonl"

[[group]]
name = "room"
kind = "room"

[[group]]
name = "vs-4"
kind = "hypervisor"
parent = "room"
uplink_mbit = 200
machine = "vs-4-host"

[[host]]
name = "arc-1"
transport = "netns"
netns = "/proc/17/fd/9"
groups = ["vs-4"]
state_dir = "/tmp/x"

[[host.endpoint]]
address = "10.0.0.1"
link_mbit = 1000

[[host.endpoint]]
address = "fd00::1"
layer = "overlay"
netns = "/var/run/docker/netns/ingress_sbox"

[[host]]
name = "vs-4-host"
netns = "blue"
"#;

#[test]
fn a_good_file_is_read() {
    let inventory = parse("cluster.toml", GOOD).unwrap();
    assert_eq!(inventory.name, "lab");
    assert_eq!(inventory.groups_of("arc-1").len(), 2);
    assert_eq!(inventory.group("vs-4").unwrap().uplink_bps, Some(200e6));
    assert_eq!(
        inventory.endpoint("arc-1", Layer::Overlay).unwrap().address,
        "fd00::1".parse::<std::net::IpAddr>().unwrap()
    );
    assert_eq!(inventory.endpoint("arc-1", Layer::Underlay).unwrap().link_bps, Some(1e9));
    assert_eq!(inventory.hosts[1].transport, TransportSpec::Netns { path: "/run/netns/blue".into() });
}

#[test]
fn a_device_that_only_has_iperf3_is_read() {
    let text = "[[host]]\nname=\"nas\"\n[[host.endpoint]]\naddress=\"10.0.0.9\"\nkind=\"iperf3\"\n";
    let inventory = parse("cluster.toml", text).unwrap();
    assert_eq!(inventory.hosts[0].transport, TransportSpec::Iperf3 { port: 5201 });
    let inventory = parse("cluster.toml", &format!("{text}port=5300\n")).unwrap();
    assert_eq!(inventory.iperf3_port("nas"), Some(5300));
}

fn refused(text: &str) -> (usize, String) {
    let error = parse("cluster.toml", text).unwrap_err();
    (error.line, error.to_string())
}

/// Each case is refused at its line, with words that help.
fn all_refused(cases: &[(&str, usize, &[&str])]) {
    for (text, line, parts) in cases {
        let (got, message) = refused(text);
        assert_eq!(got, *line, "{text}\n{message}");
        for part in *parts {
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }
}

#[test]
fn a_device_that_only_has_iperf3_has_nothing_else() {
    all_refused(&[
        (
            "[[host]]\nname=\"a\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\nkind=\"iperf\"\n",
            5,
            &["unknown kind of endpoint `iperf`", "did you mean `iperf3`?"],
        ),
        (
            "[[host]]\nname=\"a\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\nport=5201\n",
            5,
            &["`port` without `kind"],
        ),
        (
            "[[host]]\nname=\"a\"\nnetns=\"b\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\nkind=\"iperf3\"\n",
            3,
            &["only has iperf3"],
        ),
        (
            "[[host]]\nname=\"a\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\nkind=\"iperf3\"\n\
             [[host.endpoint]]\naddress=\"10.1.0.1\"\nlayer=\"overlay\"\n",
            7,
            &["differ in kind or port"],
        ),
    ]);
}

#[test]
fn targets_of_alarms_are_written_as_they_are_read_and_stay_out_of_what_is_stored() {
    let text = "[[host]]\nname = \"a\"\ntransport = \"ssh\"\n\n\
        [[notify]]\nwebhook = \"http://127.0.0.1:9093/api/v2/alerts?key=secret\"\nquiet = \"22:00-07:00\"\n\n\
        [[notify]]\nmail = [\"ops@example.org\"]\n\n\
        [[notify]]\ncommand = [\"/usr/bin/page\", \"two words\"]\n";
    let inventory = parse("cluster.toml", text).unwrap();
    assert_eq!(inventory.notify.len(), 3);
    let understood = Understood::ours("toml", inventory.clone());
    let again = parse("again.toml", &write::toml(&understood)).unwrap();
    assert_eq!(again.notify, inventory.notify);
    let stored = serde_json::to_string(&inventory).unwrap() + &serde_json::to_string(&understood).unwrap();
    assert!(!stored.contains("secret") && !stored.contains("ops@"), "{stored}");
    let host = "[[host]]\nname=\"a\"\nnetns=\"b\"\n[[notify]]\n";
    let cases: [(&str, &[&str]); 7] = [
        ("webhook = \"https://a/\"", &["https is not spoken", "such as http://"]),
        ("mail = [\"-oQ/tmp\"]", &["mail address `-oQ/tmp` is not allowed"]),
        ("mail = [\"a b\"]", &["is not allowed"]),
        ("mail = [\"a\"]\nsendmail = \"sendmail\"", &["not an absolute path"]),
        ("command = []", &["command is empty"]),
        ("command = [\"a\"]\nquiet = \"night\"", &["quiet is `night`", "22:00-07:00"]),
        ("command = [\"a\"]\nmail = [\"b\"]", &["needs one target"]),
    ];
    for (lines, parts) in cases {
        let (_, message) = refused(&format!("{host}{lines}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn downloads_are_written_as_they_are_read_and_stay_out_of_what_is_stored() {
    let hosts =
        "[[group]]\nname = \"site\"\n[[host]]\nname = \"a\"\ntransport = \"ssh\"\ngroups = [\"site\"]\n";
    let text = format!(
        "{hosts}[[http]]\nurls = [\"https://files/a?key=secret\", \"http://files/b\"]\nvia = [\"192.0.2.1:80\", \"[::1]\"]\n\
         from = [\"site\", \"a\"]\nevery = \"90s\"\ntime = \"500ms\"\nmax_bytes = 1000\n[[http]]\nurls = [\"http://c\"]\n"
    );
    let inventory = parse("cluster.toml", &text).unwrap();
    let [first, second] = &inventory.downloads[..] else { panic!("{:?}", inventory.downloads) };
    assert_eq!((first.every_s, first.timeout_ms, first.bytes_max), (90, 500, 1000));
    assert_eq!((second.every_s, second.timeout_ms, second.bytes_max), (300, 10_000, 10_000_000));
    let understood = Understood::ours("toml", inventory.clone());
    let again = parse("again.toml", &write::toml(&understood)).unwrap();
    assert_eq!(again.downloads, inventory.downloads);
    let stored = serde_json::to_string(&inventory).unwrap() + &serde_json::to_string(&understood).unwrap();
    assert!(!stored.contains("secret"), "{stored}");
    let cases: [(&str, &[&str]); 10] = [
        ("urls = []", &["urls has 0 URLs"]),
        ("urls = [\"ftp://a/b\"]", &["URL `ftp://a/b` is not allowed", "http://files.example"]),
        ("urls = [\"http://user:pw@a/\"]", &["is not allowed"]),
        ("urls = [\"http:///a\"]", &["is not allowed"]),
        ("urls = [\"http://a/b?x\", \"http://a/b?y\"]", &["URL `http://a/b` is used twice"]),
        ("urls = [\"http://a\"]\nfrom = [\"b\"]", &["unknown host `b`"]),
        ("urls = [\"http://a\"]\nvia = [\"a b\"]", &["front end `a b` is not allowed"]),
        ("urls = [\"http://a\"]\nevery = \"1s\"", &["every is `1s`", "10 s to 86400 s"]),
        ("urls = [\"http://a\"]\ntime = \"soon\"", &["time is `soon`"]),
        ("urls = [\"http://a\"]\ntime = \"60s\"", &["may take 1440 s, at most 900 s"]),
    ];
    for (lines, parts) in cases {
        let (_, message) = refused(&format!("{hosts}[[http]]\n{lines}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn rounds_of_throughput_are_written_as_they_are_read() {
    let host = "[[host]]\nname = \"a\"\ntransport = \"ssh\"\n[throughput]\n";
    let text = format!("{host}windows = [\"01:00-05:00\", \"22:00-00:30\"]\nevery = \"20m\"\n");
    let inventory = parse("cluster.toml", &text).unwrap();
    let rounds = inventory.throughput.clone().unwrap();
    assert_eq!((rounds.windows.len(), rounds.every_s), (2, 1200));
    let (day_ms, hour_ms) = (20_000 * 86_400_000, 3_600_000);
    assert!(rounds.allow(day_ms + hour_ms) && rounds.allow(day_ms + hour_ms / 3));
    assert!(!rounds.allow(day_ms + 5 * hour_ms));
    let again = parse("again.toml", &write::toml(&Understood::ours("toml", inventory.clone()))).unwrap();
    assert_eq!(again.throughput, inventory.throughput);
    assert!(!serde_json::to_string(&inventory).unwrap().contains("throughput"));
    let cases: [(&str, &[&str]); 4] = [
        ("windows = []", &["windows has 0 windows", "01:00-05:00"]),
        ("windows = [\"night\"]", &["window is `night`", "UTC"]),
        ("windows = [\"01:00-05:00\"]\nevery = \"1m\"", &["every is `1m`", "600 s to 86400 s"]),
        ("every = \"1h\"", &["windows"]),
    ];
    for (lines, parts) in cases {
        let (_, message) = refused(&format!("{host}{lines}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn a_folder_that_depends_on_the_working_folder_is_refused() {
    all_refused(&[
        (
            "[[host]]\nname=\"a\"\nnetns=\"b\"\nstate_dir=\"relst\"\n",
            4,
            &["state_dir `relst` is not an absolute path", "state_dir = \"/srv/linerate\""],
        ),
        ("[[host]]\nname=\"a\"\nnetns=\"b\"\nstate_dir=\"./x\"\n", 4, &["is not an absolute path"]),
        ("[[host]]\nname=\"a\"\nnetns=\"b\"\nstate_dir=\"\"\n", 4, &["is not an absolute path"]),
        ("[[host]]\nname=\"a\"\nnetns=\"b\"\n\nstate_dir=\"/var/../x\"\n", 5, &["contains `..`"]),
        ("[[host]]\nname=\"a\"\nnetns=\"b\"\netc_dir=\"etc\"\n", 4, &["etc_dir `etc` is not an absolute"]),
    ]);
}

#[test]
fn a_bad_file_is_refused_with_line_and_hint() {
    let cases: &[(&str, usize, &[&str])] = &[
        ("[[host]]\nname = \"a\"\ngruops = []\n", 3, &["gruops", "did you mean `groups`?"]),
        ("[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\n", 4, &["duplicate host name `a`"]),
        (
            "[[group]]\nname = \"g\"\n[[group]]\nname = \"g\"\n[[host]]\nname=\"a\"\n",
            4,
            &["duplicate group name `g`"],
        ),
        (
            "[[host]]\nname = \"a\"\n[[host.endpoint]]\naddress = \"10.0.0.300\"\n",
            4,
            &["10.0.0.300", "not an IP address"],
        ),
        (
            "[[host]]\nname = \"a\"\n[[host.endpoint]]\naddress = \"10.0.0.3/24\"\n",
            4,
            &["without the prefix length"],
        ),
        (
            "[[group]]\nname=\"vs-4\"\n[[host]]\nname = \"a\"\ngroups = [\"vs4\"]\n",
            5,
            &["unknown group `vs4`", "did you mean `vs-4`?"],
        ),
        (
            "[[group]]\nname=\"a\"\nparent=\"b\"\n[[group]]\nname=\"b\"\nparent=\"a\"\n[[host]]\nname=\"h\"\n",
            2,
            &["contains itself", "a in b in a"],
        ),
        ("[[group]]\nname=\"a\"\nmachine=\"hh\"\n[[host]]\nname=\"h\"\n", 3, &["unknown host `hh`", "`h`"]),
        ("[[host]]\nname=\"a\"\ntransport=\"shs\"\n", 3, &["unknown transport `shs`", "local, netns"]),
        ("[[host]]\nname=\"a\"\ntransport=\"netns\"\n", 2, &["no `netns`"]),
        (
            "[[host]]\nname=\"a\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\nlayer=\"overlya\"\n",
            5,
            &["overlya", "did you mean `overlay`?"],
        ),
        (
            "[[host]]\nname=\"a\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\n[[host]]\nname=\"b\"\n[[host.endpoint]]\naddress=\"10.0.0.1\"\n",
            8,
            &["used twice", "`a`", "`b`"],
        ),
        ("[[group]]\nname=\"g\"\nuplink_mbit=-5\n[[host]]\nname=\"a\"\n", 3, &["uplink_mbit is -5"]),
        ("[[host]]\nname = \"a b\"\n", 2, &["`a b` is not allowed"]),
        ("name = \"x\"\n", 1, &["no [[host]]"]),
        ("[[host]]\nname=\"a\"\nssh={ host=\"-oProxyCommand=x\" }\n", 3, &["ssh host", "not allowed"]),
        ("[[host]]\nname=\"a\"\nssh={ port=0 }\n", 3, &["ssh port is 0"]),
        ("[[host]]\nname=\"a\"\nssh={}\nnetns=\"b\"\n", 4, &["`netns` beside `ssh`"]),
        ("[[host]]\nname=\"a\"\ntransport=\"local\"\nssh={}\n", 4, &["beside `transport = \"local\"`"]),
        ("[[host]\n", 1, &["cluster.toml:1"]),
    ];
    all_refused(cases);
}

#[test]
fn hosts_over_ssh_take_what_ssh_needs() {
    let text = "[[host]]\nname = \"a\"\ntransport = \"ssh\"\n\
                [[host]]\nname = \"b\"\nssh = { host = \"b.example\", user = \"ops\", port = 2222, sudo = false }\n";
    let inventory = parse("x", text).unwrap();
    let spec = |index: usize| match &inventory.hosts[index].transport {
        TransportSpec::Ssh(spec) => spec.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(spec(0), SshSpec::parse("a").unwrap());
    assert_eq!(spec(1), SshSpec { sudo: false, ..SshSpec::parse("ops@b.example:2222").unwrap() });
}

#[test]
fn the_folder_of_the_node_program_is_an_absolute_path_on_one_line() {
    let text = "[[host]]\nname = \"a\"\ntransport = \"ssh\"\ncache_dir = \"/scratch/of ops\"\n";
    let inventory = parse("cluster.toml", text).unwrap();
    assert_eq!(inventory.hosts[0].cache_dir, Some("/scratch/of ops".into()));
    // Written and read again it is the same.
    let written = write::toml(&Understood::ours("toml", inventory.clone()));
    assert_eq!(parse("again.toml", &written).unwrap(), inventory, "{written}");
    let host = |rest: &str| format!("[[host]]\nname = \"a\"\n{rest}\n");
    let long = host(&format!("ssh = {{}}\ncache_dir = \"/{}\"", "x".repeat(4000)));
    let cases = [
        (host("ssh = {}\ncache_dir = \"scratch\""), "cache_dir `scratch` is not an absolute path"),
        (host("ssh = {}\ncache_dir = \"\""), "cache_dir `` is not an absolute path"),
        (host("ssh = {}\ncache_dir = \"/a/../../etc\""), "contains `..`"),
        (host("ssh = {}\ncache_dir = \"/a\\nb\""), "control characters"),
        (host("transport = \"local\"\ncache_dir = \"/a\""), "not reached over ssh"),
        (long, "4001 bytes"),
    ];
    for (text, words) in cases {
        let (line, message) = refused(&text);
        assert_eq!(line, 4, "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn agents_are_written_as_they_are_read_and_flaws_have_their_line() {
    let hosts = "[[group]]\nname = \"r1\"\n[[host]]\nname = \"a\"\ngroups = [\"r1\"]\n[[host.endpoint]]\n\
                 address = \"10.0.0.1\"\n[[host]]\nname = \"b\"\n";
    let agents = |listen: &str, keys: &str, hosts: &str| {
        format!("[agents]\nlisten = {listen}\nkeys = \"{keys}\"\nhosts = {hosts}\n")
    };
    let one = "[\"10.0.0.9:9442\"]";
    let text = format!("{hosts}{}", agents(one, "/etc/linerate/agents", "[\"r1\"]"));
    let inventory = parse("cluster.toml", &text).unwrap();
    let has: Vec<bool> = inventory.hosts.iter().map(|host| inventory.has_agent(host)).collect();
    assert_eq!(has, [true, false]);
    let written = write::toml(&Understood::ours("toml", inventory.clone()));
    assert_eq!(parse("again.toml", &written).unwrap(), inventory, "{written}");
    assert!(!serde_json::to_string(&inventory).unwrap().contains("agents"));
    for (table, at, words) in [
        (agents("[]", "/k", "[\"a\"]"), 11, "listen has 0 addresses"),
        (agents("[\"10.0.0.9\"]", "/k", "[\"a\"]"), 11, "listen `10.0.0.9` is no address"),
        (agents("[\"0.0.0.0:9442\"]", "/k", "[\"a\"]"), 11, "listen `0.0.0.0:9442` is no address"),
        (agents("[\"10.0.0.9:0\"]", "/k", "[\"a\"]"), 11, "is no address"),
        (agents(one, "keys", "[\"a\"]"), 12, "keys `keys` is not an absolute path"),
        (agents(one, "/k", "[\"c\"]"), 13, "unknown host `c`"),
        (agents(one, "/k", "[\"a\"]\nhost = 1"), 14, "did you mean `hosts`?"),
        // All hosts; one cannot be probed.
        (agents(one, "/k", "[]"), 10, "host `b` has an agent but no address"),
    ] {
        let (line, message) = refused(&format!("{hosts}{table}"));
        assert_eq!(line, at, "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn all_errors_of_a_file_are_reported_at_once_and_in_its_order() {
    let text = "[[group]]\nname = \"g\"\nuplink_mbit = -1.0\n[[host]]\nname = \"a\"\ntransprt = \"ssh\"\n\
                transport = \"telnet\"\ngroups = [\"h\"]\n[[host.endpoint]]\naddress = \"10.0.0.300\"\n\
                [[host]]\nname = \"a\"\n[[host.endpoint]]\naddress = \"10.0.0.1\"\nlink_mbit = \"fast\"\n";
    let error = parse("cluster.toml", text).unwrap_err();
    let lines: Vec<usize> = std::iter::once(&error).chain(&error.others).map(|error| error.line).collect();
    assert_eq!(lines, [3, 6, 7, 8, 10, 12, 15], "{error}");
    for part in ["uplink_mbit is -1", "did you mean `transport`?", "telnet", "`h`", "10.0.0.300", "duplicate"]
    {
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
    assert!(error.alone().lines().count() <= 2, "{}", error.alone());
    // A text that is no TOML ends the reading.
    let error = parse("cluster.toml", "name = \"x\"\n[[host\nname = \"a\"\nfoo = 1\n").unwrap_err();
    assert_eq!((error.line, error.others.len()), (2, 0), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let error = load(Path::new("/nonexistent/cluster.toml")).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/cluster.toml"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,300}") {
        let _ = parse("x", &text);
    }

    #[test]
    fn no_cut_or_changed_file_makes_it_panic(at in 0..GOOD.len(), len in 0_usize..40, with in "[\\[\\]=\"a-z0-9\n ]{0,20}") {
        let mut text = GOOD.to_owned();
        text.replace_range(at..(at + len).min(GOOD.len()), &with);
        let _ = parse("x", &text);
    }
}
