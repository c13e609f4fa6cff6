//! One plan under test: its requests and its verdicts.
//!
//! Sends through `client.rs`; the order of the cases is in `cases.rs`.

use crate::case::Case;
use crate::catalog::{Offering, Plan};
use crate::client::{CheckClient, StopReason};
use crate::created::{CreatedResource, Owner};
use crate::exchange::Exchange;
use crate::params::{self, Samples};
use crate::select;
use crate::target::Target;
use crate::verdicts::{Subject, Verdict};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use sutler_client::wire::{Method, Request};
use tokio::time::Instant;

/// First and longest wait between two polls without `Retry-After`.
const POLL_FIRST: Duration = Duration::from_millis(20);
const POLL_LONGEST: Duration = Duration::from_secs(2);

/// Maximum consecutive invalid answers to polls: a platform would continue too (P-056).
const INVALID_MAX: u32 = 3;

/// Maximum answers to the polls of one operation that are kept: the first ones, and the last.
const ANSWERS_MAX: usize = 64;

/// Longest `Retry-After` between two polls that is respected.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Time limit of an operation after another one of the plan did not end: otherwise a check could take
/// hours.
const OVERDUE_WITHIN: Duration = Duration::from_secs(5);

/// A plan under test, with everything that its cases need.
pub(crate) struct PlanRun {
    pub client: Arc<CheckClient>,
    pub offerings: Arc<Vec<Offering>>,
    pub offering: usize,
    pub plan: usize,
    pub subject: Subject,
    /// Derived on first use.
    pub samples: OnceLock<Samples>,
    /// Whether an operation did not end in time.
    pub overdue: AtomicBool,
}

/// Result of polling an operation.
pub(crate) struct PollResult {
    /// The first answers and the last one, in order.
    pub answers: Vec<Arc<Exchange>>,
    pub ended: PollEnd,
}

/// Result of the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollEnd {
    Succeeded,
    Failed,
    /// 410: the resource is gone.
    Gone,
    /// An answer that a platform cannot understand.
    Invalid,
    /// It took longer than the caller or the plan allows.
    Overdue,
}

impl PollResult {
    /// The answer that ended it.
    pub(crate) fn last(&self) -> &Arc<Exchange> {
        &self.answers[self.answers.len() - 1]
    }
}

impl PlanRun {
    pub(crate) fn offering(&self) -> &Offering {
        &self.offerings[self.offering]
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.offering().plans[self.plan]
    }

    /// Parameters that fit this plan's schemas, and some that do not.
    pub(crate) fn samples(&self) -> &Samples {
        let derive = || params::samples(&self.client.options, self.offering(), self.plan());
        self.samples.get_or_init(derive)
    }

