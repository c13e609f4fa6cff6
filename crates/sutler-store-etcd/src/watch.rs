//! A watch: the changes of a range of keys, from a revision on, as an endless stream of JSON lines.
//!
//! etcd never splits the writes of one transaction over two messages unless configured to, so after
//! each message everything up to its last revision is known. Not here: applying the changes
//! (`watch_view.rs`).

use crate::client::{Client, EtcdError, decide};
use crate::wire::{Base64, Event, StreamLine, WatchResponse};
use serde::Serialize;
use sutler_journal::StoreError;

/// Longest line: many of the largest values in base64.
const LINE_BYTES_MAX: usize = 512 * 1024 * 1024;

#[derive(Serialize)]
struct WatchCreate {
    create_request: WatchRequest,
}

#[derive(Serialize)]
struct WatchRequest {
    key: Base64,
    range_end: Base64,
    start_revision: i64,
}

/// An open watch.
pub(crate) struct Watch {
    response: reqwest::Response,
    read: Vec<u8>,
    /// Length of the part of `read` that was searched for the end of a line.
    searched: usize,
}

impl Watch {
    /// Opens a watch from a revision on.
    pub(crate) async fn open(
        client: &Client,
        (key, range_end): (Vec<u8>, Vec<u8>),
        start_revision: i64,
    ) -> Result<Self, EtcdError> {
        let create = WatchCreate {
            create_request: WatchRequest {
                key: key.into(),
                range_end: range_end.into(),
                start_revision,
            },
        };
        let body = serde_json::to_vec(&create).unwrap_or_default().into();
        let (member, token) = client.member().await?;
        let request = client.request(member, "/v3/watch", body, token.as_ref());
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(Self {
                response,
                read: Vec::new(),
                searched: 0,
            }),
            Ok(response) => {
                if response.status() == reqwest::StatusCode::UNAUTHORIZED {
                    client.forget(token);
                }
                client.leave(member);
                Err(ended())
            }
            Err(cause) => {
                client.leave(member);
                Err(broken(cause))
            }
        }
    }

    /// The next changes; all changes of one revision come together.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, EtcdError> {
        loop {
            let line = self.line().await?;
            let line: StreamLine<WatchResponse> =
                serde_json::from_slice(&line).map_err(|cause| {
                    EtcdError::NotDone(StoreError::caused("a watch cannot be read", cause))
                })?;
            let watched = match (line.result, line.error) {
                (Some(watched), _) => watched,
                (None, Some(refusal)) => return Err(decide(&refusal)),
                (None, None) => return Err(ended()),
            };
            if watched.compact_revision.0 > 0 {
                return Err(EtcdError::Compacted);
            }
            if watched.canceled {
                return Err(ended());
            }
            if !watched.events.is_empty() {
                return Ok(watched.events);
            }
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, EtcdError> {
        loop {
            let unseen = self.read.get(self.searched..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(self.searched + end + 1);
                self.searched = 0;
                return Ok(std::mem::replace(&mut self.read, rest));
            }
            self.searched = self.read.len();
            match self.response.chunk().await.map_err(broken)? {
                Some(chunk) if self.read.len() + chunk.len() <= LINE_BYTES_MAX => {
                    self.read.extend_from_slice(&chunk);
                }
                Some(_) | None => return Err(ended()),
            }
        }
    }
}

fn ended() -> EtcdError {
    EtcdError::NotDone(StoreError::new("etcd ended a watch; it is opened again"))
}

fn broken(cause: reqwest::Error) -> EtcdError {
    let sentence = "a watch broke off; it is opened again";
    EtcdError::NotDone(StoreError::caused(sentence, cause.without_url()))
}
