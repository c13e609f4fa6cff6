//! HTTP client of a broker's administration API.

use super::ConnectionArgs;
use super::error::AdminError;
use reqwest::{Certificate, Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::fmt::Write as _;
use std::time::Duration;

/// Timeout of a connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Timeout between two reads of a response.
const SILENT_AT_MOST: Duration = Duration::from_secs(120);
/// Maximum length of a response that is read whole, in bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Client of one broker.
pub(super) struct AdminClient {
    http: reqwest::Client,
    /// Without a slash at the end.
    url: String,
    user: Option<(String, SecretString)>,
    realm: Option<String>,
}

impl AdminClient {
    pub(super) fn connect(
        connection: &ConnectionArgs,
        password: Option<SecretString>,
    ) -> Result<Self, AdminError> {
        let url = connection.url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(AdminError::Usage(format!(
                "--url must begin with http:// or https://, such as http://127.0.0.1:8080/admin, and not {url:?}"
            )));
        }
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .read_timeout(SILENT_AT_MOST);
        if let Some(path) = &connection.ca {
            let pem = std::fs::read(path).map_err(|error| AdminError::file("read", path, error))?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| {
                unusable(
                    &format!("{} has no certificates in PEM form", path.display()),
                    error,
                )
            })?;
            for certificate in certificates {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let http = builder
            .build()
            .map_err(|error| unusable("no connection can be set up", error))?;
        let user = match (&connection.user, password) {
            (Some(name), Some(password)) => Some((name.clone(), password)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(AdminError::Usage(
                    "set SUTLER_ADMIN_PASSWORD or --password-file to the operator's password"
                        .to_owned(),
                ));
            }
            (None, Some(_)) => {
                return Err(AdminError::Usage(
                    "name the operator with --user or SUTLER_ADMIN_USER".to_owned(),
                ));
            }
        };
        Ok(Self {
            http,
            url,
            user,
            realm: connection.realm.clone(),
        })
    }

    /// Builds a request without sending it.
    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
    ) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}/v1/{path}", self.url));
        if let Some((name, password)) = &self.user {
            request = request.basic_auth(name, Some(password.expose_secret()));
        }
        if let Some(realm) = &self.realm {
            request = request.query(&[("realm", realm)]);
        }
        request.query(query)
    }

    /// Sends a request; a response other than success is an error with the description of the broker.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, AdminError> {
        let response = request.send().await.map_err(|error| {
            let sentence = format!(
                "the broker at {} does not answer; is it running, and is --url right?",
                self.url
            );
            unusable(&sentence, error)
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = read(response)
            .await
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Err(AdminError::answered(
            status.as_u16(),
            sentence(status, &body),
        ))
    }

    /// Sends a request and reads its JSON response.
    pub(super) async fn json(&self, request: RequestBuilder) -> Result<Value, AdminError> {
        let bytes = read(self.send(request).await?).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let sentence =
                "the broker's answer is not JSON; is --url its administration?".to_owned();
            AdminError::Failed(sentence, Some(error.into()))
        })
    }

    pub(super) async fn get(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Value, AdminError> {
        self.json(self.ask(Method::GET, path, query)).await
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, AdminError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(AdminError::failed(
                "the broker's answer is too long; ask for less with --limit",
            ));
        }
    }
    Ok(bytes)
}

/// Error of a response that broke off.
pub(super) fn broken(error: reqwest::Error) -> AdminError {
    unusable("the broker's answer broke off; repeat the command", error)
}

fn unusable(sentence: &str, error: reqwest::Error) -> AdminError {
    // The sentence has the address; the text of the error would repeat it with user and query.
    AdminError::Failed(sentence.to_owned(), Some(error.without_url().into()))
}

fn sentence(status: StatusCode, body: &Value) -> String {
    match body["description"].as_str() {
        Some(sentence) => sentence.to_owned(),
        None => format!(
            "no reason was given ({}); is --url the broker's administration?",
            status.canonical_reason().unwrap_or("unknown")
        ),
    }
}

/// Encodes an id as a path segment.
pub(super) fn segment(id: &str) -> String {
    id.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn an_id_of_any_kind_is_one_segment() {
        assert_eq!(segment("a-b_c~1"), "a-b_c~1");
        assert_eq!(segment("a/b ä."), "a%2Fb%20%C3%A4%2E");
    }
}
