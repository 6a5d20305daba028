//! What Prometheus lacks, with the command that supplies it, the most informative first.

use linerate_model::imported::Missing;
use linerate_model::snapshot::Snapshot;

/// `(metrics begin so, what is missing without them, command)`.
const NEEDS: [(&str, &str, &str); 5] = [
    (
        "node_",
        "metrics of node_exporter",
        "`linerate survey HOST HOST`; or scrape node_exporter on each host",
    ),
    ("node_netstat_Tcp_RetransSegs", "retransmissions", "`nstat -az` on each host"),
    ("node_disk_", "waits of drives", "`iostat -x 1 60` on each host"),
    ("node_sysctl_", "settings of the kernel (collector sysctl)", "`sysctl -a` on each host, as root"),
    ("node_ethtool_", "counters of drivers (collector ethtool)", "`ethtool -S NIC` on each host"),
];

/// What these metrics do not show.
pub(super) fn of(names: &[String], snapshot: &Snapshot) -> Vec<Missing> {
    let mut missing = crate::missing::of(snapshot);
    for (head, what, command) in NEEDS {
        if !names.iter().any(|name| name.starts_with(head)) {
            missing.push(Missing { what: what.to_owned(), command: command.to_owned() });
        }
    }
    missing
}
