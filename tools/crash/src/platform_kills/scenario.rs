//! The parts of a scenario. Pure; all scenarios are in `scenarios.rs`.

use super::scenarios::catalog;
use crate::recording_broker::Rule;
use serde_json::Value;

/// What people do at a platform, and how the broker answers.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name.
    pub name: &'static str,
    /// What is done before, undisturbed.
    pub(super) before: Vec<Step>,
    /// How the broker answers afterwards.
    pub(super) rules: Vec<Rule>,
    /// What is done while the platform is killed.
    pub(super) steps: Vec<Step>,
    /// How often the broker itself makes the platform send one request again.
    pub(super) resends: u32,
    /// Whether something comes to the ledger.
    pub(super) mitigates: bool,
    /// Whether the broker is registered by its first steps, not before.
    pub(super) registers: bool,
}

impl Scenario {
    /// With the steps that register the broker, if it has them.
    #[must_use]
    pub(super) fn registering(mut self, registration: &[Step]) -> Self {
        if self.registers {
            let steps = std::mem::take(&mut self.steps);
            self.steps = registration.iter().cloned().chain(steps).collect();
        }
        self
    }

    /// The catalog that the broker has at the end.
    pub(super) fn catalog_at_end(&self) -> Value {
        let mut catalogs = self.steps.iter().filter_map(|step| match step {
            Step::Catalog(catalog) => Some(catalog.clone()),
            Step::Order(_) | Step::Until(_) => None,
        });
        catalogs.next_back().unwrap_or_else(catalog)
    }
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Somebody asks for something, until there is an answer.
    Order(Order),
    /// Waits until an intent is in one of these states.
    Until(IntentStates),
    /// The broker has another catalog.
    Catalog(Value),
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(super) user: &'static str,
    pub(super) method: &'static str,
    /// Path below `/api/v1`.
    pub(super) path: &'static str,
    pub(super) body: Value,
    /// Whether it has an idempotency key. Without one it can be repeated, and `404` and `410` then say that it is done.
    pub(super) is_keyed: bool,
    /// How it may end.
    pub(super) ends: &'static [&'static str],
}

/// An intent of a resource.
#[derive(Clone, Debug)]
pub(crate) struct IntentStates {
    /// Path of the resource below `/api/v1`.
    pub(super) path: &'static str,
    pub(super) verb: &'static str,
    pub(super) states: &'static [&'static str],
}

impl Order {
    /// In the name of a user.
    pub(super) fn by(user: &'static str, method: &'static str, path: &'static str) -> Self {
        Self {
            user,
            method,
            path,
            body: Value::Null,
            is_keyed: false,
            ends: &["succeeded"],
        }
    }

    #[must_use]
    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    #[must_use]
    pub(super) fn keyed(mut self) -> Self {
        self.is_keyed = true;
        self
    }

    #[must_use]
    pub(super) fn ends(mut self, ends: &'static [&'static str]) -> Self {
        self.ends = ends;
        self
    }
}

impl From<Order> for Step {
    fn from(order: Order) -> Self {
        Self::Order(order)
    }
}
