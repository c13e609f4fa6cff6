//! Routes of the broker, as metrics and the request log name them: one static each, a closed set.

use super::route::Endpoint;
use sutler_server::metrics::Route;

const INSTANCE: &str = "/v2/service_instances/{instance_id}";
const BINDING: &str = "/v2/service_instances/{instance_id}/service_bindings/{binding_id}";

static CATALOG: Route = Route::new("catalog", "/v2/catalog");
static PROVISION: Route = Route::new("provision", INSTANCE);
static FETCH_INSTANCE: Route = Route::new("fetch_instance", INSTANCE);
static UPDATE: Route = Route::new("update", INSTANCE);
static DEPROVISION: Route = Route::new("deprovision", INSTANCE);
static POLL_INSTANCE: Route = Route::new(
    "poll_instance",
    "/v2/service_instances/{instance_id}/last_operation",
);
static BIND: Route = Route::new("bind", BINDING);
static FETCH_BINDING: Route = Route::new("fetch_binding", BINDING);
static UNBIND: Route = Route::new("unbind", BINDING);
static POLL_BINDING: Route = Route::new(
    "poll_binding",
    "/v2/service_instances/{instance_id}/service_bindings/{binding_id}/last_operation",
);
/// Paths of extensions, below `/v2`.
pub(super) static EXTENSION: Route = Route::new("more", "/v2/{…}");
/// Any path of the administration.
pub(crate) static ADMIN: Route = Route::new("admin", "/admin/{…}");

impl Endpoint {
    /// The route that metrics and logs name.
    pub(super) fn label(self) -> &'static Route {
        match self {
            Self::Catalog => &CATALOG,
            Self::Provision => &PROVISION,
            Self::FetchInstance => &FETCH_INSTANCE,
            Self::Update => &UPDATE,
            Self::Deprovision => &DEPROVISION,
            Self::PollInstance => &POLL_INSTANCE,
            Self::Bind => &BIND,
            Self::FetchBinding => &FETCH_BINDING,
            Self::Unbind => &UNBIND,
            Self::PollBinding => &POLL_BINDING,
        }
    }
}
