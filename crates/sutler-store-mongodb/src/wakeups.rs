//! Wakeups when an operation may have become claimable, and when the feed has grown: sent by this process, and
//! received from others. The former are also sent periodically.
//!
//! Those of others are received through a change stream over the commit records. It may break or lag:
//! a hint is only a hint.

use crate::commands::CommandClient;
use crate::error::MongoError;
use crate::rows::Collection;
use futures_util::StreamExt as _;
use mongodb::bson::{Document as Bsons, doc};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the server waits for an event before it returns an empty batch.
const LISTEN: Duration = Duration::from_secs(1);
/// Pause before a broken stream is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// Sender of hints.
#[derive(Clone)]
pub(crate) struct Wakeups {
    workers: Arc<watch::Sender<u64>>,
    feed: Arc<watch::Sender<u64>>,
}

impl Default for Wakeups {
    fn default() -> Self {
        let counter = || Arc::new(watch::Sender::new(0));
        Self {
            workers: counter(),
            feed: counter(),
        }
    }
}

impl Wakeups {
    pub(crate) fn give(&self) {
        self.workers.send_modify(|hints| *hints += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.workers.subscribe()
    }

    /// Wakes readers of the feed.
    pub(crate) fn feed_moved(&self) {
        self.feed.send_modify(|hints| *hints += 1);
    }

    pub(crate) fn subscribe_to_feed(&self) -> watch::Receiver<u64> {
        self.feed.subscribe()
    }
}

/// Sends a hint periodically.
pub(crate) async fn tick(every: Duration, hints: Wakeups) {
    loop {
        tokio::time::sleep(every).await;
        hints.give();
    }
}

/// Sends hints for every commit of any replica.
pub(crate) async fn follow(commands: CommandClient, hints: Wakeups) {
    loop {
        if let Err(trouble) = listen(&commands, &hints).await {
            let said = trouble.sentence();
            tracing::debug!(said, "the change stream broke; it is opened again");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(commands: &CommandClient, hints: &Wakeups) -> Result<(), MongoError> {
    let wanted = doc! { "$match": { "operationType": "insert" } };
    // A record may name many subjects, and nobody reads them here.
    let fields = doc! { "$project": { "operationType": 1, "fullDocument.hint": 1 } };
    let commits = commands
        .database
        .collection::<Bsons>(Collection::Commits.name());
    let stream = commits
        .watch()
        .pipeline([wanted, fields])
        .max_await_time(LISTEN);
    let mut stream = stream.await?;
    // For commits before the stream was open.
    hints.feed_moved();
    hints.give();
    while let Some(event) = stream.next().await {
        hints.feed_moved();
        let record = event?.full_document;
        if record.is_some_and(|it| it.get_bool("hint").unwrap_or(false)) {
            hints.give();
        }
    }
    Ok(())
}