    /// Service and plan under test.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            service_id: self.offering().id.clone(),
            plan_id: self.plan().id.clone(),
        }
    }

    /// Records the verdict of an exchange about a case.
    pub(crate) fn record(
        &self,
        case: &'static Case,
        exchange: &Arc<Exchange>,
        judgement: Result<(), String>,
    ) {
        self.client.record(case, &self.subject, exchange, judgement);
    }

    /// Records the verdict of an exchange about a case of the whole broker.
    pub(crate) fn record_broker(
        &self,
        case: &'static Case,
        exchange: &Arc<Exchange>,
        judgement: Result<(), String>,
    ) {
        let broker = &Subject::Broker;
        self.client.record(case, broker, exchange, judgement);
    }

    /// Records a verdict about the whole broker without an exchange.
    pub(crate) fn record_broker_alone(&self, case: &'static Case, judgement: Result<(), String>) {
        let verdict = match judgement {
            Ok(()) => Verdict::Pass,
            Err(said) => Verdict::Fail {
                said,
                exchange: None,
            },
        };
        self.client.verdicts.record(case, &Subject::Broker, verdict);
    }

    /// Records that a case of the whole broker does not apply, with the reason.
    pub(crate) fn skip_broker(&self, case: &'static Case, reason: &str) {
        let verdict = Verdict::NotApplicable(reason.to_owned());
        self.client.verdicts.record(case, &Subject::Broker, verdict);
    }

    /// Records that a case does not apply, with the reason.
    pub(crate) fn skip(&self, case: &'static Case, reason: &str) {
        let verdict = Verdict::NotApplicable(reason.to_owned());
        self.client.verdicts.record(case, &self.subject, verdict);
    }

    /// Records each of these cases as not applicable. Earlier verdicts remain.
    pub(crate) fn skip_all(&self, cases: &[&'static Case], reason: &str) {
        for case in cases {
            self.skip(case, reason);
        }
    }

    /// The version of the plan's `maintenance_info`.
    pub(crate) fn maintenance_version(&self) -> Option<&str> {
        self.plan().raw["maintenance_info"]["version"].as_str()
    }

    /// Another plan of the same offering that the caller allows; one with the same schemas first.
    pub(crate) fn sibling(&self) -> Option<&Plan> {
        let schemas = &self.plan().raw["schemas"];
        let allowed = |it: &&Plan| {
            let is_other = it.id != self.plan().id;
            is_other && select::allows(&self.client.options, self.offering(), it)
        };
        let all = || self.offering().plans.iter().filter(allowed);
        all()
            .find(|it| it.raw["schemas"] == *schemas)
            .or_else(|| all().next())
    }

    /// A plan of another offering.
    pub(crate) fn foreign_plan(&self) -> Option<&Plan> {
        let own = |it: &&Plan| self.offering().plans.iter().all(|known| known.id != it.id);
        let others = self
            .offerings
            .iter()
            .filter(|it| it.id != self.offering().id);
        others.flat_map(|it| &it.plans).find(own)
    }

    /// Service and plan that a request about a resource must name: those it was created with, or
    /// changed to.
    pub(crate) fn owner_of(&self, target: Target<'_>) -> Owner {
        let ledger = &self.client.created;
        let of_instance = || match target {
            Target::Instance(_) => None,
            Target::Binding(it) => ledger.owner(&CreatedResource::Instance(it.instance.clone())),
        };
        let known = ledger.owner(&target.made()).or_else(of_instance);
        known.unwrap_or_else(|| self.owner())
    }

    /// A body that provisions an instance of this plan, with parameters that fit it.
    pub(crate) fn provision_body(&self) -> Value {
        let mut body = json!({
            "service_id": self.offering().id,
            "plan_id": self.plan().id,
            "organization_guid": "sutler-check-organization",
            "space_guid": "sutler-check-space",
            "context": {
                "platform": "cloudfoundry",
                "organization_guid": "sutler-check-organization",
                "organization_name": "sutler-check",
                "space_guid": "sutler-check-space",
                "space_name": "sutler-check",
                "instance_name": "sutler-check",
            },
        });
        if let Ok(Some(parameters)) = self.samples().provision.valid() {
            body["parameters"] = Value::Object(parameters.clone());
        }
        body
    }

    /// Sends a PUT; records the resource as created before sending.
    pub(crate) async fn put(
        &self,
        target: Target<'_>,
        body: &Value,
        accepts_incomplete: bool,
    ) -> Result<Arc<Exchange>, StopReason> {
        let request = with_incomplete(target.request(Method::Put), accepts_incomplete);
        self.put_request(target, request.body(body.to_string()))
            .await
    }

    /// Sends a prepared PUT.
    pub(crate) async fn put_request(
        &self,
        target: Target<'_>,
        request: Request,
    ) -> Result<Arc<Exchange>, StopReason> {
        let made = target.made();
        let owner = self.owner_of(target);
        self.client.created.may_exist(made.clone(), owner);
        let exchange = self.client.ask(request).await?;
        self.client.created.answered(&made, exchange.status());
        Ok(exchange)
    }

    /// Sends a PATCH.
    pub(crate) async fn patch(
        &self,
        target: Target<'_>,
        body: &Value,
        accepts_incomplete: bool,
    ) -> Result<Arc<Exchange>, StopReason> {
        let request = with_incomplete(target.request(Method::Patch), accepts_incomplete);
        self.client.ask(request.body(body.to_string())).await
    }

    /// Fetches a resource, without optional parameters.
    pub(crate) async fn fetch(&self, target: Target<'_>) -> Result<Arc<Exchange>, StopReason> {
        self.client.ask(target.request(Method::Get)).await
    }

    /// Deletes it and waits for the end; returns the first answer, and whether it is gone.
    pub(crate) async fn remove(
        &self,
        target: Target<'_>,
    ) -> Result<(Arc<Exchange>, bool), StopReason> {
        let answer = self.delete(target, true).await?;
        let gone = match answer.status() {
            Some(200 | 410) => true,
            Some(202) => {
                let polled = self.poll_to_end(target, &answer).await?;
                matches!(polled.ended, PollEnd::Succeeded | PollEnd::Gone)
            }
            _ => false,
        };
        if gone {
            self.client.created.is_gone(&target.made());
        }
        Ok((answer, gone))
    }

    /// Sends a DELETE that names its service and plan.
    pub(crate) async fn delete(
        &self,
        target: Target<'_>,
        accepts_incomplete: bool,
    ) -> Result<Arc<Exchange>, StopReason> {
        let request = with_incomplete(target.delete(&self.owner_of(target)), accepts_incomplete);
        let exchange = self.client.ask(request).await?;
        if exchange.is(&[200, 410]) {
            self.client.created.is_gone(&target.made());
        }
        Ok(exchange)
    }

    /// Polls an operation once; `accepted` is the 202 that began it.
    pub(crate) async fn poll(
        &self,
        target: Target<'_>,
        accepted: Option<&Exchange>,
    ) -> Result<Arc<Exchange>, StopReason> {
        let operation = accepted.and_then(Exchange::operation);
        let request = target.poll(&self.owner_of(target), operation);
        self.client.ask(request).await
    }

    /// Polls an operation to its end, respecting `Retry-After`.
    pub(crate) async fn poll_to_end(
        &self,
        target: Target<'_>,
        accepted: &Exchange,
    ) -> Result<PollResult, StopReason> {
        let until = Instant::now() + self.operation_within();
        let mut pause = POLL_FIRST;
        let mut answers = Vec::new();
        let mut invalid = 0;
        loop {
            let answer = self.poll(target, Some(accepted)).await?;
            let ended = ended(&answer);
            let wait = answer.wait(pause, RETRY_AFTER_MAX);
            if answers.len() >= ANSWERS_MAX {
                answers.pop();
            }
            answers.push(answer);
            match ended {
                None => invalid = 0,
                Some(PollEnd::Invalid) if invalid + 1 < INVALID_MAX => invalid += 1,
                Some(ended) => return Ok(PollResult { answers, ended }),
            }
            if Instant::now() + wait > until {
                self.overdue.store(true, Ordering::Relaxed);
                let ended = PollEnd::Overdue;
                return Ok(PollResult { answers, ended });
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.client.stop.cancelled() => return Err(StopReason::Cancelled),
            }
            pause = (pause * 2).min(POLL_LONGEST);
        }
    }

    /// The smaller of the caller's limit and the plan's `maximum_polling_duration`.
    fn operation_within(&self) -> Duration {
        let mut own = self.client.options.operation_within;
        if self.overdue.load(Ordering::Relaxed) {
            own = own.min(OVERDUE_WITHIN);
        }
        match self.plan().raw["maximum_polling_duration"].as_u64() {
            Some(seconds) => own.min(Duration::from_secs(seconds)),
            None => own,
        }
    }
}

/// The request with `accepts_incomplete` set or not.
pub(crate) fn with_incomplete(request: Request, accepts_incomplete: bool) -> Request {
    if accepts_incomplete {
        request.query("accepts_incomplete", "true")
    } else {
        request
    }
}

/// The end of an operation, if this answer to a poll reports it.
pub(crate) fn ended(answer: &Exchange) -> Option<PollEnd> {
    match answer.status() {
        Some(200) => match answer.field("state").and_then(Value::as_str) {
            Some("in progress") => None,
            Some("succeeded") => Some(PollEnd::Succeeded),
            Some("failed") => Some(PollEnd::Failed),
            _ => Some(PollEnd::Invalid),
        },
        Some(410) => Some(PollEnd::Gone),
        _ => Some(PollEnd::Invalid),
    }
}
