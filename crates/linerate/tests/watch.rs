//! `linerate watch` over loopback with the real node program: downloads of the inventory from real servers,
//! one of them slow; and the systemd unit that it prints, as systemd judges it.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use linerate_testkit::{has, run, schemas};
use serde_json::Value;

/// Bytes of the body that the servers have.
const BODY: usize = 2_000_000;
/// What the slow one sends every tenth of a second.
const DROP: usize = 4_000;

fn node_program() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_linerate")).with_file_name("linerate-node");
    std::env::var_os("LINERATE_NODE").map(PathBuf::from).or(Some(beside)).filter(|p| p.is_file())
}

/// Answers one request, all at once or by and by.
fn serve(mut stream: TcpStream, is_slow: bool) -> std::io::Result<()> {
    let (mut request, mut byte) = (Vec::new(), [0; 1]);
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n")?;
    if !is_slow {
        return stream.write_all(&vec![b'x'; BODY]);
    }
    // The slowness of the front end is what the test is about; a client that hangs up ends it.
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    for _ in 0..BODY / DROP {
        stream.write_all(&[b'x'; DROP])?;
        if matches!(stream.read(&mut byte), Ok(0)) {
            break;
        }
    }
    Ok(())
}

/// A front end, for as long as the test runs.
fn front_end(is_slow: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, is_slow));
        }
    });
    address
}

/// A watch with the events that it prints, which ends with this.
struct Watch(Child, Lines<BufReader<ChildStdout>>);

impl Watch {
    /// The next event of this kind.
    fn until(&mut self, kind: &str) -> Value {
        for line in self.1.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == kind {
                schemas::hold("watch", &event);
                return event;
            }
        }
        panic!("no event {kind}");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is at a path of an address.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_slow_front_end_is_reported_in_the_first_round() {
    let test = "a_slow_front_end_is_reported_in_the_first_round";
    let Some(node) = node_program() else {
        println!("SKIPPED {test}: no linerate-node beside linerate and LINERATE_NODE is not set");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let (fast, slow) = (front_end(false), front_end(true));
    let inventory = home.path().join("cluster.toml");
    let host = |name: &str, address: &str| {
        format!(
            "[[host]]\nname = \"{name}\"\ntransport = \"local\"\n[[host.endpoint]]\naddress = \"{address}\"\n"
        )
    };
    let hosts = host("a", "127.0.0.1") + &host("b", "127.0.0.2");
    let http = format!(
        "[[http]]\nurls = [\"http://files.example/f?key=secret\"]\nvia = [\"{fast}\", \"{slow}\"]\nfrom = [\"a\"]\n\
         every = \"1h\"\ntime = \"1s\"\n"
    );
    std::fs::write(&inventory, format!("name = \"two\"\n{hosts}{http}")).unwrap();
    // A free port a moment ago; nothing else of this test takes one.
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["watch", "--json", "--for", "15m", "-i", inventory.to_str().unwrap()])
        .args(["--metrics", &metrics.to_string()])
        .env("LINERATE_DATA", home.path())
        .env("LINERATE_NODE", &node)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let events = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut watch = Watch(child, events);

    let round = watch.until("downloaded");
    assert_eq!(round["seen"].as_array().map(Vec::len), Some(2), "{round:#}");
    let alarm = watch.until("slowed")["alarm"].take();
    let of = &alarm["of"]["download"];
    assert_eq!((of["via"].as_str(), of["host"].as_str()), (Some(&*slow.to_string()), Some("a")), "{alarm:#}");
    assert_eq!(of["url"], "http://files.example/f", "{alarm:#}");
    let rate = |of: &Value| of.as_f64().unwrap();
    assert!(rate(&alarm["usual"]) > 10.0 * rate(&alarm["now"]) && rate(&alarm["now"]) > 0.0, "{alarm:#}");

    let text = get(metrics, "/metrics");
    let labels = format!("host=\"a\",url=\"http://files.example/f\",front_end=\"{slow}\"");
    assert!(text.contains(&format!("linerate_downloads_total{{{labels}}} 3\n")), "{text}");
    assert!(text.contains("linerate_slow_alarm_ratio{kind=\"download\","), "{text}");
    assert!(!text.contains("secret"), "{text}");

    // Ctrl-C: the current minute is in the history.
    run("kill", &["-INT", &watch.0.id().to_string()]);
    watch.0.wait().unwrap();
    let history = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["history", "a", "--json"])
        .env("LINERATE_DATA", home.path())
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&history.stdout).unwrap();
    let through = |front: SocketAddr| format!("http://files.example/f through {front}");
    for front in [fast, slow] {
        let of = |series: &&Value| series["suspect"]["pair"][0] == through(front);
        let series = shown["watched"].as_array().unwrap().iter().find(of);
        assert_eq!(series.unwrap()["metric"], "throughput", "{shown:#}");
    }
}

