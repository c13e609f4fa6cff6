//! A registry that is one file: YAML at a URL, which lists bundles with their manifests.
//!
//! It is asked for once at each listing, and not sent again while its `ETag` stays the same. A file that cannot
//! be read as a whole is no listing; an entry that makes no sense by itself hurts no other.

use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::fault::{ItemFault, ListFault};
use crate::oci::ITEMS_MAX;
use crate::oci::document::{is_file_name, is_runtime};
use crate::place::Place;
use crate::seam::{Item, Listing, Registry, Spec};
use crate::trouble::{Trouble, judge};
use crate::wanted::{TAG, Wanted, is_image, is_reference, is_tag};
use crate::web::{Ask, Proof, Reach, Web};
use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_yaml::YAML_BYTES_MAX;

/// The file of a manifest, where nothing is said.
const FILE: &str = "bundle.yml";

/// What is needed to use such a file.
#[derive(Clone, Debug)]
pub struct IndexSettings {
    /// What it is called in the configuration.
    pub name: String,
    /// Where the file is.
    pub url: String,
    /// What of it is wanted.
    pub wanted: Wanted,
    /// What proves who asks.
    pub credentials: Credentials,
    /// How it is reached.
    pub reach: Reach,
}

/// A registry that is one file.
pub struct IndexRegistry {
    name: String,
    web: Web,
    url: Url,
    proof: Option<Proof>,
    wanted: Wanted,
    seen: Mutex<Option<Seen>>,
}

/// The file as it was last.
struct Seen {
    tag: Option<String>,
    entries: Arc<Entries>,
}

pub(crate) type Entries = BTreeMap<(String, String), Entry>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bundles: Vec<Entry>,
}

/// One bundle of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    name: String,
    tag: Option<String>,
    /// By its digest.
    image: Option<String>,
    manifest: String,
    file: Option<String>,
    runtime: Option<String>,
}

impl Entry {
    /// Changes when anything of it does.
    fn digest(&self) -> Digest {
        let parts = [
            self.manifest.as_str(),
            self.image.as_deref().unwrap_or_default(),
            self.file.as_deref().unwrap_or_default(),
            self.runtime.as_deref().unwrap_or_default(),
        ];
        Digest::of(parts.join("\0").as_bytes())
    }

    /// What is wrong with it, if anything is.
    fn fault(&self) -> Option<&'static str> {
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
                "has a `file` that is no name of one: write bundle.yml or apb.yml, or leave it out",
            );
        }
        if !self.runtime.as_deref().is_none_or(is_runtime) {
            return Some("has a `runtime` that is none: write a number in quotes, or leave it out");
        }
        None
    }

    fn item(&self) -> Item {
        Item::new(&self.name, self.tag.as_deref().unwrap_or(TAG)).at(self.digest())
    }

    pub(crate) fn spec(&self, who: &str) -> Result<Spec, ItemFault> {
        let digest = self.digest();
        if let Some(why) = self.fault() {
            return Err(ItemFault::Malformed {
                digest: Some(digest),
                sentence: format!("{who} {why}"),
            });
        }
        Ok(Spec {
            item: self.item(),
            digest,
            manifest: Bytes::copy_from_slice(self.manifest.as_bytes()),
            file: self.file.clone().unwrap_or_else(|| FILE.to_owned()),
            runtime: self.runtime.clone(),
            image: self.image.clone(),
        })
    }
}

impl IndexRegistry {
    /// Sets it up; asks nothing.
    ///
    /// # Errors
    /// A setting cannot be used; the sentence says which.
    pub fn new(settings: IndexSettings) -> Result<Self, String> {
        let url = Place::file(&settings.url)?;
        let proof = match settings.credentials {
            Credentials::None => None,
            Credentials::Basic { user, password } => Some(Proof::Basic(user, password)),
            Credentials::Token(token) => Some(Proof::Bearer(token)),
        };
        Ok(Self {
            name: settings.name,
            web: Web::new(&settings.reach)?,
            url,
            proof,
            wanted: settings.wanted,
            seen: Mutex::default(),
        })
    }

