//! A request as the recording broker received it, and the log of all of them: one line of JSON each, written before the
//! answer.

use super::http_exchange::ParsedRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Header with the name of the process that sent a request; no broker reads it.
pub const SENDER: &str = "x-sutler-crash-process";

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReceivedRequest {
    /// When it came, by the machine's clock, in microseconds since 1970.
    pub at_us: u64,
    /// The process of the platform that sent it.
    pub sender: Option<String>,
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The originating identity, as it was sent.
    pub identity: Option<String>,
    /// The operation of the platform that sent it (request identity).
    pub operation: Option<String>,
    /// All other headers that a broker may read, in their order.
    pub headers: Vec<(String, String)>,
    /// Its body, in base64.
    pub body: String,
    /// What it changed at the broker.
    pub effect: RequestEffect,
    /// What was answered.
    pub answer: BrokerAnswer,
}

/// What a request changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestEffect {
    /// Nothing.
    Nothing,
    /// Something was created, or its creation has begun.
    Created,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum BrokerAnswer {
    /// A whole answer.
    Sent {
        /// Status.
        status: u16,
        /// Body.
        body: Value,
    },
    /// The connection was closed.
    Closed,
    /// None, for ever.
    Silent,
}

impl ReceivedRequest {
    pub(super) fn of(
        at_us: u64,
        request: &ParsedRequest,
        effect: RequestEffect,
        answer: BrokerAnswer,
    ) -> Self {
        // Headers of the connection say nothing about the request.
        const OF_CONNECTION: [&str; 6] = [
            "host",
            "connection",
            "accept",
            "accept-encoding",
            "content-length",
            "user-agent",
        ];
        const NAMED: [&str; 3] = [
            "x-broker-api-originating-identity",
            "x-broker-api-request-identity",
            SENDER,
        ];
        let is_other = |name: &str| !OF_CONNECTION.contains(&name) && !NAMED.contains(&name);
        let others = request.headers.iter().filter(|(name, _)| is_other(name));
        let [identity, operation, sender] =
            NAMED.map(|name| request.header(name).map(str::to_owned));
        Self {
            at_us,
            sender,
            method: request.method.clone(),
            target: request.target.clone(),
            identity,
            operation,
            headers: others.cloned().collect(),
            body: STANDARD.encode(&request.body),
            effect,
            answer,
        }
    }

    /// The name of the person in the originating identity.
    pub fn user(&self) -> Option<String> {
        let encoded = self
            .identity
            .as_ref()?
            .split_whitespace()
            .nth(1)?
            .to_owned();
        let user: Value = serde_json::from_slice(&STANDARD.decode(encoded).ok()?).ok()?;
        user["username"].as_str().map(str::to_owned)
    }

    /// Path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Whether it asks for a change.
    pub fn is_change(&self) -> bool {
        self.method != "GET"
    }
}

/// The log.
#[derive(Debug, Default)]
pub(super) struct RequestLog(Option<File>);

impl RequestLog {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(Some(file)))
    }

    /// Writes a line, in one call.
    pub(super) fn write(&mut self, request: &ReceivedRequest) -> io::Result<()> {
        let Some(file) = &mut self.0 else {
            return Ok(());
        };
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        file.write_all(line.as_bytes())
    }
}

/// Reads a log.
///
/// # Errors
/// It cannot be read, or a line is none of it.
pub fn read_requests(log: &Path) -> io::Result<Vec<ReceivedRequest>> {
    let text = std::fs::read_to_string(log)?;
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}
