//! The traits that authors implement: three to five async functions.
//!
//! [`Service`] is the typed trait; parameters and state are the author's own serde types. [`UntypedService`] is the
//! trait that the framework calls, for services known only at run time. `typed_service.rs` adapts the first to the
//! second. The context of a hook is in `hook_context.rs`.

use crate::error::{Error, Result};
use crate::hook_context::Cx;
use crate::lifecycle::instance::InstanceSpec;
use crate::lifecycle::{Asynchrony, AuthorState, Verb, binding::BindingSpec};
use crate::refusal::Refusal;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::future::Future;
use std::time::Duration;
use sutler_osb::{
    BindResponse, BindingId, BindingMetadata, Context, Credentials, Endpoint, FetchBindingResponse,
    FetchInstanceResponse, InstanceId, InstanceMetadata, OriginatingIdentity, Parameters,
    PinnedPlan, VolumeMount,
};

/// A typed service. Implement `provision` and `deprovision`; `bind` and `unbind` if it can be bound;
/// `update` if it can be changed.
///
/// # Assumptions
/// A hook may run again after a crash, from the start, with the memos of its steps: make it
/// idempotent on `cx.instance_id()`, or put each effect into a `cx.step`. It is stopped at an `.await`: while it blocks
/// its thread it can still act after its lease has expired; `cx.fence()` lets external systems refuse it.
pub trait Service: Send + Sync + 'static {
    /// The user's parameters. Their JSON Schema is derived, published and enforced.
    type Params: DeserializeOwned + JsonSchema + Send;
    /// State of an instance; sealed at rest, passed to every later call.
    type State: Serialize + DeserializeOwned + Send + Sync;

    /// Set to `true` if `update` is implemented.
    const UPDATES: bool = false;

    /// Creates an instance.
    fn provision(
        &self,
        cx: &Cx,
        params: Self::Params,
    ) -> impl Future<Output = Result<Provisioned<Self::State>>> + Send;

    /// Removes an instance. `None`: its creation failed before it had a state.
    fn deprovision(
        &self,
        cx: &Cx,
        state: Option<Self::State>,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Changes an instance. On error nothing must have been applied.
    fn update(
        &self,
        _cx: &Cx,
        _state: Self::State,
        _update: Update<Self::Params>,
    ) -> impl Future<Output = Result<Updated<Self::State>>> + Send {
        async { Err(Error::unsupported("This service does not support updates.")) }
    }

    /// Creates a binding. Give each binding its own credentials, so that they can be revoked separately.
    fn bind(&self, _cx: &Cx, _state: &Self::State) -> impl Future<Output = Result<Bound>> + Send {
        async { Err(Error::invalid("This service cannot be bound.")) }
    }

    /// Creates a binding that replaces another; both stay valid. By default an ordinary bind.
    fn rotate(
        &self,
        cx: &Cx,
        state: &Self::State,
        _predecessor: Predecessor,
    ) -> impl Future<Output = Result<Bound>> + Send {
        self.bind(cx, state)
    }

    /// Removes a binding. Its own state is in `cx.binding_state()`.
    fn unbind(&self, _cx: &Cx, _state: &Self::State) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Dashboard URL of the instance. Pure: it is called before the first response.
    fn dashboard_url(&self, _instance: &InstanceId, _spec: &InstanceSpec) -> Option<String> {
        None
    }

    /// Policy of a verb: asynchrony, deadline, attempts.
    fn policy(&self, _verb: Verb, _plan: &PinnedPlan) -> Policy {
        Policy::default()
    }

    /// Refuses a new request before anything is stored. A repeat of an accepted request is answered as before,
    /// whatever this returns now.
    fn check(&self, _change: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// Schema of the parameters of a bind, if it has any.
    fn bind_schema(&self) -> Option<Value> {
        None
    }

    /// Whether a PUT is identical to the existing instance.
    fn same_instance(&self, there: &InstanceSpec, wanted: &InstanceSpec) -> bool {
        there.same_request(wanted)
    }

    /// Whether a PUT is identical to the existing binding.
    fn same_binding(&self, there: &BindingSpec, wanted: &BindingSpec) -> bool {
        there.same_request(wanted)
    }

    /// Answers a fetch of an instance; `stored` is the default response.
    fn fetch_instance(
        &self,
        _instance: &InstanceId,
        _state: Self::State,
        stored: FetchInstanceResponse,
    ) -> impl Future<Output = Result<FetchInstanceResponse>> + Send {
        async { Ok(stored) }
    }

    /// Answers a fetch of a binding; `stored` is the default response.
    fn fetch_binding(
        &self,
        _instance: &InstanceId,
        _binding: &BindingId,
        stored: FetchBindingResponse,
    ) -> impl Future<Output = Result<FetchBindingResponse>> + Send {
        async { Ok(stored) }
    }
}

/// A service as the framework calls it.
#[async_trait]
pub trait UntypedService: Send + Sync + 'static {
    /// Creates an instance.
    async fn provision(&self, cx: &Cx, parameters: Parameters) -> Result<Provisioned<AuthorState>>;

    /// Removes an instance.
    async fn deprovision(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()>;

    /// Whether `update` is implemented.
    fn updates(&self) -> bool {
        false
    }

    /// Changes an instance.
    async fn update(
        &self,
        _cx: &Cx,
        _state: Option<AuthorState>,
        _update: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        Err(Error::unsupported("This service does not support updates."))
    }

    /// Creates a binding.
    async fn bind(&self, _cx: &Cx, _state: Option<AuthorState>) -> Result<Bound> {
        Err(Error::invalid("This service cannot be bound."))
    }

    /// Creates a binding that replaces another.
    async fn rotate(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        _predecessor: Predecessor,
    ) -> Result<Bound> {
        self.bind(cx, state).await
    }

    /// Removes a binding.
    async fn unbind(&self, _cx: &Cx, _state: Option<AuthorState>) -> Result<()> {
        Ok(())
    }

    /// Dashboard URL of the instance. Pure.
    fn dashboard_url(&self, _instance: &InstanceId, _spec: &InstanceSpec) -> Option<String> {
        None
    }

    /// Policy of a verb: asynchrony, deadline, attempts.
    fn policy(&self, _verb: Verb, _plan: &PinnedPlan) -> Policy {
        Policy::default()
    }

    /// Refuses a new request before anything is stored. A repeat of an accepted request is answered as before,
    /// whatever this returns now.
    fn check(&self, _change: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// Refuses a new request because of its ids, its user or its context; as [`UntypedService::check`], and never asked
    /// about a removal.
    fn check_request(&self, _request: &ProposedRequest<'_>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// Schemas for plans that have none in the catalog.
    fn schemas(&self) -> DerivedSchemas {
        DerivedSchemas::default()
    }

    /// Whether a PUT is identical to the existing instance.
    fn same_instance(&self, there: &InstanceSpec, wanted: &InstanceSpec) -> bool {
        there.same_request(wanted)
    }

    /// Whether a PUT is identical to the existing binding.
    fn same_binding(&self, there: &BindingSpec, wanted: &BindingSpec) -> bool {
        there.same_request(wanted)
    }

    /// Program that runs an instance, by its state. Pure; shown to operators only.
    fn provenance(&self, _state: Option<&AuthorState>) -> Option<Provenance> {
        None
    }

    /// Answers a fetch of an instance; `stored` is the default response.
    async fn fetch_instance(
        &self,
        _instance: &InstanceId,
        _state: Option<AuthorState>,
        stored: FetchInstanceResponse,
    ) -> Result<FetchInstanceResponse> {
        Ok(stored)
    }

    /// Answers a fetch of a binding; `stored` is the default response.
    async fn fetch_binding(
        &self,
        _instance: &InstanceId,
        _binding: &BindingId,
        stored: FetchBindingResponse,
    ) -> Result<FetchBindingResponse> {
        Ok(stored)
    }
}

/// The version of a program that runs an instance, such as a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Its name.
    pub name: String,
    /// Its version, as its author names it.
    pub version: Option<String>,
    /// Digest of its content.
    pub digest: String,
}

/// Schemas derived from types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivedSchemas {
    /// For the parameters of a provision.
    pub provision: Option<Value>,
    /// For the parameters of an update.
    pub update: Option<Value>,
    /// For the parameters of a bind.
    pub bind: Option<Value>,
}

/// A change that a service can refuse before anything is stored.
#[derive(Clone, Copy, Debug)]
pub enum ProposedChange<'a> {
    /// A new instance.
    Provision(&'a InstanceSpec),
    /// A change of an instance.
    Update {
        /// The current instance.
        there: &'a InstanceSpec,
        /// The plan after the change.
        to: &'a PinnedPlan,
        /// Parameters in the request.
        parameters: Option<&'a Parameters>,
        /// Whether the instance is upgraded to the maintenance version of that plan.
        upgrades: bool,
    },
    /// A change of the plan of an instance.
    Move {
        /// The current plan.
        from: &'a PinnedPlan,
        /// The plan after the change.
        to: &'a PinnedPlan,
    },
    /// A new binding.
    Bind(&'a BindingSpec),
}

/// A request for a change, without its body.
#[derive(Clone, Copy, Debug)]
pub struct ProposedRequest<'a> {
    /// The plan after the change.
    pub plan: &'a PinnedPlan,
    /// The instance.
    pub instance_id: &'a InstanceId,
    /// The binding, if one is created.
    pub binding_id: Option<&'a BindingId>,
    /// The originating identity.
    pub identity: Option<&'a OriginatingIdentity>,
    /// The context in the request.
    pub context: Option<&'a Context>,
}

/// Policy of a verb: asynchrony, deadline, attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Synchronous or asynchronous.
    pub asynchrony: Asynchrony,
    /// Maximum time from the first call of the hook, including retries. A takeover, or a restart before the
    /// first attempt has ended, calls the hook from its beginning with the whole time.
    pub deadline: Duration,
    /// Maximum attempts after transient errors.
    pub attempts_max: u32,
    /// The wait before the second attempt; doubles with each further one, up to five minutes.
    pub backoff: Duration,
    /// `Retry-After` of polls.
    pub retry_after: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            asynchrony: Asynchrony::Preferred,
            deadline: Duration::from_secs(3600),
            attempts_max: 5,
            backoff: Duration::from_secs(1),
            retry_after: None,
        }
    }
}

