//! Parser of the query strings of OSB requests.
//!
//! Written by hand because every poll uses it, and because repeated keys must not fail (D-07): the first
//! one counts. Unknown keys are ignored with any value. Each endpoint checks the keys it needs.

use crate::ids::{IdError, OperationToken, PlanId, ServiceId};
use crate::percent::{self, PlusSign};
use std::borrow::Cow;
use std::fmt;

/// Longest query that is read, in bytes; HTTP servers accept no longer URLs either.
pub const QUERY_BYTES_MAX: usize = 64 * 1024;

/// All query parameters of OSB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Whether an asynchronous response is accepted; false when absent (B-082).
    pub accepts_incomplete: bool,
    /// The service offering, or a hint at it.
    pub service_id: Option<ServiceId>,
    /// The plan, or a hint at it.
    pub plan_id: Option<PlanId>,
    /// The operation to poll.
    pub operation: Option<OperationToken>,
}

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Longer than [`QUERY_BYTES_MAX`].
    #[error("the query is longer than {QUERY_BYTES_MAX} bytes")]
    TooLong,
    /// `accepts_incomplete` is neither `true` nor `false`.
    #[error("query parameter `accepts_incomplete` must be true or false")]
    AcceptsIncomplete,
    /// An id in the query is invalid.
    #[error("query parameter {0}")]
    Id(#[from] IdError),
}

impl Query {
    /// Parses the part after the `?`; an empty text is a query without parameters.
    pub fn parse(raw: &str) -> Result<Self, QueryError> {
        Self::parse_ids(raw, |_| false)
    }

    /// Parses the query of a DELETE, where an empty `service_id` or `plan_id` counts as absent: if there is nothing
    /// to delete, its ids do not matter (D-06).
    pub fn parse_delete(raw: &str) -> Result<Self, QueryError> {
        Self::parse_ids(raw, str::is_empty)
    }

    /// `absent`: values of `service_id` and `plan_id` that are ignored.
    fn parse_ids(raw: &str, absent: fn(&str) -> bool) -> Result<Self, QueryError> {
        if raw.len() > QUERY_BYTES_MAX {
            return Err(QueryError::TooLong);
        }
        let mut accepts_incomplete = None;
        let mut query = Self::default();
        for pair in raw.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            // A key that cannot be decoded is unknown.
            let key = percent::decode(key, PlusSign::IsSpace).unwrap_or(Cow::Borrowed(""));
            match key.as_ref() {
                "accepts_incomplete" if accepts_incomplete.is_none() => {
                    accepts_incomplete = Some(parse_bool(value)?);
                }
                "service_id" | "plan_id" if absent(value) => (),
                "service_id" if query.service_id.is_none() => {
                    query.service_id = Some(ServiceId::from_query_value(value)?);
                }
                "plan_id" if query.plan_id.is_none() => {
                    query.plan_id = Some(PlanId::from_query_value(value)?);
                }
                "operation" if query.operation.is_none() => {
                    query.operation = Some(OperationToken::from_query_value(value)?);
                }
                _ => (),
            }
        }
        query.accepts_incomplete = accepts_incomplete.unwrap_or(false);
        Ok(query)
    }
}

/// Writes the query as a client sends it, without the `?` and without absent parameters.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [
            self.accepts_incomplete
                .then(|| ("accepts_incomplete", "true".to_owned())),
            self.service_id
                .as_ref()
                .map(|id| (ServiceId::FIELD, id.to_url())),
            self.plan_id.as_ref().map(|id| (PlanId::FIELD, id.to_url())),
            self.operation
                .as_ref()
                .map(|token| (OperationToken::FIELD, token.to_url())),
        ];
        for (nth, (key, value)) in pairs.into_iter().flatten().enumerate() {
            let separator = if nth == 0 { "" } else { "&" };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

fn parse_bool(value: &str) -> Result<bool, QueryError> {
    match percent::decode(value, PlusSign::IsSpace).as_deref() {
        Ok("true") => Ok(true),
        Ok("false") => Ok(false),
        Ok(_) | Err(_) => Err(QueryError::AcceptsIncomplete),
    }
}
