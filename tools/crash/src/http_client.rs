//! A client of a broker over [`sutler_servers::http`]: one connection, JSON in and out, with lost responses as
//! an error.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use sutler_servers::http::HttpConnection;
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
    line: Option<HttpConnection>,
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
        method: &str,
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

    async fn try_send(&mut self, method: &str, path: &str, body: &Value) -> Option<HttpResponse> {
        let address = self.address;
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-Broker-API-Version: 2.17\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let line = match self.line.take() {
            Some(line) if line.is_idle() => line,
            _ => connect(address).await?,
        };
        let line = self.line.insert(line);
        let response = line.send(request.as_bytes()).await.ok()?;
        let closes = response.header("connection") == Some("close");
        let answer = HttpResponse {
            status: response.status,
            body: serde_json::from_slice(response.body).unwrap_or(Value::Null),
            retry_after: response.header("retry-after").map(str::to_owned),
        };
        if closes {
            self.line = None;
        }
        Some(answer)
    }
}

async fn connect(address: SocketAddr) -> Option<HttpConnection> {
    let stream = TcpStream::connect(address).await.ok()?;
    // The kernel chose the unused target port for this end: the socket is connected to itself.
    if stream.local_addr().ok()? == address {
        return None;
    }
    HttpConnection::new(stream).ok()
}
