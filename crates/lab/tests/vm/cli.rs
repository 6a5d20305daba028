//! The lab of guests as a program: what a person types, and what is left when it is killed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use linerate_testkit::{text, wait_until};

use crate::missing;

const LAB: &str =
    "name = \"solo\"\n[[guest]]\nname = \"solo\"\n[[guest.drives]]\nname = \"d\"\nsize_mib = 8\n";

/// A lab in a process of its own; killed with the test.
struct Running {
    child: Child,
    folder: PathBuf,
}

impl Running {
    fn start() -> Self {
        let file = std::env::temp_dir().join(format!("linerate-vm-solo-{}.toml", std::process::id()));
        std::fs::write(&file, LAB).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-lab"));
        command.args(["vm", "up", "--lab"]).arg(&file).stdout(Stdio::piped());
        linerate_sys::spawn::dies_with_parent(&mut command);
        let mut child = command.spawn().unwrap();
        let folder = std::env::temp_dir().join(format!("linerate-lab-{}", child.id()));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let ready = stdout.lines().map_while(Result::ok).any(|line| line == "ready");
        let _ = std::fs::remove_file(&file);
        assert!(ready, "the lab did not start");
        Self { child, folder }
    }

    /// Exit code and everything that was printed.
    fn ask(&self, words: &[&str], rest: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate-lab"));
        let output =
            command.arg("vm").args(words).arg("--folder").arg(&self.folder).args(rest).output().unwrap();
        (output.status.code(), text(&[output.stdout, output.stderr].concat()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_lab_is_used_from_the_command_line_and_a_killed_one_leaves_no_machine() {
    if let Some(reason) = missing(linerate_lab::vm::topology::GuestSystem::Small) {
        linerate_testkit::skip(
            "a_lab_is_used_from_the_command_line_and_a_killed_one_leaves_no_machine",
            &reason,
        );
        return;
    }
    let mut lab = Running::start();
    // Words arrive as they were typed, and the exit code is that of the program.
    assert_eq!(
        lab.ask(&["exec", "solo"], &["--", "echo", "a  b", "$HOME;"]),
        (Some(0), "a  b $HOME;\n".into())
    );
    assert_eq!(lab.ask(&["exec", "solo"], &["--", "bash", "-c", "exit 7"]).0, Some(7));
    let (code, printed) = lab.ask(&["drive", "solo", "d1", "--ops-per-s", "33"], &[]);
    assert!(code == Some(0) && printed.contains("\"ops_per_s\": 33.0"), "{printed}");
    let (code, printed) = lab.ask(&["drive", "solo", "d9"], &[]);
    assert!(
        code == Some(2) && printed.contains("no drive \"d9\"") && printed.contains("hint: there are d1"),
        "{printed}"
    );
    let (code, printed) = lab.ask(&["boot", "solo"], &[]);
    assert!(code == Some(2) && printed.contains("is on already"), "{printed}");
    let status: serde_json::Value = serde_json::from_str(&lab.ask(&["status", "--json"], &[]).1).unwrap();
    assert_eq!(status["guests"][0]["drives"][0]["behaviour"]["ops_per_s"], 33.0);

    let pid = std::fs::read_to_string(lab.folder.join("solo/qemu.pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    assert!(process.exists(), "its qemu runs");
    lab.child.kill().unwrap();
    lab.child.wait().unwrap();
    // A process that only waits to be reaped has no program any more.
    wait_until("the qemu of a killed lab goes with it", || std::fs::read_link(process.join("exe")).is_err());
}
