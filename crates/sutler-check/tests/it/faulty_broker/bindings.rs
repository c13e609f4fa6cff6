//! Bind, rotate and unbind. Each decision is a plain `if`, in the order of D-06.

use super::Flaws;
use super::answers::{
    Answer, RefusalAnswer, accepted, async_required, busy, coded, gone, malformed, refuse,
};
use super::catalog::Plan;
use super::flaws_bindings;
use super::instances::{fits, offered, parameters};
use super::request::{BrokerRequest, object, optional, required};
use super::state::{Binding, BrokerState, Instance, Kind, Operations, Phase};
use serde_json::{Map, Value, json};

pub(crate) fn bind(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    instance_id: &str,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let answer = decided(world, ask, instance_id, id);
    if answer.is_err() {
        flaws_bindings::make_anyway(world, instance_id, id);
    }
    answer
}

fn decided(
    world: &mut BrokerState,
    ask: &BrokerRequest,
    instance_id: &str,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
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
    if !world.flaws.has("bind-invalid-parameters") {
        fits(&plan, "service_binding", "create", given.as_ref())?;
    }
    let wanted = json!({
        "named": named,
        "parameters": given,
        "resource": resource,
        "app": body.get("app_guid"),
        "predecessor": predecessor,
    });
    if let Some(binding) = world.binding(instance_id, id) {
        return again(&world.flaws, ask, binding, &wanted);
    }
    belongs(instance, named.as_ref())?;
    if !plan.is_bindable && !world.flaws.has("bind-not-bindable") {
        return Err(malformed("Instances of this plan cannot be bound."));
    }
    let ignores = world
        .flaws
        .has_variant("ignores predecessors where it does not rotate");
    if let Some(predecessor) = predecessor
        && (plan.is_rotatable || !ignores)
    {
        given = rotated(world, &plan, instance_id, predecessor)?;
    }
    if plan.needs_app && !names_app(&body) {
        return Err(coded("RequiresApp", "Name the application in app_guid."));
    }
    if plan.is_async_bind && !ask.accepts_incomplete() {
        return Err(async_required());
    }
    if instance.phase != Phase::Live {
        return Err(busy());
    }
    let crowded = instance
        .bindings
        .values()
        .any(|it| it.phase == Phase::Creating);
    if crowded && world.flaws.has("bind-concurrency") {
        return Err(refuse(429, "One after another."));
    }
    if let Some(predecessor) = predecessor {
        flaws_bindings::replace(world, instance_id, predecessor);
    }
    Ok(made(world, &plan, (instance_id, id), wanted, given))
}

fn names_app(body: &Map<String, Value>) -> bool {
    let resource = body.get("bind_resource").and_then(|it| it.get("app_guid"));
    resource.or(body.get("app_guid")).is_some()
}

/// Service and plan; optional in a rotation.
fn named(
    body: &Map<String, Value>,
    rotation: bool,
) -> Result<Option<(String, String)>, RefusalAnswer> {
    if rotation && !body.contains_key("service_id") && !body.contains_key("plan_id") {
        return Ok(None);
    }
    let service_id = required(body, "service_id")?.to_owned();
    Ok(Some((service_id, required(body, "plan_id")?.to_owned())))
}

fn belongs(instance: &Instance, named: Option<&(String, String)>) -> Result<(), RefusalAnswer> {
    match named {
        Some((service_id, plan_id))
            if *service_id != instance.is.service_id || *plan_id != instance.is.plan_id =>
        {
            Err(malformed("The instance is of another service or plan."))
        }
        _ => Ok(()),
    }
}

/// The parameters of the predecessor.
fn rotated(
    world: &BrokerState,
    plan: &Plan,
    instance: &str,
    predecessor: &str,
) -> Result<Option<Value>, RefusalAnswer> {
    if !plan.is_rotatable || world.flaws.has("rotate-created") {
        return Err(malformed("Bindings of this plan cannot be rotated."));
    }
    let old = match world.binding(instance, predecessor) {
        Some(binding) if binding.phase == Phase::Live => binding.parameters.clone(),
        _ => {
            return Err(malformed("There is no such predecessor of this instance."));
        }
    };
    if world.flaws.has("rotate-parameters") {
        return Ok(Some(json!({ "access": "none" })));
    }
    Ok(old)
}

/// A bind of an existing binding.
fn again(
    flaws: &Flaws,
    ask: &BrokerRequest,
    binding: &Binding,
    wanted: &Value,
) -> Result<Answer, RefusalAnswer> {
    let takes_all = match binding.phase {
        Phase::Creating => flaws.has("bind-conflict-running"),
        _ => flaws.has("bind-conflict"),
    };
    if binding.wanted != *wanted && !takes_all {
        return Err(refuse(
            409,
            "A binding with this id is there, and it differs.",
        ));
    }
    match binding.phase {
        Phase::Creating if !ask.accepts_incomplete() => Err(async_required()),
        Phase::Creating if flaws.has("bind-repeat-running") => Ok(accepted("another")),
        Phase::Creating => Ok(accepted(&binding.operations.running_id())),
        Phase::Live => Ok(Answer::new(200, binding.info.clone())),
        Phase::Updating | Phase::Deleting | Phase::Gone => Err(busy()),
    }
}

fn made(
    world: &mut BrokerState,
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
    world: &mut BrokerState,
    ask: &BrokerRequest,
    instance_id: &str,
    id: &str,
) -> Result<Answer, RefusalAnswer> {
    let hurries = world
        .flaws
        .has_variant("unbinds at once what takes time to bind");
    let requested = ask.query("service_id").zip(ask.query("plan_id"));
    let requested = requested.and_then(|(service_id, plan_id)| world.plan(service_id, plan_id));
    let takes_time = |plan: &Plan| plan.is_async_bind && !hurries;
    if requested.as_ref().is_some_and(takes_time) && !ask.accepts_incomplete() {
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
        let another = world.flaws.has("unbind-repeat-running");
        return Ok(accepted(if another { "another" } else { &running }));
    }
    if phase == Phase::Creating && world.flaws.has("unbind-concurrency") {
        return Err(refuse(409, "It is being made."));
    }
    if instance.phase != Phase::Live {
        return Err(busy());
    }
    let takes_along = world.flaws.has("rotate-new-stays");
    if takes_along && let Some(instance) = world.instance_mut(instance_id) {
        instance
            .bindings
            .retain(|_, it| it.wanted["predecessor"] != id);
    }
    if !takes_time(&plan) {
        if let Some(instance) = world.instance_mut(instance_id) {
            instance.bindings.remove(id);
        }
        return Ok(Answer::new(200, json!({})));
    }
    let operation = world.mint("unbind");
    let survives = world.flaws.has("unbind-halts-bind");
    if let Some(binding) = world.binding_mut(instance_id, id) {
        binding.operations.halt();
        // A binding whose operation ends as an update exists afterwards.
        let lives_on = phase == Phase::Creating && survives;
        let kind = if lives_on { Kind::Update } else { Kind::Delete };
        binding.operations.begin(&operation, kind);
        binding.phase = Phase::Deleting;
    }
    Ok(accepted(&operation))
}

/// Applies the end of an operation to a binding.
pub(crate) fn ended(binding: &mut Binding, kind: Kind) {
    binding.phase = match kind {
        Kind::Create | Kind::Update => Phase::Live,
        Kind::Delete => Phase::Gone,
    };
}
