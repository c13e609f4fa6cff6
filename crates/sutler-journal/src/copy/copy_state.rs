//! State of a copy: one document of the target, in its own realm.
//!
//! It is never copied. It stays when the copy is finished and records that, so a repeated command
//! has nothing to do. It holds no secret and is not sealed: a copy has no keys.

use super::{CopyError, CopyReport};
use crate::key::{Key, Kind, Realm};
use crate::operation::OperationId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The colon separates it from realms named in a configuration.
const REALM: &str = "sutler:copy";
pub(super) const KIND: Kind = Kind::new("copy");
/// Version of the document's format; a higher one is from a later program.
const FORM: u32 = 1;

/// Realm of all documents of copying, in the target and in the source.
pub(super) fn realm() -> Realm {
    Realm::new(REALM).expect("a valid realm")
}

/// Key of the state.
pub(super) fn key() -> Key {
    Key::new(&realm(), KIND, &["state"]).expect("a valid key")
}

/// Whether a document belongs to copying itself.
pub(super) fn is_ours(key: &Key) -> bool {
    key.realm() == REALM
}

/// Bytes, in base64 in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Base64Bytes(pub(super) Vec<u8>);

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text);
        bytes.map(Self).map_err(serde::de::Error::custom)
    }
}

/// Progress of the copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CopyPosition {
    /// Documents are copied up to here.
    Documents { from: Base64Bytes },
    /// All documents, and ended operations down to here.
    Operations { before: Option<OperationId> },
    /// All, and changes up to the cursor.
    Following,
    /// Everything.
    Finished { digest: String },
}

/// The document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyState {
    pub(super) form: u32,
    /// Name of the copied store.
    pub(super) source: String,
    /// Cursor of the feed: later changes are not copied yet.
    pub(super) feed: Base64Bytes,
    pub(super) place: CopyPosition,
    pub(super) documents: u64,
    pub(super) operations: u64,
}

impl CopyState {
    /// A copy that has not started.
    pub(super) fn new(source: &str, feed: Vec<u8>) -> Self {
        Self {
            form: FORM,
            source: source.to_owned(),
            feed: Base64Bytes(feed),
            place: CopyPosition::Documents {
                from: Base64Bytes::default(),
            },
            documents: 0,
            operations: 0,
        }
    }

    pub(super) fn read(body: &[u8]) -> Result<Self, CopyError> {
        let state: Result<Self, _> = serde_json::from_slice(body);
        match state {
            Ok(state) if state.form == FORM => Ok(state),
            Ok(_) | Err(_) => Err(CopyError::Newer),
        }
    }

    pub(super) fn body(&self) -> Bytes {
        serde_json::to_vec(self)
            .expect("our own types serialise")
            .into()
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.place, CopyPosition::Finished { .. })
    }

    pub(super) fn finished(&self) -> Option<CopyReport> {
        match &self.place {
            CopyPosition::Finished { digest } => Some(CopyReport {
                documents: self.documents,
                operations: self.operations,
                digest: digest.clone(),
            }),
            CopyPosition::Documents { .. }
            | CopyPosition::Operations { .. }
            | CopyPosition::Following => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Base64Bytes, CopyPosition, CopyState};
    use crate::copy::CopyError;
    use crate::operation::OperationId;

    #[test]
    fn a_state_round_trips() {
        let mut state = CopyState::new("postgres://db/one", vec![0, 255, 7]);
        for place in [
            CopyPosition::Documents {
                from: Base64Bytes(vec![0, 200]),
            },
            CopyPosition::Operations {
                before: Some(OperationId::fresh()),
            },
            CopyPosition::Operations { before: None },
            CopyPosition::Following,
            CopyPosition::Finished {
                digest: "ab".into(),
            },
        ] {
            state.place = place;
            assert_eq!(CopyState::read(&state.body()).unwrap(), state);
        }
    }

    #[test]
    fn a_state_of_a_later_program_is_not_understood() {
        let mut state = CopyState::new("a", Vec::new());
        state.form = 2;
        for body in [&state.body()[..], b"{}", b"\xff"] {
            assert!(matches!(CopyState::read(body), Err(CopyError::Newer)));
        }
    }
}
