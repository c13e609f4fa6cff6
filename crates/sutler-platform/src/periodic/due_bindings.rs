//! Rotates bindings that are due, and unbinds generations whose overlap is over.
//!
//! Bindings are listed by the term of their next due moment. What is due is asked of the rules in the name of the binding's
//! author; one that was done meanwhile, or by another replica, is refused there as not due.

use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::bind_facts::bind_facts;
use crate::binding_changes::{BindingChangeError, change_binding_if};
use crate::brokers::BrokerView;
use crate::context::PlatformContext;
use crate::lifecycle::binding::{Binding, Event, GENERATIONS_MAX};
use crate::lifecycle::instance::Instance;
use crate::records::{BINDING, DUE_TERM, moment_value};
use jiff::Timestamp;
use sutler_journal::{Key, List, Run};

/// Most events of one binding at once: the end of each overlap, and a rotation.
const EVENTS_MAX: usize = GENERATIONS_MAX + 1;

/// Applies what is due.
///
/// # Errors
/// The store does not answer, or the claim was lost.
pub(super) async fn apply_due(context: &PlatformContext, run: &Run) -> Result<(), TaskRunError> {
    let now = context.records.now();
    let list = List::Term {
        realm: context.records.keys.realm().clone(),
        kind: BINDING,
        name: DUE_TERM,
        from: Vec::new(),
        to: moment_value(now.as_microsecond()),
    };
    let mut due = ListedKeys::of(context, run, list);
    while let Some(page) = due.next_page().await? {
        for key in page {
            apply_to(context, &key, now).await;
        }
    }
    Ok(())
}

async fn apply_to(context: &PlatformContext, key: &Key, now: Timestamp) {
    for _ in 0..EVENTS_MAX {
        let event = |binding: &Binding, instance: &Instance, view: &BrokerView| {
            due_event(binding, instance, view, now)
        };
        match change_binding_if(context, key, event).await {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(BindingChangeError::Refused(why)) => {
                tracing::info!(
                    binding.uid = key.id(2),
                    error = &why as &dyn std::error::Error,
                    "what is due for a binding is refused now, and is tried again"
                );
                return;
            }
            Err(error) => {
                tracing::warn!(
                    binding.uid = key.id(2),
                    error = &error as &dyn std::error::Error,
                    "what is due for a binding could not be done, and is tried again"
                );
                return;
            }
        }
    }
}

/// What is due for a binding, if anything. Ends of overlaps come first: they make room for a generation.
fn due_event(
    binding: &Binding,
    instance: &Instance,
    view: &BrokerView,
    now: Timestamp,
) -> Option<Event> {
    if binding.next_retirement().is_some_and(|(at, _)| at <= now) {
        return Some(Event::RetirementDue);
    }
    let is_due = binding.renewal_due().is_some_and(|at| at <= now);
    is_due.then(|| Event::RenewalDue(bind_facts(instance, view, &binding.spec)))
}
