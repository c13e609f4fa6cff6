//! Time limits end with an error: statements by the server, waiting by the pool.

use crate::fixture::key;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutler_journal::Store;
use sutler_store_sql::SqlSettings;

/// One connection, a second per statement, and a short wait for the connection.
pub(crate) fn narrow() -> SqlSettings {
    SqlSettings {
        connections: 1,
        wait_timeout: Duration::from_millis(50),
        statement_timeout: Duration::from_secs(1),
        hint_every: Duration::from_secs(3600),
        answer_timeout: Duration::from_secs(60),
        ..SqlSettings::default()
    }
}

/// For a store whose clock never returns.
pub(crate) async fn statements_and_waiting_are_bounded(store: Arc<dyn Store>) {
    let slow = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let began = Instant::now();
            (store.now().await, began.elapsed())
        }
    });
    let waited = until_refused(&*store).await;
    assert!(waited.contains("all 1 connections"), "{waited}");
    assert!(waited.contains("see that its server runs"), "{waited}");
    let (answer, took) = slow.await.expect("no panic");
    let message = answer.expect_err("it takes for ever").to_string();
    assert!(took < Duration::from_secs(30), "{took:?}: {message}");
    let read = store.get(&key("a")).await;
    assert!(read.is_ok(), "the store goes on: {read:?}");
}

/// The error once the only connection is in use.
async fn until_refused(store: &dyn Store) -> String {
    let began = Instant::now();
    loop {
        match store.get(&key("a")).await {
            Err(error) => return error.to_string(),
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(30), "it is free"),
        }
    }
}
