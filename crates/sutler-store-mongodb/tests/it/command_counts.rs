//! Costs: round trips, and documents visited.

use crate::conformance::Mongo;
use crate::fixture::{THING, WORK, bytes, insert, key, new_operation, realm, until, worker};
use futures_util::TryStreamExt as _;
use mongodb::bson::{Bson, Document as Bsons, doc};
use std::time::Duration;
use sutler_journal::{
    Commit, Cursor, Due, Fence, List, Next, OperationFilter, OperationId, OperationList, Outcome,
    Start, Store, Sweep, Term, Version, Write,
};

/// An empty store whose change stream is open.
async fn settled() -> Option<Mongo> {
    let mongo = Mongo::fresh().await?;
    until("the store listens", || async {
        mongo
            .proxy
            .messages_since(0)
            .iter()
            .any(|it| it == "aggregate")
    })
    .await;
    Some(mongo)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_two_round_trips_and_a_poll_is_one() {
    let Some(mongo) = settled().await else {
        return;
    };
    let store = mongo.current();
    let worker = worker(&*store).await;
    let both = ["bulkWrite", "commitTransaction"];
    let commands_since = |before: usize| mongo.proxy.messages_since(before);
    let before = mongo.proxy.round_trips();
    let new = new_operation("a", Start::Claimed(worker));
    let id = new.id;
    let accept = insert("a", 4).start(new);
    let read = Version(accept.id());
    store.commit(&accept).await.expect("accepted");
    assert_eq!(commands_since(before), both, "accepting");
    let before = mongo.proxy.round_trips();
    store.poll(&key("a"), id).await.expect("a poll");
    assert_eq!(commands_since(before), ["find"], "a poll");
    let before = mongo.proxy.round_trips();
    store.get(&key("a")).await.expect("a read");
    assert_eq!(commands_since(before), ["find"], "a read");
    let memo = Commit::new()
        .advance(id, Next::Same, None, Some(bytes("memo")))
        .fenced(id, Fence(1));
    let before = mongo.proxy.round_trips();
    store.commit(&memo).await.expect("a memo");
    assert_eq!(commands_since(before), both, "a memo");
    let done = Next::Done(Outcome::Succeeded);
    let result = Commit::new()
        .replace(key("a"), read, vec![Term::new("a", "x")], bytes("live"))
        .advance(id, done, Some(bytes("done")), None)
        .fenced(id, Fence(1));
    let before = mongo.proxy.round_trips();
    store.commit(&result).await.expect("a result");
    assert_eq!(commands_since(before), both, "a result");
    let next = Commit::new()
        .write(Write::Unpin(id))
        .start(new_operation("a", Start::Waiting));
    let before = mongo.proxy.round_trips();
    store.commit(&next).await.expect("the next operation");
    assert_eq!(commands_since(before), both, "letting go of the last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_finds_nothing_is_one_round_trip() {
    let Some(mongo) = settled().await else {
        return;
    };
    let store = mongo.current();
    let worker = worker(&*store).await;
    let queues = [(WORK, 8)];
    let before = mongo.proxy.round_trips();
    let claimed = store.claim(worker, &queues).await.expect("a claim");
    assert!(claimed.is_empty());
    assert_eq!(mongo.proxy.messages_since(before), ["aggregate"]);
    let ready = Start::Ready(Due::Now);
    let new = new_operation("a", ready);
    store.commit(&Commit::new().start(new)).await.expect("it");
    let before = mongo.proxy.round_trips();
    let claimed = store.claim(worker, &queues).await.expect("a claim");
    assert_eq!(claimed.len(), 1);
    assert_eq!(
        mongo.proxy.messages_since(before),
        ["aggregate", "bulkWrite"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_record_is_read_again_with_linearizable_concern() {
    let Some(mongo) = settled().await else {
        return;
    };
    let store = mongo.current();
    let database = watched(&mongo).await;
    let nobody = OperationId::fresh();
    let before = mongo.proxy.round_trips();
    assert!(store.get(&key("a")).await.expect("a read").is_none());
    let polled = store.poll(&key("a"), nobody).await;
    assert!(polled.expect("a poll").is_none());
    let whole = store.operation(nobody).await;
    assert!(whole.expect("a read").is_none());
    assert_eq!(mongo.proxy.messages_since(before), ["find"; 6]);
    let sure = doc! { "command.readConcern.level": "linearizable", "command.limit": 1 };
    let profile = database.collection::<Bsons>("system.profile");
    let sure = profile.count_documents(sure).await.expect("a profile");
    assert_eq!(sure, 3);
}

/// Turns on the profiler for this database.
async fn watched(mongo: &Mongo) -> mongodb::Database {
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let database = client.expect("a client").database(&mongo.place.path);
    let watch = doc! { "profile": 2 };
    database.run_command(watch).await.expect("a profile");
    database
}

/// Queries that visited many more documents than they returned, sorted in memory, or scanned a collection.
async fn wasteful(database: &mongodb::Database) -> (usize, Vec<String>) {
    let profile = database.collection::<Bsons>("system.profile");
    let read = doc! { "op": { "$in": ["query", "command", "bulkWrite", "update"] } };
    let found = profile.find(read).await.expect("a profile");
    let found: Vec<Bsons> = found.try_collect().await.expect("a profile");
    let mut wasteful = Vec::new();
    for row in &found {
        let number = |name| row.get(name).and_then(Bson::as_i32).unwrap_or(0);
        let plan = row.get_str("planSummary").unwrap_or_default();
        let few = number("docsExamined") <= number("nreturned") + 12
            && number("keysExamined") <= number("nreturned") + 24;
        let sorts = row.get_bool("hasSortStage").is_ok_and(|it| it);
        if !few || sorts || plan.contains("COLLSCAN") {
            wasteful.push(format!("{row}"));
        }
    }
    (found.len(), wasteful)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hot_query_searches_an_index_and_sorts_nothing() {
    let Some(mongo) = settled().await else {
        return;
    };
    let store = mongo.current();
    let worker = worker(&*store).await;
    for batch in 0..8 {
        let mut commit = Commit::new();
        for n in 0..50 {
            let id = format!("{batch}-{n}");
            let lane = new_operation(&id, Start::Claimed(worker));
            let done = Next::Done(Outcome::Succeeded);
            let terms = vec![Term::new("plan", "small"), Term::new("name", id.as_str())];
            commit = commit.insert(key(&id), terms, bytes("body"));
            let ended = Commit::new().start(lane.clone());
            store.commit(&ended).await.expect("it");
            let ended = Commit::new().advance(lane.id, done, None, None);
            let ended = ended.write(Write::Unpin(lane.id));
            store.commit(&ended).await.expect("it");
        }
        store.commit(&commit).await.expect("documents");
    }
    let new = new_operation("7-7", Start::Ready(Due::Now));
    let id = new.id;
    store.commit(&Commit::new().start(new)).await.expect("it");
    let news = store.changes(&Cursor::default(), 10_000).await;
    let end = news.expect("changes").next;

    let database = watched(&mongo).await;
    let plans = List::term(&realm(), THING, "plan", b"small");
    let page = store.list(&plans, None, 5).await.expect("a page");
    let page = store.list(&plans, page.next.as_ref(), 5).await;
    assert_eq!(page.expect("a page").documents.len(), 5);
    let all = List::Prefix(Vec::new());
    store.list(&all, None, 5).await.expect("a page");
    for filter in [
        OperationFilter::All,
        OperationFilter::Unfinished,
        OperationFilter::Lane(key("7-7")),
    ] {
        let list = OperationList {
            filter,
            before: None,
            limit: 2,
        };
        store.operations(&list).await.expect("a list");
    }
    store.poll(&key("7-7"), id).await.expect("a poll");
    store.get(&key("7-7")).await.expect("a read");
    store.changes(&end, 10).await.expect("changes");
    let claimed = store.claim(worker, &[(WORK, 1)]).await;
    assert_eq!(claimed.expect("a claim").len(), 1);
    let renewed = store.renew(worker, Duration::from_secs(60)).await;
    renewed.expect("a lease");
    let sweep = Sweep::Operations {
        lanes: Vec::new(),
        outcome: None,
        finished_before: store.now().await.expect("the time"),
        limit: 3,
    };
    assert_eq!(store.sweep(&sweep).await.expect("a sweep"), 3);
    let (profiled, wasteful) = wasteful(&database).await;
    assert!(profiled > 10, "{profiled} commands were seen");
    assert!(wasteful.is_empty(), "{wasteful:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_of_an_unchanged_feed_is_one_round_trip() {
    let Some(mongo) = settled().await else {
        return;
    };
    let store = mongo.current();
    store.commit(&insert("a", 1)).await.expect("a commit");
    let start = Cursor::default();
    let first = store.changes(&start, 100).await.expect("changes");
    assert_eq!(first.changes.len(), 1);
    let before = mongo.proxy.round_trips();
    let again = store.changes(&start, 100).await.expect("changes");
    assert_eq!(again, first);
    assert_eq!(mongo.proxy.messages_since(before), ["aggregate"]);
}