impl Policy {
    /// Always synchronous.
    #[must_use]
    pub fn sync(mut self) -> Self {
        self.asynchrony = Asynchrony::Never;
        self
    }

    /// Only asynchronously.
    #[must_use]
    pub fn required_async(mut self) -> Self {
        self.asynchrony = Asynchrony::Required;
        self
    }

    /// Sets the maximum time from the first call of the hook, including retries; see [`Policy::deadline`].
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// Result of a provision.
#[derive(Clone, Debug, PartialEq)]
pub struct Provisioned<S> {
    pub(crate) state: S,
    pub(crate) metadata: Option<InstanceMetadata>,
}

impl<S> Provisioned<S> {
    /// Result with this state.
    pub fn new(state: S) -> Self {
        Self {
            state,
            metadata: None,
        }
    }

    /// Adds labels and attributes for the platform.
    #[must_use]
    pub fn metadata(mut self, metadata: InstanceMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// Result of an update; the same data as of a provision.
pub type Updated<S> = Provisioned<S>;

/// Input of an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<P> {
    /// All parameters after the update: the stored ones with the sent ones merged in.
    pub params: P,
    /// Parameters sent in this update only.
    pub sent: Parameters,
    /// The plan before the update.
    pub previous_plan: PinnedPlan,
    /// New maintenance version: the requested one, or that of a new plan.
    pub maintenance_version: Option<String>,
    /// Current maintenance version of the instance.
    pub previous_maintenance_version: Option<String>,
    /// Whether nothing but the context changes.
    pub context_only: bool,
}

impl<P> Update<P> {
    /// Whether the instance is upgraded to another maintenance version. The plan in the context is then the catalog's
    /// at the time of the request. If the update fails, the instance stays unchanged.
    pub fn upgrades(&self) -> bool {
        let version = &self.maintenance_version;
        version.is_some() && *version != self.previous_maintenance_version
    }
}

/// The binding that a rotation replaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Predecessor {
    /// Its id.
    pub binding_id: BindingId,
    /// Its own state.
    pub state: Option<AuthorState>,
}

/// Result of a bind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bound {
    pub(crate) given: BindResponse,
    pub(crate) state: Option<AuthorState>,
}

