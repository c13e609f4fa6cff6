//! A lease in real time: it expires by the server's clock, whatever its worker does meanwhile.

use crate::fixture::{insert, key, operation, until_ok, worker};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, Fence, LeaseError, Next, Outcome, Queue, StaleItem, Start, State, Store,
    Version, WorkerId,
};

const SHORT: Duration = Duration::from_secs(1);

/// A worker pauses for longer than its lease; another takes over, and the first cannot write.
pub(crate) async fn a_lease_runs_out_by_itself_and_its_worker_writes_nothing(store: &dyn Store) {
    let paused = WorkerId::fresh();
    store.renew(paused, SHORT).await.expect("a lease");
    let leased = Instant::now();
    let new = operation("a", Start::Claimed(paused));
    let accept = insert("a").start(new.clone());
    store.commit(&accept).await.expect("a commit");

    let other = worker(store).await;
    let queues = [(Queue::named("work"), 1)];
    let taken = until_ok("a takeover", || async {
        let claimed = store.claim(other, &queues).await.expect("a claim");
        claimed.into_iter().next().ok_or("not yet")
    });
    let taken = taken.await;
    // The lease began shortly before the response arrived.
    assert!(leased.elapsed() > SHORT / 2, "{:?}", leased.elapsed());
    let row = (taken.row.id, taken.row.fence, taken.row.takeovers);
    assert_eq!(row, (new.id, Fence(2), 1));

    let version = Version(accept.id());
    let late = Commit::new()
        .replace(key("a"), version, Vec::new(), "late".into())
        .advance(new.id, Next::Done(Outcome::Succeeded), None, None)
        .fenced(new.id, Fence(1));
    match store.commit(&late).await {
        Err(CommitError::Stale(StaleItem::Expect(1))) => {}
        other => panic!("it has no lease, yet {other:?}"),
    }
    let renewed = store.renew(paused, SHORT).await;
    assert!(matches!(renewed, Err(LeaseError::Lost)), "{renewed:?}");
    let found = store.get(&key("a")).await.expect("a read");
    assert_eq!(found.expect("a document").version, version);
    let found = store.operation(new.id).await.expect("a read");
    let row = found.expect("an operation").row;
    assert_eq!((row.state, row.fence), (State::Running, Fence(2)));
}
