//! The people of a scenario: they send orders over the REST API, again while there is no answer, and look at the results.
//!
//! An order without an answer is sent again with the same idempotency key, as a client does; so in the end every order is
//! acknowledged.

use super::api_client::{ApiAnswer, ApiClient, Asked};
use super::broker_process::BrokerProcess;
use super::scenario::{IntentStates, Order, Step};
use crate::violation::{CheckResult, Violation};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Longest wait for anything.
const WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(15);
/// Place of the broker's URL in bodies.
pub(crate) const BROKER_URL: &str = "{broker}";

/// An order that the platform acknowledged with an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) user: &'static str,
    /// Operation of the intent.
    pub(crate) operation: String,
    pub(crate) verb: String,
    /// How it may end.
    pub(crate) ends: &'static [&'static str],
}

/// All people.
pub(crate) struct People<'a> {
    home: watch::Receiver<Option<SocketAddr>>,
    broker: &'a BrokerProcess,
    /// Begins their idempotency keys.
    phase: &'static str,
    orders: u32,
    /// Orders with an intent.
    pub(crate) acknowledged: Vec<Acknowledged>,
}

impl<'a> People<'a> {
    pub(crate) fn new(
        home: watch::Receiver<Option<SocketAddr>>,
        broker: &'a BrokerProcess,
        phase: &'static str,
    ) -> Self {
        Self {
            home,
            broker,
            phase,
            orders: 0,
            acknowledged: Vec::new(),
        }
    }

    /// Takes all steps.
    ///
    /// # Errors
    /// The platform refuses an order, or something does not happen in time.
    pub(crate) async fn take(&mut self, steps: &[Step]) -> CheckResult<()> {
        for step in steps {
            match step {
                Step::Order(order) => self.order(order).await?,
                Step::Until(wanted) => self.until(wanted).await?,
                Step::Catalog(catalog) => self.broker.replace_catalog(catalog).await?,
            }
        }
        Ok(())
    }

    async fn client(&mut self) -> CheckResult<ApiClient> {
        let found = tokio::time::timeout(WITHIN, self.home.wait_for(Option::is_some)).await;
        let address = found.ok().and_then(|it| *it.ok()?);
        let address = address.ok_or_else(|| Violation::new("the platform does not come back"))?;
        Ok(ApiClient::to(address))
    }

