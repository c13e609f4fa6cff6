//! Images for tests, pushed by the API of a registry or written into its directory.

use crate::http::HttpRequest;
use crate::server::Server;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;

/// An image without layers, because registry tests only read labels.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Labels of the configuration.
    pub labels: Vec<(String, String)>,
    /// Annotations of the manifest.
    pub annotations: Vec<(String, String)>,
    /// Uses the format of Docker instead of OCI.
    pub docker: bool,
    /// Architecture of the image in an index with other, empty images.
    pub listed_for: Option<String>,
}

impl Image {
    /// A bundle in the format of Automation Broker: the manifest is in a label.
    #[must_use]
    pub fn bundle(manifest: &str) -> Self {
        let spec = STANDARD.encode(manifest);
        Self {
            labels: vec![
                ("com.redhat.apb.spec".to_owned(), spec),
                ("com.redhat.apb.runtime".to_owned(), "2".to_owned()),
            ],
            ..Self::default()
        }
    }

    /// Documents with their media types; the tag refers to the last one.
    fn documents(&self) -> (Vec<u8>, Vec<(&'static str, Vec<u8>)>) {
        let config = format!(
            r#"{{"architecture":"amd64","os":"linux","config":{{"Labels":{}}},"rootfs":{{"type":"layers","diff_ids":[]}}}}"#,
            pairs(&self.labels)
        );
        let (manifest_type, config_type, list_type) = match self.docker {
            false => (
                "application/vnd.oci.image.manifest.v1+json",
                "application/vnd.oci.image.config.v1+json",
                "application/vnd.oci.image.index.v1+json",
            ),
            true => (
                "application/vnd.docker.distribution.manifest.v2+json",
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.distribution.manifest.list.v2+json",
            ),
        };
        let descriptor = |media: &str, bytes: &[u8]| {
            let (size, digest) = (bytes.len(), digest(bytes));
            format!(r#""mediaType":"{media}","size":{size},"digest":"{digest}""#)
        };
        let annotations = match self.annotations.as_slice() {
            [] => String::new(),
            some => format!(r#","annotations":{}"#, pairs(some)),
        };
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{manifest_type}","config":{{{}}},"layers":[]{annotations}}}"#,
            descriptor(config_type, config.as_bytes())
        );
        let mut documents = vec![(manifest_type, manifest.clone().into_bytes())];
        if let Some(processor) = &self.listed_for {
            let list = format!(
                r#"{{"schemaVersion":2,"mediaType":"{list_type}","manifests":[{{{},"platform":{{"os":"linux","architecture":"{processor}"}}}}]}}"#,
                descriptor(manifest_type, manifest.as_bytes())
            );
            documents.push((list_type, list.into_bytes()));
        }
        (config.into_bytes(), documents)
    }
}

/// A pushed image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedImage {
    /// Digest that the tag refers to: `sha256:…`.
    pub digest: String,
}

impl Server {
    /// Pushes an image by the API of the registry, which must be open and without TLS.
    ///
    /// # Panics
    /// If the registry rejects a request.
    pub fn push(&self, name: &str, tag: &str, image: &Image) -> PushedImage {
        let at = self.address();
        let (config, documents) = image.documents();
        let begun = ask(at, "POST", &format!("/v2/{name}/blobs/uploads/"), "", &[]);
        let place = begun.1.expect("a place for a blob");
        let place = place
            .split_once("/v2/")
            .map(|(_, path)| format!("/v2/{path}"));
        let place = place.expect("a path");
        let separator = if place.contains('?') { '&' } else { '?' };
        let target = format!(
            "{place}{separator}digest={}",
            digest(&config).replace(':', "%3A")
        );
        ask(at, "PUT", &target, "application/octet-stream", &config);
        let mut last = String::new();
        for (index, (media, bytes)) in documents.iter().enumerate() {
            last = digest(bytes);
            let under = match index + 1 == documents.len() {
                true => tag,
                false => &last,
            };
            ask(
                at,
                "PUT",
                &format!("/v2/{name}/manifests/{under}"),
                media,
                bytes,
            );
        }
        PushedImage { digest: last }
    }

    /// Removes a version by the API of the registry, with all its tags.
    ///
    /// # Panics
    /// If the registry rejects the request.
    pub fn remove(&self, name: &str, pushed: &PushedImage) {
        let target = format!("/v2/{name}/manifests/{}", pushed.digest);
        ask(self.address(), "DELETE", &target, "", &[]);
    }

    /// Writes an image into the directory of the registry, as if it were pushed: for thousands of images.
    ///
    /// # Panics
    /// If the server was not started here.
    pub fn write_image(&self, name: &str, tag: &str, image: &Image) -> PushedImage {
        let root = self.dir().folder().join("data/docker/registry/v2");
        let repository = root.join("repositories").join(name);
        let write = |path: std::path::PathBuf, bytes: &[u8]| {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        };
        let blob = |bytes: &[u8]| {
            let digest = digest(bytes);
            let number = &digest["sha256:".len()..];
            let place = format!("blobs/sha256/{}/{number}/data", &number[..2]);
            write(root.join(place), bytes);
            (digest.clone(), format!("sha256/{number}/link"))
        };
        let (config, documents) = image.documents();
        let (digest, link) = blob(&config);
        write(repository.join("_layers").join(link), digest.as_bytes());
        let mut last = String::new();
        for (_, bytes) in &documents {
            let (digest, link) = blob(bytes);
            let manifests = repository.join("_manifests");
            write(manifests.join("revisions").join(link), digest.as_bytes());
            last = digest;
        }
        let tag = repository.join("_manifests/tags").join(tag);
        write(tag.join("current/link"), last.as_bytes());
        let number = &last["sha256:".len()..];
        write(
            tag.join(format!("index/sha256/{number}/link")),
            last.as_bytes(),
        );
        PushedImage { digest: last }
    }
}

/// Sends a request to a registry; returns the status and the `Location`.
fn ask(
    at: SocketAddr,
    method: &str,
    target: &str,
    media: &str,
    body: &[u8],
) -> (u16, Option<String>) {
    let request = HttpRequest::new(method, target);
    let request = match media {
        "" => request,
        media => request.with_body(media, body),
    };
    let answer = request.send(at).expect("the registry answers");
    let message = String::from_utf8_lossy(&answer.body);
    assert!(
        (200..300).contains(&answer.status),
        "{method} {target}: {} {message}",
        answer.status
    );
    (answer.status, answer.header("location").map(str::to_owned))
}

fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Formats a JSON object; no value in tests needs escaping.
fn pairs(pairs: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!(r#""{name}":"{value}""#)
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    format!("{{{}}}", pairs.join(","))
}
