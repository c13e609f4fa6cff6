//! Update: the changes, whether they are allowed, and whether the update is asynchronous.

use super::answers::{Answer, RefusalAnswer, accepted, async_required, busy, refuse};
use super::flaws_instances;
use super::instances::{fits, maintained, offered, parameters};
use super::request::{BrokerRequest, object, optional, required};
use super::state::{BrokerState, Kind, Phase, RequestedState};
use serde_json::{Map, Value, json};

pub(crate) fn update(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let decided = updated(world, ask, id);
    if let Err(refused) = &decided {
        let case = "update-refused-changes-nothing";
        flaws_instances::touch(world, id, case, refused.status);
    }
    decided
}

fn updated(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let body = ask.object()?;
    let service_id = required(&body, "service_id")?;
    let plan_id = optional(&body, "plan_id")?;
    for name in ["context", "previous_values", "maintenance_info"] {
        object(&body, name)?;
    }
    let changes = parameters(&body)?;
    if let Some(plan_id) = plan_id {
        offered(world, service_id, plan_id)?;
    }
    let Some(instance) = world.instance(id) else {
        return Err(refuse(404, "There is no such instance."));
    };
    let old = offered(world, &instance.is.service_id, &instance.is.plan_id)?;
    if instance.is.service_id != service_id {
        return Err(refuse(400, "The instance is of another service."));
    }
    let plan = offered(world, service_id, plan_id.unwrap_or(&instance.is.plan_id))?;
    fits(&plan, "service_instance", "update", changes.as_ref())?;
    match instance.phase {
        Phase::Updating if running_is(instance.update.as_ref(), &body) => {
            return if world.flaws.has("update-repeat-running") {
                Ok(accepted("another"))
            } else if ask.accepts_incomplete() {
                Ok(accepted(&instance.operations.running_id()))
            } else {
                Err(async_required())
            };
        }
        Phase::Live => {}
        Phase::Creating | Phase::Updating | Phase::Deleting | Phase::Gone => return Err(busy()),
    }
    if plan.id() != old.id() && !old.is_updateable {
        return Err(refuse(422, "The plan of this instance cannot be changed."));
    }
    maintained(&plan, &body)?;
    let is_context_only = plan_id.is_none() && changes.is_none();
    if world
        .flaws
        .has_variant("supports updates of the context only")
        && !is_context_only
    {
        return Err(refuse(422, "Instances cannot be changed."));
    }
    if plan.is_async && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    let becomes = becomes(world, &instance.is, plan.id(), &body, changes);
    let operation = plan.is_async.then(|| world.mint("update"));
    let Some(instance) = world.instance_mut(id) else {
        return Err(refuse(404, "There is no such instance."));
    };
    match operation {
        None => {
            instance.is = becomes;
            Ok(Answer::new(200, json!({})))
        }
        Some(operation) => {
            instance.operations.begin(&operation, Kind::Update);
            instance.phase = Phase::Updating;
            instance.update = Some((Value::Object(body), becomes));
            Ok(accepted(&operation))
        }
    }
}

/// The state after an update.
fn becomes(
    world: &BrokerState,
    is: &RequestedState,
    plan_id: &str,
    body: &Map<String, Value>,
    changes: Option<Value>,
) -> RequestedState {
    if world.flaws.has("update-applied") {
        return is.clone();
    }
    let mut becomes = is.clone();
    plan_id.clone_into(&mut becomes.plan_id);
    if !body.contains_key("plan_id") && world.flaws.has("update-keeps-plan") {
        becomes.plan_id = flaws_instances::another_plan(world, is).unwrap_or_default();
    }
    if changes.is_none() && world.flaws.has("update-keeps-parameters") {
        becomes.parameters = Some(json!({}));
        return becomes;
    }
    becomes.parameters = merged(becomes.parameters, changes);
    becomes
}

fn running_is<T>(running: Option<&(Value, T)>, body: &Map<String, Value>) -> bool {
    running.is_some_and(|(requested, _)| requested.as_object() == Some(body))
}

/// The parameters with the changes applied.
fn merged(known: Option<Value>, changes: Option<Value>) -> Option<Value> {
    match (known, changes) {
        (Some(Value::Object(mut known)), Some(Value::Object(changes))) => {
            known.extend(changes);
            Some(Value::Object(known))
        }
        (known, None) => known,
        (_, changes) => changes,
    }
}
