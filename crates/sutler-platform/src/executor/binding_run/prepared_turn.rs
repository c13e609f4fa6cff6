//! What the turn of an intent of a binding depends on: its instance, other operations of it, and the request.
//!
//! A request is built once and kept with the operation: a repeated attempt sends the same bytes. Only a delete that goes on
//! with another generation, and a bind that has to name an application, have another request after that.

use super::{BindingRun, BoundInstance};
use crate::broker_request::{BindRequest, BindTarget, Predecessor, bind_body, unbind_ids};
use crate::executor::Takeovers;
use crate::executor::instance_run::{plan_ids, plan_of};
use crate::executor::request_material::{Obstacle, RequestMaterial, request_builder};
use crate::executor::run_error::RunError;
use crate::lifecycle::binding::{
    BindChange, Binding, IntentChange, PendingIntent, PreparedTurn, TargetResource,
};
use crate::lifecycle::instance::Instance;
use crate::lifecycle::intent::{IntentState, UnknownQuestion};
use crate::records::PreparedRequest;
use sutler_client::RequestBuilder;
use sutler_client::wire::Request;
use sutler_osb::BindingId;

/// The subject of the next request of an intent.
enum RequestSubject<'b> {
    /// This bind.
    Bind(&'b BindChange),
    /// The unbind of this generation.
    Unbind(&'b BindingId),
}

impl BindingRun<'_> {
    /// What is known when the operation has its turn.
    pub(super) async fn prepare(
        &mut self,
        binding: &Binding,
        intent: &PendingIntent,
        bound: &BoundInstance,
    ) -> Result<PreparedTurn, RunError> {
        if matches!(intent.state, IntentState::Sending { .. }) {
            return Ok(match self.takeovers {
                Takeovers::Few => PreparedTurn::TakenOver,
                Takeovers::TooMany => PreparedTurn::TakenOverTooOften,
            });
        }
        if bound.instance.tombstone.is_some() {
            return Ok(PreparedTurn::InstanceGone);
        }
        if self.takeovers == Takeovers::TooMany {
            return Ok(PreparedTurn::TakenOverTooOften);
        }
        let Some(subject) = next_request(binding, intent) else {
            return Ok(PreparedTurn::Ready);
        };
        if let Some(obstacle) = self.instance_obstacle(intent, bound) {
            return Ok(obstacle);
        }
        if self.own.progress.prepared.is_some() {
            return Ok(PreparedTurn::Ready);
        }
        let request = match self.build(binding, intent, subject, bound).await? {
            Ok(request) => request,
            Err(Obstacle::Unresolved(sentence)) => return Ok(PreparedTurn::Unresolved(sentence)),
            Err(Obstacle::Unfit(sentences)) => return Ok(PreparedTurn::Unfit(sentences)),
        };
        match PreparedRequest::of(&request) {
            Ok(prepared) => {
                self.own.progress.digest = Some(prepared.digest());
                self.own.progress.prepared = Some(prepared);
                Ok(PreparedTurn::Ready)
            }
            Err(error) => Ok(PreparedTurn::Unfit(vec![error.to_string()])),
        }
    }

    /// Why the instance admits no request now.
    fn instance_obstacle(
        &self,
        intent: &PendingIntent,
        bound: &BoundInstance,
    ) -> Option<PreparedTurn> {
        let instance = &bound.instance;
        let is_queued = matches!(intent.state, IntentState::Queued { .. });
        if is_queued && intent.change.bind().is_some() && !can_be_bound(instance) {
            return Some(PreparedTurn::InstanceNotReady);
        }
        // A delete of the instance waits for its bindings, and polls nothing below it until then.
        let is_busy = instance.is_busy() && instance.deletion.is_none();
        let now = self.context.records.now();
        (is_busy && bound.view.is_serialized(now)).then_some(PreparedTurn::InstanceBusy)
    }

    async fn build(
        &mut self,
        binding: &Binding,
        intent: &PendingIntent,
        subject: RequestSubject<'_>,
        bound: &BoundInstance,
    ) -> Result<Result<Request, Obstacle>, RunError> {
        let builder = request_builder(intent.operation, &intent.author, &bound.view);
        match subject {
            RequestSubject::Unbind(osb_id) => {
                let ids = unbind_ids(&plan_ids(&bound.instance));
                Ok(Ok(builder.unbind(&bound.instance.osb_id, osb_id, &ids)))
            }
            RequestSubject::Bind(bind) => {
                let ids = plan_ids(&bound.instance);
                let catalog = &bound.view.catalog;
                catalog.prepare_schemas(&ids.service_id, &ids.plan_id).await;
                let sources = binding.spec.parameter_sources.iter();
                let namespace = &binding.namespace;
                let material = RequestMaterial::read(self.context, namespace, sources).await?;
                if let Ok(material) = &material {
                    self.read_secrets = material.read_secrets();
                }
                Ok(material
                    .and_then(|material| build_bind(binding, bind, bound, &material, &builder)))
            }
        }
    }
}

/// What the next request of an intent is about; `None`: its turn sends none.
fn next_request<'b>(binding: &'b Binding, intent: &'b PendingIntent) -> Option<RequestSubject<'b>> {
    match &intent.state {
        IntentState::Queued { .. }
        | IntentState::Unknown {
            question: UnknownQuestion::SendAgain,
        } => {}
        IntentState::Unknown {
            question: UnknownQuestion::LookFirst,
        }
        | IntentState::Polling { .. }
        | IntentState::Sending { .. }
        | IntentState::OnHold(_)
        | IntentState::Suspended => return None,
    }
    match &intent.change {
        IntentChange::Bind(bind) => Some(RequestSubject::Bind(bind)),
        IntentChange::Unbind(osb_id) => Some(RequestSubject::Unbind(osb_id)),
        IntentChange::Delete => binding.unbound_next().map(RequestSubject::Unbind),
    }
}

/// Whether the broker confirmed the instance, and it can be used and stays (T-80, T-81).
fn can_be_bound(instance: &Instance) -> bool {
    instance.confirmed().is_some() && instance.deletion.is_none() && instance.usable
}

fn build_bind(
    binding: &Binding,
    bind: &BindChange,
    bound: &BoundInstance,
    material: &RequestMaterial,
    builder: &RequestBuilder,
) -> Result<Request, Obstacle> {
    let (instance, view) = (&bound.instance, &bound.view);
    let ids = plan_ids(instance);
    let spec = &binding.spec;
    let resolved = material.resolve(spec.parameters.as_map(), &spec.parameter_sources)?;
    if let Some(schemas) = view.catalog.schemas(&ids.service_id, &ids.plan_id) {
        schemas.check_bind(&resolved).map_err(Obstacle::unfit)?;
    }
    let plan = plan_of(view, instance);
    let predecessor = plan.as_deref().zip(bind.predecessor.as_ref());
    let body = bind_body(&BindRequest {
        plan: &ids,
        target: match &spec.target {
            TargetResource::Credentials => BindTarget::Credentials,
            TargetResource::Application => BindTarget::Application,
            TargetResource::Route(route) => BindTarget::Route(route),
        },
        parameters: &resolved,
        predecessor: predecessor.and_then(|(plan, replaced)| Predecessor::new(plan, replaced)),
        namespace: material.namespace(view)?,
    });
    let request = builder.bind(&instance.osb_id, &bind.osb_id, &body);
    request.map_err(Obstacle::unfit)
}
