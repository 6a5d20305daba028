//! Client and server against each other in memory, cut into pieces anywhere; recorded messages of several
//! versions; bytes that no iperf3 would send.

use proptest::prelude::*;

use super::client::{self, Client};
use super::parameters::{DataDirection, Iperf3Protocol, Parameters, Unfit, VERSION};
use super::protocol::{
    COOKIE_BYTES, PARAMETERS_BYTES_MAX, RESULTS_BYTES_MAX, State, Violation, cookie, framed, number, refusal,
};
use super::results::{Results, ServerOutput, StreamResult, stream_ids};
use super::server::{self, Iperf3Server};

fn parameters() -> Parameters {
    Parameters { time_s: 1, parallel: 2, client_version: VERSION.to_owned(), ..Parameters::default() }
}

fn results(bytes: u64) -> Results {
    let stream = |id| StreamResult { id, bytes, retransmits: -1, end_s: 1.0, ..StreamResult::default() };
    Results {
        cpu_percent: [12.0, 4.5, 7.5],
        sender_has_retransmits: -1,
        congestion: Some("cubic".to_owned()),
        streams: stream_ids(2).into_iter().map(stream).collect(),
        server_output: None,
    }
}

/// Gives the bytes in pieces, split at the cuts.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut offsets: Vec<usize> = cuts.iter().map(|c| c % (bytes.len() + 1)).collect();
    offsets.extend([0, bytes.len()]);
    offsets.sort_unstable();
    offsets.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

/// A whole test between the two machines; the events of each of them, in order.
fn whole_test(wanted: &Parameters, cuts: &[usize]) -> (Vec<client::ClientAction>, Vec<server::ServerAction>) {
    let mut client = Client::new(&cookie(&[7; 36]), wanted.to_json());
    let mut server = Iperf3Server::default();
    let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        for piece in pieces(&client.take_output(), cuts) {
            server.received(piece);
        }
        while let Some(event) = server.poll_event() {
            match &event {
                server::ServerAction::Parameters { .. } => server.accept(),
                server::ServerAction::End => server.stopped(),
                server::ServerAction::Results(_) => server.results(&results(7)),
                server::ServerAction::Done | server::ServerAction::Failed(_) => {}
            }
            at_server.push(event);
        }
        for piece in pieces(&server.take_output(), cuts) {
            client.received(piece);
        }
        while let Some(event) = client.poll_event() {
            match &event {
                client::ClientAction::OpenStreams => server.run(),
                client::ClientAction::Run => client.end_test(),
                client::ClientAction::Results => client.results(&results(9)),
                client::ClientAction::Finished(_) => client.finish(),
                client::ClientAction::Start | client::ClientAction::Failed(_) => {}
            }
            at_client.push(event);
        }
        if client.is_over() && server.is_over() {
            break;
        }
    }
    assert!(client.is_over() && server.is_over(), "{} / {}", client.waits_for(), server.waits_for());
    (at_client, at_server)
}

