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
    let voice = Uuid::new_v4().simple().to_string();
    vec![
        tokio::spawn(speak(Arc::clone(shared), voice.clone())),
        tokio::spawn(listen(Arc::clone(shared), voice)),
    ]
}

async fn speak(shared: Arc<SqlShared<PostgresDialect>>, voice: String) {
    loop {
        shared.wakeups.until_outward().await;
        let told = shared
            .ask_with(sql::NOTIFY, &|to: &mut PgArguments| to.add(&voice[..]))
            .await;
        if let Err(trouble) = told {
            tracing::debug!(said = trouble.sentence(), "a hint was not passed on");
        }
        sleep(CALM).await;
    }
}

async fn listen(shared: Arc<SqlShared<PostgresDialect>>, voice: String) {
    loop {
        if let Err(cause) = hear(&shared, &voice).await {
            let said = PostgresDialect::driver_error(cause).sentence();
            tracing::debug!(said, "hints of other replicas are not heard");
        }
        // Notifications in the meantime were missed.
        shared.wakeups.here();
        sleep(PAUSE).await;
    }
}

/// Listens until the connection breaks.
async fn hear(shared: &SqlShared<PostgresDialect>, voice: &str) -> Result<(), sqlx::Error> {
    let one = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(shared.settings.connect_timeout)
        .connect_with(shared.pool.connector().options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&one).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    shared.wakeups.here();
    while let Some(heard) = listener.try_recv().await? {
        if heard.payload() != voice {
            shared.wakeups.here();
        }
    }
    Ok(())
}
