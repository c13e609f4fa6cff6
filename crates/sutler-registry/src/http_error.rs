//! Errors of a single HTTP request, before an adapter knows what they mean for its caller.
//!
//! `check_status` classifies statuses. Adapters turn an [`HttpError`] into the error of a listing or of an item
//! (`error.rs`).

use crate::error::{ItemError, ListError};
use reqwest::header::HeaderMap;
use serde::Deserialize;

/// Error codes that a registry sends if an image, a tag or a blob does not exist.
const ABSENT_CODES: [&str; 4] = [
    "MANIFEST_UNKNOWN",
    "NAME_UNKNOWN",
    "BLOB_UNKNOWN",
    "TAG_UNKNOWN",
];
/// A header that only registries send.
const REGISTRY_HEADER: &str = "docker-distribution-api-version";

/// Reason why a request has no usable response. Each variant holds a clause: the cause, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpError {
    /// No whole response, or one that asks to retry later.
    Silent(String),
    /// Credentials are missing, wrong or insufficient.
    Denied(String),
    /// The registry itself reports that the resource does not exist.
    Absent(String),
    /// The response is not what the protocol allows.
    Garbled(String),
    /// The response is longer than the limit.
    TooMuch(String),
}

impl HttpError {
    /// Converts into the error of a listing; `subject` names the registry.
    pub(crate) fn of_listing(self, subject: &str) -> ListError {
        match self {
            Self::Silent(why) => ListError::Unreachable(format!("{subject} {why}")),
            Self::Denied(why) => ListError::Denied(format!("{subject} {why}")),
            Self::Absent(why) | Self::Garbled(why) => {
                ListError::Malformed(format!("{subject} {why}"))
            }
            Self::TooMuch(why) => ListError::TooMuch(format!("{subject} {why}")),
        }
    }

    /// Converts into the error of an item; `subject` names the item.
    pub(crate) fn of_item(self, subject: &str) -> ItemError {
        match self {
            Self::Silent(why) => ItemError::Transient(format!("{subject}: the registry {why}")),
            Self::Denied(why) => ItemError::Denied(format!("{subject}: the registry {why}")),
            Self::Absent(why) => ItemError::Gone(format!("{subject}: the registry {why}")),
            Self::Garbled(why) | Self::TooMuch(why) => ItemError::Malformed {
                digest: None,
                sentence: format!("{subject}: the registry {why}"),
            },
        }
    }
}

/// Classifies a status; `Ok` if the body can be read.
pub(crate) fn check_status(status: u16, headers: &HeaderMap, body: &[u8]) -> Result<(), HttpError> {
    match status {
        200..=299 => Ok(()),
        401 | 403 => Err(HttpError::Denied(format!(
            "answered {status}: check the credentials and what they may read"
        ))),
        404 if is_absent(headers, body) => Err(HttpError::Absent(
            "has no such image or tag: push it, or leave it out of the configuration".to_owned(),
        )),
        404 => Err(HttpError::Silent(
            "answered 404 in a way that registries do not: check that the URL is the registry's and that \
             nothing answers in its place"
                .to_owned(),
        )),
        429 => Err(HttpError::Silent(
            "wants fewer requests (429): refresh less often, or give credentials with a larger allowance"
                .to_owned(),
        )),
        300..=399 => Err(HttpError::Garbled(format!(
            "sends us elsewhere ({status}), which is followed for blobs only: use the URL it leads to"
        ))),
        500..=599 => Err(HttpError::Silent(format!(
            "answered {status}: it is tried again at the next refresh; if that stays so, look at its log"
        ))),
        other => Err(HttpError::Garbled(format!(
            "answered {other}, which makes no sense here: check that the URL is the registry's"
        ))),
    }
}

/// Whether a 404 comes from the registry itself and not from a proxy in between.
pub(crate) fn is_absent(headers: &HeaderMap, body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ErrorBody {
        errors: Vec<Code>,
    }
    #[derive(Deserialize)]
    struct Code {
        code: String,
    }
    if headers.contains_key(REGISTRY_HEADER) {
        return true;
    }
    let body: Option<ErrorBody> = serde_json::from_slice(body).ok();
    let mut codes = body.into_iter().flat_map(|it| it.errors);
    codes.any(|it| ABSENT_CODES.contains(&it.code.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: u16, body: &str) -> Result<(), HttpError> {
        check_status(status, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn only_a_404_of_the_registry_itself_means_gone() {
        let own = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"x"}]}"#;
        assert!(matches!(checked(404, own), Err(HttpError::Absent(_))));
        for foreign in ["", "<html>nginx</html>", r#"{"errors":[{"code":"X"}]}"#] {
            assert!(
                matches!(checked(404, foreign), Err(HttpError::Silent(_))),
                "{foreign}"
            );
        }
        let headers = [(REGISTRY_HEADER, "registry/2.0")]
            .into_iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("text")))
            .collect();
        assert!(matches!(
            check_status(404, &headers, b""),
            Err(HttpError::Absent(_))
        ));
    }

    #[test]
    fn statuses_are_classified_by_what_may_be_concluded() {
        assert_eq!(checked(200, ""), Ok(()));
        for (status, kind) in [
            (401, "denied"),
            (403, "denied"),
            (429, "transient"),
            (500, "transient"),
            (503, "transient"),
            (404, "transient"),
            (302, "malformed"),
            (418, "malformed"),
        ] {
            let error = checked(status, "").expect_err("no success");
            assert_eq!(error.of_item("x").kind(), kind, "{status}");
        }
    }
}
