//! Runs bundles: one run per action of an operation, as a process or a container.
//!
//! A run is described by an [`Order`], started and watched by a [`Runner`], and returns [`Given`]. Runs outlive
//! the broker: a runner finds everything it needs about a run outside of its own process. The process runner
//! is `run/process.rs`, its supervisor `run/process/supervise.rs`, the container runner `run/container.rs`.
//! Nothing here decides what is run or what a result means: that is `sutler-bundle-service`.

#[cfg(feature = "testing")]
pub mod conformance;

mod ansible;
mod given;
mod order;
mod run;
mod runner;
mod work;

pub use given::{Given, Keyed, Progress, ResultWriter};
pub use order::{NoRunName, Order, RunName, Runnable, SecretFiles, Vars};
#[cfg(feature = "containers")]
pub use run::container::{ContainerRunner, ContainerSettings, Network, RegistryLogin};
pub use run::process::{
    ProcessRunner, ProcessSettings, RunUser, SUPERVISOR, Supervisor, make_way, supervisor,
};
pub use runner::{Exit, Line, RunFault, Runner, Seen};
pub use work::{Work, WorkFault};
