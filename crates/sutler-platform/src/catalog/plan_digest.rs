//! The digest under which the pinned copy of a plan is kept for its instances.
//!
//! Copies with the same contents have the same digest, so that many instances of a plan share one copy.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};
use sutler_osb::PinnedPlan;

/// Length of the text of a digest, in characters.
const DIGEST_CHARS: usize = 64;

/// SHA-256 of a pinned plan, in lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanDigest(String);

/// The text is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a digest: {DIGEST_CHARS} hexadecimal digits in lower case are expected")]
pub struct PlanDigestError;

impl PlanDigest {
    /// The digest of a pinned plan.
    ///
    /// # Errors
    /// The plan has no JSON form, which no plan that was read from JSON lacks.
    pub fn of(plan: &PinnedPlan) -> Result<Self, serde_json::Error> {
        let mut text = String::with_capacity(DIGEST_CHARS);
        for byte in Sha256::digest(serde_json::to_vec(plan)?) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PlanDigest {
    type Error = PlanDigestError;
    fn try_from(text: String) -> Result<Self, PlanDigestError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == DIGEST_CHARS && text.bytes().all(is_digit) {
            Ok(Self(text))
        } else {
            Err(PlanDigestError)
        }
    }
}

impl From<PlanDigest> for String {
    fn from(digest: PlanDigest) -> String {
        digest.0
    }
}

impl fmt::Display for PlanDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
