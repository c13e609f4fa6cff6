//! All cases in the order in which a broker and its plans are tested.
//!
//! Each module owns its cases and records a verdict, or the reason why a case does not apply.

pub(crate) mod after_update;
pub(crate) mod auth;
pub(crate) mod bindings;
pub(crate) mod catalog;
mod compare;
pub(crate) mod content_type;
pub(crate) mod delete_during_create;
pub(crate) mod deprovision;
mod each_endpoint;
pub(crate) mod fetch_instance;
pub(crate) mod headers;
pub(crate) mod ids;
pub(crate) mod last_operation;
mod plan_change;
pub(crate) mod provision;
pub(crate) mod races;
mod refusal;
pub(crate) mod refusals;
pub(crate) mod repeat;
pub(crate) mod unknown_fields;
pub(crate) mod unknown_instance;
pub(crate) mod update;
pub(crate) mod update_refusals;

use crate::case::{Case, Scope};
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use crate::response_rules;
use crate::target::Target;
use serde_json::Value;
use std::sync::Arc;

/// Every case, in the order of a check.
pub fn all_cases() -> impl Iterator<Item = &'static Case> {
    response_rules::CASES
        .iter()
        .chain(CASES.iter().copied().flatten())
        .copied()
}

/// The cases of the modules below, in order.
const CASES: &[&[&Case]] = &[
    catalog::CASES,
    auth::CASES,
    headers::CASES,
    unknown_fields::CASES,
    ids::CASES,
    unknown_instance::CASES,
    refusals::CASES,
    provision::CASES,
    fetch_instance::CASES,
    last_operation::CASES,
    repeat::CASES,
    content_type::CASES,
    bindings::refusals::CASES,
    bindings::create::CASES,
    bindings::polls::CASES,
    bindings::fetch::CASES,
    bindings::binding_contents::CASES,
    bindings::repeat::CASES,
    bindings::running::CASES,
    bindings::rotate::CASES,
    bindings::unbind::CASES,
    bindings::unbind_during_bind::CASES,
    update_refusals::CASES,
    update::CASES,
    after_update::CASES,
    deprovision::CASES,
    races::CASES,
    plan_change::CASES,
    delete_during_create::CASES,
];

/// Reason if a case needs an operation in progress and none was observed.
pub(crate) const ENDED_BEFORE: &str = "the operation ended before it could be seen running";

/// An existing instance.
pub(crate) struct LiveInstance {
    pub id: InstanceId,
    /// The body that created it.
    pub body: Value,
    /// The first answer to that body: 201 or 202.
    pub first: Arc<Exchange>,
    /// Body of the last fetch, if instances can be fetched.
    pub fetched: Option<Value>,
    /// Whether the repeated PUT was answered with 200.
    pub repeats: bool,
    /// The body of an update that was accepted.
    pub update: Option<Value>,
}

impl LiveInstance {
    fn new(id: InstanceId, body: Value, first: Arc<Exchange>) -> Self {
        Self {
            id,
            body,
            first,
            fetched: None,
            repeats: false,
            update: None,
        }
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target::Instance(&self.id)
    }

    /// Whether its provision was asynchronous.
    pub(crate) fn is_async(&self) -> bool {
        self.first.is(&[202])
    }
}

/// Tests one plan; the first one also with the cases of the whole broker.
pub(crate) async fn walk_plan(run: &PlanRun) -> Result<(), StopReason> {
    if run.client.is_first_walk() {
        auth::walk(run).await?;
        headers::walk(run).await?;
        unknown_fields::walk(run).await?;
        ids::walk(run).await?;
    }
    let body = run.provision_body();
    let gone_is_reported = unknown_instance::walk(run).await?;
    refusals::walk(run, &body, gone_is_reported).await?;
    let mut live = match provision::walk(run, body).await? {
        Ok(live) => live,
        Err(reason) => {
            skip_rest(run, &reason);
            return Ok(());
        }
    };
    fetch_instance::walk(run, &mut live).await?;
    repeat::walk(run, &mut live).await?;
    content_type::walk(run, &live).await?;
    last_operation::walk(run, &live).await?;
    bindings::walk(run, &live).await?;
    update::walk(run, &mut live).await?;
    let deleted = deprovision::walk(run, &live).await?;
    races::walk(run, &live, deleted.as_deref()).await?;
    delete_during_create::walk(run, &live, deleted.is_some()).await
}

/// Marks all remaining cases of the plan as not applicable.
fn skip_rest(run: &PlanRun, reason: &str) {
    let all = CASES.iter().copied().flatten().copied();
    for case in all.filter(|it| it.scope == Scope::Plan) {
        run.skip(case, reason);
    }
}

#[cfg(test)]
mod tests {
    use super::all_cases;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_a_line_and_a_sentence() {
        let mut names = BTreeSet::new();
        for case in all_cases() {
            assert!(names.insert(case.name), "{} is there twice", case.name);
            assert!(case.line.starts_with("B-"), "{}", case.name);
            assert!(case.rule.ends_with('.'), "{}", case.name);
        }
    }
}
