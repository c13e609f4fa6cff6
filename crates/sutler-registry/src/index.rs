//! A registry in one file: YAML at a URL, which lists bundles with their manifests or the URLs of these.
//!
//! The file is requested once per listing, and not transferred while its `ETag` is unchanged. A file that cannot be
//! parsed as a whole is an error of the listing; an invalid entry affects no other. A manifest in a separate file is
//! listed with its digest, so that the list contains every version; the manifest must match it.

use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use crate::http_client::{Authorization, HttpClient, HttpRequest, HttpSettings};
use crate::http_error::{HttpError, check_status};
use crate::oci::ITEMS_MAX;
use crate::oci::manifest::{is_file_name, is_runtime};
use crate::registry::{Item, Listing, Registry, Spec};
use crate::selection::{DEFAULT_TAG, ImageFilter, is_image, is_reference, is_tag};
use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Url;
use serde::Deserialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_yaml::YAML_BYTES_MAX;

/// Default file name of a manifest.
const FILE: &str = "bundle.yml";
/// Maximum length of a manifest in a separate file, in bytes.
const MANIFEST_BYTES_MAX: usize = 1024 * 1024;

/// Settings of an index.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// Name in the configuration.
    pub name: String,
    /// URL of the file.
    pub url: String,
    /// Selected items.
    pub filter: ImageFilter,
    /// Credentials.
    pub credentials: Credentials,
    /// Settings of the HTTP client.
    pub http: HttpSettings,
}

/// A registry in one file.
pub struct IndexRegistry {
    name: String,
    http: HttpClient,
    url: Url,
    authorization: Option<Authorization>,
    filter: ImageFilter,
    cached: Mutex<Option<CachedIndex>>,
}

/// The file as last read.
struct CachedIndex {
    tag: Option<String>,
    entries: Arc<IndexEntries>,
}

/// Entries, sorted by name and tag.
pub(crate) struct IndexEntries(Vec<IndexEntry>);

impl IndexEntries {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &IndexEntry> {
        self.0.iter()
    }

    fn get(&self, item: &Item) -> Option<&IndexEntry> {
        let base_url = self.0.binary_search_by_key(&item.key(), IndexEntry::key);
        self.0.get(base_url.ok()?)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IndexFile {
    bundles: Vec<IndexEntry>,
}

/// A bundle in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexEntry {
    name: Box<str>,
    tag: Option<Box<str>>,
    /// Image by its digest.
    image: Option<Box<str>>,
    manifest: Option<Box<str>>,
    /// URL of the manifest, relative to the list, and its digest, if the manifest is not inline.
    manifest_url: Option<Box<str>>,
    manifest_digest: Option<Box<str>>,
    file: Option<Box<str>>,
    runtime: Option<Box<str>>,
    /// Digest of the entry, computed once it is parsed.
    #[serde(skip)]
    version: Option<Digest>,
}

/// Source of a manifest.
enum ManifestSource<'a> {
    Here(&'a str),
    There(&'a str, Digest),
}

impl IndexEntry {
    /// Unique key, as in [`Item::key`].
    fn key(&self) -> (&str, &str) {
        (&self.name, self.tag.as_deref().unwrap_or(DEFAULT_TAG))
    }

    /// Version: changes with any part of the entry.
    fn digest(&self) -> Digest {
        match &self.version {
            Some(version) => version.clone(),
            None => self.digest_of_all(),
        }
    }

    fn digest_of_all(&self) -> Digest {
        let mut parts: Vec<&str> = [&self.manifest, &self.image, &self.file, &self.runtime]
            .map(|text| text.as_deref().unwrap_or_default())
            .into();
        parts.extend(self.manifest_digest.as_deref());
        Digest::of(parts.join("\0").as_bytes())
    }

    /// Error in the entry, if there is one.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let is_pinned = |it: &str| {
            let parts = it.split_once('@');
            parts.is_some_and(|(name, digest)| is_reference(name) && Digest::parse(digest).is_ok())
        };
        if !self.image.as_deref().is_none_or(is_pinned) {
            return Some(
                "names an image without its digest: write NAME@sha256:…, so that what is listed is what runs",
            );
        }
        if !self.file.as_deref().is_none_or(is_file_name) {
            return Some(
                "has a `file` that is not a file name: write bundle.yml or apb.yml, or leave it out",
            );
        }
        if !self.runtime.as_deref().is_none_or(is_runtime) {
            return Some(
                "has a `runtime` that is not a number: write a number in quotes, or leave it out",
            );
        }
        if self.manifest().is_none() {
            return Some(
                "has no manifest that can be found: write either `manifest`, or `manifest_url` and \
                 `manifest_digest`, which is sha256:…",
            );
        }
        None
    }

