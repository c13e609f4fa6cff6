//! Invariants of requests: each was written down before, two of one intent are the same bytes (I-6), and each has the
//! identity of its author (I-7). Nothing is deleted that lives.

use super::known_resources::KnownResources;
use super::model_broker::RequestTarget;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use sutler_client::wire::{Method, Request};
use sutler_journal::{OperationId, OperationRow};
use sutler_platform::author::Author;
use sutler_platform::lifecycle::intent::IntentState;
use sutler_platform::lifecycle::orphan::OrphanState;
use sutler_platform::records::{IntentProgress, IntentRequest};

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

/// I-7: a request has the whole identity of who asked for it; what the platform does by itself has none.
pub(crate) fn check_identity(request: &Request, intent: &IntentRequest) -> Option<String> {
    let wanted = match intent.verb.as_str() {
        "mitigate" => None,
        _ => intent.author.as_ref().map(user_info),
    };
    let found = identity_of(request);
    (found != wanted).then(|| {
        format!(
            "I-7: {} {} is sent as {found:?} and was asked for by {wanted:?}",
            request.method,
            request.target()
        )
    })
}

/// A person as a broker of the profile `kubernetes` sees one.
fn user_info(author: &Author) -> (String, Value) {
    let user = json!({
        "username": author.username,
        "uid": author.uid,
        "groups": author.groups,
        "extra": author.extra,
    });
    ("kubernetes".to_owned(), user)
}

/// The platform and the user of the originating identity.
fn identity_of(request: &Request) -> Option<(String, Value)> {
    let mut headers = request.headers.iter();
    let (_, value) =
        headers.find(|(name, _)| name.eq_ignore_ascii_case("X-Broker-API-Originating-Identity"))?;
    let (platform, encoded) = value.split_once(' ')?;
    let user = serde_json::from_slice(&STANDARD.decode(encoded).ok()?).ok()?;
    Some((platform.to_owned(), user))
}

/// What the platform has written down of a request that it sends.
pub(crate) struct WrittenRequest<'a> {
    pub known: &'a KnownResources,
    pub row: &'a OperationRow,
    pub progress: &'a IntentProgress,
}

impl WrittenRequest<'_> {
    /// A request that changes something was written down before: its bytes, and that it is being sent.
    pub(crate) fn check(&self, request: &Request) -> Option<String> {
        if request.method == Method::Get {
            return None;
        }
        let (method, target) = (request.method, request.target());
        if let Some(orphan) = self.known.orphans.get(&self.row.lane) {
            let is_sent = matches!(orphan.orphan.state, OrphanState::InFlight { .. });
            return (!is_sent).then(|| {
                format!("I-6: {method} {target} is sent, and the ledger does not say so")
            });
        }
        let state = self.known.intent_state(&self.row.lane, self.row.id);
        let Some(state) = state else {
            // Whoever abandons or removes it does not wait for requests that are being sent.
            let is_gone = self.known.is_gone(&self.row.lane);
            return (!is_gone).then(|| format!("I-6: {method} {target} is sent after its end"));
        };
        if !matches!(state, IntentState::Sending { .. }) {
            return Some(format!(
                "I-6: {method} {target} is sent, and its intent is {state:?}"
            ));
        }
        let written = self.progress.prepared.as_ref();
        let written = written.and_then(|it| it.request().ok());
        let is_same = written.is_some_and(|it| it.to_stored().ok() == request.to_stored().ok());
        (!is_same).then(|| format!("I-6: {method} {target} is sent with bytes that are not stored"))
    }

    /// A DELETE is about what a delete, an unbind or the ledger has.
    pub(crate) fn check_delete(&self, request: &Request) -> Option<String> {
        if request.method != Method::Delete || self.known.is_gone(&self.row.lane) {
            return None;
        }
        let target = RequestTarget::of(request);
        let instance = target.instance?;
        let lives = match &target.binding {
            None => self.known.lives(&instance),
            Some(binding) => self.known.binding_lives(binding),
        };
        lives.then(|| format!("I-3: {} deletes what lives", request.target()))
    }
}
