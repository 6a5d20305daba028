//! What is fuzzed: the list. To add a target: a function from input to answer, some seeds, one line in
//! [`TARGETS`].
//!
//! A target is pure: the same input gives the same answer. The answer is whatever tells one behaviour from
//! another: the words of an error, the list of events.

use std::fmt::Write as _;

use linerate_import::{Document, ImportOptions};
use linerate_inventory::reader::SourceText;
use linerate_inventory::readers::understand;
use linerate_inventory::write;
use linerate_iperf3::client::Client;
use linerate_iperf3::parameters::{Parameters, VERSION};
use linerate_iperf3::protocol::cookie;
use linerate_iperf3::results::{Results, StreamResult, stream_ids};
use linerate_iperf3::server::Iperf3Server;
use linerate_iperf3::{client, flags, server};
use linerate_knowledge::Knowledge;
use linerate_wire::message::{
    Event, Hello, ObserveRequest, PROTOCOL, Request, SessionRequest, Setup, TrialRequest,
};
use linerate_wire::sealed::{Caller, Key, Sealed, SealedHandshake};
use linerate_wire::session::{NodeSession, OperatorSession};

/// One thing that takes bytes of strangers.
pub(super) struct Target {
    /// Name on the command line.
    pub(super) name: &'static str,
    /// Inputs to begin with.
    pub(super) seeds: fn() -> Vec<Vec<u8>>,
    /// Runs one input; what it answers.
    pub(super) run: fn(&[u8]) -> String,
}

