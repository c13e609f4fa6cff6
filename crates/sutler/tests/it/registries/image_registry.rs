//! A real registry with TLS and a password, with images that podman built and pushed. All tests of a process
//! share it; each uses a separate organisation.

use super::fixture::Fixture;
use super::token_registry::manifest;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use sutler_servers::docker_registry::{self, PushedImage, RegistryAccess, USER};
use sutler_servers::podman::{self, Podman};
use sutler_servers::{Demands, PASSWORD, Server, Tls};

/// The registry, the engine, and the tools of an author.
pub(super) struct ImageRegistry {
    pub(super) podman: &'static Podman,
    pub(super) host: String,
    server: Server,
    skopeo: PathBuf,
}

/// The registry of this process; `None` if there is no engine or no registry server.
pub(super) fn open() -> Option<&'static ImageRegistry> {
    static REGISTRY: OnceLock<Option<ImageRegistry>> = OnceLock::new();
    let start = || {
        let demands = Demands {
            tls: Tls::Server,
            ..Demands::default()
        };
        // Checks all of them, so that everything missing is reported.
        let podman = podman::shared().filter(|it| it.is_own());
        let server = docker_registry::own(demands, RegistryAccess::Password);
        let (podman, server, skopeo) = (podman?, server?, docker_registry::skopeo()?);
        Some(ImageRegistry {
            host: podman.trust(&server),
            podman,
            server,
            skopeo,
        })
    };
    REGISTRY.get_or_init(start).as_ref()
}

/// Configuration of the engine for a broker.
pub(super) fn engine(podman: &Podman) -> Value {
    json!({ "socket": podman.socket, "network": "none" })
}

/// The entry point of a version: prints its action, and returns its version to bindings.
pub(super) fn script(version: &str) -> String {
    format!(
        "echo \"$1 by {version}\"\nif [ \"$1\" = bind ]; then\n\
         printf '{{\"version\":\"{version}\"}}' >\"$SUTLER_RESULT_DIR/credentials.json\"\nfi"
    )
}

impl ImageRegistry {
    /// Builds a version of a bundle and pushes it.
    pub(super) fn push(&self, org: &str, name: &str, version: &str) -> PushedImage {
        let (manifest, script) = (manifest(name, version), script(version));
        let to = format!("{org}/{name}:latest");
        self.podman
            .push_bundle(&self.server, &to, &manifest, &script)
    }

    /// Deletes a version.
    pub(super) fn delete(&self, org: &str, name: &str, pushed: &PushedImage) {
        let image = format!("{org}/{name}");
        docker_registry::delete(&self.skopeo, &self.server, &image, pushed);
    }

    /// A broker that offers bundles of an organisation and runs them.
    pub(super) fn fixture(&self, org: &str) -> Fixture {
        let block = json!({
            "type": "oci", "name": "vault", "org": org, "url": format!("https://{}", self.host),
            "user": USER, "pass": PASSWORD, "ca": self.authority(),
        });
        let login = json!({ "registry": self.host, "user": USER, "password": PASSWORD });
        let fixture = Fixture::new(&[block]).set("/bundles/container", engine(self.podman));
        fixture.set("/bundles/container/logins", json!([login]))
    }

    fn authority(&self) -> &Path {
        Path::new(&self.server.certificates().authority)
    }

    /// Removes all images of an organisation from the engine.
    pub(super) fn forget_images(&self, org: &str) {
        let reference = format!("reference={}/{org}/*", self.host);
        let listed = self
            .podman
            .podman(&["images", "--quiet", "--filter", &reference]);
        assert!(!listed.is_empty(), "no image of {org} was ever run");
        for image in listed.lines() {
            self.podman.forget(image);
        }
    }
}
