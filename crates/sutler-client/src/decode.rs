//! Decodes raw answers into typed replies, one function per kind of request. Pure.
//!
//! A body must have the form of the specification; unknown fields are ignored (P-005). Error bodies are
//! read leniently: one wrong field does not discard the others.

use crate::reply::{
    AcceptedOperation, Answer, ExpectedStatus, NoReplyError, OtherStatus, Reply, ReplyBodyError,
    SuccessStatus,
};
use crate::retry_after::RetryAfter;
use crate::wire;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sutler_osb::{
    AsyncBindResponse, BindResponse, Catalog, DeleteResponse, ErrorBody, ErrorCode,
    FetchBindingResponse, FetchInstanceResponse, LastOperationResponse, ProvisionResponse,
    UpdateResponse, from_json,
};

/// Longest text of an error that is kept, in characters.
const ERROR_CHARS_MAX: usize = 4_000;

/// Result of sending a request.
pub type WireResult = Result<wire::Answer, wire::TransportError>;

/// Decodes the result of a catalog request.
pub fn catalog(outcome: WireResult) -> Reply<Catalog> {
    read(outcome)
}

/// Decodes the result of a provision.
pub fn provision(outcome: WireResult) -> Reply<ProvisionResponse> {
    change::<_, ProvisionResponse>(outcome, Creates::Yes)
}

/// Decodes the result of an update.
pub fn update(outcome: WireResult) -> Reply<UpdateResponse> {
    change::<_, UpdateResponse>(outcome, Creates::No)
}

/// Decodes the result of a bind or a rotation.
pub fn bind(outcome: WireResult) -> Reply<BindResponse> {
    change::<_, AsyncBindResponse>(outcome, Creates::Yes)
}

/// Decodes the result of a deprovision or an unbind.
pub fn delete(outcome: WireResult) -> Reply<DeleteResponse> {
    change::<_, DeleteResponse>(outcome, Creates::No)
}

/// Decodes the result of fetching an instance.
pub fn fetched_instance(outcome: WireResult) -> Reply<FetchInstanceResponse> {
    read(outcome)
}

/// Decodes the result of fetching a binding.
pub fn fetched_binding(outcome: WireResult) -> Reply<FetchBindingResponse> {
    read(outcome)
}

/// Decodes the result of a poll, of an instance or of a binding.
pub fn poll(outcome: WireResult) -> Reply<LastOperationResponse> {
    read(outcome)
}

/// Whether 201 is defined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Creates {
    Yes,
    No,
}

fn change<B, A>(outcome: WireResult, creates: Creates) -> Reply<B>
where
    B: DeserializeOwned,
    A: DeserializeOwned + Into<AcceptedOperation>,
{
    event(outcome, |answer| match answer.status {
        200 => done(SuccessStatus::Ok, ExpectedStatus::Ok, &answer.body),
        201 if creates == Creates::Yes => done(
            SuccessStatus::Created,
            ExpectedStatus::Created,
            &answer.body,
        ),
        202 => match from_json::<A>(&answer.body) {
            Ok(body) => Answer::Accepted(body.into()),
            Err(fault) => {
                Answer::Malformed(ExpectedStatus::Accepted, ReplyBodyError(fault.to_string()))
            }
        },
        status => other(status, &answer.body),
    })
}

fn read<B: DeserializeOwned>(outcome: WireResult) -> Reply<B> {
    event(outcome, |answer| match answer.status {
        200 => done(SuccessStatus::Ok, ExpectedStatus::Ok, &answer.body),
        status => other(status, &answer.body),
    })
}

fn event<B>(outcome: WireResult, judge: impl FnOnce(&wire::Answer) -> Answer<B>) -> Reply<B> {
    match outcome {
        Ok(answer) => Reply::Answer {
            retry_after: answer.header("Retry-After").and_then(RetryAfter::parse),
            answer: judge(&answer),
        },
        Err(reason) => Reply::NoAnswer(no_reply(reason)),
    }
}

fn done<B: DeserializeOwned>(
    done: SuccessStatus,
    expected: ExpectedStatus,
    body: &[u8],
) -> Answer<B> {
    match from_json(body) {
        Ok(body) => Answer::Done(done, body),
        Err(fault) => Answer::Malformed(expected, ReplyBodyError(fault.to_string())),
    }
}

fn other<B>(status: u16, body: &[u8]) -> Answer<B> {
    Answer::Other(OtherStatus::new(status), error_body(body))
}