/// All targets.
pub(super) static TARGETS: &[Target] = &[
    Target { name: "iperf3-server", seeds: server_seeds, run: iperf3_server },
    Target { name: "iperf3-client", seeds: client_seeds, run: iperf3_client },
    Target { name: "iperf3-parameters", seeds: parameter_seeds, run: iperf3_parameters },
    Target { name: "iperf3-results", seeds: result_seeds, run: iperf3_results },
    Target { name: "iperf3-flags", seeds: flag_seeds, run: iperf3_flags },
    Target { name: "wire-node", seeds: node_seeds, run: wire_node },
    Target { name: "wire-operator", seeds: operator_seeds, run: wire_operator },
    Target { name: "wire-listener", seeds: listener_seeds, run: wire_listener },
    Target { name: "wire-sealed", seeds: sealed_seeds, run: wire_sealed },
    Target { name: "knowledge", seeds: knowledge_seeds, run: knowledge },
    Target {
        name: "inventory-kubernetes",
        seeds: inventory_seeds,
        run: |input| inventory("kubernetes", input),
    },
    Target { name: "inventory-docker", seeds: inventory_seeds, run: |input| inventory("docker", input) },
    Target { name: "inventory-slurm", seeds: inventory_seeds, run: |input| inventory("slurm", input) },
    Target { name: "inventory-toml", seeds: inventory_seeds, run: |input| inventory("toml", input) },
    Target { name: "inventory-drbd", seeds: inventory_seeds, run: |input| inventory("drbd", input) },
    Target {
        name: "inventory-ssh-config",
        seeds: inventory_seeds,
        run: |input| inventory("ssh-config", input),
    },
    Target { name: "inventory-ansible", seeds: inventory_seeds, run: |input| inventory("ansible", input) },
    Target {
        name: "inventory-ansible-yaml",
        seeds: inventory_seeds,
        run: |input| inventory("ansible-yaml", input),
    },
    Target {
        name: "inventory-etc-hosts",
        seeds: inventory_seeds,
        run: |input| inventory("etc-hosts", input),
    },
    Target { name: "inventory-hosts", seeds: inventory_seeds, run: |input| inventory("hosts", input) },
    Target { name: "import", seeds: import_seeds, run: |input| import("", input) },
    Target { name: "import-iperf3-json", seeds: import_seeds, run: |input| import("iperf3-json", input) },
    Target { name: "import-fio-json", seeds: import_seeds, run: |input| import("fio-json", input) },
    Target { name: "import-ip-json", seeds: import_seeds, run: |input| import("ip-json", input) },
    Target { name: "import-iperf3", seeds: import_seeds, run: |input| import("iperf3", input) },
    Target { name: "import-iperf2", seeds: import_seeds, run: |input| import("iperf2", input) },
    Target { name: "import-iperf2-csv", seeds: import_seeds, run: |input| import("iperf2-csv", input) },
    Target { name: "import-nuttcp", seeds: import_seeds, run: |input| import("nuttcp", input) },
    Target { name: "import-netperf", seeds: import_seeds, run: |input| import("netperf", input) },
    Target { name: "import-ping", seeds: import_seeds, run: |input| import("ping", input) },
    Target { name: "import-ss", seeds: import_seeds, run: |input| import("ss", input) },
    Target { name: "import-ethtool", seeds: import_seeds, run: |input| import("ethtool", input) },
    Target { name: "import-ethtool-g", seeds: import_seeds, run: |input| import("ethtool-g", input) },
    Target { name: "import-ethtool-c", seeds: import_seeds, run: |input| import("ethtool-c", input) },
    Target { name: "import-ethtool-l", seeds: import_seeds, run: |input| import("ethtool-l", input) },
    Target { name: "import-ethtool-i", seeds: import_seeds, run: |input| import("ethtool-i", input) },
    Target { name: "import-ethtool-a", seeds: import_seeds, run: |input| import("ethtool-a", input) },
    Target { name: "import-ethtool-eee", seeds: import_seeds, run: |input| import("ethtool-eee", input) },
    Target { name: "import-megaraid", seeds: import_seeds, run: |input| import("megaraid", input) },
    Target { name: "import-bonding", seeds: import_seeds, run: |input| import("bonding", input) },
    Target { name: "import-smartctl", seeds: import_seeds, run: |input| import("smartctl", input) },
    Target {
        name: "import-nvme-smart-log",
        seeds: import_seeds,
        run: |input| import("nvme-smart-log", input),
    },
    Target { name: "import-mountstats", seeds: import_seeds, run: |input| import("mountstats", input) },
    Target { name: "import-nfsstat", seeds: import_seeds, run: |input| import("nfsstat", input) },
    Target { name: "import-hdparm", seeds: import_seeds, run: |input| import("hdparm", input) },
    Target { name: "import-nvme-list", seeds: import_seeds, run: |input| import("nvme-list", input) },
    Target { name: "import-storcli", seeds: import_seeds, run: |input| import("storcli", input) },
    Target { name: "import-ss-u", seeds: import_seeds, run: |input| import("ss-u", input) },
    Target { name: "import-cpupower", seeds: import_seeds, run: |input| import("cpupower", input) },
    Target { name: "import-governor", seeds: import_seeds, run: |input| import("governor", input) },
    Target { name: "import-arping", seeds: import_seeds, run: |input| import("arping", input) },
    Target { name: "import-ip-neigh", seeds: import_seeds, run: |input| import("ip-neigh", input) },
    Target { name: "import-mount", seeds: import_seeds, run: |input| import("mount", input) },
    Target { name: "import-lsusb", seeds: import_seeds, run: |input| import("lsusb", input) },
    Target { name: "import-iw", seeds: import_seeds, run: |input| import("iw", input) },
    Target { name: "import-too-long", seeds: import_seeds, run: |input| import("too-long", input) },
    Target { name: "import-dmsetup", seeds: import_seeds, run: |input| import("dmsetup", input) },
    Target { name: "import-zpool", seeds: import_seeds, run: |input| import("zpool", input) },
    Target { name: "import-mdstat", seeds: import_seeds, run: |input| import("mdstat", input) },
    Target { name: "import-counted-rules", seeds: import_seeds, run: |input| import("counted-rules", input) },
    Target { name: "import-sentences", seeds: import_seeds, run: |input| import("sentences", input) },
    Target { name: "import-cgroup-cpu", seeds: import_seeds, run: |input| import("cgroup-cpu", input) },
    Target { name: "import-ethtool-k", seeds: import_seeds, run: |input| import("ethtool-k", input) },
    Target { name: "import-ethtool-S", seeds: import_seeds, run: |input| import("ethtool-S", input) },
    Target { name: "import-ip", seeds: import_seeds, run: |input| import("ip", input) },
    Target { name: "import-sysctl", seeds: import_seeds, run: |input| import("sysctl", input) },
    Target { name: "import-softnet_stat", seeds: import_seeds, run: |input| import("softnet_stat", input) },
    Target { name: "import-interrupts", seeds: import_seeds, run: |input| import("interrupts", input) },
    Target { name: "import-iostat", seeds: import_seeds, run: |input| import("iostat", input) },
    Target { name: "import-diskstats", seeds: import_seeds, run: |input| import("diskstats", input) },
    Target { name: "import-tiotest", seeds: import_seeds, run: |input| import("tiotest", input) },
    Target { name: "import-drbd", seeds: import_seeds, run: |input| import("drbd", input) },
    Target { name: "import-drbd-show", seeds: import_seeds, run: |input| import("drbd-show", input) },
    Target { name: "import-gluster-log", seeds: import_seeds, run: |input| import("gluster-log", input) },
    Target { name: "import-audit-json", seeds: import_seeds, run: |input| import("audit-json", input) },
    Target { name: "import-hosts", seeds: import_seeds, run: |input| import("hosts", input) },
    Target { name: "import-hostname", seeds: import_seeds, run: |input| import("hostname", input) },
    Target { name: "import-table", seeds: import_seeds, run: |input| import("table", input) },
    Target {
        name: "import-docker-network",
        seeds: import_seeds,
        run: |input| import("docker-network", input),
    },
    Target { name: "import-ss-s", seeds: import_seeds, run: |input| import("ss-s", input) },
    Target { name: "import-sysfs", seeds: import_seeds, run: |input| import("sysfs", input) },
    Target { name: "import-mpstat", seeds: import_seeds, run: |input| import("mpstat", input) },
    Target { name: "import-sar", seeds: import_seeds, run: |input| import("sar", input) },
    Target { name: "import-fio", seeds: import_seeds, run: |input| import("fio", input) },
    Target { name: "import-dd", seeds: import_seeds, run: |input| import("dd", input) },
    Target { name: "import-tc-qdisc", seeds: import_seeds, run: |input| import("tc-qdisc", input) },
    Target { name: "import-download", seeds: import_seeds, run: |input| import("download", input) },
    Target { name: "import-lspci", seeds: import_seeds, run: |input| import("lspci", input) },
    Target { name: "import-modinfo", seeds: import_seeds, run: |input| import("modinfo", input) },
    Target { name: "import-numactl", seeds: import_seeds, run: |input| import("numactl", input) },
    Target { name: "import-netstat-s", seeds: import_seeds, run: |input| import("netstat-s", input) },
    Target { name: "import-nstat", seeds: import_seeds, run: |input| import("nstat", input) },
    Target { name: "import-proc-net", seeds: import_seeds, run: |input| import("proc-net", input) },
    Target { name: "import-netstat-i", seeds: import_seeds, run: |input| import("netstat-i", input) },
    Target { name: "import-firewall", seeds: import_seeds, run: |input| import("firewall", input) },
    Target { name: "import-tcpretrans", seeds: import_seeds, run: |input| import("tcpretrans", input) },
    Target { name: "import-ssacli", seeds: import_seeds, run: |input| import("ssacli", input) },
    Target { name: "import-conntrack", seeds: import_seeds, run: |input| import("conntrack", input) },
    Target { name: "import-btrfs", seeds: import_seeds, run: |input| import("btrfs", input) },
    Target { name: "import-request-times", seeds: import_seeds, run: |input| import("request-times", input) },
    Target { name: "import-stated-rates", seeds: import_seeds, run: |input| import("stated-rates", input) },
    Target {
        name: "import-stated-settings",
        seeds: import_seeds,
        run: |input| import("stated-settings", input),
    },
    Target { name: "import-stated-models", seeds: import_seeds, run: |input| import("stated-models", input) },
    Target { name: "import-omreport", seeds: import_seeds, run: |input| import("omreport", input) },
    Target { name: "import-netstat-u", seeds: import_seeds, run: |input| import("netstat-u", input) },
    Target { name: "import-hdparm-i", seeds: import_seeds, run: |input| import("hdparm-I", input) },
    Target { name: "import-lvm", seeds: import_seeds, run: |input| import("lvm", input) },
    Target { name: "import-slurm-nodes", seeds: import_seeds, run: |input| import("slurm-nodes", input) },
    Target { name: "import-nccl-tests", seeds: import_seeds, run: |input| import("nccl-tests", input) },
    Target { name: "import-kernel-log", seeds: import_seeds, run: |input| import("kernel-log", input) },
    Target { name: "import-drop-table", seeds: import_seeds, run: |input| import("drop-table", input) },
    Target { name: "import-arrows", seeds: import_seeds, run: |input| import("arrows", input) },
    Target { name: "import-groups", seeds: import_seeds, run: |input| import("groups", input) },
];

