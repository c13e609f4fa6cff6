//! The way to the model broker: connections are refused, requests and answers get lost, and requests arrive long after they
//! were given up, or twice.
//!
//! A request that left its process arrives whether or not the process lives. A dead process sends nothing.

use super::broker_side::BrokerSide;
use super::checker::PlatformChecker;
use super::model_broker::Chance;
use super::scenario::{BrokerErrorRates, PlatformScenario};
use crate::history::History;
use crate::seeded_sources::SharedRng;
use crate::store_link::StoreLink;
use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sutler_client::wire::{Answer, InvalidConnectionError, Request, TransportError};
use sutler_journal::OperationId;
use sutler_platform::brokers::{BrokerTransport, ConnectBroker};
use sutler_platform::records::BrokerRegistration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// How long after it was given up a request may arrive. The platform expects thirty seconds and a lease.
const LATE_WITHIN: Duration = Duration::from_secs(10);
/// Longest time on the way, in one direction.
const WAY_WITHIN: Duration = Duration::from_millis(400);

/// The broker as all processes reach it.
pub(crate) struct SimulatedBroker {
    pub side: Arc<BrokerSide>,
    pub checker: Arc<PlatformChecker>,
    pub choices: SharedRng,
    pub history: Arc<History>,
    pub scenario: Arc<PlatformScenario>,
    /// Set when it does what it is asked for.
    pub is_calm: AtomicBool,
    pub condition: Mutex<BrokerCondition>,
    pub requests: AtomicU64,
}

/// Whether the broker takes requests at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokerCondition {
    Up,
    /// Nothing listens.
    Unreachable,
    /// It does not accept the platform's password.
    Unauthorized,
    /// It takes connections and never answers.
    Silent,
}

/// The connections of one process.
pub(crate) struct SimulatedConnector {
    pub process: String,
    pub broker: Arc<SimulatedBroker>,
    pub link: Arc<StoreLink>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestDelivery {
    Answered,
    /// It never arrives.
    Lost,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It arrives after it was given up.
    Late,
    /// It arrives, the answer is lost, and it arrives once more after it was given up.
    LateAgain,
}

/// The operation that a request names.
pub(crate) fn operation_of(request: &Request) -> Option<OperationId> {
    let mut headers = request.headers.iter();
    let (_, id) =
        headers.find(|(name, _)| name.eq_ignore_ascii_case("X-Broker-API-Request-Identity"))?;
    Uuid::try_parse(id).ok().map(OperationId)
}

impl SimulatedBroker {
    fn rates(&self) -> BrokerErrorRates {
        match self.is_calm.load(Ordering::Relaxed) {
            true => self.scenario.broker.calm(),
            false => self.scenario.broker,
        }
    }

    fn arrive(&self, request: &Request, is_late: bool) -> Answer {
        let chance = Chance {
            choices: &self.choices,
            rates: self.rates(),
        };
        if self.condition() == BrokerCondition::Unauthorized {
            return Answer::new(401, &[], "{}");
        }
        let first = match is_late {
            true => self.side.arrive_late(request, &chance),
            false => self.side.arrive(request, &chance),
        };
        // A success can be repeated by whatever is in front of the broker. It does not pass on that the second was refused.
        if first.status < 300 && self.percent(chance.rates.twice) {
            let chance = Chance {
                rates: chance.rates.calm(),
                ..chance
            };
            let second = self.side.arrive(request, &chance);
            return if second.status < 300 { second } else { first };
        }
        first
    }