proptest! {
    #[test]
    fn a_test_goes_through_however_its_bytes_are_cut(cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let (at_client, at_server) = whole_test(&parameters(), &cuts);
        prop_assert_eq!(at_client, vec![
            client::ClientAction::OpenStreams,
            client::ClientAction::Start,
            client::ClientAction::Run,
            client::ClientAction::Results,
            client::ClientAction::Finished(Box::new(results(7))),
        ]);
        prop_assert_eq!(at_server, vec![
            server::ServerAction::Parameters {
                cookie: Box::new(cookie(&[7; 36])),
                parameters: Box::new(parameters()),
                unfit: None,
            },
            server::ServerAction::End,
            server::ServerAction::Results(Box::new(results(9))),
            server::ServerAction::Done,
        ]);
    }

    #[test]
    fn parameters_survive_the_exchange(
        udp: bool,
        both: bool,
        reverse: bool,
        numbers in prop::collection::vec(0_u32..600, 8),
        bytes in 0_u64..(1 << 62),
        flags in prop::collection::vec(any::<bool>(), 4),
        text in prop::option::of("[ -~]{0,40}"),
    ) {
        let some = |n: u32| (n > 0).then_some(n);
        let sent = Parameters {
            protocol: if udp { Iperf3Protocol::Udp } else { Iperf3Protocol::Tcp },
            direction: match (both, reverse) {
                (true, _) => DataDirection::Both,
                (false, true) => DataDirection::Reverse,
                (false, false) => DataDirection::Forward,
            },
            omit_s: numbers[0],
            time_s: numbers[1],
            bytes,
            blocks: numbers[2].into(),
            parallel: numbers[3],
            mss: some(numbers[4]),
            nodelay: flags[0],
            window: some(numbers[5]),
            len: some(numbers[6]),
            rate_bps: bytes / 3,
            burst: numbers[7],
            fq_rate_bps: bytes / 5,
            tos: numbers[0] % 256,
            congestion: text.clone(),
            title: text.clone(),
            extra_data: text.clone(),
            get_server_output: flags[1],
            udp_counters_64bit: flags[2],
            dont_fragment: flags[3],
            server_cpu: None,
            flow_label: Some(7),
            zerocopy: true,
            skip_rx_copy: false,
            gsro: false,
            mptcp: true,
            authtoken: text.clone(),
            client_version: VERSION.to_owned(),
        };
        let (read, unfit) = Parameters::from_json(&sent.to_json()).unwrap();
        prop_assert_eq!(unfit.is_some(), sent.check().is_err());
        prop_assert_eq!(read, sent);
    }

    #[test]
    fn hostile_bytes_never_panic_a_server(bytes in prop::collection::vec(any::<u8>(), 0..400), cuts in prop::collection::vec(any::<usize>(), 0..6)) {
        let mut server = Iperf3Server::default();
        for piece in pieces(&bytes, &cuts) {
            server.received(piece);
            while let Some(event) = server.poll_event() {
                if matches!(event, server::ServerAction::Parameters { .. }) {
                    server.accept();
                    server.run();
                }
            }
        }
        server.closed();
        prop_assert!(server.is_over());
    }

    #[test]
    fn hostile_bytes_never_panic_a_client(start in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut client = Client::new(&cookie(&[1; 36]), parameters().to_json());
        client.received(&[9, 10, 1, 2, 13][..start.min(5)]);
        client.results(&results(1));
        client.received(&bytes);
        client.end_test();
        client.closed();
        prop_assert!(client.is_over());
    }

    #[test]
    fn hostile_json_never_panics(text in "[\\[\\]{}:,\"a-z0-9.eE+-]{0,200}") {
        let _ = Parameters::from_json(text.as_bytes());
        let _ = Results::from_json(text.as_bytes());
    }
}

fn failure(sent: &[u8]) -> Option<client::ClientFailure> {
    let mut client = Client::new(&cookie(&[1; 36]), parameters().to_json());
    client.received(sent);
    std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        client::ClientAction::Failed(failure) => Some(failure),
        _ => None,
    })
}

#[test]
fn what_a_server_may_send_instead_of_going_on() {
    assert_eq!(failure(&[0xff]), Some(client::ClientFailure::Busy));
    assert_eq!(failure(&[9, 11]), Some(client::ClientFailure::ServerStopped));
    let refused = client::ClientFailure::Refused { number: 37, errno: 0 };
    assert!(refused.to_string().contains("duration is above the server's limit"));
    assert_eq!(failure(&[&[9][..], &refusal(37, 0)].concat()), Some(refused));
    // iperf3 3.12 to a wrong password: the number alone, then the end.
    let mut client = Client::new(&cookie(&[1; 36]), parameters().to_json());
    client.received(&[9, 0xfe, 0, 0, 0, 142]);
    assert_eq!(client.poll_event(), None);
    client.closed();
    let unknown = client::ClientFailure::Refused { number: 142, errno: 0 };
    assert!(unknown.to_string().starts_with("the server refuses: not authorised: user, password,"));
    assert_eq!(client.poll_event(), Some(client::ClientAction::Failed(unknown)));
    let wrong = Violation::State { byte: 14, during: "the word to open streams" };
    assert_eq!(failure(&[9, 14]), Some(wrong.into()));
    assert_eq!(failure(&[9, 10]), None);
}

