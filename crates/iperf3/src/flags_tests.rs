//! Command lines as people write them for iperf3.

use linerate_sys::socket_options::KeepAlive;

use super::*;
use crate::parameters::Parameters;
use proptest::prelude::*;

fn parsed(line: &str) -> Result<(Iperf3Command, OutputStyle), String> {
    parse(line.split_whitespace().map(str::to_owned), || Some("rossi".to_owned()))
}

fn asked(line: &str) -> ask::ClientSpec {
    match parsed(line) {
        Ok((Iperf3Command::Ask(spec), _)) => *spec,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_client_line_is_understood() {
    let spec = asked(
        "-c h -p 5202 -u -b 10M/4 -l 1400 -P 3 -R -t 2 -O 1 -w 256K -S 0x20 --cport 7000 -i 0.5 -4 --get-server-output",
    );
    let p = &spec.parameters;
    assert_eq!(
        (spec.host.as_str(), spec.port, spec.family, spec.client_port),
        ("h", 5202, AddressFamily::V4, 7000)
    );
    assert_eq!(
        (p.protocol, p.direction, p.rate_bps, p.burst),
        (Iperf3Protocol::Udp, DataDirection::Reverse, 10_000_000, 4)
    );
    assert_eq!((p.len, p.parallel, p.time_s, p.omit_s, p.window), (Some(1400), 3, 2, 1, Some(256 << 10)));
    assert_eq!((p.tos, p.get_server_output, spec.interval), (0x20, true, Duration::from_millis(500)));
    let bytes = asked("-ch -n1M -M1400 -NC reno --dscp=ef");
    let p = &bytes.parameters;
    assert_eq!((p.bytes, p.time_s, p.mss, p.nodelay, p.tos), (1 << 20, 0, Some(1400), true, 46 << 2));
    assert_eq!(p.congestion.as_deref(), Some("reno"));
    assert_eq!(asked("-c h -u").parameters.rate_bps, 1 << 20);
    assert_eq!(asked("-c h -uR --bidir").parameters.direction, DataDirection::Both);
    let who =
        asked("-c h --username mario --rsa-public-key-path k.pem --use-pkcs1-padding").credentials.unwrap();
    assert_eq!((who.password.as_str(), who.rsa.padding), ("rossi", Padding::Pkcs1));
}

#[test]
fn a_server_line_is_understood() {
    let Ok((Iperf3Command::Serve(spec), show)) =
        parsed("-s -1 -p 5300 -B 127.0.0.1 -J --server-bitrate-limit 1G/5")
    else {
        panic!()
    };
    assert!(spec.one_off && show.json && spec.listener.is_none());
    assert_eq!(
        (spec.port, spec.bind, spec.rate_bps_max),
        (5300, Some("127.0.0.1".parse().unwrap()), 1_000_000_000)
    );
    let Ok((Iperf3Command::Serve(spec), _)) =
        parsed("-s --rsa-private-key-path k --authorized-users-path u --time-skew-threshold 3")
    else {
        panic!()
    };
    assert_eq!(
        spec.listener.map(|listener| (listener.skew_s, listener.rsa.padding)),
        Some((3, Padding::Oaep))
    );
}

#[test]
fn a_server_in_the_background_and_levels_of_a_trace() {
    let Ok((Iperf3Command::Serve(spec), _)) = parsed("-s -D -d3 -I p") else { panic!() };
    assert_eq!((spec.daemon, spec.debug), (true, 3));
    let levels = ["-c h", "-c h -d", "-c h --debug", "-c h --debug=1"].map(|line| asked(line).debug);
    assert_eq!(levels, [0, 4, 4, 1]);
}

#[test]
fn the_flags_of_newer_versions_are_read() {
    let line = "-c h%eth0 -t 0 -Z -m -L 0x2a -A 0,1 --gsro --skip-rx-copy --snd-timeout 500 --cntl-ka=20/5/2 \
                --json-stream --logfile l -I p --timestamps";
    let Ok((Iperf3Command::Ask(spec), show)) = parsed(line) else { panic!("{line}") };
    let parameters = &spec.parameters;
    assert!(parameters.zerocopy && parameters.mptcp && parameters.gsro && parameters.skip_rx_copy);
    assert_eq!((parameters.time_s, parameters.flow_label, parameters.server_cpu), (0, Some(42), Some(1)));
    assert_eq!((spec.host.as_str(), spec.device.as_deref(), spec.cpu), ("h", Some("eth0"), Some(0)));
    let probes = KeepAlive { idle_s: 20, interval_s: 5, count: 2 };
    assert_eq!((spec.send_timeout_ms, spec.keep_alive), (Some(500), Some(probes)));
    assert_eq!((show.json, show.json_stream, show.json_stream_full), (true, true, false));
    assert_eq!(show.timestamps.as_deref(), Some("%c "));
    assert!(show.logfile.is_some() && show.pidfile.is_some());
    let Ok((_, show)) = parsed("-s --timestamps=%H --json-stream-full-output --cntl-ka") else { panic!() };
    assert_eq!((show.timestamps.as_deref(), show.json_stream_full), (Some("%H"), true));
    let sent = Parameters::from_json(&parameters.to_json()).unwrap().0;
    assert_eq!((sent.flow_label, sent.server_cpu, sent.mptcp), (Some(42), Some(1), true));
    assert!(sent.zerocopy && sent.gsro && sent.skip_rx_copy);
}

#[test]
fn what_is_wrong_is_named() {
    for (line, words) in [
        ("", "neither -s nor -c"),
        ("-s -c h", "either -s or -c"),
        ("-s -R", "-R is a client's flag"),
        ("-s -t 5", "-t is a client's flag"),
        ("-c h -1", "-1 is a server's flag"),
        ("-c h -t 1 -n 5", "only one of"),
        ("-c h -P 200", "the number of streams is 200, allowed is 1 to 128"),
        ("-c h -L 0x100000", "1 to 0xfffff"),
        ("-s -A 0,1", "-A N,M is a client's flag"),
        ("-c h -A 2000", "numbers of CPUs up to 1024"),
        ("-c h --cntl-ka=5/2/3", "the idle time is not above"),
        ("-c h --cntl-ka=x", "IDLE/INTERVAL/COUNT"),
        ("-c h --snd-timeout -5", "0 to 86400000 ms"),
        ("-c h -b fast", "-b is `fast`"),
        ("-c h -p", "missing argument for option '-p'"),
        ("-c h -p 0", "1 to 65535"),
        ("-c h -l 70000 -u", "16 to 65507"),
        ("-c h --frobnicate", "not known here"),
        ("-c h -F f", "sending and receiving files"),
        ("-c h --sctp", "SCTP"),
        ("-c h -D", "-D is a server's flag"),
        ("-s -d5", "-d is `5`, allowed is 1 to 4"),
        ("-s --debug=no", "--debug is `no`"),
        ("-c h --bidir=5", "unexpected argument for option '--bidir'"),
        ("-s --rsa-private-key-path k", "go together"),
        ("-c h --username a", "go together"),
        ("h", "unexpected argument \"h\""),
    ] {
        let error = parsed(line).map(|_| ()).unwrap_err();
        assert!(error.contains(words), "{line}: {error}");
    }
    assert!(matches!(parsed("--help"), Ok((Iperf3Command::Help, _))));
    assert!(matches!(parsed("-v"), Ok((Iperf3Command::Version, _))));
}

#[test]
fn numbers_and_names() {
    assert_eq!(
        (scaled("1.5K", 1024), scaled("1G", 1000), scaled("x", 10)),
        (Some(1536), Some(1_000_000_000), None)
    );
    assert_eq!((number("0x10"), number("010"), number("300")), (Some(16), Some(8), None));
    assert_eq!(
        (dscp("cs1"), dscp("AF42"), dscp("63"), dscp("64"), dscp("af44")),
        (Some(32), Some(36 << 2), Some(252), None, None)
    );
}

/// Every flag of the help is known to the parser.
#[test]
fn the_help_is_true() {
    let words = HELP.split(|c: char| c.is_whitespace() || c == ',' || c == '[');
    for flag in words.filter(|word| word.starts_with('-') && word.len() > 1) {
        let known = takes_value(flag)
            || matches!(flag, "-h" | "--help" | "-v" | "--version")
            || parsed(&format!("{flag} -c h")).is_ok()
            || parsed(&format!("-s {flag}")).is_ok();
        assert!(known, "{flag}");
    }
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(words in prop::collection::vec("(-|--)?[a-zA-Z0-9=./:é-]{0,12}", 0..8)) {
        let _ = parse(words, || None);
    }
}
