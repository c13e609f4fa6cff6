//! A broker that keeps the protocol's rules and is troublesome within them: what it refuses it has not done, and what it
//! fails to do it may have done. Pure: chance is passed in.

use super::model_instance::{
    ModelInstance, ModelOperation, ModelResource, ModelWork, PolledOperation,
};
use super::scenario::BrokerErrorRates;
use crate::seeded_sources::SharedRng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sutler_client::wire::{Answer, Method, Request};

/// The broker.
#[derive(Debug)]
pub(crate) struct ModelBroker {
    pub instances: BTreeMap<String, ModelInstance>,
    pub offered: OfferedCatalog,
    tokens: u64,
}

/// What the catalog says now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedCatalog {
    /// Whether instances can be fetched.
    pub retrievable: bool,
    /// Whether the large plan is offered.
    pub has_large: bool,
    /// Number that its descriptions contain.
    pub edition: u64,
}

/// Chance, and how often the broker fails now.
pub(crate) struct Chance<'a> {
    pub choices: &'a SharedRng,
    pub rates: BrokerErrorRates,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestTarget {
    /// `None`: the catalog.
    pub instance: Option<String>,
    pub binding: Option<String>,
    pub is_poll: bool,
}

/// What is asked of a resource.
enum Asked {
    Create,
    Update,
    Delete,
    Fetch,
    Poll,
}

impl OfferedCatalog {
    /// The catalog before it changes.
    pub(crate) fn first(retrievable: bool) -> Self {
        Self {
            retrievable,
            has_large: true,
            edition: 1,
        }
    }

    /// The answer to a read of the catalog.
    pub(crate) fn body(self) -> Value {
        let description = format!("edition {}", self.edition);
        let mut plans =
            vec![json!({ "id": "pg-small", "name": "small", "description": description })];
        if self.has_large {
            plans.push(json!({ "id": "pg-large", "name": "large", "description": description }));
        }
        json!({ "services": [{
            "id": "pg", "name": "postgresql", "description": "databases",
            "bindable": true, "plan_updateable": true,
            "instances_retrievable": self.retrievable, "bindings_retrievable": true,
            "plans": plans,
        }] })
    }
}

impl RequestTarget {
    /// What a request is about, by its path.
    pub(crate) fn of(request: &Request) -> Self {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let (instance, binding, is_poll) = match path.as_slice() {
            ["v2", "service_instances", id] => (Some(*id), None, false),
            ["v2", "service_instances", id, "last_operation"] => (Some(*id), None, true),
            ["v2", "service_instances", id, "service_bindings", binding] => {
                (Some(*id), Some(*binding), false)
            }
            [
                "v2",
                "service_instances",
                id,
                "service_bindings",
                binding,
                "last_operation",
            ] => (Some(*id), Some(*binding), true),
            _ => (None, None, false),
        };
        Self {
            instance: instance.map(str::to_owned),
            binding: binding.map(str::to_owned),
            is_poll,
        }
    }
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer::new(status, &[], body.to_string())
}

fn refusal(status: u16, description: &str) -> Answer {
    answer(status, &json!({ "description": description }))
}

fn busy() -> Answer {
    answer(
        422,
        &json!({ "error": "ConcurrencyError", "description": "one at a time" }),
    )
}

/// Body of a request.
fn body_of(request: &Request) -> Value {
    let body = request.body.as_ref();
    body.and_then(|it| serde_json::from_slice(it).ok())
        .unwrap_or_default()
}

/// Offering, plan and parameters of a create.
fn attributes(request: &Request) -> Value {
    let body = body_of(request);
    json!({
        "service_id": body["service_id"],
        "plan_id": body["plan_id"],
        "parameters": body.get("parameters").cloned().unwrap_or_else(|| json!({})),
    })
}

/// What an update makes of an instance: what it does not name stays, and a parameter that is `null` is removed.
pub(super) fn updated(attributes: &Value, update: &Value) -> Value {
    let mut next = attributes.clone();
    if let Some(plan) = update.get("plan_id") {
        next["plan_id"] = plan.clone();
    }
    let parameters = update.get("parameters").and_then(Value::as_object);
    for (name, value) in parameters.into_iter().flatten() {
        match value {
            Value::Null => {
                if let Some(all) = next["parameters"].as_object_mut() {
                    all.remove(name);
                }
            }
            value => next["parameters"][name] = value.clone(),
        }
    }
    next
}

impl Chance<'_> {
    fn percent(&self, percent: u64) -> bool {
        percent > 0 && self.choices.percent(percent)
    }

    /// An answer that proves that nothing was done.
    fn refuses(&self) -> Option<Answer> {
        if self.percent(self.rates.busy) {
            return Some(match self.choices.below(3) {
                0 => busy(),
                1 => refusal(429, "too many requests"),
                _ => Answer::new(503, &[("Retry-After", "2")], "{}"),
            });
        }
        let rejects = self.percent(self.rates.rejections);
        rejects.then(|| match self.choices.below(2) {
            0 => refusal(400, "not like this"),
            _ => refusal(403, "not for you"),
        })
    }

    /// A failure, and whether the request was done all the same.
    fn fails(&self) -> Option<bool> {
        let fails = self.percent(self.rates.failures);
        fails.then(|| self.choices.percent(50))
    }
}

