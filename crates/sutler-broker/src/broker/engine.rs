//! Starts the engine of a broker: one for all platforms, with a queue for each. The engine itself is in `sutler-journal`,
//! what it runs in `executor.rs`.

use super::BuildError;
use crate::executor::{BrokerExecutor, RealmExecutors};
use crate::realm_context::{RealmContext, queue_of};
use crate::settings::Settings;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::copy::check_usable;
use sutler_journal::{Engine, EngineSettings, Queue, QueueSettings, Store};
use sutler_records::PeriodicTasks;

/// One engine for all platforms, with a queue for each.
pub(super) async fn start(
    store: Arc<dyn Store>,
    realm_contexts: &[Arc<RealmContext>],
    settings: &Settings,
    tasks: Option<Arc<PeriodicTasks>>,
) -> Result<Engine, BuildError> {
    let limit = settings.workers;
    let mut queues: Vec<Queue> = Vec::new();
    for realm_context in realm_contexts {
        // Every process serves scheduled work, in addition to its own queue.
        for queue in [
            queue_of(&realm_context.records.realm),
            realm_context.queue.clone(),
        ] {
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
    }
    let queue = |queue| QueueSettings { queue, limit };
    let engine_settings = EngineSettings {
        lease: settings.lease,
        // `workers` is a limit for each platform: they share nothing else.
        total_limit: limit.saturating_mul(queues.len()),
        queues: queues.into_iter().map(queue).collect(),
        paused: true,
        ..EngineSettings::default()
    };
    let executors = realm_contexts
        .iter()
        .map(|realm_context| BrokerExecutor(realm_context.clone()));
    let executors = executors.collect();
    let executor = Arc::new(RealmExecutors(executors, tasks));
    let started = Engine::start(store.clone(), executor, engine_settings).await;
    let engine = started.map_err(|error| BuildError::Store(error.into()))?;
    // A copy that was finished since the first check did not see the lease of this process.
    if let Err(moved) = check_usable(store.as_ref()).await {
        engine.shut_down(Duration::ZERO).await;
        return Err(moved.into());
    }
    engine.resume();
    Ok(engine)
}