impl Bound {
    /// Result with credentials: a JSON object. Any other value is wrapped as `{"value": …}`.
    pub fn credentials(credentials: Value) -> Self {
        let map = match credentials {
            Value::Object(map) => map,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        let given = BindResponse {
            credentials: Some(Credentials(map)),
            ..Default::default()
        };
        Self { given, state: None }
    }

    /// A log drain: the catalog must require `syslog_drain`.
    pub fn syslog_drain(url: impl Into<String>) -> Self {
        let given = BindResponse {
            syslog_drain_url: Some(url.into()),
            ..Default::default()
        };
        Self { given, state: None }
    }

    /// A route service: the catalog must require `route_forwarding`. `None`: out of band.
    pub fn route(url: Option<String>) -> Self {
        Self {
            given: BindResponse {
                route_service_url: url,
                ..Default::default()
            },
            state: None,
        }
    }

    /// Volumes: the catalog must require `volume_mount`.
    pub fn volumes(mounts: Vec<VolumeMount>) -> Self {
        let given = BindResponse {
            volume_mounts: Some(mounts),
            ..Default::default()
        };
        Self { given, state: None }
    }

    /// Sets the endpoints that the application connects to; all of them.
    #[must_use]
    pub fn endpoints(mut self, endpoints: Vec<Endpoint>) -> Self {
        self.given.endpoints = Some(endpoints);
        self
    }

    /// Sets when it expires and when to renew it.
    #[must_use]
    pub fn metadata(mut self, metadata: BindingMetadata) -> Self {
        self.given.metadata = Some(metadata);
        self
    }

    /// Sets the state of the binding; passed to `unbind` and to a rotation.
    ///
    /// # Errors
    /// The state does not serialise.
    pub fn state<T: Serialize>(mut self, state: &T) -> Result<Self> {
        self.state = Some(AuthorState(serde_json::to_value(state)?));
        Ok(self)
    }
}
