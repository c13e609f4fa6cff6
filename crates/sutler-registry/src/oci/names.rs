//! Which images a registry has: by its catalog, by a list, or by an API beside it.

use super::link;
use crate::credentials::Credentials;
use crate::door::Door;
use crate::hub::Hub;
use crate::place::Place;
use crate::quay::Quay;
use crate::trouble::{Trouble, judge};
use crate::wanted::Wanted;
use crate::web::{Ask, Web};
use serde::Deserialize;
use std::sync::Arc;

/// Longest page, in bytes.
pub(crate) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most pages of one listing.
pub(crate) const PAGES_MAX: usize = 1_000;
/// Most names of one listing, wanted or not.
pub(crate) const NAMES_MAX: usize = 200_000;
/// How many names are asked for at once; registries may give fewer.
const PAGE: usize = 1_000;

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

    /// All names that are wanted, and maybe others.
    pub(super) async fn names(&self, wanted: &Wanted) -> Result<Vec<String>, Trouble> {
        match self {
            Self::Catalog(catalog) => catalog.names(wanted).await,
            Self::Images(images) => Ok(images.clone()),
            Self::Hub(hub) => hub.names().await,
            Self::Quay(quay) => quay.names().await,
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
struct Page {
    /// Some say `null` where they have none.
    repositories: Option<Vec<String>>,
}

impl Catalog {
    async fn names(&self, wanted: &Wanted) -> Result<Vec<String>, Trouble> {
        let first = self.place.at(&format!("/v2/_catalog?n={PAGE}"));
        let mut url = first.map_err(Trouble::Garbled)?;
        let below = self.org.as_ref().map(|org| format!("{org}/"));
        let (mut names, mut seen) = (Vec::new(), 0);
        for _ in 0..PAGES_MAX {
            let answer = self
                .door
                .ask(Ask::get(url.clone(), PAGE_BYTES_MAX), "registry:catalog:*");
            let answer = answer.await.map_err(no_catalog)?;
            judge(answer.status, &answer.headers, &answer.body).map_err(no_catalog)?;
            let page: Page = serde_json::from_slice(&answer.body).map_err(|_| {
                Trouble::Garbled(
                    "answered with something that is no catalog: check that the URL is the registry's".to_owned(),
                )
            })?;
            let found = page.repositories.unwrap_or_default();
            seen += found.len();
            let is_below = |name: &String| below.as_ref().is_none_or(|it| name.starts_with(it));
            names.extend(
                found
                    .into_iter()
                    .filter(|it| is_below(it) && wanted.wants(it)),
            );
            if seen > NAMES_MAX {
                break;
            }
            let next = link::next(answer.header("link"), &url).map_err(Trouble::Garbled)?;
            match next {
                None => return Ok(names),
                Some(next) if next == url => {
                    return Err(Trouble::Garbled(
                        "names the same page of its catalog again and again: look at its log"
                            .to_owned(),
                    ));
                }
                Some(next) => url = next,
            }
        }
        Err(too_many())
    }
}

/// A listing that does not end.
pub(crate) fn too_many() -> Trouble {
    Trouble::TooMuch(format!(
        "has more than {NAMES_MAX} images or {PAGES_MAX} pages of them: list `images` instead"
    ))
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
