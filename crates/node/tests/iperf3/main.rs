//! Interoperation with Debian's iperf3, both ways, each option: the same command lines, once against our
//! server and once against Debian's. Each test runs in a network namespace of its own; what is missing is
//! printed as a skip with its reason.
// Helpers of tests may fail the test as loudly as the tests themselves.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod stage;
mod strangers;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stage::{Keys, Server, Whose, client, inside, json};

/// What a client's document must say beside that bytes went through.
type Check = fn(&Value);

fn nothing(_: &Value) {}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {value}"))
}

fn whole(value: &Value, path: &str) -> u64 {
    value
        .pointer(path)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no whole number at {path}: {value}"))
}

fn list(value: &Value, path: &str) -> usize {
    value.pointer(path).and_then(Value::as_array).map_or(0, Vec::len)
}

/// What a version of iperf3 can do with itself.
#[derive(PartialEq)]
enum Able {
    /// It does not know the line, or does not come to an end with it.
    Not,
    /// It does it, but its document says less.
    Runs,
    Whole,
}

/// Asks another version than Debian's what it can do with itself: that is what it must be able to do with
/// ours, no more and no less. Of Debian's everything is demanded.
fn able(line: &str, check: Check) -> Able {
    if !stage::other_version() {
        return Able::Whole;
    }
    let server = Server::start(Whose::Debians, &["-1"]);
    let arguments: Vec<&str> = line.split(' ').chain(["-J"]).collect();
    let output = client(Whose::Debians, "127.0.0.1", &arguments, &[]);
    drop(server);
    let document = serde_json::from_slice::<Value>(&output.stdout);
    let able = match document {
        Ok(value) if output.status.success() && value.get("error").is_none() => {
            let whole = std::panic::catch_unwind(|| {
                summed(&value, line);
                check(&value);
            });
            if whole.is_ok() { Able::Whole } else { Able::Runs }
        }
        _ => Able::Not,
    };
    match able {
        Able::Not => println!("LEFT OUT {line}: this iperf3 cannot do it with itself"),
        Able::Runs => println!("PARTLY {line}: this iperf3 says less in its document"),
        Able::Whole => {}
    }
    able
}

/// What every document must say.
fn summed(value: &Value, line: &str) {
    for side in ["sum_sent", "sum_received"] {
        assert!(number(value, &format!("/end/{side}/bytes")) > 0.0, "{line}: {value}");
    }
}

/// Runs each line with Debian's and our client, each against the other's server.
fn both_ways(cases: &[(&str, Check)]) {
    for (line, check) in cases {
        let able = able(line, *check);
        if able == Able::Not {
            continue;
        }
        for whose in [Whose::Ours, Whose::Debians] {
            let server = Server::start(whose.other(), &["-1"]);
            let arguments: Vec<&str> = line.split(' ').chain(["-J"]).collect();
            println!("{whose:?} client: {line}");
            let value = json(&client(whose, "127.0.0.1", &arguments, &[]));
            if able == Able::Whole {
                check(&value);
            }
            if able == Able::Whole || whose == Whose::Ours {
                summed(&value, line);
            }
            server.output();
        }
    }
}

