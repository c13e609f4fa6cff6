//! One image of the distribution API: which version a tag has, and what is in a version.
//!
//! Everything that is fetched by its digest is held to it. Blobs may lie elsewhere: that is followed without
//! credentials, to the same host or by TLS.

use super::document::{self, Document, Labelled, Labels};
use crate::digest::Digest;
use crate::door::Door;
use crate::fault::ItemFault;
use crate::place::Place;
use crate::seam::{Item, Spec};
use crate::trouble::{Trouble, judge};
use crate::wanted::{is_image, is_tag};
use crate::web::{Answer, Ask, Verb, Web};
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
pub(super) struct Images {
    web: Arc<Web>,
    door: Arc<Door>,
    place: Place,
    pull_from: String,
    platform: String,
    /// Versions that are no bundles, or broken ones, and will never be others.
    verdicts: Mutex<HashMap<Item, ItemFault>>,
}

/// Why a version has no spec.
enum Refused {
    Asked(Trouble),
    /// It is no bundle.
    Foreign,
    /// It is one, and broken.
    Broken(String),
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        Self::Asked(trouble)
    }
}

impl Images {
    pub(super) fn new(
        web: Arc<Web>,
        door: Arc<Door>,
        place: Place,
        pull_from: String,
        platform: String,
    ) -> Self {
        Self {
            web,
            door,
            place,
            pull_from,
            platform,
            verdicts: Mutex::default(),
        }
    }

    /// Which version a tag has now.
    pub(super) async fn look_up(&self, item: &Item, who: &str) -> Result<Digest, ItemFault> {
        check(item, who)?;
        let asked = self.manifest(Verb::Head, item, &item.tag).await;
        let answer = asked.map_err(|trouble| trouble.of_item(who))?;
        let digest = answer.header(DIGEST_HEADER).map(Digest::parse);
        match (judge(answer.status, &answer.headers, &answer.body), digest) {
            (Ok(()), Some(Ok(digest))) => return Ok(digest),
            // Some do not say it, without a body a refusal may say too little, and some know no such question.
            (Ok(()), Some(Err(_)) | None) => {}
            (Err(Trouble::Silent(_) | Trouble::Garbled(_)), _)
                if matches!(answer.status, 404 | 405) => {}
            (Err(trouble), _) => return Err(trouble.of_item(who)),
        }
        let (digest, _) = self.by_tag(item).await.map_err(|it| it.of_item(who))?;
        Ok(digest)
    }

