//! Wakeups when something may have become claimable: sent by this process, received from others, and sent
//! from time to time in any case.
//!
//! Those of others are received through a change stream over the records of commits. It may break and be late:
//! a hint is only a hint.

use crate::commands::CommandClient;
use crate::error::MongoError;
use crate::rows::Collection;
use futures_util::StreamExt as _;
use mongodb::bson::{Document as Bsons, doc};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long the server waits for something to tell before it says that there is nothing.
const LISTEN: Duration = Duration::from_secs(1);
/// The pause before a stream that broke is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// The giving end.
#[derive(Clone)]
pub(crate) struct Wakeups(Arc<watch::Sender<u64>>);

impl Default for Wakeups {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Wakeups {
    pub(crate) fn give(&self) {
        self.0.send_modify(|hints| *hints += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Gives a hint from time to time.
pub(crate) async fn tick(every: Duration, hints: Wakeups) {
    loop {
        tokio::time::sleep(every).await;
        hints.give();
    }
}

/// Gives a hint whenever a commit of any replica is worth one.
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
    let wanted = doc! { "$match": { "operationType": "insert", "fullDocument.hint": true } };
    let commits = commands
        .database
        .collection::<Bsons>(Collection::Commits.name());
    let stream = commits.watch().pipeline([wanted]).max_await_time(LISTEN);
    let mut stream = stream.await?;
    // Whatever came before the stream was open.
    hints.give();
    while let Some(event) = stream.next().await {
        event?;
        hints.give();
    }
    Ok(())
}
