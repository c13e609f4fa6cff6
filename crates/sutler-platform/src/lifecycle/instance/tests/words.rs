//! Decisions in the words of the table.

use crate::lifecycle::instance::{
    Basis, Exposure, Instance, InstanceDecision, InstanceEffect, InstanceEventError, InstanceReply,
    IntentChange, OperationStart,
};
use crate::lifecycle::intent::{
    IntentEnd, IntentNumber, IntentState, OperationId, UnknownQuestion,
};
use crate::lifecycle::orphan::OrphanCause;
use std::collections::BTreeMap;

pub(super) fn reply(reply: &InstanceReply) -> &'static str {
    match reply {
        InstanceReply::Accepted(_) => "accepted",
        InstanceReply::Unchanged => "unchanged",
        InstanceReply::AcceptedBefore(_) => "accepted before",
        InstanceReply::Joined(_) => "joined",
        InstanceReply::Done => "done",
        InstanceReply::Noted => "noted",
        InstanceReply::Nothing => "-",
    }
}

pub(super) fn refusal(refusal: &InstanceEventError) -> &'static str {
    match refusal {
        InstanceEventError::NotFound => "refused: not found",
        InstanceEventError::AlreadyExists => "refused: exists",
        InstanceEventError::Gone => "refused: gone",
        InstanceEventError::Violations(_) => "refused: violations",
        InstanceEventError::TooManyPending => "refused: too many",
        InstanceEventError::TooManyUses => "refused: too many names or secrets",
        InstanceEventError::KeyReused => "refused: key of another request",
        InstanceEventError::RejectedBefore(_) => "refused: rejected before",
        InstanceEventError::RevisionChanged { .. } => "refused: revision",
        InstanceEventError::Deleting => "refused: deleting",
        InstanceEventError::Busy => "refused: busy",
        InstanceEventError::Protected => "refused: protected",
        InstanceEventError::HasBindings(_) => "refused: bindings",
        InstanceEventError::WrongIntent(..) => "refused: wrong intent",
        InstanceEventError::NotKept(_) => "refused: not kept",
        InstanceEventError::NotDeleting => "refused: not deleting",
        InstanceEventError::NotLive => "refused: not live",
        InstanceEventError::OutOfDate => "refused: out of date",
    }
}

fn verb(change: &IntentChange) -> &'static str {
    match change {
        IntentChange::Provision => "create",
        IntentChange::Update(_) => "update",
        IntentChange::Local(_) => "local",
        IntentChange::Delete => "delete",
    }
}

/// Names of the intents: the verb, and the number where two have the same.
struct Names(BTreeMap<IntentNumber, (OperationId, String)>);

impl Names {
    fn of(before: &Instance) -> Self {
        let mut names = BTreeMap::new();
        for intent in &before.pending {
            let same = before
                .pending
                .iter()
                .filter(|it| verb(&it.change) == verb(&intent.change));
            let name = match same.count() {
                1 => verb(&intent.change).to_owned(),
                _ => format!("{} {}", verb(&intent.change), intent.number),
            };
            names.insert(intent.number, (intent.operation, name));
        }
        Self(names)
    }

    fn number(&self, number: IntentNumber) -> String {
        let name = self.0.get(&number).map(|(_, name)| name.clone());
        name.unwrap_or_else(|| format!("unknown {number}"))
    }

    fn operation(&self, id: OperationId) -> String {
        let name = self.0.values().find(|(known, _)| *known == id);
        name.map_or_else(|| "unknown operation".to_owned(), |(_, name)| name.clone())
    }
}

/// Effects besides the ends of operations.
pub(super) fn effects(before: &Instance, decision: &InstanceDecision) -> Vec<String> {
    let names = Names::of(before);
    let word = |effect: &InstanceEffect| {
        Some(match effect {
            InstanceEffect::End(..) => return None,
            InstanceEffect::Start(_, OperationStart::Ready) => "start ready".to_owned(),
            InstanceEffect::Start(_, OperationStart::Waiting) => "start waiting".to_owned(),
            InstanceEffect::Wake(id) => format!("wake {}", names.operation(*id)),
            InstanceEffect::Suspend(id) => format!("suspend {}", names.operation(*id)),
            InstanceEffect::Send => "send".to_owned(),
            InstanceEffect::Look => "look".to_owned(),
            InstanceEffect::Poll(number) => format!("poll {}", names.number(*number)),
            InstanceEffect::PollAfter(_) => "poll after".to_owned(),
            InstanceEffect::TryAgainAfter(_) => "again".to_owned(),
            InstanceEffect::TryAgainNow => "again now".to_owned(),
            InstanceEffect::RecordOrphan(it) => format!("orphan: {}", cause_words(it.cause)),
            InstanceEffect::TakeName(_) => "take name".to_owned(),
            InstanceEffect::FreeName(_) => "free name".to_owned(),
            InstanceEffect::WakeBindings => "wake bindings".to_owned(),
            InstanceEffect::Unbind(_) => "unbind".to_owned(),
            InstanceEffect::AbandonBindings(_) => "abandon bindings".to_owned(),
            InstanceEffect::Fetch => "fetch".to_owned(),
        })
    };
    decision.effects.iter().filter_map(word).collect()
}

