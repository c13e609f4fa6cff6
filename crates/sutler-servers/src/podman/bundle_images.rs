//! Images of bundles as their authors make them: built by podman of busybox and one script,
//! labelled with their manifest, and pushed to a registry. Other images: `registry/push.rs`.

use super::{OwnProcess, Podman, SHELL_IMAGE, podman};
use crate::docker_registry::{PushedImage, USER};
use crate::server::{PASSWORD, Server};
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// What an image is called while it is on its way to a registry.
static BUILT: AtomicU32 = AtomicU32::new(0);

impl Podman {
    /// Builds a bundle of a manifest and the script that does its actions, and pushes it; its version.
    ///
    /// # Panics
    /// If this is somebody else's engine, or anything of it fails; with what was said.
    pub fn push_bundle(
        &self,
        server: &Server,
        to: &str,
        manifest: &str,
        script: &str,
    ) -> PushedImage {
        let own = self.own.as_ref().expect("an engine of our own");
        let number = BUILT.fetch_add(1, Ordering::Relaxed);
        let folder = own.server_dir.folder().join(format!("build-{number}"));
        fs::create_dir(&folder).expect("a folder");
        // A layer of its own, which nobody else's removal can take along.
        let script = format!("#!/bin/sh\n# {number}\n{script}\n");
        fs::write(folder.join("bundle"), script).expect("a file");
        let spec = crate::etcd::base64(manifest.as_bytes());
        let recipe = format!(
            "FROM {SHELL_IMAGE}\nCOPY --chmod=755 bundle /bin/bundle\n\
             LABEL com.redhat.apb.spec=\"{spec}\"\nENTRYPOINT [\"/bin/bundle\"]\n"
        );
        fs::write(folder.join("Containerfile"), recipe).expect("a file");
        let image = format!("localhost/built-{number}:latest");
        let context = folder.display().to_string();
        // Without a label of the builder's own: the manifest is all that an old image says of itself.
        own.must(&[
            "build",
            "--quiet",
            "--layers=false",
            "--identity-label=false",
            "--tag",
            &image,
            &context,
        ]);
        let pushed = own.push(&self.trust(server), &image, to, number);
        own.must(&["image", "rm", "--force", &image]);
        fs::remove_dir_all(folder).expect("it is ours");
        pushed
    }

    /// Removes what the engine has of an image, as operators do who need the room.
    ///
    /// # Panics
    /// If this is somebody else's engine, or it has no such image.
    pub fn forget(&self, image: &str) {
        let own = self.own.as_ref().expect("an engine of our own");
        own.must(&["image", "rm", "--force", image]);
    }

    /// Has the engine trust a registry if that has a certificate; the host that its images are named by.
    ///
    /// # Panics
    /// If the authority of the certificate cannot be made known to the engine.
    #[must_use]
    pub fn trust(&self, server: &Server) -> String {
        let place = server.admin_url();
        if place.scheme != "https" {
            return format!("{}:{}", place.host, place.port);
        }
        // Not by its number: under that, the engine takes registries as they are.
        let host = format!("localhost:{}", place.port);
        if let Some(own) = &self.own {
            let dir = own.server_dir.folder();
            let trusted = dir.join(".config/containers/certs.d").join(&host);
            fs::create_dir_all(&trusted).expect("a folder");
            let (new, known) = (trusted.join("ca.new"), trusted.join("ca.crt"));
            if !known.exists() {
                fs::copy(&server.certificates().authority, &new).expect("a copy");
                // Others may be reading there.
                fs::rename(new, known).expect("it is ours");
            }
        }
        host
    }
}

impl OwnProcess {
    fn push(&self, host: &str, image: &str, to: &str, number: u32) -> PushedImage {
        // A password in the arguments would be in the list of processes.
        let login = crate::etcd::base64(format!("{USER}:{PASSWORD}").as_bytes());
        let logins = format!(r#"{{"auths":{{"{host}":{{"auth":"{login}"}}}}}}"#);
        let logins = self
            .server_dir
            .private(&format!("logins-{number}"), &logins);
        let told = self.server_dir.path(&format!("pushed-{number}"));
        let to = format!("docker://{host}/{to}");
        let verify = format!("--tls-verify={}", host.starts_with("localhost"));
        let words = ["push", "--quiet", "--authfile", &logins, &verify];
        self.must(&[&words[..], &["--digestfile", &told, image, &to]].concat());
        let digest = fs::read_to_string(told).expect("a digest");
        PushedImage {
            digest: digest.trim().to_owned(),
        }
    }

    /// Runs podman, which must succeed.
    fn must(&self, words: &[&str]) {
        let ended = podman(&self.server_dir, &self.program).args(words).output();
        let ended = ended.expect("podman runs");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "podman {words:?}: {said}");
    }
}
