//! The tables of the TOML format, with positions, before they are checked.

use ::toml::Spanned;
use linerate_model::inventory::Layer;
use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) name: String,
    pub(super) disturbances: Option<std::path::PathBuf>,
    #[serde(default, rename = "group")]
    pub(super) groups: Vec<RawGroup>,
    #[serde(default, rename = "host")]
    pub(super) hosts: Vec<RawHost>,
    #[serde(default)]
    pub(super) notify: Vec<Spanned<RawNotify>>,
    #[serde(default)]
    pub(super) http: Vec<Spanned<RawHttp>>,
    pub(super) throughput: Option<Spanned<RawThroughput>>,
    pub(super) agents: Option<Spanned<RawAgents>>,
}

/// `[agents]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAgents {
    pub(super) listen: Spanned<Vec<Spanned<String>>>,
    pub(super) keys: Spanned<std::path::PathBuf>,
    #[serde(default)]
    pub(super) hosts: Vec<Spanned<String>>,
}

/// `[throughput]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawThroughput {
    pub(super) windows: Spanned<Vec<Spanned<String>>>,
    pub(super) every: Option<Spanned<String>>,
}

/// `[[http]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHttp {
    pub(super) urls: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) via: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) from: Vec<Spanned<String>>,
    pub(super) every: Option<Spanned<String>>,
    pub(super) time: Option<Spanned<String>>,
    pub(super) max_bytes: Option<Spanned<u64>>,
}

/// `[[notify]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNotify {
    pub(super) webhook: Option<Spanned<String>>,
    pub(super) mail: Option<Vec<Spanned<String>>>,
    pub(super) sendmail: Option<Spanned<std::path::PathBuf>>,
    pub(super) command: Option<Spanned<Vec<String>>>,
    pub(super) quiet: Option<Spanned<String>>,
}

/// `[[group]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) kind: String,
    pub(super) parent: Option<Spanned<String>>,
    pub(super) uplink_mbit: Option<Spanned<f64>>,
    pub(super) machine: Option<Spanned<String>>,
}

/// `[[host]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHost {
    pub(super) name: Spanned<String>,
    pub(super) transport: Option<Spanned<String>>,
    pub(super) netns: Option<Spanned<String>>,
    pub(super) ssh: Option<Spanned<RawSsh>>,
    #[serde(default)]
    pub(super) groups: Vec<Spanned<String>>,
    pub(super) state_dir: Option<Spanned<std::path::PathBuf>>,
    pub(super) etc_dir: Option<Spanned<std::path::PathBuf>>,
    pub(super) cache_dir: Option<Spanned<std::path::PathBuf>>,
    #[serde(default, rename = "endpoint")]
    pub(super) endpoints: Vec<RawEndpoint>,
}

/// `ssh = { … }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSsh {
    pub(super) host: Option<String>,
    pub(super) user: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) sudo: Option<bool>,
}

/// `[[host.endpoint]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEndpoint {
    pub(super) address: Spanned<String>,
    pub(super) kind: Option<Spanned<String>>,
    pub(super) port: Option<Spanned<u16>>,
    #[serde(default)]
    pub(super) layer: Option<Layer>,
    pub(super) netns: Option<Spanned<String>>,
    pub(super) link_mbit: Option<Spanned<f64>>,
}
