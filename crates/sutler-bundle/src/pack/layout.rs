//! Writes an OCI image layout: configuration, manifest and index in one tar file.
//!
//! The layers come from `layer.rs` and `base.rs`.

use super::base::{self, BaseImage};
use super::layer::{DISPATCHER, PLACE};
use super::{PackError, PackedImage, io};
use crate::folder::FoundManifest;
use crate::manifest::{Entrypoint, Manifest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use tar::{Builder, EntryType, Header};

/// Label that marks an image as a bundle: the manifest, in Base64.
pub const SPEC_LABEL: &str = "com.redhat.apb.spec";

/// Label with the version of the contract between bundle and broker.
pub const RUNTIME_LABEL: &str = "com.redhat.apb.runtime";

/// Label with the name of the manifest file, which decides how it is read.
pub const FILE_LABEL: &str = "sutler.bundle.file";

/// Constant creation time, so that equal bundles give equal bytes.
const CREATED: &str = "1970-01-01T00:00:00Z";

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// Parts of an image.
pub(super) struct Image<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) found: &'a FoundManifest,
    pub(super) layer: Vec<u8>,
    pub(super) base: Option<BaseImage>,
    pub(super) architecture: &'a str,
    pub(super) reference: &'a str,
}

impl Image<'_> {
    /// Writes the layout.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<PackedImage, PackError> {
        let config = text(&self.config());
        let mut layers = match &self.base {
            Some(base) => base.layers.clone(),
            None => Vec::new(),
        };
        layers.push(descriptor(LAYER_TYPE, &self.layer));
        let image = text(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": descriptor(CONFIG_TYPE, config.as_bytes()),
            "layers": layers,
            "annotations": self.annotations(),
        }));
        let mut entry = descriptor(MANIFEST_TYPE, image.as_bytes());
        entry["annotations"] = json!({
            "org.opencontainers.image.ref.name": self.reference,
            "io.containerd.image.name": self.reference,
        });
        let index = text(&json!({
            "schemaVersion": 2,
            "mediaType": INDEX_TYPE,
            "manifests": [entry],
        }));
        let mut archive = ImageLayout(Builder::new(out));
        archive.file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        archive.file("index.json", index.as_bytes())?;
        for blob in [image.as_bytes(), config.as_bytes(), &self.layer] {
            archive.file(&format!("blobs/sha256/{}", digest(blob)), blob)?;
        }
        let mut bytes = (image.len() + config.len() + self.layer.len()) as u64;
        if let Some(base) = &self.base {
            bytes += archive.base(base)?;
        }
        archive.0.finish().map_err(io("writing the image"))?;
        Ok(PackedImage {
            digest: format!("sha256:{}", digest(image.as_bytes())),
            reference: self.reference.to_owned(),
            layers: layers.len(),
            bytes,
        })
    }

    fn config(&self) -> Value {
        let mut config = match &self.base {
            Some(base) => base.config.clone(),
            None => json!({
                "architecture": self.architecture,
                "os": "linux",
                "config": {},
                "rootfs": { "type": "layers", "diff_ids": [] },
            }),
        };
        config["created"] = json!(CREATED);
        let id = format!("sha256:{}", digest(&self.layer));
        push(&mut config["rootfs"]["diff_ids"], json!(id));
        let created_by = "sutler bundle pack";
        push(
            &mut config["history"],
            json!({ "created": CREATED, "created_by": created_by }),
        );
        if !config["config"].is_object() {
            config["config"] = json!({});
        }
        let settings = &mut config["config"];
        if !settings["Labels"].is_object() {
            settings["Labels"] = json!({});
        }
        for (label, value) in self.labels() {
            settings["Labels"][label] = json!(value);
        }
        if let Some(entrypoint) = self.entrypoint() {
            settings["Entrypoint"] = json!(entrypoint);
            settings["Cmd"] = Value::Null;
            settings["WorkingDir"] = json!("/");
        }
        config
    }

    fn labels(&self) -> [(&'static str, String); 3] {
        [
            (SPEC_LABEL, STANDARD.encode(&self.found.bytes)),
            (RUNTIME_LABEL, self.manifest.runtime.to_string()),
            (FILE_LABEL, self.found.file.to_owned()),
        ]
    }

    /// Entrypoint of the image; playbooks use the one of their base.
    fn entrypoint(&self) -> Option<Vec<String>> {
        match &self.manifest.entry {
            Entrypoint::Scripts => Some(vec![format!("/{DISPATCHER}")]),
            Entrypoint::Playbooks => None,
            Entrypoint::Program(words) => {
                let mut words = words.clone();
                if let Some(program) = words.first_mut()
                    && program.contains('/')
                    && !program.starts_with('/')
                {
                    let below = program.strip_prefix("./").unwrap_or(program);
                    *program = format!("/{PLACE}/{below}");
                }
                Some(words)
            }
        }
    }

    fn annotations(&self) -> Map<String, Value> {
        let manifest = self.manifest;
        let mut annotations = Map::new();
        let mut add = |name: &str, value: &str| {
            annotations.insert(format!("org.opencontainers.image.{name}"), json!(value));
        };
        add("title", &manifest.name);
        add("description", &manifest.description);
        if let Some(version) = &manifest.bundle_version {
            add("version", version);
        }
        if let Some(url) = manifest
            .metadata
            .get("documentationUrl")
            .and_then(Value::as_str)
        {
            add("documentation", url);
        }
        if let Some(vendor) = manifest
            .metadata
            .get("providerDisplayName")
            .and_then(Value::as_str)
        {
            add("vendor", vendor);
        }
        annotations
    }
}

/// The tar file of a layout.
struct ImageLayout<'a>(Builder<&'a mut dyn Write>);

impl ImageLayout<'_> {
    fn file(&mut self, name: &str, content: &[u8]) -> Result<(), PackError> {
        let mut header = header(content.len() as u64);
        let added = self.0.append_data(&mut header, name, content);
        added.map_err(io(format!("writing {name}")))
    }

    /// Copies the layers of the base, each once.
    fn base(&mut self, base: &BaseImage) -> Result<u64, PackError> {
        let mut bytes = 0;
        let mut written: Vec<&Value> = Vec::new();
        for layer in &base.layers {
            if written
                .iter()
                .any(|there| there["digest"] == layer["digest"])
            {
                continue;
            }
            written.push(layer);
            let size = layer["size"].as_u64().unwrap_or_default();
            let name = layer["digest"].as_str().unwrap_or_default();
            let name = format!("blobs/{}", name.replace(':', "/"));
            let mut header = header(size);
            let named = header.set_path(&name);
            named.map_err(io(format!("writing {name}")))?;
            header.set_cksum();
            let out = self.0.get_mut();
            let failed = || io(format!("writing {name}"));
            out.write_all(header.as_bytes()).map_err(failed())?;
            base.copy(layer, out)?;
            let rest = (512 - size % 512) % 512;
            out.write_all(&vec![0; rest as usize]).map_err(failed())?;
            bytes += size;
        }
        Ok(bytes)
    }
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn push(list: &mut Value, value: Value) {
    match list {
        Value::Array(items) => items.push(value),
        other => *other = json!([value]),
    }
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({
        "mediaType": media_type,
        "digest": format!("sha256:{}", digest(blob)),
        "size": blob.len(),
    })
}

fn digest(blob: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(blob);
    base::hex(hash)
}

/// Serialises JSON with keys in a fixed order.
fn text(value: &Value) -> String {
    value.to_string()
}
