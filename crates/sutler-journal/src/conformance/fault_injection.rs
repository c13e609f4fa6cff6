//! Replicas of a store on a server under load and injected faults.
//!
//! Each replica adds to shared counters and runs operations, and records every acknowledgement.
//! Afterwards the store must agree: every acknowledged addition is applied and no other, every operation
//! ended once, every commit is in the feed once, and no operation is stuck. Not a case of the suite, because
//! only a store's own tests know which faults are possible: they pass a function that injects them. Chaos
//! over whole brokers is in the crash tool.

use super::fixture::{WORK, bytes, key, new_operation};
use crate::commit::{Commit, CommitError, CommitId, Due, Next, Start};
use crate::commit_retry::commit_until_known;
use crate::document::Document;
use crate::operation::{Operation, Outcome, WorkerId};
use crate::query::Cursor;
use crate::store::{LeaseError, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const COUNTERS: usize = 4;
const LEASE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// One replica and its acknowledgements.
struct Replica {
    store: Arc<dyn Store>,
    added: AtomicU64,
    accepted: AtomicU64,
    ended: AtomicU64,
}

impl Replica {
    fn of(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            store,
            added: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        })
    }

    /// Repeats a commit until its outcome is known; returns whether it was applied.
    async fn settled_eventually(&self, commit: &Commit) -> bool {
        let began = Instant::now();
        let mut doubted = false;
        loop {
            match commit_until_known(&*self.store, commit).await {
                Ok(()) => return true,
                Err(CommitError::Stale(_)) => return false,
                Err(CommitError::NotWritten(_)) if !doubted => return false,
                Err(CommitError::NotWritten(_)) => {}
                Err(CommitError::Unknown(_)) => doubted = true,
            }
            assert!(began.elapsed() < PATIENCE, "never known");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn add(&self, n: usize) {
        let Ok(Some(read)) = self.store.get(&counter(n)).await else {
            return;
        };
        let body = bytes(&(number(&read) + 1).to_string());
        let commit = Commit::new().replace(read.key, read.version, Vec::new(), body);
        if self.settled_eventually(&commit).await {
            self.added.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn accept(&self) {
        let new = new_operation("lane", Start::Ready(Due::Now));
        if self.settled_eventually(&Commit::new().start(new)).await {
            self.accepted.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Ends an operation, unless another worker took it over.
    async fn end(&self, operation: &Operation) {
        let (id, fence) = (operation.row.id, operation.row.fence);
        let done = Next::Done(Outcome::Succeeded);
        let commit = Commit::new()
            .advance(id, done, None, None)
            .fenced(id, fence);
        if self.settled_eventually(&commit).await {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Claims and ends operations under successive worker ids, until stopped.
    async fn work_until(&self, stop: &AtomicBool) {
        let mut worker = WorkerId::fresh();
        while !stop.load(Ordering::SeqCst) {
            let renewed = self.store.renew(worker, LEASE).await;
            if let Err(LeaseError::Lost) = renewed {
                worker = WorkerId::fresh();
                continue;
            }
            // Operations claimed by a lost response are only listed here.
            for id in renewed.map(|it| it.held).unwrap_or_default() {
                if let Ok(Some(operation)) = self.store.operation(id).await {
                    self.end(&operation).await;
                }
            }
            let claimed = self.store.claim(worker, &[(WORK, 5)]).await;
            for operation in claimed.unwrap_or_default() {
                self.end(&operation).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn load_until(&self, stop: &AtomicBool, seed: usize) {
        let mut n = seed;
        while !stop.load(Ordering::SeqCst) {
            self.add(n % COUNTERS).await;
            self.accept().await;
            n += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn counter(n: usize) -> crate::key::Key {
    key(&n.to_string())
}

fn number(document: &Document) -> u64 {
    let text = std::str::from_utf8(&document.body).expect("text");
    text.parse().expect("a number")
}

/// Puts load on an empty store through all replicas while `inject` injects and repairs faults, waits until
/// no operation is live, and compares the store with the acknowledgements. `reliable` has no faults.
///
/// # Panics
/// If the store and the acknowledgements differ, or operations are still live after a minute.
pub async fn check_under_faults<F: Future<Output = ()>>(
    reliable: Arc<dyn Store>,
    replicas: Vec<Arc<dyn Store>>,
    faults: usize,
    mut inject: impl FnMut(usize) -> F,
) {
    for n in 0..COUNTERS {
        let zero = Commit::new().insert(counter(n), Vec::new(), bytes("0"));
        reliable.commit(&zero).await.expect("a counter");
    }
    let replicas: Vec<Arc<Replica>> = replicas.into_iter().map(Replica::of).collect();
    let stop_load = Arc::new(AtomicBool::new(false));
    let stop_work = Arc::new(AtomicBool::new(false));
    let (mut load, mut work) = (JoinSet::new(), JoinSet::new());
    for (n, replica) in replicas.iter().enumerate() {
        let (loaded, stop) = (Arc::clone(replica), Arc::clone(&stop_load));
        load.spawn(async move { loaded.load_until(&stop, n).await });
        let (working, stop) = (Arc::clone(replica), Arc::clone(&stop_work));
        work.spawn(async move { working.work_until(&stop).await });
    }
    for fault in 0..faults {
        inject(fault).await;
    }
    stop_load.store(true, Ordering::SeqCst);
    while let Some(ended) = load.join_next().await {
        ended.expect("the load ends");
    }
    until_nothing_is_live(&*reliable).await;
    stop_work.store(true, Ordering::SeqCst);
    while let Some(ended) = work.join_next().await {
        ended.expect("the work ends");
    }
    compare(&*reliable, &replicas).await;
}

async fn until_nothing_is_live(reliable: &dyn Store) {
    let began = Instant::now();
    while !reliable.stats().await.is_ok_and(|stats| stats.live == 0) {
        assert!(began.elapsed() < PATIENCE, "something is stuck");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn compare(reliable: &dyn Store, replicas: &[Arc<Replica>]) {
    let sum = |count_of: fn(&Replica) -> &AtomicU64| -> u64 {
        let count_of = replicas
            .iter()
            .map(|it| count_of(it).load(Ordering::SeqCst));
        count_of.sum()
    };
    let (added, accepted) = (sum(|it| &it.added), sum(|it| &it.accepted));
    let mut counted = 0;
    for n in 0..COUNTERS {
        let read = reliable.get(&counter(n)).await.expect("a read");
        counted += number(&read.expect("a counter"));
    }
    let stats = reliable.stats().await.expect("counts");
    assert_eq!(counted, added, "additions");
    assert_eq!(stats.accepted, accepted, "operations");
    assert_eq!(stats.terminal, sum(|it| &it.ended), "each ended once");
    assert!(added > 10 && accepted > 10, "there was load");
    let made = COUNTERS as u64 + added + accepted + stats.terminal;
    assert_eq!(commits_in_feed(reliable).await, made, "the feed has each");
}

/// Number of commits in the feed, each of which must occur once.
async fn commits_in_feed(store: &dyn Store) -> u64 {
    let mut ids: BTreeSet<CommitId> = BTreeSet::new();
    let mut cursor = Cursor::default();
    loop {
        let part = store.changes(&cursor, 100).await.expect("changes");
        if part.changes.is_empty() {
            return ids.len() as u64;
        }
        let mut commits: Vec<CommitId> = part.changes.iter().map(|it| it.commit).collect();
        commits.dedup();
        for commit in commits {
            assert!(ids.insert(commit), "twice in the feed");
        }
        cursor = part.next;
    }
}

#[cfg(test)]
mod tests {
    use super::check_under_faults;
    use crate::memory::MemoryStore;
    use crate::store::Store;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_memory_store_passes_without_faults() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let replicas = vec![Arc::clone(&store), Arc::clone(&store)];
        let pause = |_| tokio::time::sleep(Duration::from_millis(50));
        check_under_faults(Arc::clone(&store), replicas, 6, pause).await;
    }
}
