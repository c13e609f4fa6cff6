//! API for extensions such as `sutler-bundle-service`: periodic tasks, collections, the source of the catalog,
//! instances and operations. Not for authors of services.

use super::{Broker, BrokerHandle, BuildError};
use crate::catalog::{CatalogPreconditions, Offering, OfferingUpdate};
use crate::catalog_source::{CatalogPrecondition, CatalogSource};
use crate::error::{Error, ErrorKind};
use crate::instance_scan::{ReadInstancesError, each_instance};
use crate::lifecycle::AuthorState;
use crate::operation_status::{OperationStatus, operation_status};
use std::sync::Arc;
use sutler_journal::StoreError;
use sutler_osb::{Catalog, PinnedPlan, ServiceSpec};
use sutler_records::{Collections, CollectionsError, PeriodicTask, TaskError, TaskStatus};
use uuid::Uuid;

impl From<Error> for TaskError {
    fn from(error: Error) -> Self {
        match error.kind {
            ErrorKind::Lost => Self::lost(),
            ErrorKind::Failed | ErrorKind::Transient | ErrorKind::Refused(_) => {
                let failed = Self::failed(error.message);
                match error.cause {
                    Some(cause) => failed.because(cause),
                    None => failed,
                }
            }
        }
    }
}

impl Error {
    /// The same error where no task runs: message and cause are kept.
    #[must_use]
    pub fn from_task(error: TaskError) -> Self {
        if error.is_lost() {
            return Self::lost();
        }
        let (message, cause) = error.into_parts();
        let failed = Self::failed(message);
        match cause {
            Some(cause) => failed.because(cause),
            None => failed,
        }
    }
}

impl Broker {
    /// Runs a task periodically, on one replica at a time; its records are in [`Collections`].
    #[must_use]
    pub fn periodic_task(mut self, task: Arc<dyn PeriodicTask>) -> Self {
        self.tasks.push(task);
        self
    }

    /// Declares that the catalog will have a source ([`BrokerHandle::set_catalog_source`]). Until then no operation of a
    /// platform is carried out, and a plan that is not offered may still appear.
    #[must_use]
    pub fn with_catalog_source(mut self) -> Self {
        self.with_catalog_source = true;
        self
    }
}

impl BrokerHandle {
    /// The collections of periodic tasks, if there are any tasks.
    #[must_use]
    pub fn collections(&self) -> Option<Collections> {
        self.0.tasks.as_ref().map(|it| it.collections().clone())
    }

    /// Status of a periodic task; the default status if there is no such task.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn task_status(&self, name: &str) -> Result<TaskStatus, CollectionsError> {
        match &self.0.tasks {
            Some(tasks) => tasks.status(name).await,
            None => Ok(TaskStatus::default()),
        }
    }

    /// Requests a run of a periodic task now, and returns the number that [`TaskStatus::served`] must
    /// reach.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn request_run(&self, name: &str) -> Result<u64, CollectionsError> {
        match &self.0.tasks {
            Some(tasks) => tasks.request_run(name).await,
            None => Ok(0),
        }
    }

    /// Status of an operation of any platform of this broker.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn operation_status(&self, operation: Uuid) -> Result<OperationStatus, StoreError> {
        match self.0.realms().next() {
            Some(realm_context) => {
                operation_status(realm_context.records.store.as_ref(), operation).await
            }
            None => Ok(OperationStatus::Unknown),
        }
    }

    /// Visits all instances that are not deleted, of every platform, configured or not, with the plan and the
    /// author's state of each. An instance that is moved to another plan, or to another copy of it, is visited
    /// with both.
    ///
    /// # Errors
    /// The store does not answer, or a record cannot be opened: then not all were visited.
    pub async fn each_instance(
        &self,
        visit: impl FnMut(&PinnedPlan, Option<&AuthorState>) + Send,
    ) -> Result<(), ReadInstancesError> {
        match self.0.realms().next() {
            Some(realm_context) => {
                each_instance(&realm_context.records, &realm_context.catalog, visit).await
            }
            None => Ok(()),
        }
    }

    /// Sets the source of the catalog. The first one stays.
    pub fn set_catalog_source(&self, source: Arc<dyn CatalogSource>) {
        self.0.catalog.source.set(source);
    }

    /// Checks one offering, so that it can be part of the catalog. Expensive: compiles its schemas.
    ///
    /// # Errors
    /// It cannot be offered.
    pub fn check_offering(&self, spec: ServiceSpec) -> Result<Offering, BuildError> {
        Ok(self.0.catalog.check(spec)?)
    }

    /// Replaces the whole catalog, like [`BrokerHandle::replace_catalog`]. `preconditions`: the record that each
    /// offering depends on, by the id of its service.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_catalog_on(
        &self,
        catalog: &Catalog,
        preconditions: impl IntoIterator<Item = (String, CatalogPrecondition)>,
    ) -> Result<(), BuildError> {
        let updates = self.0.catalog.updates_of(catalog)?;
        self.replace_offerings(updates, preconditions).await
    }

    /// Replaces the whole catalog, like [`BrokerHandle::replace_catalog`], by offerings that stay and offerings
    /// that are new. `preconditions`: the record that each offering depends on, by the id of its service.
    ///
    /// # Errors
    /// The catalog cannot be used; the old one stays.
    pub async fn replace_offerings(
        &self,
        updates: Vec<OfferingUpdate>,
        preconditions: impl IntoIterator<Item = (String, CatalogPrecondition)>,
    ) -> Result<(), BuildError> {
        let mut standing = CatalogPreconditions::new();
        for (service, precondition) in preconditions {
            if let Some(collections) = self.collections() {
                let key = collections.key(precondition.collection, &precondition.id)?;
                standing.push((service, (key, precondition.revision.0)));
            }
        }
        self.0.replace_catalog(updates, standing).await
    }
}
