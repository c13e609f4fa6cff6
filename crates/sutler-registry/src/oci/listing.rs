//! Listing of the images of a registry: by its catalog, by a configured list, or by a separate API.

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

/// Requested page size; registries may return fewer.
const PAGE: usize = 1_000;
/// Scope of the catalog.
const SCOPE: &str = "registry:catalog:*";

/// How the images of a registry are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingMethod {
    /// By the catalog of the registry; only images of an organisation, if one is given.
    Catalog {
        /// First part of the names.
        org: Option<String>,
    },
    /// By a configured list.
    Images(Vec<String>),
    /// By the API of Docker Hub.
    DockerHub {
        /// URL of the API.
        url: String,
        /// Organisation that owns the images.
        org: String,
    },
    /// By the API of Quay.
    Quay {
        /// URL of the API.
        url: String,
        /// Organisation that owns the images.
        org: String,
    },
}

/// Lister of a registry, by method.
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

    /// Lists all selected names.
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

/// Lister of the catalog of a registry.
pub(super) struct Catalog {
    auth: Arc<RegistryAuth>,
    base_url: BaseUrl,
    org: Option<String>,
}

#[derive(Deserialize)]
struct CatalogPage {
    /// Some registries send `null` for an empty list. Without the field, the response is not a catalog.
    #[serde(deserialize_with = "maybe_null")]
    repositories: Vec<String>,
}

/// Parses a page of a catalog.
pub(crate) fn read(body: &[u8]) -> Result<Vec<String>, String> {
    let body: CatalogPage = serde_json::from_slice(body).map_err(|_| {
        "answered with something that is not a catalog: check that the URL is the registry's"
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
        // Some registries refuse a large page size, and choose their own without one.
        if response.status == 400 && url.query() == Some(&format!("n={PAGE}")) {
            let mut any = url.clone();
            any.set_query(None);
            response = self.send(any).await?;
        }
        check_status(response.status, &response.headers, &response.body).map_err(no_catalog)?;
        let links = response.headers.get_all(LINK).iter();
        // A value that is not text must not be mistaken for the last page.
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

/// Adds a remedy, because many registries have no catalog, or restrict it.
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