#[test]
fn tcp_with_each_option() {
    if !inside("tcp_with_each_option") {
        return;
    }
    both_ways(&[
        ("-n 32M", |v| assert!(number(v, "/end/sum_sent/bytes") >= 33_554_432.0)),
        ("-n 4M -R", |v| assert!(number(v, "/end/sum_received/bytes") >= 4_194_304.0)),
        ("-n 32M -P 4", |v| assert_eq!(list(v, "/end/streams"), 4)),
        ("-n 4M -P 3 -R", |v| assert_eq!(list(v, "/end/streams"), 3)),
        ("-k 20", |v| assert!(number(v, "/end/sum_sent/bytes") >= 20.0 * 131_072.0)),
        ("-n 4M -l 1000", |v| assert_eq!(whole(v, "/start/test_start/blksize"), 1000)),
        ("-n 32M -w 64K", |v| assert_eq!(whole(v, "/start/sock_bufsize"), 65_536)),
        ("-n 32M -w 64K -R", nothing),
        ("-n 32M -M 1000", |v| assert_eq!(whole(v, "/start/tcp_mss"), 1000)),
        ("-n 32M -M 1000 -R", nothing),
        ("-n 32M -C reno", |v| {
            assert_eq!(v["end"]["sender_tcp_congestion"], "reno");
            assert_eq!(v["end"]["receiver_tcp_congestion"], "reno");
        }),
        ("-n 32M -N -S 32", |v| assert_eq!(whole(v, "/start/test_start/tos"), 32)),
        ("-n 32M --dscp cs1", |v| assert_eq!(whole(v, "/start/test_start/tos"), 32)),
        ("-n 32M -T name --extra-data more", |v| {
            assert_eq!((&v["title"], &v["extra_data"]), (&"name".into(), &"more".into()));
        }),
        ("-n 32M -B 127.0.0.1 --connect-timeout 60000", nothing),
    ]);
}

#[test]
fn tcp_over_time() {
    if !inside("tcp_over_time") {
        return;
    }
    both_ways(&[
        ("-t 1 --bidir", |v| {
            assert!(number(v, "/end/sum_sent_bidir_reverse/bytes") > 0.0);
            assert!(number(v, "/end/sum_received_bidir_reverse/bytes") > 0.0);
        }),
        ("-t 1 --bidir -P 2 -i 0.5", |v| {
            assert_eq!(list(v, "/end/streams"), 4);
            assert!(list(v, "/intervals") >= 1);
        }),
        ("-t 2 -O 1", |v| {
            assert!(v["intervals"][0]["sum"]["omitted"].as_bool().unwrap());
            let (sent, all) = (number(v, "/end/sum_sent/bytes"), sum_of_intervals(v));
            assert!(sent < all, "what was omitted does not count: {sent} of {all}");
        }),
        ("-t 2 -O 1 -R", |v| assert!(number(v, "/end/sum_received/bytes") < sum_of_intervals(v))),
        ("-t 1 -b 20M -i 0.2", |v| {
            assert!(number(v, "/end/sum_sent/bits_per_second") < 25e6);
            // A busy machine's intervals are longer and fewer.
            assert!(list(v, "/intervals") >= 1);
        }),
        ("-t 1 -b 20M/10 -R", |v| assert!(number(v, "/end/sum_sent/bits_per_second") < 40e6)),
        ("-t 1 --fq-rate 50M", nothing),
    ]);
}

fn sum_of_intervals(value: &Value) -> f64 {
    value["intervals"].as_array().unwrap().iter().map(|i| i["sum"]["bytes"].as_f64().unwrap()).sum()
}

#[test]
fn udp_with_each_option() {
    if !inside("udp_with_each_option") {
        return;
    }
    let plausible: Check = |v| {
        let (packets, lost) = (number(v, "/end/sum/packets"), number(v, "/end/sum/lost_packets"));
        assert!(packets > 0.0 && lost >= 0.0 && lost < packets, "{}", v["end"]);
    };
    both_ways(&[
        ("-u -t 1 -b 10M", plausible),
        ("-u -t 1 -b 10M -R", plausible),
        ("-u -t 1 -b 5M --bidir -P 2 -l 1000", |v| {
            assert_eq!(list(v, "/end/streams"), 4);
            assert!(number(v, "/end/sum_received_bidir_reverse/bytes") > 0.0);
        }),
        ("-u -n 200K -l 500 -b 20M", |v| assert_eq!(whole(v, "/start/test_start/blksize"), 500)),
        ("-u -k 50 -b 20M -l 1400", |v| assert!(number(v, "/end/sum/packets") >= 50.0)),
        ("-u -k 50 -b 20M --udp-counters-64bit", plausible),
        ("-u -t 1 -b 20M -l 1400 -P 3", |v| assert_eq!(list(v, "/end/streams"), 3)),
        ("-u -t 1 -b 5M -w 512K -O 1", plausible),
        ("-u -t 1 -b 5M --dont-fragment -l 1000", plausible),
    ]);
}

