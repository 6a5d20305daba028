//! What was understood, written in our own format. What comes in: groups and hosts. What goes out: TOML that
//! reads back the same, with the remarks as comments.

use std::fmt::Write as _;

use linerate_model::agents::AgentsSpec;
use linerate_model::download::DownloadSpec;
use linerate_model::inventory::{Endpoint, Group, Layer, TransportSpec};
use linerate_model::notify::{NotifyTarget, NotifyVia};
use linerate_model::rounds::ThroughputRounds;

use super::draft::{ConnectMethod, HostRead, SshAccess, Understood};

/// The whole as TOML. Writing into a `String` cannot fail, so that the results are dropped.
pub fn toml(understood: &Understood) -> String {
    let mut text = format!("# Written by `linerate inventory`, read as {}.\n", understood.format);
    for (what, remarks) in [("left out", &understood.ignored), ("note", &understood.notes)] {
        for remark in remarks {
            let origin = if remark.line > 0 { format!("line {}, ", remark.line) } else { String::new() };
            let _ = writeln!(text, "# {what}: {origin}{}: {}", remark.what, remark.why);
        }
    }
    if !understood.name.is_empty() {
        pair(&mut text, "name", &understood.name);
    }
    if let Some(path) = &understood.disturbances {
        pair(&mut text, "disturbances", &path.display().to_string());
    }
    understood.groups.iter().for_each(|group| write_group(&mut text, group));
    understood.hosts.iter().for_each(|host| write_host(&mut text, host));
    understood.notify.iter().for_each(|target| write_notify(&mut text, target));
    understood.downloads.iter().for_each(|spec| write_downloads(&mut text, spec));
    understood.throughput.iter().for_each(|rounds| write_throughput(&mut text, rounds));
    understood.agents.iter().for_each(|agents| write_agents(&mut text, agents));
    text
}

fn write_downloads(text: &mut String, spec: &DownloadSpec) {
    text.push_str("\n[[http]]\n");
    let _ = writeln!(text, "urls = {}", list(&spec.urls));
    for (key, names) in [("via", &spec.via), ("from", &spec.from)] {
        if !names.is_empty() {
            let _ = writeln!(text, "{key} = {}", list(names));
        }
    }
    pair(text, "every", &format!("{}s", spec.every_s));
    pair(text, "time", &format!("{}ms", spec.timeout_ms));
    let _ = writeln!(text, "max_bytes = {}", spec.bytes_max);
}

fn write_throughput(text: &mut String, rounds: &ThroughputRounds) {
    text.push_str("\n[throughput]\n");
    let windows: Vec<String> = rounds.windows.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "windows = {}", list(&windows));
    pair(text, "every", &format!("{}s", rounds.every_s));
}

fn write_agents(text: &mut String, agents: &AgentsSpec) {
    text.push_str("\n[agents]\n");
    let listen: Vec<String> = agents.listen.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "listen = {}", list(&listen));
    pair(text, "keys", &agents.keys.display().to_string());
    if !agents.hosts.is_empty() {
        let _ = writeln!(text, "hosts = {}", list(&agents.hosts));
    }
}

fn list(words: &[String]) -> ::toml::Value {
    ::toml::Value::Array(words.iter().map(|word| ::toml::Value::String(word.clone())).collect())
}

fn write_notify(text: &mut String, target: &NotifyTarget) {
    text.push_str("\n[[notify]]\n");
    match &target.via {
        NotifyVia::Webhook(url) => pair(text, "webhook", &url.to_string()),
        NotifyVia::Mail { to, sendmail } => {
            let _ = writeln!(text, "mail = {}", list(to));
            pair(text, "sendmail", &sendmail.display().to_string());
        }
        NotifyVia::Command(command) => {
            let _ = writeln!(text, "command = {}", list(command));
        }
    }
    if let Some(quiet) = target.quiet {
        pair(text, "quiet", &quiet.to_string());
    }
}

fn pair(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "{key} = {}", ::toml::Value::String(value.to_owned()));
}

fn write_group(text: &mut String, group: &Group) {
    text.push_str("\n[[group]]\n");
    pair(text, "name", &group.name);
    pair(text, "kind", &group.kind);
    if let Some(parent) = &group.parent {
        pair(text, "parent", parent);
    }
    if let Some(bps) = group.uplink_bps {
        let _ = writeln!(text, "uplink_mbit = {}", ::toml::Value::Float(bps / 1e6));
    }
    if let Some(machine) = &group.machine {
        pair(text, "machine", machine);
    }
}

fn write_host(text: &mut String, host: &HostRead) {
    text.push_str("\n[[host]]\n");
    pair(text, "name", &host.name);
    match &host.way {
        ConnectMethod::Ssh(SshAccess { address, user, port }) => {
            write_ssh(text, address.as_deref(), user.as_deref(), *port, true);
        }
        ConnectMethod::Known(spec) => write_transport(text, &host.name, spec),
    }
    if !host.groups.is_empty() {
        let list = host.groups.iter().map(|group| ::toml::Value::String(group.clone())).collect();
        let _ = writeln!(text, "groups = {}", ::toml::Value::Array(list));
    }
    let folders =
        [("state_dir", &host.state_dir), ("etc_dir", &host.etc_dir), ("cache_dir", &host.cache_dir)];
    for (key, path) in folders {
        if let Some(path) = path {
            pair(text, key, &path.display().to_string());
        }
    }
    host.endpoints.iter().for_each(|endpoint| write_endpoint(text, endpoint, &host.way));
}

fn write_transport(text: &mut String, name: &str, spec: &TransportSpec) {
    match spec {
        TransportSpec::Local => pair(text, "transport", "local"),
        TransportSpec::Netns { path } => {
            pair(text, "transport", "netns");
            pair(text, "netns", &path.display().to_string());
        }
        TransportSpec::Ssh(spec) => {
            let host = Some(spec.host.as_str()).filter(|host| *host != name);
            write_ssh(text, host, spec.user.as_deref(), spec.port, spec.sudo);
        }
        TransportSpec::Slurm(_) => pair(text, "transport", "slurm"),
        // Implied by the kind of its endpoints.
        TransportSpec::Iperf3 { .. } => {}
    }
}

/// Keys of a host over ssh. Left out is what ssh knows by the name of the host.
fn write_ssh(text: &mut String, host: Option<&str>, user: Option<&str>, port: Option<u16>, sudo: bool) {
    pair(text, "transport", "ssh");
    let quoted = |key: &str, value: &str| format!("{key} = {}", ::toml::Value::String(value.to_owned()));
    let parts = [
        host.map(|host| quoted("host", host)),
        user.map(|user| quoted("user", user)),
        port.map(|port| format!("port = {port}")),
        (!sudo).then(|| "sudo = false".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        let _ = writeln!(text, "ssh = {{ {} }}", parts.join(", "));
    }
}

fn write_endpoint(text: &mut String, endpoint: &Endpoint, method: &ConnectMethod) {
    text.push_str("\n[[host.endpoint]]\n");
    pair(text, "address", &endpoint.address.to_string());
    if let ConnectMethod::Known(TransportSpec::Iperf3 { port }) = method {
        pair(text, "kind", "iperf3");
        let _ = writeln!(text, "port = {port}");
    }
    if endpoint.layer != Layer::Underlay {
        pair(text, "layer", &endpoint.layer.to_string());
    }
    if let Some(netns) = &endpoint.netns {
        pair(text, "netns", &netns.display().to_string());
    }
    if let Some(bps) = endpoint.link_bps {
        let _ = writeln!(text, "link_mbit = {}", ::toml::Value::Float(bps / 1e6));
    }
}
