//! What the recording broker has, and what requests do to it. Pure.
//!
//! Instances and bindings are in one map, by `instance` or `instance/binding`. An instance goes with its bindings.

use super::http_exchange::ParsedRequest;
use super::received_request::{BrokerAnswer, RequestEffect};
use super::script::{Reply, RequestKind, Script};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What the broker has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BrokerState {
    /// Instances and bindings.
    pub resources: BTreeMap<String, Resource>,
    /// How work in the background ended, by its token.
    #[serde(default)]
    ended: BTreeMap<String, bool>,
    #[serde(default)]
    tokens: u64,
}

/// An instance or a binding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// What it was created with: the same create again is no conflict.
    pub created_with: Value,
    /// Offering, plan and parameters.
    pub attributes: Value,
    /// What is done to it in the background.
    work: Option<Work>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Work {
    token: String,
    polls_left: u32,
    succeeds: bool,
    change: Change,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Change {
    Create,
    Update(Value),
    Delete,
}

/// What a request did.
pub(super) struct Outcome {
    pub(super) effect: RequestEffect,
    pub(super) answer: BrokerAnswer,
}

fn outcome(effect: RequestEffect, status: u16, body: Value) -> Outcome {
    let answer = BrokerAnswer::Sent { status, body };
    Outcome { effect, answer }
}

fn nothing(status: u16, body: Value) -> Outcome {
    outcome(RequestEffect::Nothing, status, body)
}

fn busy() -> Outcome {
    nothing(422, json!({"error": "ConcurrencyError"}))
}

/// What a path names.
enum Place {
    Catalog,
    Resource(String),
    LastOperation(String),
    Unknown,
}

impl Place {
    fn of(target: &str) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match segments.as_slice() {
            ["v2", "catalog"] => Self::Catalog,
            ["v2", "service_instances", id] => Self::Resource((*id).to_owned()),
            ["v2", "service_instances", id, "last_operation"] => {
                Self::LastOperation((*id).to_owned())
            }
            ["v2", "service_instances", id, "service_bindings", binding] => {
                Self::Resource(format!("{id}/{binding}"))
            }
            [
                "v2",
                "service_instances",
                id,
                "service_bindings",
                binding,
                "last_operation",
            ] => Self::LastOperation(format!("{id}/{binding}")),
            _ => Self::Unknown,
        }
    }
}

impl BrokerState {
    /// Answers a request as the script says.
    pub(super) fn handle(&mut self, request: &ParsedRequest, script: &mut Script) -> Outcome {
        let place = Place::of(&request.target);
        let Some(verb) = verb_of(&request.method, &place) else {
            return nothing(404, json!({}));
        };
        let operation = request.header("x-broker-api-request-identity");
        let reply = script.reply(verb, operation.unwrap_or_default());
        let work = match &reply {
            Reply::Refused(status, body) => return nothing(*status, body.clone()),
            Reply::Closed => return unanswered(BrokerAnswer::Closed),
            Reply::Silent => return unanswered(BrokerAnswer::Silent),
            Reply::Accepted { polls, succeeds } => Some((*polls, *succeeds)),
            Reply::Done
            | Reply::DoneAndAnswered(..)
            | Reply::DoneAndClosed
            | Reply::DoneAndSilent => None,
        };
        let mut done = match place {
            Place::Catalog => nothing(200, script.catalog.clone()),
            Place::LastOperation(id) => self.poll(&id, request.query("operation")),
            Place::Resource(id) => self.about_resource(verb, &id, request, work),
            Place::Unknown => nothing(404, json!({})),
        };
        match reply {
            Reply::DoneAndAnswered(status, body) => {
                done.answer = BrokerAnswer::Sent { status, body };
            }
            Reply::DoneAndClosed => done.answer = BrokerAnswer::Closed,
            Reply::DoneAndSilent => done.answer = BrokerAnswer::Silent,
            _ => {}
        }
        done
    }

