//! `linerate-node load`: both ends of a test as two processes, without an operator.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use linerate_model::load::{LoadReport, LoadSpec, Role, TestKind};
use linerate_model::tuning::Tuning;

struct End {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl End {
    fn start(spec: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_linerate-node"))
            .arg("load")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(spec.as_bytes()).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn report(mut self) -> LoadReport {
        let report = serde_json::from_value(self.line()).unwrap();
        assert!(self.child.wait().unwrap().success());
        report
    }
}

fn spec(role: Role) -> String {
    let spec = LoadSpec {
        // A transfer is given up after as long without progress as it was to last: longer than a busy machine stands still.
        kind: TestKind::Tcp { streams: 2, duration_ms: 3_000 },
        role,
        bind: [127, 0, 0, 1].into(),
        netns: None,
        token: [3; 16],
        deadline_ms: 120_000,
        tuning: Box::new(Tuning { verify: true, ..Tuning::default() }),
    };
    serde_json::to_string(&spec).unwrap()
}

#[test]
fn two_processes_run_one_test() {
    let mut receiver = End::start(&spec(Role::Receiver));
    let port = receiver.line()["listening"].as_u64().unwrap() as u16;
    let sender = End::start(&spec(Role::Sender { peer: ([127, 0, 0, 1], port).into() }));
    let (sent, received) = (sender.report(), receiver.report());
    assert_eq!((sent.stopped, received.stopped), (None, None));
    assert!(sent.bytes > 0 && sent.bytes == received.bytes && sent.verified_streams == Some(2));
}

#[test]
fn what_is_no_spec_is_refused() {
    let mut end = End::start("{\"kind\":1}");
    assert_eq!(end.child.wait().unwrap().code(), Some(2));
}
