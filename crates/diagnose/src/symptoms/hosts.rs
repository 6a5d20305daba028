//! What is read of single hosts without a finding: nodes without work, replicas.
//!
//! In: facts and figures. Out: remarks.

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::Layer;
use linerate_model::remark::Remark;
use linerate_model::snapshot::StorageSubject;
use linerate_model::symptom::{Sign, Symptom};

use crate::context::Context;

/// Nodes that a scheduler gives no work.
pub(super) fn nodes(context: &Context<'_>) -> Vec<Remark> {
    let of = |(host, facts): (&String, &HostFacts)| {
        let text = |key: &str| facts.readings.get(key).map(ToString::to_string).unwrap_or_default();
        let (state, reason) = (text("slurm.state"), text("slurm.reason"));
        let is_out = ["drain", "drng", "down", "fail"].iter().any(|s| state.to_lowercase().contains(s));
        (is_out || !reason.is_empty()).then(|| Remark::Node { host: host.clone(), state, reason })
    };
    context.facts.snapshot.facts.iter().filter_map(of).collect()
}

/// Paths on which the sender's own kernel refuses larger packets, as `ping` reported it.
pub(super) fn local_mtus(context: &Context<'_>) -> Vec<Symptom> {
    let mut found = Vec::new();
    for (host, facts) in &context.facts.snapshot.facts {
        for (key, value) in &facts.readings {
            let to = key.strip_prefix("local_mtu.").and_then(|rest| rest.strip_suffix(".refused_bytes"));
            let bytes = |value: &FactValue| value.number(0).map(|bytes| bytes.clamp(0.0, 65536.0) as u32);
            let Some((to, refused_bytes)) = to.zip(bytes(value)) else { continue };
            let mtu_bytes = facts.readings.get(&format!("local_mtu.{to}.bytes")).and_then(bytes);
            found.push(Symptom {
                from: host.clone(),
                to: to.replace('/', "."),
                layer: Layer::Underlay,
                sign: Sign::LocalMtu { refused_bytes, mtu_bytes },
            });
        }
    }
    found
}

/// Replicas with a known connection.
pub(super) fn replicas(context: &Context<'_>) -> Vec<Remark> {
    let snapshot = context.facts.snapshot;
    let mut remarks = Vec::new();
    for (host, facts) in &snapshot.facts {
        for (key, value) in &facts.readings {
            let Some(minor) = key.strip_prefix("drbd.").and_then(|k| k.strip_suffix(".connection")) else {
                continue;
            };
            let disks = facts.readings.get(&format!("drbd.{minor}.disks"));
            let resync = snapshot.storage.iter().rev().find(|figure| {
                figure.what == StorageSubject::Resync && (figure.host.is_empty() || figure.host == *host)
            });
            remarks.push(Remark::Replica {
                host: host.clone(),
                device: format!("drbd{minor}"),
                connection: value.to_string(),
                disks: disks.map_or(String::new(), ToString::to_string),
                bytes_per_s: resync.map(|figure| figure.bytes_per_s),
            });
        }
    }
    remarks
}
