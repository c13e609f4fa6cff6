//! What the platform stores: kinds of documents, their keys and index terms, and the parts of an operation.
//!
//! All documents are sealed and belong to one realm, [`REALM`]. Read `keys.rs` first, then `record.rs` (the wrapper of
//! every document) and one file per kind. How decisions become commits is in `writes/`; rules are in `lifecycle/`.

mod binding_record;
mod broker_id_record;
mod broker_record;
mod broker_state_record;
mod catalog_record;
mod instance_record;
mod intent_record;
mod keys;
mod name_record;
mod namespace_record;
mod orphan_record;
mod record;
mod replica_record;
mod resource_name;
mod secret_record;
mod terms;

pub use broker_id_record::BrokerIdRecord;
pub use broker_record::{
    BrokerAuthentication, BrokerLimits, BrokerOptions, BrokerRegistration, BrokerTls,
};
pub use broker_state_record::{BrokerState, LearnedSerialization, SyncStatus};
pub use catalog_record::CatalogRecord;
pub use intent_record::{
    AttemptLog, IntentDetail, IntentProgress, IntentRequest, PreparedRequest, SendAttempt,
};
pub use keys::{
    BINDING, BINDING_NAME, BROKER, BROKER_BINDING_ID, BROKER_INSTANCE_ID, BROKER_STATE,
    CATALOG_SYNC, INSTANCE, INSTANCE_NAME, NAMESPACE, ORPHAN, PlatformKeys, REALM, REPLICA, SECRET,
    SECRET_USE, SERVICE_OFFERING, SERVICE_PLAN, broker_queue, platform_queue, platform_realm,
};
pub use name_record::NameRecord;
pub use namespace_record::{NamespaceRecord, NamespaceState};
pub use orphan_record::OrphanRecord;
pub use record::{FORM, Record, TypedRecord};
pub use replica_record::ReplicaRecord;
pub use resource_name::{NAME_BYTES_MAX, ResourceName, ResourceNameError};
pub use secret_record::{SECRET_BYTES_MAX, SecretRecord, SecretUse};
pub use terms::{
    BROKER_TERM, CREATED_TERM, DUE_TERM, FOUND_TERM, GONE_TERM, INSTANCE_TERM, NAME_TERM,
    NOTICE_DUE, NOTICE_TERM, ORPHAN_TERM, PLAN_TERM, SOURCE_TERM, STATE_TERM, UID_TERM,
    WAITS_FOR_ORPHAN, WAITS_TERM, moment_value, scoped_value,
};
