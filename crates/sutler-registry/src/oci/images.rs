//! Images of the distribution API: the version of a tag, and the content of a version.
//!
//! Content that is fetched by digest is verified. Redirects of blobs are followed without credentials, to the same
//! host or over TLS.

use super::manifest::{self, BundleLabels, ImageManifest, Labels};
use crate::auth::RegistryAuth;
use crate::base_url::BaseUrl;
use crate::digest::Digest;
use crate::error::ItemError;
use crate::http_client::{HttpClient, HttpMethod, HttpRequest, HttpResponse};
use crate::http_error::{HttpError, check_status};
use crate::registry::{Item, Spec};
use crate::selection::{is_image, is_tag};
use bytes::Bytes;
use reqwest::Url;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Accepted media types of manifests.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";
/// Maximum length of a manifest, in bytes: the limit of registries.
const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum length of a configuration, in bytes.
const CONFIG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of redirects of a blob.
const REDIRECTS_MAX: usize = 3;
/// Maximum number of unusable versions in the cache.
const VERDICTS_MAX: usize = 20_000;
/// Header with the digest of a response.
const DIGEST_HEADER: &str = "docker-content-digest";

/// Reader of the images of one registry.
pub(super) struct ImageReader {
    http: Arc<HttpClient>,
    auth: Arc<RegistryAuth>,
    base_url: BaseUrl,
    pull_from: String,
    platform: String,
    /// Versions that are not bundles, or broken ones; this never changes.
    verdicts: Mutex<HashMap<Item, ItemError>>,
}

/// Reason why a version has no spec.
enum ImageReadError {
    Http(HttpError),
    /// The image is not a bundle.
    Foreign,
    /// The image is a bundle, and broken.
    Broken(String),
}

impl From<HttpError> for ImageReadError {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl ImageReader {
    pub(super) fn new(
        http: Arc<HttpClient>,
        auth: Arc<RegistryAuth>,
        base_url: BaseUrl,
        pull_from: String,
        platform: String,
    ) -> Self {
        Self {
            http,
            auth,
            base_url,
            pull_from,
            platform,
            verdicts: Mutex::default(),
        }
    }

    /// Returns the current version of a tag.
    pub(super) async fn look_up(&self, item: &Item, subject: &str) -> Result<Digest, ItemError> {
        check(item, subject)?;
        let response = self.manifest(HttpMethod::Head, item, &item.tag).await;
        let response = response.map_err(|error| error.of_item(subject))?;
        let digest = response.header(DIGEST_HEADER).map(Digest::parse);
        match (
            check_status(response.status, &response.headers, &response.body),
            digest,
        ) {
            (Ok(()), Some(Ok(digest))) => return Ok(digest),
            // Some registries omit the header, an error without a body is inconclusive, and some do not support
            // HEAD.
            (Ok(()), Some(Err(_)) | None) => {}
            (Err(HttpError::Silent(_) | HttpError::Garbled(_)), _)
                if matches!(response.status, 404 | 405) => {}
            (Err(error), _) => return Err(error.of_item(subject)),
        }
        let (digest, _) = self.by_tag(item).await.map_err(|it| it.of_item(subject))?;
        Ok(digest)
    }

    /// Reads the version that an item names, or the current one.
    pub(super) async fn fetch(&self, item: &Item, subject: &str) -> Result<Spec, ItemError> {
        check(item, subject)?;
        if item.digest.is_some()
            && let Some(verdict) = self.verdicts().get(item)
        {
            return Err(verdict.clone());
        }
        let found = match &item.digest {
            Some(digest) => {
                let bytes = self.by_digest(item, digest).await;
                bytes.map(|bytes| (digest.clone(), bytes))
            }
            None => self.by_tag(item).await,
        };
        let (digest, bytes) = found.map_err(|error| error.of_item(subject))?;
        let item = item.clone().at(digest.clone());
        match self.read(&item, &bytes).await {
            Ok(BundleLabels {
                manifest,
                file,
                runtime,
            }) => Ok(Spec {
                image: Some(format!("{}/{}@{digest}", self.pull_from, item.image)),
                item,
                digest,
                manifest,
                file,
                runtime,
            }),
            Err(error) => Err(self.item_error(error, item, digest, subject)),
        }
    }

    /// Converts an error of a version; a permanent one is cached.
    fn item_error(
        &self,
        error: ImageReadError,
        item: Item,
        digest: Digest,
        subject: &str,
    ) -> ItemError {
        let fault = match error {
            ImageReadError::Http(error) => return error.of_item(subject),
            ImageReadError::Foreign => ItemError::NotABundle {
                digest,
                sentence: format!(
                    "{subject} is not a bundle: it has no label com.redhat.apb.spec; leave it out by the deny list, \
                     or push one that has it"
                ),
            },
            ImageReadError::Broken(why) => ItemError::Malformed {
                digest: Some(digest),
                sentence: format!("{subject} {why}"),
            },
        };
        let mut verdicts = self.verdicts();
        if verdicts.len() >= VERDICTS_MAX {
            verdicts.clear();
        }
        verdicts.insert(item, fault.clone());
        fault
    }

    /// Reads the bundle labels of a version.
    async fn read(&self, item: &Item, bytes: &[u8]) -> Result<BundleLabels, ImageReadError> {
        match manifest::read(bytes).map_err(ImageReadError::Broken)? {
            ImageManifest::Image {
                config,
                annotations,
            } => self.image(item, &config, &annotations).await,
            ImageManifest::Index {
                children,
                annotations,
            } => {
                if let Some(found) =
                    manifest::labelled(&annotations).map_err(ImageReadError::Broken)?
                {
                    return Ok(found);
                }
                let child = manifest::choose(&children, &self.platform);
                let child = child.map_err(ImageReadError::Broken)?;
                let bytes = self.by_digest(item, &child.digest).await?;
                match manifest::read(&bytes).map_err(ImageReadError::Broken)? {
                    ImageManifest::Image {
                        config,
                        annotations,
                    } => self.image(item, &config, &annotations).await,
                    ImageManifest::Index { .. } => Err(ImageReadError::Broken(
                        "is a list of lists of images: push a list of images".to_owned(),
                    )),
                }
            }
        }
    }

