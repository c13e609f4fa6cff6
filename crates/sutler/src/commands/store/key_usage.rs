//! Counts of records by key, with a progress bar, and their words; for `keys` and `rekey`.

use crate::BoxError;
use crate::commands::progress_bar::progress_bar;
use serde_json::{Value, json};
use std::sync::Arc;
use sutler_journal::rekey::{KeyUsage, RecordCounts, RekeyProgress, expected_records, key_usage};
use sutler_journal::{Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A progress bar that follows a pass over a store; ends when it is stopped.
pub(super) struct PassBar {
    drawing: JoinHandle<()>,
}

impl PassBar {
    pub(super) async fn start(
        store: &dyn Store,
        progress: watch::Receiver<RekeyProgress>,
    ) -> Result<Self, StoreError> {
        let expected = expected_records(store).await?;
        let drawing = tokio::spawn(draw(progress, expected));
        Ok(Self { drawing })
    }

    pub(super) async fn stop(self) {
        self.drawing.abort();
        // The task clears its bar when it is dropped.
        let _ = self.drawing.await;
    }
}

/// Clears its bar when it is dropped.
struct ClearOnDrop(indicatif::ProgressBar);

impl Drop for ClearOnDrop {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

async fn draw(mut progress: watch::Receiver<RekeyProgress>, expected: u64) {
    let bar = ClearOnDrop(progress_bar(expected));
    loop {
        let now = *progress.borrow_and_update();
        let message = match now.pass {
            0 => "read".to_owned(),
            1 => format!("read, {} sealed again", now.resealed.total()),
            _ => format!("read again, {} sealed again", now.resealed.total()),
        };
        bar.0.set_message(message);
        let seen = now.seen.documents + now.seen.operations;
        bar.0.set_position(seen.min(expected));
        if progress.changed().await.is_err() {
            return;
        }
    }
}

/// Counts the records of each key.
pub(super) async fn count(store: &Arc<dyn Store>) -> Result<KeyUsage, BoxError> {
    let (progress, receiver) = watch::channel(RekeyProgress::default());
    let bar = PassBar::start(&**store, receiver).await?;
    let counted = key_usage(store, &progress).await;
    bar.stop().await;
    Ok(counted?)
}

/// Counts in words: `2 documents, 1 operation and 3 log chunks`.
pub(super) fn words(counts: RecordCounts) -> String {
    let one = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let (documents, operations) = (counts.documents, counts.operations);
    format!(
        "{}, {} and {}",
        one(documents, "document"),
        one(operations, "operation"),
        one(counts.log_chunks, "log chunk")
    )
}

/// Counts as JSON.
pub(super) fn value(counts: RecordCounts) -> Value {
    json!({
        "documents": counts.documents,
        "operations": counts.operations,
        "log_chunks": counts.log_chunks,
    })
}

#[cfg(test)]
mod tests {
    use super::{RecordCounts, words};

    #[test]
    fn one_record_is_singular() {
        let counts = RecordCounts {
            documents: 2,
            operations: 1,
            log_chunks: 0,
        };
        assert_eq!(words(counts), "2 documents, 1 operation and 0 log chunks");
    }
}
