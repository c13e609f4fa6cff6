//! A deprovision deletes the bindings too: one unbind operation each, on behalf of the caller of the delete.
//!
//! New bindings are impossible meanwhile, because the instance is being deleted. If one unbind fails, the
//! deprovision fails and names it, and the instance is live again.

use super::{BrokerExecutor, RunOutcome, stopped};
use crate::lifecycle::binding::{Binding, Event, Parent, Unbind, decide};
use crate::lifecycle::instance::HookOutput;
use crate::lifecycle::{AsyncRequest, Asynchrony, End, Verb};
use crate::operation_log;
use crate::resources::{BINDING, BUSY, Detail, OF, Request, RequestBody, Steps};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;
use sutler_journal::{Commit, Key, List, Lost, OperationId, Page, Queue, Run};
use sutler_records::{
    DecisionCommit, Documents, LoadedDocument, OperationContent, RecordError, StartPlace,
};

/// Delay before running bindings are checked again; their ends usually wake the operation sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Bindings read at a time.
const PAGE: usize = 50;

enum Cascade {
    /// No binding is left.
    Clear,
    /// Some are being unbound.
    Waiting,
    /// One cannot be removed.
    Stuck(Detail),
}

impl BrokerExecutor {
    /// Waits for the bindings of an instance: an update for those that are busy, a deprovision until all are removed.
    /// `None`: the hook may be called.
    pub(super) async fn await_bindings(
        &self,
        run: &Run,
        verb: Verb,
        steps: &Steps,
        request: &Request,
    ) -> Result<Option<RunOutcome<HookOutput>>, Lost> {
        let instance = &run.operation().row.lane;
        let waits = match verb {
            Verb::Update => self.has_busy_bindings(run, instance).await?,
            Verb::Deprovision => match self.cascade(run, instance, steps.clone(), request).await? {
                Cascade::Clear => false,
                Cascade::Waiting => true,
                Cascade::Stuck(detail) => {
                    return Ok(Some(RunOutcome::Ended(End::Failed, detail)));
                }
            },
            Verb::Provision | Verb::Bind | Verb::Unbind => false,
        };
        if !waits {
            return Ok(None);
        }
        Ok(Some(match run.cancelled().is_cancelled() {
            true => RunOutcome::Ended(End::Failed, stopped()),
            false => RunOutcome::Yield(LOOK_AGAIN),
        }))
    }

    /// Whether a binding of the instance has an operation of its own running.
    async fn has_busy_bindings(&self, run: &Run, instance: &Key) -> Result<bool, Lost> {
        let list = List::term(
            &self.0.records.realm,
            BINDING,
            BUSY,
            instance.id(0).as_bytes(),
        );
        Ok(!self.page(run, &list, 1).await?.documents.is_empty())
    }

    async fn cascade(
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
        // Terms are not sealed: a binding of another instance may have been listed here.
        let keys = page.documents.into_iter().map(|it| it.key);
        let keys: Vec<Key> = keys.filter(|it| it.id(0) == instance.id(0)).collect();
        if keys.is_empty() {
            return Ok(Cascade::Clear);
        }
        // Only those that are still listed: otherwise the progress grows with every binding that was removed. A binding
        // that is being removed stays on the first page, because no binding is added.
        let listed: BTreeSet<&str> = keys.iter().map(|key| key.id(1)).collect();
        steps
            .cascade
            .retain(|binding, _| listed.contains(binding.as_str()));
        for key in keys {
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
        was: &LoadedDocument<Binding>,
        steps: &mut Steps,
        request: &Request,
    ) -> Result<(), Lost> {
        let records = &self.0.records;
        let id = OperationId::fresh();
        let async_request = AsyncRequest {
            operation: id,
            accepts_incomplete: true,
            rule: Asynchrony::Preferred,
        };
        let event = Event::Unbind(Unbind {
            ids_given: true,
            parent: Parent::Live,
            cascade: true,
            force: false,
            async_request,
        });
        let Ok(decision) = decide(was.state.clone(), event) else {
            return Ok(());
        };
        steps.cascade.insert(key.id(1).to_owned(), id);
        let request = Request {
            body: RequestBody::Named("unbind"),
            identity: request.identity.clone(),
            request_identity: request.request_identity.clone(),
            origin: request.origin.clone(),
        };
        let content = UnbindContent {
            documents: records,
            queue: &self.0.queue,
            request: &request,
        };
        let decided = DecisionCommit {
            documents: records,
            key,
            was,
            next: &decision.next,
            effects: &decision.effects,
            content: &content,
        };
        let Ok((commit, _)) = decided.add_to(Commit::new(), StartPlace::Anywhere) else {
            return Ok(());
        };
        let progress = records.seal_progress(run.id(), steps);
        let commit = commit.advance(run.id(), sutler_journal::Next::Same, None, Some(progress));
        // Another writer changed this binding first; the next check reads it again.
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

/// Stored content of an unbind that a deprovision starts.
struct UnbindContent<'a> {
    documents: &'a Documents,
    queue: &'a Queue,
    request: &'a Request,
}

impl OperationContent<Verb> for UnbindContent<'_> {
    fn queue(&self) -> &Queue {
        self.queue
    }

    fn verb_name(&self, verb: Verb) -> &'static str {
        verb.word()
    }

    fn request(&self, id: OperationId) -> Result<Bytes, RecordError> {
        Ok(self.documents.seal_request(id, self.request))
    }

    fn start_detail(&self, _: OperationId) -> Bytes {
        Bytes::new()
    }

    fn end_detail(&self, _: OperationId) -> Bytes {
        Bytes::new()
    }
}

/// Whether an unbind of this deprovision has ended and the binding still exists.
fn stuck(key: &Key, at: &Binding, steps: &Steps) -> Option<Detail> {
    let started = steps.cascade.get(key.id(1))?;
    match at {
        Binding::Live { data: binding_data } | Binding::CreateFailed { data: binding_data }
            if binding_data.last == *started =>
        {
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
