//! An OCI image archive (image-spec 1.1): `docker load`, `podman load` and `skopeo` read it. One layer a
//! machine, with the program alone and nothing around it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::release::{Release, Tree, tar};
use crate::shell::{output, sh};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

pub(super) fn pack(release: &Release, trees: &[&Tree]) -> Result<()> {
    let layout = release.file("oci");
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let manifests: Vec<Value> =
        trees.iter().map(|tree| manifest(release, tree, &layout)).collect::<Result<_>>()?;
    fs::write(layout.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    fs::write(layout.join("index.json"), index.to_string())?;
    let archive = release.file(&format!("linerate-{}-oci.tar", release.version));
    let (archive, layout) = (archive.display().to_string(), layout.display().to_string());
    let time = format!("--mtime=@{}", release.time_s);
    sh(
        "tar",
        &[
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            &time,
            "-cf",
            &archive,
            "-C",
            &layout,
            ".",
        ],
    )
}

/// Writes layer, configuration and manifest of one machine; gives the manifest's line in the index.
fn manifest(release: &Release, tree: &Tree, layout: &Path) -> Result<Value> {
    let architecture = match tree.machine.name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("OCI's name of {other} is not known"),
    };
    let packed = layout.join(format!("{architecture}.tar.gz"));
    tar(release, &tree.root, "usr/bin", &packed)?;
    let packed_path = packed.display().to_string();
    let unpacked = sha256(&output("sh", &["-c", "gunzip -c \"$1\" | sha256sum", "sh", &packed_path])?)?;
    let layer = keep(layout, LAYER, &packed)?;
    let platform = json!({"architecture": architecture, "os": "linux"});
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/linerate"],
            "Env": ["LINERATE_DATA=/data"],
            "Labels": {
                "org.opencontainers.image.title": "linerate",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{unpacked}")]},
    });
    let config = keep_json(layout, CONFIG, &config)?;
    let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
    let mut line = keep_json(layout, MANIFEST, &manifest)?;
    line["platform"] = platform;
    line["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    Ok(line)
}

fn keep_json(layout: &Path, media: &str, value: &Value) -> Result<Value> {
    let file = layout.join("next.json");
    fs::write(&file, value.to_string())?;
    keep(layout, media, &file)
}

/// Renames a file to its hash; gives its descriptor.
fn keep(layout: &Path, media: &str, file: &Path) -> Result<Value> {
    let size = fs::metadata(file)?.len();
    let digest = sha256(&output("sha256sum", &[&file.display().to_string()])?)?;
    fs::rename(file, layout.join("blobs/sha256").join(&digest))?;
    Ok(json!({"mediaType": media, "digest": format!("sha256:{digest}"), "size": size}))
}

/// The first word of what `sha256sum` prints.
fn sha256(line: &str) -> Result<String> {
    line.split_whitespace().next().map(str::to_owned).context("sha256sum printed nothing")
}
