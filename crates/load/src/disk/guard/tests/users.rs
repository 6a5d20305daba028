//! Programs and devices that use a device and are easily missed, on real loop devices.

use std::process::{Child, ChildStdin};

use super::*;

/// A program of Python that holds a device until its input ends.
struct Holder {
    child: Child,
    input: Option<ChildStdin>,
}

impl Holder {
    /// Returns when it has printed a line; nothing where Python is not installed.
    fn start(test: &str, program: &str, device: &str) -> Option<Self> {
        let mut python = Command::new("python3");
        python.args(["-c", program, device]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut child) = python.spawn() else {
            println!("SKIPPED {test}: python3 is not installed");
            return None;
        };
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let holder = Self { child, input };
        assert_eq!(line, "ready\n", "{test}");
        Some(holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn is_refused(device: &Loop, holder: &Holder, what: &str) {
    wait_for_udev();
    for refused in
        [empty(Path::new(&device.device)).unwrap_err().to_string(), device.open().unwrap_err().to_string()]
    {
        assert!(refused.starts_with(&format!("process {} ", holder.child.id())), "{refused}");
        assert!(refused.ends_with(&format!("has {} {what} (open)", device.name())), "{refused}");
    }
}

/// `/proc/PID/fd`, `maps` and `mountinfo` are those of the main thread, and empty when that has ended.
#[test]
fn a_device_of_a_process_whose_main_thread_has_ended_is_in_use() {
    const NAME: &str = "a_device_of_a_process_whose_main_thread_has_ended_is_in_use";
    const OPEN: &str = "import ctypes, os, platform, sys, threading
f = os.open(sys.argv[1], os.O_RDWR)
KEEP
def rest():
    while open('/proc/%d/stat' % os.getpid()).read().rsplit(')', 1)[1].split()[0] != 'Z':
        os.sched_yield()
    print('ready', flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)";
    const MAP: &str = "c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
assert c.mmap(None, 4096, 3, 1, f, 0) != ctypes.c_void_p(-1).value
os.close(f)";
    let Some(device) = Loop::new(NAME) else { return };
    for (keep, what) in [("", "open"), (MAP, "mapped")] {
        let Some(holder) = Holder::start(NAME, &OPEN.replace("KEEP", keep), &device.device) else { return };
        is_refused(&device, &holder, what);
    }
    wait_for_udev();
    assert!(empty(Path::new(&device.device)).is_ok(), "they have ended");
}

/// `unshare(CLONE_FILES)`: what such a thread opens is in no other table.
#[test]
fn a_device_in_a_file_table_of_a_thread_is_in_use() {
    const NAME: &str = "a_device_in_a_file_table_of_a_thread_is_in_use";
    const UNSHARE: &str = "import ctypes, os, sys, threading
def own():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    f = os.open(sys.argv[1], os.O_RDONLY)
    print('ready', flush=True)
    sys.stdin.read()
thread = threading.Thread(target=own)
thread.start()
thread.join()";
    let Some(device) = Loop::new(NAME) else { return };
    let Some(holder) = Holder::start(NAME, UNSHARE, &device.device) else { return };
    is_refused(&device, &holder, "open");
}

/// A loop device was made from a device file outside `/dev`: of a container, or of a rescue system.
#[test]
fn a_loop_device_stands_on_a_device_by_whatever_path() {
    const NAME: &str = "a_loop_device_stands_on_a_device_by_whatever_path";
    let Some(device) = Loop::new(NAME) else { return };
    let root = Root::live();
    let number = candidate(&root, Path::new(&device.device)).unwrap().number;
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["b", &number.major.to_string(), &number.minor.to_string()])
        .output();
    let upper = Command::new("losetup").args(["--find", "--show"]).arg(&node).output();
    let (true, Ok(upper)) = (made.is_ok_and(|made| made.status.success()), upper) else {
        println!("SKIPPED {NAME}: no device file outside /dev can be made");
        return;
    };
    if !upper.status.success() {
        println!("SKIPPED {NAME}: {}", String::from_utf8_lossy(&upper.stderr).trim());
        return;
    }
    wait_for_udev();
    let upper = String::from_utf8(upper.stdout).unwrap().trim().to_owned();
    // The node is gone, as one of a container is not seen here.
    fs::remove_file(&node).unwrap();
    let refused = empty(Path::new(&device.device));
    let _ = Command::new("losetup").args(["-d", &upper]).output();
    wait_for_udev();
    let name = upper.trim_start_matches("/dev/");
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, format!("{name} stands on it (behind a loop device)"));
    assert!(empty(Path::new(&device.device)).is_ok());
}

/// All that a load is going to write is read first, for minutes; a program opens the device meanwhile.
#[test]
fn a_device_is_looked_at_again_when_all_of_it_was_read() {
    let Some(device) = Loop::new("a_device_is_looked_at_again_when_all_of_it_was_read") else { return };
    let part = (1 << 20, 8 << 20);
    let mut other = None;
    let mut go_on = || {
        other = other.take().or_else(|| File::open(&device.device).ok());
        Ok(())
    };
    let path = Path::new(&device.device);
    let refused =
        super::super::open(&Root::live(), path, device.name(), part, &mut go_on).unwrap_err().to_string();
    assert!(refused.ends_with(&format!("has {} open (open)", device.name())), "{refused}");
    drop(other);
    assert!(device.open().is_ok());
}
