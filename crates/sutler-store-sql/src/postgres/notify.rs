//! Wakeups to and from other replicas, by LISTEN and NOTIFY, and by a timer.
//!
//! Three tasks: one passes this replica's hints on, one hears those of others, one gives a hint from
//! time to time. All end with the store. What is lost is made up for by the timer.

use super::{SqlShared, sql};
use sqlx::Arguments;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

const CHANNEL: &str = "sutler_hint";
/// Wakeups that come closer together than this are passed on as one.
const CALM: Duration = Duration::from_millis(5);
/// How long to wait before listening again.
const PAUSE: Duration = Duration::from_millis(500);

/// The tasks; they end when this is dropped.
pub(super) struct WakeupTasks(Vec<JoinHandle<()>>);

impl Drop for WakeupTasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

pub(super) fn start(shared: &Arc<SqlShared>, options: PgConnectOptions) -> WakeupTasks {
    // Who speaks, so that nobody hears himself.
    let voice = Uuid::new_v4().simple().to_string();
    WakeupTasks(vec![
        tokio::spawn(speak(Arc::clone(shared), voice.clone())),
        tokio::spawn(listen(Arc::clone(shared), options, voice)),
        tokio::spawn(remind(Arc::clone(shared))),
    ])
}

async fn speak(shared: Arc<SqlShared>, voice: String) {
    loop {
        shared.hints.until_outward().await;
        let told = shared.ask(sql::NOTIFY, &|a| a.add(&voice[..])).await;
        if let Err(trouble) = told {
            tracing::debug!(said = trouble.sentence(), "a hint was not passed on");
        }
        sleep(CALM).await;
    }
}

async fn listen(shared: Arc<SqlShared>, options: PgConnectOptions, voice: String) {
    loop {
        if let Err(cause) = hear(&shared, &options, &voice).await {
            let said = super::query::error_of(cause).sentence();
            tracing::debug!(said, "hints of other replicas are not heard");
        }
        // Whatever was said meanwhile was missed.
        shared.hints.here();
        sleep(PAUSE).await;
    }
}

/// Listens until the connection breaks.
async fn hear(
    shared: &SqlShared,
    options: &PgConnectOptions,
    voice: &str,
) -> Result<(), sqlx::Error> {
    let one = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(shared.settings.connect_timeout)
        .connect_with(options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&one).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    shared.hints.here();
    while let Some(heard) = listener.try_recv().await? {
        if heard.payload() != voice {
            shared.hints.here();
        }
    }
    Ok(())
}

async fn remind(shared: Arc<SqlShared>) {
    let mut ticks = interval(shared.settings.hint_every.max(CALM));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.hints.here();
    }
}
