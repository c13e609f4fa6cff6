//! Options of a check.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Expectations where specification and older suites differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The specification 2.17.
    #[default]
    V2_17,
    /// The suites for 2.13: 412 for a missing version header, 410 for polls after a delete.
    Compat2_13,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V2_17 => "2.17",
            Self::Compat2_13 => "compat-2.13",
        })
    }
}

/// Parameters of the caller for one plan, instead of derived ones.
#[derive(Clone, Default)]
pub struct PlanParameters {
    /// For provisions.
    pub provision: Option<Map<String, Value>>,
    /// For updates.
    pub update: Option<Map<String, Value>>,
    /// For binds.
    pub bind: Option<Map<String, Value>>,
}

/// Only names: the values may be secret.
impl fmt::Debug for PlanParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |it: &Option<Map<String, Value>>| -> Option<Vec<String>> {
            Some(it.as_ref()?.keys().cloned().collect())
        };
        f.debug_struct("PlanParameters")
            .field("provision", &names(&self.provision))
            .field("update", &names(&self.update))
            .field("bind", &names(&self.bind))
            .finish()
    }
}

impl PlanParameters {
    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let all = [&self.provision, &self.update, &self.bind];
        all.into_iter().flatten()
    }
}

/// Permissions and time limits of a check.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names or ids of the offerings to test; empty for all.
    pub services: Vec<String>,
    /// Names or ids of the plans to test; empty for all.
    pub plans: Vec<String>,
    /// Parameters by plan: `service/plan`, by name or id.
    pub parameters: BTreeMap<String, PlanParameters>,
    /// Maximum plans tested in parallel.
    pub jobs: usize,
    /// Time limit of one asynchronous operation.
    pub operation_within: Duration,
    /// Time limit of the whole clean-up.
    pub clean_up_within: Duration,
    /// Expectations to apply.
    pub profile: Profile,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            services: Vec::new(),
            plans: Vec::new(),
            parameters: BTreeMap::new(),
            jobs: 4,
            operation_within: Duration::from_secs(600),
            clean_up_within: Duration::from_secs(1200),
            profile: Profile::default(),
        }
    }
}
