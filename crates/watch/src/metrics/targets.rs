//! The hosts of an inventory as targets of Prometheus (`file_sd_configs`).

use linerate_model::inventory::{Host, Inventory, TransportSpec};
use serde_json::{Value, json};

/// Port of node_exporter.
const PORT: u16 = 9100;

/// A list with one entry for each host that has a node program; its groups are labels.
#[must_use]
pub fn targets(inventory: &Inventory) -> Value {
    let has_node = |host: &&Host| !matches!(host.transport, TransportSpec::Iperf3 { .. });
    let target = |host: &Host| {
        let address = host.endpoints.first().map_or_else(|| host.name.clone(), |end| end.address.to_string());
        let address = if address.contains(':') { format!("[{address}]") } else { address };
        let mut labels = json!({ "host": host.name });
        // A label for each kind of group, such as hypervisor or rack.
        for group in inventory.groups_of(&host.name) {
            labels[label(&group.kind)] = json!(group.name);
        }
        json!({ "targets": [format!("{address}:{PORT}")], "labels": labels })
    };
    inventory.hosts.iter().filter(has_node).map(target).collect()
}

/// A kind of groups as a label, which has letters, digits and `_` alone.
fn label(kind: &str) -> String {
    let letters = kind.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    format!("group_{}", letters.collect::<String>())
}