/// One server, one client, and what must be in what both printed.
struct Talk {
    server: &'static str,
    client: &'static str,
    check: fn(&str, &str),
}

impl Talk {
    /// Gives what client and server printed when both ended well.
    fn hold(&self, client_is: Whose, server_is: Whose) -> Option<(String, String)> {
        let server = Server::start(server_is, &self.server.split(' ').collect::<Vec<_>>());
        // A port of its own for each couple, for one that was just in use is not free at once.
        let port = match (client_is, server_is) {
            (Whose::Ours, _) => "7000",
            (_, Whose::Ours) => "7001",
            _ => "7002",
        };
        let line = self.client.replace("PORT", port);
        let arguments: Vec<&str> = line.split(' ').collect();
        let host = if arguments.contains(&"-6") { "::1" } else { "127.0.0.1" };
        let output = client(client_is, host, &arguments, &[]);
        // A server that no client came to the end with would wait for the next one.
        let (shown, good) = if output.status.success() { server.end() } else { return None };
        good.then(|| (String::from_utf8_lossy(&output.stdout).into_owned(), shown))
    }

    /// Another version than Debian's must do with ours what it does with itself; Debian's everything.
    fn is_left_out(&self) -> bool {
        let out = stage::other_version()
            && !self.hold(Whose::Debians, Whose::Debians).is_some_and(|(document, shown)| {
                std::panic::catch_unwind(|| (self.check)(&document, &shown)).is_ok()
            });
        if out {
            println!("LEFT OUT {}: this iperf3 cannot do it with itself", self.client);
        }
        out
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn other_addresses_and_outputs() {
    if !inside("other_addresses_and_outputs") {
        return;
    }
    let talks = [
        Talk {
            server: "-1",
            client: "-n 1M -J --cport PORT",
            check: |document, _| {
                let port = whole(&read(document), "/start/connected/0/local_port");
                assert!((7000..7003).contains(&port), "{port}");
            },
        },
        Talk { server: "-1", client: "-6 -n 1M -J", check: |_, _| () },
        Talk {
            server: "-1",
            client: "-n 1M -J --get-server-output",
            check: |document, _| {
                let document = read(document);
                let shown = document["server_output_text"].as_str().unwrap_or_else(|| panic!("{document}"));
                assert!(shown.contains("receiver"), "{shown}");
            },
        },
        Talk {
            server: "-1 -J",
            client: "-n 1M -J --get-server-output",
            check: |document, shown| {
                let document = read(document);
                let bytes = &document["server_output_json"]["end"]["sum_received"]["bytes"];
                assert!(bytes.is_number(), "{document}");
                let shown = read(shown);
                assert!(shown["start"]["accepted_connection"]["port"].is_u64(), "{shown}");
            },
        },
        Talk {
            server: "-1 -p 5301",
            client: "-p 5301 -n 1M -P 2 -V -f m",
            check: |text, _| {
                let words = ["[SUM]", "Mbits/sec", "receiver"];
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            },
        },
    ];
    for talk in talks.iter().filter(|talk| !talk.is_left_out()) {
        for whose in [Whose::Ours, Whose::Debians] {
            println!("{whose:?} client: {}", talk.client);
            let (document, shown) = talk
                .hold(whose, whose.other())
                .unwrap_or_else(|| panic!("{whose:?} client: {}", talk.client));
            (talk.check)(&document, &shown);
        }
    }
}

/// A server in the background; it is ended, whatever happens.
struct Daemon(String);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", &self.0]).stderr(std::process::Stdio::null()).status();
    }
}

