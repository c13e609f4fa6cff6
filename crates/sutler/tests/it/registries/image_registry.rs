//! A real registry with TLS and a password, and images in it that podman built and pushed. One for all tests
//! of a process; each has an organisation of its own there.

use super::fixture::Fixture;
use super::token_registry::manifest;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use sutler_servers::docker_registry::{self, PushedImage, RegistryAccess, USER};
use sutler_servers::podman::{self, Podman};
use sutler_servers::{Demands, PASSWORD, Server, Tls};

/// The registry, the engine, and what an author has.
pub(super) struct ImageRegistry {
    pub(super) podman: &'static Podman,
    pub(super) host: String,
    server: Server,
    skopeo: PathBuf,
}

/// The vault of this process; `None` if there is no engine or no registry here.
pub(super) fn open() -> Option<&'static ImageRegistry> {
    static REGISTRY: OnceLock<Option<ImageRegistry>> = OnceLock::new();
    let start = || {
        let demands = Demands {
            tls: Tls::Server,
            ..Demands::default()
        };
        // All of them are looked for, so that all that are missing are told.
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

/// How a broker is told of the engine.
pub(super) fn engine(podman: &Podman) -> Value {
    json!({ "socket": podman.socket, "network": "none" })
}

/// The entry point of a version: says what it does, and hands its version out to bindings.
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

    /// A broker's site that looks for bundles of an organisation and has them run.
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

    /// Has the engine have no image of an organisation any more.
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
