//! Complete description of a run; a runner needs nothing else. Values may be secrets, so `Debug` hides them.
//!
//! Built by `sutler-bundle-service` and `sutler bundle run`; executed by a runner (`runner.rs`).

use secrecy::SecretString;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use sutler_bundle::{Action, RunLimits};
use uuid::Uuid;

/// Name of a run. Each attempt of an operation has exactly one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunName {
    /// The operation.
    pub operation: Uuid,
    /// Its attempt, from 1.
    pub attempt: u32,
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.operation.simple(), self.attempt)
    }
}

impl FromStr for RunName {
    type Err = RunNameError;

    fn from_str(text: &str) -> Result<Self, RunNameError> {
        let (operation, attempt) = text.split_once('-').ok_or(RunNameError)?;
        let name = Self {
            operation: Uuid::try_parse(operation).map_err(|_| RunNameError)?,
            attempt: attempt.parse().map_err(|_| RunNameError)?,
        };
        // Only the canonical spelling is accepted.
        (name.to_string() == text)
            .then_some(name)
            .ok_or(RunNameError)
    }
}

/// The text is not the name of a run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this names no run: a run is named OPERATION-ATTEMPT")]
pub struct RunNameError;

/// Variables of a run: parameters, credentials and state. `Debug` prints none of them.
#[derive(Clone, Default, PartialEq)]
pub struct Vars(pub Map<String, Value>);

impl fmt::Debug for Vars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vars({} hidden)", self.0.len())
    }
}

/// A secret as files: one per key, in a folder of the secret's name.
#[derive(Clone, Debug)]
pub struct SecretFiles {
    /// The secret's name: the folder is `apb-NAME`.
    pub name: String,
    /// Its keys and values, multi-line values unchanged.
    pub keys: BTreeMap<String, SecretString>,
}

/// The program or image that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runnable {
    /// An immutable folder, as a process.
    Folder {
        /// Its path.
        path: PathBuf,
        /// The program, relative to the folder or found on the PATH, and its first arguments.
        entrypoint: Vec<String>,
    },
    /// An image, as a container.
    Image {
        /// Pinned reference: `registry/name@sha256:…`, or an image id of the engine.
        reference: String,
        /// Whether its entry point accepts variables only inline.
        inline_vars: bool,
    },
}

/// Description of a run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// Its name.
    pub name: RunName,
    /// The action.
    pub action: Action,
    /// The program or image that runs.
    pub runnable: Runnable,
    /// `--extra-vars @FILE`.
    pub vars: Vars,
    /// The instance's state, also as files; `None` if it has none yet.
    pub state: Option<Vars>,
    /// The binding's state, also as files.
    pub binding_state: Option<Vars>,
    /// Secrets as files.
    pub secrets: Vec<SecretFiles>,
    /// Additional plain environment variables. Never a secret.
    pub environment: BTreeMap<String, String>,
    /// Plain labels by which a run can be found: bundle, instance, binding, action.
    pub labels: BTreeMap<String, String>,
    /// Equal for all attempts of the operation: passed as `SUTLER_IDEMPOTENCY_KEY`.
    pub idempotency_key: String,
    /// Resource limits.
    pub limits: RunLimits,
}
