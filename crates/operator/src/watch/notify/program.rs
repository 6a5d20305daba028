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

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_its_status_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("read");
        // An argument is one word whatever is in it.
        let script = "cat > \"$1\"; test \"$2\" = '$(id) ; x'";
        let arguments = words(&["-c", script, "sh", file.to_str().unwrap(), "$(id) ; x"]);
        run("/bin/sh".as_ref(), &arguments, b"[1]").await.unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"[1]");
        let error = run("/bin/sh".as_ref(), &words(&["-c", "exit 3"]), &vec![0; 1 << 20]).await.unwrap_err();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(run("/nonexistent".as_ref(), &[], b"").await.is_err());
    }

    #[tokio::test]
    async fn what_hangs_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        // The child of the program holds the fifo open for writing until it is killed.
        let script = format!("sleep 1000 > {} & wait", fifo.display());
        let arguments = words(&["-c", &script]);
        let mut hangs = Box::pin(run("/bin/sh".as_ref(), &arguments, b""));
        let mut file = tokio::select! {
            _ = &mut hangs => panic!("it ended"),
            opened = spawn_blocking(move || std::fs::File::open(fifo)) => opened.unwrap().unwrap(),
        };
        drop(hangs);
        // End of file: no process holds it any more.
        let read = spawn_blocking(move || file.read(&mut [0]).unwrap());
        assert_eq!(timeout(Duration::from_secs(60), read).await.unwrap().unwrap(), 0);
    }
}
