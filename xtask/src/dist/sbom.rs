//! What is linked into `linerate`, as CycloneDX 1.5: each crate with version, licence and package URL.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::release::Release;
use crate::shell::output;

pub(super) fn write(release: &Release) -> Result<()> {
    let metadata: Value =
        serde_json::from_str(&output("cargo", &["metadata", "--format-version", "1", "--locked"])?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    // What is linked, without what only tests and builds need.
    let format = ["--prefix", "none", "--format", "{p}", "--locked"];
    let mut arguments = vec!["tree", "-p", "linerate", "-e", "normal"];
    arguments.extend(format);
    let tree = output("cargo", &arguments)?;
    let linked: BTreeSet<String> = tree.lines().filter_map(named).collect();
    let components: Vec<Value> = packages
        .iter()
        .filter_map(|package| {
            let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
            linked.contains(&format!("{name} {version}")).then(|| {
                json!({
                    "type": "library",
                    "name": name,
                    "version": version,
                    "purl": format!("pkg:cargo/{name}@{version}"),
                    "licenses": [{"expression": package["license"]}],
                })
            })
        })
        .collect();
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "linerate", "version": release.version}},
        "components": components,
    });
    println!("{} crates are linked", components.len());
    let file = release.file(&format!("linerate-{}.cdx.json", release.version));
    Ok(fs::write(file, serde_json::to_string_pretty(&sbom)?)?)
}

/// `name version` of a line such as `serde v1.0.0 (proc-macro)`.
fn named(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
}
