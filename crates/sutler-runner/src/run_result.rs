//! Result of a run, read from its result directory. Values may be secrets.
//!
//! Reading is `run_result/read.rs`, writing for scripts `run_result/write.rs`.

mod read;
mod write;

pub(crate) use read::{RESULT_FILES, ResultDir};
pub use write::{KeyedFile, ResultWriter};

use crate::run_spec::Vars;
use std::fmt;

/// Progress of a run, as the bundle reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// Text for polls.
    pub text: String,
    /// From 0 to 100, if known.
    pub percent: Option<u8>,
}

/// Result of a run.
#[derive(Clone, Default, PartialEq)]
pub struct RunResult {
    /// `credentials.json`.
    pub credentials: Option<Vars>,
    /// `state.json`: keys to set; those that are null are removed.
    pub state: Option<Vars>,
    /// `binding_state.json`: the same for the binding's own state.
    pub binding_state: Option<Vars>,
    /// The last progress.
    pub progress: Option<RunProgress>,
    /// `dashboard_url`.
    pub dashboard_url: Option<String>,
    /// `error`: a sentence for the user.
    pub error: Option<String>,
    /// One sentence per file that cannot be used, without values.
    pub refused: Vec<String>,
}

impl fmt::Debug for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResult")
            .field("credentials", &self.credentials)
            .field("state", &self.state)
            .field("binding_state", &self.binding_state)
            .field("progress", &self.progress)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}
