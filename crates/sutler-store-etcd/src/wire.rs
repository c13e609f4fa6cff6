//! The bodies of etcd's JSON gateway that this store uses.
//!
//! Keys and values are base64, 64-bit numbers come as strings, and zero, false or empty fields are
//! omitted. Not here: sending requests (`client.rs`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Bytes, in base64 on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Base64(pub(crate) Bytes);

impl From<Vec<u8>> for Base64 {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Base64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Base64, E> {
                let decoded = STANDARD.decode(text);
                decoded
                    .map(Base64::from)
                    .map_err(|_| E::custom("not base64"))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A 64-bit number, as a string or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Int(pub(crate) i64);

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Int;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, in a string or not")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Int, E> {
                text.parse().map(Int).map_err(|_| E::custom("not a number"))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Int, E> {
                Ok(Int(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Int, E> {
                let number = i64::try_from(number);
                number.map(Int).map_err(|_| E::custom("too large a number"))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads a range of keys.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Range {
    pub(crate) key: Base64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range_end: Option<Base64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keys_only: bool,
}

impl Range {
    /// One key.
    pub(crate) fn one(key: Vec<u8>) -> Self {
        Self {
            key: key.into(),
            ..Self::default()
        }
    }

    /// All keys from one on, up to another, exclusive.
    pub(crate) fn between((from, to): (Vec<u8>, Vec<u8>)) -> Self {
        Self {
            key: from.into(),
            range_end: Some(to.into()),
            ..Self::default()
        }
    }

    /// Maximum number of keys.
    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(i64::try_from(limit).unwrap_or(i64::MAX));
        self
    }

    /// Reads at a revision.
    pub(crate) fn at(mut self, revision: Option<i64>) -> Self {
        self.revision = revision;
        self
    }
}

/// One condition of a transaction.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Compare {
    key: Base64,
    target: &'static str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mod_revision: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_revision: Option<i64>,
}

impl Compare {
    fn created(key: Vec<u8>, result: &'static str) -> Self {
        Self {
            key: key.into(),
            target: "CREATE",
            result,
            mod_revision: None,
            create_revision: Some(0),
        }
    }

    /// The key does not exist.
    pub(crate) fn absent(key: Vec<u8>) -> Self {
        Self::created(key, "EQUAL")
    }

    /// The key exists.
    pub(crate) fn present(key: Vec<u8>) -> Self {
        Self::created(key, "GREATER")
    }

    /// The key was last written at this revision; 0: it does not exist.
    pub(crate) fn unchanged(key: Vec<u8>, revision: i64) -> Self {
        Self {
            key: key.into(),
            target: "MOD",
            result: "EQUAL",
            mod_revision: Some(revision),
            create_revision: None,
        }
    }
}

/// Writes a key.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Put {
    key: Base64,
    value: Base64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<i64>,
}

/// Removes keys.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeleteRange {
    key: Base64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range_end: Option<Base64>,
}

/// One operation of a transaction.
#[derive(Clone, Debug, Serialize)]
pub(crate) enum RequestOp {
    #[serde(rename = "request_range")]
    Range(Range),
    #[serde(rename = "request_put")]
    Put(Put),
    #[serde(rename = "request_delete_range")]
    Delete(DeleteRange),
    #[serde(rename = "request_txn")]
    Txn(Txn),
}

impl RequestOp {
    pub(crate) fn put(key: Vec<u8>, value: Vec<u8>) -> Self {
        Self::leased(key, value, None)
    }

    pub(crate) fn leased(key: Vec<u8>, value: Vec<u8>, lease: Option<i64>) -> Self {
        Self::Put(Put {
            key: key.into(),
            value: value.into(),
            lease,
        })
    }

    pub(crate) fn delete(key: Vec<u8>) -> Self {
        Self::Delete(DeleteRange {
            key: key.into(),
            range_end: None,
        })
    }

    pub(crate) fn delete_between((from, to): (Vec<u8>, Vec<u8>)) -> Self {
        Self::Delete(DeleteRange {
            key: from.into(),
            range_end: Some(to.into()),
        })
    }
}

/// Conditions, operations if all hold, and operations if one does not.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Txn {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) compare: Vec<Compare>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) success: Vec<RequestOp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failure: Vec<RequestOp>,
}

/// Header of every response.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) revision: Int,
}

/// A key and its value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeyValue {
    pub(crate) key: Base64,
    pub(crate) value: Base64,
    pub(crate) mod_revision: Int,
    pub(crate) lease: Int,
}

