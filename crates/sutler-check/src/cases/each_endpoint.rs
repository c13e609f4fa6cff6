//! Requests to each of the ten endpoints, for rules that hold for every request. Makes no decisions.

use crate::client::{StopReason, with_headers};
use crate::created::{BindingId, InstanceId};
use crate::exchange::Exchange;
use crate::plan_run::{PlanRun, with_incomplete};
use crate::target::Target;
use serde_json::json;
use std::sync::Arc;
use sutler_client::wire::{Method, Request};

/// Sends one altered request to each endpoint and returns the answers in order: fewer, if the broker
/// limits the rate. Resources that a PUT may create are recorded in `created.rs`.
pub(super) async fn ask(
    run: &PlanRun,
    alter: impl Fn(Request) -> Request,
) -> Result<Vec<Arc<Exchange>>, StopReason> {
    let instance = InstanceId::new();
    let binding = BindingId::new(&instance);
    let mut answers = Vec::new();
    for (target, request) in requests(run, &instance, &binding) {
        let is_put = request.method == Method::Put;
        let made = target.filter(|_| is_put).map(Target::made);
        if let Some(made) = &made {
            run.client.created.may_exist(made.clone(), run.owner());
        }
        let answer = run.client.ask_bare(alter(with_headers(request))).await?;
        // A refused request has created nothing; `provision-refused-makes-nothing` checks that.
        let is_refused = answer.status().is_some_and(|it| (400..500).contains(&it));
        if let Some(made) = made.filter(|_| is_refused) {
            run.client.created.is_gone(&made);
        }
        let is_enough = answer.is(&[429]);
        answers.push(answer);
        if is_enough {
            break;
        }
    }
    Ok(answers)
}

/// Whether it is the provision, whose body is refused in any case.
pub(super) fn is_provision(answer: &Exchange) -> bool {
    answer.request.method == Method::Put && answer.request.path.len() == 3
}

/// The catalog first, and nothing that creates a resource: a broker without authentication must not
/// work for hours. The provision names no service, so its 400 proves nothing.
fn requests<'a>(
    run: &PlanRun,
    instance: &'a InstanceId,
    binding: &'a BindingId,
) -> Vec<(Option<Target<'a>>, Request)> {
    let owner = run.owner();
    let ids = json!({ "service_id": owner.service_id, "plan_id": owner.plan_id });
    let (instance, binding) = (Target::Instance(instance), Target::Binding(binding));
    let change = instance.request(Method::Patch);
    let mut all = vec![(None, Request::new(Method::Get, &["v2", "catalog"]))];
    let mut nothing = run.provision_body();
    nothing["service_id"] = json!("");
    for (target, body) in [(instance, &nothing), (binding, &ids)] {
        let put = target.request(Method::Put).body(body.to_string());
        all.push((Some(target), with_incomplete(put, true)));
        all.push((Some(target), target.request(Method::Get)));
        all.push((Some(target), target.poll(&owner, None)));
        let delete = with_incomplete(target.delete(&owner), true);
        all.push((Some(target), delete));
    }
    let change = change.body(ids.to_string());
    all.push((Some(instance), with_incomplete(change, true)));
    all
}