fn cause_words(cause: OrphanCause) -> &'static str {
    match cause {
        OrphanCause::FailedCreate | OrphanCause::DoubtfulCreate => "failed create",
        OrphanCause::UnusableBinding => "unusable binding",
        OrphanCause::Abandoned => "abandoned",
        OrphanCause::LateCreate => "late create",
    }
}

/// What a decision changes, in the order of the table.
pub(super) fn changes(before: &Instance, next: &Instance) -> Vec<String> {
    let names = Names::of(before);
    let mut words = Vec::new();
    let is_new = |number: IntentNumber| before.intent(number).is_none();
    for intent in next.pending.iter().filter(|it| is_new(it.number)) {
        let state = state_words(&intent.state);
        words.push(format!("+{} {state}", verb(&intent.change)));
    }
    if next.tombstone != before.tombstone {
        words.push("gone".to_owned());
    }
    for intent in &before.pending {
        let name = names.number(intent.number);
        match next.intent(intent.number) {
            Some(now) => {
                if now.state != intent.state {
                    words.push(format!("{name} {}", state_words(&now.state)));
                }
                if now.in_doubt != intent.in_doubt {
                    words.push("in doubt".to_owned());
                }
            }
            None => words.push(format!("{name} {}", end_words(next, intent.number))),
        }
    }
    if next.tombstone.is_none() {
        words.extend(facets(before, next).map(str::to_owned));
    }
    words
}

/// Changes of the instance besides its intents.
fn facets(before: &Instance, next: &Instance) -> impl Iterator<Item = &'static str> {
    let deletion = |it: &Instance| it.deletion.clone().filter(|_| before.deletion.is_some());
    let (was, is) = (deletion(before), deletion(next));
    let both = was.zip(is);
    let turns = |changes: bool, word: &'static str| changes.then_some(word);
    let exposure = (before.exposure != next.exposure).then_some(match next.exposure {
        Exposure::Nothing => "nothing there",
        Exposure::MayExist => "may exist",
        Exposure::Confirmed => "confirmed there",
        Exposure::Uncertain(_) => "uncertain",
        Exposure::OnLedger => "on the ledger",
    });
    let basis = match (&before.basis, &next.basis) {
        (Basis::Requested(_), Basis::Confirmed(_)) => Some("live"),
        (Basis::Confirmed(was), Basis::Confirmed(is)) => {
            turns(was.spec != is.spec, "confirmed changed")
        }
        (Basis::Requested(was), Basis::Requested(is)) => turns(was != is, "request changed"),
        (Basis::Confirmed(_), Basis::Requested(_)) => Some("not confirmed any more"),
    };
    [
        turns(
            both.as_ref()
                .is_some_and(|(a, b)| b.cascade.is_some() && a.cascade.is_none()),
            "cascade",
        ),
        turns(
            both.as_ref()
                .is_some_and(|(a, b)| a.undelete.is_none() && b.undelete.is_some()),
            "undelete noted",
        ),
        turns(
            both.as_ref()
                .is_some_and(|(a, b)| a.undelete.is_some() && b.undelete.is_none()),
            "undelete void",
        ),
        turns(
            both.as_ref()
                .is_some_and(|(a, b)| !a.polls_next && b.polls_next),
            "polls next",
        ),
        turns(
            both.as_ref()
                .is_some_and(|(a, b)| a.polls_next && !b.polls_next),
            "sends next",
        ),
        exposure,
        basis,
        turns(before.osb_id != next.osb_id, "another id"),
        turns(
            !before.waits_for_orphan && next.waits_for_orphan,
            "waits for orphan",
        ),
        turns(
            before.waits_for_orphan && !next.waits_for_orphan,
            "waits no more",
        ),
        turns(!before.usable && next.usable, "usable"),
        turns(before.usable && !next.usable, "unusable"),
        turns(before.source != next.source, "follows"),
        turns(before.protected != next.protected, "protected"),
        turns(before.revision + 1 == next.revision, "revision+1"),
        turns(before.revision + 1 < next.revision, "revision+many"),
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

fn end_words(next: &Instance, number: IntentNumber) -> &'static str {
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
