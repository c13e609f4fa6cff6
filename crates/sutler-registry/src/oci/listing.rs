//! Which images a registry has: by its catalog, by a list, or by an API beside it.

use super::link;
use crate::auth::RegistryAuth;
use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::docker_hub::DockerHub;
use crate::http_client::{HttpClient, HttpRequest, HttpResponse};
use crate::http_error::{HttpError, check_status};
use crate::name_pages::{self, NamePage, NamePages, PAGE_BYTES_MAX, maybe_null};
use crate::quay::Quay;
use crate::selection::ImageFilter;
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
pub enum ListingMethod {
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
pub(super) enum ImageLister {
    Catalog(Catalog),
    Images(Vec<String>),
    Hub(DockerHub),
    Quay(Quay),
}

impl ImageLister {
    pub(super) fn new(
        names: ListingMethod,
        base_url: &BaseUrl,
        http: Arc<HttpClient>,
        auth: Arc<RegistryAuth>,
        credentials: Credentials,
    ) -> Result<Self, String> {
        Ok(match names {
            ListingMethod::Catalog { org } => Self::Catalog(Catalog {
                auth,
                base_url: base_url.clone(),
                org,
            }),
            ListingMethod::Images(images) => Self::Images(images),
            ListingMethod::DockerHub { url, org } => {
                Self::Hub(DockerHub::new(http, &url, &org, credentials)?)
            }
            ListingMethod::Quay { url, org } => {
                Self::Quay(Quay::new(http, &url, &org, credentials)?)
            }
        })
    }

    /// All names that are wanted.
    pub(super) async fn names(&self, filter: &ImageFilter) -> Result<BTreeSet<String>, HttpError> {
        match self {
            Self::Catalog(catalog) => catalog.names(filter).await,
            Self::Images(images) => {
                let named = images.iter().filter(|it| filter.wants(it));
                Ok(named.cloned().collect())
            }
            Self::Hub(hub) => hub.names(filter).await,
            Self::Quay(quay) => quay.names(filter).await,
        }
    }
}

/// A registry's own catalog.
pub(super) struct Catalog {
    auth: Arc<RegistryAuth>,
    base_url: BaseUrl,
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
    async fn names(&self, filter: &ImageFilter) -> Result<BTreeSet<String>, HttpError> {
        let first = self.base_url.at(&format!("/v2/_catalog?n={PAGE}"));
        let first = first.map_err(HttpError::Garbled)?;
        let below = self.org.as_ref().map(|org| format!("{org}/"));
        let keep = |name: &str| {
            let is_below = below.as_ref().is_none_or(|it| name.starts_with(it));
            is_below && filter.wants(name)
        };
        name_pages::names(self, first, &keep).await
    }

    async fn send(&self, url: Url) -> Result<HttpResponse, HttpError> {
        let request = HttpRequest::get(url, PAGE_BYTES_MAX);
        self.auth.send(request, SCOPE).await.map_err(no_catalog)
    }
}

#[async_trait]
impl NamePages for Catalog {
    async fn page(&self, url: &Url) -> Result<NamePage, HttpError> {
        let mut response = self.send(url.clone()).await?;
        // Some refuse to give so many at once, and say how many only by giving as many as they like.
        if response.status == 400 && url.query() == Some(&format!("n={PAGE}")) {
            let mut any = url.clone();
            any.set_query(None);
            response = self.send(any).await?;
        }
        check_status(response.status, &response.headers, &response.body).map_err(no_catalog)?;
        let links = response.headers.get_all(LINK).iter();
        // What is no text cannot be understood, and must not be taken for the end.
        let links = links.map(|it| it.to_str().unwrap_or("?"));
        let next = link::next(links).map_err(HttpError::Garbled)?;
        Ok(NamePage {
            names: read(&response.body).map_err(HttpError::Garbled)?,
            next: next
                .map(|it| name_pages::join_same_origin(url, it))
                .transpose()?,
            total: None,
        })
    }
}

/// Many registries have no catalog, or not for everybody.
fn no_catalog(error: HttpError) -> HttpError {
    let or_list = |why: String| format!("{why}; or list `images`, if it has no catalog for us");
    match error {
        HttpError::Denied(why) => HttpError::Denied(or_list(why)),
        HttpError::Absent(_) => {
            HttpError::Garbled("has no catalog: list `images` instead".to_owned())
        }
        HttpError::Garbled(why) => HttpError::Garbled(or_list(why)),
        other @ (HttpError::Silent(_) | HttpError::TooMuch(_)) => other,
    }
}
