//! Each host and hypervisor is a node of a Slurm cluster of the lab's own: `linerate` gets them by `salloc`,
//! copies by `sbcast` and starts by `srun`, as on a real one.
//!
//! Slurm has a management network of its own (`mgt0` on every machine), as most clusters do: no fault can cut
//! the access to a host, and nothing of Slurm runs over the links that are measured. The operator may be
//! anywhere: Slurm's clients are wrappers that enter the namespace of the controller. Needs root, as `slurmd`
//! does.

use std::any::Any;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use linerate_sys::sandbox;

use self::site::{Site, SlurmNode, quoted};
use super::transport::{LabAccess, LabTransport};
use crate::cluster::Cluster;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;

pub mod site;

/// Slurm's clients that `linerate` calls.
const CLIENTS: &[&str] = &["salloc", "srun", "sbcast", "scontrol", "sinfo", "squeue", "scancel"];
/// The device of the management network.
const MANAGEMENT: &str = "mgt0";

/// See the file's head.
#[derive(Debug)]
pub(super) struct Slurm;

impl LabTransport for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn prepare(&self, cluster: &Cluster) -> Result<LabAccess> {
        if !sandbox::is_root() {
            return Err(LabError::Unknown("--via slurm needs root: slurmd and munge are started".into()));
        }
        site::missing()?;
        let folder = cluster.folder.join("slurm");
        let control = site::control()?;
        let mut nodes = Vec::new();
        for namespace in cluster.hosts.iter().map(|(_, n)| n).chain(&cluster.hypervisors) {
            site::plug(&control, namespace, nodes.len() + 1, MANAGEMENT)?;
            let own = include_str!("slurm/node.sh").replace("LAB", &quoted(&cluster.folder));
            nodes.push(SlurmNode { namespace: namespace.again()?, own });
        }
        let site = Site::start(&folder, control, nodes, None)?;
        let bin = folder.join("bin");
        std::fs::create_dir_all(&bin)
            .map_err(LabError::at(format!("making the folder {}", bin.display())))?;
        for client in CLIENTS {
            wrapper(&bin, client, site.control())?;
        }
        let inventory = folder.join("inventory.toml");
        let text = cluster.inventory(|_| "transport = \"slurm\"\n".to_owned());
        std::fs::write(&inventory, text).map_err(LabError::at(format!("writing {}", inventory.display())))?;
        let mut path = bin.into_os_string();
        if let Some(old) = std::env::var_os("PATH") {
            path.push(":");
            path.push(old);
        }
        let environment = vec![("PATH", path), ("SLURM_CONF", site.conf().into())];
        Ok(LabAccess { inventory, environment, running: Some(Arc::new(site) as Arc<dyn Any + Send + Sync>) })
    }
}

/// A client of Slurm that works from every network namespace of this machine.
fn wrapper(bin: &Path, client: &str, control: &Namespace) -> Result<()> {
    let program = site::found(client)
        .ok_or_else(|| LabError::MissingProgram { program: client.into(), package: "slurm-client" })?;
    let path = bin.join(client);
    let text = format!(
        "#!/bin/sh\nexec nsenter --net={} {} \"$@\"\n",
        control.path().display(),
        quoted(Path::new(&program))
    );
    std::fs::write(&path, text)
        .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)))
        .map_err(LabError::at(format!("writing {}", path.display())))
}
