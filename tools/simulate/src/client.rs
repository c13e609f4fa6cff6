//! A simulated platform that owns one instance and its bindings: it sends requests to any replica, repeats
//! those without an answer, polls, and compares answers with the external system.
//!
//! A request without an answer is repeated until it has one; only then comes the next. So the owner knows what
//! each answer must mean, unless a second platform changes the same instance, or a broker goes on with a request after
//! its client went away. Requests of operators are in `operator.rs`.

use crate::external_system::ResourceName;
use crate::replica::{PLAN, Process, Replicas, SERVICE};
use crate::service::CRASHING_INSTANCE;
use axum::body::Body;
use http_body_util::BodyExt as _;
use hyper::Request;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_journal::{DelayedTask, OperationId, Store as _};
use tower::ServiceExt as _;

/// An answer of a broker.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub json: Value,
}

/// A change that a platform asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
    Delete,
}

/// How a change ended for its platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeResult {
    Succeeded,
    /// Nothing had to be done.
    AlreadyDone,
    Failed,
    /// It was refused and changed nothing.
    Refused,
    /// No definite answer before the end of the run.
    Unknown,
}

/// A platform that owns one instance.
pub(crate) struct Client {
    pub replicas: Arc<Replicas>,
    pub instance: String,
    pub bindings: Vec<String>,
    /// Set when the part with faults is over.
    pub over: Arc<AtomicBool>,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswerError {
    /// The process died, or the client went away and the broker dropped the request.
    Dropped,
    /// The client went away, and the broker goes on with the request, as behind a proxy.
    StillHandled,
}

/// Sends one request to a process.
pub(crate) async fn send(
    process: &Process,
    method: &str,
    path: &str,
    body: Option<Value>,
    timeout: Duration,
) -> Result<Answer, NoAnswerError> {
    let payload = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("X-Broker-API-Version", "2.17")
        .header("Content-Type", "application/json")
        .body(payload)
        .expect("a well-formed request");
    let (router, link) = (process.router.clone(), Arc::clone(&process.link));
    let mut handling = tokio::spawn(DelayedTask::new(async move {
        tokio::select! {
            biased;
            () = link.died() => None,
            answered = router.oneshot(request) => {
                let response = answered.expect("a router never fails");
                let status = response.status().as_u16();
                let bytes = response.into_body().collect().await.ok()?.to_bytes();
                let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                Some(Answer { status, json })
            }
        }
    }));
    tokio::select! {
        biased;
        () = process.link.died() => Err(NoAnswerError::Dropped),
        answered = &mut handling => answered.ok().flatten().ok_or(NoAnswerError::Dropped),
        () = tokio::time::sleep(timeout) => {
            if process.link.choices().percent(50) {
                return Err(NoAnswerError::StillHandled);
            }
            handling.abort();
            Err(NoAnswerError::Dropped)
        }
    }
}

impl Client {
    /// Changes the instance and its bindings until the part with faults is over.
    pub(crate) async fn run(&self) {
        let choices = &self.replicas.network.choices;
        while !self.is_over() {
            tokio::time::sleep(choices.between(Duration::ZERO, Duration::from_secs(4))).await;
            let instance = ResourceName::instance(&self.instance);
            match choices.below(10) {
                0..3 => {
                    self.change(&instance, Verb::Create).await;
                }
                3 => {
                    self.change(&instance, Verb::Update).await;
                }
                4 => {
                    self.change(&instance, Verb::Delete).await;
                }
                5..8 => {
                    self.change(&self.a_binding(), Verb::Create).await;
                }
                8 => {
                    self.change(&self.a_binding(), Verb::Delete).await;
                }
                _ => self.delete_during_create().await,
            }
        }
    }

