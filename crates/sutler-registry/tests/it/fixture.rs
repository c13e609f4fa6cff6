//! Fixture: a real registry behind a proxy, and adapters for it.

use std::time::Duration;
use sutler_registry::{
    Credentials, HttpSettings, ImageFilter, ImageRegistry, ImageSettings, Item, ItemState,
    ListingMethod, Registry, RetrySchedule, ScannedItem, scan,
};
use sutler_servers::docker_registry::{self, Image, RegistryAccess};
use sutler_servers::{Demands, Intercept, RegistryProxy, Server};

/// Items scanned concurrently.
const CONCURRENT_ITEMS: usize = 4;

/// A registry behind a proxy.
pub(crate) struct RegistryFixture {
    pub(crate) server: Server,
    pub(crate) proxy: RegistryProxy,
}

impl RegistryFixture {
    /// An empty registry; `None` if no server can be started.
    pub(crate) fn open() -> Option<Self> {
        let server = docker_registry::own(Demands::default(), RegistryAccess::Open)?;
        let proxy = RegistryProxy::in_front_of(server.address());
        Some(Self { server, proxy })
    }

    /// A registry with these bundles under `latest`.
    pub(crate) fn with(images: &[&str]) -> Option<Self> {
        let fixture = Self::open()?;
        for image in images {
            let manifest = format!("name: {image}\n");
            fixture
                .server
                .push(image, "latest", &Image::bundle(&manifest));
        }
        Some(fixture)
    }

    /// An adapter that uses the proxy and lists the catalog.
    pub(crate) fn registry(&self) -> ImageRegistry {
        image_registry(settings(&self.proxy.url()))
    }
}

/// Settings for a registry at a URL, with fast retries.
pub(crate) fn settings(url: &str) -> ImageSettings {
    ImageSettings {
        name: "shop".to_owned(),
        url: url.to_owned(),
        pull_from: None,
        platform: None,
        listing: ListingMethod::Catalog { org: None },
        filter: ImageFilter::default(),
        credentials: Credentials::None,
        http: fast_retries(),
    }
}

/// Settings with retries after a few milliseconds.
pub(crate) fn fast_retries() -> HttpSettings {
    HttpSettings {
        retry: RetrySchedule {
            tries: 3,
            first_wait: Duration::from_millis(1),
            wait_max: Duration::from_secs(2),
        },
        ..HttpSettings::default()
    }
}

pub(crate) fn image_registry(settings: ImageSettings) -> ImageRegistry {
    ImageRegistry::new(settings).expect("the settings can be used")
}

/// A user and the password of the tests.
pub(crate) fn login() -> Credentials {
    Credentials::Basic {
        user: docker_registry::USER.to_owned(),
        password: sutler_servers::PASSWORD.into(),
    }
}

/// Scans all items, with none known.
pub(crate) async fn scan_all(registry: &dyn Registry) -> Vec<ScannedItem> {
    let gathered = scan(registry, &|_| None, CONCURRENT_ITEMS).await;
    gathered.expect("a listing").items
}

/// State of each item as text: `a:latest read`.
pub(crate) fn outcomes(found: &[ScannedItem]) -> Vec<String> {
    let tell = |found: &ScannedItem| {
        let state = match &found.state {
            ItemState::Known(_) => "known",
            ItemState::Read(_) => "read",
            ItemState::Failed(fault) => fault.kind(),
        };
        format!("{} {state}", found.item)
    };
    found.iter().map(tell).collect()
}

/// State of one item.
pub(crate) async fn kind_of(registry: &dyn Registry, image: &str) -> &'static str {
    let item = Item::new(image, "latest");
    match registry.look_up(&item).await {
        Ok(digest) => match registry.fetch(&item.at(digest)).await {
            Ok(_) => "read",
            Err(fault) => fault.kind(),
        },
        Err(fault) => fault.kind(),
    }
}

/// A response with only a status.
pub(crate) fn status(status: u16) -> Intercept {
    Intercept::status(status)
}
