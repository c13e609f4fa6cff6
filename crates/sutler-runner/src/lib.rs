//! Runs bundles: one run per action of an operation, as a process or a container.
//!
//! A run is described by a [`RunSpec`], started and watched by a [`Runner`], and returns a [`RunResult`]. Runs
//! outlive the broker: a runner finds everything it needs about a run outside of its own process. The process runner
//! is `run/process.rs`, its supervisor `run/process/supervise.rs`, the container runner `run/container.rs`. Nothing
//! here decides what is run or what a result means: that is `sutler-bundle-service`.

#[cfg(feature = "testing")]
pub mod conformance;

mod ansible;
mod run;
mod run_result;
mod run_spec;
mod runner;
mod work_dir;

#[cfg(feature = "containers")]
pub use run::container::{ContainerRunner, ContainerSettings, Network, RegistryLogin};
pub use run::process::{
    ProcessRunner, ProcessSettings, RunUser, SUPERVISOR, Supervisor, create_traversable_dir,
    run_supervisor,
};
pub use run_result::{KeyedFile, ResultWriter, RunProgress, RunResult};
pub use run_spec::{RunName, RunNameError, RunSpec, Runnable, SecretFiles, Vars};
pub use runner::{Exit, RunError, RunEvent, RunStatus, Runner};
pub use work_dir::{WorkDir, WorkDirError};