    fn condition(&self) -> BrokerCondition {
        *self
            .condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes whether it takes requests.
    pub(crate) fn set_condition(&self, condition: BrokerCondition) {
        self.history
            .record("condition", || format!("the broker is {condition:?}"));
        *self
            .condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = condition;
    }

    fn percent(&self, percent: u64) -> bool {
        percent > 0 && self.choices.percent(percent)
    }

    fn delivery(&self) -> RequestDelivery {
        if self.condition() == BrokerCondition::Silent {
            return RequestDelivery::Lost;
        }
        let rates = self.rates();
        if self.percent(rates.late) {
            return match self.choices.percent(50) {
                true => RequestDelivery::Late,
                false => RequestDelivery::LateAgain,
            };
        }
        if self.percent(rates.lost) {
            return match self.choices.percent(50) {
                true => RequestDelivery::Lost,
                false => RequestDelivery::AnswerLost,
            };
        }
        RequestDelivery::Answered
    }

    async fn on_the_way(&self) {
        let way = self.choices.between(Duration::from_millis(1), WAY_WITHIN);
        tokio::time::sleep(way).await;
    }

    async fn exchange(
        self: &Arc<Self>,
        process: &str,
        request: &Request,
    ) -> Result<Answer, TransportError> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_refused = self.condition() == BrokerCondition::Unreachable
            || self.percent(self.rates().refused_connections);
        if is_refused {
            self.on_the_way().await;
            return Err(TransportError::NotSent("refused".to_owned()));
        }
        let operation = operation_of(request);
        let within = self.scenario.answer_within + LATE_WITHIN;
        let number = self.side.send(request, operation, within);
        let delivery = self.delivery();
        self.history.record("request", || {
            let id = operation
                .map(crate::commit_checker::short)
                .unwrap_or_default();
            let (method, target) = (request.method, request.target());
            format!("{process} sends {method} {target} (…{id}): {delivery:?}")
        });
        self.checker.sent(request, operation).await;
        let (sender, receiver) = oneshot::channel();
        let (broker, sent) = (Arc::clone(self), request.clone());
        tokio::spawn(async move { broker.carry(&sent, number, delivery, sender).await });
        let answer_within = self.scenario.answer_within;
        match tokio::time::timeout(answer_within, receiver).await {
            Ok(Ok(answer)) => {
                self.side.answered(request, operation, &answer);
                self.history.record("answer", || {
                    let body = String::from_utf8_lossy(&answer.body);
                    format!("{process} is answered {} {body}", answer.status)
                });
                Ok(answer)
            }
            Ok(Err(_)) => Err(TransportError::Closed),
            Err(_) => Err(TransportError::TimedOut(answer_within)),
        }
    }

    /// Carries a request to the broker, and its answer back.
    async fn carry(
        &self,
        request: &Request,
        number: u64,
        delivery: RequestDelivery,
        sender: oneshot::Sender<Answer>,
    ) {
        if matches!(delivery, RequestDelivery::Lost) {
            // Nobody knows that it never arrives.
            tokio::time::sleep(self.scenario.answer_within * 2).await;
            return;
        }
        if delivery != RequestDelivery::Late {
            self.on_the_way().await;
            let answer = self.arrive(request, false);
            self.on_the_way().await;
            match delivery {
                RequestDelivery::Answered => {
                    self.side.landed(number);
                    // The process may have died.
                    let _ = sender.send(answer);
                    return;
                }
                RequestDelivery::AnswerLost if self.choices.percent(50) => {
                    drop(sender);
                    return;
                }
                RequestDelivery::AnswerLost
                | RequestDelivery::Lost
                | RequestDelivery::Late
                | RequestDelivery::LateAgain => {}
            }
            if delivery == RequestDelivery::AnswerLost {
                tokio::time::sleep(self.scenario.answer_within * 2).await;
                return;
            }
        }
        let within = self.scenario.answer_within;
        let after = self.choices.between(within, within + LATE_WITHIN);
        tokio::time::sleep(after.saturating_sub(WAY_WITHIN * 2)).await;
        let answer = self.arrive(request, true);
        self.side.landed(number);
        self.history.record("late", || {
            let (method, target) = (request.method, request.target());
            format!("{method} {target} arrives late, and gets {}", answer.status)
        });
        drop(sender);
    }
}

/// One connection.
struct SimulatedTransport {
    process: String,
    broker: Arc<SimulatedBroker>,
    link: Arc<StoreLink>,
}

#[async_trait]
impl BrokerTransport for SimulatedTransport {
    async fn send(&self, request: &Request) -> Result<Answer, TransportError> {
        if self.link.is_dead() {
            return std::future::pending().await;
        }
        tokio::select! {
            biased;
            () = self.link.died() => std::future::pending().await,
            answer = self.broker.exchange(&self.process, request) => answer,
        }
    }
}

impl ConnectBroker for SimulatedConnector {
    fn connect(
        &self,
        _registration: &BrokerRegistration,
    ) -> Result<Arc<dyn BrokerTransport>, InvalidConnectionError> {
        Ok(Arc::new(SimulatedTransport {
            process: self.process.clone(),
            broker: Arc::clone(&self.broker),
            link: Arc::clone(&self.link),
        }))
    }
}