    fn item(&self) -> Item {
        let (image, tag) = self.key();
        Item::new(image, tag).at(self.digest())
    }

    /// Source of the manifest. Errors of the entry are reported before this is used.
    fn manifest(&self) -> Option<ManifestSource<'_>> {
        let named = self.manifest_digest.as_deref().map(Digest::parse);
        match (&self.manifest, &self.manifest_url, named) {
            (Some(text), None, None) => Some(ManifestSource::Here(text)),
            (None, Some(url), Some(Ok(digest))) => Some(ManifestSource::There(url, digest)),
            _ => None,
        }
    }

    /// Builds the spec from the manifest.
    fn spec(&self, manifest: Bytes) -> Spec {
        Spec {
            item: self.item(),
            digest: self.digest(),
            manifest,
            file: self.file.as_deref().unwrap_or(FILE).to_owned(),
            runtime: self.runtime.as_deref().map(str::to_owned),
            image: self.image.as_deref().map(str::to_owned),
        }
    }
}

impl IndexRegistry {
    /// Builds the registry; sends no request.
    ///
    /// # Errors
    /// A setting is invalid; the sentence names it.
    pub fn new(settings: IndexSettings) -> Result<Self, String> {
        let url = BaseUrl::file(&settings.url)?;
        let authorization = match settings.credentials {
            Credentials::None => None,
            Credentials::Basic { user, password } => Some(Authorization::Basic(user, password)),
            Credentials::Token(token) => Some(Authorization::Bearer(token)),
        };
        Ok(Self {
            name: settings.name,
            http: HttpClient::new(&settings.http)?,
            url,
            authorization,
            filter: settings.filter,
            cached: Mutex::default(),
        })
    }

    /// Returns the current entries.
    async fn entries(&self) -> Result<Arc<IndexEntries>, HttpError> {
        let known = self
            .cached()
            .as_ref()
            .map(|it| (it.tag.clone(), it.entries.clone()));
        let mut request = HttpRequest::get(self.url.clone(), YAML_BYTES_MAX);
        request.accept = "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.5";
        request.authorization = self.authorization.clone();
        request.if_none_match = known.as_ref().and_then(|(tag, _)| tag.clone());
        let response = self.http.send(&request).await?;
        // 304 is only valid if a tag was sent.
        if let (304, Some((Some(_), entries))) = (response.status, known) {
            return Ok(entries);
        }
        if response.status == 404 {
            return Err(HttpError::Garbled(
                "is not there (404): check its URL".to_owned(),
            ));
        }
        check_status(response.status, &response.headers, &response.body)?;
        let tag = response.header("etag").map(str::to_owned);
        // Frees the old entries first, because they take as much memory as the new ones.
        *self.cached() = None;
        let entries = Arc::new(read(&response.body)?);
        *self.cached() = Some(CachedIndex {
            tag,
            entries: entries.clone(),
        });
        Ok(entries)
    }

    fn cached(&self) -> MutexGuard<'_, Option<CachedIndex>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of an item as last read; requests the file if it was never read.
    async fn entry(&self, item: &Item, subject: &str) -> Result<IndexEntry, ItemError> {
        let known = self.cached().as_ref().map(|it| it.entries.clone());
        let entries = match known {
            Some(entries) => Ok(entries),
            None => self.entries().await,
        };
        let entries = entries.map_err(|error| error.of_item(subject))?;
        entries.get(item).cloned().ok_or_else(|| {
            ItemError::Gone(format!(
                "{subject} is not in the list: add it, or leave it out of the configuration"
            ))
        })
    }

