//! Guarantees of the framework beyond the protocol: hooks, restarts, secrets, scheduled work.
//!
//! All tests use a store with injectable faults, whose clock is tokio's paused one. Start with
//! [`RestartableBroker`]: its store outlives the brokers on it. `hooks/store_fault_matrix.rs` fails every
//! single call of the store once; `hooks/regressions.rs` has the tests against
//! bugs of an earlier broker.

mod captured_log;
mod catalog_replacement;
mod cleanup;
mod commit_shape;
mod deadlines_and_purges;
mod hook_context;
mod hook_side_outputs;
mod regressions;
mod secrets;
mod store_fault_matrix;
mod store_outages;
mod typed_services;

use self::captured_log::Log;
use crate::fixture::Fixture;
use crate::fixture::test_catalog::{DB, LARGE, SMALL};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::{Broker, BuildError, Service};
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{
    Clock, KeyRing, MemoryStore, OperationFilter, OperationList, OperationRow, Store, StoreTime,
};
use tokio::time::Instant;

/// Clock of the store that follows tokio's paused clock, and can also jump.
struct PausedClock {
    began: Instant,
    skipped: Mutex<Duration>,
}

impl Clock for PausedClock {
    fn now(&self) -> StoreTime {
        let skipped = *self.skipped.lock().unwrap();
        StoreTime(1_700_000_000_000_000).plus(self.began.elapsed() + skipped)
    }
}

type Injection = Box<dyn FnMut(&Call<'_>) -> Intercept + Send>;

/// A store that outlives the brokers on it.
struct RestartableBroker {
    clock: Arc<PausedClock>,
    memory: Arc<MemoryStore>,
    inject: Arc<Mutex<Injection>>,
    ring: String,
}

impl RestartableBroker {
    fn new() -> Self {
        let clock = Arc::new(PausedClock {
            began: Instant::now(),
            skipped: Mutex::default(),
        });
        Self {
            memory: Arc::new(MemoryStore::with_clock(clock.clone())),
            clock,
            inject: Arc::new(Mutex::new(Box::new(|_: &Call<'_>| Intercept::Pass))),
            ring: KeyRing::fresh_line("first").to_string(),
        }
    }

    /// Sets the handling of later calls of the store.
    fn inject(&self, inject: impl FnMut(&Call<'_>) -> Intercept + Send + 'static) {
        *self.inject.lock().unwrap() = Box::new(inject);
    }

    fn stop_faults(&self) {
        self.inject(|_| Intercept::Pass);
    }

    /// Advances the clock by a long time. Leases run out; brokers register again under a new name.
    async fn pass(&self, time: Duration) {
        *self.clock.skipped.lock().unwrap() += time;
        tokio::time::sleep(AFTER_THE_LEASE).await;
    }

    /// Starts a broker of one service on the store.
    async fn open(&self, service: impl Service) -> HookFixture {
        self.open_with(service, |broker| broker).await
    }

    async fn open_with(
        &self,
        service: impl Service,
        set_up: impl FnOnce(Broker) -> Broker,
    ) -> HookFixture {
        self.try_open(service, set_up)
            .await
            .expect("the broker starts")
    }

    async fn try_open(
        &self,
        service: impl Service,
        set_up: impl FnOnce(Broker) -> Broker,
    ) -> Result<HookFixture, BuildError> {
        let cut = Arc::new(AtomicBool::new(false));
        let (inject, dead) = (self.inject.clone(), cut.clone());
        let store = InterceptingStore::new(self.memory.clone(), move |call| {
            if dead.load(Ordering::Relaxed) {
                return Intercept::CrashBefore;
            }
            inject.lock().unwrap()(call)
        });
        let catalog: sutler_osb::Catalog =
            serde_json::from_value(catalog()).expect("it keeps the rules");
        let ring = KeyRing::parse(&self.ring).expect("a ring");
        let broker = Broker::new(catalog)
            .service("db", service)
            .store(store, ring)
            .basic_auth("user", "s3cret");
        let running = set_up(broker).start().await?;
        let kit = Fixture::around(running);
        Ok(HookFixture { kit, cut })
    }

    /// All operations except scheduled ones, newest first.
    async fn operations(&self) -> Vec<OperationRow> {
        let list = OperationList {
            filter: OperationFilter::All,
            before: None,
            limit: 10_000,
        };
        let rows = self.memory.operations(&list).await.expect("it answers");
        rows.into_iter()
            .filter(|row| row.verb != "cleanup")
            .collect()
    }
}

/// A broker on the shared store.
struct HookFixture {
    kit: Fixture,
    cut: Arc<AtomicBool>,
}

impl Deref for HookFixture {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.kit
    }
}

impl HookFixture {
    /// Simulates a crash: no later call of the store returns.
    fn crash(self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

/// One offering that supports everything, with two plans without schemas.
fn catalog() -> Value {
    json!({ "services": [{
        "name": "db", "id": DB, "description": "A database.",
        "bindable": true, "plan_updateable": true, "allow_context_updates": true,
        "instances_retrievable": true, "bindings_retrievable": true,
        "plans": [
            { "id": SMALL, "name": "small", "description": "For few.", "binding_rotatable": true },
            { "id": LARGE, "name": "large", "description": "For many." },
        ],
    }] })
}

/// Longer than any lease, so that a process that was cut off has lost its lease.
const AFTER_THE_LEASE: Duration = Duration::from_secs(31);