#[test]
fn lengths_beyond_the_limits_are_refused_without_their_bytes() {
    let mut server = Iperf3Server::default();
    server.received(&[b'a'; COOKIE_BYTES]);
    server.received(&(PARAMETERS_BYTES_MAX as u32 + 1).to_be_bytes());
    let Some(server::ServerAction::Failed(server::ServerFailure::Violation(violation))) = server.poll_event()
    else {
        panic!("not refused");
    };
    assert!(matches!(violation, Violation::TooLong { bytes: 8193, limit: 8192, .. }), "{violation}");

    let mut client = Client::new(&cookie(&[1; 36]), parameters().to_json());
    client.received(&[9, 10, 1, 2]);
    client.end_test();
    client.received(&[13]);
    client.results(&results(1));
    client.received(&(RESULTS_BYTES_MAX as u32 + 1).to_be_bytes());
    let last = std::iter::from_fn(|| client.poll_event()).last();
    assert!(matches!(
        last,
        Some(client::ClientAction::Failed(client::ClientFailure::Violation(Violation::TooLong { .. })))
    ));
}

#[test]
fn a_client_that_sends_out_of_turn_fills_no_memory() {
    let mut server = Iperf3Server::default();
    server.received(&[b'a'; COOKIE_BYTES]);
    server.received(&framed(&parameters().to_json()));
    for _ in 0..1000 {
        server.received(&[0; 1 << 14]);
    }
    assert!(server.is_over());
    let last = std::iter::from_fn(|| server.poll_event()).last();
    assert!(matches!(
        last,
        Some(server::ServerAction::Failed(server::ServerFailure::Violation(Violation::Flood { .. })))
    ));
}

#[test]
fn a_vanished_peer_ends_each_side_with_words() {
    let mut server = Iperf3Server::default();
    server.received(&[b'a'; 5]);
    server.closed();
    let Some(server::ServerAction::Failed(failure)) = server.poll_event() else { panic!() };
    assert_eq!(failure.to_string(), "the control connection ended in the middle of the cookie");
    let mut client = Client::new(&cookie(&[1; 36]), vec![]);
    client.received(&[9, 10]);
    client.closed();
    assert!(client.is_over());
}

#[test]
fn a_stopped_end_notifies_the_other() {
    let mut client = Client::new(&cookie(&[1; 36]), parameters().to_json());
    client.received(&[9, 10, 1, 2]);
    client.stop();
    assert_eq!(client.take_output().last(), Some(&State::ClientTerminate.byte()));
    let mut server = Iperf3Server::default();
    server.stop();
    assert_eq!(server.take_output(), [State::ServerTerminate.byte()]);
    let mut refusing = Iperf3Server::default();
    refusing.received(&[b'a'; COOKIE_BYTES]);
    refusing.refuse(number::PARAMETERS, 0);
    assert_eq!(refusing.take_output(), [&[9][..], &[0xfe, 0, 0, 0, 114, 0, 0, 0, 0]].concat());
}

