//! Reads the base image of a bundle from an OCI image layout: a folder or a tar file.
//!
//! The input is untrusted: every blob is checked against its digest, and sizes are bounded.

use super::PackError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Longest index, manifest or configuration, in bytes.
const JSON_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum layers of a base.
const LAYERS_MAX: usize = 120;

/// Maximum nesting of indexes above a manifest.
const INDEXES_MAX: usize = 4;

/// Image found in a layout.
pub(super) struct BaseImage {
    path: PathBuf,
    /// Its configuration.
    pub(super) config: Value,
    /// The descriptors of its layers.
    pub(super) layers: Vec<Value>,
}

/// Opens a layout and finds the image for this processor.
pub(super) fn open(path: &Path, architecture: &str) -> Result<BaseImage, PackError> {
    let mut base = BaseImage {
        path: path.to_owned(),
        config: Value::Null,
        layers: Vec::new(),
    };
    let index = base.bytes("index.json")?;
    let mut current = base.json(&index)?;
    for _ in 0..INDEXES_MAX {
        let Some(manifests) = current["manifests"].as_array() else {
            break;
        };
        let fits = |it: &&Value| {
            let named = it["platform"]["architecture"].as_str();
            named.is_none_or(|named| named == architecture)
        };
        let Some(chosen) = manifests.iter().find(fits) else {
            return Err(base.fault(&format!("has no image for {architecture}")));
        };
        let blob = base.blob_bytes(chosen)?;
        current = base.json(&blob)?;
    }
    let config = base.blob_bytes(&current["config"])?;
    base.config = base.json(&config)?;
    let layers = current["layers"].as_array();
    let layers = layers.ok_or_else(|| base.fault("is no OCI image: it has no layers"))?;
    if layers.len() > LAYERS_MAX {
        return Err(base.fault(&format!("has more than {LAYERS_MAX} layers")));
    }
    base.layers = layers.clone();
    let ids = base.config["rootfs"]["diff_ids"].as_array();
    if ids.map(Vec::len) != Some(base.layers.len()) {
        return Err(base.fault("is damaged: its configuration does not know all its layers"));
    }
    Ok(base)
}

impl BaseImage {
    /// Copies a blob, and checks its digest.
    pub(super) fn copy(&self, descriptor: &Value, out: &mut dyn Write) -> Result<(), PackError> {
        let (name, digest, size) = self.located(descriptor)?;
        let mut hash = Sha256::new();
        let mut bytes = 0;
        self.with(&name, &mut |reader| {
            let mut buffer = vec![0; 64 * 1024];
            let mut reader = reader.take(size + 1);
            loop {
                let read = reader.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                bytes += read as u64;
                hash.update(&buffer[..read]);
                if bytes <= size {
                    out.write_all(&buffer[..read])?;
                }
            }
        })?;
        match bytes == size && hex(hash) == digest {
            true => Ok(()),
            false => Err(self.fault(&format!("is damaged: {name} is not what it says"))),
        }
    }

    /// The name, the digest without its algorithm, and the size of a blob.
    fn located(&self, descriptor: &Value) -> Result<(String, String, u64), PackError> {
        let digest = descriptor["digest"].as_str();
        let digest = digest.and_then(|it| it.strip_prefix("sha256:"));
        let fits = |it: &&str| it.len() == 64 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (digest.filter(fits), descriptor["size"].as_u64()) {
            (Some(digest), Some(size)) => {
                Ok((format!("blobs/sha256/{digest}"), digest.to_owned(), size))
            }
            (None, _) | (_, None) => Err(self
                .fault("is no OCI image layout: write one with `skopeo copy … oci-archive:FILE`")),
        }
    }

    fn blob_bytes(&self, descriptor: &Value) -> Result<Vec<u8>, PackError> {
        let (name, digest, _) = self.located(descriptor)?;
        let bytes = self.bytes(&name)?;
        let mut hash = Sha256::new();
        hash.update(&bytes);
        match hex(hash) == digest {
            true => Ok(bytes),
            false => Err(self.fault(&format!("is damaged: {name} is not what it says"))),
        }
    }

    fn json(&self, bytes: &[u8]) -> Result<Value, PackError> {
        serde_json::from_slice(bytes).map_err(|_| self.fault("is damaged: it has broken JSON"))
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, PackError> {
        let mut bytes = Vec::new();
        self.with(name, &mut |reader| {
            reader.take(JSON_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(())
        })?;
        match bytes.len() as u64 > JSON_BYTES_MAX {
            true => Err(self.fault(&format!("has a {name} of more than {JSON_BYTES_MAX} bytes"))),
            false => Ok(bytes),
        }
    }

    /// Reads a file of the layout.
    fn with(
        &self,
        name: &str,
        read: &mut dyn FnMut(&mut dyn Read) -> std::io::Result<()>,
    ) -> Result<(), PackError> {
        let failed = |source| PackError::Io {
            what: format!("reading {name} of the base {}", self.path.display()),
            source,
        };
        if self.path.is_dir() {
            let mut file = File::open(self.path.join(name)).map_err(failed)?;
            return read(&mut file).map_err(failed);
        }
        let file = File::open(&self.path).map_err(failed)?;
        let mut archive = tar::Archive::new(file);
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let path = entry.path().map_err(failed)?.into_owned();
            let path = path.strip_prefix("./").unwrap_or(&path);
            if path == Path::new(name) {
                return read(&mut entry).map_err(failed);
            }
        }
        Err(self.fault(&format!(
            "has no {name}: it must be an OCI image layout, as `skopeo copy … oci-archive:FILE` \
             writes it"
        )))
    }

    fn fault(&self, reason: &str) -> PackError {
        PackError::Base {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }
}

pub(super) fn hex(hash: Sha256) -> String {
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
