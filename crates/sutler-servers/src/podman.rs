//! Podman behind its socket, which speaks the API of Docker: with its own storage and one image.
//!
//! `SUTLER_TEST_ENGINE_SOCKET` names the socket of another engine instead, which must have the image. Images of
//! bundles
//! are built in `podman/bundle_images.rs`.

mod bundle_images;

use crate::installed::{MissingServer, find_programs, record_ran};
use crate::server_dir::ServerDir;
use crate::server_guard::ServerGuard;
use crate::wait::until;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The image: a busybox whose entry point evaluates `$SCRIPT`.
pub const SHELL_IMAGE: &str = "localhost/sutler-shell:latest";

/// crun does not support old cgroups; the default ulimits need a privilege.
const CONF: &str = r#"[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
"#;

/// Registries of tests are on this host, and some have no certificates.
const REGISTRIES: &str = "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n";

/// Also ends containers that a failed test left.
const SERVE: &str = r#"#!/bin/sh
"$@" system service --time=0 "unix://$SOCKET" & service=$!
trap 'kill $service; "$@" rm --all --force --time 0; exit 0' TERM
wait $service
"#;

/// A container engine.
pub struct Podman {
    /// Path of its socket.
    pub socket: PathBuf,
    own: Option<OwnProcess>,
}

struct OwnProcess {
    server_dir: ServerDir,
    program: PathBuf,
    _keeper: ServerGuard,
}

/// Engine shared by all tests of this process; `None`, with a report, if it is not installed.
pub fn shared() -> Option<&'static Podman> {
    static SHARED: OnceLock<Option<Podman>> = OnceLock::new();
    let start = || match std::env::var_os("SUTLER_TEST_ENGINE_SOCKET") {
        Some(socket) => Some(Podman {
            socket: PathBuf::from(socket),
            own: None,
        }),
        None => own(),
    };
    SHARED.get_or_init(start).as_ref()
}

fn own() -> Option<Podman> {
    let places = ["/usr/bin", "/usr/sbin"];
    let found = find_programs(&["podman"], &places);
    let all = ["runc", "busybox", "conmon"];
    let whole = all
        .iter()
        .all(|name| find_programs(&[name], &places).is_some());
    let (Some(folder), true) = (found, whole) else {
        let missing = MissingServer {
            name: "podman",
            program: "podman",
            how: "apt-get install podman runc conmon busybox-static netavark iptables, or set SUTLER_TEST_ENGINE_SOCKET",
            may_be: false,
        };
        missing.report();
        return None;
    };
    Some(start(
        folder.join("podman"),
        &find_programs(&["busybox"], &places)?,
    ))
}

fn start(program: PathBuf, busybox: &Path) -> Podman {
    let server_dir = ServerDir::new(&["root"]);
    fs::write(server_dir.path("containers.conf"), CONF).expect("a file");
    fs::write(server_dir.path("registries.conf"), REGISTRIES).expect("a file");
    let script = server_dir.folder().join("serve");
    fs::write(&script, SERVE).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    import(&server_dir, &program, busybox);
    let socket = server_dir.folder().join("socket");
    let mut shell = server_dir.command(Path::new("/bin/sh"));
    shell.env("CONTAINERS_CONF", server_dir.path("containers.conf"));
    shell.env(
        "CONTAINERS_REGISTRIES_CONF",
        server_dir.path("registries.conf"),
    );
    shell.env("SOCKET", &socket);
    shell.env("HOME", server_dir.folder());
    let mut words = vec![program.display().to_string()];
    words.extend(storage(&server_dir));
    let server_guard = ServerGuard::start(shell, server_dir.folder(), "TERM", &script, &words);
    until("podman answers", || UnixStream::connect(&socket).ok());
    record_ran("podman");
    let own = Some(OwnProcess {
        server_dir,
        program,
        _keeper: server_guard,
    });
    Podman { socket, own }
}

fn storage(server_dir: &ServerDir) -> Vec<String> {
    let words = [
        "--root",
        &server_dir.path("storage"),
        "--runroot",
        &server_dir.path("run"),
    ]
    .map(str::to_owned);
    words
        .into_iter()
        .chain(["--storage-driver".to_owned(), "vfs".to_owned()])
        .collect()
}

/// Imports an image of busybox only, without a registry.
fn import(server_dir: &ServerDir, program: &Path, busybox: &Path) {
    let files = server_dir.folder().join("files");
    let bin = files.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    fs::create_dir(files.join("etc")).expect("a folder");
    fs::write(files.join("etc/passwd"), "root:x:0:0::/:/bin/sh\n").expect("a file");
    fs::copy(busybox.join("busybox"), bin.join("busybox")).expect("busybox");
    let listed = Command::new(busybox.join("busybox")).arg("--list").output();
    let listed = String::from_utf8(listed.expect("it runs").stdout).expect("names");
    for name in listed.lines().filter(|name| *name != "busybox") {
        symlink("busybox", bin.join(name)).expect("a link");
    }
    fs::write(bin.join("entry"), "#!/bin/sh\neval \"$SCRIPT\"\n").expect("a file");
    fs::set_permissions(bin.join("entry"), fs::Permissions::from_mode(0o755)).expect("ours");
    let (from, tar) = (files.display().to_string(), server_dir.path("files.tar"));
    server_dir.run(Path::new("tar"), &["-C", &from, "-cf", &tar, "."]);
    let imported = podman(server_dir, program)
        .args([
            "import",
            "--change",
            r#"ENTRYPOINT ["/bin/entry"]"#,
            &tar,
            SHELL_IMAGE,
        ])
        .output()
        .expect("podman runs");
    let message = String::from_utf8_lossy(&imported.stderr);
    assert!(imported.status.success(), "podman import: {message}");
}

fn podman(server_dir: &ServerDir, program: &Path) -> Command {
    let mut command = server_dir.command(program);
    command.env("CONTAINERS_CONF", server_dir.path("containers.conf"));
    command.env("HOME", server_dir.folder());
    command.args(storage(server_dir));
    command
}

impl Podman {
    /// Whether the engine was started here, so that podman itself can be run, too.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Builds an image of busybox whose entry point is a script; returns the pinned reference.
    ///
    /// # Panics
    /// If the engine was not started here, or the build fails.
    #[must_use]
    pub fn image(&self, name: &str, script: &str) -> String {
        let own = self.own.as_ref().expect("an engine of our own");
        let quoted = script
            .replace('\\', r"\\")
            .replace('"', r#"\""#)
            .replace('\n', r"\n");
        let entry = format!(r#"ENTRYPOINT ["/bin/sh", "-c", "{quoted}", "{name}"]"#);
        let (tar, called) = (
            own.server_dir.path("files.tar"),
            format!("localhost/{name}:latest"),
        );
        let _ = self.podman(&["import", "--change", &entry, &tar, &called]);
        let digest = self.podman(&["image", "inspect", "--format", "{{.Digest}}", &called]);
        assert!(digest.starts_with("sha256:"), "no image {called}: {digest}");
        format!("localhost/{name}@{}", digest.trim())
    }

    /// Runs podman to its end; returns its output.
    ///
    /// # Panics
    /// If the engine was not started here.
    #[must_use]
    pub fn podman(&self, arguments: &[&str]) -> String {
        let own = self.own.as_ref().expect("an engine of our own");
        let ended = podman(&own.server_dir, &own.program)
            .args(arguments)
            .output();
        String::from_utf8_lossy(&ended.expect("podman runs").stdout).into_owned()
    }
}
