//! Packs a bundle into an image without a container engine: an OCI image layout in one tar file.
//!
//! The same folder gives the same bytes on every host and at any time: nothing of the host, its clock or its users
//! is included. `pack/layer.rs` writes the bundle's layer, `pack/base.rs` reads the base image, `pack/layout.rs`
//! joins them.

mod base;
mod layer;
mod layout;

pub use layout::{FILE_LABEL, RUNTIME_LABEL, SPEC_LABEL};

use crate::folder::{self, FolderError};
use crate::manifest::{Entrypoint, Manifest};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Largest bundle that is packed, in bytes.
pub const PACKED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Options of packing.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// An image to stand on: an OCI image layout, as a folder or as a tar file. `None`: nothing but the
    /// bundle is in the image.
    pub base: Option<PathBuf>,
    /// The name of the image in the layout; by default `NAME:VERSION`.
    pub reference: Option<String>,
    /// The processor it is for; counts only without a base, or to choose in a base for several.
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
    /// The digest of the image's manifest: `sha256:…`, what it is pinned by.
    pub digest: String,
    /// The name of the image in the layout.
    pub reference: String,
    /// How many layers it has.
    pub layers: usize,
    /// How many bytes of blobs it has.
    pub bytes: u64,
}

/// Why a bundle cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// There is no usable bundle in the folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The bundle cannot be an image, or not this way; the sentence says what to do.
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
    /// Something cannot be read or written.
    #[error("{what} failed: see that there is room and that you may do it")]
    Io {
        /// The step that failed.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Packs a bundle's folder as an image.
///
/// # Guarantees
/// The same files, manifest and base give the same bytes.
///
/// # Errors
/// The bundle has faults or leads out of its folder, the base is no image, or writing fails.
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

/// `NAME:VERSION`, or what was asked for.
fn reference(manifest: &Manifest, options: &PackOptions) -> String {
    let own = || {
        let version = manifest.bundle_version.as_deref().unwrap_or("latest");
        format!("{}:{}", manifest.name, version.replace('+', "_"))
    };
    options.reference.clone().unwrap_or_else(own)
}

/// An I/O error with what was tried.
fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PackError {
    let what = what.into();
    move |source| PackError::Io { what, source }
}

#[cfg(test)]
mod tests;
