//! Invariants of requests: two of one intent are the same bytes (I-6), and each has the identity of its author (I-7).

use super::model_broker::RequestTarget;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use sutler_client::wire::{Method, Request};
use sutler_journal::OperationId;
use sutler_platform::records::IntentRequest;

/// Requests that change something, as they were sent first.
#[derive(Default)]
pub(crate) struct SentRequests(BTreeMap<(OperationId, RequestTarget), Vec<u8>>);

impl SentRequests {
    /// I-6: a request that was sent before has the same bytes.
    pub(crate) fn check_bytes(
        &mut self,
        request: &Request,
        operation: OperationId,
    ) -> Option<String> {
        if request.method == Method::Get {
            return None;
        }
        let Ok(bytes) = request.to_stored() else {
            return Some("I-6: a request cannot be stored".to_owned());
        };
        let bytes = bytes.to_vec();
        let place = (operation, RequestTarget::of(request));
        let first = self.0.entry(place).or_insert_with(|| bytes.clone());
        (*first != bytes).then(|| {
            format!(
                "I-6: {} {} was sent with other bytes before",
                request.method,
                request.target()
            )
        })
    }
}

/// I-7: a request has the identity of who asked for it; what the platform does by itself has none.
pub(crate) fn check_identity(request: &Request, intent: &IntentRequest) -> Option<String> {
    let wanted = match intent.verb.as_str() {
        "mitigate" => None,
        _ => intent.author.as_ref().map(|it| it.username.clone()),
    };
    let found = user_of(request);
    (found != wanted).then(|| {
        format!(
            "I-7: {} {} is sent as {found:?} and was asked for by {wanted:?}",
            request.method,
            request.target()
        )
    })
}

/// The user of the originating identity.
fn user_of(request: &Request) -> Option<String> {
    let mut headers = request.headers.iter();
    let (_, value) =
        headers.find(|(name, _)| name.eq_ignore_ascii_case("X-Broker-API-Originating-Identity"))?;
    let encoded = value.split_whitespace().nth(1)?;
    let user: Value = serde_json::from_slice(&STANDARD.decode(encoded).ok()?).ok()?;
    user["username"].as_str().map(str::to_owned)
}
