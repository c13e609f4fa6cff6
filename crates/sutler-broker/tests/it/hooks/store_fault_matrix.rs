//! Every call of the store fails once, repeats once and crashes once.
//!
//! A lifecycle of an instance runs once to count the store's calls; then again for every call and every
//! fault of that call. A platform repeats unanswered requests, a crashed broker is started again on the
//! same store. In the end every acknowledged change is stored, every lane is free, every memoised step
//! ran once, and the external system is empty again. The service is in `store_fault_matrix/fixture.rs`,
//! the platform in `store_fault_matrix/platform.rs`.

mod fixture;
mod platform;

use fixture::{CountingService, ExternalSystem};
use platform::{Life, PlatformProgress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutler_broker::Broker;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use sutler_journal::{
    Clock, KeyRing, MemoryStore, OperationFilter, OperationList, Store, StoreTime,
};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Kind of a store fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The store refuses the call.
    Refused,
    /// The result is unknown, and nothing was written.
    Lost,
    /// The result is unknown, and it was written.
    Unanswered,
    /// The process dies before the call.
    CrashBefore,
    /// The process dies after the call.
    CrashAfter,
    /// The process sleeps for longer than its lease, then continues.
    Slept,
}

const FAULTS: [Fault; 6] = [
    Fault::Refused,
    Fault::Lost,
    Fault::Unanswered,
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::Slept,
];

const LEASE: Duration = Duration::from_secs(30);

/// Clock of all processes of one run, one after the other.
struct ProcessClock(Mutex<(StoreTime, Option<Instant>)>);

impl ProcessClock {
    /// Begins a new process, after the leases of the previous one ran out.
    fn begin(&self) {
        let mut times = self.0.lock().unwrap();
        *times = (times.0.plus(4 * LEASE), Some(Instant::now()));
    }

    fn skip(&self, time: Duration) {
        let mut times = self.0.lock().unwrap();
        times.0 = times.0.plus(time);
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> StoreTime {
        let times = self.0.lock().unwrap();
        times
            .0
            .plus(times.1.map_or(Duration::ZERO, |it| it.elapsed()))
    }
}

/// One run of one lifecycle.
struct FaultRun {
    life: Life,
    fault: Option<(usize, Fault)>,
    store: Arc<MemoryStore>,
    clock: Arc<ProcessClock>,
    ring: String,
    external: Arc<ExternalSystem>,
    progress: PlatformProgress,
    /// Calls so far, and whether each was a commit.
    calls: Arc<Mutex<Vec<bool>>>,
}

impl FaultRun {
    fn new(life: Life, fault: Option<(usize, Fault)>) -> Self {
        let clock = Arc::new(ProcessClock(Mutex::new((
            StoreTime(1_700_000_000_000_000),
            None,
        ))));
        Self {
            life,
            fault,
            store: Arc::new(MemoryStore::with_clock(clock.clone())),
            clock,
            ring: KeyRing::fresh_line("only").to_string(),
            external: Arc::default(),
            progress: PlatformProgress::default(),
            calls: Arc::default(),
        }
    }

    /// Runs the lifecycle to its end, restarting crashed processes.
    fn run(&self) {
        for _ in 0..3 {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime");
            // Dropping the runtime drops every task of the broker at once.
            if runtime.block_on(self.process()) {
                return;
            }
        }
        panic!("{self}: it does not come to an end");
    }

    /// Runs one process. Returns whether the lifecycle reached its end.
    async fn process(&self) -> bool {
        self.clock.begin();
        let crashed = Arc::new(Notify::new());
        let store = Arc::new(self.intercepted(crashed.clone()));
        let live = async {
            let kit = loop {
                match self.start(store.clone()).await {
                    Ok(running) => break crate::fixture::Fixture::around(running),
                    // The platform starts it again.
                    Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                }
            };
            self.progress.resume(&kit, self.life).await;
            kit.running.shut_down().await;
        };
        tokio::select! {
            () = live => {}
            () = crashed.notified() => return false,
        }
        self.check().await;
        true
    }

    async fn start(
        &self,
        store: Arc<dyn Store>,
    ) -> Result<sutler_broker::BrokerHandle, sutler_broker::BuildError> {
        let catalog: sutler_osb::Catalog =
            serde_json::from_value(super::catalog()).expect("it keeps the rules");
        Broker::new(catalog)
            .service("db", CountingService(self.external.clone()))
            .shared_store(store, KeyRing::parse(&self.ring).expect("a ring"))
            .basic_auth("user", "s3cret")
            .settings(|settings| {
                settings.lease = LEASE;
                settings.sync_wait = Duration::from_secs(15);
            })
            .start()
            .await
    }

