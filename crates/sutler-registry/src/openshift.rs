//! Image streams of OpenShift, read by its API without a request to a registry.
//!
//! A stream contains the image of each of its tags, so a listing contains versions. This is the HTTP part only:
//! token, certificate authority and URL come from the configuration.

pub(crate) mod api_types;

use crate::base_url::BaseUrl;
use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::{ItemError, ListError};
use crate::http_client::{Authorization, HttpClient, HttpRequest, HttpResponse, HttpSettings};
use crate::http_error::{HttpError, check_status};
use crate::name_pages::{PAGE_BYTES_MAX, PAGES_MAX, endless_paging, too_many};
use crate::oci::{ITEMS_MAX, labelled};
use crate::registry::{Item, Listing, Registry, Spec};
use crate::selection::{ImageFilter, is_image, is_tag};
use api_types::{ImageStreamImage, ImageStreamList, is_not_found};
use async_trait::async_trait;
use serde::de::DeserializeOwned;

/// Path of image streams in the API.
const API: &str = "/apis/image.openshift.io/v1/namespaces";
/// Default namespace.
pub const NAMESPACE: &str = "openshift";
/// Kind of a page of streams.
const LIST_KIND: &str = "ImageStreamList";
/// Streams per page.
const PAGE: usize = 200;
/// Maximum length of a response for one image, in bytes.
const IMAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Settings for image streams.
#[derive(Clone, Debug)]
pub struct OpenShiftSettings {
    /// Name in the configuration.
    pub name: String,
    /// URL of the API server.
    pub url: String,
    /// Namespaces with streams; `openshift` if empty.
    pub namespaces: Vec<String>,
    /// Selected images, which are named `NAMESPACE/STREAM`.
    pub filter: ImageFilter,
    /// Token of a service account.
    pub credentials: Credentials,
    /// Settings of the HTTP client.
    pub http: HttpSettings,
}

/// Image streams of some namespaces.
pub struct OpenShiftRegistry {
    name: String,
    http: HttpClient,
    base_url: BaseUrl,
    namespaces: Vec<String>,
    authorization: Option<Authorization>,
    filter: ImageFilter,
}

impl OpenShiftRegistry {
    /// Builds the registry; sends no request.
    ///
    /// # Errors
    /// A setting is invalid; the sentence names it.
    pub fn new(settings: OpenShiftSettings) -> Result<Self, String> {
        let mut namespaces = settings.namespaces;
        if namespaces.is_empty() {
            namespaces.push(NAMESPACE.to_owned());
        }
        if let Some(odd) = namespaces
            .iter()
            .find(|it| it.contains('/') || !is_image(it))
        {
            return Err(format!(
                "{odd:?} is not a namespace: use its name in OpenShift"
            ));
        }
        let authorization = match settings.credentials {
            Credentials::None => None,
            Credentials::Basic { user, password } => Some(Authorization::Basic(user, password)),
            Credentials::Token(token) => Some(Authorization::Bearer(token)),
        };
        Ok(Self {
            name: settings.name,
            http: HttpClient::new(&settings.http)?,
            base_url: BaseUrl::parse(&settings.url)?,
            namespaces,
            authorization,
            filter: settings.filter,
        })
    }

    async fn send(
        &self,
        path: &str,
        query: &[(&str, &str)],
        max: usize,
    ) -> Result<HttpResponse, HttpError> {
        let mut url = self
            .base_url
            .at(&format!("{API}/{path}"))
            .map_err(HttpError::Garbled)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = HttpRequest::get(url, max);
        request.authorization = self.authorization.clone();
        self.http.send(&request).await
    }

    /// Adds the items of one namespace.
    async fn streams(&self, namespace: &str, items: &mut Vec<Item>) -> Result<(), HttpError> {
        let page = PAGE.to_string();
        let mut next = String::new();
        for _ in 0..PAGES_MAX {
            let mut query = vec![("limit", page.as_str())];
            if !next.is_empty() {
                query.push(("continue", &next));
            }
            let path = format!("{namespace}/imagestreams");
            let response = self.send(&path, &query, PAGE_BYTES_MAX * 4).await?;
            if response.status == 410 {
                return Err(HttpError::Silent(
                    "forgot where the listing was (410): it is begun anew at the next refresh"
                        .to_owned(),
                ));
            }
            let streams: ImageStreamList = parse_response(&response)?;
            if streams.kind != LIST_KIND {
                return Err(no_streams());
            }
            for stream in streams.items {
                let image = format!("{namespace}/{}", stream.metadata.name);
                if is_image(&image) && self.filter.wants(&image) {
                    let tags = self.filter.tags(&image);
                    let found = tags.filter_map(|tag| Some((tag, stream.version(tag)?)));
                    items.extend(found.map(|(tag, digest)| Item::new(&image, tag).at(digest)));
                }
            }
            if items.len() > ITEMS_MAX {
                return Err(HttpError::TooMuch(format!(
                    "has more than {ITEMS_MAX} images and tags that are wanted: narrow the allow list"
                )));
            }
            match streams.metadata.next {
                Some(more) if more.is_empty() => return Ok(()),
                None => return Ok(()),
                Some(more) if more == next => return Err(endless_paging()),
                Some(more) => next = more,
            }
        }
        Err(too_many())
    }