    fn about_resource(
        &mut self,
        verb: RequestKind,
        id: &str,
        request: &ParsedRequest,
        work: Option<(u32, bool)>,
    ) -> Outcome {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        match verb {
            RequestKind::Provision | RequestKind::Bind => self.create(id, &body, work),
            RequestKind::Update => self.update(id, &body, work),
            RequestKind::Deprovision | RequestKind::Unbind => self.delete(id, work),
            RequestKind::Catalog | RequestKind::Poll | RequestKind::Fetch => self.fetch(id),
        }
    }

    fn create(&mut self, id: &str, body: &Value, work: Option<(u32, bool)>) -> Outcome {
        if let Some((instance, _)) = id.split_once('/')
            && !self.resources.contains_key(instance)
        {
            return nothing(404, json!({"description": "no such instance"}));
        }
        let wanted = attributes_of(body);
        if let Some(known) = self.resources.get(id) {
            return match &known.work {
                _ if known.created_with != wanted => nothing(409, json!({})),
                None => nothing(200, created_body(id)),
                Some(work) if work.change == Change::Create => {
                    nothing(202, json!({"operation": work.token}))
                }
                Some(_) => busy(),
            };
        }
        let work = work.map(|work| self.work(work, Change::Create));
        let answer = match &work {
            Some(work) => (202, json!({"operation": work.token})),
            None => (201, created_body(id)),
        };
        let resource = Resource {
            created_with: wanted.clone(),
            attributes: wanted,
            work,
        };
        self.resources.insert(id.to_owned(), resource);
        outcome(RequestEffect::Created, answer.0, answer.1)
    }

    fn work(&mut self, (polls_left, succeeds): (u32, bool), change: Change) -> Work {
        self.tokens += 1;
        Work {
            token: format!("work-{}", self.tokens),
            polls_left,
            succeeds,
            change,
        }
    }

    fn update(&mut self, id: &str, body: &Value, work: Option<(u32, bool)>) -> Outcome {
        let Some(known) = self.resources.get(id) else {
            return nothing(404, json!({"description": "no such instance"}));
        };
        let changed = changed_by(&known.attributes, body);
        match &known.work {
            // The same update again is the one in progress.
            Some(work) if work.change == Change::Update(changed.clone()) => {
                return nothing(202, json!({"operation": work.token}));
            }
            Some(_) => return busy(),
            None => {}
        }
        let work = work.map(|work| self.work(work, Change::Update(changed.clone())));
        let Some(known) = self.resources.get_mut(id) else {
            return busy();
        };
        match work {
            Some(work) => {
                let token = work.token.clone();
                known.work = Some(work);
                nothing(202, json!({"operation": token}))
            }
            None => {
                known.attributes = changed;
                outcome(RequestEffect::Changed, 200, json!({}))
            }
        }
    }

    /// A delete overtakes a create and an update.
    fn delete(&mut self, id: &str, work: Option<(u32, bool)>) -> Outcome {
        let Some(known) = self.resources.get(id) else {
            return nothing(410, json!({}));
        };
        match &known.work {
            Some(work) if work.change == Change::Delete => {
                return nothing(202, json!({"operation": work.token}));
            }
            Some(work) => {
                self.ended.insert(work.token.clone(), false);
            }
            None => {}
        }
        match work {
            Some(work) => {
                let work = self.work(work, Change::Delete);
                let token = work.token.clone();
                if let Some(known) = self.resources.get_mut(id) {
                    known.work = Some(work);
                }
                nothing(202, json!({"operation": token}))
            }
            None => {
                self.remove(id);
                outcome(RequestEffect::Deleted, 200, json!({}))
            }
        }
    }

    fn remove(&mut self, id: &str) {
        self.resources.remove(id);
        let below = format!("{id}/");
        self.resources.retain(|known, _| !known.starts_with(&below));
    }

    fn fetch(&self, id: &str) -> Outcome {
        let Some(known) = self.resources.get(id) else {
            return nothing(404, json!({}));
        };
        let is_created = known
            .work
            .as_ref()
            .is_none_or(|it| it.change != Change::Create);
        if !is_created {
            return nothing(404, json!({}));
        }
        let mut body = known.attributes.clone();
        if id.contains('/') {
            body = created_body(id);
            body["parameters"] = known.attributes["parameters"].clone();
        }
        nothing(200, body)
    }

