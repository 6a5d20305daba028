//! Checks beside a file system that never answers: a FUSE file system whose daemon takes requests and stays
//! silent. A process that was killed in such a request stays in the kernel (state D) until the daemon is
//! gone, as with a dead file server. (An NFS server is not needed for it.)
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::check::{CheckReport, CheckState};
use linerate_sys::sched;
use linerate_testkit::{is_root, skip};

/// Bytes of a request's head, and where its number is.
const UNIQUE_AT: usize = 8;
/// `FUSE_MIN_READ_BUFFER`
const READ_BYTES: usize = 64 << 10;
/// How soon the daemon ends, nanoseconds.
const TURN_NS: u64 = 50_000_000;

/// Answers the first request (`FUSE_INIT`, protocol 7.23 and newer) and then takes requests for good.
fn serve(mut device: File, stop: &AtomicBool) {
    let mut request = vec![0; READ_BYTES];
    let Ok(read) = device.read(&mut request) else { return };
    let mut reply: Vec<u8> = Vec::new();
    let body: [u32; 16] = [7, 31, 4096, 0, 0, 4096, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    reply.extend((16 + 64_u32).to_ne_bytes());
    reply.extend(0_i32.to_ne_bytes());
    reply.extend(&request[UNIQUE_AT..UNIQUE_AT + 8]);
    reply.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
    assert!(read > 40 && device.write_all(&reply).is_ok());
    while !stop.load(Ordering::SeqCst) {
        let until_ns = sched::monotonic_ns() + TURN_NS;
        if sched::wait_any_readable(&[device.as_fd()], until_ns).unwrap()
            && device.read(&mut request).is_err()
        {
            return;
        }
    }
    // Closing the device ends all that waits for it.
}

/// A namespace of mounts with a dead file system, as long as this lives.
struct DeadServer {
    holder: std::process::Child,
    stop: Arc<AtomicBool>,
}

impl DeadServer {
    fn mount(point: &Path) -> Self {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0";
        // The words of the shell after the mount show that it is there; then it keeps the namespace.
        let script = format!(
            "mount -i -t fuse dead {} -o {options} && exec </dev/null && echo mounted && exec sleep 600",
            point.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        command.stdin(device.try_clone().unwrap()).stdout(Stdio::piped());
        let mut holder = command.spawn().unwrap();
        let mut words = [0; 8];
        holder.stdout.take().unwrap().read_exact(&mut words).unwrap();
        // The command keeps a copy of its own.
        drop(command);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        std::thread::spawn(move || serve(device, &seen));
        Self { holder, stop }
    }

    fn call(&self, state: &Path, words: &[&str]) -> (Output, Duration) {
        let begun = Instant::now();
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.holder.id());
        let mut command = Command::new("nsenter");
        command.args([&namespace, env!("CARGO_BIN_EXE_linerate-node"), "check", "--state"]);
        (command.arg(state).args(words).output().unwrap(), begun.elapsed())
    }

    fn check(&self, state: &Path, words: &[&str]) -> (CheckReport, Duration) {
        let (output, took) = self.call(state, &[&["--as", "json"], words].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        (report, took)
    }
}

impl Drop for DeadServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Name of the folder with the dead server.
const DEAD: &str = "dead";

/// A folder in which a server is mounted that never answers; `None` where it cannot be had.
fn dead(test: &str) -> Option<(tempfile::TempDir, DeadServer)> {
    if !is_root() || !Path::new("/dev/fuse").exists() {
        skip(test, "needs root and /dev/fuse");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join(DEAD);
    fs::create_dir(&point).unwrap();
    let server = DeadServer::mount(&point);
    Some((folder, server))
}

fn state_of(report: &CheckReport, subject: &str) -> CheckState {
    report.results.iter().find(|one| one.subject == subject).map(|one| one.state).unwrap()
}

#[test]
fn a_dead_file_server_is_named_in_time_and_costs_one_process() {
    let name = "a_dead_file_server_is_named_in_time_and_costs_one_process";
    let Some((folder, server)) = dead(name) else { return };
    let (point, state) = (folder.path().join(DEAD), folder.path().join("state"));
    let subject = point.to_str().unwrap().to_owned();

    let (first, took) = server.check(&state, &[]);
    println!("first call: {took:?}, {} ms of CPU, notes {:?}", first.cpu_ms, first.notes);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(state_of(&first, &subject), CheckState::Suspect);
    assert_eq!(state_of(&first, "/"), CheckState::Ok, "the others are asked all the same");
    let hanging: Vec<&String> = first.notes.iter().filter(|note| note.contains("hangs")).collect();
    assert_eq!(hanging.len(), 1, "{:?}", first.notes);
    let pid: u32 = hanging[0].rsplit_once("pid ").unwrap().1.trim_end_matches(')').parse().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(stat.contains(") D "), "killed, and still in the kernel: {stat}");

    // It still hangs: no second process is sent there, and nothing is waited for.
    let (second, took) = server.check(&state, &[]);
    println!("second call: {took:?}");
    assert!(second.notes.is_empty(), "{:?}", second.notes);
    assert!(matches!(state_of(&second, &subject), CheckState::Suspect | CheckState::Failing));
    assert!(second.took_ms < 3_000, "{} ms", second.took_ms);

    drop(server);
    linerate_testkit::wait_until("the process in the kernel ends", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| !stat.contains(") D "))
    });
}

#[test]
fn a_configuration_on_a_dead_mount_costs_the_deadline_and_no_node() {
    let name = "a_configuration_on_a_dead_mount_costs_the_deadline_and_no_node";
    let Some((folder, server)) = dead(name) else { return };
    let (point, state) = (folder.path().join(DEAD), folder.path().join("state"));
    let config = point.join("checks.toml");
    let words = ["--enforce", "--deadline", "2", "--config", config.to_str().unwrap(), "--as"];
    for (context, code) in [("prolog", 0), ("slurm", 0), ("nagios", 3), ("text", 2)] {
        let (output, took) = server.call(&state, &[&words[..], &[context]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{context}: {text}");
        assert!(text.contains("no result within 2 s: a disk or file server"), "{context}: {text}");
        // Far below the deadline of a call without the option.
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(30), "{context}: {took:?}");
    }
}
