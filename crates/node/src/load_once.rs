//! One end of one test without an operator: for benchmarks and scripts.
//!
//! In: a `LoadSpec` as JSON on stdin. Out: on stdout a line `{"listening":PORT}` when a receiver is ready,
//! and at the end the `LoadReport` as one line of JSON. It ends with its load.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_load::LoadControl;
use linerate_model::load::LoadSpec;
use thiserror::Error;

/// A spec is a few hundred bytes.
const SPEC_BYTES_MAX: u64 = 64 << 10;

/// Why no load was run, or not reported.
#[derive(Debug, Error)]
pub(crate) enum LoadOnceError {
    #[error("cannot read the spec from stdin: {0}")]
    Unread(io::Error),
    #[error("stdin is no spec of a load: {0}\nhint: its shape is LoadSpec in crates/model/src/load.rs")]
    NoSpec(serde_json::Error),
    #[error("cannot write the report: {0}")]
    Unwritten(#[from] io::Error),
}

/// Runs the load of the spec on stdin.
pub(crate) fn run() -> Result<(), LoadOnceError> {
    let mut text = String::new();
    io::stdin().take(SPEC_BYTES_MAX).read_to_string(&mut text).map_err(LoadOnceError::Unread)?;
    let spec: LoadSpec = serde_json::from_str(&text).map_err(LoadOnceError::NoSpec)?;
    let say = |line: &str| {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush())
    };
    let listening = Box::new(move |port: u16| {
        // Nobody reads any more: the load ends at its deadline or for want of a sender.
        let _ = say(&format!("{{\"listening\":{port}}}"));
    });
    let report =
        linerate_load::run(&spec, &LoadControl { stop: Arc::new(AtomicBool::new(false)), listening });
    let line = serde_json::to_string(&report).map_err(io::Error::from)?;
    Ok(say(&line)?)
}