    /// Fetches a manifest in a separate file. Credentials are sent only to the server of the list.
    async fn fetch_manifest(
        &self,
        subject: &str,
        base_url: &str,
        digest: &Digest,
    ) -> Result<Bytes, ItemError> {
        let url = self.url.join(base_url).ok();
        let url = url.filter(|it| it.origin() == self.url.origin());
        let Some(url) = url else {
            return Err(ItemError::Malformed {
                digest: None,
                sentence: format!(
                    "{subject} has its manifest on another server than the list: put it beside the list"
                ),
            });
        };
        let mut request = HttpRequest::get(url, MANIFEST_BYTES_MAX);
        request.accept = "*/*";
        request.authorization = self.authorization.clone();
        let response = self.http.send(&request).await;
        let response = response.map_err(|error| error.of_item(subject))?;
        // A listed manifest that is missing is being replaced or was forgotten; neither means that the bundle is
        // gone.
        check_status(response.status, &response.headers, &[]).map_err(|error| match error {
            HttpError::Absent(why) => HttpError::Silent(why).of_item(subject),
            other => other.of_item(subject),
        })?;
        match Digest::of(&response.body) == *digest {
            true => Ok(response.body),
            false => Err(ItemError::Transient(format!(
                "{subject} has another manifest than its digest says: it is read again at the next refresh; if that \
                 stays so, write the list anew"
            ))),
        }
    }

    fn subject(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for IndexRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListError> {
        self.http.reset_failures();
        let subject = format!("the registry {}", self.name);
        let entries = self.entries().await.map_err(|it| it.of_listing(&subject))?;
        let filter = |it: &&IndexEntry| {
            let (image, tag) = it.key();
            self.filter.wants(image) && self.filter.tags(image).any(|it| it == tag)
        };
        let items = entries.iter().filter(filter).map(IndexEntry::item);
        Ok(Listing::complete(items.collect()))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        let entry = self.entry(item, &self.subject(item)).await?;
        Ok(entry.digest())
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        let subject = self.subject(item);
        let entry = self.entry(item, &subject).await?;
        if item.digest.as_ref().is_some_and(|it| *it != entry.digest()) {
            return Err(ItemError::Transient(format!(
                "{subject} was replaced while it was read: it is looked at again at the next refresh"
            )));
        }
        let malformed = |why: &str| ItemError::Malformed {
            digest: Some(entry.digest()),
            sentence: format!("{subject} {why}"),
        };
        if let Some(why) = entry.fault() {
            return Err(malformed(why));
        }
        let manifest = match entry.manifest() {
            Some(ManifestSource::Here(text)) => Bytes::copy_from_slice(text.as_bytes()),
            Some(ManifestSource::There(base_url, digest)) => {
                self.fetch_manifest(&subject, base_url, &digest).await?
            }
            None => return Err(malformed("has no manifest: write one")),
        };
        Ok(entry.spec(manifest))
    }
}

/// Parses the file.
pub(crate) fn read(body: &[u8]) -> Result<IndexEntries, HttpError> {
    let garbled = |why: &str| {
        HttpError::Garbled(format!(
            "is not a list of bundles: {why}; mend the file, or check its URL"
        ))
    };
    let text = std::str::from_utf8(body).map_err(|_| garbled("it is not UTF-8"))?;
    let mut bundles = match sutler_yaml::parse_into::<IndexFile>(text) {
        Some(file) => file.bundles,
        None => by_tree(text).map_err(|why| garbled(&why))?.bundles,
    };
    if bundles.len() > ITEMS_MAX {
        return Err(HttpError::TooMuch(format!(
            "lists more than {ITEMS_MAX} bundles: make several lists of it"
        )));
    }
    let named = |(image, tag): (&str, &str)| sutler_yaml::one_line(&format!("{image}:{tag}"));
    for entry in &mut bundles {
        entry.version = Some(entry.digest_of_all());
        let (image, tag) = entry.key();
        if !is_image(image) || !is_tag(tag) {
            let name = named((image, tag));
            return Err(garbled(&format!("{name} is not a name with a tag")));
        }
    }
    bundles.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
    bundles.shrink_to_fit();
    let mut pairs = bundles.iter().zip(bundles.iter().skip(1));
    if let Some((twice, _)) = pairs.find(|(a, b)| a.key() == b.key()) {
        let name = named(twice.key());
        return Err(garbled(&format!("it has {name} twice")));
    }
    Ok(IndexEntries(bundles))
}

/// Parses an invalid file in detail, to locate the error.
fn by_tree(text: &str) -> Result<IndexFile, String> {
    let documents = sutler_yaml::parse(text).map_err(|it| it.reason)?;
    let [document] = documents.as_slice() else {
        return Err("it must be one document".to_owned());
    };
    let file = sutler_yaml::read::<IndexFile>(document);
    match (file.faults.first(), file.value) {
        (Some(fault), _) => Err(fault.to_string()),
        (None, Some(file)) => Ok(file),
        (None, None) => Err("it says nothing".to_owned()),
    }
}
