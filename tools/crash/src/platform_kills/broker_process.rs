//! Starts a recording broker and gives it orders.

use super::api_client::{ApiClient, Asked};
use crate::recording_broker::{BrokerState, Rule, Script};
use crate::violation::{CheckResult, Violation};
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest wait for its address.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// A recording broker. Killed on drop.
#[derive(Debug)]
pub(crate) struct BrokerProcess {
    child: Child,
    /// Where it is.
    pub(crate) address: SocketAddr,
}

impl BrokerProcess {
    /// Starts a recording broker on this port, 0 for any.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) async fn start(program: &Path, port: u16) -> CheckResult<Self> {
        let failed = |error: std::io::Error| Violation::new(format!("no broker: {error}"));
        let mut command = Command::new(program);
        command
            .args(["recording-broker", "--port", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| Violation::new("no standard output"))?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(READY_WITHIN, lines.next_line()).await;
        let line = line.map_err(|_| Violation::new("the recording broker is not ready in time"))?;
        let line = line.map_err(failed)?;
        let address = line.and_then(|it| it.strip_prefix("ready ")?.parse().ok());
        let address =
            address.ok_or_else(|| Violation::new("the recording broker ended at once"))?;
        Ok(Self { child, address })
    }

    /// Forgets everything and begins with a script.
    pub(crate) async fn begin(&self, script: &Script) -> CheckResult<()> {
        self.order("PUT", "/recording/script", script)
            .await
            .map(drop)
    }

    /// Answers by these rules from now on.
    pub(crate) async fn replace_rules(&self, rules: &[Rule]) -> CheckResult<()> {
        self.order("PUT", "/recording/rules", &rules)
            .await
            .map(drop)
    }

    /// Takes this time for each answer from now on, in milliseconds.
    pub(crate) async fn set_delay(&self, delay_ms: u64) -> CheckResult<()> {
        self.order("PUT", "/recording/delay", &delay_ms)
            .await
            .map(drop)
    }

    /// Has this catalog from now on.
    pub(crate) async fn replace_catalog(&self, catalog: &Value) -> CheckResult<()> {
        let replaced = self.order("PUT", "/recording/catalog", catalog).await;
        replaced.map(drop)
    }

    /// What it has.
    pub(crate) async fn state(&self) -> CheckResult<BrokerState> {
        let state = self.order("GET", "/recording/state", &Value::Null).await?;
        serde_json::from_value(state)
            .map_err(|error| Violation::new(format!("the broker: {error}")))
    }

    /// Ends it at once.
    pub(crate) async fn kill(mut self) {
        let _ = self.child.kill().await;
    }

    async fn order(&self, method: &str, path: &str, body: &impl Serialize) -> CheckResult<Value> {
        let body = serde_json::to_value(body);
        let body = body.map_err(|error| Violation::new(format!("the broker: {error}")))?;
        let asked = Asked {
            method,
            path,
            body: &body,
            ..Asked::default()
        };
        let answer = ApiClient::to(self.address).send(&asked).await;
        match answer {
            Some(answer) if answer.status == 200 => Ok(answer.body),
            other => Err(Violation::new(format!("the broker: {path}: {other:?}"))),
        }
    }
}
