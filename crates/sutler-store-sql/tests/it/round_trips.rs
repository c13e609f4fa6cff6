//! Round trips are counted by the proxy: one per call. The same for every server.

use crate::fixture::{LASTING, insert, key, operation, worker};
use sutler_journal::{Cursor, List, Outcome, Queue, Start, Store};
use sutler_servers::Proxy;

pub(crate) async fn every_call_is_one_round_trip(store: &dyn Store, proxy: &Proxy) {
    let worker = worker(store).await;
    let queue = [(Queue::named("work"), 1)];
    let list = List::Prefix(Vec::new());
    // The first round prepares the statements.
    for round in ["first", "second"] {
        let new = operation(round, Start::Claimed(worker));
        let (id, lane) = (new.id, new.lane.clone());
        let accept = insert(round).start(new);
        let version = sutler_journal::Version(accept.id());
        let end = sutler_journal::Commit::new()
            .replace(key(round), version, Vec::new(), "body".into())
            .advance(
                id,
                sutler_journal::Next::Done(Outcome::Succeeded),
                None,
                None,
            )
            .fenced(id, sutler_journal::Fence(1));
        let mut counted = Vec::new();
        let mut before = proxy.round_trips();
        let mut count = |name: &'static str| {
            let now = proxy.round_trips();
            counted.push((name, now - before));
            before = now;
        };
        store.commit(&accept).await.expect("a commit");
        count("accept");
        store.poll(&lane, id).await.expect("a poll");
        count("poll");
        store.commit(&end).await.expect("a commit");
        count("end");
        store.commit(&end).await.expect("a repeat");
        count("repeat");
        store.get(&key(round)).await.expect("a read");
        count("get");
        store.renew(worker, LASTING).await.expect("a lease");
        count("renew");
        store.claim(worker, &queue).await.expect("a claim");
        count("claim");
        store.list(&list, None, 10).await.expect("a page");
        count("list");
        let start = Cursor::default();
        store.changes(&start, 10).await.expect("changes");
        count("changes");
        if round == "second" {
            for (name, trips) in counted {
                assert_eq!(trips, 1, "{name}");
            }
        }
    }
}
