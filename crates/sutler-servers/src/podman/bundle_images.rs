//! Images of bundles: built by podman from busybox and one script, labelled with their manifest, and pushed
//! to a registry. Other images: `docker_registry/push.rs`.

use super::{OwnProcess, Podman, SHELL_IMAGE, podman};
use crate::docker_registry::{PushedImage, USER};
use crate::server::{PASSWORD, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of the next image, for its temporary name.
static BUILT: AtomicU32 = AtomicU32::new(0);

impl Podman {
    /// Builds a bundle from a manifest and the script of its actions, and pushes it; returns its version.
    ///
    /// # Panics
    /// If the engine was not started here, or a step fails; with the output.
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
        // A unique layer, which the removal of another image cannot remove.
        let script = format!("#!/bin/sh\n# {number}\n{script}\n");
        fs::write(folder.join("bundle"), script).expect("a file");
        let spec = STANDARD.encode(manifest);
        let recipe = format!(
            "FROM {SHELL_IMAGE}\nCOPY --chmod=755 bundle /bin/bundle\n\
             LABEL com.redhat.apb.spec=\"{spec}\"\nENTRYPOINT [\"/bin/bundle\"]\n"
        );
        fs::write(folder.join("Containerfile"), recipe).expect("a file");
        let image = format!("localhost/built-{number}:latest");
        let context = folder.display().to_string();
        // Without the labels of the builder: the manifest is the only label of an old image.
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

    /// Removes an image from the engine, as operators do to free space.
    ///
    /// # Panics
    /// If the engine was not started here, or has no such image.
    pub fn forget(&self, image: &str) {
        let own = self.own.as_ref().expect("an engine of our own");
        own.must(&["image", "rm", "--force", image]);
    }

    /// Makes the engine trust a registry with a certificate; returns the host in the names of its images.
    ///
    /// # Panics
    /// If the certificate of the authority cannot be installed.
    #[must_use]
    pub fn trust(&self, server: &Server) -> String {
        let place = server.admin_url();
        if place.scheme != "https" {
            return format!("{}:{}", place.host, place.port);
        }
        // Not by address: the engine treats registries at 127.0.0.1 as insecure.
        let host = format!("localhost:{}", place.port);
        if let Some(own) = &self.own {
            let dir = own.server_dir.folder();
            let trusted = dir.join(".config/containers/certs.d").join(&host);
            fs::create_dir_all(&trusted).expect("a folder");
            let (new, known) = (trusted.join("ca.new"), trusted.join("ca.crt"));
            if !known.exists() {
                fs::copy(&server.certificates().authority, &new).expect("a copy");
                // Written and renamed, because other tests may read the file.
                fs::rename(new, known).expect("it is ours");
            }
        }
        host
    }
}

impl OwnProcess {
    fn push(&self, host: &str, image: &str, to: &str, number: u32) -> PushedImage {
        // Arguments are visible in the list of processes, so the password is in a file.
        let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        let logins = format!(r#"{{"auths":{{"{host}":{{"auth":"{login}"}}}}}}"#);
        let logins = self
            .server_dir
            .private(&format!("logins-{number}"), &logins);
        let digest_file = self.server_dir.path(&format!("pushed-{number}"));
        let to = format!("docker://{host}/{to}");
        let verify = format!("--tls-verify={}", host.starts_with("localhost"));
        let words = ["push", "--quiet", "--authfile", &logins, &verify];
        self.must(&[&words[..], &["--digestfile", &digest_file, image, &to]].concat());
        let digest = fs::read_to_string(digest_file).expect("a digest");
        PushedImage {
            digest: digest.trim().to_owned(),
        }
    }

    /// Runs podman, which must succeed.
    fn must(&self, words: &[&str]) {
        let ended = podman(&self.server_dir, &self.program).args(words).output();
        let ended = ended.expect("podman runs");
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "podman {words:?}: {message}");
    }
}
