//! Reads: instances, bindings, and the state of their operations.

use super::answers::{Answer, RefusalAnswer, busy, gone, malformed, refuse};
use super::request::BrokerRequest;
use super::state::{BrokerState, Kind, Operation, Phase, Progress};
use super::{Era, bindings, flaws_bindings, instances};
use serde_json::{Value, json};

pub(crate) fn instance(
    world: &BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    hints(ask)?;
    let missing = || refuse(404, "There is no such instance.");
    let instance = world.instance(id).ok_or_else(missing)?;
    match instance.phase {
        Phase::Creating | Phase::Gone => return Err(missing()),
        Phase::Updating
            if !world
                .flaws
                .has_variant("shows instances while they are updated") =>
        {
            return Err(busy());
        }
        Phase::Updating | Phase::Live | Phase::Deleting => {}
    }
    let plan = instances::offered(world, &instance.is.service_id, &instance.is.plan_id)?;
    if !plan.are_instances_retrievable {
        return Err(missing());
    }
    let mut answer = Answer::new(
        200,
        json!({
            "service_id": instance.is.service_id,
            "plan_id": instance.is.plan_id,
            "parameters": instance.is.parameters.clone().unwrap_or_else(|| json!({})),
        }),
    );
    if let Some(url) = plan.dashboard(id) {
        answer.set("dashboard_url", Value::String(url));
    }
    if let Some(maintenance) = plan.raw.get("maintenance_info") {
        answer.set("maintenance_info", maintenance.clone());
    }
    Ok(answer)
}

pub(crate) fn binding(
    world: &BrokerState,
    ask: &BrokerRequest,
    instance: &str,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    hints(ask)?;
    let missing = || refuse(404, "There is no such binding.");
    let binding = world.binding(instance, id).ok_or_else(missing)?;
    let its = world.instance(instance).ok_or_else(missing)?;
    let plan = instances::offered(world, &its.is.service_id, &its.is.plan_id)?;
    let too_early = binding.phase == Phase::Creating && !world.flaws.has("binding-fetch-running");
    if too_early || !plan.are_bindings_retrievable {
        return Err(missing());
    }
    let mut answer = Answer::new(200, binding.info.clone());
    let parameters = binding.parameters.clone();
    answer.set("parameters", parameters.unwrap_or_else(|| json!({})));
    Ok(answer)
}

pub(crate) fn instance_operation(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let operation = polled(ask)?;
    let era = world.era;
    let forgets = world.flaws.has("last-operation-again");
    let forgets_deletes = world.flaws.has("last-operation-deleted");
    let is_strict = world.flaws.has("last-operation-old-plan");
    let missing = || refuse(404, "There is no such instance.");
    let instance = world.instances.get_mut(id).ok_or_else(missing)?;
    if is_strict
        && ask
            .query("plan_id")
            .is_some_and(|it| it != instance.is.plan_id)
    {
        return Err(missing());
    }
    let Some((operation, ended)) = instance.operations.poll(operation) else {
        return Ok(Answer::new(200, json!({ "state": "succeeded" })));
    };
    let is_forgotten = forgets || forgets_deletes && operation.kind == Kind::Delete;
    if is_forgotten && !ended && operation.progress == Progress::Succeeded {
        return Err(missing());
    }
    if ended {
        instances::ended(instance, operation.kind);
    }
    state(&operation, era)
}

pub(crate) fn binding_operation(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    instance: &str,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let operation = polled(ask)?;
    let era = world.era;
    let flaws = world.flaws.clone();
    let missing = || refuse(404, "There is no such binding.");
    let instance = world.instance_mut(instance).ok_or_else(missing)?;
    let binding = instance.bindings.get_mut(id).ok_or_else(missing)?;
    let Some((operation, ended)) = binding.operations.poll(operation) else {
        return Ok(Answer::new(200, json!({ "state": "succeeded" })));
    };
    if ended {
        bindings::ended(binding, operation.kind);
    } else if operation.progress == Progress::Succeeded
        && flaws_bindings::forgets(&flaws, operation.kind)
    {
        return Err(missing());
    }
    state(&operation, era)
}

fn state(operation: &Operation, era: Era) -> Result<Answer, RefusalAnswer> {
    let deleted = operation.kind == Kind::Delete && operation.progress == Progress::Succeeded;
    if deleted && era == Era::Compat {
        return Err(gone());
    }
    let (state, description) = match operation.progress {
        Progress::Running => ("in progress", "It goes on."),
        Progress::Succeeded => ("succeeded", "It is done."),
        Progress::Failed => ("failed", "Something else took its place."),
    };
    let body = json!({ "state": state, "description": description });
    // No wait: operations end by being polled.
    Ok(Answer::new(200, body).header("retry-after", "0"))
}

/// Service and plan are hints: any value is accepted, but not an empty one.
fn hints(ask: &BrokerRequest) -> Result<(), RefusalAnswer> {
    for name in ["service_id", "plan_id"] {
        if ask.query(name) == Some("") {
            return Err(malformed(&format!("{name} must not be empty.")));
        }
    }
    Ok(())
}

/// The requested operation, if any.
fn polled(ask: &BrokerRequest) -> Result<Option<&str>, RefusalAnswer> {
    hints(ask)?;
    match ask.query("operation") {
        Some("") => Err(malformed("operation must not be empty.")),
        operation => Ok(operation),
    }
}