fn parameters() -> Vec<u8> {
    let wanted =
        Parameters { time_s: 1, parallel: 2, client_version: VERSION.to_owned(), ..Parameters::default() };
    wanted.to_json()
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn results() -> Results {
    let streams =
        stream_ids(2).into_iter().map(|id| StreamResult { id, bytes: 5, ..StreamResult::default() });
    Results { sender_has_retransmits: -1, streams: streams.collect(), ..Results::default() }
}

fn parameter_seeds() -> Vec<Vec<u8>> {
    let udp = br#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":1448,"bandwidth":1048576,
        "pacing_timer":1000,"client_version":"3.21","udp_counters_64bit":1,"gso":1,"authtoken":"QUJD","MSS":9,"window":5,"TOS":3}"#;
    vec![parameters(), udp.to_vec()]
}

fn iperf3_parameters(input: &[u8]) -> String {
    match Parameters::from_json(input) {
        Ok((read, unfit)) => {
            // What was read is written and read again the same.
            let (again, _) = Parameters::from_json(&read.to_json()).expect("our own message can be read");
            assert_eq!(again.parallel, read.parallel);
            format!("{:?} {:?} {unfit:?}", read.protocol, read.direction)
        }
        Err(error) => error.to_string(),
    }
}

fn result_seeds() -> Vec<Vec<u8>> {
    let old = br#"{"cpu_util_total":2.5,"cpu_util_user":1,"cpu_util_system":1.5,"sender_has_retransmits":18446744073709551615,
        "streams":[{"id":1,"bytes":7,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0}],"server_output_json":{}}"#;
    vec![results().to_json(), old.to_vec()]
}