impl ModelBroker {
    /// A broker without instances.
    pub(crate) fn new(offered: OfferedCatalog) -> Self {
        Self {
            instances: BTreeMap::new(),
            offered,
            tokens: 0,
        }
    }

    /// Does what a request asks for, or not.
    pub(crate) fn handle(&mut self, request: &Request, chance: &Chance<'_>) -> Answer {
        let target = RequestTarget::of(request);
        let asked = match (target.is_poll, request.method) {
            (true, _) => Asked::Poll,
            (false, Method::Put) => Asked::Create,
            (false, Method::Patch) => Asked::Update,
            (false, Method::Delete) => Asked::Delete,
            (false, Method::Get | Method::Post) => Asked::Fetch,
        };
        match (target.instance, target.binding) {
            (None, _) => answer(200, &self.offered.body()),
            (Some(instance), None) => self.instance(&instance, &asked, request, chance),
            (Some(instance), Some(binding)) => {
                self.binding((&instance, &binding), &asked, request, chance)
            }
        }
    }

    fn operation(&mut self, work: ModelWork, chance: &Chance<'_>) -> ModelOperation {
        self.tokens += 1;
        ModelOperation {
            token: format!("op-{}", self.tokens),
            work,
            polls_left: chance.choices.below(chance.rates.polls + 1),
            succeeds: !chance.percent(chance.rates.failed_operations),
            leaves: chance.choices.percent(50),
        }
    }

    fn instance(
        &mut self,
        id: &str,
        asked: &Asked,
        request: &Request,
        chance: &Chance<'_>,
    ) -> Answer {
        let is_busy = self.instances.get(id).is_some_and(|it| {
            let mut bindings = it.bindings.values();
            it.resource.operation.is_some() || bindings.any(|it| it.operation.is_some())
        });
        let found = self.instances.get_mut(id).map(|it| &mut it.resource);
        match asked {
            Asked::Create => {
                let (reply, made) = self.create(id, None, request, chance);
                if let Some(resource) = made {
                    let instance = ModelInstance {
                        resource,
                        bindings: BTreeMap::new(),
                    };
                    self.instances.insert(id.to_owned(), instance);
                }
                reply
            }
            Asked::Update if is_busy => self.refuse_busy(id),
            Asked::Delete if is_busy && chance.choices.percent(60) => self.refuse_busy(id),
            Asked::Update | Asked::Delete | Asked::Poll => {
                let (reply, removes) = match found {
                    Some(_) => self.change(id, None, asked, request, chance),
                    None => (absent(asked), false),
                };
                if removes {
                    self.instances.remove(id);
                }
                reply
            }
            Asked::Fetch => fetched(found.as_deref(), chance, None),
        }
    }

    fn binding(
        &mut self,
        (instance, id): (&str, &str),
        asked: &Asked,
        request: &Request,
        chance: &Chance<'_>,
    ) -> Answer {
        let Some(above) = self.instances.get_mut(instance) else {
            return absent(asked);
        };
        let is_busy = above.resource.operation.is_some();
        let found = above.bindings.get_mut(id);
        match asked {
            Asked::Create if is_busy => self.refuse_busy(instance),
            Asked::Create => {
                let (reply, made) = self.create(instance, Some(id), request, chance);
                if let (Some(resource), Some(above)) = (made, self.instances.get_mut(instance)) {
                    above.bindings.insert(id.to_owned(), resource);
                }
                reply
            }
            Asked::Delete | Asked::Poll | Asked::Update => {
                let (reply, removes) = match found {
                    Some(_) => self.change(instance, Some(id), asked, request, chance),
                    None => (absent(asked), false),
                };
                if removes && let Some(above) = self.instances.get_mut(instance) {
                    above.bindings.remove(id);
                }
                reply
            }
            Asked::Fetch => fetched(found.as_deref(), chance, Some(id)),
        }
    }

    /// Refuses a request because of work in the background, which goes on meanwhile.
    fn refuse_busy(&mut self, id: &str) -> Answer {
        let ends = |resource: &mut ModelResource| {
            let is_busy = resource.operation.is_some();
            // Who is refused comes back minutes later: in that time the work goes on as with several polls.
            if let Some(operation) = &mut resource.operation {
                operation.polls_left = operation.polls_left.min(1);
            }
            is_busy
                && matches!(
                    resource.poll(),
                    PolledOperation::Ended { removes: true, .. }
                )
        };
        if let Some(instance) = self.instances.get_mut(id) {
            instance.bindings.retain(|_, it| !ends(it));
            if ends(&mut instance.resource) {
                self.instances.remove(id);
            }
        }
        busy()
    }