    async fn image(&self, item: &Item, subject: &str) -> Result<ImageStreamImage, ItemError> {
        let named = item.image.split_once('/');
        let Some((namespace, stream)) =
            named.filter(|_| is_image(&item.image) && is_tag(&item.tag))
        else {
            return Err(ItemError::Malformed {
                digest: None,
                sentence: format!(
                    "{subject:?} is not NAMESPACE/STREAM:TAG: use the names in OpenShift"
                ),
            });
        };
        let path = match &item.digest {
            Some(digest) => format!("{namespace}/imagestreamimages/{stream}@{digest}"),
            None => format!("{namespace}/imagestreamtags/{stream}:{}", item.tag),
        };
        let response = self.send(&path, &[], IMAGE_BYTES_MAX).await;
        let response = response.map_err(|error| error.of_item(subject))?;
        if is_not_found(response.status, &response.body) {
            let gone = format!(
                "{subject}: there is no such image stream or tag: push it, or leave it out"
            );
            return Err(match &item.digest {
                // A version that was just listed may be replaced meanwhile.
                Some(_) => ItemError::Transient(gone),
                None => ItemError::Gone(gone),
            });
        }
        parse_response(&response).map_err(|error| error.of_item(subject))
    }

    fn subject(&self, item: &Item) -> String {
        format!("{} {item}", self.name)
    }
}

#[async_trait]
impl Registry for OpenShiftRegistry {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list(&self) -> Result<Listing, ListError> {
        self.http.reset_failures();
        let subject = format!("the registry {}", self.name);
        let mut items = Vec::new();
        for namespace in &self.namespaces {
            let listed = self.streams(namespace, &mut items).await;
            listed.map_err(|error| error.of_listing(&subject))?;
        }
        Ok(Listing::complete(items))
    }

    async fn look_up(&self, item: &Item) -> Result<Digest, ItemError> {
        let subject = self.subject(item);
        let now = Item::new(&item.image, &item.tag);
        self.image(&now, &subject).await?.digest(&subject)
    }

    async fn fetch(&self, item: &Item) -> Result<Spec, ItemError> {
        let subject = self.subject(item);
        let found = self.image(item, &subject).await?;
        let digest = found.digest(&subject)?;
        if item.digest.as_ref().is_some_and(|it| *it != digest) {
            return Err(ItemError::Transient(format!(
                "{subject}: another version came than was asked for; it is looked at again at the next refresh"
            )));
        }
        let broken = |why: String| ItemError::Malformed {
            digest: Some(digest.clone()),
            sentence: format!("{subject} {why}"),
        };
        let labels = labelled(&found.labels()).map_err(&broken)?;
        let Some(labels) = labels else {
            return Err(ItemError::NotABundle {
                digest,
                sentence: format!(
                    "{subject} is not a bundle: it has no label com.redhat.apb.spec; leave it out by the deny list"
                ),
            });
        };
        let unnamed =
            || broken("has no name that an engine could pull it by: push it again".to_owned());
        let image = found.reference(&digest).ok_or_else(unnamed)?;
        Ok(Spec {
            item: item.clone().at(digest.clone()),
            image: Some(image),
            digest,
            manifest: labels.manifest,
            file: labels.file,
            runtime: labels.runtime,
        })
    }
}

fn parse_response<T: DeserializeOwned>(response: &HttpResponse) -> Result<T, HttpError> {
    check_status(response.status, &response.headers, &response.body)?;
    serde_json::from_slice(&response.body).map_err(|_| no_streams())
}

fn no_streams() -> HttpError {
    HttpError::Garbled(
        "answered with something that is not an image stream: check that the URL is the API server's"
            .to_owned(),
    )
}