fn iperf3_results(input: &[u8]) -> String {
    match Results::from_json(input) {
        Ok(read) => {
            assert!(read.streams.len() <= 256);
            let again = Results::from_json(&read.to_json()).expect("our own message can be read");
            assert_eq!(again.streams.len(), read.streams.len());
            format!("{} streams, output {}", read.streams.len().min(3), read.server_output.is_some())
        }
        Err(error) => error.to_string(),
    }
}

fn server_seeds() -> Vec<Vec<u8>> {
    let whole = [&cookie(&[3; 36])[..], &framed(&parameters()), &[4], &framed(&results().to_json()), &[16]];
    vec![whole.concat(), [&cookie(&[3; 36])[..], &[12]].concat()]
}

/// The first byte says into how many pieces the rest is cut.
fn pieces(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.chunks(usize::from(input.first().copied().unwrap_or(0) % 7) * 11 + 1)
}

fn iperf3_server(input: &[u8]) -> String {
    let mut machine = Iperf3Server::default();
    let mut answer = String::new();
    for piece in pieces(input) {
        machine.received(piece);
        while let Some(event) = machine.poll_event() {
            let name = match event {
                server::ServerAction::Parameters { unfit: Some(unfit), .. } => {
                    machine.refuse(114, 0);
                    unfit.to_string()
                }
                server::ServerAction::Parameters { .. } => {
                    machine.accept();
                    machine.run();
                    "parameters".to_owned()
                }
                server::ServerAction::End => {
                    machine.stopped();
                    "end".to_owned()
                }
                server::ServerAction::Results(_) => {
                    machine.results(&results());
                    "results".to_owned()
                }
                server::ServerAction::Done => "done".to_owned(),
                server::ServerAction::Failed(failure) => failure.to_string(),
            };
            let _ = write!(answer, "{name};");
        }
    }
    machine.closed();
    assert!(machine.is_over());
    let _ = write!(answer, "{}", machine.take_output().len().min(1000));
    answer
}

fn client_seeds() -> Vec<Vec<u8>> {
    let whole = [&[9, 10, 1, 2, 13][..], &framed(&results().to_json()), &[14]].concat();
    vec![whole, vec![9, 0xfe, 0, 0, 0, 37, 0, 0, 0, 0], vec![0xff], vec![9, 10, 11]]
}

fn iperf3_client(input: &[u8]) -> String {
    let mut machine = Client::new(&cookie(&[3; 36]), parameters());
    let mut answer = String::new();
    for piece in pieces(input) {
        machine.received(piece);
        while let Some(event) = machine.poll_event() {
            let name = match event {
                client::ClientAction::OpenStreams => "open".to_owned(),
                client::ClientAction::Start => "start".to_owned(),
                client::ClientAction::Run => {
                    machine.end_test();
                    "run".to_owned()
                }
                client::ClientAction::Results => {
                    machine.results(&results());
                    "results".to_owned()
                }
                client::ClientAction::Finished(_) => {
                    machine.finish();
                    "finished".to_owned()
                }
                client::ClientAction::Failed(failure) => failure.to_string(),
            };
            let _ = write!(answer, "{name};");
        }
    }
    machine.closed();
    assert!(machine.is_over());
    answer
}

