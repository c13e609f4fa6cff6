//! Requests to change an instance: checked, compared with what is shown, accepted at the end of the queue.

use crate::author::Author;
use crate::lifecycle::instance::bounds::check_size;
use crate::lifecycle::instance::transition::{Transition, fingerprint};
use crate::lifecycle::instance::{
    ChangeFacts, ChangeRequest, Context, IDEMPOTENCY_KEYS_KEPT, Instance, InstanceDecision,
    InstanceEventError, InstanceReply, IntentChange, MANAGERS_BYTES_MAX, MANAGERS_KEPT, NAMES_MAX,
    PENDING_BYTES_MAX, PENDING_MAX, PendingIntent, SECRETS_MAX,
};
use crate::lifecycle::intent::{CancelledBy, IntentCause, IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::request_key::{AcceptedKey, KeyReusedError, RequestKey};
use crate::spec::{self, Spec, SpecPatch};

/// What a change leads to.
pub(super) enum WantedSpec {
    /// These differences.
    Patch(SpecPatch),
    /// This specification.
    Whole(Spec),
    /// What this manager changed since it applied last.
    Applied(String, Spec),
    /// An update without a difference.
    Touch,
}

/// A request to change an instance.
pub(super) fn change(
    instance: Instance,
    wanted: WantedSpec,
    facts: &ChangeFacts,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    if let Some(number) = accepted_before(&instance, &facts.request)? {
        return Ok(
            Transition::of(instance, context).decision(InstanceReply::AcceptedBefore(number))
        );
    }
    if follows_earlier_generation(&instance, &facts.request) {
        return Ok(Transition::of(instance, context).decision(InstanceReply::Unchanged));
    }
    check_conditions(&instance, facts, context)?;
    let shown = instance.projection().spec;
    let mut transition = Transition::of(instance, context);
    let patch = match &wanted {
        WantedSpec::Patch(patch) => spec::diff(&shown, &shown.apply(patch)),
        WantedSpec::Whole(spec) => spec::diff(&shown, spec),
        WantedSpec::Applied(manager, spec) => {
            let last = transition.next.last_applied(manager);
            let patch = spec::three_way(last, spec, &shown);
            transition.remember_applied(manager, spec);
            patch
        }
        WantedSpec::Touch => SpecPatch::default(),
    };
    let is_touch = matches!(wanted, WantedSpec::Touch);
    if patch.is_empty() && !is_touch {
        let reply = match wanted {
            WantedSpec::Applied(..) => InstanceReply::Done,
            WantedSpec::Patch(_) | WantedSpec::Whole(_) | WantedSpec::Touch => {
                InstanceReply::Unchanged
            }
        };
        return Ok(transition.decision(reply));
    }
    if is_touch && transition.next.confirmed().is_none() {
        return Err(InstanceEventError::NotLive);
    }
    refuse_rejected(&transition.next, &patch, facts)?;
    let number = accept_patch(&mut transition, patch, facts)?;
    Ok(transition.decision(InstanceReply::Accepted(number)))
}

/// The conditions of a change that do not depend on what it changes.
pub(super) fn check_conditions(
    instance: &Instance,
    facts: &ChangeFacts,
    context: &Context<'_>,
) -> Result<(), InstanceEventError> {
    if instance.deletion.is_some() {
        return Err(InstanceEventError::Deleting);
    }
    let shown = instance.revision;
    if facts.request.if_revision.is_some_and(|seen| seen != shown) {
        return Err(InstanceEventError::RevisionChanged { shown });
    }
    let is_in_the_way = |intent: &PendingIntent| !matches!(intent.state, IntentState::OnHold(_));
    if context.policy.exclusive && instance.pending.iter().any(is_in_the_way) {
        return Err(InstanceEventError::Busy);
    }
    refuse_violations(facts)
}

pub(super) fn refuse_violations(facts: &ChangeFacts) -> Result<(), InstanceEventError> {
    if facts.violations.is_empty() {
        return Ok(());
    }
    Err(InstanceEventError::Violations(facts.violations.clone()))
}

/// The intent that the same request began, if it was accepted before. A key of another request is refused.
pub(super) fn accepted_before(
    instance: &Instance,
    request: &ChangeRequest,
) -> Result<Option<IntentNumber>, InstanceEventError> {
    let Some(key) = key_of(request) else {
        return Ok(None);
    };
    let accepted = key.accepted_in(&instance.idempotency_keys);
    accepted.map_err(|KeyReusedError| InstanceEventError::KeyReused)
}

/// Whether a later generation of the object that the request follows was taken over already.
fn follows_earlier_generation(instance: &Instance, request: &ChangeRequest) -> bool {
    let both = instance.source.as_ref().zip(request.source.as_ref());
    both.is_some_and(|(known, source)| {
        known.uid == source.uid && source.generation < known.generation
    })
}

/// The key under which a request is accepted once.
fn key_of(request: &ChangeRequest) -> Option<RequestKey> {
    let source = request.source.as_ref();
    let of_source = || {
        source.map(|it| RequestKey {
            key: format!("source {} {}", it.uid, it.generation),
            digest: String::new(),
        })
    };
    request.idempotency_key.clone().or_else(of_source)
}

fn refuse_rejected(
    instance: &Instance,
    patch: &SpecPatch,
    facts: &ChangeFacts,
) -> Result<(), InstanceEventError> {
    if facts.request.forced || instance.confirmed().is_none() {
        return Ok(());
    }
    let wanted = fingerprint(&instance.basis, patch, facts.catalog_revision);
    let mut ended = instance.ended.iter().rev();
    match ended.find(|it| it.rejected_as.as_ref() == Some(&wanted)) {
        Some(rejected) => Err(InstanceEventError::RejectedBefore(rejected.number)),
        None => Ok(()),
    }
}

/// Accepts a difference: as an update, as a local change, or as the create of an instance that does not exist yet.
pub(super) fn accept_patch(
    transition: &mut Transition<'_>,
    patch: SpecPatch,
    facts: &ChangeFacts,
) -> Result<IntentNumber, InstanceEventError> {
    let request = &facts.request;
    let change = match IntentChange::of(patch) {
        IntentChange::Local(patch) if patch.name.is_some() && may_send_name(transition) => {
            IntentChange::Update(patch)
        }
        change => change,
    };
    let creates = transition.next.confirmed().is_none()
        && !transition.next.is_being_created()
        && !transition.next.has_waiting_updates()
        && matches!(change, IntentChange::Update(_));
    check_room(&transition.next, &change, &request.author)?;
    if let Some(patch) = change.patch() {
        check_size(&transition.next.projection().spec.apply(patch))?;
    }
    let number = match change {
        IntentChange::Update(patch) if creates => {
            transition.confirm(&patch);
            transition.accept_create(request, facts.catalog_revision)
        }
        change => {
            let (change, superseded) = coalesced(&transition.next, change, request);
            let number = transition.accept(change, request, facts.catalog_revision);
            if let Some(superseded) = superseded {
                transition.end(superseded, IntentEnd::Superseded(number));
            }
            number
        }
    };
    check_uses(&transition.next)?;
    transition.remember(request, number);
    Ok(number)
}

/// The commit in which an instance ends frees all its names and uses of secrets, besides ending its intents.
pub(super) fn check_uses(instance: &Instance) -> Result<(), InstanceEventError> {
    match instance.names().len() > NAMES_MAX || instance.secrets().len() > SECRETS_MAX {
        true => Err(InstanceEventError::TooManyUses),
        false => Ok(()),
    }
}

fn may_send_name(transition: &Transition<'_>) -> bool {
    transition.context.policy.context_updates && transition.next.confirmed().is_some()
}

fn check_room(
    instance: &Instance,
    change: &IntentChange,
    author: &Author,
) -> Result<(), InstanceEventError> {
    let size = |change: &IntentChange| change.patch().map_or(0, SpecPatch::byte_len);
    let pending = instance.pending.iter().map(|it| size(&it.change));
    let bytes = pending.sum::<usize>() + size(change);
    let is_full = instance.pending.len() >= PENDING_MAX || bytes > PENDING_BYTES_MAX;
    if is_full || !instance.has_room_for(author) {
        return Err(InstanceEventError::TooManyPending);
    }
    Ok(())
}

/// A change joined with the last pending one, if that is of the same person and was not sent. What one person asks for
/// in a row is one request to the broker.
fn coalesced(
    instance: &Instance,
    change: IntentChange,
    request: &ChangeRequest,
) -> (IntentChange, Option<IntentNumber>) {
    let joined = instance.pending.last().and_then(|last| {
        let is_fresh = last.state == IntentState::Queued { last: None }
            && last.is_unsent()
            && last.cause == IntentCause::User
            && request.cause == IntentCause::User
            && last.on_failure == request.on_failure
            && last.author.is_same_person(&request.author);
        let both = last.change.patch().zip(change.patch());
        let patch = both.filter(|_| is_fresh).and_then(|(a, b)| a.then(b))?;
        let change = match (&last.change, &change) {
            (IntentChange::Local(_), IntentChange::Local(_)) => IntentChange::Local(patch),
            _ => IntentChange::Update(patch),
        };
        Some((change, last.number))
    });
    match joined {
        Some((change, number)) => (change, Some(number)),
        None => (change, None),
    }
}

impl Instance {
    /// The intent that the same request began, if it was accepted before.
    ///
    /// # Errors
    /// Another request was accepted under its key.
    pub fn accepted_under(
        &self,
        request: &ChangeRequest,
    ) -> Result<Option<IntentNumber>, InstanceEventError> {
        accepted_before(self, request)
    }

    /// Whether updates wait for the create that the platform will repeat.
    fn has_waiting_updates(&self) -> bool {
        let is_queued = |it: &PendingIntent| matches!(it.state, IntentState::Queued { .. });
        let is_update = |it: &PendingIntent| matches!(it.change, IntentChange::Update(_));
        self.waits_for_orphan && self.pending.iter().any(|it| is_queued(it) && is_update(it))
    }

    fn last_applied(&self, manager: &str) -> Option<&Spec> {
        let found = self.managers.iter().find(|(name, _)| name == manager);
        found.map(|(_, spec)| spec)
    }
}

impl Transition<'_> {
    /// Remembers the key of a request and the generation of the object that it follows.
    pub(super) fn remember(&mut self, request: &ChangeRequest, number: IntentNumber) {
        if let Some(source) = &request.source {
            self.next.source = Some(source.clone());
        }
        let Some(key) = key_of(request) else {
            return;
        };
        let keys = &mut self.next.idempotency_keys;
        keys.push_back(AcceptedKey {
            request: key,
            number,
        });
        while keys.len() > IDEMPOTENCY_KEYS_KEPT {
            keys.pop_front();
        }
    }

    fn remember_applied(&mut self, manager: &str, spec: &Spec) {
        let managers = &mut self.next.managers;
        managers.retain(|(name, _)| name != manager);
        managers.push_back((manager.to_owned(), spec.clone()));
        let bytes = |(_, spec): &(String, Spec)| serde_json::to_vec(spec).map_or(0, |it| it.len());
        while managers.len() > MANAGERS_KEPT
            || managers.iter().map(bytes).sum::<usize>() > MANAGERS_BYTES_MAX
        {
            managers.pop_front();
        }
    }

    /// Puts an intent that was superseded or cancelled aside.
    pub(super) fn cancel(&mut self, number: IntentNumber, by: CancelledBy) {
        self.drop_intent(number, IntentEnd::Cancelled(by));
    }
}
