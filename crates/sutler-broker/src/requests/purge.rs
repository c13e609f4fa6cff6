//! Purges the bindings of a purged instance, and frees its id afterwards.
//!
//! The purge of an instance is committed first, as a tombstone that keeps the id. Then the bindings are purged one by
//! one, each only while that tombstone is there, and at last the id is freed. A purge runs in a task of its own, which
//! goes on if its client goes away. One that the end of the process interrupted is finished by housekeeping
//! (`cleanup.rs`), by the next purge or by the next provision of the id. Commands themselves are in `admin_command.rs`.

use super::admin_command::{CommandKind, CommandRequest, CommandResult};
use super::{RequestError, RequestHandler, RequestInfo, TRIES, draft, too_contended};
use crate::lifecycle::admin_command::AdminCommand;
use crate::lifecycle::binding::{self, Binding, Parent};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::{Decision, Reply};
use crate::resources::{BINDING, INSTANCE, LIFECYCLE, OF, RequestBody, ResourceKeys as _};
use std::future::Future;
use std::sync::Arc;
use sutler_journal::{Key, List, OperationId};
use sutler_osb::InstanceId;
use sutler_records::{Actor, LoadedDocument};
use sutler_server::RequestContext;
use tracing::Instrument as _;

/// Bindings or purged instances that are read at a time.
const PAGE: usize = 50;
/// Maximum pages of bindings that one purge deletes; beyond that it must be repeated.
const PAGES_MAX: usize = 2_000;

/// Author of the rest of an interrupted purge.
const RESUMED_BY: &str = "broker";
const RESUMED_BECAUSE: &str = "finishes a purge that was interrupted";
/// The process stops before the end of a purge.
const NOT_FINISHED: &str = "the purge was stopped; housekeeping finishes it";

impl RequestHandler {
    /// Purges all bindings of a purged instance, then frees its id.
    pub(super) async fn purge_bindings(
        &self,
        instance: &Key,
        command_request: &CommandRequest,
    ) -> Result<(), RequestError> {
        let records = &self.realm_context.records;
        let list = List::term(&records.realm, BINDING, OF, instance.id(0).as_bytes());
        for _ in 0..PAGES_MAX {
            let page = records.store.list(&list, None, PAGE).await?;
            // Terms are not sealed: a changed one must not lead to a binding of another instance.
            let keys = page.documents.into_iter().map(|it| it.key);
            let keys: Vec<Key> = keys.filter(|it| it.id(0) == instance.id(0)).collect();
            if keys.is_empty() {
                return self.free_id(instance, command_request).await;
            }
            for key in keys {
                if !self.purge_binding(instance, &key, command_request).await? {
                    return Ok(());
                }
            }
        }
        Err(too_contended())
    }

    /// Purges an instance and its bindings. A client that goes away does not stop it.
    pub(super) async fn purge_instance(
        &self,
        id: &InstanceId,
        command_request: &CommandRequest,
    ) -> Result<CommandResult, RequestError> {
        let (handler, id, command_request) = (self.clone(), id.clone(), command_request.clone());
        let purge = async move {
            let result = handler.run_audited(&id, &command_request).await?;
            let key = handler.realm_context.records.instance_key(&id);
            handler.purge_bindings(&key, &command_request).await?;
            let lifecycle = Instance::GONE;
            Ok(CommandResult {
                lifecycle,
                ..result
            })
        };
        self.detached(purge).await
    }

    /// Finishes the purge of an instance if one was interrupted; returns whether there was one.
    pub(super) async fn resume_purge(
        &self,
        instance: &Key,
        at: &Instance,
        info: &RequestInfo,
    ) -> Result<bool, RequestError> {
        if !at.is_purging() {
            return Ok(false);
        }
        let (handler, instance) = (self.clone(), instance.clone());
        let resumed = resumed(info.context.clone());
        let purge = async move { handler.purge_bindings(&instance, &resumed).await };
        self.detached(purge).await?;
        Ok(true)
    }