    async fn order(&mut self, order: &Order) -> CheckResult<()> {
        self.orders += 1;
        let key = format!("{}-{}", self.phase, self.orders);
        let url = format!("http://{}", self.broker.address);
        let body = order.body.to_string().replace(BROKER_URL, &url);
        let body: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
        let path = format!("/api/v1{}", order.path);
        let asked = Asked {
            user: Some(order.user),
            method: order.method,
            path: &path,
            body: &body,
            idempotency_key: order.is_keyed.then_some(key.as_str()),
        };
        let mut in_doubt = false;
        let begun = Instant::now();
        while begun.elapsed() < WITHIN {
            let client = self.client().await?;
            match client.send(&asked).await {
                Some(answer) if matches!(answer.status, 429 | 503) => {}
                Some(answer) => return self.answered(order, answer, in_doubt).await,
                None => in_doubt = true,
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let Order { method, path, .. } = order;
        Err(Violation::new(format!("{method} {path} is never answered")))
    }

    async fn answered(
        &mut self,
        order: &Order,
        mut answer: ApiAnswer,
        in_doubt: bool,
    ) -> CheckResult<()> {
        // Of an intent that has ended meanwhile, the answer has no operation; the journal has.
        if let (202, Some(intent)) = (answer.status, &answer.location)
            && answer.body["operation"].is_null()
        {
            let path = intent.trim_start_matches("/api/v1").to_owned();
            answer.body = self.get(&path).await?.unwrap_or(Value::Null);
        }
        let operation = answer.body["operation"].as_str();
        match (answer.status, operation) {
            (202, Some(operation)) => {
                self.acknowledged.push(Acknowledged {
                    user: order.user,
                    operation: operation.to_owned(),
                    verb: answer.body["verb"].as_str().unwrap_or_default().to_owned(),
                    ends: order.ends,
                });
                Ok(())
            }
            (200..=204, _) => Ok(()),
            // The order before was carried out, and its answer was lost.
            (404 | 410, _) if in_doubt && !order.is_keyed => Ok(()),
            (status, _) => Err(Violation::new(format!(
                "{} {} of {}: {status} {}",
                order.method, order.path, order.user, answer.body
            ))),
        }
    }

    /// Reads a document; `None`: there is none.
    async fn get(&mut self, path: &str) -> CheckResult<Option<Value>> {
        let path = format!("/api/v1{path}");
        let asked = Asked {
            user: Some("ada"),
            path: &path,
            ..Asked::default()
        };
        let begun = Instant::now();
        while begun.elapsed() < WITHIN {
            let client = self.client().await?;
            match client.send(&asked).await {
                Some(answer) if answer.status == 200 => return Ok(Some(answer.body)),
                Some(answer) if matches!(answer.status, 404 | 410) => return Ok(None),
                Some(answer) if !matches!(answer.status, 429 | 503) => {
                    let sentence = format!("GET {path}: {} {}", answer.status, answer.body);
                    return Err(Violation::new(sentence));
                }
                Some(_) | None => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
        Err(Violation::new(format!("GET {path} is never answered")))
    }

    async fn until(&mut self, wanted: &IntentStates) -> CheckResult<()> {
        let begun = Instant::now();
        loop {
            let resource = self.get(wanted.path).await?.unwrap_or(Value::Null);
            let lists = ["pending", "ended"].map(|it| resource[it].as_array().cloned());
            let mut intents = lists.into_iter().flatten().flatten();
            let is_there = intents.any(|intent| {
                let state = intent["state"].as_str().unwrap_or_default();
                intent["verb"] == wanted.verb && wanted.states.contains(&state)
            });
            if is_there {
                return Ok(());
            }
            if begun.elapsed() > WITHIN {
                let sentence = format!("waited for {wanted:?} in vain: {resource}");
                return Err(Violation::new(sentence));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until nothing goes on any more by itself.
    ///
    /// # Errors
    /// Something goes on for ever: it is stuck.
    pub(crate) async fn settle(&mut self) -> CheckResult<()> {
        let begun = Instant::now();
        loop {
            let left = self.unsettled().await?;
            let Some(left) = left else { return Ok(()) };
            if begun.elapsed() > WITHIN {
                let seconds = WITHIN.as_secs();
                let sentence =
                    format!("after {seconds} s without a disturbance it goes on: {left}");
                return Err(Violation::new(sentence));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Something that goes on.
    async fn unsettled(&mut self) -> CheckResult<Option<Value>> {
        for path in ["/namespaces/app/instances", "/namespaces/app/bindings"] {
            let resources = self.items(path).await?;
            if let Some(found) = resources.into_iter().find(goes_on) {
                return Ok(Some(found));
            }
        }
        let orphans = self.items("/orphans").await?;
        let is_due = |row: &Value| row["state"] == "due" || row["state"] == "in_flight";
        if let Some(found) = orphans.into_iter().find(is_due) {
            return Ok(Some(found));
        }
        let brokers = self.items("/brokers").await?;
        let syncs = |broker: &Value| broker["sync"]["requested"] == true;
        Ok(brokers.into_iter().find(syncs))
    }

    async fn items(&mut self, path: &str) -> CheckResult<Vec<Value>> {
        let list = self.get(&format!("{path}?limit=200")).await?;
        let items = list.as_ref().and_then(|it| it["items"].as_array());
        Ok(items.cloned().unwrap_or_default())
    }
}

/// Whether an intent of a resource goes on by itself, or a replaced generation waits for its end.
fn goes_on(resource: &Value) -> bool {
    let all = |list: &str| resource[list].as_array().cloned().unwrap_or_default();
    let is_pending = |intent: &Value| intent["state"] != "on_hold";
    let is_replaced = |generation: &Value| generation["phase"] == "retiring";
    all("pending").iter().any(is_pending) || all("generations").iter().any(is_replaced)
}
