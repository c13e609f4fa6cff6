//! A registry of images: Debian's docker-registry, with TLS and a password on request.
//!
//! Images are pushed by its API (`docker_registry/push.rs`), copied by skopeo, or written as files if there are
//! thousands.

mod push;

pub use push::{Image, PushedImage};

use crate::installed::{MissingServer, find_programs};
use crate::server::{CommandLine, Demands, PASSWORD, Server, ServerKind, StartContext};
use crate::server_url::ServerUrl;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

const PORT: u16 = 5000;
/// User with access if a password is required; the password is [`PASSWORD`].
pub const USER: &str = "registrar";
/// Hash of [`PASSWORD`].
const HASHED: &str = "$2y$05$abcdefghijklmnopqrstuu0BeUrdpTV9WhiDq5euhs6GipXyh2Dde";

/// Who has access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryAccess {
    /// Everyone.
    Open,
    /// [`USER`] with [`PASSWORD`].
    Password,
}

/// Starts a registry for one test; `None`, with a report, if it is not installed.
#[must_use]
pub fn own(demands: Demands, entry: RegistryAccess) -> Option<Server> {
    let Some(folder) = find_programs(&["docker-registry"], &["/usr/bin"]) else {
        let missing = MissingServer {
            name: "docker-registry",
            program: "docker-registry",
            how: "apt-get install docker-registry",
            may_be: false,
        };
        missing.report();
        return None;
    };
    let program = folder.join("docker-registry");
    let recipe = DockerRegistry { program, entry };
    Some(Server::start_own(Box::new(recipe), demands))
}

/// Directory of skopeo, which copies images; `None`, with a report, if it is not installed.
#[must_use]
pub fn skopeo() -> Option<PathBuf> {
    let found = find_programs(&["skopeo"], &["/usr/bin"]);
    if found.is_none() {
        let missing = MissingServer {
            name: "skopeo",
            program: "skopeo",
            how: "apt-get install skopeo",
            may_be: false,
        };
        missing.report();
    }
    Some(found?.join("skopeo"))
}

struct DockerRegistry {
    program: PathBuf,
    entry: RegistryAccess,
}

impl ServerKind for DockerRegistry {
    fn name(&self) -> &'static str {
        "docker-registry"
    }

    fn users(&self) -> &'static [&'static str] {
        &["docker-registry", "nobody"]
    }

    fn prepare(&self, _ground: &StartContext<'_>) {}

    fn command_line(&self, context: &StartContext<'_>) -> CommandLine {
        let dir = context.dir;
        let (data, port) = (dir.path("data"), context.port);
        let mut settings = format!(
            "version: 0.1\nlog:\n  level: warn\n  accesslog:\n    disabled: true\n\
             storage:\n  filesystem:\n    rootdirectory: {data}\n    maxthreads: 100\n  \
             delete:\n    enabled: true\n  maintenance:\n    uploadpurging:\n      enabled: false\n\
             http:\n  addr: 127.0.0.1:{port}\n"
        );
        if let Some(files) = context.certificates {
            settings.push_str(&format!(
                "  tls:\n    certificate: {}\n    key: {}\n",
                files.certificate, files.key
            ));
        }
        if self.entry == RegistryAccess::Password {
            let users = dir.private("htpasswd", &format!("{USER}:{HASHED}\n"));
            settings.push_str(&format!(
                "auth:\n  htpasswd:\n    realm: tests\n    path: {users}\n"
            ));
        }
        let settings = dir.private("registry.yml", &settings);
        CommandLine {
            program: self.program.clone(),
            arguments: vec!["serve".to_owned(), settings],
            variables: vec![("OTEL_TRACES_EXPORTER".to_owned(), "none".to_owned())],
            signal: "KILL",
        }
    }

    fn answers(&self, context: &StartContext<'_>) -> bool {
        TcpStream::connect(("127.0.0.1", context.port)).is_ok()
    }

    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl {
        let scheme = match context.certificates {
            Some(_) => "https",
            None => "http",
        };
        let place = ServerUrl::of(&format!("{scheme}://127.0.0.1:{}", context.port), PORT);
        match self.entry {
            RegistryAccess::Open => place,
            RegistryAccess::Password => place.with_user(USER, PASSWORD),
        }
    }

    fn create_database(&self, _at: &ServerUrl, name: &str) -> String {
        name.to_owned()
    }
}

/// Copies an image into a registry by skopeo; `from` is in the notation of skopeo.
///
/// # Panics
/// If skopeo fails; with its output.
pub fn copy(skopeo: &Path, server: &Server, from: &str, to: &str) {
    let (words, at) = reached(server, "--dest-");
    let to = format!("docker://{at}/{to}");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = ["--quiet", "--src-tls-verify=false", from, &to];
    run(skopeo, server, &[&["copy"], &words[..], &rest].concat());
}

/// Deletes a version from a registry by skopeo, with all its tags.
///
/// # Panics
/// If skopeo fails; with its output.
pub fn delete(skopeo: &Path, server: &Server, name: &str, pushed: &PushedImage) {
    let (words, at) = reached(server, "--");
    let which = format!("docker://{at}/{name}@{}", pushed.digest);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(
        skopeo,
        server,
        &[&["delete"], &words[..], &[&which]].concat(),
    );
}

/// Options of skopeo for a registry, and the host of the registry. `side` is the prefix of the options.
fn reached(server: &Server, side: &str) -> (Vec<String>, String) {
    let dir = server.dir();
    let place = server.admin_url();
    let at = format!("{}:{}", place.host, place.port);
    // Arguments are visible in the list of processes, so the password is in a file.
    let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let logins = format!(r#"{{"auths":{{"{at}":{{"auth":"{login}"}}}}}}"#);
    let logins = dir.private("logins.json", &logins);
    let mut words = vec!["--authfile".to_owned(), logins];
    if place.scheme == "https" {
        let trusted = dir.path("trusted");
        std::fs::create_dir_all(&trusted).expect("a folder");
        let authority = &server.certificates().authority;
        std::fs::copy(authority, Path::new(&trusted).join("ca.crt")).expect("a copy");
        words.extend([format!("{side}cert-dir"), trusted]);
    } else {
        words.push(format!("{side}tls-verify=false"));
    }
    (words, at)
}

fn run(skopeo: &Path, server: &Server, words: &[&str]) {
    let ended = std::process::Command::new(skopeo)
        .arg("--insecure-policy")
        .args(words)
        .env("TMPDIR", server.dir().folder())
        .output()
        .expect("skopeo runs");
    let message = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "skopeo: {message}");
}