    /// Finishes the purges of the realm that were interrupted; returns their number. One that cannot be finished now
    /// does not delay the others.
    pub(crate) async fn finish_purges(&self) -> u64 {
        let records = &self.realm_context.records;
        let purging = Instance::PURGING.as_bytes();
        let list = List::term(&records.realm, INSTANCE, LIFECYCLE, purging);
        let (mut finished, mut after) = (0, None);
        loop {
            let page = match records.store.list(&list, after.as_ref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "interrupted purges cannot be listed now");
                    return finished;
                }
            };
            for document in page.documents {
                match self.purge_bindings(&document.key, &resumed(None)).await {
                    Ok(()) => finished += 1,
                    Err(error) => {
                        let instance = document.key.id(0);
                        tracing::warn!(instance, ?error, "a purge cannot be finished now");
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return finished;
            }
        }
    }

    /// Runs a purge in a task of its own, so that it does not end with the request.
    async fn detached<T: Send + 'static>(
        &self,
        purge: impl Future<Output = Result<T, RequestError>> + Send + 'static,
    ) -> Result<T, RequestError> {
        let done = self.engine.detached(purge.in_current_span()).await;
        done.unwrap_or_else(|| Err(RequestError::Unavailable(NOT_FINISHED.into())))
    }

    /// Purges one binding of a purged instance. `false`: the purge was finished by another request.
    async fn purge_binding(
        &self,
        instance: &Key,
        key: &Key,
        command_request: &CommandRequest,
    ) -> Result<bool, RequestError> {
        let records = &self.realm_context.records;
        for _ in 0..TRIES {
            let above = records.load::<Instance>(instance).await?;
            if above.state.is_plain_tombstone() {
                // A purge of an earlier version left bindings under it.
                self.mark_purge(instance, &above, command_request).await?;
                continue;
            }
            let Some(version) = above.version.filter(|_| above.state.is_purging()) else {
                return Ok(false);
            };
            let was = records.load::<Binding>(key).await?;
            let event = binding::Event::Command {
                command: AdminCommand::Purge,
                parent: Parent::Missing,
                new: OperationId::fresh(),
            };
            let Ok(decision) = binding::decide(was.state.clone(), event) else {
                return Ok(true);
            };
            let reads = Some((instance.clone(), version));
            let committed = self.commit_command(key, &was, decision, command_request, None, reads);
            if committed.await?.is_some() {
                return Ok(true);
            }
        }
        Err(too_contended())
    }

    /// Marks a tombstone whose bindings are not all purged.
    async fn mark_purge(
        &self,
        instance: &Key,
        above: &LoadedDocument<Instance>,
        command_request: &CommandRequest,
    ) -> Result<(), RequestError> {
        let Some(last) = above.state.last() else {
            return Ok(());
        };
        let info = RequestInfo::broker(command_request.context.clone());
        let draft = draft(RequestBody::Named(CommandKind::Purge.word()), &info);
        let decision = Decision::stay(Instance::purging(last), Reply::Nothing);
        // Another writer may be first: it is read again.
        let marked = self.commit_and_start(instance, above, decision, &draft, None);
        marked.await.map(drop)
    }

    /// Turns the tombstone of a purge into one whose id can be used again.
    async fn free_id(
        &self,
        instance: &Key,
        command_request: &CommandRequest,
    ) -> Result<(), RequestError> {
        let info = RequestInfo::broker(command_request.context.clone());
        let draft = draft(RequestBody::Named(CommandKind::Purge.word()), &info);
        for _ in 0..TRIES {
            let was = self
                .realm_context
                .records
                .load::<Instance>(instance)
                .await?;
            let Instance::Gone {
                last,
                purging: true,
                ..
            } = was.state
            else {
                return Ok(());
            };
            let decision = Decision::stay(Instance::gone(last), Reply::Nothing);
            let committed = self.commit_and_start(instance, &was, decision, &draft, None);
            if committed.await?.is_some() {
                return Ok(());
            }
        }
        Err(too_contended())
    }
}

/// The rest of an interrupted purge, as a command of the broker.
fn resumed(context: Option<Arc<RequestContext>>) -> CommandRequest {
    CommandRequest {
        command: CommandKind::Purge,
        by: Actor {
            who: RESUMED_BY.to_owned(),
            reason: RESUMED_BECAUSE.to_owned(),
        },
        context,
    }
}
