//! A real Slurm in network namespaces, started as the lab does it, each node with its own network, host name,
//! `/tmp` and `/var/lib`. In: the number of nodes. Out: a cluster that runs clients in the controller's
//! namespace. Nothing of it is left when it is dropped; it touches no configuration of the machine.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use linerate_lab::access::slurm::site::{self, Site, SlurmNode};
use linerate_lab::namespace::Namespace;
use linerate_testkit::{TestPrograms, pause};

/// Far above what a step takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Why there can be no Slurm here.
pub(crate) fn missing() -> Option<String> {
    if let Err(error) = site::missing() {
        return Some(error.to_string());
    }
    programs().missing()
}

pub(crate) fn programs() -> TestPrograms {
    TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"))
}

/// A folder that goes away with its value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that is killed with its value.
pub(crate) struct Daemon(pub(crate) Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running cluster.
pub(crate) struct Cluster {
    site: Site,
    folder: Folder,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // What a test started on the operator's side; the nodes' processes end with their daemons.
        let pids: Vec<String> = processes_in(self.site.control()).iter().map(u32::to_string).collect();
        if !pids.is_empty() {
            let _ = Command::new("kill").arg("-9").args(&pids).stderr(Stdio::null()).status();
        }
    }
}

/// Processes other than this one in a namespace.
pub(crate) fn processes_in(namespace: &Namespace) -> Vec<u32> {
    linerate_testkit::processes_in(namespace.inode().unwrap())
}

