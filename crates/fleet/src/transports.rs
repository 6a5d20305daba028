//! The list of transports, and the one that reaches a host.

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::Host;

use super::transport::Transport;
use super::{local, netns, slurm, ssh};

/// All transports.
pub(super) const TRANSPORTS: &[&dyn Transport] = &[&local::Local, &netns::Netns, &ssh::Ssh, &slurm::Slurm];

/// The command line for a host.
pub(super) fn argv(host: &Host, program: &Path) -> Vec<OsString> {
    TRANSPORTS
        .iter()
        .find_map(|transport| transport.argv(host, program))
        .expect("every transport of the model has a line in the list")
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
