//! Requests of a platform to a broker, each on a separate connection.
//!
//! Adds the headers of the protocol to [`sutler_servers::http`], which sends them.

use sutler_servers::http::HttpRequest;
pub(crate) use sutler_servers::http::base64;

const VERSION_HEADER: &str = "X-Broker-API-Version";

/// A request.
#[derive(Clone)]
pub(crate) struct BrokerRequest(HttpRequest);

/// A response.
#[derive(Debug)]
pub(crate) struct BrokerResponse {
    pub(crate) status: u16,
    /// Headers and body.
    pub(crate) text: String,
}

impl BrokerRequest {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self(HttpRequest::new(method, path).with_header(VERSION_HEADER, "2.17"))
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// Removes `X-Broker-API-Version`.
    pub(crate) fn without_version(mut self) -> Self {
        self.0.headers.retain(|(name, _)| name != VERSION_HEADER);
        self
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        Self(self.0.with_header(name, value))
    }

    /// Adds basic authentication by `name:password`.
    pub(crate) fn user(self, pair: &str) -> Self {
        Self(self.0.with_basic_auth(pair))
    }

    pub(crate) fn json(self, body: &serde_json::Value) -> Self {
        self.text(&body.to_string())
    }

    /// Sets a body with the media type of JSON.
    pub(crate) fn text(self, body: &str) -> Self {
        Self(self.0.with_body("application/json", body))
    }

    /// Sets a body with the media type of a form.
    pub(crate) fn form(self, body: &str) -> Self {
        Self(self.0.with_body("application/x-www-form-urlencoded", body))
    }

    /// Sends the request and reads the whole response.
    pub(crate) fn send(&self, address: &str) -> BrokerResponse {
        self.try_send(address).expect("it answers")
    }

    pub(crate) fn try_send(&self, address: &str) -> std::io::Result<BrokerResponse> {
        let response = self.0.send(address)?;
        Ok(BrokerResponse {
            status: response.status,
            text: response.text(),
        })
    }
}
