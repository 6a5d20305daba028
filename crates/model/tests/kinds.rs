//! Every kind of test: its shape in JSON (on the wire, in stores, in recorded cases), its limits and times.

use std::collections::BTreeSet;

use linerate_model::kind::TestKind;
use linerate_model::load::LoadReport;

/// Each kind under its name, byte for byte; optional fields with and without.
const SHAPES: &[(&str, &str)] = &[
    ("tcp", r#"{"tcp":{"streams":2,"duration_ms":500}}"#),
    ("udp", r#"{"udp":{"rate_bps":2000000.0,"payload_bytes":512,"duration_ms":250}}"#),
    (
        "udp",
        r#"{"udp":{"rate_bps":0.0,"payload_bytes":64,"duration_ms":250,"options":{"flat_out":true,"offload":"send-only"}}}"#,
    ),
    ("rtt", r#"{"rtt":{"count":6}}"#),
    ("mtu", r#"{"mtu":{"sizes":[576,1500],"tries":3}}"#),
    (
        "latency",
        r#"{"latency":{"phases":[{"carrier":"udp","waiting":"spinning","loaded":true}],"phase_ms":1000,"payload_bytes":1,"load_streams":4,"settle_ms":700}}"#,
    ),
    ("path-mtu", r#"{"path-mtu":{"least_bytes":576,"most_bytes":9216,"tries":3}}"#),
    ("connects", r#"{"connects":{"parallel":1,"duration_ms":2000,"count_max":20000}}"#),
    (
        "http",
        r#"{"http":{"url":"http://a/","via":["b"],"repeat":5,"max_bytes":1000,"timeout_ms":20000,"insecure":false}}"#,
    ),
    (
        "disk",
        r#"{"disk":{"target":{"existing":{"path":"/dev/sda"}},"phases":[{"random":true,"reads":100,"block_bytes":4096,"depth":1,"threads":1,"direct":true,"durable":"never","batch":1}],"phase_ms":1000}}"#,
    ),
];

#[test]
fn json_of_every_kind_stays() {
    for (name, json) in SHAPES {
        let kind = read(json);
        assert_eq!(kind.name(), *name);
        assert_eq!(serde_json::to_string(&kind).unwrap(), *json, "{name}");
    }
}

/// A plan of each kind that is outside its limits.
const TOO_MUCH: &[&str] = &[
    r#"{"tcp":{"streams":513,"duration_ms":500}}"#,
    r#"{"udp":{"rate_bps":0.0,"payload_bytes":512,"duration_ms":250}}"#,
    r#"{"rtt":{"count":0}}"#,
    r#"{"mtu":{"sizes":[576],"tries":17}}"#,
    r#"{"latency":{"phases":[],"phase_ms":1000,"payload_bytes":1,"load_streams":4,"settle_ms":700}}"#,
    r#"{"path-mtu":{"least_bytes":576,"most_bytes":500,"tries":3}}"#,
    r#"{"connects":{"parallel":33,"duration_ms":2000,"count_max":20000}}"#,
    r#"{"http":{"url":"","repeat":101,"max_bytes":1,"timeout_ms":1}}"#,
    r#"{"disk":{"target":{"existing":{"path":"/dev/sda"}},"phases":[],"phase_ms":1000}}"#,
];

fn read(json: &str) -> TestKind {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn every_kind_has_a_name_limits_and_times() {
    let names = |all: Vec<TestKind>| all.iter().map(TestKind::name).collect::<BTreeSet<_>>();
    let all = BTreeSet::from_iter(TestKind::names());
    assert_eq!(all.len(), TestKind::names().len(), "a name twice");
    assert_eq!(names(SHAPES.iter().map(|(_, json)| read(json)).collect()), all);
    assert_eq!(names(TOO_MUCH.iter().map(|json| read(json)).collect()), all);
    for kind in SHAPES.iter().map(|(_, json)| read(json)) {
        let (plan, name) = (kind.plan(), kind.name());
        assert_eq!(plan.check(), Ok(()), "{name}");
        assert!(
            !plan.expected().is_zero() && !plan.time_max().is_zero() && !plan.title().is_empty(),
            "{name}"
        );
        let nothing = LoadReport::default();
        assert!(plan.missing(&nothing, &nothing).is_some(), "{name}");
    }
    for kind in TOO_MUCH.iter().map(|json| read(json)) {
        assert!(kind.plan().check().is_err(), "{kind:?}");
    }
}