#[test]
fn a_server_goes_on_in_the_background() {
    if !inside("a_server_goes_on_in_the_background") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _ = Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    for whose in [Whose::Ours, Whose::Debians] {
        let path = folder.path().join(format!("{whose:?}.pid"));
        let file = path.display().to_string();
        let start = |more: &[&str]| {
            let mut command = whose.command();
            command.args(["-s", "-1", "-I", &file]).args(more).stdin(std::process::Stdio::null());
            command.output().unwrap()
        };
        // It returns only because the one in the background has none of its streams.
        let output = start(&["-D"]);
        assert!(output.status.success(), "{whose:?}: {}", String::from_utf8_lossy(&output.stderr));
        let id = || std::fs::read_to_string(&path).unwrap_or_default().trim_matches(['\n', '\0']).to_owned();
        // Debian's writes it only after the first process has ended.
        linerate_testkit::wait_until("the file of the process id", || id().parse::<u32>().is_ok());
        let daemon = Daemon(id());
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.0)).unwrap();
        let after_name: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        assert_eq!(after_name[3], daemon.0, "it is not in a session of its own: {stat}");
        let folder_of = std::fs::read_link(format!("/proc/{}/cwd", daemon.0)).unwrap();
        assert_eq!(folder_of, std::path::Path::new("/"), "{whose:?}");
        if whose == Whose::Ours {
            let second = start(&["-p", "5301"]);
            let error = String::from_utf8_lossy(&second.stderr);
            assert!(!second.status.success() && error.contains("is running"), "{error}");
            assert_eq!(id(), daemon.0);
        }
        linerate_testkit::wait_until("it listens", || {
            let output = client(whose.other(), "127.0.0.1", &["-n", "1M", "-J"], &[]);
            output.status.success()
        });
        linerate_testkit::wait_until("it removes its file", || !path.exists());
    }
}

/// What `--debug` writes is what Debian's other end understood, and stays out of the document.
#[test]
fn a_trace_has_each_message_and_no_token() {
    if !inside("a_trace_has_each_message_and_no_token") {
        return;
    }
    let server = Server::start(Whose::Debians, &["-1"]);
    let output = client(Whose::Ours, "127.0.0.1", &["-n", "1M", "-J", "-d"], &[]);
    server.output();
    json(&output);
    let trace = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = trace.lines().filter_map(|line| line.strip_prefix("debug: ")).collect();
    let is_message = |line: &&str| line.contains('{');
    let states: Vec<&str> = lines.iter().copied().filter(|line| !is_message(line)).collect();
    assert_eq!(
        states,
        [
            "sent a cookie",
            "received ParamExchange",
            "received CreateStreams",
            "received TestStart",
            "received TestRunning",
            "sent TestEnd",
            "received ExchangeResults",
            "received DisplayResults",
            "sent Done"
        ]
    );
    let messages: Vec<&str> = lines.iter().copied().filter(is_message).collect();
    let [parameters, own, theirs] = messages[..] else { panic!("{messages:?}") };
    let parameters = read(parameters.strip_prefix("sent ").unwrap());
    assert_eq!((&parameters["tcp"], &parameters["num"]), (&true.into(), &(1 << 20).into()), "{parameters}");
    for results in [own.strip_prefix("sent ").unwrap(), theirs.strip_prefix("received ").unwrap()] {
        assert!(read(results)["streams"].is_array(), "{results}");
    }
}

/// Every key that Debian's client writes is in our client's document, with a value of the same type.
#[test]
fn the_document_has_every_key_of_iperf3() {
    if !inside("the_document_has_every_key_of_iperf3") {
        return;
    }
    for line in [
        "-t 1",
        "-t 1 -R",
        "-n 1M -M 1000",
        "-t 1 --bidir",
        "-u -t 1 -b 2M",
        "-u -t 1 -b 2M -R",
        "-u -t 1 --bidir -b 2M",
    ] {
        if able(line, nothing) == Able::Not {
            continue;
        }
        let arguments: Vec<&str> = line.split(' ').chain(["-J"]).collect();
        let [(theirs, their_server), (ours, our_server)] = [Whose::Debians, Whose::Ours].map(|whose| {
            let server = Server::start(whose, &["-1", "-J"]);
            let document = json(&client(whose, "127.0.0.1", &arguments, &[]));
            (document, read(&server.output()))
        });
        let mut differences = missing(&theirs, &ours, &format!("client {line}: "));
        differences.extend(missing(&their_server, &our_server, &format!("server {line}: ")));
        // The schema is that of Debian's version; what others have beside it is told to whoever runs them.
        for difference in &differences {
            println!("DIFFERENT {difference}");
        }
        assert!(stage::other_version() || differences.is_empty(), "{differences:#?}");
    }
}

