//! Every call of the store is made to fail once, repeat once and crash once.
//!
//! A life of an instance is played once to count the store's calls; then again for every call and
//! every way in which that call can go wrong. A platform repeats what was not answered, a crashed
//! broker is started again on the same store. In the end everything acknowledged is there, every
//! lane is free, every memoised step ran once, and the outside world is empty again. The service is
//! in `store_fault_matrix/fixture.rs`, the platform in `store_fault_matrix/platform.rs`.

mod fixture;
mod platform;

use fixture::{CountingService, World};
use platform::{Journey, Life};
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
    /// The process sleeps for longer than its lease, then goes on.
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

/// Time for all processes of one run, one after the other.
struct Eras(Mutex<(StoreTime, Option<Instant>)>);

impl Eras {
    /// A new process begins, after the leases of the one before ran out.
    fn begin(&self) {
        let mut era = self.0.lock().unwrap();
        *era = (era.0.plus(4 * LEASE), Some(Instant::now()));
    }

    fn skip(&self, time: Duration) {
        let mut era = self.0.lock().unwrap();
        era.0 = era.0.plus(time);
    }
}

impl Clock for Eras {
    fn now(&self) -> StoreTime {
        let era = self.0.lock().unwrap();
        era.0.plus(era.1.map_or(Duration::ZERO, |it| it.elapsed()))
    }
}

/// One run of one life.
struct Play {
    life: Life,
    fault: Option<(usize, Fault)>,
    store: Arc<MemoryStore>,
    clock: Arc<Eras>,
    ring: String,
    world: Arc<World>,
    journey: Journey,
    /// Calls so far, and whether each was a commit.
    calls: Arc<Mutex<Vec<bool>>>,
}

impl Play {
    fn new(life: Life, fault: Option<(usize, Fault)>) -> Self {
        let clock = Arc::new(Eras(Mutex::new((StoreTime(1_700_000_000_000_000), None))));
        Self {
            life,
            fault,
            store: Arc::new(MemoryStore::with_clock(clock.clone())),
            clock,
            ring: KeyRing::fresh_line("only").to_string(),
            world: Arc::default(),
            journey: Journey::default(),
            calls: Arc::default(),
        }
    }

    /// Plays it to its end, over as many processes as it takes.
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

    /// One process; whether the life was played to its end.
    async fn process(&self) -> bool {
        self.clock.begin();
        let crashed = Arc::new(Notify::new());
        let store = Arc::new(self.tapped(crashed.clone()));
        let live = async {
            let kit = loop {
                match self.start(store.clone()).await {
                    Ok(running) => break crate::fixture::Fixture::around(running),
                    // The platform starts it again.
                    Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                }
            };
            self.journey.go_on(&kit, self.life).await;
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
            .service("db", CountingService(self.world.clone()))
            .shared_store(store, KeyRing::parse(&self.ring).expect("a ring"))
            .basic_auth("user", "s3cret")
            .settings(|settings| {
                settings.lease = LEASE;
                settings.sync_wait = Duration::from_secs(15);
            })
            .start()
            .await
    }

    fn tapped(&self, crashed: Arc<Notify>) -> InterceptingStore {
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

    /// Whether the n-th call was a commit, in a life where commits come one after the other: a
    /// delete is accepted beside the create it halts, and a cascade has several under way.
    fn is_lone_commit(&self, n: usize) -> bool {
        let calls = self.calls.lock().unwrap();
        let beside = matches!(self.life, Life::Cascade | Life::DeletedWhileCreated);
        calls.get(n - 1).copied().unwrap_or(false) && !beside
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
        let left = self.world.left();
        assert!(left.is_empty(), "{self}: left behind: {left:?}");
        let extra = self.world.extra_runs();
        // Between an effect and its memo, and nowhere else; a cascade has two under way.
        let under_way = if matches!(self.life, Life::Cascade) {
            2
        } else {
            1
        };
        let allowed = match self.fault {
            Some((_, Fault::CrashBefore | Fault::Slept)) => under_way,
            // The memo was the last commit, unless another call was made at the same time.
            Some((n, Fault::CrashAfter)) if !self.is_lone_commit(n) => under_way,
            _ => 0,
        };
        assert!(extra.len() <= allowed, "{self}: run again: {extra:?}");
    }
}

impl std::fmt::Display for Play {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?}", self.life, self.fault)
    }
}

/// Plays a life once whole, then once for every fault at every call.
fn every_fault_at_every_call(life: Life) {
    let whole = Play::new(life, None);
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
            Play::new(life, Some((n + 1, fault))).run();
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
fn a_platform_that_sends_everything_twice_gets_one_of_everything() {
    for life in [Life::Synchronous, Life::Asynchronous, Life::Cascade] {
        let mut play = Play::new(life, None);
        play.journey.twice = true;
        play.run();
    }
}
