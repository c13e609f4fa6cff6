//! The key under which a request is accepted once.
//!
//! A key belongs to its author, and to one request: the same key with another request is a mistake of the client, or the
//! key of somebody else that was guessed, and never answered with the intent of the first one.

use super::intent::IntentNumber;
use crate::author::Author;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;

/// The key of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    /// The key and to whom it belongs.
    pub key: String,
    /// What the request asks for.
    pub digest: String,
}

/// The key of a request that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedKey {
    /// The key.
    pub request: RequestKey,
    /// The intent that the request began.
    pub number: IntentNumber,
}

/// The key belongs to another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyReusedError;

impl RequestKey {
    /// The key that an author chose for a request with these parts.
    pub fn of(author: &Author, key: &str, parts: &[&[u8]]) -> Self {
        Self {
            key: digest(&[author.uid.as_bytes(), key.as_bytes()]),
            digest: digest(parts),
        }
    }

    /// The intent that the same request began, if it was accepted before.
    ///
    /// # Errors
    /// Another request was accepted under the key.
    pub fn accepted_in(
        &self,
        known: &VecDeque<AcceptedKey>,
    ) -> Result<Option<IntentNumber>, KeyReusedError> {
        let mut known = known.iter().rev();
        match known.find(|it| it.request.key == self.key) {
            None => Ok(None),
            Some(accepted) if accepted.request.digest == self.digest => Ok(Some(accepted.number)),
            Some(_) => Err(KeyReusedError),
        }
    }
}

/// A digest of parts, each with its length.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let bytes = hash.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
