//! Which images a registry has: by its catalog, by a list, or by an API beside it.

use super::link;
use crate::credentials::Credentials;
use crate::door::Door;
use crate::hub::Hub;
use crate::pages::{self, PAGE_BYTES_MAX, Page, Pages, maybe_null};
use crate::place::Place;
use crate::quay::Quay;
use crate::trouble::{Trouble, judge};
use crate::wanted::Wanted;
use crate::web::{Answer, Ask, Web};
use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::LINK;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many names are asked for at once; registries may give fewer.
const PAGE: usize = 1_000;
/// The rights that a catalog needs.
const SCOPE: &str = "registry:catalog:*";

/// How the images of a registry are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// By the registry's own catalog; only those below an organisation, if one is given.
    Catalog {
        /// The first part of the names that are wanted.
        org: Option<String>,
    },
    /// By a list.
    Images(Vec<String>),
    /// By the API of Docker Hub.
    DockerHub {
        /// Where that API is.
        url: String,
        /// Whose images.
        org: String,
    },
    /// By the API of Quay.
    Quay {
        /// Where that API is.
        url: String,
        /// Whose images.
        org: String,
    },
}

/// Whoever knows the names.
pub(super) enum Asker {
    Catalog(Catalog),
    Images(Vec<String>),
    Hub(Hub),
    Quay(Quay),
}

impl Asker {
    pub(super) fn new(
        names: Names,
        place: &Place,
        web: Arc<Web>,
        door: Arc<Door>,
        credentials: Credentials,
    ) -> Result<Self, String> {
        Ok(match names {
            Names::Catalog { org } => Self::Catalog(Catalog {
                door,
                place: place.clone(),
                org,
            }),
            Names::Images(images) => Self::Images(images),
            Names::DockerHub { url, org } => Self::Hub(Hub::new(web, &url, &org, credentials)?),
            Names::Quay { url, org } => Self::Quay(Quay::new(web, &url, &org, credentials)?),
        })
    }

    /// All names that are wanted.
    pub(super) async fn names(&self, wanted: &Wanted) -> Result<BTreeSet<String>, Trouble> {
        match self {
            Self::Catalog(catalog) => catalog.names(wanted).await,
            Self::Images(images) => {
                let named = images.iter().filter(|it| wanted.wants(it));
                Ok(named.cloned().collect())
            }
            Self::Hub(hub) => hub.names(wanted).await,
            Self::Quay(quay) => quay.names(wanted).await,
        }
    }
}

/// A registry's own catalog.
pub(super) struct Catalog {
    door: Arc<Door>,
    place: Place,
    org: Option<String>,
}

#[derive(Deserialize)]
struct Body {
    /// Some say `null` where they have none. Who says nothing of it is no catalog.
    #[serde(deserialize_with = "maybe_null")]
    repositories: Vec<String>,
}

/// The names on a page of a catalog.
pub(crate) fn read(body: &[u8]) -> Result<Vec<String>, String> {
    let body: Body = serde_json::from_slice(body).map_err(|_| {
        "answered with something that is no catalog: check that the URL is the registry's"
            .to_owned()
    })?;
    Ok(body.repositories)
}

impl Catalog {
    async fn names(&self, wanted: &Wanted) -> Result<BTreeSet<String>, Trouble> {
        let first = self.place.at(&format!("/v2/_catalog?n={PAGE}"));
        let first = first.map_err(Trouble::Garbled)?;
        let below = self.org.as_ref().map(|org| format!("{org}/"));
        let keep = |name: &str| {
            let is_below = below.as_ref().is_none_or(|it| name.starts_with(it));
            is_below && wanted.wants(name)
        };
        pages::names(self, first, &keep).await
    }

    async fn ask(&self, url: Url) -> Result<Answer, Trouble> {
        let ask = Ask::get(url, PAGE_BYTES_MAX);
        self.door.ask(ask, SCOPE).await.map_err(no_catalog)
    }
}

#[async_trait]
impl Pages for Catalog {
    async fn page(&self, url: &Url) -> Result<Page, Trouble> {
        let mut answer = self.ask(url.clone()).await?;
        // Some refuse to give so many at once, and say how many only by giving as many as they like.
        if answer.status == 400 && url.query() == Some(&format!("n={PAGE}")) {
            let mut any = url.clone();
            any.set_query(None);
            answer = self.ask(any).await?;
        }
        judge(answer.status, &answer.headers, &answer.body).map_err(no_catalog)?;
        let links = answer.headers.get_all(LINK).iter();
        // What is no text cannot be understood, and must not be taken for the end.
        let links = links.map(|it| it.to_str().unwrap_or("?"));
        let next = link::next(links).map_err(Trouble::Garbled)?;
        Ok(Page {
            names: read(&answer.body).map_err(Trouble::Garbled)?,
            next: next.map(|it| pages::beside(url, it)).transpose()?,
            total: None,
        })
    }
}

/// Many registries have no catalog, or not for everybody.
fn no_catalog(trouble: Trouble) -> Trouble {
    let or_list = |why: String| format!("{why}; or list `images`, if it has no catalog for us");
    match trouble {
        Trouble::Denied(why) => Trouble::Denied(or_list(why)),
        Trouble::Absent(_) => Trouble::Garbled("has no catalog: list `images` instead".to_owned()),
        Trouble::Garbled(why) => Trouble::Garbled(or_list(why)),
        other @ (Trouble::Silent(_) | Trouble::TooMuch(_)) => other,
    }
}