    /// The entries as they are now.
    async fn entries(&self) -> Result<Arc<Entries>, Trouble> {
        let known = self
            .seen()
            .as_ref()
            .map(|it| (it.tag.clone(), it.entries.clone()));
        let mut ask = Ask::get(self.url.clone(), YAML_BYTES_MAX);
        ask.accept = "application/yaml, text/yaml, text/plain;q=0.9, */*;q=0.5";
        ask.proof = self.proof.clone();
        ask.unless = known.as_ref().and_then(|(tag, _)| tag.clone());
        let answer = self.web.ask(&ask).await?;
        // Who was not told what is known cannot say that it is the same.
        if let (304, Some((Some(_), entries))) = (answer.status, known) {
            return Ok(entries);
        }
        if answer.status == 404 {
            return Err(Trouble::Garbled(
                "is not there (404): check its URL".to_owned(),
            ));
        }
        judge(answer.status, &answer.headers, &answer.body)?;
        let entries = Arc::new(read(&answer.body)?);
        *self.seen() = Some(Seen {
            tag: answer.header("etag").map(str::to_owned),
            entries: entries.clone(),
        });
        Ok(entries)
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry of an item, as the file was last seen; the file is asked for if it never was.
    async fn entry(&self, item: &Item, who: &str) -> Result<Entry, ItemFault> {
        let known = self.seen().as_ref().map(|it| it.entries.clone());
        let entries = match known {
            Some(entries) => Ok(entries),
            None => self.entries().await,
        };
        let entries = entries.map_err(|trouble| trouble.of_item(who))?;
        let key = (item.image.clone(), item.tag.clone());
        entries.get(&key).cloned().ok_or_else(|| {
            ItemFault::Gone(format!(
                "{who} is not in the list: add it, or leave it out of the configuration"
            ))
        })
    }

    fn who(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for IndexRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListFault> {
        self.web.begin();
        let who = format!("the registry {}", self.name);
        let entries = self.entries().await.map_err(|it| it.of_listing(&who))?;
        let wanted = |(image, tag): &&(String, String)| {
            self.wanted.wants(image) && self.wanted.tags(image).any(|it| it == tag)
        };
        let keys = entries.keys().filter(wanted);
        Ok(Listing::complete(
            keys.map(|it| entries[it].item()).collect(),
        ))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemFault> {
        let entry = self.entry(item, &self.who(item)).await?;
        Ok(entry.digest())
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemFault> {
        let who = self.who(item);
        let spec = self.entry(item, &who).await?.spec(&who)?;
        match item.digest.as_ref().is_none_or(|it| *it == spec.digest) {
            true => Ok(spec),
            false => Err(ItemFault::Transient(format!(
                "{who} was replaced while it was read: it is looked at again at the next refresh"
            ))),
        }
    }
}

/// Reads the file.
pub(crate) fn read(body: &[u8]) -> Result<Entries, Trouble> {
    let garbled = |why: &str| {
        Trouble::Garbled(format!(
            "is no list of bundles: {why}; mend the file, or check its URL"
        ))
    };
    let text = std::str::from_utf8(body).map_err(|_| garbled("it is no text in UTF-8"))?;
    let documents = sutler_yaml::parse(text).map_err(|it| garbled(&it.reason))?;
    let [document] = documents.as_slice() else {
        return Err(garbled("it must be one document"));
    };
    let file = sutler_yaml::read::<File>(document);
    if let Some(fault) = file.faults.first() {
        return Err(garbled(&fault.to_string()));
    }
    let file = file.value.ok_or_else(|| garbled("it says nothing"))?;
    let bundles = file.bundles;
    if bundles.len() > ITEMS_MAX {
        return Err(Trouble::TooMuch(format!(
            "lists more than {ITEMS_MAX} bundles: make several lists of it"
        )));
    }
    let mut entries = Entries::new();
    for entry in bundles {
        let item = entry.item();
        let name = item.to_string();
        if !is_image(&item.image) || !is_tag(&item.tag) {
            let name = sutler_yaml::one_line(&name);
            return Err(garbled(&format!("{name} is no name with a tag")));
        }
        if entries.insert((item.image, item.tag), entry).is_some() {
            let name = sutler_yaml::one_line(&name);
            return Err(garbled(&format!("it has {name} twice")));
        }
    }
    Ok(entries)
}
