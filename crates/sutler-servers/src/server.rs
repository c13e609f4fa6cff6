//! A server for tests: started here, or named by a variable.
//!
//! Differences between servers are in implementations of [`ServerKind`], one file each. Databases are created with
//! the client programs of the server; drivers are up to the tests.

use crate::certificates::Certificates;
use crate::installed::{print_line, record_ran};
use crate::server_dir::ServerDir;
use crate::server_guard::ServerGuard;
use crate::server_url::ServerUrl;
use crate::wait::{free_port, until};
use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Password of the first user of every server; tests search for it where no password may be.
pub const PASSWORD: &str = "canary-of-a-server-6f1d";

/// Lines that this process has printed about its servers.
static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Options of a server for one test.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// TLS mode.
    pub tls: Tls,
    /// More arguments of the server.
    pub arguments: Vec<String>,
    /// Its data is on a disk, not in memory: for benchmarks.
    pub on_disk: bool,
}

/// TLS mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Without TLS.
    #[default]
    Off,
    /// The server has a certificate.
    Server,
    /// Clients need a certificate, too.
    Both,
}

/// Context in which a server is started.
pub struct StartContext<'a> {
    /// Directory and user.
    pub dir: &'a ServerDir,
    /// Port.
    pub port: u16,
    /// Second port, for servers that need two.
    pub second_port: u16,
    /// Options of the test.
    pub demands: &'a Demands,
    /// Certificates, with TLS.
    pub certificates: Option<&'a Certificates>,
}

/// Command line of a server.
pub struct CommandLine {
    /// Program.
    pub program: PathBuf,
    /// Arguments, without those of the options.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub variables: Vec<(String, String)>,
    /// Signal that ends it like a crash; without `SIG`.
    pub signal: &'static str,
}