    fn resource(&mut self, instance: &str, binding: Option<&str>) -> Option<&mut ModelResource> {
        let instance = self.instances.get_mut(instance)?;
        match binding {
            Some(binding) => instance.bindings.get_mut(binding),
            None => Some(&mut instance.resource),
        }
    }

    /// A create: the answer, and what is made.
    fn create(
        &mut self,
        instance: &str,
        binding: Option<&str>,
        request: &Request,
        chance: &Chance<'_>,
    ) -> (Answer, Option<ModelResource>) {
        let wanted = attributes(request);
        let done = success_body(binding);
        if let Some(refused) = chance.refuses() {
            return (refused, None);
        }
        if let Some(found) = self.resource(instance, binding) {
            if found.is_broken || found.created_with != wanted {
                return (refusal(409, "there is another one"), None);
            }
            return match &found.operation {
                Some(ModelOperation {
                    token,
                    work: ModelWork::Create,
                    ..
                }) => (answer(202, &json!({ "operation": token })), None),
                Some(_) => (busy(), None),
                None => (answer(200, &done), None),
            };
        }
        let made = ModelResource::created(wanted);
        match chance.fails() {
            Some(true) => return (refusal(500, "it broke"), Some(made)),
            Some(false) => return (refusal(500, "it broke"), None),
            None => {}
        }
        if !chance.percent(chance.rates.accepted) {
            return (answer(201, &done), Some(made));
        }
        let operation = self.operation(ModelWork::Create, chance);
        let token = json!({ "operation": operation.token });
        let made = ModelResource {
            operation: Some(operation),
            ..made
        };
        (answer(202, &token), Some(made))
    }

    /// An update, a delete or a poll of something that is there: the answer, and whether it is removed.
    fn change(
        &mut self,
        instance: &str,
        binding: Option<&str>,
        asked: &Asked,
        request: &Request,
        chance: &Chance<'_>,
    ) -> (Answer, bool) {
        if let Asked::Poll = asked {
            return self.poll(instance, binding, chance);
        }
        if let Some(refused) = chance.refuses() {
            return (refused, false);
        }
        let is_delete = matches!(asked, Asked::Delete);
        let work = match asked {
            Asked::Delete => ModelWork::Delete,
            _ => ModelWork::Update(body_of(request)),
        };
        let accepted = chance.percent(chance.rates.accepted);
        let operation = accepted.then(|| self.operation(work.clone(), chance));
        let Some(found) = self.resource(instance, binding) else {
            return (absent(asked), false);
        };
        // A failed update has changed nothing; a failed delete may have deleted.
        let fails = chance.fails().map(|is_done| is_done && is_delete);
        if fails == Some(false) {
            return (refusal(500, "it broke"), false);
        }
        if let (None, Some(operation)) = (fails, operation) {
            let token = json!({ "operation": operation.token });
            found.operation = Some(operation);
            return (answer(202, &token), false);
        }
        if let ModelWork::Update(update) = work {
            found.attributes = updated(&found.attributes, &update);
        }
        let reply = match fails {
            Some(_) => refusal(500, "it broke"),
            None => answer(200, &json!({})),
        };
        (reply, is_delete)
    }

    fn poll(
        &mut self,
        instance: &str,
        binding: Option<&str>,
        chance: &Chance<'_>,
    ) -> (Answer, bool) {
        if chance.percent(chance.rates.failures) {
            return (refusal(500, "it broke"), false);
        }
        let Some(found) = self.resource(instance, binding) else {
            return (absent(&Asked::Poll), false);
        };
        match found.poll() {
            PolledOperation::InProgress => (answer(200, &json!({ "state": "in progress" })), false),
            PolledOperation::Ended { succeeded, removes } => {
                let state = if succeeded { "succeeded" } else { "failed" };
                let body = json!({ "state": state, "description": "as it is" });
                (answer(200, &body), removes)
            }
        }
    }
}

/// The answer to a request about something that is not there.
fn absent(asked: &Asked) -> Answer {
    match asked {
        Asked::Delete | Asked::Poll => answer(410, &json!({})),
        Asked::Create | Asked::Update | Asked::Fetch => refusal(404, "there is no such thing"),
    }
}

fn fetched(found: Option<&ModelResource>, chance: &Chance<'_>, binding: Option<&str>) -> Answer {
    if chance.percent(chance.rates.failures) {
        return refusal(500, "it broke");
    }
    match (found, binding) {
        (Some(found), _) if found.operation.is_some() || found.is_broken => absent(&Asked::Fetch),
        (Some(_), Some(_)) => answer(200, &success_body(binding)),
        (Some(found), None) => answer(200, &found.attributes),
        (None, _) => absent(&Asked::Fetch),
    }
}

/// The credentials of a binding.
pub(crate) fn credentials_of(binding: &str) -> Value {
    json!({ "user": binding, "password": format!("secret of {binding}") })
}

/// Body of a success.
fn success_body(binding: Option<&str>) -> Value {
    match binding {
        Some(id) => json!({ "credentials": credentials_of(id) }),
        None => json!({}),
    }
}