/// Every key of theirs that ours has not, or with a value of another type.
fn missing(theirs: &Value, ours: &Value, path: &str) -> Vec<String> {
    let kind = |value: &Value| (value.is_number(), value.is_string(), value.is_boolean(), value.is_array());
    if kind(theirs) != kind(ours) {
        return vec![format!("{path}: {theirs} and {ours}")];
    }
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => theirs
            .iter()
            .flat_map(|(key, value)| match ours.get(key) {
                Some(mine) => missing(value, mine, &format!("{path}/{key}")),
                None => vec![format!("{path}/{key} is missing")],
            })
            .collect(),
        (Value::Array(theirs), Value::Array(ours)) => match (theirs.first(), ours.first()) {
            (Some(theirs), Some(ours)) => missing(theirs, ours, &format!("{path}/0")),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[test]
fn who_may_test_is_decided_alike() {
    if !inside("who_may_test_is_decided_alike") {
        return;
    }
    let Some(keys) = Keys::new() else {
        println!("SKIPPED who_may_test_is_decided_alike: no openssl here");
        return;
    };
    let (private, public, users) = (keys.path("private.pem"), keys.path("public.pem"), keys.path("users"));
    let listener = ["-1", "--rsa-private-key-path", &private, "--authorized-users-path", &users];
    let line = ["-n", "1M", "-J", "--username", "mario", "--rsa-public-key-path", &public];
    let mut couples = vec![(Whose::Ours, Whose::Ours)];
    let itself = |whose: Whose| {
        let _server = Server::start(whose, &listener);
        client(whose, "127.0.0.1", &line, &[("IPERF3_PASSWORD", "rossi")]).status.success()
    };
    if !stage::other_version() || std::panic::catch_unwind(|| itself(Whose::Debians)).unwrap_or(false) {
        couples.extend([(Whose::Ours, Whose::Debians), (Whose::Debians, Whose::Ours)]);
    } else {
        println!("LEFT OUT users: this iperf3 cannot do it with itself");
    }
    // The padding was changed in 3.17.
    let old = stage::minor_version() < 17;
    for (client_is, server_is) in couples {
        for (password, good) in [("rossi", true), ("verdi", false)] {
            let pkcs1 =
                |whose: Whose| if whose == Whose::Ours && old { &["--use-pkcs1-padding"][..] } else { &[] };
            let server = Server::start(server_is, &[&listener[..], pkcs1(server_is)].concat());
            let line = [&line[..], pkcs1(client_is)].concat();
            let output = client(client_is, "127.0.0.1", &line, &[("IPERF3_PASSWORD", password)]);
            if good {
                json(&output);
            } else {
                // Old versions exit with 0 all the same when they write JSON, still older ones have the error
                // elsewhere.
                let shown = [&output.stdout[..], &output.stderr].concat();
                let words = if client_is == Whose::Ours { "not authorised" } else { "error" };
                assert!(String::from_utf8_lossy(&shown).contains(words), "{client_is:?}: {output:?}");
            }
            drop(server);
        }
    }
    // Without a token, and with the padding of the other age.
    let listener = ["--rsa-private-key-path", &private, "--authorized-users-path", &users];
    let _server = Server::start(Whose::Ours, &listener);
    assert!(!client(Whose::Ours, "127.0.0.1", &["-n", "1M"], &[]).status.success());
    let line = ["-n", "1M", "--username", "mario", "--rsa-public-key-path", &public];
    let variables = [("IPERF3_PASSWORD", "rossi")];
    assert!(client(Whose::Ours, "127.0.0.1", &line, &variables).status.success());
    let old_padding = [&line[..], &["--use-pkcs1-padding"]].concat();
    let refused = client(Whose::Ours, "127.0.0.1", &old_padding, &variables);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stdout).contains("not authorised"), "{refused:?}");
}

