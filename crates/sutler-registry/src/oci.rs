//! Registries of images: whatever speaks the distribution API, version 2.
//!
//! Which images there are is said by the registry's own catalog, by a list, or by an API beside it
//! (`oci/names.rs`, `hub.rs`, `quay.rs`); what is in one is always asked of the distribution API
//! (`oci/images.rs`). `oci/document.rs` reads manifests and labels.

mod images;
pub(crate) mod link;
pub(crate) mod listing;
pub(crate) mod manifest;

pub use listing::ListingMethod;
pub(crate) use manifest::{Labels, labelled};

use crate::auth::RegistryAuth;
use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use crate::http_client::{HttpClient, HttpSettings};
use crate::http_error::HttpError;
use crate::quay;
use crate::registry::{Item, Listing, Registry, Spec};
use crate::selection::{ImageFilter, is_image, is_reference};
use async_trait::async_trait;
use images::ImageReader;
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
    pub listing: ListingMethod,
    /// Which of them are wanted.
    pub filter: ImageFilter,
    /// What proves who asks.
    pub credentials: Credentials,
    /// How it is reached.
    pub http: HttpSettings,
}

/// A registry of images.
pub struct ImageRegistry {
    name: String,
    http: Arc<HttpClient>,
    listing: listing::ImageLister,
    filter: ImageFilter,
    images: ImageReader,
}

impl ImageRegistry {
    /// Sets it up; asks nothing, so that a registry that is down does not matter.
    ///
    /// # Errors
    /// A setting cannot be used; the sentence says which.
    pub fn new(settings: ImageSettings) -> Result<Self, String> {
        let http = Arc::new(HttpClient::new(&settings.http)?);
        let base_url = BaseUrl::parse(&settings.url)?;
        let login = match settings.listing {
            ListingMethod::Quay { .. } => quay::login(&settings.credentials),
            ListingMethod::Catalog { .. }
            | ListingMethod::Images(_)
            | ListingMethod::DockerHub { .. } => settings.credentials.clone(),
        };
        let auth = RegistryAuth::new(http.clone(), base_url.url(), login);
        let auth = Arc::new(auth);
        if let ListingMethod::Images(images) = &settings.listing
            && let Some(odd) = images.iter().find(|it| !is_image(it))
        {
            return Err(format!(
                "{odd:?} is no name of an image: use small letters, digits and single separators, without a \
                 host and without a tag"
            ));
        }
        let listing = listing::ImageLister::new(
            settings.listing,
            &base_url,
            http.clone(),
            auth.clone(),
            settings.credentials,
        )?;
        let platform = settings.platform.unwrap_or_else(|| PLATFORM.to_owned());
        if platform.split('/').count() < 2 {
            return Err(format!(
                "{platform:?} is no platform: write system and processor, such as {PLATFORM}"
            ));
        }
        let pull_from = settings.pull_from.unwrap_or_else(|| base_url.host());
        if !is_reference(&pull_from) {
            return Err(format!(
                "{pull_from:?} is nothing that images can be pulled from: set `pull_from` to a host, such as \
                 registry.example:5000"
            ));
        }
        Ok(Self {
            name: settings.name,
            listing,
            filter: settings.filter,
            images: ImageReader::new(http.clone(), auth, base_url, pull_from, platform),
            http,
        })
    }

    fn subject(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for ImageRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListError> {
        self.http.reset_failures();
        let subject = format!("the registry {}", self.name);
        let names = self.listing.names(&self.filter).await;
        let names = names.map_err(|error| error.of_listing(&subject))?;
        let items = self.filter.items(names.iter().map(String::as_str));
        if items.len() > ITEMS_MAX {
            let error = HttpError::TooMuch(format!(
                "has {} images and tags that are wanted, and {ITEMS_MAX} are read at most: narrow the \
                 allow list",
                items.len()
            ));
            return Err(error.of_listing(&subject));
        }
        Ok(Listing::complete(items))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        self.images.look_up(item, &self.subject(item)).await
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        self.images.fetch(item, &self.subject(item)).await
    }
}
