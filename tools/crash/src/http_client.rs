//! A small HTTP client: one connection, JSON in and out, with lost responses as an error.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for one response; the broker's own limit for waiting requests is 50 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(55);

/// A complete response.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpResponse {
    /// Its status.
    pub status: u16,
    /// Its body; null if there was none.
    pub body: Value,
    /// `Retry-After`.
    pub retry_after: Option<String>,
}

impl HttpResponse {
    /// The operation named by a response.
    pub fn operation(&self) -> Option<&str> {
        self.body["operation"].as_str()
    }

    /// The state that a poll reports.
    pub fn state(&self) -> Option<&str> {
        self.body["state"].as_str()
    }
}

/// No complete response arrived. Whether the request was executed is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The connection broke, or could not be opened.
    Line,
    /// No response within the time limit: always an error of the broker.
    Time,
}

/// A client of one address.
#[derive(Debug)]
pub struct HttpClient {
    address: SocketAddr,
    line: Option<SendRequest<Full<Bytes>>>,
}

impl HttpClient {
    /// Connects with the first request.
    pub fn to(address: SocketAddr) -> Self {
        Self {
            address,
            line: None,
        }
    }

    /// Sends a request and waits for the complete response.
    ///
    /// # Errors
    /// See [`Lost`].
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<HttpResponse, Lost> {
        let sent = timeout(ANSWER_WITHIN, self.try_send(method, path, body)).await;
        let answer = sent
            .map_err(|_| Lost::Time)
            .and_then(|it| it.ok_or(Lost::Line));
        if answer.is_err() {
            self.line = None;
        }
        answer
    }

    async fn try_send(&mut self, method: Method, path: &str, body: &Value) -> Option<HttpResponse> {
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("x-broker-api-version", "2.17")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(bytes))
            .ok()?;
        let line = match self.line.take() {
            Some(line) if line.is_ready() => line,
            _ => connect(self.address).await?,
        };
        let line = self.line.insert(line);
        line.ready().await.ok()?;
        let response = line.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|it| it.to_str().ok())
            .map(str::to_owned);
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Some(HttpResponse {
            status,
            body,
            retry_after,
        })
    }
}

async fn connect(address: SocketAddr) -> Option<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.ok()?;
    // The kernel chose the unused target port for this end: the socket is connected to itself.
    if stream.local_addr().ok()? == address {
        return None;
    }
    stream.set_nodelay(true).ok()?;
    let (line, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    // Ends with the connection.
    tokio::spawn(connection);
    Some(line)
}
