//! An alarm from the fault to its end: suspected, measured against a control pair, delivered to a webhook,
//! by mail and to a command with the setting that changed, shown to a real Prometheus and on the page,
//! closed when the fault is gone, and kept in the history. A target that hangs holds up none of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_model::units;
use linerate_testkit::prometheus::PrometheusServer;
use linerate_testkit::{TestPrograms, has, run, wait_until};
use serde_json::Value;

use super::{Watch, is_of_node_2};

/// A webhook that accepts everything; what was posted comes out.
fn webhook() -> (SocketAddr, Receiver<Value>) {
    fn one(stream: TcpStream, posted: &Sender<Value>) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            let header = line.trim().to_ascii_lowercase();
            if let Some(text) = header.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        reader.into_inner().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        let _ = posted.send(serde_json::from_slice(&body).unwrap());
        Ok(())
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (to_test, posted) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = one(stream, &to_test);
        }
    });
    (address, posted)
}

/// The next posted alert for which this is true; the watch ends by itself, and posts no more.
fn until(posted: &Receiver<Value>, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let alerts = posted.recv_timeout(std::time::Duration::from_secs(900)).expect("no such alert");
        if let Some(alert) = alerts.as_array().unwrap().iter().find(|alert| wanted(alert)) {
            return alert.clone();
        }
    }
}

