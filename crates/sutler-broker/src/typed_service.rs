//! Adapts [`Service`] to [`UntypedService`]: deserialises parameters and state, serialises results.

use crate::error::{Error, Result};
use crate::hook_context::Cx;
use crate::lifecycle::binding::BindingSpec;
use crate::lifecycle::instance::InstanceSpec;
use crate::lifecycle::{AuthorState, Verb};
use crate::refusal::Refusal;
use crate::service::{
    Bound, DerivedSchemas, Policy, Predecessor, ProposedChange, Provisioned, Service,
    UntypedService, Update, Updated,
};
use async_trait::async_trait;
use serde_json::Value;
use sutler_osb::{
    BindingId, FetchBindingResponse, FetchInstanceResponse, InstanceId, Parameters, PinnedPlan,
};

/// A typed service behind the untyped trait.
pub(crate) struct TypedService<S>(pub S);

fn read_params<S: Service>(parameters: Parameters) -> Result<S::Params> {
    // The schema was enforced before, so an error here is a mismatch of type and schema. Serde's message may
    // quote a value, and a value may be a secret, so the message is dropped.
    serde_json::from_value(Value::Object(parameters.0))
        .map_err(|_| Error::invalid("The parameters do not fit this service."))
}

fn read_state<S: Service>(state: AuthorState) -> Result<S::State> {
    serde_json::from_value(state.0).map_err(|_| {
        let cause = "the stored state does not fit the service's State type";
        Error::failed("The stored state of the service instance cannot be read.").because(cause)
    })
}

fn needed_state<S: Service>(state: Option<AuthorState>) -> Result<S::State> {
    let state = state.ok_or_else(|| Error::failed("The service instance has no stored state."))?;
    read_state::<S>(state)
}

fn write_state<T: serde::Serialize>(made: Provisioned<T>) -> Result<Provisioned<AuthorState>> {
    let state = AuthorState(serde_json::to_value(&made.state)?);
    Ok(Provisioned {
        state,
        metadata: made.metadata,
    })
}

#[async_trait]
impl<S: Service> UntypedService for TypedService<S> {
    async fn provision(&self, cx: &Cx, parameters: Parameters) -> Result<Provisioned<AuthorState>> {
        let params = read_params::<S>(parameters)?;
        write_state(self.0.provision(cx, params).await?)
    }

    async fn deprovision(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        let state = state.map(read_state::<S>).transpose()?;
        self.0.deprovision(cx, state).await
    }

    fn updates(&self) -> bool {
        S::UPDATES
    }

    async fn update(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        update: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        let state = needed_state::<S>(state)?;
        let update = Update {
            params: read_params::<S>(update.params)?,
            sent: update.sent,
            previous_plan: update.previous_plan,
            maintenance_version: update.maintenance_version,
            previous_maintenance_version: update.previous_maintenance_version,
            context_only: update.context_only,
        };
        write_state(self.0.update(cx, state, update).await?)
    }

    async fn bind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<Bound> {
        self.0.bind(cx, &needed_state::<S>(state)?).await
    }

    async fn rotate(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        predecessor: Predecessor,
    ) -> Result<Bound> {
        self.0
            .rotate(cx, &needed_state::<S>(state)?, predecessor)
            .await
    }

    async fn unbind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<()> {
        self.0.unbind(cx, &needed_state::<S>(state)?).await
    }

    fn dashboard_url(&self, instance: &InstanceId, spec: &InstanceSpec) -> Option<String> {
        self.0.dashboard_url(instance, spec)
    }

    fn policy(&self, verb: Verb, plan: &PinnedPlan) -> Policy {
        self.0.policy(verb, plan)
    }

    fn check(&self, change: &ProposedChange<'_>) -> std::result::Result<(), Refusal> {
        self.0.check(change)
    }

    fn same_instance(&self, there: &InstanceSpec, wanted: &InstanceSpec) -> bool {
        self.0.same_instance(there, wanted)
    }

    fn same_binding(&self, there: &BindingSpec, wanted: &BindingSpec) -> bool {
        self.0.same_binding(there, wanted)
    }

    async fn fetch_instance(
        &self,
        instance: &InstanceId,
        state: Option<AuthorState>,
        stored: FetchInstanceResponse,
    ) -> Result<FetchInstanceResponse> {
        self.0
            .fetch_instance(instance, needed_state::<S>(state)?, stored)
            .await
    }

    async fn fetch_binding(
        &self,
        instance: &InstanceId,
        binding: &BindingId,
        stored: FetchBindingResponse,
    ) -> Result<FetchBindingResponse> {
        self.0.fetch_binding(instance, binding, stored).await
    }

    fn schemas(&self) -> DerivedSchemas {
        let params = sutler_schema::derived_schema::<S::Params>();
        DerivedSchemas {
            update: S::UPDATES.then(|| without_required(params.clone())),
            provision: Some(params),
            bind: self.0.bind_schema(),
        }
    }
}

/// An update contains changes only, so no property is required.
fn without_required(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("required");
    }
    schema
}
