//! What happens to a watch in its life: intermittent faults, settings changed by hand, and node programs,
//! operators and databases that are killed. Each is reported, and over when it is over; what else was
//! reported is printed, with the minutes that the history has. Once each in the suite; for as long as
//! `LINERATE_LAB_TIME` has seconds otherwise, with all faults and a rest between them
//! (`cargo xtask lab watch`).

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use linerate_lab::faults;
use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_model::suspect::{Direction, Suspect};
use linerate_testkit::postgres::PostgresServer;
use linerate_testkit::{TestPrograms, processes_in, run, wait_until};
use serde_json::Value;

use super::Running;

/// Far above what anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Rest after each trouble when there is time.
const REST: Duration = Duration::from_secs(25);
/// The setting that is changed by hand. It harms no probe.
const SYSCTL: &str = "net.ipv4.tcp_sack";

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Fault(&'static str),
    SettingByHand,
    KilledNode,
    /// The node program of a hypervisor, which has no address to probe.
    KilledFollowed,
    KilledOperator,
    KilledDatabase,
}

/// All of them, and the first of the faults alone.
const ONCE: [Trouble; 6] = [
    Trouble::Fault("firewall-drops"),
    Trouble::SettingByHand,
    Trouble::KilledNode,
    Trouble::KilledFollowed,
    Trouble::KilledDatabase,
    Trouble::KilledOperator,
];

/// The same with all faults that lose probes.
const ALL: [Trouble; 12] = [
    Trouble::Fault("firewall-drops"),
    Trouble::SettingByHand,
    Trouble::Fault("loss-tx"),
    Trouble::KilledNode,
    Trouble::Fault("loss-rx"),
    Trouble::Fault("filter-drops"),
    Trouble::KilledDatabase,
    Trouble::Fault("xdp-drops"),
    Trouble::KilledFollowed,
    Trouble::KilledOperator,
    Trouble::Fault("damaged-frames"),
    Trouble::Fault("host-link-flap"),
];

/// A row of the table.
struct Row {
    at_s: u64,
    what: String,
    reported: String,
    after_s: f64,
    over_s: Option<f64>,
}

/// The lab, the watch over it, and what it has reported so far.
struct Story {
    programs: TestPrograms,
    lab: Lab,
    database: PostgresServer,
    store: String,
    data: PathBuf,
    watch: Running,
    events: Receiver<Value>,
    begun: Instant,
    rows: Vec<Row>,
    /// Alarms that no fault explains, or that name something else.
    others: Vec<String>,
    gaps: usize,
    seed: u64,
}

/// Begins the watch; its events come out.
fn watch(programs: &TestPrograms, lab: &Lab, store: &str, data: &PathBuf) -> (Child, Receiver<Value>) {
    let mut child = Command::new(&programs.linerate)
        .args(["watch", "--json", "--for", "6h", "-i"])
        .arg(lab.cluster.inventory_path())
        .env("LINERATE_DATA", data)
        .env("LINERATE_STORE", store)
        .env("LINERATE_NODE", &programs.node)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, events) = channel();
    std::thread::spawn(move || {
        for line in lines {
            let _ = sender.send(serde_json::from_str(&line).unwrap());
        }
    });
    (child, events)
}

/// Suspect and direction of an alarm, and its number.
fn named(event: &Value) -> (Suspect, Direction, u64) {
    let alarm = &event["alarm"];
    let of = |field: &str| alarm[field].clone();
    (
        serde_json::from_value(of("suspect")).unwrap(),
        serde_json::from_value(of("direction")).unwrap_or_default(),
        alarm["id"].as_u64().unwrap(),
    )
}

impl Story {
    fn begin(programs: TestPrograms, database: PostgresServer) -> Self {
        let lab = Lab::up(Topology::load("twelve").unwrap()).unwrap();
        let store = database.database("watch");
        let data = lab.folder.path().join("data");
        let (child, events) = watch(&programs, &lab, &store, &data);
        let (rows, others) = (Vec::new(), Vec::new());
        let (begun, watch) = (Instant::now(), Running(child));
        let mut story = Self {
            programs,
            lab,
            database,
            store,
            data,
            watch,
            events,
            begun,
            rows,
            others,
            gaps: 0,
            seed: 1,
        };
        story.all_watched();
        story
    }

    fn hosts(&self) -> usize {
        self.lab.cluster.hosts.len()
    }

    /// A host in turn.
    fn host(&self) -> String {
        self.lab.cluster.hosts[self.seed as usize % self.hosts()].0.name.clone()
    }