/// The response to a [`Range`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RangeResponse {
    pub(crate) header: Header,
    pub(crate) kvs: Vec<KeyValue>,
    pub(crate) more: bool,
}

/// The response to one [`RequestOp`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OpResponse {
    #[serde(rename = "response_range")]
    pub(crate) range: Option<RangeResponse>,
    #[serde(rename = "response_txn")]
    pub(crate) txn: Option<Box<TxnResponse>>,
}

/// The response to a [`Txn`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TxnResponse {
    pub(crate) header: Header,
    pub(crate) succeeded: bool,
    pub(crate) responses: Vec<OpResponse>,
}

impl TxnResponse {
    /// Results of the range operations, in their order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &RangeResponse> {
        self.responses.iter().filter_map(|it| it.range.as_ref())
    }
}

/// A lease, as granted or extended; one that does not exist has no time to live.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LeaseGrantResponse {
    #[serde(rename = "ID")]
    pub(crate) id: Int,
    #[serde(rename = "TTL")]
    pub(crate) ttl: Int,
}

/// One line of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamLine<T> {
    pub(crate) result: Option<T>,
    pub(crate) error: Option<EtcdErrorBody>,
}

/// One message of a watch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WatchResponse {
    pub(crate) events: Vec<Event>,
    pub(crate) canceled: bool,
    pub(crate) compact_revision: Int,
}

/// One change of one key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: EventKind,
    pub(crate) kv: KeyValue,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum EventKind {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}

/// Error of etcd, with its own message, which contains no stored data.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EtcdErrorBody {
    #[serde(alias = "grpc_code")]
    pub(crate) code: i64,
    pub(crate) message: String,
}

#[cfg(test)]
mod tests {
    use super::{
        Compare, EventKind, Range, RequestOp, StreamLine, Txn, TxnResponse, WatchResponse,
    };

    #[test]
    fn a_transaction_is_written_as_the_gateway_reads_it() {
        let txn = Txn {
            compare: vec![
                Compare::absent(b"a".to_vec()),
                Compare::present(b"a".to_vec()),
                Compare::unchanged(b"a".to_vec(), 7),
            ],
            success: vec![
                RequestOp::leased(b"a".to_vec(), b"v".to_vec(), Some(5)),
                RequestOp::delete(b"a".to_vec()),
                RequestOp::Txn(Txn::default()),
            ],
            failure: vec![RequestOp::Range(Range::one(b"a".to_vec()).limit(1))],
        };
        let expected = serde_json::json!({
            "compare": [
                {"key": "YQ==", "target": "CREATE", "result": "EQUAL", "create_revision": 0},
                {"key": "YQ==", "target": "CREATE", "result": "GREATER", "create_revision": 0},
                {"key": "YQ==", "target": "MOD", "result": "EQUAL", "mod_revision": 7},
            ],
            "success": [
                {"request_put": {"key": "YQ==", "value": "dg==", "lease": 5}},
                {"request_delete_range": {"key": "YQ=="}},
                {"request_txn": {}},
            ],
            "failure": [{"request_range": {"key": "YQ==", "limit": 1}}],
        });
        assert_eq!(serde_json::to_value(&txn).unwrap(), expected);
    }

    #[test]
    fn omitted_fields_are_zero_false_or_empty() {
        let text = r#"{"header":{"revision":"3"},"responses":[
            {"response_range":{"header":{"revision":"2"},"kvs":[{"key":"YQ==","mod_revision":"2"}]}},
            {"response_put":{"header":{"revision":"3"}}},
            {"response_txn":{"header":{},"succeeded":true}}]}"#;
        let answer: TxnResponse = serde_json::from_str(text).unwrap();
        assert!(!answer.succeeded);
        assert_eq!(answer.header.revision.0, 3);
        let found: Vec<_> = answer.ranges().collect();
        assert_eq!(found[0].kvs[0].mod_revision.0, 2);
        assert!(found[0].kvs[0].value.0.is_empty());
        assert!(answer.responses[2].txn.as_ref().unwrap().succeeded);
    }

    #[test]
    fn an_event_without_a_kind_is_a_put() {
        let text = r#"{"result":{"header":{},"events":[
            {"kv":{"key":"YQ==","mod_revision":"2","value":"dg=="}},
            {"type":"DELETE","kv":{"key":"YQ==","mod_revision":"3"}}]}}"#;
        let line: StreamLine<WatchResponse> = serde_json::from_str(text).unwrap();
        let kinds: Vec<EventKind> = line.result.unwrap().events.iter().map(|e| e.kind).collect();
        assert_eq!(kinds, [EventKind::Put, EventKind::Delete]);
    }
}
