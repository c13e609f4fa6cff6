//! Requests to create an instance and to take over one that exists; and every later create of it.
//!
//! The answers of the broker are in `create_answer.rs`.

use crate::lifecycle::instance::bounds::check_size;
use crate::lifecycle::instance::change::{check_uses, refuse_violations};
use crate::lifecycle::instance::transition::Transition;
use crate::lifecycle::instance::{
    Basis, ChangeRequest, ConfirmedState, Context, CreateRequest, Exposure, Instance,
    InstanceDecision, InstanceEventError, InstanceReply, IntentChange, Origin, PendingIntent,
};
use crate::lifecycle::intent::{IntentCause, IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::orphan::OrphanCause;
use std::collections::VecDeque;

/// A request to create an instance that does not exist.
pub(super) fn create(
    request: CreateRequest,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    refuse_violations(&request.facts)?;
    check_size(&request.spec)?;
    let facts = request.facts.clone();
    let instance = new_instance(request, Origin::Created, context);
    check_uses(&instance)?;
    let mut transition = Transition::of(instance, context);
    transition.before.names.clear();
    let number = transition.accept(
        IntentChange::Provision,
        &facts.request,
        facts.catalog_revision,
    );
    transition.remember(&facts.request, number);
    Ok(transition.decision(InstanceReply::Accepted(number)))
}

/// A request to take over what the broker has already.
pub(super) fn adopt(
    request: CreateRequest,
    context: &Context<'_>,
) -> Result<InstanceDecision, InstanceEventError> {
    refuse_violations(&request.facts)?;
    check_size(&request.spec)?;
    let instance = new_instance(request, Origin::Adopted, context);
    check_uses(&instance)?;
    let mut transition = Transition::of(instance, context);
    transition.before.names.clear();
    Ok(transition.decision(InstanceReply::Done))
}

fn new_instance(request: CreateRequest, origin: Origin, context: &Context<'_>) -> Instance {
    let chosen = request.osb_id.is_some();
    let (basis, exposure) = match origin {
        Origin::Created => (Basis::Requested(Box::new(request.spec)), Exposure::Nothing),
        Origin::Adopted => {
            let confirmed = ConfirmedState {
                spec: request.spec,
                dashboard_url: None,
                metadata: None,
            };
            (Basis::Confirmed(Box::new(confirmed)), Exposure::Confirmed)
        }
    };
    Instance {
        uid: context.ids.uid,
        namespace: request.namespace,
        broker: request.broker,
        service: request.service,
        osb_id: request.osb_id.unwrap_or(context.ids.osb_id.clone()),
        osb_id_is_chosen: chosen,
        former_ids: Vec::new(),
        origin,
        source: request.source,
        basis,
        exposure,
        usable: origin == Origin::Adopted,
        protected: false,
        generation: 0,
        revision: 1,
        applied: None,
        pending: Vec::new(),
        ended: VecDeque::new(),
        revisions: VecDeque::new(),
        managers: VecDeque::new(),
        idempotency_keys: VecDeque::new(),
        deletion: None,
        create_sent: None,
        waits_for_orphan: false,
        auto_retries: 0,
        tombstone: None,
        abandoned: None,
    }
}

impl Instance {
    /// Whether a create is pending that goes on by itself.
    pub(super) fn is_being_created(&self) -> bool {
        let goes_on = |intent: &PendingIntent| !matches!(intent.state, IntentState::OnHold(_));
        self.pending
            .iter()
            .any(|intent| intent.change == IntentChange::Provision && goes_on(intent))
    }
}

impl Transition<'_> {
    /// Accepts the create of an instance that the broker does not have, under an id that can be used.
    pub(super) fn accept_create(
        &mut self,
        request: &ChangeRequest,
        catalog_revision: u64,
    ) -> IntentNumber {
        match self.next.exposure {
            // What may exist is deleted under its own id; the next create does not depend on it (P-007).
            Exposure::MayExist => {
                let cause = match self.held_create().is_some_and(|held| held.in_doubt) {
                    true => OrphanCause::DoubtfulCreate,
                    false => OrphanCause::FailedCreate,
                };
                self.record_orphan(cause);
                self.renew_osb_id();
                self.next.exposure = Exposure::Nothing;
                self.wait_for_chosen_id();
            }
            Exposure::OnLedger => self.wait_for_chosen_id(),
            Exposure::Nothing | Exposure::Confirmed | Exposure::Uncertain(_) => {}
        }
        if !matches!(request.cause, IntentCause::AutoRetry(_)) {
            self.next.auto_retries = 0;
        }
        let number = self.accept(IntentChange::Provision, request, catalog_revision);
        self.supersede_held_create(number);
        number
    }

    /// A create under an id that a person chose waits until the ledger has deleted what may exist under the same id.
    fn wait_for_chosen_id(&mut self) {
        if self.next.osb_id_is_chosen {
            self.next.exposure = Exposure::OnLedger;
            self.next.waits_for_orphan = true;
        }
    }

    fn held_create(&self) -> Option<&PendingIntent> {
        self.next.pending.iter().find(|it| {
            it.change == IntentChange::Provision && matches!(it.state, IntentState::OnHold(_))
        })
    }

    /// A create on hold is not needed any more: the new one asks for everything.
    fn supersede_held_create(&mut self, by: IntentNumber) {
        if let Some(held) = self.held_create().map(|it| it.number) {
            self.end(held, IntentEnd::Superseded(by));
        }
    }
}
