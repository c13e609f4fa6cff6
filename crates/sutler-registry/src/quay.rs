//! Listing of Quay: a separate API next to the distribution API that serves the images.
//!
//! Without a token it lists public images. A token is that of an application: with it, private images visible to its
//! user are listed, too, and images are pulled under the user name that Quay reserves for such tokens.

use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::docker_hub::organisation;
use crate::http_client::{Authorization, HttpClient, HttpRequest};
use crate::http_error::{HttpError, check_status};
use crate::name_pages::{self, NamePage, NamePages, PAGE_BYTES_MAX};
use crate::selection::ImageFilter;
use async_trait::async_trait;
use reqwest::Url;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// URL of Quay.
pub const QUAY_URL: &str = "https://quay.io";
/// User name for a login with the token of an application.
const TOKEN_USER: &str = "$oauthtoken";

/// Lister of one organisation.
pub(crate) struct Quay {
    http: Arc<HttpClient>,
    org: String,
    first: Url,
    authorization: Option<Authorization>,
}

#[derive(Deserialize)]
struct QuayPage {
    repositories: Vec<Repository>,
    /// Token of the next page, if there is one.
    next_page: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
    /// `image` or another kind; absent in older versions.
    kind: Option<String>,
}

/// Parses a page of the listing of an organisation. `first` is the URL of the first page.
pub(crate) fn read(body: &[u8], org: &str, first: &Url) -> Result<NamePage, HttpError> {
    let body: QuayPage = serde_json::from_slice(body).map_err(|_| {
        HttpError::Garbled(
            "answered with something that is not a listing: check its URL".to_owned(),
        )
    })?;
    let images = body.repositories.into_iter();
    let images = images.filter(|it| it.kind.as_deref().is_none_or(|kind| kind == "image"));
    let more = |token: String| {
        let mut next = first.clone();
        next.query_pairs_mut().append_pair("next_page", &token);
        next
    };
    Ok(NamePage {
        names: images.map(|it| format!("{org}/{}", it.name)).collect(),
        next: body.next_page.filter(|it| !it.is_empty()).map(more),
        total: None,
    })
}

/// Credentials for pulling images that are listed by this API.
pub(crate) fn login(credentials: &Credentials) -> Credentials {
    match credentials {
        Credentials::Token(token) => Credentials::Basic {
            user: TOKEN_USER.to_owned(),
            password: token.clone(),
        },
        other @ (Credentials::None | Credentials::Basic { .. }) => other.clone(),
    }
}

impl Quay {
    pub(crate) fn new(
        http: Arc<HttpClient>,
        url: &str,
        org: &str,
        credentials: Credentials,
    ) -> Result<Self, String> {
        let authorization = match credentials {
            Credentials::Token(token) => Some(Authorization::Bearer(token)),
            // Users and robots can pull, but not list.
            Credentials::None | Credentials::Basic { .. } => None,
        };
        let org = organisation(org)?;
        let mut first = BaseUrl::parse(url)?.at("/api/v1/repository")?;
        // Without this parameter public images are left out of the listing.
        let query = [("namespace", org.as_str()), ("public", "true")];
        first.query_pairs_mut().extend_pairs(query);
        Ok(Self {
            http,
            org,
            first,
            authorization,
        })
    }

    pub(crate) async fn names(&self, filter: &ImageFilter) -> Result<BTreeSet<String>, HttpError> {
        name_pages::names(self, self.first.clone(), &|it| filter.wants(it)).await
    }
}

#[async_trait]
impl NamePages for Quay {
    async fn page(&self, url: &Url) -> Result<NamePage, HttpError> {
        let mut request = HttpRequest::get(url.clone(), PAGE_BYTES_MAX);
        request.authorization = self.authorization.clone();
        let response = self.http.send(&request).await?;
        check_status(response.status, &response.headers, &response.body)?;
        read(&response.body, &self.org, &self.first)
    }
}