fn name_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Inodes of the sockets of a process.
fn sockets_of(pid: u32) -> Vec<String> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let inode = |path: PathBuf| {
        let to = std::fs::read_link(path).ok()?;
        Some(to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    files.filter_map(|f| inode(f.path())).collect()
}

impl Cluster {
    /// A cluster whose nodes `n1`, `n2`, … are idle.
    pub(crate) fn up(nodes: usize) -> Self {
        let folder = Folder(PathBuf::from(format!("/var/tmp/lrs-{}", random())));
        let control = site::control().unwrap();
        let node = |number: usize| {
            let namespace = Namespace::create(&format!("n{number}")).unwrap();
            site::plug(&control, &namespace, number, "eth0").unwrap();
            // A rate that costs little CPU: on a busy machine faster transfers would wait for one and be
            // worth nothing.
            let shaper = "root tbf rate 2gbit burst 256kb latency 10ms";
            control.tc(&format!("qdisc add dev p{number} {shaper}\n")).unwrap();
            // Each node has its own /tmp, /var/lib and persistent settings, as a machine has.
            let own = "for f in /tmp /var/lib /etc/sysctl.d; do mount -t tmpfs node $f || exit; done";
            SlurmNode { namespace, own: own.to_owned() }
        };
        let members = (1..=nodes).map(node).collect();
        let half = nodes.div_ceil(2);
        let topology = format!(
            "SwitchName=leaf1 Nodes=n[1-{half}]\nSwitchName=leaf2 Nodes=n[{}-{nodes}]\nSwitchName=top Switches=leaf[1-2]\n",
            half + 1
        );
        let site = Site::start(&folder.0, control, members, Some(&topology)).unwrap();
        Self { site, folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// A command in the controller's namespace, ready to be started.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = self.site.command(program);
        command
            .args(arguments)
            .env("LINERATE_DATA", self.path("data"))
            .env("LINERATE_NODE", programs().node)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A program to its end, which has to come: Slurm's clients wait for ever where nodes are missing.
    pub(crate) fn run(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Output {
        let mut daemon = Daemon(self.command(program, arguments).spawn().unwrap());
        let collect = |mut stream: Box<dyn Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stream.read_to_end(&mut bytes);
                bytes
            })
        };
        let stdout = collect(Box::new(daemon.0.stdout.take().unwrap()));
        let stderr = collect(Box::new(daemon.0.stderr.take().unwrap()));
        let begun = Instant::now();
        while daemon.0.try_wait().unwrap().is_none() {
            if begun.elapsed() > 2 * PATIENCE {
                let state = self.state();
                drop(daemon);
                let printed = [stdout, stderr].map(|stream| stream.join().unwrap()).concat();
                panic!("{arguments:?} does not end; {state}\n{}", String::from_utf8_lossy(&printed));
            }
            pause();
        }
        let status = daemon.0.wait().unwrap();
        Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }

    /// Nodes, jobs and steps as Slurm's controller has them, with its reasons; and what runs on the
    /// operator's side.
    fn state(&self) -> String {
        let asked = [
            ("sinfo", &["-N", "-o", "%N %T %E"][..]),
            ("squeue", &["-o", "%i %T %r %N"]),
            ("squeue", &["-s", "-o", "%i %j %N"]),
            ("ps", &["-eo", "pid,ppid,stat,wchan:20,etimes,args"]),
        ];
        let words = asked.map(|(program, arguments)| {
            let output = self.command(program, arguments).output().unwrap();
            format!("{program}:\n{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()))
        });
        words.concat()
    }

    /// One of Slurm's clients, to its end.
    pub(crate) fn client(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let output = self.run(program, arguments);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// `linerate` to its end.
    pub(crate) fn linerate(&self, arguments: &[&str]) -> Output {
        self.run(programs().linerate, arguments)
    }

    /// Starts `linerate`.
    pub(crate) fn linerate_started(&self, arguments: &[&str]) -> Daemon {
        let mut child = self.command(programs().linerate, arguments).spawn().unwrap();
        // Read, so that nothing waits for a full pipe.
        for mut stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
        Daemon(child)
    }

    /// Jobs that hold nodes or wait for some.
    pub(crate) fn jobs(&self) -> Vec<String> {
        let (_, listed) = self.client("squeue", &["-h", "-o", "%i %T"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Programs of ours on all nodes: node programs and their guardians.
    pub(crate) fn node_programs(&self) -> usize {
        (0..self.site.nodes()).map(|node| self.named_on(node, "linerate-node").len()).sum()
    }

    /// Node programs of one node, without guardians.
    pub(crate) fn node_programs_on(&self, node: usize) -> Vec<u32> {
        let guards = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.windows(7).any(|w| w == b"\0guard\0")
        };
        let mut programs = self.named_on(node, "linerate-node");
        programs.retain(|pid| !guards(pid));
        programs
    }

    /// Processes of a node whose name begins so.
    pub(crate) fn named_on(&self, node: usize, name: &str) -> Vec<u32> {
        let mut pids = processes_in(self.site.node(node));
        pids.retain(|pid| name_of(*pid).starts_with(name));
        pids
    }

    /// Processes that linerate started on the operator's side, and itself.
    pub(crate) fn clients(&self) -> Vec<u32> {
        self.clients_named(&["linerate", "salloc", "srun", "sbcast", "sh", "scancel", "timeout"])
    }

    /// Those of these names.
    pub(crate) fn clients_named(&self, names: &[&str]) -> Vec<u32> {
        let mut pids = processes_in(self.site.control());
        pids.retain(|pid| names.contains(&name_of(*pid).as_str()));
        pids
    }

    /// TCP connections of a node to other nodes, or those to the operator, without those of Slurm itself.
    pub(crate) fn connections(&self, node: usize, to_operator: bool) -> usize {
        let slurm = |port: &str| u16::from_str_radix(port, 16).is_ok_and(|p| (6817..=6818).contains(&p));
        let table = || std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let table = self.site.node(node).run(table).unwrap();
        let ours = |line: &&str| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let port = |at: usize| fields.get(at)?.split(':').nth(1);
            let of_step = self.owned_by_slurm(node, fields.get(9).copied().unwrap_or_default());
            // The last number of an address comes first.
            let operator = fields.get(2).is_some_and(|to| to.starts_with("FE"));
            let established = fields.get(3) == Some(&"01") && operator == to_operator;
            established && ![port(1), port(2)].into_iter().flatten().any(slurm) && !of_step
        };
        table.lines().filter(ours).count()
    }

    /// Whether a socket belongs to a daemon of Slurm on a node.
    fn owned_by_slurm(&self, node: usize, inode: &str) -> bool {
        self.named_on(node, "slurm").iter().any(|pid| sockets_of(*pid).contains(&inode.to_owned()))
    }

    /// Addresses on which a process on the operator's side listens.
    pub(crate) fn listens(&self, pid: u32) -> Vec<std::net::SocketAddr> {
        let table = || std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let table = self.site.control().run(table).unwrap();
        let own = sockets_of(pid);
        let address = |line: &str| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (ip, port) = fields.get(1)?.split_once(':')?;
            let ip = u32::from_str_radix(ip, 16).ok()?.to_le_bytes();
            let listens =
                fields.get(3) == Some(&"0A") && own.iter().any(|s| Some(&s.as_str()) == fields.get(9));
            listens.then(|| (ip, u16::from_str_radix(port, 16).unwrap()).into())
        };
        table.lines().filter_map(address).collect()
    }

    /// Does something in the network of a node, such as dialling.
    pub(crate) fn on_node<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> T {
        self.site.node(node).run(work).unwrap()
    }

    /// Does something in the controller's network.
    pub(crate) fn on_control<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.site.control().run(work).unwrap()
    }

    /// Configuration of Slurm.
    pub(crate) fn conf(&self) -> PathBuf {
        self.site.conf()
    }

    /// The network of a node.
    pub(crate) fn node(&self, node: usize) -> &Namespace {
        self.site.node(node)
    }

    /// All processes of ours and of Slurm, on both sides.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let nodes = (0..self.site.nodes()).map(|node| self.site.node(node));
        nodes.chain([self.site.control()]).flat_map(processes_in).collect()
    }

    /// The root folder of a node as it can be read from here.
    pub(crate) fn root_of(&self, node: usize) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.site.process_of(node).unwrap()))
    }

    /// Files of ours on a node.
    pub(crate) fn left_on(&self, node: usize) -> Vec<String> {
        if self.site.process_of(node).is_none() {
            return Vec::new();
        }
        let files = std::fs::read_dir(self.root_of(node).join("tmp")).unwrap();
        files
            .filter_map(|f| f.ok()?.file_name().into_string().ok())
            .filter(|f| f.contains("linerate"))
            .collect()
    }

    /// Holds up what reads the order on a node, each time that it begins, until [`Self::let_go`]: the program
    /// that it waits with is held first. Only in the mounts of this node.
    pub(crate) fn hold(&self, node: usize) {
        const PROGRAM: &str = "/usr/bin/timeout";
        let tmp = self.root_of(node).join("tmp");
        for folder in ["real", "held"] {
            std::fs::create_dir(tmp.join(folder)).unwrap();
        }
        std::fs::copy(PROGRAM, tmp.join("real/timeout")).unwrap();
        let held = tmp.join("held/timeout");
        std::fs::write(&held, "#!/bin/sh\nread -r go </tmp/gate\nexec /tmp/real/timeout \"$@\"\n").unwrap();
        std::fs::set_permissions(&held, std::fs::Permissions::from_mode(0o755)).unwrap();
        linerate_testkit::run("mkfifo", &[&tmp.join("gate").display().to_string()]);
        let pid = self.site.process_of(node).unwrap().to_string();
        linerate_testkit::run(
            "nsenter",
            &["-t", &pid, "-m", "mount", "--bind", "/tmp/held/timeout", PROGRAM],
        );
    }

    /// Lets what [`Self::hold`] holds up now go on.
    pub(crate) fn let_go(&self, node: usize) {
        std::fs::write(self.root_of(node).join("tmp/gate"), "go\n").unwrap();
    }

    /// Kills the daemon of a node and everything on it: the machine is gone.
    pub(crate) fn kill_node(&mut self, node: usize) {
        self.site.kill_node(node);
    }
}

fn random() -> String {
    let mut bytes = [0; 4];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    format!("{:08x}", u32::from_ne_bytes(bytes))
}
