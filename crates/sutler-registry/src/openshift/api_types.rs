//! Types of the OpenShift API for image streams, with the fields in use. Pure.

use crate::digest::Digest;
use crate::error::ItemError;
use crate::name_pages::maybe_null;
use crate::oci::Labels;
use crate::selection::is_reference;
use serde::Deserialize;

/// A page of streams.
#[derive(Debug, Deserialize)]
pub(crate) struct ImageStreamList {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) metadata: PageMetadata,
    #[serde(deserialize_with = "maybe_null")]
    pub(crate) items: Vec<ImageStream>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageMetadata {
    #[serde(rename = "continue")]
    pub(crate) next: Option<String>,
}

/// One stream.
#[derive(Debug, Deserialize)]
pub(crate) struct ImageStream {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    tags: Vec<StreamTag>,
}

#[derive(Debug, Deserialize)]
struct StreamTag {
    tag: String,
    /// Newest first; `null` if the import failed.
    items: Option<Vec<TagEvent>>,
}

#[derive(Debug, Deserialize)]
struct TagEvent {
    image: String,
}

impl ImageStream {
    /// Current image of a tag.
    pub(crate) fn version(&self, tag: &str) -> Option<Digest> {
        let found = self.status.tags.iter().find(|it| it.tag == tag)?;
        let newest = found.items.as_ref()?.first()?;
        Digest::parse(&newest.image).ok()
    }
}

/// One image, by a tag of its stream or by its digest.
#[derive(Debug, Deserialize)]
pub(crate) struct ImageStreamImage {
    image: Image,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    metadata: Metadata,
    docker_image_reference: Option<String>,
    docker_image_metadata: Option<DockerMetadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerMetadata {
    config: Option<Inner>,
    container_config: Option<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inner {
    labels: Option<Labels>,
}

impl ImageStreamImage {
    /// Version of the image.
    pub(crate) fn digest(&self, subject: &str) -> Result<Digest, ItemError> {
        Digest::parse(&self.image.metadata.name).map_err(|_| ItemError::Malformed {
            digest: None,
            sentence: format!("{subject}: the image has no SHA-256 digest: push it again"),
        })
    }

    /// Labels of the image.
    pub(crate) fn labels(&self) -> Labels {
        let metadata = self.image.docker_image_metadata.iter();
        let mut places = metadata.flat_map(|it| [&it.config, &it.container_config]);
        let labels = places.find_map(|it| it.as_ref()?.labels.clone());
        labels.unwrap_or_default()
    }

    /// Reference by which an engine pulls this version.
    pub(crate) fn reference(&self, digest: &Digest) -> Option<String> {
        let named = self.image.docker_image_reference.as_deref()?;
        let name = named.split_once('@').map_or(named, |(name, _)| name);
        // A colon after the last slash begins a tag; one before it, a port.
        let at = name.rfind('/').unwrap_or(0);
        let end = name[at..].find(':').map_or(name.len(), |it| at + it);
        let name = &name[..end];
        is_reference(name).then(|| format!("{name}@{digest}"))
    }
}

/// Whether a 404 comes from the API itself and not from a proxy.
pub(crate) fn is_not_found(status: u16, body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct StatusBody {
        kind: String,
        reason: String,
    }
    let parsed: Option<StatusBody> = serde_json::from_slice(body).ok();
    status == 404 && parsed.is_some_and(|it| it.kind == "Status" && it.reason == "NotFound")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pulled_by_its_digest_not_by_its_tag() {
        let digest = Digest::of(b"x");
        for (named, name) in [
            ("reg.example:5000/ns/app:latest", "reg.example:5000/ns/app"),
            ("reg.example:5000/ns/app", "reg.example:5000/ns/app"),
            ("reg.example/app@sha256:0", "reg.example/app"),
            ("app:v1", "app"),
        ] {
            let text =
                format!(r#"{{"image":{{"metadata":{{}},"dockerImageReference":"{named}"}}}}"#);
            let image: ImageStreamImage = serde_json::from_str(&text).expect("an image");
            assert_eq!(image.reference(&digest), Some(format!("{name}@{digest}")));
        }
    }

    #[test]
    fn only_a_404_of_the_api_itself_means_absent() {
        let own = br#"{"kind":"Status","apiVersion":"v1","reason":"NotFound","code":404}"#;
        assert!(is_not_found(404, own));
        assert!(!is_not_found(404, b"<html>"));
        assert!(!is_not_found(403, own));
    }
}
