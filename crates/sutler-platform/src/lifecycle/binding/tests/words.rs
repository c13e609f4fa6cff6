//! Decisions in the words of the table.

use crate::lifecycle::binding::{
    BindExposure, Binding, BindingDecision, BindingEffect, BindingEventError, BindingOrphan,
    BindingReply, Generation, GenerationState, IntentChange, OperationStart,
};
use crate::lifecycle::intent::{
    IntentEnd, IntentNumber, IntentState, OperationId, UnknownQuestion,
};
use crate::lifecycle::orphan::{CleanupMode, OrphanCause};

pub(super) fn reply(reply: &BindingReply) -> &'static str {
    match reply {
        BindingReply::Accepted(_) => "accepted",
        BindingReply::AcceptedBefore(_) => "accepted before",
        BindingReply::Joined(_) => "joined",
        BindingReply::Done => "done",
        BindingReply::Noted => "noted",
        BindingReply::Nothing => "-",
    }
}

pub(super) fn refusal(refusal: &BindingEventError) -> &'static str {
    match refusal {
        BindingEventError::NotFound => "refused: not found",
        BindingEventError::AlreadyExists => "refused: exists",
        BindingEventError::Gone => "refused: gone",
        BindingEventError::Violations(_) => "refused: violations",
        BindingEventError::NoInstance => "refused: no instance",
        BindingEventError::InstanceDeleting => "refused: instance deleting",
        BindingEventError::InstanceUnusable => "refused: instance unusable",
        BindingEventError::Deleting => "refused: deleting",
        BindingEventError::NotBound => "refused: not bound",
        BindingEventError::TooManyGenerations => "refused: too many",
        BindingEventError::WrongIntent(..) => "refused: wrong intent",
        BindingEventError::NotDeleting => "refused: not deleting",
        BindingEventError::KeyReused => "refused: key of another request",
        BindingEventError::NotDue => "refused: not due",
        BindingEventError::OutOfDate => "refused: out of date",
    }
}

fn verb(change: &IntentChange) -> &'static str {
    match change {
        IntentChange::Bind(_) => "bind",
        IntentChange::Unbind(_) => "unbind",
        IntentChange::Delete => "delete",
    }
}

/// Effects besides the ends of operations.
pub(super) fn effects(before: &Binding, decision: &BindingDecision) -> Vec<String> {
    let intents = || before.pending.iter().chain(&decision.next.pending);
    let operation = |id: OperationId| {
        let intent = intents().find(|it| it.operation == id);
        intent.map_or("unknown", |it| verb(&it.change))
    };
    let number = |number: IntentNumber| {
        let intent = intents().find(|it| it.number == number);
        intent.map_or("unknown", |it| verb(&it.change))
    };
    let word = |effect: &BindingEffect| {
        Some(match effect {
            BindingEffect::End(..) => return None,
            BindingEffect::Start(_, OperationStart::Ready) => "start ready".to_owned(),
            BindingEffect::Start(_, OperationStart::Waiting) => "start waiting".to_owned(),
            BindingEffect::Start(_, OperationStart::Later) => "start later".to_owned(),
            BindingEffect::Wake(id) => format!("wake {}", operation(*id)),
            BindingEffect::Suspend(id) => format!("suspend {}", operation(*id)),
            BindingEffect::DiscardRequest(_) => "discard request".to_owned(),
            BindingEffect::Send => "send".to_owned(),
            BindingEffect::Look => "look".to_owned(),
            BindingEffect::Poll(polled) => format!("poll {}", number(*polled)),
            BindingEffect::PollAfter(_) => "poll after".to_owned(),
            BindingEffect::TryAgainAfter(_) => "again".to_owned(),
            BindingEffect::TryAgainNow => "again now".to_owned(),
            BindingEffect::RecordOrphan(orphan) => orphan_words(orphan),
            BindingEffect::TakeName(_) => "take name".to_owned(),
            BindingEffect::FreeName(_) => "free name".to_owned(),
        })
    };
    decision.effects.iter().filter_map(word).collect()
}

fn orphan_words(orphan: &BindingOrphan) -> String {
    let cause = match orphan.cause {
        OrphanCause::FailedCreate => "failed create",
        OrphanCause::DoubtfulCreate => "doubtful create",
        OrphanCause::UnusableBinding => "unusable binding",
        OrphanCause::Abandoned => "abandoned",
        OrphanCause::LateCreate => "late create",
    };
    let kept = match orphan.cleanup {
        CleanupMode::Automatic => "",
        CleanupMode::Manual => " kept",
    };
    let guarded = match orphan.guarded_until {
        Some(_) => " guarded",
        None => "",
    };
    format!("orphan: {cause}{kept}{guarded}")
}

