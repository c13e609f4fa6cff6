//! Image streams of OpenShift: what its API knows of images, without asking any registry.
//!
//! A stream says which image each of its tags leads to, so a listing says versions. Only the HTTP part is
//! here: the token, the authority and the address come from whoever runs the broker.

pub(crate) mod shapes;

use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::fault::{ItemFault, ListFault};
use crate::oci::{ITEMS_MAX, labelled};
use crate::pages::{PAGE_BYTES_MAX, PAGES_MAX, round, too_many};
use crate::place::Place;
use crate::seam::{Item, Listing, Registry, Spec};
use crate::trouble::{Trouble, judge};
use crate::wanted::{Wanted, is_image, is_tag};
use crate::web::{Answer, Ask, Proof, Reach, Web};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use shapes::{StreamImage, Streams, is_not_found};

/// Where image streams are in the API.
const API: &str = "/apis/image.openshift.io/v1/namespaces";
/// Where bundles are looked for if nobody says.
pub const NAMESPACE: &str = "openshift";
/// What a page of streams calls itself.
const LIST_KIND: &str = "ImageStreamList";
/// Streams of one page.
const PAGE: usize = 200;
/// Longest answer about one image, in bytes.
const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is needed to use image streams.
#[derive(Clone, Debug)]
pub struct OpenShiftSettings {
    /// What it is called in the configuration.
    pub name: String,
    /// Where the API server is.
    pub url: String,
    /// Where streams are looked for; in `openshift` if none is given.
    pub namespaces: Vec<String>,
    /// What of them is wanted. Images are called `NAMESPACE/STREAM`.
    pub wanted: Wanted,
    /// The token of a service account.
    pub credentials: Credentials,
    /// How it is reached.
    pub reach: Reach,
}

/// The image streams of some namespaces.
pub struct OpenShiftRegistry {
    name: String,
    web: Web,
    place: Place,
    namespaces: Vec<String>,
    proof: Option<Proof>,
    wanted: Wanted,
}

