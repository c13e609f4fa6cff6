//! Environment of a bundle that runs without a broker: its folder, its state and its runner.
//!
//! By default folders run as processes and images run in a container engine.

use clap::{Args, ValueEnum};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use sutler_bundle::Manifest;
use sutler_bundle_service::{Bundle, LocalInstance, OperatorSecret, VersionStore};
use sutler_runner::{
    ContainerRunner, ContainerSettings, Network, ProcessRunner, ProcessSettings, RunUser, Runner,
    WorkDir,
};

/// Default sockets of container engines.
const SOCKETS: [&str; 2] = ["/run/podman/podman.sock", "/var/run/docker.sock"];

/// Choice of the runner.
#[derive(Args, Clone)]
pub(super) struct RunnerArgs {
    /// The runner of the bundle [default: container if its manifest names an image, else process]
    #[arg(long, value_enum, value_name = "RUNNER")]
    runner: Option<RunnerName>,
    /// The socket of the container engine [default: Podman's or Docker's, whichever is there]
    #[arg(long, value_name = "SOCKET")]
    engine: Option<PathBuf>,
    /// The network of containers
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t = NetworkName::Bridge)]
    network: NetworkName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RunnerName {
    /// The bundle's folder, as processes of this host
    Process,
    /// The image that the manifest names, by a container engine
    Container,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkName {
    /// No network
    None,
    /// The engine's own network
    Bridge,
    /// The host's network
    Host,
}

impl RunnerArgs {
    /// Adds the same flags to another command.
    pub(super) fn pass_on(&self, command: &mut Command) {
        let name = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|it| it.get_name().to_owned())
        };
        if let Some(runner) = self.runner.and_then(|it| name(&|| it.to_possible_value())) {
            command.args(["--runner", &runner]);
        }
        if let Some(network) = name(&|| self.network.to_possible_value()) {
            command.args(["--network", &network]);
        }
        if let Some(engine) = &self.engine {
            command.arg("--engine").arg(engine);
        }
    }

    /// The runner: the one of the flag, or the default of the manifest.
    fn choose(&self, manifest: &Manifest) -> Result<RunnerName, String> {
        let usual = match manifest.image {
            Some(_) => RunnerName::Container,
            None => RunnerName::Process,
        };
        let chosen = self.runner.unwrap_or(usual);
        match (chosen, &manifest.image) {
            (RunnerName::Container, None) => Err(
                "the bundle has no image to run as a container: make one (`sutler bundle pack`), load it into \
                 the engine, and name it under `image` of the manifest"
                    .to_owned(),
            ),
            _ => Ok(chosen),
        }
    }

    fn socket(&self) -> Result<PathBuf, String> {
        let there = || {
            SOCKETS
                .map(PathBuf::from)
                .into_iter()
                .find(|it| it.exists())
        };
        let found = self.engine.clone().or_else(there);
        found.ok_or_else(|| {
            "no container engine listens on this host: start one (`systemctl start podman.socket`), or name \
             its socket with --engine"
                .to_owned()
        })
    }
}

/// A bundle with its runner and its working directory.
pub(super) struct BundleEnv {
    bundle: Arc<Bundle>,
    runner: Arc<dyn Runner>,
    work: WorkDir,
}

impl BundleEnv {
    /// Opens the working directory: `state`, or `.sutler` in the folder of the bundle.
    pub(super) fn open(
        folder: &Path,
        state: Option<&Path>,
        runner: &RunnerArgs,
    ) -> Result<Self, Box<dyn Error>> {
        let own = folder.join(".sutler");
        let work = WorkDir::open(state.unwrap_or(&own))?;
        let version_store = VersionStore::open(work.path())?;
        let mut bundle = version_store.take_in(folder)?;
        let runner: Arc<dyn Runner> = match runner.choose(&bundle.manifest)? {
            RunnerName::Process => {
                // The files of the folder run, even if the manifest names an image.
                let mut of_folder = Bundle::clone(&bundle);
                of_folder.manifest.image = None;
                bundle = Arc::new(of_folder);
                let settings = ProcessSettings {
                    user: RunUser::Own,
                    ..ProcessSettings::new(work.path().to_owned())
                };
                Arc::new(ProcessRunner::open(settings)?)
            }
            RunnerName::Container => {
                let usual = ContainerSettings::new(work.path().to_owned(), runner.socket()?);
                let settings = ContainerSettings {
                    owner: work.host().to_owned(),
                    network: match runner.network {
                        NetworkName::None => Network::None,
                        NetworkName::Bridge => Network::Bridge,
                        NetworkName::Host => Network::Host,
                    },
                    ..usual
                };
                Arc::new(ContainerRunner::open(settings)?)
            }
        };
        Ok(Self {
            bundle,
            runner,
            work,
        })
    }

    /// Opens an instance of the bundle. All given secrets are for this bundle.
    pub(super) fn instance(
        &self,
        name: &str,
        mut secrets: Vec<OperatorSecret>,
    ) -> Result<LocalInstance, Box<dyn Error>> {
        for secret in &mut secrets {
            secret.bundles.insert(self.bundle.manifest.name.clone());
        }
        let (bundle, runner) = (self.bundle.clone(), self.runner.clone());
        let work = self.work.path();
        Ok(LocalInstance::open(bundle, runner, secrets, work, name)?)
    }
}
