//! Listing of Docker Hub: a separate API next to the distribution API that serves the images.
//!
//! With a user and a password it also lists private images: each listing logs in with them.

use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::http_client::{Authorization, HttpClient, HttpMethod, HttpRequest};
use crate::http_error::{HttpError, check_status};
use crate::name_pages::{self, NamePage, NamePages, PAGE_BYTES_MAX};
use crate::selection::{ImageFilter, is_image};
use async_trait::async_trait;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// URL of the listing API.
pub const HUB_URL: &str = "https://hub.docker.com";
/// URL of the distribution API.
pub const HUB_REGISTRY_URL: &str = "https://registry-1.docker.io";
/// Host in the names of images.
pub const HUB_HOST: &str = "docker.io";
/// Images per page; the maximum of the API.
const PAGE: usize = 100;

/// Lister of one organisation.
pub(crate) struct DockerHub {
    http: Arc<HttpClient>,
    base_url: BaseUrl,
    org: String,
    credentials: Credentials,
}

/// A page of the API. `next` is required, and `null` on the last page.
#[derive(Deserialize)]
struct HubPage {
    count: Option<u64>,
    results: Vec<Repository>,
    #[serde(deserialize_with = "Option::deserialize")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
}

/// Parses a page of the listing of an organisation.
pub(crate) fn read(body: &[u8], org: &str, url: &Url) -> Result<NamePage, HttpError> {
    let body: HubPage = serde_json::from_slice(body).map_err(|_| {
        HttpError::Garbled(
            "answered with something that is not a listing: check its URL".to_owned(),
        )
    })?;
    let names = body.results.into_iter();
    Ok(NamePage {
        names: names.map(|it| format!("{org}/{}", it.name)).collect(),
        next: body
            .next
            .map(|it| name_pages::join_same_origin(url, &it))
            .transpose()?,
        total: body.count,
    })
}

impl DockerHub {
    pub(crate) fn new(
        http: Arc<HttpClient>,
        url: &str,
        org: &str,
        credentials: Credentials,
    ) -> Result<Self, String> {
        Ok(Self {
            http,
            base_url: BaseUrl::parse(url)?,
            org: organisation(org)?,
            credentials,
        })
    }

    pub(crate) async fn names(&self, filter: &ImageFilter) -> Result<BTreeSet<String>, HttpError> {
        let org = &self.org;
        let path = format!("/v2/repositories/{org}/?page_size={PAGE}");
        let first = self.base_url.at(&path).map_err(HttpError::Garbled)?;
        let session = HubSession {
            hub: self,
            authorization: self.session().await?,
        };
        name_pages::names(&session, first, &|it| filter.wants(it)).await
    }

    /// Logs in, if there are credentials.
    async fn session(&self) -> Result<Option<Authorization>, HttpError> {
        #[derive(Deserialize)]
        struct LoginResponse {
            token: SecretString,
        }
        let (user, password) = match &self.credentials {
            Credentials::None => return Ok(None),
            Credentials::Token(token) => return Ok(Some(Authorization::Bearer(token.clone()))),
            Credentials::Basic { user, password } => (user, password),
        };
        let body = serde_json::json!({ "username": user, "password": password.expose_secret() });
        let url = self
            .base_url
            .at("/v2/users/login")
            .map_err(HttpError::Garbled)?;
        let mut request = HttpRequest::get(url, PAGE_BYTES_MAX);
        request.method = HttpMethod::Post;
        request.body = Some(body.to_string().into());
        let response = self.http.send(&request).await?;
        check_status(response.status, &response.headers, &response.body)?;
        let begun: LoginResponse = serde_json::from_slice(&response.body)
            .map_err(|_| HttpError::Garbled("began no session for us: check its URL".to_owned()))?;
        Ok(Some(Authorization::Bearer(begun.token)))
    }
}

/// One listing with its authorization.
struct HubSession<'a> {
    hub: &'a DockerHub,
    authorization: Option<Authorization>,
}

#[async_trait]
impl NamePages for HubSession<'_> {
    async fn page(&self, url: &Url) -> Result<NamePage, HttpError> {
        let org = &self.hub.org;
        let mut request = HttpRequest::get(url.clone(), PAGE_BYTES_MAX);
        request.authorization = self.authorization.clone();
        let response = self.hub.http.send(&request).await?;
        if response.status == 404 {
            return Err(HttpError::Garbled(format!(
                "knows no organisation or user {org}: check `org`"
            )));
        }
        check_status(response.status, &response.headers, &response.body)?;
        read(&response.body, org, url)
    }
}

/// Validates the name of an organisation, which becomes a part of URLs.
pub(crate) fn organisation(org: &str) -> Result<String, String> {
    match is_image(org) {
        true => Ok(org.to_owned()),
        false => Err(format!(
            "{org:?} is not an organisation: set `org` to the first part of its images' names"
        )),
    }
}
