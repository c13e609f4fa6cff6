//! Reads a request body to its end, within a size, a time, and the memory that all bodies share.

use crate::metrics::{self, LimitKind};
use crate::server::{BodyBudget, QueueFull};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::time::Duration;

/// Limits of one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Longest body, in bytes.
    pub bytes_max: usize,
    /// How long a client may take to send it.
    pub within: Duration,
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The body is longer than this limit.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The connection broke before the end of the body.
    #[error("the body ended early")]
    Broken,
    /// There is no memory left for bodies.
    #[error("there is no room for the body")]
    NoRoom(QueueFull),
}

impl From<QueueFull> for BodyError {
    fn from(full: QueueFull) -> Self {
        Self::NoRoom(full)
    }
}

/// Reads a body to its end.
///
/// # Errors
/// See [`BodyError`].
pub async fn read_body<B>(
    body: B,
    limits: BodyLimits,
    room: &mut BodyBudget<'_>,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Send,
{
    let limit = limits.bytes_max;
    if body.size_hint().lower() > limit as u64 {
        metrics::limited(LimitKind::BodySize);
        return Err(BodyError::TooLarge(limit));
    }
    let read = read_frames(body, limit, room);
    match tokio::time::timeout(limits.within, read).await {
        Ok(read) => read,
        Err(_) => {
            metrics::limited(LimitKind::BodySlow);
            Err(BodyError::TooSlow)
        }
    }
}

/// Most bodies are one frame, and are not copied.
async fn read_frames<B>(
    body: B,
    limit: usize,
    room: &mut BodyBudget<'_>,
) -> Result<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Send,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.as_mut().frame().await {
        let frame = frame.map_err(|_| BodyError::Broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if room.bytes() + data.len() > limit {
            metrics::limited(LimitKind::BodySize);
            return Err(BodyError::TooLarge(limit));
        }
        room.grow(data.len())?;
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() {
        first
    } else {
        joined.freeze()
    })
}
