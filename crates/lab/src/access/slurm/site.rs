//! A real Slurm in network namespaces: munge, slurmctld and one slurmd per node, independent of the machine's
//! own configuration.
//!
//! In: a folder, the namespace of the controller, those of the nodes. Out: a cluster whose nodes are idle,
//! and the means to run its clients. Each daemon is the first process of a PID namespace, so that everything
//! that it started ends with it, and it ends with the thread that started it.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_sys::spawn;

use crate::error::{LabError, Result};
use crate::namespace::Namespace;

/// Addresses of the nodes end in 1, 2, …; the controller's in [`CONTROLLER`].
const NET: &str = "10.155.0";
/// Last number of the controller's address.
const CONTROLLER: u8 = 254;
/// Timeout until daemons answer.
const READY_WITHIN: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A node to be.
#[derive(Debug)]
pub struct SlurmNode {
    /// Where it lives; its name is the node's.
    pub namespace: Namespace,
    /// Shell lines that make its files its own, before `slurmd` is started.
    pub own: String,
}

/// A running Slurm. It ends when this is dropped.
#[derive(Debug)]
pub struct Site {
    /// One per node; `None` after it was killed.
    slurmds: Vec<Option<Daemon>>,
    _controller: Daemon,
    _munge: Daemon,
    control: Namespace,
    nodes: Vec<SlurmNode>,
    folder: PathBuf,
}

/// A child that is killed with its value.
#[derive(Debug)]
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An error when a program of Slurm is missing.
pub fn missing() -> Result<()> {
    for (program, package) in [
        ("munged", "munge"),
        ("slurmctld", "slurmctld"),
        ("slurmd", "slurmd"),
        ("srun", "slurm-client"),
        ("sbcast", "slurm-client"),
    ] {
        if found(program).is_none() {
            return Err(LabError::MissingProgram { program: program.into(), package });
        }
    }
    Ok(())
}

/// Where the shell finds a program.
#[must_use]
pub fn found(program: &str) -> Option<String> {
    let asked = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?.trim().to_owned();
    (asked.status.success() && !path.is_empty()).then_some(path)
}

/// The controller's namespace with the bridge of the management network.
pub fn control() -> Result<Namespace> {
    let control = Namespace::create("ctl")?;
    control.ip(&format!(
        "link add br0 type bridge\naddress add {NET}.{CONTROLLER}/24 dev br0\nlink set br0 up\n"
    ))?;
    Ok(control)
}

/// Connects a node with the management network. Its port there is `p` and its number.
pub fn plug(control: &Namespace, node: &Namespace, number: usize, device: &str) -> Result<()> {
    let there = node.path();
    control.ip(&format!(
        "link add p{number} type veth peer name {device} netns {}\nlink set p{number} master br0 up\n",
        there.display()
    ))?;
    node.ip(&format!("address add {NET}.{number}/24 dev {device}\nlink set {device} up\n"))
}

impl Site {
    /// Starts everything and waits until all nodes are idle. `topology` is the text of a `topology.conf`.
    ///
    /// # Errors
    /// A program is missing, or the nodes did not become idle.
    pub fn start(
        folder: &Path,
        control: Namespace,
        nodes: Vec<SlurmNode>,
        topology: Option<&str>,
    ) -> Result<Self> {
        for part in ["", "munge", "etc", "state", "spool", "log"] {
            let path = folder.join(part);
            let step = format!("making the folder {}", path.display());
            std::fs::create_dir_all(&path)
                .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
                .map_err(LabError::at(step))?;
        }
        configure(folder, &nodes, topology)?;
        let munge = munge(folder)?;
        let conf = quoted(&folder.join("etc/slurm.conf"));
        let controller = daemon(&control, "ctl", &format!("exec slurmctld -D -c -f {conf}"))?;
        let slurmds = nodes
            .iter()
            .map(|node| {
                let name = &node.namespace.name;
                let line = format!("{}\nexec slurmd -D -N {name} -f {conf}", node.own);
                daemon(&node.namespace, name, &line).map(Some)
            })
            .collect::<Result<_>>()?;
        let site =
            Self { slurmds, _controller: controller, _munge: munge, control, nodes, folder: folder.into() };
        let idle = format!("idle {}", site.nodes.len());
        wait("not all nodes of Slurm are idle", || {
            let asked = site.command("sinfo").args(["-h", "-o", "%T %D"]).output();
            asked.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).trim() == idle)
        })?;
        Ok(site)
    }

    /// The controller's namespace.
    #[must_use]
    pub fn control(&self) -> &Namespace {
        &self.control
    }

    /// The namespace of a node, from 0.
    #[must_use]
    pub fn node(&self, node: usize) -> &Namespace {
        &self.nodes[node].namespace
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Its configuration.
    #[must_use]
    pub fn conf(&self) -> PathBuf {
        self.folder.join("etc/slurm.conf")
    }

    /// A program in the controller's namespace, ready to be started.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf()).stdin(Stdio::null());
        spawn::in_namespace(&mut command, self.control.file());
        command
    }

    /// A process that has the files of a node, from 0; `None` after it was killed.
    #[must_use]
    pub fn process_of(&self, node: usize) -> Option<u32> {
        Some(self.slurmds.get(node)?.as_ref()?.0.id())
    }

    /// Kills `slurmd` of a node and with it everything that it started there: the machine is gone.
    pub fn kill_node(&mut self, node: usize) {
        self.slurmds[node] = None;
    }
}

