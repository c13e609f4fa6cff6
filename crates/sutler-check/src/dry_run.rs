//! Outline of a check (`--dry-run`), computed from the catalog alone.

use crate::case::Scope;
use crate::cases::all_cases;
use crate::created::Tally;
use crate::params::{self, Sample};
use crate::plan_run::PlanRun;
use crate::report::Redaction;
use crate::verdicts::Subject;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Maximum instances and bindings created for one plan; a test checks this.
pub(crate) const AT_MOST: Tally = Tally {
    instances: 4,
    bindings: 8,
};

/// Outline of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The plans that would be tested.
    pub plans: Vec<PlanOutline>,
    /// Number of cases checked once.
    pub broker_cases: usize,
    /// Number of cases checked for each plan.
    pub plan_cases: usize,
    /// Maximum resources created, for all plans together.
    pub at_most: Tally,
}

/// Outline of the check of one plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOutline {
    /// The offering's name.
    pub service: Arc<str>,
    /// The plan's name.
    pub plan: Arc<str>,
    /// The plan's id.
    pub plan_id: String,
    /// Parameters of provisions.
    pub provision: SentParameters,
    /// Parameters of updates.
    pub update: SentParameters,
    /// Parameters of binds.
    pub bind: SentParameters,
    /// Maximum resources created.
    pub at_most: Tally,
}

/// Parameters that would be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum SentParameters {
    /// None: the plan has no schema.
    Nothing,
    /// Derived from the plan's schema.
    Derived(Value),
    /// The caller's own, without their values.
    Given(Value),
    /// None, because none could be derived; the reason.
    Unknown(String),
}

/// Outline of these plan runs.
pub(crate) fn of(runs: &[PlanRun]) -> Outline {
    let plans: Vec<PlanOutline> = runs.iter().map(plan).collect();
    let count = |scope| all_cases().filter(|it| it.scope == scope).count();
    let sum = |of: fn(&Tally) -> usize| plans.iter().map(|it| of(&it.at_most)).sum();
    Outline {
        broker_cases: count(Scope::Broker),
        plan_cases: count(Scope::Plan),
        at_most: Tally {
            instances: sum(|it| it.instances),
            bindings: sum(|it| it.bindings),
        },
        plans,
    }
}

fn plan(run: &PlanRun) -> PlanOutline {
    let (offering, plan) = (run.offering(), run.plan());
    let given = params::given(&run.client.options, offering, plan);
    let samples = run.samples();
    let (service, name) = match &run.subject {
        Subject::Plan { service, plan } => (service.clone(), plan.clone()),
        Subject::Broker => (offering.name.clone(), plan.name.clone()),
    };
    let bindings = match plan.flag(offering, "bindable") {
        true => AT_MOST.bindings,
        false => 0,
    };
    PlanOutline {
        service,
        plan: name,
        plan_id: plan.id.clone(),
        provision: sent(
            &samples.provision,
            given.and_then(|it| it.provision.as_ref()),
        ),
        update: sent(&samples.update, given.and_then(|it| it.update.as_ref())),
        bind: sent(&samples.bind, given.and_then(|it| it.bind.as_ref())),
        at_most: Tally {
            instances: AT_MOST.instances,
            bindings,
        },
    }
}

fn sent(sample: &Sample, given: Option<&Map<String, Value>>) -> SentParameters {
    if let Some(given) = given {
        return SentParameters::Given(Redaction::hollow(given));
    }
    match sample.valid() {
        Ok(Some(parameters)) => SentParameters::Derived(Value::Object(parameters.clone())),
        Ok(None) => SentParameters::Nothing,
        Err(why) => SentParameters::Unknown(why.to_owned()),
    }
}
