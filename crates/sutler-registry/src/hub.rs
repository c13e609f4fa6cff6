//! The listing of Docker Hub: an API of its own, beside the distribution API that serves the images.
//!
//! With a user and a password it lists what is private, too: a session is begun with them for each listing.

use crate::credentials::Credentials;
use crate::pages::{self, PAGE_BYTES_MAX, Page, Pages};
use crate::place::Place;
use crate::trouble::{Trouble, judge};
use crate::wanted::{Wanted, is_image};
use crate::web::{Ask, Proof, Verb, Web};
use async_trait::async_trait;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where the listing is.
pub const HUB_URL: &str = "https://hub.docker.com";
/// Where the images are.
pub const HUB_REGISTRY_URL: &str = "https://registry-1.docker.io";
/// What images of it are called.
pub const HUB_HOST: &str = "docker.io";
/// Images of one page; the most that is given.
const PAGE: usize = 100;

/// The listing of one organisation.
pub(crate) struct Hub {
    web: Arc<Web>,
    place: Place,
    org: String,
    credentials: Credentials,
}

/// A page as it comes. At the end `next` is `null`: a page without it is none.
#[derive(Deserialize)]
struct Body {
    count: Option<u64>,
    results: Vec<Repository>,
    #[serde(deserialize_with = "Option::deserialize")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
}

/// What a page of an organisation's listing says.
pub(crate) fn read(body: &[u8], org: &str, url: &Url) -> Result<Page, Trouble> {
    let body: Body = serde_json::from_slice(body).map_err(|_| {
        Trouble::Garbled("answered with something that is no listing: check its URL".to_owned())
    })?;
    let names = body.results.into_iter();
    Ok(Page {
        names: names.map(|it| format!("{org}/{}", it.name)).collect(),
        next: body.next.map(|it| pages::beside(url, &it)).transpose()?,
        total: body.count,
    })
}

impl Hub {
    pub(crate) fn new(
        web: Arc<Web>,
        url: &str,
        org: &str,
        credentials: Credentials,
    ) -> Result<Self, String> {
        Ok(Self {
            web,
            place: Place::parse(url)?,
            org: organisation(org)?,
            credentials,
        })
    }

    pub(crate) async fn names(&self, wanted: &Wanted) -> Result<BTreeSet<String>, Trouble> {
        let org = &self.org;
        let path = format!("/v2/repositories/{org}/?page_size={PAGE}");
        let first = self.place.at(&path).map_err(Trouble::Garbled)?;
        let session = Session {
            hub: self,
            proof: self.session().await?,
        };
        pages::names(&session, first, &|it| wanted.wants(it)).await
    }

    /// What proves who lists.
    async fn session(&self) -> Result<Option<Proof>, Trouble> {
        #[derive(Deserialize)]
        struct Begun {
            token: SecretString,
        }
        let (user, password) = match &self.credentials {
            Credentials::None => return Ok(None),
            Credentials::Token(token) => return Ok(Some(Proof::Bearer(token.clone()))),
            Credentials::Basic { user, password } => (user, password),
        };
        let body = serde_json::json!({ "username": user, "password": password.expose_secret() });
        let url = self.place.at("/v2/users/login").map_err(Trouble::Garbled)?;
        let mut ask = Ask::get(url, PAGE_BYTES_MAX);
        ask.verb = Verb::Post;
        ask.body = Some(body.to_string().into());
        let answer = self.web.ask(&ask).await?;
        judge(answer.status, &answer.headers, &answer.body)?;
        let begun: Begun = serde_json::from_slice(&answer.body)
            .map_err(|_| Trouble::Garbled("began no session for us: check its URL".to_owned()))?;
        Ok(Some(Proof::Bearer(begun.token)))
    }
}

/// A listing under way.
struct Session<'a> {
    hub: &'a Hub,
    proof: Option<Proof>,
}

#[async_trait]
impl Pages for Session<'_> {
    async fn page(&self, url: &Url) -> Result<Page, Trouble> {
        let org = &self.hub.org;
        let mut ask = Ask::get(url.clone(), PAGE_BYTES_MAX);
        ask.proof = self.proof.clone();
        let answer = self.hub.web.ask(&ask).await?;
        if answer.status == 404 {
            return Err(Trouble::Garbled(format!(
                "knows no organisation or user {org}: check `org`"
            )));
        }
        judge(answer.status, &answer.headers, &answer.body)?;
        read(&answer.body, org, url)
    }
}

/// The name of an organisation becomes a part of URLs.
pub(crate) fn organisation(org: &str) -> Result<String, String> {
    match is_image(org) {
        true => Ok(org.to_owned()),
        false => Err(format!(
            "{org:?} is no organisation: set `org` to the first part of its images' names"
        )),
    }
}