/// Parameters as versions before 3.17, 3.17 and 3.21 write them (names and types after their sources and
/// traces).
#[test]
fn parameters_of_several_versions() {
    let old = br#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,
        "client_version":"3.1.3"}"#;
    let (read, unfit) = Parameters::from_json(old).unwrap();
    assert_eq!((read.time_s, read.parallel, read.len, unfit), (10, 1, Some(131_072), None));

    let udp = br#"{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"reverse":true,"len":1448,"bandwidth":1048576,
        "pacing_timer":1000,"client_version":"3.21","udp_counters_64bit":1,"gso":1,"gso_dg_size":1448,"gso_bf_size":65507,
        "gro":0,"gro_bf_size":65507,"repeating_payload":0,"zerocopy":0,"dont_fragment":0,"skip_rx_copy":1}"#;
    let (read, unfit) = Parameters::from_json(udp).unwrap();
    assert_eq!(unfit, None);
    assert_eq!((read.protocol, read.direction), (Iperf3Protocol::Udp, DataDirection::Reverse));
    assert!(read.udp_counters_64bit && !read.dont_fragment);

    let strange = br#"{"tcp":true,"parallel":"two","time":[],"num":null,"reverse":false,"congestion":5,"MSS":-3,"new":{"a":1}}"#;
    let (read, unfit) = Parameters::from_json(strange).unwrap();
    assert_eq!(read, Parameters { parallel: 1, ..Parameters::default() });
    assert_eq!(unfit, None);

    let (_, unfit) = Parameters::from_json(br#"{"sctp":true,"parallel":1}"#).unwrap();
    assert_eq!(unfit, Some(Unfit::Missing { what: "SCTP" }));
    let (_, unfit) = Parameters::from_json(br#"{"tcp":true,"parallel":129}"#).unwrap();
    assert!(matches!(unfit, Some(Unfit::Limit { value: 129, .. })));
}

/// Flags that are not set are left out: a server takes their mere presence for "yes".
#[test]
fn no_flag_is_sent_as_false() {
    let text = String::from_utf8(parameters().to_json()).unwrap();
    assert!(!text.contains("false") && !text.contains("reverse") && !text.contains("nodelay"), "{text}");
}

/// Results of 3.12 (minus one as all ones, nothing omitted) and of 3.17 and later (`omitted_*`).
#[test]
fn results_of_several_versions() {
    let old = br#"{"cpu_util_total":2.5,"cpu_util_user":1.0,"cpu_util_system":1.5,"sender_has_retransmits":18446744073709551615,
        "congestion_used":"cubic","streams":[{"id":1,"bytes":1048576,"retransmits":18446744073709551615,"jitter":0,"errors":0,
        "packets":0,"start_time":0,"end_time":1.000094}]}"#;
    let read = Results::from_json(old).unwrap();
    assert_eq!((read.sender_has_retransmits, read.streams[0].retransmits), (-1, -1));
    assert_eq!((read.streams[0].bytes, read.streams[0].omitted_packets), (1_048_576, None));

    let new = br#"{"cpu_util_total":2.5,"cpu_util_user":1,"cpu_util_system":1.5,"sender_has_retransmits":0,"streams":[
        {"id":1,"bytes":14480,"retransmits":-1,"jitter":1.5e-05,"errors":2,"omitted_errors":1,"packets":12,"omitted_packets":2,
        "start_time":0,"end_time":1.5}],"server_output_json":{"start":{}}}"#;
    let read = Results::from_json(new).unwrap();
    assert_eq!((read.streams[0].errors, read.streams[0].omitted_errors), (2, Some(1)));
    assert!(matches!(read.server_output, Some(ServerOutput::Json(_))));
    assert_eq!(Results::from_json(&read.to_json()).unwrap(), read);

    for wrong in [
        &b"[]"[..],
        b"{}",
        br#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0}"#,
        br#"{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":1,"sender_has_retransmits":0,"streams":[{"id":1}]}"#,
    ] {
        assert!(Results::from_json(wrong).is_err());
    }
    let twice = Results { streams: vec![StreamResult { id: 1, ..StreamResult::default() }; 2], ..results(1) };
    assert!(Results::from_json(&twice.to_json()).is_err());
    let many = stream_ids(257).into_iter().map(|id| StreamResult { id, ..StreamResult::default() }).collect();
    assert!(Results::from_json(&Results { streams: many, ..results(1) }.to_json()).is_err());
}

#[test]
fn streams_are_numbered_without_a_two() {
    assert_eq!(stream_ids(4), [1, 3, 4, 5]);
    assert_eq!(stream_ids(0), Vec::<u32>::new());
}
