//! `linerate watch` on a real cluster of network namespaces: a fault that is set while it runs is named with
//! its direction and with the change that made it, what is killed is a gap and taken up again, and an alarm
//! is measured and delivered.
//!
//! In: the programs `linerate` and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the
//! lab's). A watch needs some seconds for each of them; on a busy machine it may report more than was broken,
//! which is not what is asked here.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod alarms;
mod rounds;
mod troubles;

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use linerate_testkit::TestPrograms;
use serde_json::Value;

/// A watch with the events that it prints, which ends with this.
struct Watch {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn begin(programs: &TestPrograms, data: &Path, inventory: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(&programs.linerate)
            .args(["watch", "--json", "--for", "15m", "-i", inventory.to_str().unwrap()])
            .args(more)
            .env("LINERATE_DATA", data)
            .env("LINERATE_NODE", &programs.node)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, events }
    }

    /// The next event for which this is true; the watch ends by itself, and this with it, when none comes.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        for line in self.events.by_ref() {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if wanted(&event) {
                return event;
            }
            seen.push(event);
        }
        panic!("it never reported: {seen:#?}");
    }
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether an alarm is of what node-2 receives. On a busy machine others may be named too, and before it:
/// they are not what is asked for here. With two partners one of them may report first by chance.
fn is_of_node_2(event: &Value) -> bool {
    let (suspect, direction) = (&event["alarm"]["suspect"], &event["alarm"]["direction"]);
    let is_host = suspect["host"] == "node-2" && direction != "tx";
    is_host || suspect["pair"][1] == "node-2"
}
