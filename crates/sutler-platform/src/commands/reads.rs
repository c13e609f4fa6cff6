//! Reads: instances, bindings, intents; and the wait for the end of an intent.

use super::command_error::CommandError;
use super::instance_commit::read_instance;
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::IntentEnd;
use crate::platform::Platform;
use crate::platform_records::RecordPage;
use crate::records::{INSTANCE, IntentDetail, IntentProgress, IntentRequest, ResourceName};
use std::time::Duration;
use sutler_journal::{Key, List, OperationFilter, OperationId, OperationList, Position, State};
use tokio::time::{Instant, timeout_at};

/// How often an operation is read that another replica may end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A page of resources.
#[derive(Clone, Debug)]
pub struct ResourcePage<T> {
    /// In order.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<Position>,
}

impl<T> From<RecordPage<T>> for ResourcePage<T> {
    fn from(page: RecordPage<T>) -> Self {
        Self {
            items: page.items.into_iter().map(|(_, item)| item).collect(),
            next: page.next,
        }
    }
}

/// An intent as the journal has it.
#[derive(Clone, Debug)]
pub struct IntentView {
    /// Its operation.
    pub operation: OperationId,
    /// What was accepted.
    pub request: IntentRequest,
    /// What was sent; the prepared request is not shown.
    pub progress: IntentProgress,
    /// The words of the moment, and the end.
    pub detail: IntentDetail,
    /// How often it was claimed.
    pub claims: u64,
}

impl Platform {
    /// An instance by its name, or by its uid: then also one that is gone.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub async fn instance(
        &self,
        namespace: &ResourceName,
        name: &ResourceName,
    ) -> Result<Instance, CommandError> {
        let (_, _, instance) = read_instance(&self.context, namespace, name).await?;
        Ok(instance)
    }

    /// A page of instances, of one namespace or of all, by key. Those that are gone are left out.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn instances(
        &self,
        namespace: Option<&ResourceName>,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<ResourcePage<Instance>, CommandError> {
        let records = &self.context.records;
        let prefix = match namespace {
            Some(namespace) => records.keys.all_below(INSTANCE, namespace.as_str()),
            None => records.keys.all_of(INSTANCE),
        };
        let page = records
            .list::<Instance>(&List::Prefix(prefix), after, limit)
            .await?;
        let mut page = ResourcePage::from(page);
        page.items.retain(|instance| instance.tombstone.is_none());
        Ok(page)
    }

    /// Intents of an instance, newest first, before an operation.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn intents(
        &self,
        instance: &Instance,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<IntentView>, CommandError> {
        let keys = &self.context.records.keys;
        let lane = keys.instance(&instance.namespace, instance.uid);
        self.intents_of(lane, before, limit).await
    }

    /// Intents of a lane, newest first, before an operation.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) async fn intents_of(
        &self,
        lane: Key,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<IntentView>, CommandError> {
        let documents = &self.context.records.documents;
        let list = OperationList {
            filter: OperationFilter::Lane(lane),
            before,
            limit,
        };
        let mut views = Vec::new();
        for row in documents.store.operations(&list).await? {
            let Some(operation) = documents.store.operation(row.id).await? else {
                continue;
            };
            let progress: IntentProgress = documents.open_progress(&operation)?;
            views.push(IntentView {
                operation: row.id,
                request: documents.open_request(&operation)?,
                progress: progress.scrubbed(),
                detail: documents.open_detail(row.id, &operation.row.detail)?,
                claims: operation.row.fence.0,
            });
        }
        Ok(views)
    }

    /// Waits for the end of an intent. `None`: it has not ended in this time, or is not known.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn wait_for_end(
        &self,
        lane: &Key,
        operation: OperationId,
        within: Duration,
    ) -> Result<Option<IntentEnd>, CommandError> {
        let documents = &self.context.records.documents;
        let until = Instant::now() + within;
        let waiter = self.context.waiters.wait_for(operation);
        loop {
            let changed = waiter.changed();
            let Some(polled) = documents.store.poll(lane, operation).await? else {
                return Ok(None);
            };
            if let State::Done(_) = polled.state {
                let detail: IntentDetail = documents.open_detail(operation, &polled.detail)?;
                return Ok(detail.end);
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            // Another replica may commit the end, too.
            let _ = timeout_at(until.min(now + LOOK_EVERY), changed).await;
        }
    }
}
