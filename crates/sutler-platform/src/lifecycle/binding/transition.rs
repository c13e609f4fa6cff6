//! A decision under way: the next state with its effects, and what every decision has in common.
//!
//! At the end of a decision the operations are started, woken and suspended so that only the active intent can be
//! claimed (`schedule.rs`). No rule does that by itself.

use crate::author::Author;
use crate::lifecycle::binding::{
    BindChange, BindExposure, BindFacts, Binding, BindingDecision, BindingEffect, BindingReply,
    Context, ENDED_KEPT, EndedIntent, Generation, GenerationState, IDEMPOTENCY_KEYS_KEPT,
    InstanceReadiness, IntentCause, IntentChange, PendingIntent,
};
use crate::lifecycle::intent::{
    BrokerStatement, CancelledBy, IntentEnd, IntentNumber, IntentState, OperationId,
};
use crate::lifecycle::request_key::{AcceptedKey, RequestKey};
use sutler_osb::BindingId;

/// The next state of a binding and what follows from it.
pub(super) struct Transition<'a> {
    pub(super) next: Binding,
    pub(super) context: &'a Context<'a>,
    pub(super) effects: Vec<BindingEffect>,
    /// The intent that this decision accepts.
    pub(super) accepted: Option<IntentNumber>,
    /// How the operation of an intent is claimed again, or what it does, if it is still the active one.
    pub(super) again: Option<(IntentNumber, BindingEffect)>,
    pub(super) before: Before,
}

/// What was so before the decision.
pub(super) struct Before {
    pub(super) active: Option<(IntentNumber, OperationId)>,
    pub(super) target: Option<BindingId>,
}

impl<'a> Transition<'a> {
    pub(super) fn of(binding: Binding, context: &'a Context<'a>) -> Self {
        let active = binding.active().and_then(|number| binding.intent(number));
        let target = binding.deletion.as_ref();
        let before = Before {
            active: active.map(|intent| (intent.number, intent.operation)),
            target: target.and_then(|deletion| deletion.target.clone()),
        };
        Self {
            next: binding,
            context,
            effects: Vec::new(),
            accepted: None,
            again: None,
            before,
        }
    }

    pub(super) fn effect(&mut self, effect: BindingEffect) {
        self.effects.push(effect);
    }

    /// The operation of this intent is claimed again, or goes on, as the effect says, unless another one is active then.
    pub(super) fn again(&mut self, number: IntentNumber, effect: BindingEffect) {
        self.again = Some((number, effect));
    }

    /// Accepts an intent at the end of the queue.
    pub(super) fn accept(
        &mut self,
        change: IntentChange,
        author: Author,
        cause: IntentCause,
    ) -> IntentNumber {
        self.next.accepted += 1;
        let number = IntentNumber(self.next.accepted);
        self.next.pending.push(PendingIntent {
            number,
            operation: self.context.ids.operation,
            change,
            author,
            accepted: self.context.now,
            cause,
            waits_for_instance: false,
            attempts: 0,
            first_sent: None,
            in_doubt: false,
            state: IntentState::Queued { last: None },
        });
        self.accepted = Some(number);
        number
    }

    /// Accepts a bind of a new generation. What earlier ones may have left goes to the ledger.
    pub(super) fn accept_bind(
        &mut self,
        author: Author,
        cause: IntentCause,
        facts: &BindFacts,
    ) -> IntentNumber {
        self.abandon_leftovers();
        if !matches!(cause, IntentCause::AutoRetry(_)) {
            self.next.auto_retries = 0;
        }
        let replaced = self.next.current_id().cloned();
        let chosen = self.next.chosen_id.clone().filter(|_| replaced.is_none());
        let osb_id = chosen.unwrap_or_else(|| self.context.ids.osb_id.clone());
        let generation = Generation::unsent(osb_id.clone());
        self.next.generations.push(generation);
        let predecessor = replaced.filter(|_| facts.rotatable && !self.is_expired());
        let change = IntentChange::Bind(BindChange {
            osb_id,
            predecessor,
        });
        let number = self.accept(change, author, cause);
        let waits = facts.instance == InstanceReadiness::NotLiveYet;
        self.edit(number, |intent| intent.waits_for_instance = waits);
        number
    }

    /// Whether the current credentials work no more, so that no broker has to rotate them (P-111).
    fn is_expired(&self) -> bool {
        let expires_at = self.next.current().and_then(|details| details.expires_at);
        expires_at.is_some_and(|expires_at| expires_at <= self.context.now)
    }

    /// Remembers the key under which a request was accepted.
    pub(super) fn remember(&mut self, key: Option<RequestKey>, number: IntentNumber) {
        let keys = &mut self.next.idempotency_keys;
        keys.extend(key.map(|request| AcceptedKey { request, number }));
        while keys.len() > IDEMPOTENCY_KEYS_KEPT {
            keys.pop_front();
        }
    }

    /// Changes a pending intent.
    pub(super) fn edit(&mut self, number: IntentNumber, edit: impl FnOnce(&mut PendingIntent)) {
        let mut intents = self.next.pending.iter_mut();
        if let Some(intent) = intents.find(|intent| intent.number == number) {
            edit(intent);
        }
    }

    pub(super) fn set_state(&mut self, number: IntentNumber, state: IntentState) {
        self.edit(number, |intent| intent.state = state);
    }

    /// Ends a pending intent.
    pub(super) fn end(&mut self, number: IntentNumber, end: IntentEnd) {
        let place = self.next.pending.iter();
        let Some(place) = place.clone().position(|intent| intent.number == number) else {
            return;
        };
        let intent = self.next.pending.remove(place);
        self.effects
            .push(BindingEffect::End(intent.operation, end.clone()));
        self.next.ended.push_back(EndedIntent {
            number,
            change: intent.change,
            author: intent.author,
            cause: intent.cause,
            at: self.context.now,
            end,
        });
        while self.next.ended.len() > ENDED_KEPT {
            self.next.ended.pop_front();
        }
    }

    /// Ends an intent that was not sent, or of which nothing is left to do. A generation that only it knows goes with it.
    pub(super) fn cancel(&mut self, number: IntentNumber, by: CancelledBy) {
        let bind = self.next.intent(number).and_then(|it| it.change.bind());
        let osb_id = bind.map(|bind| bind.osb_id.clone());
        self.end(number, IntentEnd::Cancelled(by));
        if let Some(osb_id) = osb_id {
            self.remove_unsent(&osb_id);
        }
    }

    /// Removes a generation that the broker cannot have.
    pub(super) fn remove_unsent(&mut self, osb_id: &BindingId) {
        let nothing = GenerationState::Binding(BindExposure::Nothing);
        if self
            .next
            .generation(osb_id)
            .is_some_and(|it| it.state == nothing)
        {
            self.remove_generation(osb_id);
        }
    }

    /// Ends every pending intent.
    pub(super) fn end_all(&mut self, how: impl Fn(&PendingIntent) -> IntentEnd) {
        let pending = self.next.pending.iter();
        let ends: Vec<_> = pending.map(|intent| (intent.number, how(intent))).collect();
        for (number, end) in ends {
            self.end(number, end);
        }
    }

    /// Completes the decision.
    pub(super) fn decision(mut self, reply: BindingReply) -> BindingDecision {
        self.schedule();
        BindingDecision {
            next: self.next,
            effects: self.effects,
            reply,
        }
    }
}

/// A statement of the platform itself.
pub(super) fn own_statement(sentence: &str) -> BrokerStatement {
    BrokerStatement {
        status: None,
        error: None,
        description: Some(sentence.to_owned()),
    }
}
