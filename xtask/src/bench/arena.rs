//! Two network namespaces with a veth pair between them, and programs in them whose cost is counted.
//!
//! In: command lines. Out: what they printed and the CPU time of the whole process. The namespaces are open
//! files of this process: nothing of them is left when it ends, however it ends. Every program has a
//! deadline.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use linerate_lab::namespace::Namespace;
use linerate_sys::cpu::{self, CpuTicks};
use linerate_sys::{ethtool, spawn};

/// Address of the end that sends.
pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// Address of the end that receives.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);

/// Rate of a shaped wire: one that every method fills on a machine of today, Mbit/s.
const SHAPED_MBIT: u32 = 2000;
/// MTU of a small wire, the least that every IPv4 host takes, and of the others.
const SMALL_MTU: u32 = 576;
const USUAL_MTU: u32 = 1500;

const DEADLINE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Which end a program runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// [`NEAR`].
    Near,
    /// [`FAR`].
    Far,
}

/// What passes the veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// As the kernel makes it: a train of datagrams passes as one piece, and the receiving socket cuts it.
    Trains,
    /// Real packets: the sender's kernel cuts trains before they pass, as with a NIC that has no segmentation
    /// of its own for UDP.
    Packets,
    /// As [`Wire::Trains`], at [`SHAPED_MBIT`].
    Shaped,
    /// As [`Wire::Trains`], with [`SMALL_MTU`].
    Small,
    /// No pair: both ends in one namespace.
    Loopback,
}

/// The two namespaces.
pub(crate) struct Arena {
    near: Namespace,
    far: Namespace,
    wire: Cell<Wire>,
}

/// A program under way.
pub(crate) struct Running {
    child: Child,
    what: String,
    before: Vec<CpuTicks>,
    stdout: Collected,
    stderr: Collected,
    over: bool,
}

/// How a program ended.
pub(crate) struct Ended {
    /// What it printed.
    pub(crate) stdout: String,
    /// CPU time of all its threads, user and system.
    cpu_s: f64,
    /// What all CPUs of the machine did meanwhile.
    machine_s: f64,
}

/// What a transfer cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// CPU seconds of both processes, user and system.
    pub(crate) processes_s: f64,
    /// CPU seconds of all CPUs while the client ran: softirq is in it, other work of the machine too, steal
    /// not.
    pub(crate) machine_s: f64,
}

impl Cost {
    /// Of a client and its server.
    pub(crate) fn of(client: &Ended, server: &Ended) -> Self {
        Self { processes_s: client.cpu_s + server.cpu_s, machine_s: client.machine_s }
    }
}

impl Arena {
    /// Both namespaces, connected.
    pub(crate) fn new() -> Result<Self> {
        let (near, far) = (Namespace::create("near")?, Namespace::create("far")?);
        near.ip(&format!("link add eth0 type veth peer name eth0 netns {}\n", far.path().display()))?;
        for (namespace, address) in [(&near, NEAR), (&far, FAR)] {
            namespace.ip(&format!("address add {address}/24 dev eth0\nlink set eth0 up\n"))?;
            // The same for all, whatever the host prefers; not every kernel has it.
            namespace.write_sysctl("net.ipv4.tcp_congestion_control", "cubic").ok();
        }
        Ok(Self { near, far, wire: Cell::new(Wire::Trains) })
    }

    /// Chooses what passes between them.
    pub(crate) fn set_wire(&self, wire: Wire) -> Result<()> {
        let trains = [("tx-udp-segmentation".to_owned(), wire != Wire::Packets)];
        let mtu = if wire == Wire::Small { SMALL_MTU } else { USUAL_MTU };
        for namespace in [&self.near, &self.far] {
            let set = namespace.run(|| ethtool::set_features("eth0", &trains))?;
            set.map_err(|error| anyhow::anyhow!("tx-udp-segmentation of {}: {error}", namespace.name))?;
            namespace.ip(&format!("link set eth0 mtu {mtu}\n"))?;
        }
        let old = self.wire.replace(wire);
        if old == Wire::Shaped {
            self.near.tc("qdisc del dev eth0 root\n")?;
        }
        if wire == Wire::Shaped {
            self.near.tc(&format!(
                "qdisc add dev eth0 root tbf rate {SHAPED_MBIT}mbit burst 256k latency 20ms\n"
            ))?;
        }
        // The sender's address is the receiver's too: nothing of a transfer passes the pair.
        if old == Wire::Loopback {
            self.far.ip(&format!("address del {NEAR}/32 dev lo\n"))?;
        }
        if wire == Wire::Loopback {
            self.far.ip(&format!("link set lo up\naddress add {NEAR}/32 dev lo\n"))?;
        }
        Ok(())
    }

