//! The victim's hooks: every verb is a few memoised steps, and each step is one line in the log.

use super::event_log::EventLog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use sutler_broker::{Bound, Cx, Error, Provisioned, Result, Service, Update, Updated};
use uuid::Uuid;

/// Interval at which a gated hook checks its gate.
const GATE_EVERY: Duration = Duration::from_millis(2);

/// Steps of an instance of this size take longer.
const LARGE: u64 = 3;

/// Number of steps of a verb.
pub fn steps_of(verb: &str) -> u32 {
    match verb {
        "provision" => 3,
        "unbind" => 1,
        _ => 2,
    }
}

/// Parameters of an instance.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct Params {
    #[serde(default)]
    size: u32,
    /// Start only when the gate is open.
    #[serde(default)]
    gated: bool,
    /// Fail after the first step.
    #[serde(default)]
    fails: bool,
}

/// State of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    size: u32,
    serial: String,
}

pub(super) struct ClockworkService {
    pub(super) event_log: Arc<EventLog>,
    pub(super) step: Duration,
    /// Factor for steps of large instances.
    pub(super) large: u32,
    pub(super) gate: Option<PathBuf>,
}

impl ClockworkService {
    /// Runs all steps of a verb. Each returns a new word, so that a repeated step shows in its result.
    async fn tick(&self, cx: &Cx, verb: &'static str) -> Result<String> {
        let mut words = Vec::new();
        for step in 1..=steps_of(verb) {
            words.push(self.step(cx, verb, step).await?);
        }
        Ok(words.join("."))
    }

    async fn step(&self, cx: &Cx, verb: &'static str, step: u32) -> Result<String> {
        let name = format!("{verb}-{step}");
        let ran = AtomicBool::new(false);
        let word = cx
            .step(&name, || {
                ran.store(true, Ordering::Relaxed);
                self.effect(cx, verb, step)
            })
            .await?;
        if ran.into_inner() {
            self.event_log.kept(cx, step).map_err(unwritten)?;
        }
        Ok(word)
    }

    async fn effect(&self, cx: &Cx, verb: &str, step: u32) -> Result<String> {
        self.event_log.ran(cx, verb, step).map_err(unwritten)?;
        let size = cx.parameters().0.get("size").and_then(Value::as_u64);
        let times = match size {
            Some(LARGE..) => self.large,
            Some(_) | None => 1,
        };
        tokio::time::sleep(self.step * times).await;
        Ok(Uuid::new_v4().simple().to_string())
    }

    async fn pass_gate(&self, gated: bool) {
        let Some(gate) = self.gate.as_ref().filter(|_| gated) else {
            return;
        };
        while !gate.exists() {
            tokio::time::sleep(GATE_EVERY).await;
        }
    }
}

fn unwritten(error: std::io::Error) -> Error {
    Error::failed("The ledger cannot be written.").because(error.to_string())
}

impl Service for ClockworkService {
    type Params = Params;
    type State = State;
    const UPDATES: bool = true;

    async fn provision(&self, cx: &Cx, params: Params) -> Result<Provisioned<State>> {
        self.pass_gate(params.gated).await;
        cx.save_state(&State {
            size: 0,
            serial: "begun".to_owned(),
        })
        .await?;
        if params.fails {
            self.step(cx, "provision", 1).await?;
            return Err(Error::failed("It was asked to fail."));
        }
        let serial = self.tick(cx, "provision").await?;
        Ok(Provisioned::new(State {
            size: params.size,
            serial,
        }))
    }

    async fn update(
        &self,
        cx: &Cx,
        state: State,
        update: Update<Params>,
    ) -> Result<Updated<State>> {
        self.tick(cx, "update").await?;
        Ok(Provisioned::new(State {
            size: update.params.size,
            ..state
        }))
    }

    async fn bind(&self, cx: &Cx, state: &State) -> Result<Bound> {
        let secret = self.tick(cx, "bind").await?;
        let credentials = json!({ "secret": secret, "serial": state.serial, "size": state.size });
        Ok(Bound::credentials(credentials))
    }

    async fn unbind(&self, cx: &Cx, _state: &State) -> Result<()> {
        self.tick(cx, "unbind").await.map(drop)
    }

    async fn deprovision(&self, cx: &Cx, _state: Option<State>) -> Result<()> {
        self.tick(cx, "deprovision").await.map(drop)
    }
}