    /// Reads the annotations of one image, or its labels, which need another request.
    async fn image(
        &self,
        item: &Item,
        config: &Digest,
        annotations: &Labels,
    ) -> Result<BundleLabels, ImageReadError> {
        if let Some(found) = manifest::labelled(annotations).map_err(ImageReadError::Broken)? {
            return Ok(found);
        }
        let config = self.blob(item, config).await?;
        let labels = manifest::labels(&config);
        let found = manifest::labelled(&labels).map_err(ImageReadError::Broken)?;
        found.ok_or(ImageReadError::Foreign)
    }

    async fn manifest(
        &self,
        method: HttpMethod,
        item: &Item,
        what: &str,
    ) -> Result<HttpResponse, HttpError> {
        let path = format!("/v2/{}/manifests/{what}", item.image);
        let mut request = HttpRequest::get(self.url(&path)?, MANIFEST_BYTES_MAX);
        request.method = method;
        request.accept = MANIFESTS;
        self.auth.send(request, &scope(item)).await
    }

    /// Reads the current manifest of a tag.
    async fn by_tag(&self, item: &Item) -> Result<(Digest, Bytes), HttpError> {
        let response = self.manifest(HttpMethod::Get, item, &item.tag).await?;
        check_status(response.status, &response.headers, &response.body)?;
        let digest = Digest::of(&response.body);
        let claimed = response.header(DIGEST_HEADER).map(Digest::parse);
        match claimed {
            Some(Ok(claimed)) if claimed != digest => Err(digest_mismatch()),
            Some(_) | None => Ok((digest, response.body)),
        }
    }

    /// Reads a manifest by digest. One that was just listed and is missing was replaced meanwhile.
    async fn by_digest(&self, item: &Item, digest: &Digest) -> Result<Bytes, HttpError> {
        let response = self
            .manifest(HttpMethod::Get, item, &digest.to_string())
            .await?;
        check_status(response.status, &response.headers, &response.body)
            .map_err(gone_to_transient)?;
        verify_digest(digest, response.body)
    }

    /// Reads a blob by digest, following redirects.
    async fn blob(&self, item: &Item, digest: &Digest) -> Result<Bytes, HttpError> {
        let mut url = self.url(&format!("/v2/{}/blobs/{digest}", item.image))?;
        let request = |url: &Url| {
            let mut request = HttpRequest::get(url.clone(), CONFIG_BYTES_MAX);
            request.accept = "*/*";
            request
        };
        let mut response = self.auth.send(request(&url), &scope(item)).await?;
        for _ in 0..REDIRECTS_MAX {
            let Some(next) = redirect_target(&response, &url)? else {
                break;
            };
            url = next;
            // Credentials are for the registry, not for its blob storage.
            response = self.http.send(&request(&url)).await?;
        }
        check_status(response.status, &response.headers, &response.body)
            .map_err(gone_to_transient)?;
        verify_digest(digest, response.body)
    }

    fn url(&self, path: &str) -> Result<Url, HttpError> {
        self.base_url.at(path).map_err(HttpError::Garbled)
    }

    fn verdicts(&self) -> MutexGuard<'_, HashMap<Item, ItemError>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Scope for reading an image.
fn scope(item: &Item) -> String {
    format!("repository:{}:pull", item.image)
}

/// Validates a name, because it becomes a part of URLs.
fn check(item: &Item, subject: &str) -> Result<(), ItemError> {
    match is_image(&item.image) && is_tag(&item.tag) {
        true => Ok(()),
        false => Err(ItemError::Malformed {
            digest: None,
            sentence: format!(
                "{subject:?} is not the name of an image with a tag: use lower-case letters, digits and single separators"
            ),
        }),
    }
}

fn verify_digest(digest: &Digest, bytes: Bytes) -> Result<Bytes, HttpError> {
    match Digest::of(&bytes) == *digest {
        true => Ok(bytes),
        false => Err(digest_mismatch()),
    }
}

fn digest_mismatch() -> HttpError {
    HttpError::Silent(
        "sent something else than its digest says: it is asked again at the next refresh; if that stays so, \
         something in between changes what is sent"
            .to_owned(),
    )
}

/// Treats a missing resource as transient: it was listed just before, so its tag may still exist.
fn gone_to_transient(error: HttpError) -> HttpError {
    match error {
        HttpError::Absent(_) => HttpError::Silent(
            "has no longer what it named a moment ago: it is looked at again at the next refresh"
                .to_owned(),
        ),
        other => other,
    }
}

/// Target of a redirect, if the response is one and the target is allowed.
fn redirect_target(response: &HttpResponse, from: &Url) -> Result<Option<Url>, HttpError> {
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let target = response
        .header("location")
        .and_then(|it| from.join(it).ok());
    let Some(target) = target else {
        return Err(HttpError::Silent(
            "says that a blob lies elsewhere, and not where: look at its log".to_owned(),
        ));
    };
    let near = target.origin() == from.origin();
    match target.scheme() == "https" || near {
        true => Ok(Some(target)),
        false => Err(HttpError::Denied(
            "keeps its blobs where TLS does not reach, which is not followed: have it serve them itself"
                .to_owned(),
        )),
    }
}
