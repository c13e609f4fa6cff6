//! The parts of an intent's operation: request (never changes), progress (what was sent), detail (what lists show).
//!
//! The document of the lane has everything that rules need; these are for the journal that people read, and for sending
//! the same bytes again.

use crate::author::Author;
use crate::lifecycle::intent::{BrokerStatement, IntentEnd, IntentNumber};
use crate::spec::SpecPatch;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use sutler_client::wire::{Request, StoredRequestError};
use sutler_osb::OperationToken;

/// First attempts that are kept, and last ones: those between are dropped.
const ATTEMPTS_KEPT: usize = 20;

/// What was accepted, by whom, on top of what. Sealed; never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntentRequest {
    /// Its number.
    pub number: IntentNumber,
    /// The person behind it; `None`: the platform itself (orphans, probes).
    pub author: Option<Author>,
    /// Verb, e.g. `provision`.
    pub verb: String,
    /// What it changes, of an instance.
    pub patch: Option<SpecPatch>,
    /// The pending intents that its author saw.
    pub stands_on: Vec<IntentNumber>,
    /// When it was accepted.
    pub accepted: Timestamp,
}

/// What was sent. Sealed; scrubbed of the request when the intent ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntentProgress {
    /// The request, while it may be sent again.
    pub prepared: Option<PreparedRequest>,
    /// SHA-256 of the request that was sent, in hex; stays after the end.
    pub digest: Option<String>,
    /// Token of the accepted operation, for polls.
    pub token: Option<OperationToken>,
    /// Number of the claim that got the token: every later claim was a poll.
    pub accepted_at: u64,
    /// Attempts.
    pub attempts: AttemptLog,
}

/// A request as it was written down before it was sent first. Parameters may be secret: `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRequest(String);

impl PreparedRequest {
    /// The stored form of a request.
    ///
    /// # Errors
    /// It is too long, or cannot be sent.
    pub fn of(request: &Request) -> Result<Self, StoredRequestError> {
        let bytes = request.to_stored()?;
        // It is JSON, and so UTF-8.
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The request: the same bytes as the first time.
    ///
    /// # Errors
    /// Another version wrote it.
    pub fn request(&self) -> Result<Request, StoredRequestError> {
        Request::from_stored(self.0.as_bytes())
    }

    /// SHA-256 of the stored form, in hex.
    pub fn digest(&self) -> String {
        use sha2::{Digest as _, Sha256};
        let bytes = Sha256::digest(self.0.as_bytes());
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for PreparedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreparedRequest(…)")
    }
}

/// One sending of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendAttempt {
    /// Number, from 1.
    pub number: u32,
    /// When it was written down.
    pub at: Timestamp,
    /// What the broker said, once it has.
    pub answer: Option<BrokerStatement>,
}

/// The first and the last attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLog {
    /// The first ones.
    pub first: Vec<SendAttempt>,
    /// The last ones of the others.
    pub last: VecDeque<SendAttempt>,
}

impl AttemptLog {
    /// Adds an attempt.
    pub fn begin(&mut self, number: u32, at: Timestamp) {
        let attempt = SendAttempt {
            number,
            at,
            answer: None,
        };
        if self.first.len() < ATTEMPTS_KEPT {
            self.first.push(attempt);
            return;
        }
        self.last.push_back(attempt);
        if self.last.len() > ATTEMPTS_KEPT {
            self.last.pop_front();
        }
    }

    /// Notes the answer to the last attempt.
    pub fn answered(&mut self, answer: BrokerStatement) {
        let last = match self.last.back_mut() {
            Some(attempt) => Some(attempt),
            None => self.first.last_mut(),
        };
        if let Some(attempt) = last {
            attempt.answer = Some(answer);
        }
    }

    /// Keeps the last attempt only.
    pub fn keep_last(&mut self) {
        let last = self.last.pop_back().or_else(|| self.first.pop());
        self.last.clear();
        self.first = last.into_iter().collect();
    }

    /// All attempts that are kept, in their order.
    pub fn kept(&self) -> impl Iterator<Item = &SendAttempt> {
        self.first.iter().chain(&self.last)
    }
}

/// What lists and waiting callers see of an intent. Sealed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IntentDetail {
    /// Its number.
    pub number: Option<IntentNumber>,
    /// The broker's words of the moment.
    pub description: Option<String>,
    /// How it ended, once it has.
    pub end: Option<IntentEnd>,
}

impl IntentProgress {
    /// What stays after the end: everything but the request.
    #[must_use]
    pub fn scrubbed(mut self) -> Self {
        self.prepared = None;
        self.token = None;
        self
    }
}
