//! Wakeups to and from other replicas, by LISTEN and NOTIFY, and by a timer.
//!
//! Two tasks: one sends this replica's wakeups, one receives those of others. The store's timer wakes
//! workers periodically and compensates for lost wakeups. All end with the store.

use super::{PostgresDialect, sql};
use crate::dialect::Dialect as _;
use crate::store::SqlShared;
use sqlx::Arguments;
use sqlx::postgres::{PgArguments, PgListener, PgPoolOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

const CHANNEL: &str = "sutler_hint";
/// Wakeups within this interval are sent as one.
const CALM: Duration = Duration::from_millis(5);
/// Pause before listening again.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts the tasks.
pub(super) fn start(shared: &Arc<SqlShared<PostgresDialect>>) -> Vec<JoinHandle<()>> {
    // Names this replica, so that it ignores its own notifications.
    let replica_id = Uuid::new_v4().simple().to_string();
    vec![
        tokio::spawn(send_wakeups(Arc::clone(shared), replica_id.clone())),
        tokio::spawn(listen(Arc::clone(shared), replica_id)),
    ]
}

async fn send_wakeups(shared: Arc<SqlShared<PostgresDialect>>, replica_id: String) {
    loop {
        shared.wakeups.until_outward().await;
        let sent = shared
            .ask_with(sql::NOTIFY, &|to: &mut PgArguments| to.add(&replica_id[..]))
            .await;
        if let Err(trouble) = sent {
            tracing::debug!(said = trouble.sentence(), "a hint was not passed on");
        }
        sleep(CALM).await;
    }
}

async fn listen(shared: Arc<SqlShared<PostgresDialect>>, replica_id: String) {
    loop {
        if let Err(cause) = receive_wakeups(&shared, &replica_id).await {
            let said = PostgresDialect::driver_error(cause).sentence();
            tracing::debug!(said, "hints of other replicas are not heard");
        }
        // Notifications in the meantime were missed.
        shared.wakeups.here();
        sleep(PAUSE).await;
    }
}

/// Listens until the connection breaks.
async fn receive_wakeups(
    shared: &SqlShared<PostgresDialect>,
    replica_id: &str,
) -> Result<(), sqlx::Error> {
    let one = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(shared.settings.connect_timeout)
        .connect_with(shared.pool.connector().options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&one).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    shared.wakeups.here();
    while let Some(notification) = listener.try_recv().await? {
        if notification.payload() != replica_id {
            shared.wakeups.here();
            // It was sent for a commit, of which the feed tells.
            shared.wakeups.feed_moved();
        }
    }
    Ok(())
}