/// A kind of server.
pub trait ServerKind: Send + Sync {
    /// Name of the store.
    fn name(&self) -> &'static str;
    /// Users that the server may run as, if the tests run as root.
    fn users(&self) -> &'static [&'static str];
    /// Creates empty data.
    fn prepare(&self, context: &StartContext<'_>);
    /// Command line for existing data.
    fn command_line(&self, context: &StartContext<'_>) -> CommandLine;
    /// Whether the server accepts clients.
    fn answers(&self, context: &StartContext<'_>) -> bool;
    /// Runs once, when the server first accepts clients.
    fn after_start(&self, _ground: &StartContext<'_>) {}
    /// URL of the first user.
    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl;
    /// Creates an empty database, or whatever a store uses; returns its path in a URL.
    fn create_database(&self, at: &ServerUrl, name: &str) -> String;
}

/// A running server.
pub struct Server {
    recipe: Box<dyn ServerKind>,
    place: ServerUrl,
    own: Option<OwnProcess>,
}

struct OwnProcess {
    demands: Demands,
    certificates: Option<Certificates>,
    ports: (u16, u16),
    // Before the directory, which must outlive the process.
    guard: Mutex<Option<ServerGuard>>,
    dir: ServerDir,
}

impl Server {
    /// Starts a server with empty data.
    ///
    /// # Panics
    /// If it does not start; with its log.
    #[must_use]
    pub fn start_own(recipe: Box<dyn ServerKind>, demands: Demands) -> Self {
        let dir = match demands.on_disk {
            true => ServerDir::on_disk(recipe.users()),
            false => ServerDir::new(recipe.users()),
        };
        let certificates = (demands.tls != Tls::Off).then(|| Certificates::write(&dir));
        let own = OwnProcess {
            demands,
            certificates,
            ports: (free_port(), free_port()),
            guard: Mutex::new(None),
            dir,
        };
        recipe.prepare(&own.context());
        own.start(&*recipe);
        recipe.after_start(&own.context());
        let server = Self {
            place: recipe.server_url(&own.context()),
            recipe,
            own: Some(own),
        };
        server.announce();
        server
    }

    /// A server at a URL, started elsewhere.
    #[must_use]
    pub fn at_url(recipe: Box<dyn ServerKind>, url: &str, port: u16) -> Self {
        let server = Self {
            recipe,
            place: ServerUrl::of(url, port),
            own: None,
        };
        server.announce();
        server
    }

    fn announce(&self) {
        let version = match &self.own {
            Some(own) => own.version(&*self.recipe),
            None => "of a given URL".to_owned(),
        };
        let line = format!("{} {version}", self.recipe.name());
        let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.insert(line.clone()) {
            print_line(&format!("tests run against {line}"));
            record_ran(&line);
        }
    }

    /// Name of the store.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.recipe.name()
    }

    /// URL of the first user.
    #[must_use]
    pub fn admin_url(&self) -> &ServerUrl {
        &self.place
    }

    /// Socket address.
    ///
    /// # Panics
    /// If the host cannot be resolved.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let at = (self.place.host.as_str(), self.place.port);
        let mut found = at.to_socket_addrs().expect("a host");
        found.next().expect("an address")
    }

    /// Creates an empty database, or whatever a store uses; returns its URL.
    #[must_use]
    pub fn fresh_database(&self) -> ServerUrl {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("fresh_{}_{number}", std::process::id());
        let path = self.recipe.create_database(&self.place, &name);
        self.place.at(&path)
    }

    /// Ends the server like a crash; its data stays.
    ///
    /// # Panics
    /// If it is not running.
    pub fn kill(&self) {
        let guard = self.own().guard().take();
        guard.expect("it runs").stop();
    }

    /// Starts the server again with the same data and port.
    ///
    /// # Panics
    /// If it does not start; with its log.
    pub fn start(&self) {
        self.own().start(&*self.recipe);
    }

    /// Stops all its processes by SIGSTOP.
    ///
    /// # Panics
    /// If it is not running.
    pub fn freeze(&self) {
        self.own().guard().as_ref().expect("it runs").freeze();
    }

    /// Continues its processes.
    ///
    /// # Panics
    /// If it is not running.
    pub fn thaw(&self) {
        self.own().guard().as_ref().expect("it runs").thaw();
    }

    /// Lowers its priority to the minimum: for measurements it then runs as if on another machine.
    ///
    /// # Panics
    /// If it is not running.
    pub fn lower_priority(&self) {
        self.own()
            .guard()
            .as_ref()
            .expect("it runs")
            .lower_priority();
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.own().dir.log()
    }

    /// Its directory and user.
    #[must_use]
    pub fn dir(&self) -> &ServerDir {
        &self.own().dir
    }

    /// Its certificates.
    ///
    /// # Panics
    /// If TLS is not enabled.
    #[must_use]
    pub fn certificates(&self) -> &Certificates {
        self.own().certificates.as_ref().expect("TLS was wanted")
    }

    fn own(&self) -> &OwnProcess {
        self.own.as_ref().expect("a server of the test's own")
    }
}

impl OwnProcess {
    fn context(&self) -> StartContext<'_> {
        StartContext {
            dir: &self.dir,
            port: self.ports.0,
            second_port: self.ports.1,
            demands: &self.demands,
            certificates: self.certificates.as_ref(),
        }
    }

    fn guard(&self) -> MutexGuard<'_, Option<ServerGuard>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, recipe: &dyn ServerKind) {
        let context = self.context();
        let mut line = recipe.command_line(&context);
        line.arguments.extend_from_slice(&self.demands.arguments);
        let guard = self
            .dir
            .keep(&line.program, &line.arguments, &line.variables, line.signal);
        until(&format!("an answer of {}", recipe.name()), || {
            assert!(guard.lives(), "it ended: {}", self.dir.log());
            recipe.answers(&context).then_some(())
        });
        *self.guard() = Some(guard);
    }

    fn version(&self, recipe: &dyn ServerKind) -> String {
        let line = recipe.command_line(&self.context());
        let mut asks = self.dir.command(&line.program);
        let version_run = asks.arg("--version").envs(line.variables).output();
        let version_text = version_run.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let version = version_text
            .ok()
            .and_then(|it| crate::installed::first_version(&it));
        version.unwrap_or_else(|| "of an unknown version".to_owned())
    }
}
