//! Bodies: read to their end, within a size, a time, and the memory there is for all of them.

use super::error::Answer;
use crate::measure::{self, Limited};
use crate::server::Room;
use crate::settings::Settings;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;

/// Reads a body to its end.
pub(super) async fn whole<B>(
    body: B,
    settings: &Settings,
    room: &mut Room<'_>,
) -> Result<Bytes, Answer>
where
    B: Body<Data = Bytes> + Send,
{
    let limit = settings.body_bytes_max;
    if body.size_hint().lower() > limit as u64 {
        measure::limited(Limited::BodySize);
        return Err(Answer::body_too_large(limit));
    }
    let read = frames(body, limit, room);
    match tokio::time::timeout(settings.body_within, read).await {
        Ok(read) => read,
        Err(_) => {
            measure::limited(Limited::BodySlow);
            Err(Answer::body_too_slow())
        }
    }
}

/// Most bodies are one frame, and are not copied.
async fn frames<B>(body: B, limit: usize, room: &mut Room<'_>) -> Result<Bytes, Answer>
where
    B: Body<Data = Bytes> + Send,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    while let Some(frame) = body.as_mut().frame().await {
        let unread = "The body could not be read to its end; repeat the request.";
        let frame = frame.map_err(|_| Answer::invalid(unread.to_owned()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if room.bytes() + data.len() > limit {
            measure::limited(Limited::BodySize);
            return Err(Answer::body_too_large(limit));
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
