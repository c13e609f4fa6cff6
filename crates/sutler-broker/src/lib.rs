//! Write three to five async functions, get a conformant, durable, idempotent service broker.
//!
//! Start with [`Service`], the trait an author implements, and [`Broker`], which serves it. Inside:
//! `lifecycle/` decides, `requests/` accepts requests, `executor/` runs operations, `http/` is the
//! protocol, `resources.rs` has the stored form of instances and bindings. Storing: `sutler_records`.

mod admin;
mod app;
mod audit;
mod broker;
mod catalog;
mod catalog_file;
mod catalog_source;
mod cleanup;
mod error;
mod executor;
mod health;
mod hook_context;
mod http;
mod instance_counts;
mod instance_scan;
mod lifecycle;
pub mod metrics;
mod operation_log;
mod operation_status;
mod plan_schemas;
mod platform;
mod realm_context;
mod refusal;
mod requests;
mod resources;
mod serve;
mod service;
mod settings;
mod store_inspection;
mod typed_service;

pub use admin::{Admin, AdminExtension, Backup};
pub use audit::{AUDIT_TARGET, AuditEntry, AuditOutcome, audit};
pub use broker::{Broker, BrokerHandle, BuildError};
pub use catalog::{Offering, OfferingUpdate};
pub use catalog_file::{
    CatalogFile, CatalogFileError, CleanupSettings, FileDiagnostic, FileSettings, KindSettings,
    Location,
};
pub use catalog_source::{CatalogPrecondition, CatalogSource, PlanAvailability, PlanWaitLimits};
pub use error::{Error, Result};
pub use hook_context::Cx;
pub use http::{Endpoint, ExtensionRequest, ExtensionResponse, ExtensionRoutes, Replacement};
pub use instance_counts::InstanceCounts;
pub use instance_scan::ReadInstancesError;
pub use lifecycle::binding::BindingSpec;
pub use lifecycle::instance::{Change, InstanceSpec};
pub use lifecycle::{Asynchrony, AuthorState};
pub use operation_status::OperationStatus;
pub use platform::{Platform, PrefixError};
pub use refusal::{Refusal, Resource};
pub use service::{
    Bound, DerivedSchemas, Policy, Predecessor, ProposedChange, ProposedRequest, Provenance,
    Provisioned, Service, UntypedService, Update, Updated,
};
pub use settings::{DeletedPoll, MissingVersion, Settings};
pub use store_inspection::DocumentOpener;
pub use sutler_records::{
    BATCH_BYTES_MAX, BATCH_WRITES_MAX, Batch, CollectionItem, Collections, CollectionsError,
    FeedRetention, PeriodicTask, Revision, Schedule, ScheduleError, TaskContext, TaskError,
    TaskResult, TaskStatus, run_blocking, run_in_background,
};
pub use sutler_schema::{ParameterSchemas, PlanSchemas, SchemaError, derived_schema};
pub use sutler_server::{
    Auth, AuthConfigError, AuthMethod, AuthMethods, Caller, Certificates, ClientCertificates,
    Issuer, KeySet, Limits, PeerCertificate, Propagation, Rate, Tls, TlsConfigError, TlsFileError,
    TraceParent, Users, hash_password, propagate_with, raise_descriptor_limit,
};

/// Imports for a typical broker.
pub mod prelude {
    pub use crate::{
        Bound, Broker, CatalogFile, Cx, Error, Policy, Provisioned, Result, Service, Update,
        Updated,
    };
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::json;
    pub use sutler_journal::KeyRing;
    pub use sutler_osb::{OperationKind, PinnedPlan};
}
