//! Podman behind its socket, which speaks Docker's API: with storage of its own, and one image to run.
//!
//! `SUTLER_TEST_ENGINE_SOCKET` names another engine's socket instead; the image is not put there. Images of
//! bundles are made in `podman/bundles.rs`.

mod bundles;

use crate::find::{Missing, programs, tell_what_ran};
use crate::home::Home;
use crate::keeper::Keeper;
use crate::wait::until;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The image: a busybox whose entry point evaluates `$SCRIPT`.
pub const SHELL_IMAGE: &str = "localhost/sutler-shell:latest";

/// Old cgroups are unknown to crun; ulimits of the default cannot be set without a privilege.
const CONF: &str = r#"[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
"#;

/// Registries of tests are on this host, and not all of them have certificates.
const REGISTRIES: &str = "[[registry]]\nlocation = \"127.0.0.1\"\ninsecure = true\n";

/// Ends containers that a failed test left, too.
const SERVE: &str = r#"#!/bin/sh
"$@" system service --time=0 "unix://$SOCKET" & service=$!
trap 'kill $service; "$@" rm --all --force --time 0; exit 0' TERM
wait $service
"#;

/// An engine.
pub struct Podman {
    /// Where it listens.
    pub socket: PathBuf,
    own: Option<Own>,
}

struct Own {
    home: Home,
    program: PathBuf,
    _keeper: Keeper,
}

/// The engine that all tests of this process share; `None` if there is none here, which is said.
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
    let found = programs(&["podman"], &places);
    let all = ["runc", "busybox", "conmon"];
    let whole = all.iter().all(|name| programs(&[name], &places).is_some());
    let (Some(folder), true) = (found, whole) else {
        let missing = Missing {
            name: "podman",
            program: "podman",
            how: "apt-get install podman runc conmon busybox-static netavark iptables, or set SUTLER_TEST_ENGINE_SOCKET",
            may_be: false,
        };
        missing.tell();
        return None;
    };
    Some(start(
        folder.join("podman"),
        &programs(&["busybox"], &places)?,
    ))
}

fn start(program: PathBuf, busybox: &Path) -> Podman {
    let home = Home::new(&["root"]);
    fs::write(home.path("containers.conf"), CONF).expect("a file");
    fs::write(home.path("registries.conf"), REGISTRIES).expect("a file");
    let script = home.folder().join("serve");
    fs::write(&script, SERVE).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    import(&home, &program, busybox);
    let socket = home.folder().join("socket");
    let mut shell = home.command(Path::new("/bin/sh"));
    shell.env("CONTAINERS_CONF", home.path("containers.conf"));
    shell.env("CONTAINERS_REGISTRIES_CONF", home.path("registries.conf"));
    shell.env("SOCKET", &socket);
    shell.env("HOME", home.folder());
    let mut words = vec![program.display().to_string()];
    words.extend(storage(&home));
    let keeper = Keeper::start(shell, home.folder(), "TERM", &script, &words);
    until("podman answers", || UnixStream::connect(&socket).ok());
    tell_what_ran("podman");
    let own = Some(Own {
        home,
        program,
        _keeper: keeper,
    });
    Podman { socket, own }
}

fn storage(home: &Home) -> Vec<String> {
    let words = [
        "--root",
        &home.path("storage"),
        "--runroot",
        &home.path("run"),
    ]
    .map(str::to_owned);
    words
        .into_iter()
        .chain(["--storage-driver".to_owned(), "vfs".to_owned()])
        .collect()
}

/// An image of nothing but busybox: no registry is asked.
fn import(home: &Home, program: &Path, busybox: &Path) {
    let files = home.folder().join("files");
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
    let (from, tar) = (files.display().to_string(), home.path("files.tar"));
    home.run(Path::new("tar"), &["-C", &from, "-cf", &tar, "."]);
    let imported = podman(home, program)
        .args([
            "import",
            "--change",
            r#"ENTRYPOINT ["/bin/entry"]"#,
            &tar,
            SHELL_IMAGE,
        ])
        .output()
        .expect("podman runs");
    let said = String::from_utf8_lossy(&imported.stderr);
    assert!(imported.status.success(), "podman import: {said}");
}

fn podman(home: &Home, program: &Path) -> Command {
    let mut command = home.command(program);
    command.env("CONTAINERS_CONF", home.path("containers.conf"));
    command.env("HOME", home.folder());
    command.args(storage(home));
    command
}

impl Podman {
    /// Whether it is of the tests' own, so that podman itself can be run beside it.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Makes an image of the busybox whose entry point is a script; its reference, pinned.
    ///
    /// # Panics
    /// If this is somebody else's engine, or it makes no image.
    #[must_use]
    pub fn image(&self, name: &str, script: &str) -> String {
        let own = self.own.as_ref().expect("an engine of our own");
        let quoted = script
            .replace('\\', r"\\")
            .replace('"', r#"\""#)
            .replace('\n', r"\n");
        let entry = format!(r#"ENTRYPOINT ["/bin/sh", "-c", "{quoted}", "{name}"]"#);
        let (tar, called) = (
            own.home.path("files.tar"),
            format!("localhost/{name}:latest"),
        );
        let _ = self.podman(&["import", "--change", &entry, &tar, &called]);
        let digest = self.podman(&["image", "inspect", "--format", "{{.Digest}}", &called]);
        assert!(digest.starts_with("sha256:"), "no image {called}: {digest}");
        format!("localhost/{name}@{}", digest.trim())
    }

    /// Runs podman itself to its end; what it printed.
    ///
    /// # Panics
    /// If this is somebody else's engine.
    #[must_use]
    pub fn podman(&self, arguments: &[&str]) -> String {
        let own = self.own.as_ref().expect("an engine of our own");
        let ended = podman(&own.home, &own.program).args(arguments).output();
        String::from_utf8_lossy(&ended.expect("podman runs").stdout).into_owned()
    }
}