fn wait(what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > READY_WITHIN {
            return Err(LabError::NotReady { what: what.into(), seconds: READY_WITHIN.as_secs() });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn configure(folder: &Path, nodes: &[SlurmNode], topology: Option<&str>) -> Result<()> {
    use std::fmt::Write as _;
    let lab = folder.display();
    let mut conf = format!(
        "ClusterName=lab\nSlurmctldHost=ctl({NET}.{CONTROLLER})\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={lab}/munge/socket\nCredType=cred/munge\n\
         StateSaveLocation={lab}/state\nSlurmdSpoolDir={lab}/spool/%n\n\
         SlurmctldPidFile={lab}/slurmctld.pid\nSlurmdPidFile={lab}/slurmd-%n.pid\n\
         SlurmctldLogFile={lab}/log/slurmctld.log\nSlurmdLogFile={lab}/log/slurmd-%n.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nMpiDefault=none\nReturnToService=2\n\
         SlurmdParameters=config_overrides\nSlurmdTimeout=300\nMessageTimeout=5\nKillWait=2\n"
    );
    for (number, node) in (1..).zip(nodes) {
        let _ = writeln!(
            conf,
            "NodeName={} NodeAddr={NET}.{number} CPUs=2 RealMemory=1000 State=UNKNOWN",
            node.namespace.name
        );
    }
    conf += "PartitionName=debug Nodes=ALL Default=YES MaxTime=60 State=UP\n";
    let mut files = vec![("cgroup.conf", "CgroupPlugin=cgroup/v1\n".to_owned())];
    if let Some(topology) = topology {
        conf += "TopologyPlugin=topology/tree\n";
        files.push(("topology.conf", topology.to_owned()));
    }
    files.push(("slurm.conf", conf));
    files.into_iter().try_for_each(|(name, text)| {
        let path = folder.join("etc").join(name);
        std::fs::write(&path, text).map_err(LabError::at(format!("writing {}", path.display())))
    })
}

fn munge(folder: &Path) -> Result<Daemon> {
    let folder = folder.join("munge");
    let key = folder.join("key");
    let step = || format!("making the key of munge in {}", folder.display());
    let mut bytes = vec![0; 1024];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .and_then(|()| std::fs::write(&key, bytes))
        .and_then(|()| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o400)))
        .map_err(LabError::at(step()))?;
    let at = |option: &str, name: &str| format!("--{option}={}", quoted(&folder.join(name)));
    let line = [
        "exec munged --foreground --force".to_owned(),
        at("key-file", "key"),
        at("socket", "socket"),
        at("pid-file", "pid"),
        at("log-file", "log"),
        at("seed-file", "seed"),
    ]
    .join(" ");
    let daemon = started(Command::new("unshare"), "munge", &line)?;
    wait("munge does not listen", || folder.join("socket").exists())?;
    Ok(daemon)
}

/// A shell command in a namespace, with a host name, mounts and processes of its own.
fn daemon(namespace: &Namespace, name: &str, line: &str) -> Result<Daemon> {
    let mut command = Command::new("unshare");
    spawn::in_namespace(&mut command, namespace.file());
    started(command, name, &format!("hostname {name} || exit\n{line}"))
}

fn started(mut unshare: Command, name: &str, line: &str) -> Result<Daemon> {
    unshare
        .args(["--uts", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc"])
        .args(["--kill-child=SIGKILL", "sh", "-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    spawn::killed_with_parent(&mut unshare);
    spawn::without_inherited_descriptors(&mut unshare);
    unshare.spawn().map(Daemon).map_err(LabError::at(format!("starting the daemon of {name}")))
}

/// A word of a shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}
