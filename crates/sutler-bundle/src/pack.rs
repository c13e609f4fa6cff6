//! Packs a bundle into an image without a container engine: an OCI image layout in one tar file.
//!
//! The same folder gives the same bytes on every host and at any time: the image contains nothing of the host, its
//! clock or its users. `pack/layer.rs` writes the bundle's layer, `pack/base.rs` reads the base image,
//! `pack/layout.rs` joins them.

mod base;
mod layer;
mod layout;

pub use layout::{FILE_LABEL, RUNTIME_LABEL, SPEC_LABEL};

use crate::folder::{self, FolderError};
use crate::manifest::{Entrypoint, Manifest};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest bundle that can be packed, in bytes.
pub const PACKED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Options of packing.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// Base image: an OCI image layout, as a folder or as a tar file. `None`: the image contains only the bundle.
    pub base: Option<PathBuf>,
    /// Name of the image in the layout; by default `NAME:VERSION`.
    pub reference: Option<String>,
    /// Processor architecture; used without a base, or to choose from a base with several.
    pub architecture: String,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            base: None,
            reference: None,
            architecture: "amd64".to_owned(),
        }
    }
}

/// The packed image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedImage {
    /// Digest of the image's manifest, `sha256:…`, by which it is pinned.
    pub digest: String,
    /// The name of the image in the layout.
    pub reference: String,
    /// Number of layers.
    pub layers: usize,
    /// Total size of the blobs, in bytes.
    pub bytes: u64,
}

/// Why a bundle cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The folder holds no usable bundle.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The bundle cannot be packed, or not with these options; the sentence says what to do.
    #[error("{0}")]
    Refused(String),
    /// The base cannot be used.
    #[error("the base {} {reason}", .path.display())]
    Base {
        /// The base.
        path: PathBuf,
        /// The problem, and what to do.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{what} failed: see that there is room and that you may do it")]
    Io {
        /// The step that failed.
        what: String,
        /// Error of the file system.
        source: std::io::Error,
    },
}

/// Packs a bundle's folder as an image.
///
/// # Guarantees
/// The same files, manifest and base give the same bytes.
///
/// # Errors
/// The bundle has faults or links out of its folder, the base is not an image, or writing fails.
pub fn pack(
    folder: &Path,
    options: &PackOptions,
    out: &mut dyn Write,
) -> Result<PackedImage, PackError> {
    let found = folder::find_manifest(folder)?;
    let manifest = Manifest::load(&found.bytes, found.file).map_err(FolderError::from)?;
    if manifest.image.is_some() {
        let reason = "the manifest names an image already, which is what would be run: leave \
                      `image` out to pack the folder";
        return Err(PackError::Refused(reason.to_owned()));
    }
    let base = options
        .base
        .as_deref()
        .map(|path| base::open(path, &options.architecture));
    let base = base.transpose()?;
    if manifest.entry == Entrypoint::Playbooks && base.is_none() {
        let reason = "a bundle of playbooks needs a base with Ansible and an entry point that \
                      takes `ACTION --extra-vars`: name one with --base";
        return Err(PackError::Refused(reason.to_owned()));
    }
    let layer = layer::of(folder, &manifest)?;
    let reference = reference(&manifest, options);
    let image = layout::Image {
        manifest: &manifest,
        found: &found,
        layer,
        base,
        architecture: &options.architecture,
        reference: &reference,
    };
    image.write(out)
}

/// The requested reference, or `NAME:VERSION`.
fn reference(manifest: &Manifest, options: &PackOptions) -> String {
    let own = || {
        let version = manifest.bundle_version.as_deref().unwrap_or("latest");
        format!("{}:{}", manifest.name, version.replace('+', "_"))
    };
    options.reference.clone().unwrap_or_else(own)
}

/// Wraps an I/O error with the step that failed.
fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PackError {
    let what = what.into();
    move |source| PackError::Io { what, source }
}

#[cfg(test)]
mod tests;