    /// Packets that the far end's device has taken so far.
    pub(crate) fn packets(&self) -> Result<u64> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let table = self.far.run(read)??;
        let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:"));
        let packets = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
        packets.context("no eth0 in the table of devices")
    }

    /// Starts a program; `input` goes to its standard input.
    pub(crate) fn start(&self, end: End, program: &str, args: &[&str], input: &str) -> Result<Running> {
        let is_near = end == End::Near && self.wire.get() != Wire::Loopback;
        let namespace = if is_near { &self.near } else { &self.far };
        let what = format!("{program} {}", args.join(" "));
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn::dies_with_parent(&mut command);
        spawn::in_namespace(&mut command, namespace.file());
        let before = cpu::cpu_ticks(Path::new("/"));
        let mut child = command.spawn().with_context(|| format!("cannot run {what}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ended early says why on its standard error.
            let _ = stdin.write_all(input.as_bytes());
        }
        let stdout = Collected::of(child.stdout.take());
        let stderr = Collected::of(child.stderr.take());
        Ok(Running { child, what, before, stdout, stderr, over: false })
    }
}

impl Running {
    /// Waits until the program listens on a port, TCP or UDP as the table says (`tcp`, `udp`).
    pub(crate) fn listens(&mut self, table: &str, port: u16) -> Result<()> {
        let path = format!("/proc/{}/net/{table}", self.child.id());
        let wanted = format!(":{port:04X}");
        let listening = if table.starts_with("tcp") { "0A" } else { "07" };
        let begun = Instant::now();
        loop {
            for file in [path.clone(), format!("{path}6")] {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                let found = text.lines().skip(1).any(|line| {
                    let mut words = line.split_ascii_whitespace().skip(1);
                    words.next().is_some_and(|local| local.ends_with(&wanted))
                        && words.nth(1).is_some_and(|state| state == listening)
                });
                if found {
                    return Ok(());
                }
            }
            if begun.elapsed() > DEADLINE {
                bail!("{}: does not listen on port {port}", self.what);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits for a first line of JSON with a number under this key.
    pub(crate) fn said(&self, key: &str) -> Result<u64> {
        let begun = Instant::now();
        loop {
            let text = self.stdout.so_far();
            if let Some((line, _)) = text.split_once('\n') {
                let value: serde_json::Value =
                    serde_json::from_str(line).with_context(|| format!("{}: {line:?}", self.what))?;
                return value[key].as_u64().with_context(|| format!("{}: no {key} in {line:?}", self.what));
            }
            if begun.elapsed() > DEADLINE {
                bail!("{}: says nothing: {}", self.what, self.stderr.so_far());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Result<Ended> {
        let begun = Instant::now();
        let (status, cost) = loop {
            if let Some(ended) = spawn::try_wait_cost(&self.child)? {
                break ended;
            }
            if begun.elapsed() > DEADLINE {
                bail!("{}: did not end within {} s", self.what, DEADLINE.as_secs());
            }
            std::thread::sleep(LOOK_AGAIN);
        };
        self.over = true;
        let since = cpu::ticks_since(&self.before, &cpu::cpu_ticks(Path::new("/")));
        let machine_s = since.busy as f64 / cpu::ticks_per_second() as f64;
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        if !status.success() && !stopped_by_us(status) {
            bail!("{}: {status}: {} {}", self.what, stderr.trim(), stdout.trim());
        }
        Ok(Ended { stdout, cpu_s: cost.as_secs_f64(), machine_s })
    }

    /// Asks a server that never ends by itself to end, and waits.
    pub(crate) fn stop(self) -> Result<Ended> {
        spawn::terminate(&self.child, false)?;
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            // Both fail only when it is gone already.
            let _ = spawn::terminate(&self.child, true);
            let _ = self.child.wait();
        }
    }
}

fn stopped_by_us(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(15)
}

/// What a stream of a program has said so far.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Collected {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let thread = stream.map(|mut stream| {
            std::thread::spawn(move || {
                let mut piece = [0; 16_384];
                while let Ok(count @ 1..) = stream.read(&mut piece) {
                    into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..count]);
                }
            })
        });
        Self { bytes, thread }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// After the program has ended.
    fn whole(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            // A reader that panicked has said what it had.
            let _ = thread.join();
        }
        self.so_far()
    }
}
