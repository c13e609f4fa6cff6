//! Counts the records of each key, for operators; one count at a time, because each reads the whole store.
//!
//! A long count is answered by spaces until it ends, which JSON allows before a value: no client and no proxy takes the
//! silence for an end. A count ends when its client disconnects or the broker is shut down.

use super::key_view::KeysView;
use super::response::{AdminError, json};
use crate::requests::RequestHandler;
use axum::body::Body;
use bytes::Bytes;
use hyper::{Response, StatusCode};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::StoreError;
use sutler_journal::rekey::{RekeyProgress, has_documents_of, key_usage};
use sutler_records::Documents;
use sutler_server::{ChunkSender, streamed_response};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

/// Longest silence of a response.
const SPACE_EVERY: Duration = Duration::from_secs(10);

/// Counts records, one count at a time.
pub(crate) struct KeyCounter {
    one_at_a_time: Arc<Mutex<()>>,
    shut_down: CancellationToken,
}

type Count = Pin<Box<dyn Future<Output = Result<KeysView, StoreError>> + Send>>;

impl KeyCounter {
    pub(crate) fn new(shut_down: CancellationToken) -> Self {
        Self {
            one_at_a_time: Arc::default(),
            shut_down,
        }
    }

    /// Answers with the keys and the number of records of each.
    pub(crate) async fn answer(
        &self,
        requests: &RequestHandler,
    ) -> Result<Response<Body>, AdminError> {
        let records = requests.realm_context.records.clone();
        let one_at_a_time = self.one_at_a_time.clone();
        let mut count: Count = Box::pin(async move {
            let _alone = one_at_a_time.lock().await;
            keys(&records).await
        });
        if let Ok(counted) = tokio::time::timeout(SPACE_EVERY, &mut count).await {
            return json(StatusCode::OK, &counted?);
        }
        let (response, pieces) = streamed_response("application/json");
        let shut_down = self.shut_down.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = shut_down.cancelled() => {}
                () = pieces.closed() => {}
                () = send(count, &pieces) => {}
            }
        });
        Ok(response)
    }
}

async fn keys(records: &Documents) -> Result<KeysView, StoreError> {
    let (progress, _) = watch::channel(RekeyProgress::default());
    let usage = key_usage(&records.store, &progress).await?;
    let opens = has_documents_of(records.store.as_ref(), &records.keys).await?;
    Ok(KeysView::of(&records.keys, &usage, opens))
}

/// Sends spaces until the count ends, then its result.
async fn send(mut count: Count, pieces: &ChunkSender) {
    let counted = loop {
        let space = Bytes::from_static(b" ");
        if pieces.send(Ok(space)).await.is_err() {
            return;
        }
        if let Ok(counted) = tokio::time::timeout(SPACE_EVERY, &mut count).await {
            break counted;
        }
    };
    let last = match counted {
        Ok(view) => Ok(serde_json::to_vec(&view)
            .expect("our own types serialise")
            .into()),
        Err(error) => {
            let cause = &error as &dyn std::error::Error;
            tracing::error!(error = cause, "the records of keys could not be counted");
            Err(io::Error::other("the count broke off"))
        }
    };
    let _ = pieces.send(last).await;
}
