//! How a node program is started on a host: the list of transports.
//!
//! What comes in: a host of the inventory and the path of the node program. What goes out: the command line to run here.
//! A transport never speaks the protocol and decides nothing about the host.

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::Host;

use super::{local, netns, slurm, ssh};

/// One way to reach a host. To add one: a file beside this one, a line in [`TRANSPORTS`], a variant in the model.
pub trait Transport: Sync {
    /// Name in the inventory.
    fn name(&self) -> &'static str;
    /// The command line that runs the node program on this host, with its stdin and stdout as the session; `None` when the
    /// host is reached in another way. Where the program first has to get there (ssh) it starts the talk that copies it.
    fn argv(&self, host: &Host, program: &Path) -> Option<Vec<OsString>>;
}

/// All transports.
pub const TRANSPORTS: &[&dyn Transport] = &[&local::Local, &netns::Netns, &ssh::Ssh, &slurm::Slurm];

/// The command line for a host.
pub fn argv(host: &Host, program: &Path) -> Vec<OsString> {
    TRANSPORTS
        .iter()
        .find_map(|transport| transport.argv(host, program))
        .expect("every transport of the model has a line in the list")
}

/// Name of the transport that reaches a host.
pub fn name(host: &Host) -> &'static str {
    let takes = |t: &&&dyn Transport| t.argv(host, Path::new("")).is_some();
    TRANSPORTS.iter().find(takes).map_or("nothing", |t| t.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::inventory::{SshSpec, TransportSpec};

    fn host(transport: TransportSpec) -> Host {
        Host {
            name: "a".into(),
            transport,
            groups: vec![],
            endpoints: vec![],
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        }
    }

    #[test]
    fn each_kind_of_host_is_taken_by_exactly_one_transport() {
        let specs = [
            TransportSpec::Local,
            TransportSpec::Netns { path: "/run/netns/blue".into() },
            TransportSpec::Ssh(SshSpec::parse("blue").unwrap()),
            TransportSpec::Slurm(linerate_model::inventory::SlurmSpec::default()),
        ];
        for spec in specs {
            let host = host(spec);
            let takers = TRANSPORTS.iter().filter(|t| t.argv(&host, Path::new("node")).is_some()).count();
            assert_eq!(takers, 1, "{:?}", host.transport);
        }
        let blue = host(TransportSpec::Netns { path: "/run/netns/blue".into() });
        assert_eq!(argv(&blue, Path::new("/x/node")), ["/x/node", "--netns", "/run/netns/blue"]);
    }
}