/// What a decision changes, in the words of the table.
pub(super) fn changes(before: &Binding, next: &Binding) -> Vec<String> {
    let mut words = Vec::new();
    let is_new = |number: IntentNumber| before.intent(number).is_none();
    for intent in next.pending.iter().filter(|it| is_new(it.number)) {
        let state = state_words(&intent.state);
        words.push(format!("+{} {state}", verb(&intent.change)));
        let bind = intent.change.bind();
        if bind.is_some_and(|bind| bind.predecessor.is_some()) {
            words.push("with predecessor".to_owned());
        }
        if intent.waits_for_instance {
            words.push("waits for instance".to_owned());
        }
    }
    if next.tombstone != before.tombstone {
        words.push("gone".to_owned());
    }
    for intent in &before.pending {
        let name = verb(&intent.change);
        let Some(now) = next.intent(intent.number) else {
            words.push(format!("{name} {}", end_words(next, intent.number)));
            continue;
        };
        // Of a delete that goes on with the next generation, doubt and times belong to the last one.
        if now.state != intent.state {
            words.push(format!("{name} {}", state_words(&now.state)));
        }
        if now.in_doubt && !intent.in_doubt {
            words.push("in doubt".to_owned());
        }
        match (intent.waits_for_instance, now.waits_for_instance) {
            (false, true) => words.push("waits for instance".to_owned()),
            (true, false) => words.push("instance there".to_owned()),
            (true, true) | (false, false) => {}
        }
    }
    if next.tombstone.is_none() {
        words.extend(generations(before, next).map(str::to_owned));
        words.extend(facets(before, next).map(str::to_owned));
    }
    words
}

fn generations<'a>(
    before: &'a Binding,
    next: &'a Binding,
) -> impl Iterator<Item = &'static str> + 'a {
    let is_new = |it: &&Generation| before.generation(&it.osb_id).is_none();
    let added = next
        .generations
        .iter()
        .filter(is_new)
        .map(|_| "+generation");
    let changed = before.generations.iter().filter_map(|was| {
        let is = next.generation(&was.osb_id).map(|it| &it.state);
        generation_words(&was.state, is)
    });
    added.chain(changed)
}

fn generation_words(was: &GenerationState, is: Option<&GenerationState>) -> Option<&'static str> {
    use GenerationState::{Binding, Current, Retiring};
    Some(match (was, is) {
        (was, Some(is)) if was == is => return None,
        (Binding(_), None) => "generation removed",
        (Current(_) | Retiring(..), None) => "credentials erased",
        (Binding(_), Some(Binding(BindExposure::MayExist))) => "may exist",
        (Binding(_), Some(Binding(BindExposure::Nothing))) => "nothing there",
        (Binding(_), Some(Current(_))) => "credentials kept",
        (Current(was), Some(Retiring(_, is))) if was == is => "retiring",
        (Retiring(_, was), Some(Retiring(_, is))) if was == is => "put off",
        (_, Some(Binding(_) | Current(_) | Retiring(..))) => "nonsense",
    })
}

/// Changes of the binding besides its intents and generations.
fn facets(before: &Binding, next: &Binding) -> impl Iterator<Item = &'static str> {
    let turns = |changes: bool, word: &'static str| changes.then_some(word);
    let both = before.deletion.as_ref().zip(next.deletion.as_ref());
    [
        turns(
            both.is_some_and(|(a, b)| a.undelete != b.undelete),
            "undelete noted",
        ),
        turns(
            both.is_some_and(|(a, b)| !a.polls_next && b.polls_next),
            "polls next",
        ),
        turns(
            both.is_some_and(|(a, b)| a.polls_next && !b.polls_next),
            "sends next",
        ),
        turns(before.spec.target != next.spec.target, "sends app"),
        turns(
            !before.waits_for_orphan && next.waits_for_orphan,
            "waits for orphan",
        ),
        turns(
            before.waits_for_orphan && !next.waits_for_orphan,
            "waits no more",
        ),
        turns(
            next.failed_rotations.is_some() && before.failed_rotations != next.failed_rotations,
            "stalled",
        ),
    ]
    .into_iter()
    .flatten()
}

fn state_words(state: &IntentState) -> &'static str {
    match state {
        IntentState::Queued { .. } => "queued",
        IntentState::OnHold(_) => "held",
        IntentState::Suspended => "suspended",
        IntentState::Sending { .. } => "sending",
        IntentState::Unknown {
            question: UnknownQuestion::SendAgain,
        } => "unknown",
        IntentState::Unknown {
            question: UnknownQuestion::LookFirst,
        } => "unknown look",
        IntentState::Polling { .. } => "polling",
    }
}

fn end_words(next: &Binding, number: IntentNumber) -> &'static str {
    let ended = next.ended.iter().find(|it| it.number == number);
    match ended.map(|it| &it.end) {
        Some(IntentEnd::Succeeded) => "succeeded",
        Some(IntentEnd::Rejected(_)) => "rejected",
        Some(IntentEnd::Failed(_)) => "failed",
        Some(IntentEnd::Superseded(_)) => "superseded",
        Some(IntentEnd::Cancelled(_)) => "cancelled",
        None => "lost",
    }
}
