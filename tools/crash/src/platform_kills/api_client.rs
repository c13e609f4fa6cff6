//! Requests to the platform's REST API in the name of a user, one connection each. An answer that does not come is
//! `None`.

use crate::victim::PASSWORD;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use sutler_servers::http::{HttpConnection, base64};
use tokio::time::timeout;

/// Longest wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// User; none: without authentication.
    pub(crate) user: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Null: no body.
    pub(crate) body: &'a Value,
    pub(crate) idempotency_key: Option<&'a str>,
}

impl Default for Asked<'_> {
    fn default() -> Self {
        Self {
            user: None,
            method: "GET",
            path: "/",
            body: &Value::Null,
            idempotency_key: None,
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiAnswer {
    pub(crate) status: u16,
    /// Null if there is none.
    pub(crate) body: Value,
    /// `Location`: the intent of an accepted order.
    pub(crate) location: Option<String>,
}

/// A client of one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiClient(SocketAddr);

impl ApiClient {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Sends a request; `None`: whether it was carried out is not known.
    pub(crate) async fn send(&self, asked: &Asked<'_>) -> Option<ApiAnswer> {
        timeout(ANSWER_WITHIN, self.try_send(asked)).await.ok()?
    }

    async fn try_send(&self, asked: &Asked<'_>) -> Option<ApiAnswer> {
        let text = self.text_of(asked);
        let mut connection = HttpConnection::connect(self.0).await.ok()?;
        let response = connection.send(text.as_bytes()).await.ok()?;
        Some(ApiAnswer {
            status: response.status,
            body: serde_json::from_slice(response.body).unwrap_or(Value::Null),
            location: response.header("location").map(str::to_owned),
        })
    }

    fn text_of(&self, asked: &Asked<'_>) -> String {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n",
            asked.method, asked.path, self.0
        );
        if let Some(user) = asked.user {
            let pair = base64(&format!("{user}:{PASSWORD}"));
            head.push_str(&format!("Authorization: Basic {pair}\r\n"));
        }
        if let Some(key) = asked.idempotency_key {
            head.push_str(&format!("Idempotency-Key: {key}\r\n"));
        }
        let body = match asked.body {
            Value::Null => String::new(),
            body => {
                let media_type = match asked.method {
                    "PATCH" => "application/merge-patch+json",
                    _ => "application/json",
                };
                head.push_str(&format!("Content-Type: {media_type}\r\n"));
                body.to_string()
            }
        };
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    }
}
