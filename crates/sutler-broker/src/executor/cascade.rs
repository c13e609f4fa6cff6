//! A deprovision takes the bindings along: one unbind operation each, under the author of the delete.
//!
//! New bindings are impossible meanwhile, because the instance is being deleted. If one unbind fails,
//! the deprovision has failed, says which, and the instance is live again.

use super::BrokerExecutor;
use crate::lifecycle::binding::{Binding, Event, Parent, Unbind, decide};
use crate::lifecycle::{Ask, Asynchrony, Effect};
use crate::operation_log;
use crate::records::{BINDING, BUSY, Detail, Loaded, OF, Request, Steps, asked};
use std::time::Duration;
use sutler_journal::{
    Commit, Due, Key, List, Lost, NewOperation, OperationId, Page, Run, SealContext, Start, Write,
};

/// When to look again at bindings that still run; their ends usually wake us sooner.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Bindings read at a time.
const PAGE: usize = 50;

pub(super) enum Cascade {
    /// No binding is left.
    Clear,
    /// Some are on their way.
    Waiting,
    /// One cannot be removed.
    Stuck(Detail),
}

impl BrokerExecutor {
    /// Whether a binding of the instance has an operation of its own running.
    pub(super) async fn has_busy_bindings(&self, run: &Run, instance: &Key) -> Result<bool, Lost> {
        let list = List::term(
            &self.0.records.realm,
            BINDING,
            BUSY,
            instance.id(0).as_bytes(),
        );
        Ok(!self.page(run, &list, 1).await?.documents.is_empty())
    }

    pub(super) async fn cascade(
        &self,
        run: &Run,
        instance: &Key,
        mut steps: Steps,
        request: &Request,
    ) -> Result<Cascade, Lost> {
        let list = List::term(
            &self.0.records.realm,
            BINDING,
            OF,
            instance.id(0).as_bytes(),
        );
        let page = self.page(run, &list, PAGE).await?;
        if page.documents.is_empty() {
            return Ok(Cascade::Clear);
        }
        for document in page.documents {
            let key = document.key;
            let was = self.0.records.load_for_run::<Binding>(run, &key).await?;
            if let Some(detail) = stuck(&key, &was.state, &steps) {
                return Ok(Cascade::Stuck(detail));
            }
            if !matches!(was.state, Binding::Deleting { .. } | Binding::Gone { .. }) {
                self.unbind(run, &key, &was, &mut steps, request).await?;
            }
        }
        Ok(Cascade::Waiting)
    }

    async fn unbind(
        &self,
        run: &Run,
        key: &Key,
        was: &Loaded<Binding>,
        steps: &mut Steps,
        request: &Request,
    ) -> Result<(), Lost> {
        let records = &self.0.records;
        let id = OperationId::fresh();
        let ask = Ask {
            operation: id,
            accepts_incomplete: true,
            rule: Asynchrony::Preferred,
        };
        let event = Event::Unbind(Unbind {
            ids_given: true,
            parent: Parent::Live,
            cascade: true,
            force: false,
            ask,
        });
        let Ok(decision) = decide(was.state.clone(), event) else {
            return Ok(());
        };
        steps.cascade.insert(key.id(1).to_owned(), id);
        let request = Request {
            asked: asked(&"unbind"),
            identity: request.identity.clone(),
            request_identity: request.request_identity.clone(),
            origin: request.origin.clone(),
        };
        let mut commit = records.put(Commit::new(), key, was, &decision.next);
        for effect in &decision.effects {
            commit = match *effect {
                Effect::Start(verb, id) | Effect::StartWaiting(verb, id) => {
                    let waits = matches!(effect, Effect::StartWaiting(..));
                    commit.start(NewOperation {
                        id,
                        lane: key.clone(),
                        verb: verb.word(),
                        queue: self.0.queue.clone(),
                        start: if waits {
                            Start::Waiting
                        } else {
                            Start::Ready(Due::Now)
                        },
                        detail: records.seal_detail(id, &Detail::default()),
                        request: records.seal(SealContext::Request(id), &request),
                    })
                }
                Effect::Cancel(id) => commit.write(Write::Cancel(id)).write(Write::Wake(id)),
                Effect::Wake(id) => commit.write(Write::Wake(id)),
                // An unbind ends nothing.
                Effect::End(_) => commit,
            };
        }
        let progress = records.seal_steps(run.id(), steps);
        let commit = commit.advance(run.id(), sutler_journal::Next::Same, None, Some(progress));
        // Somebody was first with this binding: the next look finds out.
        if run.commit(commit).await?.is_ok() {
            operation_log::accepted(key, &decision.effects, &request, None);
        }
        Ok(())
    }

    async fn page(&self, run: &Run, list: &List, limit: usize) -> Result<Page, Lost> {
        loop {
            match self.0.records.store.list(list, None, limit).await {
                Ok(page) => return Ok(page),
                Err(cause) => {
                    run.wait_for_store(&cause, Duration::from_millis(200))
                        .await?
                }
            }
        }
    }
}

/// An unbind that this deprovision started has ended, and the binding is still there.
fn stuck(key: &Key, at: &Binding, steps: &Steps) -> Option<Detail> {
    let started = steps.cascade.get(key.id(1))?;
    match at {
        Binding::Live { bond } | Binding::CreateFailed { bond } if bond.last == *started => {
            Some(Detail {
                description: Some(format!(
                    "The service binding {:?} could not be removed; the service instance is unchanged. Unbind it, then deprovision again.",
                    key.id(1)
                )),
                instance_usable: Some(true),
                ..Detail::default()
            })
        }
        Binding::Live { .. }
        | Binding::CreateFailed { .. }
        | Binding::Absent
        | Binding::Creating { .. }
        | Binding::Deleting { .. }
        | Binding::Gone { .. } => None,
    }
}
