//! Requests to create a binding, and the instance that becomes live. The answers of the broker are in `bind_answer.rs`.

use crate::lifecycle::binding::transition::Transition;
use crate::lifecycle::binding::{
    BindFacts, BindSpec, Binding, BindingDecision, BindingEffect, BindingEventError, BindingReply,
    Context, CreateRequest, InstanceReadiness, IntentCause,
};
use crate::lifecycle::instance::{PARAMETERS_BYTES_MAX, SECRETS_MAX};
use crate::lifecycle::intent::{IntentNumber, IntentState};
use crate::lifecycle::request_key::{KeyReusedError, RequestKey};
use crate::preflight::Violation;
use std::collections::{BTreeSet, VecDeque};

/// A request to create a binding that does not exist.
pub(super) fn create(
    request: CreateRequest,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    check_facts(&request.facts)?;
    check_size(&request.spec)?;
    let binding = Binding {
        uid: context.ids.uid,
        namespace: request.namespace,
        instance: request.instance,
        name: request.name,
        author: request.by.clone(),
        spec: request.spec,
        transforms: request.transforms,
        rotation: request.rotation,
        chosen_id: request.osb_id,
        generations: Vec::new(),
        accepted: 0,
        pending: Vec::new(),
        ended: VecDeque::new(),
        idempotency_keys: VecDeque::new(),
        deletion: None,
        failed_rotations: None,
        waits_for_orphan: false,
        awaited_orphan: None,
        auto_retries: 0,
        tombstone: None,
        abandoned: None,
    };
    let mut transition = Transition::of(binding, context);
    let name = transition.next.name.clone();
    transition.effect(BindingEffect::TakeName(name));
    let number = transition.accept_bind(request.by, IntentCause::User, &request.facts);
    transition.remember(request.idempotency_key, number);
    Ok(transition.decision(BindingReply::Accepted(number)))
}

impl Binding {
    /// The intent that the same request began, if it was accepted before.
    ///
    /// # Errors
    /// Another request was accepted under its key.
    pub fn accepted_under(
        &self,
        key: Option<&RequestKey>,
    ) -> Result<Option<IntentNumber>, BindingEventError> {
        let accepted = key.map(|key| key.accepted_in(&self.idempotency_keys));
        let accepted = accepted.unwrap_or(Ok(None));
        accepted.map_err(|KeyReusedError| BindingEventError::KeyReused)
    }
}

/// Refuses parameters that are too large to be kept, and more secrets than one commit can free at the end.
fn check_size(spec: &BindSpec) -> Result<(), BindingEventError> {
    let parameters = (spec.parameters.as_map(), &spec.parameter_sources);
    let bytes = serde_json::to_vec(&parameters).map_or(usize::MAX, |json| json.len());
    let sources = spec.parameter_sources.iter();
    let secrets: BTreeSet<&str> = sources.map(|it| it.secret.as_str()).collect();
    let too_large = [
        (
            bytes > PARAMETERS_BYTES_MAX,
            "/parameters",
            format!("together they have at most {PARAMETERS_BYTES_MAX} bytes of JSON"),
        ),
        (
            secrets.len() > SECRETS_MAX,
            "/parametersFrom",
            format!("they come from at most {SECRETS_MAX} secrets"),
        ),
    ];
    let violations: Vec<_> = too_large
        .into_iter()
        .filter(|(is_too_large, ..)| *is_too_large)
        .map(|(_, pointer, sentence)| Violation {
            pointer: pointer.to_owned(),
            sentence,
            rule: "size",
        })
        .collect();
    match violations.is_empty() {
        true => Ok(()),
        false => Err(BindingEventError::Violations(violations)),
    }
}

/// The conditions of every bind.
pub(super) fn check_facts(facts: &BindFacts) -> Result<(), BindingEventError> {
    match facts.instance {
        InstanceReadiness::Gone => Err(BindingEventError::NoInstance),
        InstanceReadiness::Deleting => Err(BindingEventError::InstanceDeleting),
        InstanceReadiness::Unusable => Err(BindingEventError::InstanceUnusable),
        InstanceReadiness::Live | InstanceReadiness::NotLiveYet if facts.violations.is_empty() => {
            Ok(())
        }
        InstanceReadiness::Live | InstanceReadiness::NotLiveYet => {
            Err(BindingEventError::Violations(facts.violations.clone()))
        }
    }
}

/// The instance is live: a bind that waits for it has its turn.
pub(super) fn instance_live(
    binding: Binding,
    context: &Context<'_>,
) -> Result<BindingDecision, BindingEventError> {
    let waiting = binding.pending.iter().find(|it| it.waits_for_instance);
    let Some(waiting) = waiting.cloned() else {
        return Err(BindingEventError::OutOfDate);
    };
    let mut transition = Transition::of(binding, context);
    transition.edit(waiting.number, |it| it.waits_for_instance = false);
    let is_active = transition.next.active() == Some(waiting.number);
    if is_active && matches!(waiting.state, IntentState::Queued { .. }) {
        transition.effect(BindingEffect::Wake(waiting.operation));
    }
    Ok(transition.decision(BindingReply::Nothing))
}
