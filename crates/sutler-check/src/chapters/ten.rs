//! The ten endpoints, asked about things that are not there: what holds for every request is asked
//! of each of them. Takes no decisions.

use crate::asker::{Stop, dressed};
use crate::exchange::Exchange;
use crate::ledger::{BindingId, InstanceId};
use crate::stage::{Stage, with_incomplete};
use crate::target::Target;
use serde_json::json;
use std::sync::Arc;
use sutler_client::wire::{Method, Request};

/// Asks all ten, each request altered, and gives the answers in order: fewer, if the broker does not
/// want to be asked so often. Whatever a PUT makes all the same is in the ledger.
pub(super) async fn ask(
    stage: &Stage,
    alter: impl Fn(Request) -> Request,
) -> Result<Vec<Arc<Exchange>>, Stop> {
    let instance = InstanceId::new();
    let binding = BindingId::new(&instance);
    let mut answers = Vec::new();
    for (target, request) in requests(stage, &instance, &binding) {
        let is_put = request.method == Method::Put;
        let made = target.filter(|_| is_put).map(Target::made);
        if let Some(made) = &made {
            stage.asker.ledger.may_exist(made.clone(), stage.owner());
        }
        let answer = stage.asker.ask_bare(alter(dressed(request))).await?;
        // Who is refused has made nothing; `refusal-changes-nothing` holds brokers to it.
        if let Some(made) = made.filter(|_| answer.is(&[400, 401, 412, 429])) {
            stage.asker.ledger.is_gone(&made);
        }
        let is_enough = answer.is(&[429]);
        answers.push(answer);
        if is_enough {
            break;
        }
    }
    Ok(answers)
}

/// The catalog first, and nothing that would be refused for what is in it.
fn requests<'a>(
    stage: &Stage,
    instance: &'a InstanceId,
    binding: &'a BindingId,
) -> Vec<(Option<Target<'a>>, Request)> {
    let owner = stage.owner();
    let ids = json!({ "service_id": owner.service_id, "plan_id": owner.plan_id });
    let (instance, binding) = (Target::Instance(instance), Target::Binding(binding));
    let change = instance.request(Method::Patch);
    let mut all = vec![(None, Request::new(Method::Get, &["v2", "catalog"]))];
    let provision = stage.provision_body().to_string();
    for (target, body) in [(instance, provision), (binding, ids.to_string())] {
        let put = target.request(Method::Put).body(body);
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
