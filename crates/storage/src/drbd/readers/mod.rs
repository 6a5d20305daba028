//! Readers of DRBD's states: one file each, one line in [`READERS`]. Lines of no meaning here are passed
//! over: later releases add words.

mod events2;
mod json;
mod proc;
mod reader;
mod status;

use linerate_model::drbd::Replica;

use reader::StateReader;

pub use proc::{ProcDevice, read_proc};

/// All of them.
const READERS: &[&dyn StateReader] = &[&events2::Events2, &json::Json, &status::Status];

/// The resources of a host from whatever it printed; none when nothing is understood.
#[must_use]
pub fn read_state(host: &str, text: &str) -> Vec<Replica> {
    let reader = READERS.iter().find(|reader| reader.is_mine(text));
    let mut replicas = reader.map_or_else(Vec::new, |reader| reader.read(text));
    for replica in &mut replicas {
        host.clone_into(&mut replica.host);
    }
    replicas
}

/// Names of the resources in resource files, as `drbdadm dump` writes them.
#[must_use]
pub fn read_names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        Some(line.trim().strip_prefix("resource ")?.split_once('{')?.0.trim().trim_matches('"').to_owned())
    };
    text.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same moment of a first synchronisation, as 8.4.11 printed it.
    const EVENTS2: &str = include_str!("../fixtures/events2-now.txt");
    const STATUS: &str = include_str!("../fixtures/status-verbose.txt");
    /// Made after the fields that the users' guide of DRBD 9 and `drbdsetup-status(8)` list: the module of 9
    /// is in no distribution's kernel.
    const JSON: &str = include_str!("../fixtures/status-9.json");

    #[test]
    fn each_text_has_one_reader() {
        let texts = [EVENTS2, JSON, STATUS];
        assert_eq!(texts.len(), READERS.len(), "a new reader needs a text here");
        for (at, text) in texts.iter().enumerate() {
            let mine: Vec<bool> = READERS.iter().map(|reader| reader.is_mine(text)).collect();
            assert_eq!(mine, (0..READERS.len()).map(|reader| reader == at).collect::<Vec<_>>());
            assert!(!read_state("n1", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn events2_and_status_agree() {
        for text in [EVENTS2, STATUS] {
            let replicas = read_state("n1", text);
            assert_eq!(replicas.iter().map(|r| r.resource.as_str()).collect::<Vec<_>>(), ["r0", "r1"]);
            let r0 = &replicas[0];
            assert_eq!(
                (r0.host.as_str(), r0.role.as_str(), r0.volumes[0].disk.as_str()),
                ("n1", "Primary", "UpToDate")
            );
            assert_eq!((r0.volumes[0].size_kib, r0.volumes[0].minor), (409_548, 0));
            let peer = &r0.peers[0];
            assert_eq!((peer.connection.as_str(), peer.role.as_str()), ("Connected", "Secondary"));
            assert_eq!(
                (peer.volumes[0].replication.as_str(), peer.volumes[0].disk.as_str()),
                ("SyncSource", "Inconsistent")
            );
            assert!(peer.volumes[0].is_syncing() && peer.volumes[0].out_of_sync_kib > 350_000);
        }
    }

    #[test]
    fn json_of_9_has_all_peers() {
        let replicas = read_state("n1", JSON);
        let peers: Vec<(&str, &str, u64)> = replicas[0]
            .peers
            .iter()
            .map(|p| {
                (p.name.as_str(), p.connection.as_str(), p.volumes.iter().map(|v| v.out_of_sync_kib).sum())
            })
            .collect();
        assert_eq!(peers, [("n2", "Connected", 0), ("n3", "Connecting", 12_288)]);
    }

    #[test]
    fn torn_and_strange_texts_do_no_harm() {
        for text in [EVENTS2, STATUS, JSON] {
            for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)).step_by(7) {
                for reader in READERS {
                    drop(reader.read(&text[..end]));
                }
            }
        }
        for text in
            ["", "\0", "exists", "exists device", "[{}]", "{\"a\":[]}", "x role:", "  volume:9999999999999"]
        {
            drop(read_state("n1", text));
            drop(read_proc(text));
        }
    }
}
