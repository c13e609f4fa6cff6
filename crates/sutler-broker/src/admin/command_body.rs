//! Body of a command: the reason of the operator.

use super::response::AdminError;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use std::time::Duration;

/// Maximum body of a command, in bytes.
const COMMAND_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a reason, in characters.
const REASON_CHARS_MAX: usize = 500;
/// Time limit for the body of a command.
const COMMAND_BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Body of a command.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandBody {
    #[serde(default)]
    reason: String,
}

/// Reads the operator's reason: stored, and shown to platforms if the command ends an operation.
pub(crate) async fn read_reason<B>(body: B) -> Result<String, AdminError>
where
    B: hyper::body::Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let read = Limited::new(body, COMMAND_BYTES_MAX).collect();
    match tokio::time::timeout(COMMAND_BODY_TIMEOUT, read).await {
        Ok(Ok(collected)) => reason_of(&collected.to_bytes()),
        Ok(Err(_)) | Err(_) => Err(AdminError::invalid(format!(
            "The body must arrive within {} s and have at most {COMMAND_BYTES_MAX} bytes; send only {{\"reason\": \"…\"}}.",
            COMMAND_BODY_TIMEOUT.as_secs()
        ))),
    }
}

fn reason_of(body: &[u8]) -> Result<String, AdminError> {
    if body.is_empty() {
        return Ok(String::new());
    }
    let body: CommandBody = serde_json::from_slice(body).map_err(|error| {
        AdminError::invalid(format!(
            "The body must be an object like {{\"reason\": \"…\"}}: {error}."
        ))
    })?;
    let reason = body.reason.trim();
    if reason.chars().count() > REASON_CHARS_MAX || reason.chars().any(char::is_control) {
        return Err(AdminError::invalid(format!(
            "reason must be one line of at most {REASON_CHARS_MAX} characters; shorten it."
        )));
    }
    Ok(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{REASON_CHARS_MAX, reason_of};

    #[test]
    fn a_reason_is_one_short_line_or_nothing() {
        let reason = |text: &str| reason_of(text.as_bytes());
        assert_eq!(reason("").ok().as_deref(), Some(""));
        assert_eq!(reason("{}").ok().as_deref(), Some(""));
        let padded = r#"{"reason": "  stuck since Monday "}"#;
        assert_eq!(reason(padded).ok().as_deref(), Some("stuck since Monday"));
        assert!(reason(r#"{"reason": "a\nb"}"#).is_err());
        assert!(reason(r#"{"why": "x"}"#).is_err());
        let long = "x".repeat(REASON_CHARS_MAX + 1);
        assert!(reason(&format!(r#"{{"reason": "{long}"}}"#)).is_err());
    }
}
