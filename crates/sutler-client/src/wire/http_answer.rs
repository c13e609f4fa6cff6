//! Reads an answer to its end, at most so many bytes of it. `connection.rs` and `token_source.rs` send the requests.

use super::exchange::{Answer, TransportError};
use super::transport_error::classify_answer_error;
use bytes::BytesMut;
use std::time::{Duration, Instant};

/// Bounds of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerLimits {
    /// Longest body that is read.
    pub(super) bytes_max: usize,
    /// How long the whole exchange may take. The caller enforces it; here it is for errors.
    pub(super) within: Duration,
}

/// Reads the answer to a request that was sent at `started`. A body that announces too much is not read at all.
pub(super) async fn read_whole(
    mut response: reqwest::Response,
    started: Instant,
    limits: AnswerLimits,
) -> Result<Answer, TransportError> {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let too_long = || TransportError::TooLong(limits.bytes_max);
    let announced = response.content_length().map(usize::try_from);
    if announced.is_some_and(|it| it.map_or(true, |bytes| bytes > limits.bytes_max)) {
        return Err(too_long());
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| classify_answer_error(&error, limits.within))?
    {
        if body.len() + chunk.len() > limits.bytes_max {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer {
        status,
        headers,
        body: body.freeze(),
        took: started.elapsed(),
    })
}