    fn a_binding(&self) -> ResourceName {
        let at = self.replicas.network.choices.index(self.bindings.len());
        ResourceName::binding(&self.instance, &self.bindings[at])
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Deletes an instance whose creation was just accepted.
    async fn delete_during_create(&self) {
        let instance = ResourceName::instance(&self.instance);
        if self.request(&instance, Verb::Create, true).await.is_some() {
            self.change(&instance, Verb::Delete).await;
        }
    }

    /// Asks for a change until its end is known, and checks the external system against it.
    pub(crate) async fn change(&self, lane: &ResourceName, verb: Verb) -> ChangeResult {
        let asynchronous = self.replicas.network.choices.percent(70);
        let result = self.change_to_end(lane, verb, asynchronous).await;
        self.note(|| format!("client: {verb:?} {lane} -> {result:?}"));
        let external = &self.replicas.external;
        if verb != Verb::Update {
            let is_present = match result {
                ChangeResult::Succeeded | ChangeResult::AlreadyDone => Some(verb == Verb::Create),
                ChangeResult::Failed | ChangeResult::Refused | ChangeResult::Unknown => None,
            };
            external.platform_knows(lane, is_present);
        }
        if result == ChangeResult::Succeeded
            && !external.is_excused(lane)
            && !external.is_contested(lane)
        {
            let there = external.has(lane);
            match verb {
                Verb::Create if !there => {
                    self.violate(format!("{lane} was reported created and does not exist"));
                }
                Verb::Delete if there => {
                    self.violate(format!("{lane} was reported deleted and exists"));
                }
                Verb::Create | Verb::Update | Verb::Delete => {}
            }
        }
        result
    }

    async fn change_to_end(
        &self,
        lane: &ResourceName,
        verb: Verb,
        asynchronous: bool,
    ) -> ChangeResult {
        let choices = &self.replicas.network.choices;
        loop {
            let answer = self.request(lane, verb, asynchronous).await;
            let Some(answer) = answer else {
                if self.gives_up().await {
                    return ChangeResult::Unknown;
                }
                continue;
            };
            match answer.status {
                200 if verb == Verb::Create => return ChangeResult::AlreadyDone,
                200 | 201 => return ChangeResult::Succeeded,
                202 => match self.poll(lane, verb, &answer).await {
                    Some(result) => return result,
                    None => return ChangeResult::Unknown,
                },
                410 if verb == Verb::Delete => return ChangeResult::Refused,
                // Another operation runs: of an operator, or of a request without an answer.
                422 => {
                    if self.gives_up().await {
                        return ChangeResult::Refused;
                    }
                    tokio::time::sleep(choices.between(Duration::ZERO, Duration::from_secs(2)))
                        .await;
                    if choices.percent(50) {
                        return ChangeResult::Refused;
                    }
                }
                500 if answer.json["description"].is_string() => {
                    self.check_failure(None, &answer.json);
                    return ChangeResult::Failed;
                }
                500.. => {
                    if self.gives_up().await {
                        return ChangeResult::Unknown;
                    }
                }
                _ => return ChangeResult::Refused,
            }
        }
    }

    /// Waits a little; whether it is time to stop asking.
    async fn gives_up(&self) -> bool {
        tokio::time::sleep(Duration::from_millis(700)).await;
        self.is_over()
    }

    async fn request(&self, lane: &ResourceName, verb: Verb, asynchronous: bool) -> Option<Answer> {
        let process = self.any_process()?;
        let query = format!("accepts_incomplete={asynchronous}");
        let path = path_of(lane);
        let (method, path, body) = match verb {
            Verb::Create => (
                "PUT",
                format!("{path}?{query}"),
                Some(json!({
                    "service_id": SERVICE, "plan_id": PLAN,
                    "organization_guid": "o", "space_guid": "s",
                })),
            ),
            Verb::Update => (
                "PATCH",
                format!("{path}?{query}"),
                Some(
                    json!({ "service_id": SERVICE, "parameters": { "n": self.replicas.network.choices.below(100) } }),
                ),
            ),
            Verb::Delete => (
                "DELETE",
                format!("{path}?{query}&service_id={SERVICE}&plan_id={PLAN}"),
                None,
            ),
        };
        let timeout = self.replicas.scenario.client_timeout;
        let external = &self.replicas.external;
        if verb != Verb::Update {
            external.platform_knows(lane, None);
        }
        let answer = send(&process, method, &path, body, timeout).await;
        self.note(|| match &answer {
            Ok(answer) => format!(
                "client: {method} {lane} at {} -> {} {}",
                process.name, answer.status, answer.json
            ),
            Err(why) => format!(
                "client: {method} {lane} at {} -> no answer ({why:?})",
                process.name
            ),
        });
        if matches!(answer, Err(NoAnswerError::StillHandled)) {
            external.contest(&self.instance);
        }
        let answer = answer.ok();
        self.check_accepted(lane, answer.as_ref()).await;
        answer
    }

    /// An operation that was acknowledged is in the store.
    async fn check_accepted(&self, lane: &ResourceName, answer: Option<&Answer>) {
        let Some(answer) = answer.filter(|it| it.status == 202) else {
            return;
        };
        let id = answer.json["operation"]
            .as_str()
            .and_then(OperationId::parse);
        let Some(id) = id else {
            self.violate(format!("a 202 about {lane} names no operation"));
            return;
        };
        let found = self.replicas.network.store().operation(id).await;
        if !matches!(found, Ok(Some(_))) {
            self.violate(format!(
                "the operation {id} of {lane} was acknowledged and is not stored"
            ));
        }
    }

    async fn poll(
        &self,
        lane: &ResourceName,
        verb: Verb,
        accepted: &Answer,
    ) -> Option<ChangeResult> {
        let operation = accepted.json["operation"].as_str().unwrap_or_default();
        let path = format!(
            "{}/last_operation?operation={operation}&service_id={SERVICE}&plan_id={PLAN}",
            path_of(lane)
        );
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if let Some(process) = self.any_process() {
                let timeout = self.replicas.scenario.client_timeout;
                let answer = send(&process, "GET", &path, None, timeout).await;
                match answer {
                    Ok(Answer { status: 200, json }) => match json["state"].as_str() {
                        Some("succeeded") => return Some(ChangeResult::Succeeded),
                        Some("failed") => {
                            self.check_failure(Some(operation), &json);
                            self.note(|| format!("client: poll {lane} -> {json}"));
                            return Some(ChangeResult::Failed);
                        }
                        _ => {}
                    },
                    Ok(Answer { status: 410, .. }) if verb == Verb::Delete => {
                        return Some(ChangeResult::Succeeded);
                    }
                    Ok(Answer { status, .. }) if (400..500).contains(&status) => {
                        return Some(ChangeResult::Refused);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            if self.is_over() && self.replicas.network.choices.percent(20) {
                return None;
            }
        }
    }

    /// An operation that ended because of its deadline had all of that time, and one that was given up is the
    /// one that ends its processes.
    fn check_failure(&self, operation: Option<&str>, json: &Value) {
        let description = json["description"].as_str().unwrap_or_default();
        if let (Some(operation), true) = (operation, description.contains("did not end within")) {
            let (now, external) = (self.replicas.network.history.now(), &self.replicas.external);
            let called = external.first_call(operation);
            let had = called.map_or(Duration::ZERO, |first| now.saturating_sub(first));
            let scenario = &self.replicas.scenario;
            if had < scenario.deadline && !scenario.clock_jumps() {
                self.violate(format!(
                    "an operation of {} ended because of its deadline after {had:?}: {description}",
                    self.instance
                ));
            }
        }
        let given_up = description.contains("interrupted too often");
        let must_survive = self.instance != CRASHING_INSTANCE
            && self.replicas.scenario.only_hooks_kill()
            && self.replicas.external.few_processes_ended();
        if given_up && must_survive {
            self.violate(format!("{} was given up: {description}", self.instance));
        }
    }

    fn any_process(&self) -> Option<Process> {
        let slot = self.replicas.network.choices.index(self.replicas.count());
        self.replicas.process(slot)
    }

    fn note(&self, line: impl FnOnce() -> String) {
        self.replicas.network.history.record("client", line);
    }

    fn violate(&self, sentence: String) {
        self.replicas.network.history.violate(sentence);
    }
}

pub(crate) fn path_of(lane: &ResourceName) -> String {
    let instance = format!("/v2/service_instances/{}", lane.instance);
    match &lane.binding {
        Some(binding) => format!("{instance}/service_bindings/{binding}"),
        None => instance,
    }
}
