//! Registries of images that speak the distribution API, version 2.
//!
//! Images are listed by the catalog of the registry, by a configured list, or by a separate API (`oci/listing.rs`,
//! `docker_hub.rs`, `quay.rs`); images are always read by the distribution API (`oci/images.rs`).
//! `oci/manifest.rs` parses manifests and labels.

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

/// Maximum number of items of one registry.
pub const ITEMS_MAX: usize = 20_000;
/// Default platform of images with several.
pub const PLATFORM: &str = "linux/amd64";

/// Settings of a registry of images.
#[derive(Clone, Debug)]
pub struct ImageSettings {
    /// Name in the configuration.
    pub name: String,
    /// URL of the distribution API: everything before `/v2`.
    pub url: String,
    /// Host in the names of images, if it differs from the host of the URL.
    pub pull_from: Option<String>,
    /// Platform of images with several, as `os/architecture`.
    pub platform: Option<String>,
    /// How images are listed.
    pub listing: ListingMethod,
    /// Selected images.
    pub filter: ImageFilter,
    /// Credentials.
    pub credentials: Credentials,
    /// Settings of the HTTP client.
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
    /// Builds the registry; sends no request, so an unreachable registry is not an error here.
    ///
    /// # Errors
    /// A setting is invalid; the sentence names it.
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
                "{odd:?} is not the name of an image: use lower-case letters, digits and single separators, without a \
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
                "{platform:?} is not a platform: write system and processor, such as {PLATFORM}"
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
