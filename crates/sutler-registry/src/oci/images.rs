//! One image of the distribution API: which version a tag has, and what is in a version.
//!
//! Everything that is fetched by its digest is held to it. Blobs may lie elsewhere: that is followed without
//! credentials, to the same host or by TLS.

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

/// What manifests may come as.
const MANIFESTS: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";
/// Longest manifest, in bytes: what registries take at most.
const MANIFEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest configuration, in bytes.
const CONFIG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often a blob may be said to lie elsewhere.
const REDIRECTS_MAX: usize = 3;
/// Most versions that are remembered not to be usable.
const VERDICTS_MAX: usize = 20_000;
/// Which version an answer is.
const DIGEST_HEADER: &str = "docker-content-digest";

/// The images of one registry.
pub(super) struct ImageReader {
    http: Arc<HttpClient>,
    auth: Arc<RegistryAuth>,
    base_url: BaseUrl,
    pull_from: String,
    platform: String,
    /// Versions that are no bundles, or broken ones, and will never be others.
    verdicts: Mutex<HashMap<Item, ItemError>>,
}

/// Why a version has no spec.
enum ImageReadError {
    Http(HttpError),
    /// It is no bundle.
    Foreign,
    /// It is one, and broken.
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

    /// Which version a tag has now.
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
            // Some do not say it, without a body a refusal may say too little, and some know no such question.
            (Ok(()), Some(Err(_)) | None) => {}
            (Err(HttpError::Silent(_) | HttpError::Garbled(_)), _)
                if matches!(response.status, 404 | 405) => {}
            (Err(error), _) => return Err(error.of_item(subject)),
        }
        let (digest, _) = self.by_tag(item).await.map_err(|it| it.of_item(subject))?;
        Ok(digest)
    }

    /// Reads the version that an item names, or the one there is now.
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

    /// A fault of a version; one that will stay is remembered.
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
                    "{subject} is no bundle: it has no label com.redhat.apb.spec; leave it out by the deny list, \
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

    /// What the labels of a version say.
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

    /// What annotations or labels of one image say; the labels are farther away.
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

    /// What a tag leads to now.
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

    /// A manifest by its digest. What was just seen and is not there was replaced meanwhile.
    async fn by_digest(&self, item: &Item, digest: &Digest) -> Result<Bytes, HttpError> {
        let response = self
            .manifest(HttpMethod::Get, item, &digest.to_string())
            .await?;
        check_status(response.status, &response.headers, &response.body)
            .map_err(gone_to_transient)?;
        verify_digest(digest, response.body)
    }

    /// A blob by its digest, from wherever it lies.
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
            // Credentials are for the registry, and not for where it keeps its blobs.
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

/// What it takes to read an image.
fn scope(item: &Item) -> String {
    format!("repository:{}:pull", item.image)
}

/// Names become parts of URLs: what is no name is not asked for.
fn check(item: &Item, subject: &str) -> Result<(), ItemError> {
    match is_image(&item.image) && is_tag(&item.tag) {
        true => Ok(()),
        false => Err(ItemError::Malformed {
            digest: None,
            sentence: format!(
                "{subject:?} is no name of an image with a tag: use small letters, digits and single separators"
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

/// What is not there although it was named a moment ago says nothing about its tag.
fn gone_to_transient(error: HttpError) -> HttpError {
    match error {
        HttpError::Absent(_) => HttpError::Silent(
            "has no longer what it named a moment ago: it is looked at again at the next refresh"
                .to_owned(),
        ),
        other => other,
    }
}

/// Where an answer says that the blob lies, if it says so and we may go there.
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
