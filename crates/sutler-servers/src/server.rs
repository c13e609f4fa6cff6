//! A server that a test uses: started here, or named by a variable.
//!
//! What differs between sorts of servers is a [`ServerKind`], one file each. Not here: databases, which a
//! recipe makes with the server's own client programs; drivers, which tests bring themselves.

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

/// The password of the first user of every server that asks for one; looked for where no password
/// may be.
pub const PASSWORD: &str = "canary-of-a-server-6f1d";

/// What this process has said of its servers.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What a test wants of a server of its own, beside that it runs.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    /// Whether connections are encrypted.
    pub tls: Tls,
    /// More arguments, as the server's command line has them.
    pub arguments: Vec<String>,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// They are not.
    #[default]
    Off,
    /// The server shows a certificate.
    Server,
    /// Clients must show one, too.
    Both,
}

/// What a recipe has to work with.
pub struct StartContext<'a> {
    /// Its folder and its user.
    pub dir: &'a ServerDir,
    /// Where it listens.
    pub port: u16,
    /// Another one, for servers that need two.
    pub second_port: u16,
    /// What the test wants.
    pub demands: &'a Demands,
    /// There, if TLS is wanted.
    pub certificates: Option<&'a Certificates>,
}

/// How a server is started.
pub struct CommandLine {
    /// What is run.
    pub program: PathBuf,
    /// With which arguments, beside those that the test wants.
    pub arguments: Vec<String>,
    /// With which variables.
    pub variables: Vec<(String, String)>,
    /// The signal that ends it as a crash would; without `SIG`.
    pub signal: &'static str,
}

/// A sort of server.
pub trait ServerKind: Send + Sync {
    /// What it is called among the stores.
    fn name(&self) -> &'static str;
    /// Users that the server may run as, where we are root.
    fn users(&self) -> &'static [&'static str];
    /// Makes empty data.
    fn prepare(&self, context: &StartContext<'_>);
    /// How it is started over its data.
    fn command_line(&self, context: &StartContext<'_>) -> CommandLine;
    /// Whether it lets somebody in.
    fn answers(&self, context: &StartContext<'_>) -> bool;
    /// What is done once, when it answers for the first time.
    fn after_start(&self, _ground: &StartContext<'_>) {}
    /// How its first user gets in.
    fn server_url(&self, context: &StartContext<'_>) -> ServerUrl;
    /// Makes an empty database, or whatever a store lives in; what its path in a URL is.
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
    // Before the home: it must be over when its folder goes.
    guard: Mutex<Option<ServerGuard>>,
    dir: ServerDir,
}

impl Server {
    /// Starts one with empty data.
    ///
    /// # Panics
    /// If it does not start; with its log.
    #[must_use]
    pub fn start_own(recipe: Box<dyn ServerKind>, demands: Demands) -> Self {
        let dir = ServerDir::new(recipe.users());
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

    /// Somebody else's, by its URL.
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
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(line.clone()) {
            print_line(&format!("tests run against {line}"));
            record_ran(&line);
        }
    }

    /// What it is called among the stores.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.recipe.name()
    }

    /// How its first user gets in.
    #[must_use]
    pub fn admin_url(&self) -> &ServerUrl {
        &self.place
    }

    /// Where it listens.
    ///
    /// # Panics
    /// If its host is not known here.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let at = (self.place.host.as_str(), self.place.port);
        let mut found = at.to_socket_addrs().expect("a host");
        found.next().expect("an address")
    }

    /// A new, empty database on it, or whatever a store lives in.
    #[must_use]
    pub fn fresh_database(&self) -> ServerUrl {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let name = format!("fresh_{}_{number}", std::process::id());
        let path = self.recipe.create_database(&self.place, &name);
        self.place.at(&path)
    }

    /// Ends it at once, as a crash would; its data stays.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&self) {
        let guard = self.own().guard().take();
        guard.expect("it runs").stop();
    }

    /// Starts it again over the same data, on the same port.
    ///
    /// # Panics
    /// If it does not start; with its log.
    pub fn start(&self) {
        self.own().start(&*self.recipe);
    }

    /// Stops all of its processes where they are.
    ///
    /// # Panics
    /// If it does not run.
    pub fn freeze(&self) {
        self.own().guard().as_ref().expect("it runs").freeze();
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn thaw(&self) {
        self.own().guard().as_ref().expect("it runs").thaw();
    }

    /// Has it run only where nobody else needs the processor: as if it were on another machine, as far as whoever
    /// is measured here can tell.
    ///
    /// # Panics
    /// If it does not run.
    pub fn lower_priority(&self) {
        self.own()
            .guard()
            .as_ref()
            .expect("it runs")
            .lower_priority();
    }

    /// All that it wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.own().dir.log()
    }

    /// Its folder and its user.
    #[must_use]
    pub fn dir(&self) -> &ServerDir {
        &self.own().dir
    }

    /// The certificates that were made for it.
    ///
    /// # Panics
    /// If TLS was not wanted.
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
        let asked = asks.arg("--version").envs(line.variables).output();
        let said = asked.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let version = said
            .ok()
            .and_then(|it| crate::installed::first_version(&it));
        version.unwrap_or_else(|| "of an unknown version".to_owned())
    }
}
