//! The shape of every kind of test in JSON: on the wire, in stores, in recorded cases.

use linerate_model::load::TestKind;

/// Each kind under its name, byte for byte; a kind whose options may be left out stands here with and without.
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
        let kind: TestKind = serde_json::from_str(json).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(kind.name(), *name);
        assert_eq!(serde_json::to_string(&kind).unwrap(), *json, "{name}");
    }
}