    fn poll(&mut self, id: &str, token: Option<&str>) -> Outcome {
        let token = token.unwrap_or_default();
        let Some(known) = self.resources.get_mut(id) else {
            return match self.ended.get(token) {
                Some(false) => nothing(200, json!({"state": "failed"})),
                Some(true) | None => nothing(410, json!({})),
            };
        };
        match &mut known.work {
            Some(work) if work.token == token && work.polls_left > 0 => {
                work.polls_left -= 1;
                nothing(200, json!({"state": "in progress"}))
            }
            Some(work) if work.token == token => self.end_work(id),
            _ => {
                let succeeded = self.ended.get(token).copied().unwrap_or(false);
                let state = if succeeded { "succeeded" } else { "failed" };
                nothing(200, json!({"state": state}))
            }
        }
    }

    fn end_work(&mut self, id: &str) -> Outcome {
        let Some(known) = self.resources.get_mut(id) else {
            return nothing(410, json!({}));
        };
        let Some(work) = known.work.take() else {
            return nothing(200, json!({"state": "succeeded"}));
        };
        self.ended.insert(work.token, work.succeeds);
        let state = if work.succeeds { "succeeded" } else { "failed" };
        let effect = match (work.change, work.succeeds) {
            (Change::Update(changed), true) => {
                known.attributes = changed;
                RequestEffect::Changed
            }
            (Change::Delete, true) => {
                self.remove(id);
                return outcome(RequestEffect::Deleted, 410, json!({}));
            }
            // What a failed create made is left, as many brokers do.
            (Change::Create, _) | (Change::Update(_) | Change::Delete, false) => {
                RequestEffect::Nothing
            }
        };
        outcome(effect, 200, json!({"state": state}))
    }
}

fn unanswered(answer: BrokerAnswer) -> Outcome {
    let effect = RequestEffect::Nothing;
    Outcome { effect, answer }
}

fn verb_of(method: &str, place: &Place) -> Option<RequestKind> {
    let (instance, binding) = match (method, place) {
        ("GET", Place::Catalog) => return Some(RequestKind::Catalog),
        ("GET", Place::LastOperation(_)) => return Some(RequestKind::Poll),
        ("GET", Place::Resource(_)) => return Some(RequestKind::Fetch),
        ("PUT", Place::Resource(_)) => (RequestKind::Provision, RequestKind::Bind),
        ("PATCH", Place::Resource(_)) => (RequestKind::Update, RequestKind::Update),
        ("DELETE", Place::Resource(_)) => (RequestKind::Deprovision, RequestKind::Unbind),
        _ => return None,
    };
    let Place::Resource(id) = place else {
        return None;
    };
    Some(if id.contains('/') { binding } else { instance })
}

/// Offering, plan and parameters of a create.
fn attributes_of(body: &Value) -> Value {
    let parameters = match &body["parameters"] {
        Value::Null => json!({}),
        parameters => parameters.clone(),
    };
    json!({
        "service_id": body["service_id"],
        "plan_id": body["plan_id"],
        "parameters": parameters,
    })
}

fn changed_by(attributes: &Value, body: &Value) -> Value {
    let mut changed = attributes.clone();
    if let Some(plan) = body["plan_id"].as_str() {
        changed["plan_id"] = plan.into();
    }
    let none = Map::new();
    let parameters = body["parameters"].as_object().unwrap_or(&none);
    for (name, value) in parameters {
        if let Some(known) = changed["parameters"].as_object_mut() {
            match value {
                Value::Null => known.remove(name),
                value => known.insert(name.clone(), value.clone()),
            };
        }
    }
    changed
}

/// The answer to a create. Credentials differ between bindings.
fn created_body(id: &str) -> Value {
    match id.split_once('/') {
        Some((_, binding)) => json!({"credentials": {"user": binding}}),
        None => json!({"dashboard_url": "https://dashboard.test/"}),
    }
}
