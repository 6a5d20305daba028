//! A program that reads its standard input: no shell, and gone with all that it started when it is not waited
//! for any longer.

use std::ffi::OsStr;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// A process group that ends with this.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs it to its end; an error where it fails. Its output goes nowhere.
pub(super) async fn run(program: &OsStr, arguments: &[String], input: &[u8]) -> Result<(), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("it cannot be run: {error}"))?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads nothing, or not all, is judged by its exit status.
        drop(stdin.write_all(input).await);
    }
    let status = child.wait().await.map_err(|error| format!("it was lost: {error}"))?;
    group.0 = None;
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}
