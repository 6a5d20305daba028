//! `drbdsetup status --json` of DRBD 9. 8.4 has no such output.

use linerate_model::drbd::{DrbdVolume, Peer, PeerVolume, Replica};
use serde_json::Value;

use super::reader::StateReader;

/// The reader.
pub(super) struct Json;

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn small(value: &Value, name: &str) -> u32 {
    u32::try_from(number(value, name)).unwrap_or(u32::MAX)
}

fn list<T>(value: &Value, name: &str, each: impl Fn(&Value) -> T) -> Vec<T> {
    value.get(name).and_then(Value::as_array).map_or_else(Vec::new, |all| all.iter().map(each).collect())
}

impl StateReader for Json {
    fn is_mine(&self, text: &str) -> bool {
        text.trim_start().starts_with('[')
    }

    fn read(&self, text: &str) -> Vec<Replica> {
        let Ok(Value::Array(all)) = serde_json::from_str(text) else { return Vec::new() };
        all.iter().map(replica).collect()
    }
}

fn replica(value: &Value) -> Replica {
    Replica {
        host: String::new(),
        resource: text(value, "name"),
        role: text(value, "role"),
        volumes: list(value, "devices", |device| DrbdVolume {
            number: small(device, "volume"),
            minor: small(device, "minor"),
            disk: text(device, "disk-state"),
            size_kib: number(device, "size"),
        }),
        peers: list(value, "connections", |connection| Peer {
            name: text(connection, "name"),
            connection: text(connection, "connection-state"),
            role: text(connection, "peer-role"),
            congested: connection.get("congested").and_then(Value::as_bool).unwrap_or_default(),
            volumes: list(connection, "peer_devices", |device| PeerVolume {
                number: small(device, "volume"),
                replication: text(device, "replication-state"),
                disk: text(device, "peer-disk-state"),
                out_of_sync_kib: number(device, "out-of-sync"),
                sent_kib: number(device, "sent"),
            }),
        }),
    }
}
