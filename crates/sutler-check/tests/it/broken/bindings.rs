//! Bind, rotate and unbind. Each decision is a plain `if`, in the order of D-06.

use super::answers::{Answer, Refused, accepted, async_required, busy, gone, malformed, refuse};
use super::ask::{Ask, object, optional, required};
use super::catalog::Plan;
use super::instances::{fits, offered, parameters};
use super::state::{Binding, Instance, Kind, Operations, Phase, World};
use serde_json::{Map, Value, json};

pub(crate) fn bind(
    world: &mut World,
    ask: &Ask,
    instance_id: &str,
    id: &str,
) -> Result<Answer, Refused> {
    let body = ask.object()?;
    let predecessor = optional(&body, "predecessor_binding_id")?;
    let named = named(&body, predecessor.is_some())?;
    object(&body, "context")?;
    let resource = object(&body, "bind_resource")?;
    if let Some(Value::Object(resource)) = &resource {
        optional(resource, "app_guid")?;
        optional(resource, "route")?;
    }
    optional(&body, "app_guid")?;
    let mut given = parameters(&body)?;
    if let Some((service_id, plan_id)) = &named {
        offered(world, service_id, plan_id)?;
    }
    let Some(instance) = world.instance(instance_id) else {
        return Err(refuse(404, "There is no such instance."));
    };
    let plan = offered(world, &instance.is.service_id, &instance.is.plan_id)?;
    fits(&plan, "service_binding", "create", given.as_ref())?;
    let wanted = json!({
        "named": named,
        "parameters": given,
        "resource": resource,
        "app": body.get("app_guid"),
        "predecessor": predecessor,
    });
    if let Some(binding) = world.binding(instance_id, id) {
        return again(ask, binding, &wanted);
    }
    belongs(instance, named.as_ref())?;
    if !plan.is_bindable {
        return Err(malformed("Instances of this plan cannot be bound."));
    }
    if let Some(predecessor) = predecessor {
        given = rotated(world, &plan, instance_id, predecessor)?;
    }
    if plan.is_async_bind && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    if instance.phase != Phase::Live {
        return Err(busy());
    }
    Ok(made(world, &plan, (instance_id, id), wanted, given))
}

/// Service and plan; a rotation need not name them.
fn named(body: &Map<String, Value>, rotation: bool) -> Result<Option<(String, String)>, Refused> {
    if rotation && !body.contains_key("service_id") && !body.contains_key("plan_id") {
        return Ok(None);
    }
    let service_id = required(body, "service_id")?.to_owned();
    Ok(Some((service_id, required(body, "plan_id")?.to_owned())))
}

fn belongs(instance: &Instance, named: Option<&(String, String)>) -> Result<(), Refused> {
    match named {
        Some((service_id, plan_id))
            if *service_id != instance.is.service_id || *plan_id != instance.is.plan_id =>
        {
            Err(malformed("The instance is of another service or plan."))
        }
        _ => Ok(()),
    }
}

/// The parameters of the binding that is to be succeeded.
fn rotated(
    world: &World,
    plan: &Plan,
    instance: &str,
    predecessor: &str,
) -> Result<Option<Value>, Refused> {
    if !plan.is_rotatable {
        return Err(malformed("Bindings of this plan cannot be rotated."));
    }
    match world.binding(instance, predecessor) {
        Some(binding) if binding.phase == Phase::Live => Ok(binding.parameters.clone()),
        _ => Err(malformed("There is no such predecessor of this instance.")),
    }
}

/// A bind of something that is there.
fn again(ask: &Ask, binding: &Binding, wanted: &Value) -> Result<Answer, Refused> {
    if binding.wanted != *wanted {
        return Err(refuse(
            409,
            "A binding with this id is there, and it differs.",
        ));
    }
    match binding.phase {
        Phase::Creating if !ask.accepts_incomplete() => Err(async_required()),
        Phase::Creating => Ok(accepted(&binding.operations.running_id())),
        Phase::Live => Ok(Answer::new(200, binding.info.clone())),
        Phase::Updating | Phase::Deleting | Phase::Gone => Err(busy()),
    }
}

fn made(
    world: &mut World,
    plan: &Plan,
    (instance, id): (&str, &str),
    wanted: Value,
    parameters: Option<Value>,
) -> Answer {
    let info = plan.binding_info(&world.mint("secret"));
    let mut operations = Operations::default();
    let mut answer = Answer::new(201, info.clone());
    let mut phase = Phase::Live;
    if plan.is_async_bind {
        let operation = world.mint("bind");
        operations.begin(&operation, Kind::Create);
        answer = accepted(&operation);
        phase = Phase::Creating;
    }
    let binding = Binding {
        phase,
        wanted,
        parameters,
        info,
        operations,
    };
    if let Some(instance) = world.instance_mut(instance) {
        instance.bindings.insert(id.to_owned(), binding);
    }
    answer
}

pub(crate) fn unbind(
    world: &mut World,
    ask: &Ask,
    instance_id: &str,
    id: &str,
) -> Result<Answer, Refused> {
    let asked = ask.query("service_id").zip(ask.query("plan_id"));
    let asked = asked.and_then(|(service_id, plan_id)| world.plan(service_id, plan_id));
    if asked.is_some_and(|plan| plan.is_async_bind) && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    let Some(binding) = world.binding(instance_id, id) else {
        return Err(gone());
    };
    let service_id = ask.required_query("service_id")?.to_owned();
    let plan_id = ask.required_query("plan_id")?.to_owned();
    let phase = binding.phase;
    let running = binding.operations.running_id();
    let Some(instance) = world.instance(instance_id) else {
        return Err(gone());
    };
    belongs(instance, Some(&(service_id.clone(), plan_id.clone())))?;
    let plan = offered(world, &service_id, &plan_id)?;
    if phase == Phase::Deleting {
        return Ok(accepted(&running));
    }
    if instance.phase != Phase::Live {
        return Err(busy());
    }
    if !plan.is_async_bind {
        if let Some(instance) = world.instance_mut(instance_id) {
            instance.bindings.remove(id);
        }
        return Ok(Answer::new(200, json!({})));
    }
    let operation = world.mint("unbind");
    if let Some(binding) = world.binding_mut(instance_id, id) {
        binding.operations.halt();
        binding.operations.begin(&operation, Kind::Delete);
        binding.phase = Phase::Deleting;
    }
    Ok(accepted(&operation))
}

/// What the end of an operation makes of a binding.
pub(crate) fn ended(binding: &mut Binding, kind: Kind) {
    binding.phase = match kind {
        Kind::Create | Kind::Update => Phase::Live,
        Kind::Delete => Phase::Gone,
    };
}