fn flag_seeds() -> Vec<Vec<u8>> {
    let lines = [
        "-c h -u -b 10M/4 -l 1400 -P 3 -R -t 2 -O 1 -w 256K -S 0x20 --dscp=af11",
        "-s -1 -p 5300 -B ::1 -J -f m",
    ];
    lines.map(|line| line.as_bytes().to_vec()).into()
}

fn iperf3_flags(input: &[u8]) -> String {
    let line = String::from_utf8_lossy(input);
    match flags::parse(line.split_whitespace().map(str::to_owned), || None) {
        Ok((order, _)) => format!("{order:?}").chars().take(5).collect(),
        Err(error) => error,
    }
}

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "0".into(),
        build: "b".into(),
        facts: vec![],
        loads: vec!["tcp".into()],
        root: true,
        wall_ms: None,
        boot_id: None,
    }
}

fn node_seeds() -> Vec<Vec<u8>> {
    let mut operator = OperatorSession::new();
    let setup =
        SessionRequest::Setup(Setup { state_dir: "/s".into(), etc_dir: "/e".into(), host: "h".into() });
    let facts = ObserveRequest::Facts { prefixes: vec![], netns: vec![] };
    operator.tick(0);
    for request in [Request::from(setup), facts.into(), SessionRequest::Bye.into()] {
        operator.request(0, request);
    }
    vec![operator.take_output()]
}

fn wire_node(input: &[u8]) -> String {
    let mut session = NodeSession::new(hello());
    let mut answer = String::new();
    for piece in pieces(input) {
        session.received(1, piece);
        while let Some(event) = session.poll_event() {
            let _ = write!(answer, "{event:?};");
        }
    }
    session.closed(2);
    session.tick(9_000);
    answer
}

fn operator_seeds() -> Vec<Vec<u8>> {
    let mut node = NodeSession::new(hello());
    node.respond(1, 1, Event::Done);
    let failed = Event::Failed { error: "e".into(), hint: "h".into(), undo_failed: false };
    node.respond(1, 2, failed);
    vec![node.take_output()]
}

fn wire_operator(input: &[u8]) -> String {
    let mut session = OperatorSession::new();
    session.request(0, TrialRequest::Journals);
    let mut answer = String::new();
    for piece in pieces(input) {
        session.received(1, piece);
        while let Some(event) = session.poll_event() {
            let _ = write!(answer, "{event:?};");
        }
    }
    session.closed(2);
    session.tick(9_000);
    answer
}

fn run_key() -> Key {
    Key::new([1; 32])
}

/// Handshakes that know the key and one that does not; what follows them in a real conversation is another
/// for each run.
fn listener_seeds() -> Vec<Vec<u8>> {
    let handshake = |key: Key| SealedHandshake::dial(&key).map(|mut g| g.take_output()).unwrap_or_default();
    let behind = [handshake(run_key()), vec![0, 40], vec![7; 40]].concat();
    vec![handshake(run_key()), handshake(Key::new([2; 32])), behind]
}

/// Bytes of a stranger into the handshake of the end that listens, and on into its first record.
fn wire_listener(input: &[u8]) -> String {
    let Ok(mut handshake) = SealedHandshake::answer(&run_key()) else { return "no handshake".to_owned() };
    let mut sealed: Option<Sealed> = None;
    for piece in pieces(input) {
        let heard = match &mut sealed {
            None => handshake.received(piece).map(|came| sealed = came),
            Some(sealed) => {
                sealed.opener.push(piece);
                // No stranger gets a record through: that would need the numbers behind a handshake.
                sealed.opener.next_record().map(|record| assert!(record.is_none(), "a forged record"))
            }
        };
        if let Err(error) = heard {
            assert!(sealed.is_some() || handshake.take_output().is_empty(), "an answer to a stranger");
            return error.to_string();
        }
    }
    format!("{}", sealed.is_some())
}

fn sealed_seeds() -> Vec<Vec<u8>> {
    vec![Caller { node: "n1".into(), pid: 7 }.record(), vec![0, 40, 1, 2, 3], vec![255; 40]]
}

