//! Write three to five async functions, get a conformant, durable, idempotent service broker.
//!
//! Start with [`Service`], the trait an author implements, and [`Broker`], which serves it. Inside:
//! `lifecycle/` decides, `desk/` takes requests in, `executor/` carries them out, `http/` speaks the
//! protocol, `records.rs` keeps everything in a journal.

mod admin;
mod app;
mod audit;
mod broker;
mod catalog_file;
mod cleanup;
mod cx;
mod desk;
mod error;
mod examine;
mod executor;
mod fate;
mod health;
mod http;
mod keeper;
mod lifecycle;
pub mod metrics;
mod operation_log;
mod pins;
mod plan_schemas;
mod plans;
mod platform;
mod realms;
mod records;
mod refusal;
mod serve;
mod service;
mod settings;
mod stock;
mod typed;

pub use admin::{Admin, Backup, Pages};
pub use audit::{AUDIT_TARGET, AuditEntry, AuditOutcome, audit};
pub use broker::{Broker, BuildError, Running};
pub use catalog_file::{
    CatalogFile, CatalogFileError, CleanupSettings, FileFault, FileSettings, KindSettings, Location,
};
pub use cx::Cx;
pub use error::{Error, Result};
pub use examine::Opener;
pub use fate::OperationStatus;
pub use http::{Endpoint, MoreAnswer, MorePaths, MoreRequest, Replacement};
pub use keeper::{Footing, Keeper, Patience, Standing};
pub use lifecycle::binding::BindingSpec;
pub use lifecycle::instance::{Change, InstanceSpec};
pub use lifecycle::{Asynchrony, AuthorState};
pub use pins::ReadInstancesError;
pub use plans::{Offering, Slot};
pub use platform::{Platform, PrefixFault};
pub use realms::InstanceCounts;
pub use refusal::{Refusal, Resource};
pub use service::{
    Asked, Bound, DerivedSchemas, Policy, Predecessor, Provenance, Provisioned, Service,
    UntypedService, Update, Updated,
};
pub use settings::{DeletedPoll, MissingVersion, Settings};
pub use sutler_records::{
    BATCH_BYTES_MAX, BATCH_WRITES_MAX, Batch, CollectionItem, Collections, CollectionsError,
    PeriodicTask, Revision, Schedule, ScheduleError, TaskContext, TaskError, TaskResult,
    TaskStatus, run_blocking, run_in_background,
};
pub use sutler_schema::{ParameterSchemas, PlanSchemas, SchemaError, derived_schema};
pub use sutler_server::{
    Auth, AuthConfigError as AuthFault, AuthMethod as Via, AuthMethods as Proofs, Caller,
    Certificates, ClientCertificates, Issuer, KeySet, Limits, PeerCertificate, Propagation, Rate,
    Tls, TlsConfigError as TlsFault, TlsFileError as TlsTrouble, TraceParent, Users, hash_password,
    propagate_with, raise_descriptor_limit,
};

/// What nearly every broker needs.
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
