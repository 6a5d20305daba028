//! One end of one test without an operator: for benchmarks and scripts.
//!
//! In: a `LoadSpec` as JSON on stdin. Out: on stdout a line `{"listening":PORT}` when a receiver is ready,
//! and at the end the `LoadReport` as one line of JSON. It ends with its load.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_load::Control;
use linerate_model::load::LoadSpec;

/// A spec is a few hundred bytes.
const SPEC_BYTES_MAX: u64 = 64 << 10;

/// Runs the load of the spec on stdin.
pub(crate) fn run() -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin()
        .take(SPEC_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|e| format!("cannot read the spec from stdin: {e}"))?;
    let spec: LoadSpec = serde_json::from_str(&text).map_err(|e| {
        format!("stdin is no spec of a load: {e}\nhint: its shape is LoadSpec in crates/model/src/load.rs")
    })?;
    let say = |line: &str| {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush())
    };
    let listening = Box::new(move |port: u16| {
        // Nobody reads any more: the load ends at its deadline or for want of a sender.
        let _ = say(&format!("{{\"listening\":{port}}}"));
    });
    let report = linerate_load::run(&spec, &Control { stop: Arc::new(AtomicBool::new(false)), listening });
    let line = serde_json::to_string(&report).map_err(|e| e.to_string())?;
    say(&line).map_err(|e| format!("cannot write the report: {e}"))
}
