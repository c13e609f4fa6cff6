//! Parses manifests, indexes, configurations and labels of images. Pure.
//!
//! The formats of OCI and Docker (schema 2) differ only in names, so they are distinguished by their content.

use crate::digest::Digest;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Label that makes an image a bundle: its manifest in Base64.
const SPEC_LABEL: &str = "com.redhat.apb.spec";
/// Labels with the runtime version; the first one counts.
const RUNTIME_LABELS: [&str; 2] = ["com.redhat.bundle.runtime", "com.redhat.apb.runtime"];
/// Label with the file name of the manifest.
const FILE_LABEL: &str = "sutler.bundle.file";
/// Default file name of the manifest.
const FILE: &str = "apb.yml";
/// Maximum length of the manifest of a bundle, in bytes.
const SPEC_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of a runtime version, in bytes.
const RUNTIME_BYTES_MAX: usize = 16;

/// Labels or annotations.
pub(crate) type Labels = BTreeMap<String, String>;

/// Content that a tag refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImageManifest {
    /// One image.
    Image {
        /// Configuration with the labels.
        config: Digest,
        annotations: Labels,
    },
    /// Several images, for several platforms.
    Index {
        children: Vec<Child>,
        annotations: Labels,
    },
}

/// One image of an index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) digest: Digest,
    /// `os/architecture`, and the variant if there is one.
    pub(crate) platform: Option<String>,
}

/// Content of the labels of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BundleLabels {
    pub(crate) manifest: Bytes,
    pub(crate) file: String,
    pub(crate) runtime: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawManifest {
    #[serde(default)]
    schema_version: u64,
    config: Option<RawDescriptor>,
    manifests: Option<Vec<RawDescriptor>>,
    annotations: Option<Labels>,
}

#[derive(Deserialize)]
struct RawDescriptor {
    digest: String,
    platform: Option<RawPlatform>,
}

#[derive(Deserialize)]
struct RawPlatform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// Parses a manifest or an index; the error is a sentence.
pub(crate) fn read(bytes: &[u8]) -> Result<ImageManifest, String> {
    let raw: RawManifest = serde_json::from_slice(bytes)
        .map_err(|_| "has a manifest that cannot be read: push it again".to_owned())?;
    let annotations = raw.annotations.unwrap_or_default();
    let digest = |it: &RawDescriptor| {
        Digest::parse(&it.digest)
            .map_err(|_| "has a manifest that names no SHA-256 digest: push it again".to_owned())
    };
    match (raw.config, raw.manifests) {
        (Some(config), None) => Ok(ImageManifest::Image {
            config: digest(&config)?,
            annotations,
        }),
        (None, Some(manifests)) => {
            let child = |it: &RawDescriptor| {
                let platform = it.platform.as_ref().map(|it| match &it.variant {
                    Some(variant) => format!("{}/{}/{variant}", it.os, it.architecture),
                    None => format!("{}/{}", it.os, it.architecture),
                });
                Ok(Child {
                    digest: digest(it)?,
                    platform,
                })
            };
            let children: Result<_, String> = manifests.iter().map(child).collect();
            Ok(ImageManifest::Index {
                children: children?,
                annotations,
            })
        }
        (None, None) if raw.schema_version == 1 => Err(
            "is in a form of 2015 (schema 1) that registries gave up: push it again with a current tool"
                .to_owned(),
        ),
        (None, None) | (Some(_), Some(_)) => {
            Err("is neither an image nor a list of images: push it again".to_owned())
        }
    }
}

/// Chooses the image for a platform: an exact match, a match apart from the variant, or the only image.
pub(crate) fn choose<'a>(children: &'a [Child], platform: &str) -> Result<&'a Child, String> {
    let plain = |it: &str| it.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
    let exact = |it: &&Child| it.platform.as_deref() == Some(platform);
    let near = |it: &&Child| it.platform.as_deref().map(plain) == Some(plain(platform));
    let found = children.iter().find(exact);
    let found = found.or_else(|| children.iter().find(near));
    let found = found.or(match children {
        [only] if only.platform.is_none() => Some(only),
        _ => None,
    });
    found.ok_or_else(|| {
        let is_plain = |it: &&str| it.len() <= 40 && it.bytes().all(|it| it.is_ascii_graphic());
        let known = children.iter().filter_map(|it| it.platform.as_deref());
        let mut known: Vec<&str> = known.filter(is_plain).collect();
        known.truncate(10);
        format!(
            "is not there for {platform}, only for [{}]: push it for that one, or set `platform`",
            known.join(", ")
        )
    })
}

/// Labels in a configuration; none if it is not the configuration of an image.
pub(crate) fn labels(config: &[u8]) -> Labels {
    #[derive(Deserialize)]
    struct Config {
        config: Option<Inner>,
        container_config: Option<Inner>,
    }
    #[derive(Deserialize)]
    struct Inner {
        #[serde(rename = "Labels")]
        labels: Option<Labels>,
    }
    let Ok(read) = serde_json::from_slice::<Config>(config) else {
        return Labels::new();
    };
    let places = [read.config, read.container_config].into_iter().flatten();
    places.filter_map(|it| it.labels).next().unwrap_or_default()
}

/// Reads the labels of a bundle; `None` if the image is not a bundle.
///
/// # Errors
/// The image is a bundle, and its labels are invalid.
pub(crate) fn labelled(labels: &Labels) -> Result<Option<BundleLabels>, String> {
    let Some(encoded) = labels.get(SPEC_LABEL) else {
        return Ok(None);
    };
    // Tools wrap encoded lines and omit the padding.
    let packed: String = encoded.split_whitespace().collect();
    if packed.len() / 4 * 3 > SPEC_BYTES_MAX {
        return Err(format!(
            "has a manifest of more than {SPEC_BYTES_MAX} bytes in its label {SPEC_LABEL}: make it shorter"
        ));
    }
    let indifferent = DecodePaddingMode::Indifferent;
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(indifferent);
    let decoded = GeneralPurpose::new(&STANDARD, config).decode(packed);
    let manifest = decoded.ok().filter(|it| !it.is_empty()).ok_or_else(|| {
        format!("has a label {SPEC_LABEL} that is not Base64: prepare, build and push it again")
    })?;
    let runtime = RUNTIME_LABELS.iter().find_map(|it| labels.get(*it));
    if !runtime.is_none_or(|it| is_runtime(it)) {
        return Err("has a label that says no runtime: write a number into it".to_owned());
    }
    let file = labels.get(FILE_LABEL).filter(|it| is_file_name(it));
    Ok(Some(BundleLabels {
        manifest: manifest.into(),
        file: file.map_or(FILE, String::as_str).to_owned(),
        runtime: runtime.cloned(),
    }))
}

/// Whether a text is a valid runtime version; its value is not checked here.
pub(crate) fn is_runtime(text: &str) -> bool {
    text.len() <= RUNTIME_BYTES_MAX && text.bytes().all(|it| it.is_ascii_graphic())
}

/// Whether a text is a valid file name of a manifest.
pub(crate) fn is_file_name(text: &str) -> bool {
    let allowed = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests;
