//! The listing of Quay: an API of its own, beside the distribution API that serves the images.
//!
//! A token, if there is one, is that of an application: it lists what is private, too.

use crate::credentials::Credentials;
use crate::hub::organisation;
use crate::oci::{NAMES_MAX, PAGE_BYTES_MAX, PAGES_MAX, too_many};
use crate::place::Place;
use crate::trouble::{Trouble, judge};
use crate::web::{Ask, Proof, Web};
use serde::Deserialize;
use std::sync::Arc;

/// Where it is.
pub const QUAY_URL: &str = "https://quay.io";

/// The listing of one organisation.
pub(crate) struct Quay {
    web: Arc<Web>,
    place: Place,
    org: String,
    proof: Option<Proof>,
}

#[derive(Deserialize)]
struct Page {
    repositories: Vec<Repository>,
    next_page: Option<String>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
    /// `image`, or what is no image; older versions do not say.
    kind: Option<String>,
}

impl Quay {
    pub(crate) fn new(
        web: Arc<Web>,
        url: &str,
        org: &str,
        credentials: Credentials,
    ) -> Result<Self, String> {
        let proof = match credentials {
            Credentials::Token(token) => Some(Proof::Bearer(token)),
            // Users and robots are for pulling; they cannot list.
            Credentials::None | Credentials::Basic { .. } => None,
        };
        Ok(Self {
            web,
            place: Place::parse(url)?,
            org: organisation(org)?,
            proof,
        })
    }

    pub(crate) async fn names(&self) -> Result<Vec<String>, Trouble> {
        let org = &self.org;
        let first = self.place.at("/api/v1/repository");
        let first = first.map_err(Trouble::Garbled)?;
        let mut names = Vec::new();
        let mut next: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let mut url = first.clone();
            url.query_pairs_mut().append_pair("namespace", org);
            if let Some(next) = &next {
                url.query_pairs_mut().append_pair("next_page", next);
            }
            let mut ask = Ask::get(url, PAGE_BYTES_MAX);
            ask.proof = self.proof.clone();
            let answer = self.web.ask(&ask).await?;
            judge(answer.status, &answer.headers, &answer.body)?;
            let page: Page = serde_json::from_slice(&answer.body).map_err(|_| {
                Trouble::Garbled(
                    "answered with something that is no listing: check its URL".to_owned(),
                )
            })?;
            let images = page.repositories.into_iter();
            let images = images.filter(|it| it.kind.as_deref().is_none_or(|kind| kind == "image"));
            names.extend(images.map(|it| format!("{org}/{}", it.name)));
            match page.next_page {
                _ if names.len() > NAMES_MAX => break,
                None => return Ok(names),
                Some(again) if next.as_ref() == Some(&again) => {
                    return Err(Trouble::Garbled(
                        "names the same page of its listing again and again: look at its log"
                            .to_owned(),
                    ));
                }
                Some(more) => next = Some(more),
            }
        }
        Err(too_many())
    }
}
