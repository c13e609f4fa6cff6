//! Open Service Broker API 2.17: every body, header, id and error, in both directions, and the
//! catalog with its rules.
//!
//! Pure: no I/O, no async, no HTTP. `sutler-broker` is the server, `sutler-client` the client. B- and P-numbers
//! count what the specification demands of brokers and platforms, D-numbers are in `docs/DECISIONS.md`. Start
//! with `ids.rs` and `catalog.rs`; `body.rs` parses bytes into these types.

mod percent;

mod ids;
mod non_empty_text;

mod headers;
mod identity;
mod query;
mod version;

mod body;
mod error;
mod json_objects;
mod operation;
mod serde_optional;

mod binding;
mod endpoint;
mod instance;
mod maintenance;
mod time;
mod volume;

mod catalog;

pub use binding::{AsyncBindResponse, BindBody, BindResource, BindResponse, FetchBindingResponse};
pub use body::{BodyError, JsonTextError, check_json_text, from_json};
pub use catalog::{
    BindingSchemas, Catalog, CatalogFault, CatalogFaults, CatalogSpec, DashboardClient,
    DashboardClientSpec, InstanceSchemas, OperationSchema, PinnedPlan, Plan, PlanRef, PlanSpec,
    Requires, SCHEMA_BYTES_MAX, Schemas, ServiceOffering, ServiceSpec,
};
pub use endpoint::{Endpoint, PortRange, Ports, PortsError, Protocol};
pub use error::{ErrorBody, ErrorCode};
pub use headers::{API_VERSION_HEADER, ORIGINATING_IDENTITY_HEADER, REQUEST_IDENTITY_HEADER};
pub use identity::{
    ORIGINATING_IDENTITY_BYTES_MAX, OriginatingIdentity, OriginatingIdentityError,
    REQUEST_IDENTITY_BYTES_MAX, RequestIdentity, RequestIdentityError,
};
pub use ids::{
    BindingId, ID_BYTES_MAX, IdError, IdFormatError, InstanceId, OPERATION_CHARS_MAX,
    OperationToken, PlanId, ServiceId,
};
pub use instance::{
    FetchInstanceResponse, InstanceMetadata, PreviousValues, ProvisionBody, ProvisionResponse,
    UpdateBody, UpdateResponse,
};
pub use json_objects::{Context, Credentials, Parameters};
pub use maintenance::MaintenanceInfo;
pub use non_empty_text::{EmptyTextError, NonEmptyText};
pub use operation::{DeleteResponse, LastOperationResponse, OperationKind, OperationState};
pub use query::{QUERY_BYTES_MAX, Query, QueryError};
pub use time::{BindingMetadata, RenewalAfterExpiryError, TimeError, UtcTime};
pub use version::{ApiVersion, VersionError};
pub use volume::{Device, DeviceType, VolumeMode, VolumeMount};