fn connected() -> TcpStream {
    let stream = TcpStream::connect("127.0.0.1:5201").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn byte(stream: &mut TcpStream) -> Option<u8> {
    let mut room = [0];
    stream.read_exact(&mut room).is_ok().then_some(room[0])
}

/// Goes away, and waits until the server has noticed.
fn vanish(mut stream: TcpStream) {
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // A reset is as good an end as any.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_server_of_ours_outlives_its_clients() {
    if !inside("a_server_of_ours_outlives_its_clients") {
        return;
    }
    let _server = Server::start(Whose::Ours, &["--server-max-duration", "5", "--server-bitrate-limit", "1G"]);
    let test = ["-t", "1", "-b", "10M", "-J"];
    // Somebody who connects and says nothing keeps nobody out.
    let silent = connected();
    json(&client(Whose::Debians, "127.0.0.1", &test, &[]));
    // Somebody who goes away in the middle of each step.
    let parameters =
        br#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"bandwidth":1000}"#;
    let framed = [&(parameters.len() as u32).to_be_bytes()[..], parameters].concat();
    for sent in [&[b'a'; 20][..], &[b'a'; 37], &[&[b'a'; 37][..], &framed].concat()] {
        let mut stream = connected();
        stream.write_all(sent).unwrap();
        vanish(stream);
    }
    // Somebody who is in the middle of a test: everybody else is told so.
    let mut holder = connected();
    holder.write_all(&[b'b'; 37]).unwrap();
    assert_eq!(byte(&mut holder), Some(9));
    for whose in [Whose::Ours, Whose::Debians] {
        let busy = client(whose, "127.0.0.1", &test, &[]);
        // Not all versions write it into the document.
        let shown = [&busy.stdout[..], &busy.stderr].concat();
        assert!(String::from_utf8_lossy(&shown).contains("server is busy running a test"), "{busy:?}");
    }
    holder.write_all(&framed).unwrap();
    assert_eq!(byte(&mut holder), Some(10));
    vanish(holder);
    json(&client(Whose::Debians, "127.0.0.1", &test, &[]));
    // More than it allows.
    for (line, number) in [("-t 10 -b 1M", "37"), ("-t 1 -b 2G", "27")] {
        let refused = client(Whose::Ours, "127.0.0.1", &line.split(' ').collect::<Vec<_>>(), &[]);
        let text = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert!(!refused.status.success() && text.contains(&format!("iperf3 error {number}")), "{text}");
        let refused = client(Whose::Debians, "127.0.0.1", &line.split(' ').collect::<Vec<_>>(), &[]);
        assert!(!refused.status.success());
    }
    json(&client(Whose::Ours, "127.0.0.1", &test, &[]));
    drop(silent);
}

#[test]
fn ours_against_ours_loses_no_byte() {
    if !inside("ours_against_ours_loses_no_byte") {
        return;
    }
    for line in ["-n 64M", "-n 64M -R", "-n 64M -P 8", "-t 1", "-t 1 -R", "-t 1 --bidir -P 2", "-k 33 -P 2"] {
        let server = Server::start(Whose::Ours, &["-1"]);
        let arguments: Vec<&str> = line.split(' ').chain(["-J"]).collect();
        let value = json(&client(Whose::Ours, "127.0.0.1", &arguments, &[]));
        // When time ends a test whose server sends, the client takes what comes within a moment, and a server
        // that is late has sent more.
        let exact = !line.starts_with("-t") || line == "-t 1";
        for stream in value["end"]["streams"].as_array().unwrap() {
            let [sent, received] = ["sender", "receiver"].map(|side| stream[side]["bytes"].as_u64().unwrap());
            assert!(if exact { sent == received } else { sent >= received }, "{line}: {stream}");
        }
        server.output();
    }
}
