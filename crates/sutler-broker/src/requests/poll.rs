//! Polls of the last operation: one read if the platform sends the operation, two otherwise.

use super::{RequestError, RequestHandler};
use crate::lifecycle::Verb;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::Instance;
use crate::refusal::{Refusal, Resource};
use crate::resources::{Detail, ResourceKeys as _};
use crate::settings::DeletedPoll;
use sutler_journal::{Key, OperationId, Outcome, PolledOperation, State};
use sutler_osb::{BindingId, InstanceId, LastOperationResponse, OperationState, OperationToken};

/// Response to a poll.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LastOperation {
    /// 200.
    Known {
        /// The body.
        response: LastOperationResponse,
        /// Seconds until the next poll.
        retry_after: Option<u64>,
    },
    /// 410: the resource is deleted, and its operation cleaned up.
    Gone(Resource),
}

impl RequestHandler {
    /// B-100 to B-108.
    pub(crate) async fn poll_instance(
        &self,
        id: &InstanceId,
        operation: Option<&OperationToken>,
    ) -> Result<LastOperation, RequestError> {
        let lane = self.realm_context.records.instance_key(id);
        self.poll::<Instance>(&lane, operation, Resource::Instance, Instance::last, |it| {
            matches!(
                it,
                Instance::Gone {
                    never_made: false,
                    ..
                }
            )
        })
        .await
    }

    /// B-110 to B-113.
    pub(crate) async fn poll_binding(
        &self,
        instance: &InstanceId,
        id: &BindingId,
        operation: Option<&OperationToken>,
    ) -> Result<LastOperation, RequestError> {
        let lane = self.realm_context.records.binding_key(instance, id);
        self.poll::<Binding>(&lane, operation, Resource::Binding, Binding::last, |it| {
            matches!(
                it,
                Binding::Gone {
                    never_made: false,
                    ..
                }
            )
        })
        .await
    }

    async fn poll<S: sutler_records::Resource>(
        &self,
        lane: &Key,
        token: Option<&OperationToken>,
        resource: Resource,
        last: impl Fn(&S) -> Option<OperationId>,
        gone: impl Fn(&S) -> bool,
    ) -> Result<LastOperation, RequestError> {
        let records = &self.realm_context.records;
        if let Some(id) = token.and_then(|token| OperationId::parse(token.as_str()))
            && let Some(polled) = records.store.poll(lane, id).await?
        {
            return self.find_operation(id, &polled, resource);
        }
        // D-08: without an operation, or with an unknown one, the latest is reported.
        let loaded = records.load::<S>(lane).await?;
        let id = last(&loaded.state).ok_or(Refusal::NotFound(resource))?;
        match records.store.poll(lane, id).await? {
            Some(polled) => self.find_operation(id, &polled, resource),
            // D-02: never 404 for an id that was deleted recently.
            None if gone(&loaded.state) => Ok(LastOperation::Gone(resource)),
            None => Err(Refusal::NotFound(resource).into()),
        }
    }

    fn find_operation(
        &self,
        id: OperationId,
        polled: &PolledOperation,
        resource: Resource,
    ) -> Result<LastOperation, RequestError> {
        let verb = Verb::of(&polled.verb);
        let deletes = matches!(verb, Some(Verb::Deprovision | Verb::Unbind));
        let state = match polled.state {
            State::Waiting | State::Ready | State::Running => OperationState::InProgress,
            State::Done(Outcome::Succeeded) => OperationState::Succeeded,
            State::Done(Outcome::Failed | Outcome::Cancelled) => OperationState::Failed,
        };
        let at_once = self.realm_context.settings.deleted_poll == DeletedPoll::Gone;
        if deletes && at_once && state == OperationState::Succeeded {
            return Ok(LastOperation::Gone(resource));
        }
        let detail = self
            .realm_context
            .records
            .open_detail::<Detail>(id, &polled.detail)?;
        let response = LastOperationResponse {
            state,
            description: detail.description,
            instance_usable: detail.instance_usable,
            update_repeatable: detail.update_repeatable,
        };
        let running = state == OperationState::InProgress;
        Ok(LastOperation::Known {
            response: response.scoped_to(verb.unwrap_or(Verb::Provision)),
            retry_after: running.then_some(detail.retry_after).flatten(),
        })
    }
}