    /// Reads the version that an item names, or the one there is now.
    pub(super) async fn fetch(&self, item: &Item, who: &str) -> Result<Spec, ItemFault> {
        check(item, who)?;
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
        let (digest, bytes) = found.map_err(|trouble| trouble.of_item(who))?;
        let item = item.clone().at(digest.clone());
        match self.read(&item, &bytes).await {
            Ok(Labelled {
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
            Err(refused) => Err(self.refusal(refused, item, digest, who)),
        }
    }

    /// A fault of a version; one that will stay is remembered.
    fn refusal(&self, refused: Refused, item: Item, digest: Digest, who: &str) -> ItemFault {
        let fault = match refused {
            Refused::Asked(trouble) => return trouble.of_item(who),
            Refused::Foreign => ItemFault::NotABundle {
                digest,
                sentence: format!(
                    "{who} is no bundle: it has no label com.redhat.apb.spec; leave it out by the deny list, \
                     or push one that has it"
                ),
            },
            Refused::Broken(why) => ItemFault::Malformed {
                digest: Some(digest),
                sentence: format!("{who} {why}"),
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
    async fn read(&self, item: &Item, bytes: &[u8]) -> Result<Labelled, Refused> {
        match document::read(bytes).map_err(Refused::Broken)? {
            Document::Image {
                config,
                annotations,
            } => self.image(item, &config, &annotations).await,
            Document::Index {
                children,
                annotations,
            } => {
                if let Some(found) = document::labelled(&annotations).map_err(Refused::Broken)? {
                    return Ok(found);
                }
                let child = document::choose(&children, &self.platform);
                let child = child.map_err(Refused::Broken)?;
                let bytes = self.by_digest(item, &child.digest).await?;
                match document::read(&bytes).map_err(Refused::Broken)? {
                    Document::Image {
                        config,
                        annotations,
                    } => self.image(item, &config, &annotations).await,
                    Document::Index { .. } => Err(Refused::Broken(
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
    ) -> Result<Labelled, Refused> {
        if let Some(found) = document::labelled(annotations).map_err(Refused::Broken)? {
            return Ok(found);
        }
        let config = self.blob(item, config).await?;
        let labels = document::labels(&config);
        let found = document::labelled(&labels).map_err(Refused::Broken)?;
        found.ok_or(Refused::Foreign)
    }

    async fn manifest(&self, verb: Verb, item: &Item, what: &str) -> Result<Answer, Trouble> {
        let path = format!("/v2/{}/manifests/{what}", item.image);
        let mut ask = Ask::get(self.url(&path)?, MANIFEST_BYTES_MAX);
        ask.verb = verb;
        ask.accept = MANIFESTS;
        self.door.ask(ask, &scope(item)).await
    }

    /// What a tag leads to now.
    async fn by_tag(&self, item: &Item) -> Result<(Digest, Bytes), Trouble> {
        let answer = self.manifest(Verb::Get, item, &item.tag).await?;
        judge(answer.status, &answer.headers, &answer.body)?;
        let digest = Digest::of(&answer.body);
        let said = answer.header(DIGEST_HEADER).map(Digest::parse);
        match said {
            Some(Ok(said)) if said != digest => Err(mixed_up()),
            Some(_) | None => Ok((digest, answer.body)),
        }
    }

    /// A manifest by its digest. What was just seen and is not there was replaced meanwhile.
    async fn by_digest(&self, item: &Item, digest: &Digest) -> Result<Bytes, Trouble> {
        let answer = self.manifest(Verb::Get, item, &digest.to_string()).await?;
        judge(answer.status, &answer.headers, &answer.body).map_err(replaced)?;
        held_to(digest, answer.body)
    }

    /// A blob by its digest, from wherever it lies.
    async fn blob(&self, item: &Item, digest: &Digest) -> Result<Bytes, Trouble> {
        let mut url = self.url(&format!("/v2/{}/blobs/{digest}", item.image))?;
        let ask = |url: &Url| {
            let mut ask = Ask::get(url.clone(), CONFIG_BYTES_MAX);
            ask.accept = "*/*";
            ask
        };
        let mut answer = self.door.ask(ask(&url), &scope(item)).await?;
        for _ in 0..REDIRECTS_MAX {
            let Some(next) = elsewhere(&answer, &url)? else {
                break;
            };
            url = next;
            // Credentials are for the registry, and not for where it keeps its blobs.
            answer = self.web.ask(&ask(&url)).await?;
        }
        judge(answer.status, &answer.headers, &answer.body).map_err(replaced)?;
        held_to(digest, answer.body)
    }

    fn url(&self, path: &str) -> Result<Url, Trouble> {
        self.place.at(path).map_err(Trouble::Garbled)
    }

    fn verdicts(&self) -> MutexGuard<'_, HashMap<Item, ItemFault>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What it takes to read an image.
fn scope(item: &Item) -> String {
    format!("repository:{}:pull", item.image)
}

/// Names become parts of URLs: what is no name is not asked for.
fn check(item: &Item, who: &str) -> Result<(), ItemFault> {
    match is_image(&item.image) && is_tag(&item.tag) {
        true => Ok(()),
        false => Err(ItemFault::Malformed {
            digest: None,
            sentence: format!(
                "{who:?} is no name of an image with a tag: use small letters, digits and single separators"
            ),
        }),
    }
}

fn held_to(digest: &Digest, bytes: Bytes) -> Result<Bytes, Trouble> {
    match Digest::of(&bytes) == *digest {
        true => Ok(bytes),
        false => Err(mixed_up()),
    }
}

fn mixed_up() -> Trouble {
    Trouble::Silent(
        "sent something else than its digest says: it is asked again at the next refresh; if that stays so, \
         something in between changes what is sent"
            .to_owned(),
    )
}

/// What is not there although it was named a moment ago says nothing about its tag.
fn replaced(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Absent(_) => Trouble::Silent(
            "has no longer what it named a moment ago: it is looked at again at the next refresh"
                .to_owned(),
        ),
        other => other,
    }
}

/// Where an answer says that the blob lies, if it says so and we may go there.
fn elsewhere(answer: &Answer, from: &Url) -> Result<Option<Url>, Trouble> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let target = answer.header("location").and_then(|it| from.join(it).ok());
    let Some(target) = target else {
        return Err(Trouble::Silent(
            "says that a blob lies elsewhere, and not where: look at its log".to_owned(),
        ));
    };
    let near = target.origin() == from.origin();
    match target.scheme() == "https" || near {
        true => Ok(Some(target)),
        false => Err(Trouble::Denied(
            "keeps its blobs where TLS does not reach, which is not followed: have it serve them itself"
                .to_owned(),
        )),
    }
}
