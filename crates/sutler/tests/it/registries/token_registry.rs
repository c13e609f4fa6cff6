//! A real registry without access control, behind a proxy that requires tokens and disturbs single requests
//! as a test configures. Its images have labels and no layers; images that run are in `image_registry.rs`.

use super::image_registry::script;
use serde_json::{Value, json};
use sutler_servers::docker_registry::{self, Image, PushedImage, RegistryAccess, USER};
use sutler_servers::podman::Podman;
use sutler_servers::{Demands, Intercept, PASSWORD, RegistryProxy, Server, until};

/// A registry and its proxy.
pub(super) struct TokenRegistry {
    pub(super) server: Server,
    pub(super) front: RegistryProxy,
}

/// The manifest of a version of a bundle.
pub(super) fn manifest(name: &str, version: &str) -> String {
    format!(
        "version: 1.0\nname: {name}\ndescription: Version {version}.\nbundle_version: {version}\n\
         bindable: true\nasync: optional\nplans: [{{name: small, description: One.}}]\n"
    )
}

impl TokenRegistry {
    /// Starts an empty registry; `None` if there is no server program.
    pub(super) fn open() -> Option<Self> {
        let registry = Self::open_to_all()?;
        registry.front.demand_tokens(USER, PASSWORD);
        Some(registry)
    }

    /// The same without tokens, so that every request is sent once.
    pub(super) fn open_to_all() -> Option<Self> {
        let server = docker_registry::own(Demands::default(), RegistryAccess::Open)?;
        let front = RegistryProxy::in_front_of(server.address());
        Some(Self { server, front })
    }

    /// Pushes a version of a bundle.
    pub(super) fn push(&self, name: &str, version: &str) -> PushedImage {
        let image = Image::bundle(&manifest(name, version));
        self.server.push(&format!("org/{name}"), "latest", &image)
    }

    /// Builds a version of a bundle that can be run, and pushes it.
    pub(super) fn build(&self, podman: &Podman, name: &str, version: &str) -> PushedImage {
        let to = format!("org/{name}:latest");
        podman.push_bundle(
            &self.server,
            &to,
            &manifest(name, version),
            &script(version),
        )
    }

    /// Deletes a version.
    pub(super) fn delete(&self, name: &str, pushed: &PushedImage) {
        self.server.remove(&format!("org/{name}"), pushed);
    }

    /// Its configuration for a broker. Engines pull without the proxy.
    pub(super) fn block(&self, name: &str) -> Value {
        json!({
            "type": "apiv2", "name": name, "url": self.front.url(), "user": USER, "pass": PASSWORD,
            "answer_within": "1s", "pull_from": self.server.address().to_string(),
        })
    }

    /// Number of requests for the list of images since the last call.
    pub(super) fn list_requests(&self) -> usize {
        let requests = self.front.requests();
        requests.iter().filter(|it| it.contains("_catalog")).count()
    }

    /// Makes lists of images wait from now on, until the proxy is reset.
    pub(super) fn hold_lists(&self) {
        drop(self.front.requests());
        self.front.when("_catalog", Intercept::Hold);
    }

    /// Waits until a list of images was requested and is held.
    pub(super) fn until_held(&self) {
        until("a list is asked for", || {
            (self.list_requests() > 0).then_some(())
        });
    }
}