/// Bytes into a stream between two that know each other, at a place that the first byte says: nothing forged
/// is heard.
fn wire_sealed(input: &[u8]) -> String {
    let pair = || {
        let (mut dials, mut answers) =
            (SealedHandshake::dial(&run_key()).ok()?, SealedHandshake::answer(&run_key()).ok()?);
        let operator = answers.received(&dials.take_output()).ok()??;
        Some((dials.received(&answers.take_output()).ok()??, operator))
    };
    let (mut node, mut operator) = pair().expect("both ends have the same key");
    let text = Caller { node: "n1".into(), pid: 7 }.record();
    let mut bytes = Vec::new();
    node.sealer.seal(&text, &mut bytes).expect("a short record");
    let at = usize::from(input.first().copied().unwrap_or(0)) % (bytes.len() + 1);
    bytes.splice(at..at, input.iter().copied().skip(1));
    for piece in pieces(&bytes) {
        operator.opener.push(piece);
        loop {
            match operator.opener.next_record() {
                Ok(Some(heard)) => assert_eq!(heard, text, "a forged record"),
                Ok(None) => break,
                Err(_) => return "refused".to_owned(),
            }
        }
    }
    let read = Caller::read(input).map_or_else(|error| error.to_string(), |caller| caller.pid.to_string());
    format!("waits {}", read.len().min(50))
}

fn knowledge_seeds() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("knowledge").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> =
        paths.into_iter().take(40).filter_map(|path| std::fs::read(path).ok()).collect();
    if seeds.is_empty() { vec![b"id = \"a\"\n".to_vec()] } else { seeds }
}

fn knowledge(input: &[u8]) -> String {
    let mut all = Knowledge::default();
    match all.add("a.toml", &String::from_utf8_lossy(input)) {
        Ok(()) => "taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Every fixture is a seed of every format: what one takes for a host is a surprise for another.
fn inventory_seeds() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("crates/inventory/tests/inventories").into_iter().flatten().flatten();
    let mut paths: Vec<_> = files.map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.into_iter().filter_map(|path| std::fs::read(path).ok()).collect();
    if seeds.is_empty() { vec![b"n[1-3]\n".to_vec()] } else { seeds }
}

fn inventory(format: &str, input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let include = |pattern: &str| Ok(vec![(pattern.to_owned(), "Host inner\n".to_owned())]);
    let source = SourceText { include: &include, ..SourceText::alone("x", &text) };
    match understand(&source, Some(format)) {
        Ok(understood) => {
            // What is written in our own format is read again.
            if understood.clone().into_inventory().is_ok() {
                understand(&SourceText::alone("again", &write::toml(&understood)), Some("toml"))
                    .expect("our own text");
            }
            let (hosts, groups) = (understood.hosts.len().min(9), understood.groups.len().min(9));
            format!("{hosts} {groups} {} {}", understood.ignored.len().min(9), understood.notes.len().min(9))
        }
        Err(error) => error.to_string(),
    }
}

/// Every fixture is a seed of every format, as with inventories.
fn import_seeds() -> Vec<Vec<u8>> {
    let mut todo = vec![std::path::PathBuf::from("crates/import/tests/files")];
    let mut paths = Vec::new();
    while let Some(path) = todo.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => todo.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) => paths.push(path),
        }
    }
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.into_iter().filter_map(|path| std::fs::read(path).ok()).collect();
    if seeds.is_empty() { vec![b"[root@a ~]# sysctl -a\nnet.core.rmem_max = 1\n".to_vec()] } else { seeds }
}

fn import(format: &str, input: &[u8]) -> String {
    let format = (!format.is_empty()).then(|| format.to_owned());
    let options = ImportOptions { format, host: Some("h".to_owned()), ..ImportOptions::default() };
    let snapshot = linerate_import::read(&[Document::new("x", input)], &options);
    let account = snapshot.imported.as_deref().expect("every import has its account");
    for sample in &snapshot.samples {
        assert!(
            snapshot.inventory.host(&sample.test.from).is_some()
                && snapshot.inventory.host(&sample.test.to).is_some()
        );
    }
    // What was read must not make the diagnosis fall over either; large clusters have a benchmark of their
    // own.
    let small = snapshot.samples.len() <= 200;
    let findings =
        if small { linerate_diagnose::diagnose(&snapshot, &Knowledge::default()).findings.len() } else { 0 };
    let mut formats: Vec<&str> = account.pieces.iter().map(|piece| piece.format.as_str()).collect();
    formats.dedup();
    let why = account.unread.first().map_or("", |unread| unread.why.as_str());
    format!(
        "{} {} {} {} {why}",
        formats.iter().take(4).copied().collect::<Vec<_>>().join(","),
        snapshot.samples.len().min(4),
        findings.min(3),
        account.notes.len().min(3)
    )
}