    fn intercepted(&self, crashed: Arc<Notify>) -> InterceptingStore {
        let (calls, clock, fault) = (self.calls.clone(), self.clock.clone(), self.fault);
        let dead = AtomicBool::new(false);
        InterceptingStore::new(self.store.clone(), move |call: &Call<'_>| {
            if dead.load(Ordering::Relaxed) {
                return Intercept::CrashBefore;
            }
            let n = {
                let mut calls = calls.lock().unwrap();
                calls.push(matches!(call, Call::Commit(_)));
                calls.len()
            };
            match fault {
                Some((there, fault)) if there == n => match fault {
                    Fault::Refused => Intercept::Refuse,
                    Fault::Lost => Intercept::LoseRequest,
                    Fault::Unanswered => Intercept::LoseReply,
                    Fault::CrashBefore | Fault::CrashAfter => {
                        dead.store(true, Ordering::Relaxed);
                        crashed.notify_one();
                        let last = fault == Fault::CrashAfter;
                        if last {
                            Intercept::CrashAfter
                        } else {
                            Intercept::CrashBefore
                        }
                    }
                    Fault::Slept => {
                        clock.skip(LEASE);
                        Intercept::Pass
                    }
                },
                _ => Intercept::Pass,
            }
        })
    }

    /// Whether the n-th call was a commit, in a lifecycle without concurrent commits: a delete runs at the
    /// same time as the create it halts, and a cascade has several operations.
    fn is_lone_commit(&self, n: usize) -> bool {
        let calls = self.calls.lock().unwrap();
        let concurrent = matches!(self.life, Life::Cascade | Life::DeletedWhileCreated);
        calls.get(n - 1).copied().unwrap_or(false) && !concurrent
    }

    /// Invariants after any fault.
    async fn check(&self) {
        let all = OperationList {
            filter: OperationFilter::All,
            before: None,
            limit: 10_000,
        };
        let rows = self.store.operations(&all).await.expect("it answers");
        for row in rows.iter().filter(|row| row.verb != "cleanup") {
            assert!(row.finished.is_some(), "{self}: {row:?} did not end");
            assert!(!row.pinned, "{self}: {row:?} is pinned by nothing");
        }
        let stats = self.store.stats().await.expect("it answers");
        let counted = stats.live + stats.terminal + stats.cleaned;
        assert_eq!(stats.accepted, counted, "{self}: {stats:?}");
        let left = self.external.left();
        assert!(left.is_empty(), "{self}: left behind: {left:?}");
        let extra = self.external.extra_runs();
        // Only between an effect and its memo; a cascade has two at a time.
        let concurrent_steps = if matches!(self.life, Life::Cascade) {
            2
        } else {
            1
        };
        let allowed = match self.fault {
            Some((_, Fault::CrashBefore | Fault::Slept)) => concurrent_steps,
            // The memo was the last commit, unless another call was made at the same time.
            Some((n, Fault::CrashAfter)) if !self.is_lone_commit(n) => concurrent_steps,
            _ => 0,
        };
        assert!(extra.len() <= allowed, "{self}: run again: {extra:?}");
    }
}

impl std::fmt::Display for FaultRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?}", self.life, self.fault)
    }
}

/// Runs a lifecycle once without faults, then once for every fault at every call.
fn every_fault_at_every_call(life: Life) {
    let whole = FaultRun::new(life, None);
    whole.run();
    let calls = whole.calls.lock().unwrap().clone();
    assert!(
        calls.len() > 20,
        "{} calls are too few to be true",
        calls.len()
    );
    for (n, is_commit) in calls.into_iter().enumerate() {
        for fault in FAULTS {
            // A read is answered or not; it has no effects.
            if !is_commit && matches!(fault, Fault::Lost | Fault::Unanswered) {
                continue;
            }
            FaultRun::new(life, Some((n + 1, fault))).run();
        }
    }
}

#[test]
fn a_synchronous_life_survives_every_fault_at_every_call() {
    every_fault_at_every_call(Life::Synchronous);
}

/// Credentials used to be copied after the sandbox that held them was destroyed, and the job was
/// written after the instance: a kill in either gap lost the one or forged the other.
#[test]
fn r8_an_asynchronous_life_survives_every_fault_at_every_call() {
    every_fault_at_every_call(Life::Asynchronous);
}

#[test]
fn a_delete_during_a_create_survives_every_fault_at_every_call() {
    every_fault_at_every_call(Life::DeletedWhileCreated);
}

#[test]
fn a_cascade_survives_every_fault_at_every_call() {
    every_fault_at_every_call(Life::Cascade);
}

#[test]
fn requests_sent_twice_take_effect_once() {
    for life in [Life::Synchronous, Life::Asynchronous, Life::Cascade] {
        let mut run = FaultRun::new(life, None);
        run.progress.twice = true;
        run.run();
    }
}
