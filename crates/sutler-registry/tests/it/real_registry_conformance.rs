//! Adapters of real registries pass the suite: with the catalog, and with recorded listings of Docker Hub and Quay.

use crate::fixture::{RegistryFixture, fast_retries, image_registry, settings};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Mutex;
use sutler_registry::conformance::Candidate;
use sutler_registry::{ImageRegistry, Item, ListingMethod, Registry};
use sutler_servers::Intercept;
use sutler_servers::docker_registry::{Image, PushedImage};

/// How its images are listed.
#[derive(Clone, Copy)]
enum Kind {
    Catalog,
    Hub,
    Quay,
}

struct Images {
    fixture: RegistryFixture,
    kind: Kind,
    registry: ImageRegistry,
    there: Mutex<BTreeMap<String, PushedImage>>,
    requests: Mutex<Vec<String>>,
}

impl Images {
    fn fresh(kind: Kind) -> Option<Self> {
        let fixture = RegistryFixture::open()?;
        let url = fixture.proxy.url();
        let org = "org".to_owned();
        let mut settings = settings(&url);
        settings.http = fast_retries();
        settings.listing = match kind {
            Kind::Catalog => ListingMethod::Catalog { org: Some(org) },
            Kind::Hub => ListingMethod::DockerHub { url, org },
            Kind::Quay => ListingMethod::Quay { url, org },
        };
        let images = Self {
            fixture,
            kind,
            registry: image_registry(settings),
            there: Mutex::default(),
            requests: Mutex::default(),
        };
        images.list();
        Some(images)
    }

    /// Part of the URL of a listing.
    fn listing(&self) -> &'static str {
        match self.kind {
            Kind::Catalog => "GET /v2/_catalog",
            Kind::Hub => "GET /v2/repositories/org/",
            Kind::Quay => "GET /api/v1/repository?namespace=org",
        }
    }

    /// Sets the proxy's listing to the current images, in two pages.
    fn list(&self) {
        let there = self.there.lock().expect("no panic");
        let listing: Vec<&String> = there.keys().collect();
        let (first, second) = listing.split_at(listing.len() / 2);
        let (next, pages) = match self.kind {
            Kind::Catalog => return,
            Kind::Hub => {
                let next = format!(
                    "{}/v2/repositories/org/?page=2&page_size=100",
                    self.fixture.proxy.url()
                );
                let page = |listing: &[&String], next: Option<&str>| {
                    let results: Vec<_> = listing
                        .iter()
                        .map(|it| serde_json::json!({"name": it, "namespace": "org", "repository_type": "image"}))
                        .collect();
                    serde_json::json!({"count": 9, "next": next, "previous": null, "results": results})
                };
                ("page=2", [page(first, Some(&next)), page(second, None)])
            }
            Kind::Quay => {
                let page = |listing: &[&String], next: Option<&str>| {
                    let found: Vec<_> = listing
                        .iter()
                        .map(|it| serde_json::json!({"namespace": "org", "name": it, "kind": "image", "is_public": true}))
                        .collect();
                    match next {
                        Some(next) => serde_json::json!({"repositories": found, "next_page": next}),
                        None => serde_json::json!({"repositories": found}),
                    }
                };
                (
                    "next_page=more",
                    [page(first, Some("more")), page(second, None)],
                )
            }
        };
        let [first, second] = pages.map(|it| Intercept::text(&it.to_string()));
        self.fixture.proxy.respond(self.listing(), None);
        self.fixture.proxy.respond(next, Some(second));
        self.fixture.proxy.respond(self.listing(), Some(first));
    }

    fn keep(&self, name: &str, image: &Image) {
        let pushed = self
            .fixture
            .server
            .push(&format!("org/{name}"), "latest", image);
        let mut there = self.there.lock().expect("no panic");
        there.insert(name.to_owned(), pushed);
        drop(there);
        self.list();
    }
}

#[async_trait]
impl Candidate for Images {
    fn registry(&self) -> &dyn Registry {
        &self.registry
    }

    async fn put(&self, name: &str, manifest: &str) {
        self.keep(name, &Image::bundle(manifest));
    }

    async fn spoil(&self, name: &str) {
        self.keep(name, &Image::default());
    }

    async fn remove(&self, name: &str) {
        let pushed = self.there.lock().expect("no panic").remove(name);
        let pushed = pushed.expect("it is there");
        self.fixture.server.remove(&format!("org/{name}"), &pushed);
        self.list();
    }

    async fn break_listings(&self) {
        let fate = match self.kind {
            Kind::Catalog => Intercept::BreakOff(12),
            Kind::Hub => Intercept::status(503),
            Kind::Quay => Intercept::Truncate(12),
        };
        self.fixture.proxy.when(self.listing(), fate);
    }

    async fn break_item(&self, name: &str) -> bool {
        let part = format!("/v2/org/{name}/");
        self.fixture.proxy.when(&part, Intercept::status(500));
        true
    }

    async fn mend(&self) {
        self.fixture.proxy.reset();
    }

    fn reads(&self) -> usize {
        let mut requests = self.requests.lock().expect("no panic");
        requests.extend(self.fixture.proxy.requests());
        let is_read = |it: &&String| it.starts_with("GET /v2/org/");
        requests.iter().filter(is_read).count()
    }

    fn item(&self, name: &str) -> Item {
        Item::new(&format!("org/{name}"), "latest")
    }
}

mod by_catalog {
    use super::{Images, Kind};

    sutler_registry::registry_conformance!(Images::fresh(Kind::Catalog));
}

mod by_docker_hub {
    use super::{Images, Kind};

    sutler_registry::registry_conformance!(Images::fresh(Kind::Hub));
}

mod by_quay {
    use super::{Images, Kind};

    sutler_registry::registry_conformance!(Images::fresh(Kind::Quay));
}
