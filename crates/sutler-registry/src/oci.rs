//! Registries of images: whatever speaks the distribution API, version 2.
//!
//! Which images there are is said by the registry's own catalog, by a list, or by an API beside it
//! (`oci/names.rs`, `hub.rs`, `quay.rs`); what is in one is always asked of the distribution API
//! (`oci/images.rs`). `oci/document.rs` reads manifests and labels.

pub(crate) mod document;
mod images;
pub(crate) mod link;
pub(crate) mod names;

pub(crate) use document::{Labels, labelled};
pub use names::Names;

use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::door::Door;
use crate::fault::{ItemFault, ListFault};
use crate::place::Place;
use crate::quay;
use crate::seam::{Item, Listing, Registry, Spec};
use crate::trouble::Trouble;
use crate::wanted::{Wanted, is_image, is_reference};
use crate::web::{Reach, Web};
use async_trait::async_trait;
use images::Images;
use std::sync::Arc;

/// Most items of one registry.
pub const ITEMS_MAX: usize = 20_000;
/// The platform that is chosen where an image has several.
pub const PLATFORM: &str = "linux/amd64";

/// What is needed to use a registry of images.
#[derive(Clone, Debug)]
pub struct ImageSettings {
    /// What it is called in the configuration.
    pub name: String,
    /// Where its distribution API is: everything before `/v2`.
    pub url: String,
    /// What images are called by whoever pulls them, if it is not the host of the URL.
    pub pull_from: Option<String>,
    /// The platform that is chosen where an image has several, as `os/architecture`.
    pub platform: Option<String>,
    /// How its images are found.
    pub names: Names,
    /// Which of them are wanted.
    pub wanted: Wanted,
    /// What proves who asks.
    pub credentials: Credentials,
    /// How it is reached.
    pub reach: Reach,
}

/// A registry of images.
pub struct ImageRegistry {
    name: String,
    web: Arc<Web>,
    names: names::Asker,
    wanted: Wanted,
    images: Images,
}

impl ImageRegistry {
    /// Sets it up; asks nothing, so that a registry that is down does not matter.
    ///
    /// # Errors
    /// A setting cannot be used; the sentence says which.
    pub fn new(settings: ImageSettings) -> Result<Self, String> {
        let web = Arc::new(Web::new(&settings.reach)?);
        let place = Place::parse(&settings.url)?;
        let login = match settings.names {
            Names::Quay { .. } => quay::login(&settings.credentials),
            Names::Catalog { .. } | Names::Images(_) | Names::DockerHub { .. } => {
                settings.credentials.clone()
            }
        };
        let door = Door::new(web.clone(), place.url(), login);
        let door = Arc::new(door);
        if let Names::Images(images) = &settings.names
            && let Some(odd) = images.iter().find(|it| !is_image(it))
        {
            return Err(format!(
                "{odd:?} is no name of an image: use small letters, digits and single separators, without a \
                 host and without a tag"
            ));
        }
        let names = names::Asker::new(
            settings.names,
            &place,
            web.clone(),
            door.clone(),
            settings.credentials,
        )?;
        let platform = settings.platform.unwrap_or_else(|| PLATFORM.to_owned());
        if platform.split('/').count() < 2 {
            return Err(format!(
                "{platform:?} is no platform: write system and processor, such as {PLATFORM}"
            ));
        }
        let pull_from = settings.pull_from.unwrap_or_else(|| place.host());
        if !is_reference(&pull_from) {
            return Err(format!(
                "{pull_from:?} is nothing that images can be pulled from: set `pull_from` to a host, such as \
                 registry.example:5000"
            ));
        }
        Ok(Self {
            name: settings.name,
            names,
            wanted: settings.wanted,
            images: Images::new(web.clone(), door, place, pull_from, platform),
            web,
        })
    }

    fn who(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for ImageRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListFault> {
        self.web.begin();
        let who = format!("the registry {}", self.name);
        let names = self.names.names(&self.wanted).await;
        let names = names.map_err(|trouble| trouble.of_listing(&who))?;
        let items = self.wanted.items(names.iter().map(String::as_str));
        if items.len() > ITEMS_MAX {
            let trouble = Trouble::TooMuch(format!(
                "has {} images and tags that are wanted, and {ITEMS_MAX} are read at most: narrow the \
                 allow list",
                items.len()
            ));
            return Err(trouble.of_listing(&who));
        }
        Ok(Listing::complete(items))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemFault> {
        self.images.look_up(item, &self.who(item)).await
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemFault> {
        self.images.fetch(item, &self.who(item)).await
    }
}
