//! Three replicas under load while connections are cut, replicas are cut off and the server dies.
//!
//! Each replica adds to shared counters and carries operations out, and remembers what it was told.
//! Afterwards the store must agree: every acknowledged addition is there and no other, every operation
//! ended once, and nothing is stuck. Bounded: a few seconds of blows, then everything must settle.

use crate::candidate::Mongo;
use crate::scene::{WORK, bytes, key, new_operation, until};
use secrecy::SecretString;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, CommitId, Cursor, Document, Due, Next, Operation, Outcome, Start, Store,
    WorkerId, settle,
};
use sutler_servers::{Cut, Demands, MongoDialect, Place, Proxy, Server, mongodb as servers};
use sutler_store_mongodb::{MongoSettings, MongoStore};
use tokio::task::JoinSet;

const REPLICAS: usize = 3;
const COUNTERS: usize = 4;
/// How often something is broken.
const BLOWS: usize = 18;
const LEASE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// One replica and what it was told.
struct Replica {
    proxy: Proxy,
    store: MongoStore,
    added: AtomicU64,
    accepted: AtomicU64,
    ended: AtomicU64,
}

impl Replica {
    async fn of(place: &Place, server: SocketAddr) -> Arc<Self> {
        let proxy = Proxy::to::<MongoDialect>(server).await;
        let url = SecretString::from(place.through(proxy.port()).url());
        let settings = MongoSettings {
            select_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(2),
            ..MongoSettings::default()
        };
        let store = MongoStore::open_with(&url, settings).await;
        let store = store.expect("a store");
        Arc::new(Self {
            proxy,
            store,
            added: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        })
    }

    /// Repeats a commit until it is known what became of it; whether it was applied.
    async fn settled_eventually(&self, commit: &Commit) -> bool {
        let began = Instant::now();
        let mut doubted = false;
        loop {
            match settle(&self.store, commit).await {
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
        let Ok(Some(read)) = self.store.get(&key(&format!("{n}"))).await else {
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

    /// Ends an operation, unless somebody took it over.
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

    /// Claims and ends what there is, under one name after the other, until told to stop.
    async fn work_until(&self, stop: &AtomicBool) {
        let mut worker = WorkerId::fresh();
        while !stop.load(Ordering::SeqCst) {
            let renewed = self.store.renew(worker, LEASE).await;
            if let Err(sutler_journal::LeaseError::Lost) = renewed {
                worker = WorkerId::fresh();
                continue;
            }
            // What a lost answer claimed is only heard of here.
            for id in renewed.map(|it| it.held).unwrap_or_default() {
                if let Ok(Some(operation)) = self.store.operation(id).await {
                    self.end(&operation).await;
                }
            }
            for operation in self
                .store
                .claim(worker, &[(WORK, 5)])
                .await
                .unwrap_or_default()
            {
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

fn number(document: &Document) -> u64 {
    let text = std::str::from_utf8(&document.body).expect("text");
    text.parse().expect("a number")
}

/// Breaks something.
async fn strike(n: usize, replica: &Replica, server: &Server) {
    match n % 6 {
        0 => replica.proxy.cut(Cut::Before),
        1 => replica.proxy.cut(Cut::During),
        2 => replica.proxy.cut(Cut::After),
        3 => replica.proxy.set_down(true),
        4 => {
            server.kill();
            server.start();
        }
        _ => server.freeze(),
    }
    pause_until_it_hurts().await;
    match n % 6 {
        3 => replica.proxy.set_down(false),
        5 => server.thaw(),
        _ => {}
    }
}

async fn pause_until_it_hurts() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_acknowledged_is_there_once_whatever_breaks() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let calm = mongo.current();
    for n in 0..COUNTERS {
        let zero = Commit::new().insert(key(&format!("{n}")), Vec::new(), bytes("0"));
        calm.commit(&zero).await.expect("a counter");
    }
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Replica::of(&mongo.place, server.address()).await);
    }
    let (stop_load, stop_work) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (mut load, mut work) = (JoinSet::new(), JoinSet::new());
    for (n, replica) in replicas.iter().enumerate() {
        let (loaded, stop) = (Arc::clone(replica), Arc::clone(&stop_load));
        load.spawn(async move { loaded.load_until(&stop, n).await });
        let (working, stop) = (Arc::clone(replica), Arc::clone(&stop_work));
        work.spawn(async move { working.work_until(&stop).await });
    }
    for blow in 0..BLOWS {
        strike(blow, &replicas[blow % REPLICAS], &server).await;
    }
    stop_load.store(true, Ordering::SeqCst);
    while let Some(ended) = load.join_next().await {
        ended.expect("the load ends");
    }
    until("everything has ended", || async {
        calm.stats().await.is_ok_and(|stats| stats.live == 0)
    })
    .await;
    stop_work.store(true, Ordering::SeqCst);
    while let Some(ended) = work.join_next().await {
        ended.expect("the work ends");
    }
    let sum = |told: fn(&Replica) -> &AtomicU64| -> u64 {
        let told = replicas.iter().map(|it| told(it).load(Ordering::SeqCst));
        told.sum()
    };
    let mut counted = 0;
    for n in 0..COUNTERS {
        let read = calm.get(&key(&format!("{n}"))).await.expect("a read");
        counted += number(&read.expect("a counter"));
    }
    let stats = calm.stats().await.expect("counts");
    let (added, accepted) = (sum(|it| &it.added), sum(|it| &it.accepted));
    eprintln!("{added} additions and {accepted} operations through {BLOWS} blows");
    assert_eq!(counted, added, "additions");
    assert_eq!(stats.accepted, accepted, "operations");
    assert_eq!(stats.terminal, sum(|it| &it.ended), "each ended once");
    assert!(added > 10 && accepted > 10, "there was load");
    let made = COUNTERS as u64 + added + accepted + stats.terminal;
    assert_eq!(commits_in_feed(&*calm).await, made, "the feed has each");
}

/// How many commits the feed has, each of which must stand there once.
async fn commits_in_feed(store: &dyn Store) -> u64 {
    let mut seen: BTreeSet<CommitId> = BTreeSet::new();
    let mut cursor = Cursor::default();
    loop {
        let part = store.changes(&cursor, 100).await.expect("changes");
        if part.changes.is_empty() {
            return seen.len() as u64;
        }
        let mut commits: Vec<CommitId> = part.changes.iter().map(|it| it.commit).collect();
        commits.dedup();
        for commit in commits {
            assert!(seen.insert(commit), "twice in the feed");
        }
        cursor = part.next;
    }
}
