//! Provision and deprovision. Each decision is a plain `if`, in the order of D-06.

use super::answers::{
    Answer, RefusalAnswer, accepted, async_required, busy, coded, gone, malformed, refuse,
};
use super::catalog::Plan;
use super::flaws_instances;
use super::request::{BrokerRequest, object, required};
use super::state::{BrokerState, Instance, Kind, Operations, Phase, RequestedState};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) fn provision(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let body = ask.object()?;
    let wanted = wanted(&body)?;
    let decided = provisioned(world, ask, id, wanted.clone());
    if let Err(refused) = &decided {
        flaws_instances::leave(world, id, Some(&wanted), refused);
        if refused.status == 409 {
            let case = "provision-conflict-changes-nothing";
            flaws_instances::touch(world, id, case, refused.status);
        }
    }
    decided
}

fn provisioned(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
    wanted: RequestedState,
) -> Result<Answer, RefusalAnswer> {
    let body = ask.object()?;
    let plan = offered(world, &wanted.service_id, &wanted.plan_id)?;
    fits(
        &plan,
        "service_instance",
        "create",
        wanted.parameters.as_ref(),
    )?;
    if let Some(instance) = world.instance(id) {
        return again(world, &plan, ask, (id, instance), &wanted);
    }
    maintained(&plan, &body)?;
    if plan.is_async && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    let mut operations = Operations::default();
    let mut answer = Answer::new(201, json!({}));
    let mut phase = Phase::Live;
    if plan.is_async {
        let operation = world.mint("provision");
        operations.begin(&operation, Kind::Create);
        answer = accepted(&operation);
        phase = Phase::Creating;
    }
    if let Some(url) = plan.dashboard(id) {
        answer.set("dashboard_url", Value::String(url));
    }
    let instance = Instance {
        phase,
        is: wanted,
        update: None,
        operations,
        bindings: BTreeMap::new(),
    };
    world.instances.insert(id.to_owned(), instance);
    Ok(answer)
}

/// A provision of an existing instance.
fn again(
    world: &BrokerState,
    plan: &Plan,
    ask: &BrokerRequest,
    (id, instance): (&str, &Instance),
    wanted: &RequestedState,
) -> Result<Answer, RefusalAnswer> {
    let overlooked = flaws_instances::overlooks(world, &instance.is, wanted, instance.phase);
    if instance.is != *wanted && !overlooked {
        return Err(refuse(
            409,
            "An instance with this id is there, and it differs.",
        ));
    }
    let mut answer = match instance.phase {
        Phase::Creating if !ask.accepts_incomplete() => return Err(async_required()),
        Phase::Creating if world.flaws.has("provision-repeat-running") => accepted("another"),
        Phase::Creating => accepted(&instance.operations.running_id()),
        Phase::Live => Answer::new(200, json!({})),
        Phase::Updating | Phase::Deleting | Phase::Gone => return Err(busy()),
    };
    if let Some(url) = plan.dashboard(id) {
        answer.set("dashboard_url", Value::String(url));
    }
    Ok(answer)
}

pub(crate) fn deprovision(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let service_id = ask.required_query("service_id")?;
    let plan_id = ask.required_query("plan_id")?;
    let requested = world.plan(service_id, plan_id);
    if requested.is_some_and(|plan| plan.is_async) && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    let Some(instance) = world.instance(id) else {
        return Err(gone());
    };
    if instance.is.service_id != service_id || instance.is.plan_id != plan_id {
        return Err(malformed("The instance is of another service or plan."));
    }
    let plan = offered(world, service_id, plan_id)?;
    let instance = world.instance(id).ok_or_else(gone)?;
    match instance.phase {
        Phase::Deleting if world.flaws.has("deprovision-repeat-running") => {
            return Ok(accepted("another"));
        }
        Phase::Deleting => return Ok(accepted(&instance.operations.running_id())),
        Phase::Updating => return Err(busy()),
        Phase::Creating if world.flaws.has("deprovision-during-provision") => {
            return Err(refuse(409, "It is not there yet."));
        }
        Phase::Creating if world.flaws.has("deprovision-halts-provision") => {
            return Ok(Answer::new(200, json!({})));
        }
        Phase::Creating | Phase::Live | Phase::Gone => {}
    }
    if !plan.is_async {
        world.instances.remove(id);
        return Ok(Answer::new(200, json!({})));
    }
    let operation = world.mint("deprovision");
    if let Some(instance) = world.instance_mut(id) {
        instance.operations.halt();
        instance.operations.begin(&operation, Kind::Delete);
        instance.phase = Phase::Deleting;
    }
    Ok(accepted(&operation))
}

/// Applies the end of an operation to an instance.
pub(crate) fn ended(instance: &mut Instance, kind: Kind) {
    match kind {
        Kind::Create => instance.phase = Phase::Live,
        Kind::Update => {
            instance.phase = Phase::Live;
            if let Some((_, becomes)) = instance.update.take() {
                instance.is = becomes;
            }
        }
        Kind::Delete => {
            instance.phase = Phase::Gone;
            instance.bindings.clear();
        }
    }
}

fn wanted(body: &Map<String, Value>) -> Result<RequestedState, RefusalAnswer> {
    let wanted = RequestedState {
        service_id: required(body, "service_id")?.to_owned(),
        plan_id: required(body, "plan_id")?.to_owned(),
        organization_guid: required(body, "organization_guid")?.to_owned(),
        space_guid: required(body, "space_guid")?.to_owned(),
        parameters: parameters(body)?,
    };
    object(body, "context")?;
    object(body, "maintenance_info")?;
    Ok(wanted)
}

/// The parameters; absent and empty ones are the same.
pub(crate) fn parameters(body: &Map<String, Value>) -> Result<Option<Value>, RefusalAnswer> {
    let given = object(body, "parameters")?;
    Ok(given.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())))
}

/// The plan, if it is offered.
pub(crate) fn offered(
    world: &BrokerState,
    service_id: &str,
    plan_id: &str,
) -> Result<Plan, RefusalAnswer> {
    world
        .plan(service_id, plan_id)
        .ok_or_else(|| malformed("There is no such service or plan in the catalog."))
}

/// Validates parameters against the schema of the plan.
pub(crate) fn fits(
    plan: &Plan,
    of: &str,
    verb: &str,
    parameters: Option<&Value>,
) -> Result<(), RefusalAnswer> {
    let schema = &plan.raw["schemas"][of][verb]["parameters"];
    if schema.is_null() {
        return Ok(());
    }
    let none = json!({});
    if jsonschema::is_valid(schema, parameters.unwrap_or(&none)) {
        Ok(())
    } else {
        Err(malformed(
            "The parameters do not fit the schema of the plan.",
        ))
    }
}

/// A given maintenance version must be the plan's.
pub(crate) fn maintained(plan: &Plan, body: &Map<String, Value>) -> Result<(), RefusalAnswer> {
    let Some(version) = body
        .get("maintenance_info")
        .and_then(|it| it.get("version"))
    else {
        return Ok(());
    };
    if plan.raw["maintenance_info"]["version"] == *version {
        Ok(())
    } else {
        Err(coded(
            "MaintenanceInfoConflict",
            "The catalog has another version for this plan; fetch it again.",
        ))
    }
}