/// A sendmail that puts its arguments and the mail into files of a folder.
fn sendmail(folder: &Path) -> PathBuf {
    let program = folder.join("sendmail");
    fs::write(
        &program,
        format!("#!/bin/sh\nm=$(mktemp {}/mail.XXXXXX)\n(echo \"$@\"; cat) > \"$m\"\n", folder.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Whether one of the mails has all these parts.
fn is_mailed(folder: &Path, parts: &[&str]) -> bool {
    let mails = fs::read_dir(folder).unwrap().flatten();
    let texts = mails.filter(|mail| mail.file_name().to_string_lossy().starts_with("mail."));
    texts
        .filter_map(|mail| fs::read_to_string(mail.path()).ok())
        .any(|text| parts.iter().all(|part| text.contains(part)))
}

/// A free port of loopback.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A Prometheus that scrapes an address each second.
fn prometheus(folder: &Path, scraped: u16) -> PrometheusServer {
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n  - job_name: linerate\n    static_configs:\n      \
         - targets: ['127.0.0.1:{scraped}']\n"
    );
    PrometheusServer::start(folder, &config, &[])
}

/// What is at an address; empty while there is no answer.
fn get(server: &str, target: &str) -> String {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(server)?;
        write!(stream, "GET {target} HTTP/1.0\r\nHost: {server}\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().unwrap_or_default();
    answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())
}

/// What a query gives; null while there is no answer.
fn query(prometheus: SocketAddr, query: &str) -> Value {
    let body = get(&prometheus.to_string(), &format!("/api/v1/query?query={query}"));
    serde_json::from_str::<Value>(&body).map_or(Value::Null, |answer| answer["data"]["result"].clone())
}

/// The page of the watch has an alarm in two clicks: its direction, its measurement, what changed before.
fn check_page(page: &str, id: &Value) {
    // An alarm is known by its watch and its number in it.
    let end = format!("-{id}");
    let link = |text: &str| {
        let mut ids = text.split("href=\"/alarm?id=").skip(1).filter_map(|rest| rest.split('"').next());
        ids.find(|of| of.ends_with(&end)).map(|of| format!("/alarm?id={of}"))
    };
    wait_until("the alarm on the first page", || link(&get(page, "/")).is_some());
    let address = link(&get(page, "/")).unwrap();
    wait_until("its measurement", || get(page, &address).contains("datagrams"));
    let alarm = get(page, &address);
    for part in ["node-2", "receives", "<dt>Since</dt>", "firewall.", "linerate survey -i ", "linerate drops"]
    {
        assert!(alarm.contains(part), "{part} is not in {alarm}");
    }
}

/// The inventory of the lab with targets: a webhook that hangs is the first.
fn with_targets(lab: &Lab, folder: &Path, webhook: SocketAddr, hangs: SocketAddr) -> PathBuf {
    let cluster = fs::read_to_string(lab.cluster.inventory_path()).unwrap();
    let text = format!(
        "{cluster}\n[[notify]]\nwebhook = \"http://{hangs}/\"\n\n[[notify]]\nwebhook = \"http://{webhook}/api/v2/alerts\"\n\n\
         [[notify]]\nmail = [\"ops@example.org\"]\nsendmail = \"{}\"\n\n\
         [[notify]]\ncommand = [\"tee\", \"-a\", \"{}\"]\n",
        sendmail(folder).display(),
        folder.join("command").display()
    );
    let path = folder.join("targets.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Now, as alerts have it.
fn now() -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    units::date(now.as_millis() as u64).replace(" UTC", "Z").replace(' ', "T")
}

/// Whether an alert has all that it has to.
fn check(firing: &Value) {
    let annotation = |name: &str| firing["annotations"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(firing["labels"]["alertname"], "LinerateLoss", "{firing:#}");
    let is_measured = |verdict| annotation("measured").starts_with(verdict);
    assert!(is_measured("confirmed: ") || is_measured("not measured: "), "{firing:#}");
    assert!(annotation("changes").contains("node-2 firewall."), "{firing:#}");
    assert!(annotation("command").starts_with("linerate survey -i "), "{firing:#}");
    assert!(firing["endsAt"].as_str().unwrap() > &*now(), "{firing:#}");
}

/// What node-2 lost of what it receives is in the history.
fn check_history(programs: &TestPrograms, data: &Path) {
    let history = Command::new(&programs.linerate)
        .args(["history", "node-2", "--json"])
        .env("LINERATE_DATA", data)
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&history.stdout).unwrap();
    let received = shown["watched"]
        .as_array()
        .unwrap()
        .iter()
        .find(|series| series["metric"] == "loss" && series["direction"] == "rx");
    let points = received.unwrap()["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["measured"]["max"].as_f64() > Some(0.0)), "{points:#?}");
}

#[test]
fn an_alarm_is_measured_delivered_and_closed() {
    let test = "an_alarm_is_measured_delivered_and_closed";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    let mut lab = Lab::up(Topology::load("three").unwrap()).unwrap();
    let folder = lab.folder.path().to_owned();
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, posted) = webhook();
    let inventory = with_targets(&lab, &folder, address, hangs.local_addr().unwrap());
    let scraped = port();
    let (data, metrics) = (folder.join("data"), format!("127.0.0.1:{scraped}"));
    let textfile = folder.join("textfile");
    fs::create_dir(&textfile).unwrap();
    let page = format!("127.0.0.1:{}", port());
    let more = ["--metrics", &metrics, "--textfile", textfile.to_str().unwrap(), "--page", &page];
    let mut watch = Watch::begin(&programs, &data, &inventory, &more);
    for _ in 0..lab.cluster.hosts.len() {
        watch.until(|event| event["event"] == "watched");
    }

    lab.inject(faults::find("firewall-drops").unwrap(), Some("node-2"), 1).unwrap();
    let measured = watch.until(|event| event["event"] == "measured" && is_of_node_2(event));
    // On a busy machine a flow may be invalid.
    let verdict = measured["decided"]["verdict"].as_str();
    assert!(matches!(verdict, Some("confirmed" | "not-measured")), "{measured:#}");
    let firing = until(&posted, |alert| {
        let labels = &alert["labels"];
        labels["host"] == "node-2" || labels["to"] == "node-2"
    });
    check(&firing);
    if verdict == Some("confirmed") && measured["alarm"]["suspect"]["host"] == "node-2" {
        check_page(&page, &measured["alarm"]["id"]);
    }
    wait_until("the mail", || is_mailed(&folder, &["-i -- ops@example.org\n", "alarm: ", "Measured: "]));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    wait_until("the command", || read("command").contains("LinerateLoss"));
    wait_until("the file", || {
        read("textfile/linerate.prom").contains("linerate_host_watched{host=\"node-2\"} 1")
    });
    if has(test, "prometheus", "prometheus") {
        let prometheus = prometheus(&folder, scraped);
        let server = prometheus.address;
        wait_until("a scrape", || query(server, "linerate_host_watched")[2].is_object());
        let active = query(server, "linerate_alarm_active");
        assert!(active.to_string().contains("node-2"), "{active:#}");
    }

    lab.heal().unwrap();
    let id = &measured["alarm"]["id"];
    watch.until(|event| event["event"] == "closed" && event["alarm"]["id"] == *id);
    let over = |alert: &Value| {
        alert["labels"]["alertname"] == "LinerateLoss" && alert["endsAt"].as_str().unwrap() <= &*now()
    };
    wait_until("its end on the page", || get(&page, "/alarms").contains("over after"));
    let resolved = until(&posted, over);
    assert!(resolved["endsAt"].as_str() > resolved["startsAt"].as_str(), "{resolved:#}");
    wait_until("the mail of its end", || is_mailed(&folder, &["resolved: ", "until 2"]));

    // Ctrl-C: the current minute is in the history, and the file of metrics is gone.
    run("kill", &["-INT", &watch.child.id().to_string()]);
    watch.child.wait().unwrap();
    assert!(!textfile.join("linerate.prom").exists());
    check_history(&programs, &data);
}