    /// The next event that is wanted. Alarms before it are kept as reported beside it.
    fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        let mut reported = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left);
            let event = event.unwrap_or_else(|_| panic!("{what}: never reported, but {reported:#?}"));
            if wanted(&event) {
                return event;
            }
            self.other(&event);
            reported.push(event.to_string());
        }
    }

    fn other(&mut self, event: &Value) {
        self.gaps += usize::from(event["event"] == "gap");
        if event["event"] == "opened" || event["event"] == "slowed" {
            let during = self.lab.injected().iter().map(|one| one.fault.about().name).collect::<Vec<_>>();
            let at_s = self.begun.elapsed().as_secs();
            self.others.push(format!("{at_s} s, during {during:?}: {}", event["alarm"]));
        }
    }

    fn all_watched(&mut self) {
        for _ in 0..self.hosts() {
            self.until("all hosts are watched", |event| event["event"] == "watched");
        }
    }

    fn rest(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(event) = self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.other(&event);
        }
    }

    fn happens(&mut self, trouble: Trouble) {
        let (at_s, begun) = (self.begun.elapsed().as_secs(), Instant::now());
        let (what, reported, after_s, over_s) = match trouble {
            Trouble::Fault(name) => self.fault(name),
            Trouble::SettingByHand => self.setting(),
            Trouble::KilledNode => {
                let hosts = &self.lab.cluster.hosts;
                self.node(hosts[self.seed as usize % hosts.len()].1.inode().unwrap())
            }
            Trouble::KilledFollowed => {
                let inode = self.lab.cluster.switches().next().unwrap().inode().unwrap();
                self.node(inode)
            }
            Trouble::KilledOperator => self.operator(),
            Trouble::KilledDatabase => self.database(),
        };
        println!(
            "{at_s} s: {what}: {reported} after {after_s:.0} s, {:.0} s in all",
            begun.elapsed().as_secs_f64()
        );
        self.rows.push(Row { at_s, what, reported, after_s, over_s });
        self.seed += 1;
    }

    fn fault(&mut self, name: &str) -> (String, String, f64, Option<f64>) {
        let injected = self.lab.inject(faults::find(name).unwrap(), None, self.seed).unwrap();
        let (truth, what) = (injected.truth.clone(), format!("{name} at {}", injected.target));
        let begun = Instant::now();
        // A pair may be reported before its host; then the alarm is widened.
        let is_right = |event: &Value| {
            (event["event"] == "opened" || event["event"] == "widened") && {
                let (suspect, direction, _) = named(event);
                // Where a machine is too busy to send probes for seconds, others lose some too.
                let is_wider = matches!(suspect, Suspect::Group(_) | Suspect::All);
                truth.accepts(&suspect, direction) || is_wider
            }
        };
        let opened = self.until(&what, is_right);
        let after_s = begun.elapsed().as_secs_f64();
        let id = named(&opened).2;
        let is_of = |event: &Value, kind: &str| event["event"] == kind && event["alarm"]["id"] == id;
        let measured = self.until("its measurement", |event| is_of(event, "measured"));
        let quoted = if measured["changes"].as_array().is_some_and(|all| !all.is_empty()) {
            ", with a change"
        } else {
            ""
        };
        let alarm = &measured["alarm"];
        let verdict = measured["decided"]["verdict"].as_str().unwrap();
        let reported = format!("{} {}, {verdict}{quoted}", alarm["suspect"], alarm["direction"]);
        if name == "firewall-drops" {
            assert!(measured["changes"].to_string().contains("firewall."), "{measured:#}");
        }
        self.lab.heal().unwrap();
        let healed = Instant::now();
        self.until("its end", |event| is_of(event, "closed"));
        (what, reported, after_s, Some(healed.elapsed().as_secs_f64()))
    }

    /// Changes the setting of a host; gives how soon it was reported.
    fn change(&mut self, value: &str) -> f64 {
        let host = self.host();
        self.lab.cluster.host(&host).unwrap().1.write_sysctl(SYSCTL, value).unwrap();
        let begun = Instant::now();
        self.until("the change", |event| {
            event["event"] == "changed" && event["host"] == *host && event.to_string().contains(SYSCTL)
        });
        begun.elapsed().as_secs_f64()
    }

    fn setting(&mut self) -> (String, String, f64, Option<f64>) {
        let after_s = self.change("0");
        let over_s = self.change("1");
        (format!("{SYSCTL} of {} changed", self.host()), "the change".to_owned(), after_s, Some(over_s))
    }

    /// Kills the node program in a namespace.
    fn node(&mut self, inode: u64) -> (String, String, f64, Option<f64>) {
        let there = processes_in(inode);
        let nodes = linerate_testkit::children(self.watch.0.id());
        let node = nodes.iter().find(|pid| there.contains(pid)).unwrap();
        run("kill", &["-9", &node.to_string()]);
        let begun = Instant::now();
        let gap = self.until("the gap", |event| event["event"] == "gap");
        let after_s = begun.elapsed().as_secs_f64();
        let back = self.until("its end", |event| event["event"] == "watched" && event["host"] == gap["host"]);
        assert!(back["gap_ms"].as_u64().is_some(), "{back:#}");
        let what = format!("node program of {} killed", gap["host"]);
        (what, "a gap".to_owned(), after_s, Some(begun.elapsed().as_secs_f64()))
    }

    fn operator(&mut self) -> (String, String, f64, Option<f64>) {
        run("kill", &["-9", &self.watch.0.id().to_string()]);
        self.watch.0.wait().unwrap();
        for (plan, netns) in &self.lab.cluster.hosts {
            let inode = netns.inode().unwrap();
            wait_until(&format!("nothing of the watch on {}", plan.name), || processes_in(inode).is_empty());
        }
        let begun = Instant::now();
        let (child, events) = watch(&self.programs, &self.lab, &self.store, &self.data);
        (self.watch, self.events) = (Running(child), events);
        self.all_watched();
        let after_s = begun.elapsed().as_secs_f64();
        ("operator killed and begun again".to_owned(), "all hosts watched".to_owned(), after_s, None)
    }

    /// The watch lives without its database, and writes again when there is one.
    fn database(&mut self) -> (String, String, f64, Option<f64>) {
        self.database.stop();
        let after_s = self.change("0");
        self.change("1");
        self.database.run();
        let (begun, since_ms) = (Instant::now(), now_ms());
        let host = self.host();
        wait_until("a minute in the history again", || {
            self.minutes(&host).iter().any(|at_ms| *at_ms + 60_000 > since_ms)
        });
        wait_until("the changes meanwhile in the log", || {
            self.linerate(&["changes", "--json", &host]).matches(SYSCTL).count() >= 2
        });
        let over_s = begun.elapsed().as_secs_f64();
        ("database killed".to_owned(), "changes, meanwhile".to_owned(), after_s, Some(over_s))
    }

    /// What the program prints about what is stored.
    fn linerate(&self, words: &[&str]) -> String {
        let output = Command::new(&self.programs.linerate)
            .args(words)
            .env("LINERATE_DATA", &self.data)
            .env("LINERATE_STORE", &self.store)
            .output()
            .unwrap();
        linerate_testkit::text(&output.stdout)
    }

    /// The minutes of a host in the history, Unix milliseconds of their begin.
    fn minutes(&self, host: &str) -> Vec<u64> {
        let shown: Value =
            serde_json::from_str(&self.linerate(&["history", host, "--json"])).unwrap_or_default();
        let all = shown["watched"].as_array().cloned().unwrap_or_default();
        let received = all.iter().find(|one| one["metric"] == "loss" && one["direction"] == "rx");
        let points = received.and_then(|one| one["points"].as_array()).cloned().unwrap_or_default();
        let measured = points.iter().filter(|point| point["measured"].is_object());
        measured.filter_map(|point| point["start_ms"].as_u64()).collect()
    }

    fn print(&self) {
        println!(
            "\n| at | what happened | reported | after | over after |\n| ---: | --- | --- | ---: | ---: |"
        );
        for Row { at_s, what, reported, after_s, over_s } in &self.rows {
            let over = over_s.map_or(String::new(), |over_s| format!("{over_s:.0} s"));
            println!("| {}:{:02} | {what} | {reported} | {after_s:.0} s | {over} |", at_s / 60, at_s % 60);
        }
        let minutes = self.begun.elapsed().as_secs() / 60;
        let had: Vec<usize> =
            self.lab.cluster.hosts.iter().map(|(plan, _)| self.minutes(&plan.name).len()).collect();
        println!("{minutes} minutes; in the history of the hosts: {had:?}; {} other gaps", self.gaps);
        println!("{} other alarms: {:#?}", self.others.len(), self.others);
    }
}

/// Now, Unix milliseconds.
fn now_ms() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64
}

#[test]
fn what_happens_is_reported_and_over() {
    let test = "what_happens_is_reported_and_over";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    let Some(database) = PostgresServer::start(test) else { return };
    let time = std::env::var("LINERATE_LAB_TIME").ok().and_then(|text| text.parse().ok());
    let mut story = Story::begin(programs, database);
    match time.map(Duration::from_secs) {
        None => ONCE.into_iter().for_each(|trouble| story.happens(trouble)),
        Some(time) => {
            for trouble in ALL.into_iter().cycle() {
                if story.begun.elapsed() >= time {
                    break;
                }
                story.happens(trouble);
                story.rest(REST);
            }
        }
    }
    story.print();
}
