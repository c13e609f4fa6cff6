//! The listing of Docker Hub: an API of its own, beside the distribution API that serves the images.
//!
//! With a user and a password it lists what is private, too: a session is begun with them for each listing.

use crate::credentials::Credentials;
use crate::oci::{NAMES_MAX, PAGE_BYTES_MAX, PAGES_MAX, too_many};
use crate::place::Place;
use crate::trouble::{Trouble, judge};
use crate::wanted::is_image;
use crate::web::{Ask, Proof, Verb, Web};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
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

#[derive(Deserialize)]
struct Page {
    results: Vec<Repository>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
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

    pub(crate) async fn names(&self) -> Result<Vec<String>, Trouble> {
        let proof = self.session().await?;
        let org = &self.org;
        let first = self
            .place
            .at(&format!("/v2/repositories/{org}/?page_size={PAGE}"));
        let mut url = first.map_err(Trouble::Garbled)?;
        let mut names = Vec::new();
        for _ in 0..PAGES_MAX {
            let mut ask = Ask::get(url.clone(), PAGE_BYTES_MAX);
            ask.proof = proof.clone();
            let answer = self.web.ask(&ask).await?;
            if answer.status == 404 {
                return Err(Trouble::Garbled(format!(
                    "knows no organisation or user {org}: check `org`"
                )));
            }
            judge(answer.status, &answer.headers, &answer.body)?;
            let page: Page = serde_json::from_slice(&answer.body).map_err(|_| {
                Trouble::Garbled(
                    "answered with something that is no listing: check its URL".to_owned(),
                )
            })?;
            names.extend(
                page.results
                    .into_iter()
                    .map(|it| format!("{org}/{}", it.name)),
            );
            if names.len() > NAMES_MAX {
                break;
            }
            match page.next {
                None => return Ok(names),
                Some(next) => url = next_page(&url, &next)?,
            }
        }
        Err(too_many())
    }

    /// What proves who lists.
    async fn session(&self) -> Result<Option<Proof>, Trouble> {
        #[derive(Deserialize)]
        struct Session {
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
        let session: Session = serde_json::from_slice(&answer.body)
            .map_err(|_| Trouble::Garbled("began no session for us: check its URL".to_owned()))?;
        Ok(Some(Proof::Bearer(session.token)))
    }
}

/// The next page, which must be another one of the same server.
pub(crate) fn next_page(page: &Url, next: &str) -> Result<Url, Trouble> {
    let url = page.join(next).ok();
    let fine = |it: &Url| it.origin() == page.origin() && it != page;
    url.filter(fine).ok_or_else(|| {
        Trouble::Garbled(
            "names a next page that is on another server or the same again: check its URL"
                .to_owned(),
        )
    })
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
