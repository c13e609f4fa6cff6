//! What an author writes: three to five async functions.
//!
//! [`Service`] is the typed trait; parameters and state are the author's own serde types.
//! [`UntypedService`] is what the framework calls; it serves what is known only at run time.
//! `typed_service.rs` joins the two. What hooks are given besides: `cx.rs`.

use crate::cx::Cx;
use crate::error::{Error, Result};
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
    BindResponse, BindingId, BindingMetadata, Credentials, Endpoint, FetchBindingResponse,
    FetchInstanceResponse, InstanceId, InstanceMetadata, Parameters, PinnedPlan, VolumeMount,
};

/// A service, typed. Write `provision` and `deprovision`; `bind` and `unbind` if it can be bound;
/// `update` if it can be changed.
///
/// # Assumptions
/// A hook may run again after a crash, from the start, with the memos of its steps: make it
/// idempotent on `cx.instance_id()`, or put each effect into a `cx.step`.
pub trait Service: Send + Sync + 'static {
    /// The user's parameters. Their JSON Schema is derived, published and enforced.
    type Params: DeserializeOwned + JsonSchema + Send;
    /// What to remember of an instance; sealed at rest, handed back to every later call.
    type State: Serialize + DeserializeOwned + Send + Sync;

    /// Say `true` when you write `update`.
    const UPDATES: bool = false;

    /// Makes an instance.
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

    /// Makes a binding; credentials should be its own, so that they can be revoked alone.
    fn bind(&self, _cx: &Cx, _state: &Self::State) -> impl Future<Output = Result<Bound>> + Send {
        async { Err(Error::invalid("This service cannot be bound.")) }
    }

    /// Makes a binding that succeeds another; both stay valid. By default a plain bind.
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

    /// Where a user can manage the instance. Pure: it is asked before the first answer.
    fn dashboard_url(&self, _instance: &InstanceId, _spec: &InstanceSpec) -> Option<String> {
        None
    }

    /// How a verb runs.
    fn policy(&self, _verb: Verb, _plan: &PinnedPlan) -> Policy {
        Policy::default()
    }

    /// Refuses before anything is written.
    fn check(&self, _asked: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// The schema of a bind's parameters, where there are any.
    fn bind_schema(&self) -> Option<Value> {
        None
    }

    /// Whether a PUT asks for the instance that is there.
    fn same_instance(&self, there: &InstanceSpec, wanted: &InstanceSpec) -> bool {
        there.same_request(wanted)
    }

    /// Whether a PUT asks for the binding that is there.
    fn same_binding(&self, there: &BindingSpec, wanted: &BindingSpec) -> bool {
        there.same_request(wanted)
    }

    /// Answers a fetch of an instance; `stored` is what the framework would say.
    fn fetch_instance(
        &self,
        _instance: &InstanceId,
        _state: Self::State,
        stored: FetchInstanceResponse,
    ) -> impl Future<Output = Result<FetchInstanceResponse>> + Send {
        async { Ok(stored) }
    }

    /// Answers a fetch of a binding; `stored` is what the framework would say.
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
    /// Makes an instance.
    async fn provision(&self, cx: &Cx, parameters: Parameters) -> Result<Provisioned<AuthorState>>;

    /// Removes an instance.
    async fn deprovision(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()>;

    /// Whether `update` is written.
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

    /// Makes a binding.
    async fn bind(&self, _cx: &Cx, _state: Option<AuthorState>) -> Result<Bound> {
        Err(Error::invalid("This service cannot be bound."))
    }

    /// Makes a binding that succeeds another.
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

    /// Where a user can manage the instance. Pure.
    fn dashboard_url(&self, _instance: &InstanceId, _spec: &InstanceSpec) -> Option<String> {
        None
    }

    /// How a verb runs.
    fn policy(&self, _verb: Verb, _plan: &PinnedPlan) -> Policy {
        Policy::default()
    }

    /// Refuses before anything is written.
    fn check(&self, _asked: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// Schemas for plans that have none in the catalog.
    fn schemas(&self) -> DerivedSchemas {
        DerivedSchemas::default()
    }

    /// Whether a PUT asks for the instance that is there.
    fn same_instance(&self, there: &InstanceSpec, wanted: &InstanceSpec) -> bool {
        there.same_request(wanted)
    }

    /// Whether a PUT asks for the binding that is there.
    fn same_binding(&self, there: &BindingSpec, wanted: &BindingSpec) -> bool {
        there.same_request(wanted)
    }

    /// What runs an instance, by what is remembered of it. Pure; only operators are shown it.
    fn provenance(&self, _state: Option<&AuthorState>) -> Option<Provenance> {
        None
    }

    /// Answers a fetch of an instance; `stored` is what the framework would say.
    async fn fetch_instance(
        &self,
        _instance: &InstanceId,
        _state: Option<AuthorState>,
        stored: FetchInstanceResponse,
    ) -> Result<FetchInstanceResponse> {
        Ok(stored)
    }

    /// Answers a fetch of a binding; `stored` is what the framework would say.
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
    /// Its version, in words of whoever wrote it.
    pub version: Option<String>,
    /// Names its very content.
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

/// A request that could be refused before anything is written.
#[derive(Clone, Copy, Debug)]
pub enum ProposedChange<'a> {
    /// A new instance.
    Provision(&'a InstanceSpec),
    /// A change of an instance.
    Update {
        /// The instance as it is.
        there: &'a InstanceSpec,
        /// The plan it would have.
        to: &'a PinnedPlan,
        /// The parameters that the change names.
        parameters: Option<&'a Parameters>,
        /// Whether it is told to move on to the maintenance version of that plan, and has another.
        upgrades: bool,
    },
    /// An instance that is to leave its plan for another.
    Move {
        /// The plan it has.
        from: &'a PinnedPlan,
        /// The plan it would have.
        to: &'a PinnedPlan,
    },
    /// A new binding.
    Bind(&'a BindingSpec),
}

/// How a verb runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// At once or later.
    pub asynchrony: Asynchrony,
    /// How long it may take in all, retries included.
    pub deadline: Duration,
    /// How many attempts an error marked transient may cost.
    pub attempts_max: u32,
    /// The wait before the second attempt; doubles with each further one, up to five minutes.
    pub backoff: Duration,
    /// What polls are told about when to come again.
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
    /// Always at once.
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

    /// Within this time in all.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// An instance was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Provisioned<S> {
    pub(crate) state: S,
    pub(crate) metadata: Option<InstanceMetadata>,
}

impl<S> Provisioned<S> {
    /// With this state to remember.
    pub fn new(state: S) -> Self {
        Self {
            state,
            metadata: None,
        }
    }

    /// With labels and attributes for the platform.
    #[must_use]
    pub fn metadata(mut self, metadata: InstanceMetadata) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// An instance was changed; the same data as of a new one.
pub type Updated<S> = Provisioned<S>;

/// What an update asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<P> {
    /// All parameters as they will be: the stored ones with the sent ones merged in.
    pub params: P,
    /// Just what the user named in this update.
    pub sent: Parameters,
    /// The plan as it was.
    pub previous_plan: PinnedPlan,
    /// The maintenance version to move to: the one named, or that of a new plan.
    pub maintenance_version: Option<String>,
    /// The maintenance version that the instance has.
    pub previous_maintenance_version: Option<String>,
    /// Whether nothing but the context changes.
    pub context_only: bool,
}

impl<P> Update<P> {
    /// Whether the instance moves on to another maintenance version; the plan of the context is then what the
    /// catalog had when that was asked for. If it fails, the instance stays as it is.
    pub fn upgrades(&self) -> bool {
        let version = &self.maintenance_version;
        version.is_some() && *version != self.previous_maintenance_version
    }
}

/// The binding that a rotation succeeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Predecessor {
    /// Its id.
    pub binding_id: BindingId,
    /// Its own state.
    pub state: Option<AuthorState>,
}

/// A binding was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bound {
    pub(crate) given: BindResponse,
    pub(crate) state: Option<AuthorState>,
}

impl Bound {
    /// With credentials: a JSON object. Anything else is wrapped as `{"value": …}`.
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

    /// Says which endpoints the application will talk to; all of them.
    #[must_use]
    pub fn endpoints(mut self, endpoints: Vec<Endpoint>) -> Self {
        self.given.endpoints = Some(endpoints);
        self
    }

    /// Says when it expires and when to renew it.
    #[must_use]
    pub fn metadata(mut self, metadata: BindingMetadata) -> Self {
        self.given.metadata = Some(metadata);
        self
    }

    /// What to remember of the binding; handed to `unbind` and to a rotation.
    ///
    /// # Errors
    /// The state does not serialise.
    pub fn state<T: Serialize>(mut self, state: &T) -> Result<Self> {
        self.state = Some(AuthorState(serde_json::to_value(state)?));
        Ok(self)
    }
}
