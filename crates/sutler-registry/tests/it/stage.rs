//! A real registry with a front before it, and ways to ask them.

use std::time::Duration;
use sutler_registry::{
    Credentials, Found, ImageRegistry, ImageSettings, Item, Names, Pace, Reach, Registry, State,
    Wanted, gather,
};
use sutler_servers::registry::{self, Entry, Image};
use sutler_servers::{Demands, Fate, Front, Server};

/// How many items are looked at together.
const AT_ONCE: usize = 4;

/// A registry behind a front.
pub(crate) struct Shop {
    pub(crate) server: Server,
    pub(crate) front: Front,
}

impl Shop {
    /// An empty one; nothing where there is no server to start.
    pub(crate) fn open() -> Option<Self> {
        let server = registry::own(Demands::default(), Entry::Open)?;
        let front = Front::before(server.address());
        Some(Self { server, front })
    }

    /// One with these bundles under `latest`.
    pub(crate) fn with(images: &[&str]) -> Option<Self> {
        let shop = Self::open()?;
        for image in images {
            let manifest = format!("name: {image}\n");
            shop.server.push(image, "latest", &Image::bundle(&manifest));
        }
        Some(shop)
    }

    /// Asks it through the front, by its catalog.
    pub(crate) fn registry(&self) -> ImageRegistry {
        made(settings(&self.front.url()))
    }
}

/// What a registry at a URL needs, in a hurry.
pub(crate) fn settings(url: &str) -> ImageSettings {
    ImageSettings {
        name: "shop".to_owned(),
        url: url.to_owned(),
        pull_from: None,
        platform: None,
        names: Names::Catalog { org: None },
        wanted: Wanted::default(),
        credentials: Credentials::None,
        reach: hasty(),
    }
}

/// Repeats at once.
pub(crate) fn hasty() -> Reach {
    Reach {
        pace: Pace {
            tries: 3,
            first_wait: Duration::from_millis(1),
            wait_max: Duration::from_secs(2),
        },
        ..Reach::default()
    }
}

pub(crate) fn made(settings: ImageSettings) -> ImageRegistry {
    ImageRegistry::new(settings).expect("the settings can be used")
}

/// A user and the password of tests.
pub(crate) fn login() -> Credentials {
    Credentials::Basic {
        user: registry::USER.to_owned(),
        password: sutler_servers::PASSWORD.into(),
    }
}

/// Everything that is found, with nothing known.
pub(crate) async fn look(registry: &dyn Registry) -> Vec<Found> {
    let gathered = gather(registry, &|_| None, AT_ONCE).await;
    gathered.expect("a listing").found
}

/// What became of each, in a few words: `a:latest read`.
pub(crate) fn told(found: &[Found]) -> Vec<String> {
    let tell = |found: &Found| {
        let state = match &found.state {
            State::Known(_) => "known",
            State::Read(_) => "read",
            State::Failed(fault) => fault.kind(),
        };
        format!("{} {state}", found.item)
    };
    found.iter().map(tell).collect()
}

/// What one item ends with.
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

/// A status that a registry would send with nothing else.
pub(crate) fn status(status: u16) -> Fate {
    Fate::status(status)
}