impl OpenShiftRegistry {
    /// Sets it up; asks nothing.
    ///
    /// # Errors
    /// A setting cannot be used; the sentence says which.
    pub fn new(settings: OpenShiftSettings) -> Result<Self, String> {
        let mut namespaces = settings.namespaces;
        if namespaces.is_empty() {
            namespaces.push(NAMESPACE.to_owned());
        }
        if let Some(odd) = namespaces
            .iter()
            .find(|it| it.contains('/') || !is_image(it))
        {
            return Err(format!(
                "{odd:?} is no namespace: use its name as OpenShift has it"
            ));
        }
        let proof = match settings.credentials {
            Credentials::None => None,
            Credentials::Basic { user, password } => Some(Proof::Basic(user, password)),
            Credentials::Token(token) => Some(Proof::Bearer(token)),
        };
        Ok(Self {
            name: settings.name,
            web: Web::new(&settings.reach)?,
            place: Place::parse(&settings.url)?,
            namespaces,
            proof,
            wanted: settings.wanted,
        })
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)], max: usize) -> Result<Answer, Trouble> {
        let mut url = self
            .place
            .at(&format!("{API}/{path}"))
            .map_err(Trouble::Garbled)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut ask = Ask::get(url, max);
        ask.proof = self.proof.clone();
        self.web.ask(&ask).await
    }

    /// The items of one namespace.
    async fn streams(&self, namespace: &str, items: &mut Vec<Item>) -> Result<(), Trouble> {
        let page = PAGE.to_string();
        let mut next = String::new();
        for _ in 0..PAGES_MAX {
            let mut query = vec![("limit", page.as_str())];
            if !next.is_empty() {
                query.push(("continue", &next));
            }
            let path = format!("{namespace}/imagestreams");
            let answer = self.ask(&path, &query, PAGE_BYTES_MAX * 4).await?;
            if answer.status == 410 {
                return Err(Trouble::Silent(
                    "forgot where the listing was (410): it is begun anew at the next refresh"
                        .to_owned(),
                ));
            }
            let streams: Streams = understood(&answer)?;
            if streams.kind != LIST_KIND {
                return Err(no_streams());
            }
            for stream in streams.items {
                let image = format!("{namespace}/{}", stream.metadata.name);
                if is_image(&image) && self.wanted.wants(&image) {
                    let tags = self.wanted.tags(&image);
                    let found = tags.filter_map(|tag| Some((tag, stream.version(tag)?)));
                    items.extend(found.map(|(tag, digest)| Item::new(&image, tag).at(digest)));
                }
            }
            if items.len() > ITEMS_MAX {
                return Err(Trouble::TooMuch(format!(
                    "has more than {ITEMS_MAX} images and tags that are wanted: narrow the allow list"
                )));
            }
            match streams.metadata.next {
                Some(more) if more.is_empty() => return Ok(()),
                None => return Ok(()),
                Some(more) if more == next => return Err(round()),
                Some(more) => next = more,
            }
        }
        Err(too_many())
    }

    async fn image(&self, item: &Item, who: &str) -> Result<StreamImage, ItemFault> {
        let named = item.image.split_once('/');
        let Some((namespace, stream)) =
            named.filter(|_| is_image(&item.image) && is_tag(&item.tag))
        else {
            return Err(ItemFault::Malformed {
                digest: None,
                sentence: format!(
                    "{who:?} is no NAMESPACE/STREAM:TAG: use the names that OpenShift has"
                ),
            });
        };
        let path = match &item.digest {
            Some(digest) => format!("{namespace}/imagestreamimages/{stream}@{digest}"),
            None => format!("{namespace}/imagestreamtags/{stream}:{}", item.tag),
        };
        let answer = self.ask(&path, &[], IMAGE_BYTES_MAX).await;
        let answer = answer.map_err(|trouble| trouble.of_item(who))?;
        if is_not_found(answer.status, &answer.body) {
            let gone =
                format!("{who}: there is no such image stream or tag: push it, or leave it out");
            return Err(match &item.digest {
                // It was named a moment ago, and its tag may lead elsewhere by now.
                Some(_) => ItemFault::Transient(gone),
                None => ItemFault::Gone(gone),
            });
        }
        understood(&answer).map_err(|trouble| trouble.of_item(who))
    }

    fn who(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for OpenShiftRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListFault> {
        self.web.begin();
        let who = format!("the registry {}", self.name);
        let mut items = Vec::new();
        for namespace in &self.namespaces {
            let listed = self.streams(namespace, &mut items).await;
            listed.map_err(|trouble| trouble.of_listing(&who))?;
        }
        Ok(Listing::complete(items))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemFault> {
        let who = self.who(item);
        let now = Item::new(&item.image, &item.tag);
        self.image(&now, &who).await?.digest(&who)
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemFault> {
        let who = self.who(item);
        let found = self.image(item, &who).await?;
        let digest = found.digest(&who)?;
        if item.digest.as_ref().is_some_and(|it| *it != digest) {
            return Err(ItemFault::Transient(format!(
                "{who}: another version came than was asked for; it is looked at again at the next refresh"
            )));
        }
        let broken = |why: String| ItemFault::Malformed {
            digest: Some(digest.clone()),
            sentence: format!("{who} {why}"),
        };
        let labels = labelled(&found.labels()).map_err(&broken)?;
        let Some(labels) = labels else {
            return Err(ItemFault::NotABundle {
                digest,
                sentence: format!(
                    "{who} is no bundle: it has no label com.redhat.apb.spec; leave it out by the deny list"
                ),
            });
        };
        let unnamed =
            || broken("has no name that an engine could pull it by: push it again".to_owned());
        let image = found.reference(&digest).ok_or_else(unnamed)?;
        Ok(Spec {
            item: item.clone().at(digest.clone()),
            image: Some(image),
            digest,
            manifest: labels.manifest,
            file: labels.file,
            runtime: labels.runtime,
        })
    }
}

fn understood<T: DeserializeOwned>(answer: &Answer) -> Result<T, Trouble> {
    judge(answer.status, &answer.headers, &answer.body)?;
    serde_json::from_slice(&answer.body).map_err(|_| no_streams())
}

fn no_streams() -> Trouble {
    Trouble::Garbled(
        "answered with something that is no image stream: check that the URL is the API server's"
            .to_owned(),
    )
}