fn no_reply(reason: wire::TransportError) -> NoReplyError {
    match reason {
        wire::TransportError::NotSent(reason) => NoReplyError::NotSent(reason),
        wire::TransportError::NoPlace(reason) => NoReplyError::NoPlace(reason),
        wire::TransportError::TimedOut(within) => NoReplyError::TimedOut(within),
        wire::TransportError::Closed
        | wire::TransportError::Garbage(_)
        | wire::TransportError::TooLong(_) => NoReplyError::Broken(reason.to_string()),
    }
}

/// Decodes the body of an error; invalid fields count as absent.
pub fn error_body(bytes: &[u8]) -> ErrorBody {
    let Ok(body) = from_json::<Map<String, Value>>(bytes) else {
        return ErrorBody::default();
    };
    let text = |name: &str| {
        let text = body.get(name).and_then(Value::as_str)?;
        let text: String = text.chars().take(ERROR_CHARS_MAX).collect();
        (!text.trim().is_empty()).then_some(text)
    };
    let flag = |name: &str| body.get(name).and_then(Value::as_bool);
    ErrorBody {
        error: text("error").map(ErrorCode::from),
        description: text("description"),
        instance_usable: flag("instance_usable"),
        update_repeatable: flag("update_repeatable"),
    }
}

#[cfg(test)]
mod tests {
    use super::{bind, delete, error_body, poll, provision, update};
    use crate::reply::{Answer, ExpectedStatus, Reply, SuccessStatus};
    use crate::wire;
    use sutler_osb::ErrorCode;

    fn answered(status: u16, body: &str) -> super::WireResult {
        Ok(wire::Answer::new(status, &[], body.to_owned()))
    }

    fn answer<B>(reply: Reply<B>) -> Answer<B> {
        match reply {
            Reply::Answer { answer, .. } => answer,
            Reply::NoAnswer(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_201_is_a_success_only_where_something_is_created() {
        assert!(matches!(
            answer(provision(answered(201, "{}"))),
            Answer::Done(SuccessStatus::Created, _)
        ));
        assert!(matches!(
            answer(bind(answered(201, "{}"))),
            Answer::Done(SuccessStatus::Created, _)
        ));
        for other in [
            answer(delete(answered(201, "{}"))).status(),
            answer(update(answered(201, "{}"))).status(),
            answer(poll(answered(202, "{}"))).status(),
        ] {
            assert!(other.is_some());
        }
    }

    #[test]
    fn an_invalid_body_is_malformed_with_its_reason() {
        let Answer::Malformed(ExpectedStatus::Created, fault) =
            answer(provision(answered(201, "")))
        else {
            panic!("well-formed");
        };
        assert!(fault.to_string().contains("empty"), "{fault}");
        let long = format!("{{\"operation\": \"{}\"}}", "x".repeat(10_001));
        assert!(matches!(
            answer(delete(answered(202, &long))),
            Answer::Malformed(ExpectedStatus::Accepted, _)
        ));
    }

    /// A 202 of a bind has no dashboard: a field of that name is an extension of the broker.
    #[test]
    fn an_accepted_bind_is_read_for_its_operation_only() {
        let Answer::Accepted(accepted) = answer(bind(answered(
            202,
            r#"{"operation":"o","dashboard_url":7}"#,
        ))) else {
            panic!("not accepted");
        };
        assert_eq!(accepted.operation.expect("a token").as_str(), "o");
        assert_eq!(accepted.dashboard_url, None);
    }

    #[test]
    fn one_wrong_field_of_an_error_does_not_discard_the_others() {
        let body = error_body(
            br#"{"error":"ConcurrencyError","description":7,"update_repeatable":false}"#,
        );
        assert_eq!(body.error, Some(ErrorCode::ConcurrencyError));
        assert_eq!(body.description, None);
        assert_eq!(body.update_repeatable, Some(false));
        for nothing in ["", "[]", "<html>", "{\"error\":\"\"}", "7"] {
            assert_eq!(error_body(nothing.as_bytes()).error, None, "{nothing}");
        }
    }

    #[test]
    fn an_overlong_description_is_cut() {
        let body = format!(r#"{{"description":"{}"}}"#, "ä".repeat(100_000));
        let kept = error_body(body.as_bytes()).description.expect("a text");
        assert_eq!(kept.chars().count(), 4_000);
    }
}
