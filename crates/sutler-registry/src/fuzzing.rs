//! Readers of foreign bytes, without a server, for `tools/fuzz` (feature `fuzzing`).
//!
//! Each function returns a short description of the result, or the error text.

use crate::auth::{self, challenge};
use crate::digest::Digest;
use crate::http_error::HttpError;
use crate::oci::manifest::{self, ImageManifest};
use crate::oci::{link, listing};
use crate::openshift::api_types::{ImageStreamImage, ImageStreamList};
use crate::{docker_hub, http_client, index, name_pages, quay};
use reqwest::Url;
use std::time::SystemTime;

/// A manifest of an image, or a configuration with labels.
///
/// # Errors
/// The error text.
pub fn image(bytes: &[u8]) -> Result<String, String> {
    if let Some(found) = manifest::labelled(&manifest::labels(bytes))? {
        return Ok(format!("labels of {}", found.file));
    }
    match manifest::read(bytes)? {
        ImageManifest::Image { annotations, .. } => {
            let found = manifest::labelled(&annotations)?;
            Ok(format!("an image, annotated: {}", found.is_some()))
        }
        ImageManifest::Index { children, .. } => {
            let chosen = manifest::choose(&children, crate::PLATFORM)?;
            Ok(format!("a list, with {}", chosen.platform.is_some()))
        }
    }
}

/// Headers: challenge, link to the next page, retry time.
///
/// # Errors
/// The error text.
pub fn header(text: &str) -> Result<String, String> {
    let challenge = challenge::best(std::iter::once(text)).is_some();
    let later = http_client::retry::retry_after(text, SystemTime::UNIX_EPOCH).is_some();
    let page = Url::parse("https://registry.example/v2/_catalog?n=2");
    let page = page.map_err(|_| "there is no page to begin with".to_owned())?;
    let next = match link::next([text])? {
        Some(next) => Some(name_pages::join_same_origin(&page, next).map_err(|it| describe(&it))?),
        None => None,
    };
    match next {
        Some(next) if next.origin() != page.origin() => {
            Err(format!("BROKEN: leads to another server: {next}"))
        }
        Some(_) | None => Ok(format!(
            "wanted {challenge}, later {later}, next {}",
            next.is_some()
        )),
    }
}

/// A page of names (catalog, Docker Hub or Quay), or a token.
///
/// # Errors
/// The error text.
pub fn page(bytes: &[u8]) -> Result<String, String> {
    let url = Url::parse("https://registry.example/list?n=2");
    let url = url.map_err(|_| "there is no page to begin with".to_owned())?;
    let token = auth::read_token(bytes).is_ok();
    let catalog = listing::read(bytes).map(|it| it.len());
    let pages = [
        docker_hub::read(bytes, "org", &url),
        quay::read(bytes, "org", &url),
    ];
    for page in pages.iter().flatten() {
        let next = page.next.as_ref();
        if let Some(next) = next.filter(|it| it.origin() != url.origin()) {
            return Err(format!("BROKEN: leads to another server: {next}"));
        }
    }
    let [hub, quay] = pages.map(|it| it.map(|it| it.names.len()));
    match (catalog, hub, quay) {
        (Err(why), Err(_), Err(_)) if !token => Err(why),
        (catalog, hub, quay) => Ok(format!(
            "catalog {:?}, hub {:?}, quay {:?}, token {token}",
            catalog.ok(),
            hub.ok(),
            quay.ok()
        )),
    }
}

fn describe(error: &HttpError) -> String {
    error.clone().of_listing("the registry").to_string()
}

/// An index.
///
/// # Errors
/// The error text.
pub fn list(bytes: &[u8]) -> Result<String, String> {
    let entries = index::read(bytes).map_err(|it| it.of_listing("the list").to_string())?;
    let good = entries.iter().filter(|it| it.fault().is_none()).count();
    Ok(format!("{good} of {}", entries.iter().len()))
}

/// Image streams, or one image of a stream.
///
/// # Errors
/// The error text.
pub fn streams(bytes: &[u8]) -> Result<String, String> {
    if let Ok(streams) = serde_json::from_slice::<ImageStreamList>(bytes) {
        let tagged = streams.items.iter().filter_map(|it| it.version("latest"));
        return Ok(format!("{} of {}", tagged.count(), streams.items.len()));
    }
    let image: ImageStreamImage = serde_json::from_slice(bytes)
        .map_err(|_| "the answer is not an image stream: check the URL".to_owned())?;
    let digest = image.digest("an image").map_err(|it| it.to_string())?;
    let named = image.reference(&digest);
    let pinned = |it: &String| {
        it.rsplit('@')
            .next()
            .is_some_and(|it| Digest::parse(it).is_ok())
    };
    match named.as_ref().is_none_or(pinned) {
        true => Ok(format!(
            "an image with {} labels",
            image.labels().len().min(3)
        )),
        false => Err("BROKEN: an image without its digest".to_owned()),
    }
}