/// What `linerate watch` prints with these words.
fn printed(folder: &Path, words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_linerate")).arg("watch").args(words).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Complaints of systemd about this unit of ours.
fn complaints(path: &str) -> String {
    let done = Command::new("systemd-analyze").args(["verify", "--man=no", path]).output().unwrap();
    let name = Path::new(path).file_stem().unwrap().to_str().unwrap();
    let all = String::from_utf8_lossy(&done.stderr).into_owned();
    all.lines().filter(|line| line.contains(name)).collect()
}

#[test]
fn systemd_accepts_the_unit_of_an_agent() {
    let test = "systemd_accepts_the_unit_of_an_agent";
    let folder = tempfile::tempdir().unwrap();
    let unit = printed(folder.path(), &["--print", "agent-unit"]);
    assert!(unit.contains("\nExecStart=/usr/local/sbin/linerate-node agent\n"), "{unit}");
    // Mounts and sysctls are what it reports: it has no view of its own of either.
    for own_view in
        ["ProtectSystem", "ProtectKernelTunables", "ProtectHome", "Private", "ReadOnly", "RestrictNamespaces"]
    {
        assert!(!unit.contains(own_view), "{own_view}");
    }
    if !has(test, "systemd-analyze", "systemd") {
        return;
    }
    let path = folder.path().join("linerate-agent.service");
    let path = path.to_str().unwrap();
    // A program that is here.
    let unit = unit.replace("/usr/local/sbin/linerate-node", env!("CARGO_BIN_EXE_linerate"));
    std::fs::write(path, &unit).unwrap();
    assert_eq!(complaints(path), "");
    std::fs::write(path, unit.replace("Restart=always", "Restart=sometimes")).unwrap();
    assert!(!complaints(path).is_empty());
}

#[test]
fn systemd_accepts_the_unit_and_its_user() {
    let test = "systemd_accepts_the_unit_and_its_user";
    let folder = tempfile::tempdir().unwrap();
    let inventory = folder.path().join("100% of it.toml");
    std::fs::write(&inventory, "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n").unwrap();
    let named = inventory.to_str().unwrap();
    let unit = printed(folder.path(), &["--print", "unit", "-i", named, "--metrics", "127.0.0.1:9441"]);
    let command = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    assert!(command.ends_with("100%% of it.toml\" --metrics 127.0.0.1:9441"), "{command}");
    let sysusers = printed(folder.path(), &["--print", "sysusers"]);
    let user = unit.lines().find_map(|line| line.strip_prefix("User=")).unwrap();
    assert!(sysusers.contains(&format!("\nu {user} - ")), "{sysusers}");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (unit, sysusers) = (file("linerate-watch.service", &unit), file("linerate-watch.conf", &sysusers));
    if !has(test, "systemd-analyze", "systemd") || !has(test, "systemd-sysusers", "systemd") {
        return;
    }
    assert_eq!(complaints(&unit), "");
    // It can fail: a setting that there is not.
    let text = std::fs::read_to_string(&unit).unwrap();
    let wrong = file("linerate-watch-wrong.service", &text.replace("Restart=always", "Restart=sometimes"));
    assert!(!complaints(&wrong).is_empty());
    run("systemd-sysusers", &["--dry-run", &sysusers]);
    // 10 is no protection; without root, capabilities and the other programs' files it is 2 or less.
    let exposed = run("systemd-analyze", &["security", "--offline=true", "--threshold=25", &unit]);
    assert!(exposed.contains("Overall exposure level"), "{exposed}");
}
