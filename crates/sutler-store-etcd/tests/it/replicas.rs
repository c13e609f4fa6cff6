//! Several replicas on one store: they receive each other's wakeups, and start concurrently.

use crate::conformance::{Etcd, open};
use crate::fixture::{WORK, bytes, insert, key, new_operation, realm, until, worker};
use std::time::{Duration, Instant};
use sutler_journal::{
    Commit, CommitError, Cursor, Due, Kind, List, OperationFilter, OperationList, Start, Store,
    Term,
};
use sutler_store_etcd::{EtcdOpenError, EtcdStore};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_woken_for_operations_of_another() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let (one, other) = (etcd.current(), open(&etcd.settings).await);
    let mut times = Vec::new();
    for _ in 0..9 {
        let mut hints = other.hints();
        hints.mark_unchanged();
        let new = new_operation("a", Start::Ready(Due::Now));
        let began = Instant::now();
        let accepted = one.commit(&Commit::new().start(new)).await;
        accepted.expect("accepted");
        let received = tokio::time::timeout(Duration::from_secs(10), hints.changed()).await;
        received.expect("in time").expect("a hint");
        times.push(began.elapsed());
    }
    times.sort();
    eprintln!(
        "commit and hint on the other replica: median {:?}",
        times[4]
    );
    let worker = worker(&*other).await;
    let claimed = other.claim(worker, &[(WORK, 100)]).await.expect("a claim");
    assert_eq!(claimed.len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_the_feed_is_woken_for_every_commit_of_another() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let (one, other) = (etcd.current(), open(&etcd.settings).await);
    let mut hints = other.feed_hints();
    for n in 0..9 {
        hints.mark_unchanged();
        let commit = insert(&n.to_string(), 0);
        one.commit(&commit).await.expect("a commit");
        let received = tokio::time::timeout(Duration::from_secs(10), hints.changed()).await;
        received.expect("in time").expect("a hint");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_commit_is_visible_to_every_replica() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let (one, other) = (etcd.current(), open(&etcd.settings).await);
    let all = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 1000,
    };
    for n in 1..=40 {
        let commit = insert(&format!("{n}"), 1);
        let commit = commit.start(new_operation("a", Start::Waiting));
        one.commit(&commit).await.expect("a commit");
        assert_eq!(other.operations(&all).await.expect("a list").len(), n);
        assert_eq!(other.stats().await.expect("counts").accepted, n as u64);
        let read = other.get(&key(&format!("{n}"))).await.expect("a read");
        assert!(read.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_may_open_an_empty_store_at_once() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let mut settings = etcd.settings.clone();
    settings.prefix.push_str("-new");
    let opened = tokio::join!(open(&settings), open(&settings), open(&settings));
    let commit = insert("a", 0);
    opened.0.commit(&commit).await.expect("a commit");
    for store in [opened.1, opened.2] {
        let repeated = store.commit(&commit).await;
        repeated.expect("it is the same store");
        let again = store.commit(&insert("a", 0)).await;
        assert!(matches!(again, Err(CommitError::Stale(_))), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_format_is_refused_with_a_sentence() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let format = format!("{}\0F", etcd.settings.prefix);
    ask(&etcd, "/v3/kv/put", &[("key", &format), ("value", "2")]).await;
    let refused = EtcdStore::open_with(&etcd.settings).await;
    let error = refused.expect_err("it is newer");
    assert!(matches!(error, EtcdOpenError::Newer(2)));
    assert!(error.to_string().contains("run a newer sutler"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_isolated_during_a_compaction_reads_everything_again() {
    let Some(server) = crate::server::own() else {
        return;
    };
    let etcd = Etcd::on(&server).await;
    let isolated = etcd.current();
    let mut settings = etcd.settings.clone();
    settings.endpoints = etcd.behind();
    let direct = open(&settings).await;
    etcd.proxy.set_down(true);
    let gone = isolated.get(&key("a")).await;
    gone.expect_err("it is cut off");
    for n in 0..20 {
        direct
            .commit(&insert(&format!("{n}"), 1))
            .await
            .expect("it");
    }
    compact(&settings.endpoints[0]).await;
    etcd.proxy.set_down(false);
    until("the replica is back", || async {
        isolated.stats().await.is_ok() && isolated.commit(&insert("0", 0)).await.is_err()
    })
    .await;
    let all = List::Prefix(Vec::new());
    let page = isolated.list(&all, None, 100).await.expect("a page");
    assert_eq!(page.documents.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_store_can_be_read_though_others_had_etcd_compacted() {
    let Some(server) = crate::server::own() else {
        return;
    };
    let etcd = Etcd::on(&server).await;
    let store = etcd.current();
    let operation = new_operation("a", Start::Waiting);
    let commit = insert("a", 1).start(operation);
    store.commit(&commit).await.expect("a commit");
    for _ in 0..20 {
        ask(&etcd, "/v3/kv/put", &[("key", "foreign"), ("value", "x")]).await;
    }
    compact(&etcd.behind()[0]).await;
    let list = List::term(&realm(), Kind::new("thing"), "a", b"a");
    let page = store.list(&list, None, 10).await.expect("a page");
    assert_eq!(page.documents.len(), 1);
    let all = OperationList {
        filter: OperationFilter::All,
        before: None,
        limit: 10,
    };
    assert_eq!(store.operations(&all).await.expect("a list").len(), 1);
    let changes = store.changes(&Cursor::default(), 10).await;
    assert_eq!(changes.expect("the feed").changes.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_replica_has_the_same_view_as_the_first() {
    let Some(etcd) = Etcd::fresh().await else {
        return;
    };
    let one = etcd.current();
    for batch in 0..12 {
        let mut commit = Commit::new();
        for n in 0..100 {
            let id = format!("{batch:02}-{n:02}");
            let terms = vec![Term::new("all", "x")];
            commit = commit.insert(key(&id), terms, bytes(&id));
        }
        one.commit(&commit).await.expect("a commit");
    }
    let mut new = new_operation("a", Start::Waiting);
    new.request = vec![7; 5000].into();
    let id = new.id;
    one.commit(&Commit::new().start(new)).await.expect("it");
    let other = open(&etcd.settings).await;
    let list = List::term(&realm(), Kind::new("thing"), "all", b"x");
    for store in [one, other] {
        let page = store.list(&list, None, 2000).await.expect("a page");
        assert_eq!((page.documents.len(), page.next), (1200, None));
        let whole = store.operation(id).await.expect("a read").expect("it");
        assert_eq!(whole.request.len(), 5000);
        let stats = store.stats().await.expect("counts");
        assert_eq!((stats.accepted, stats.live), (1, 1));
    }
}

/// Sends a request to etcd directly; the values are encoded in base64.
async fn ask(etcd: &Etcd, path: &str, fields: &[(&str, &str)]) {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let body: serde_json::Map<String, serde_json::Value> = fields
        .iter()
        .map(|(name, text)| ((*name).to_owned(), encode(text).into()))
        .collect();
    let url = format!("http://{}{path}", etcd.settings.endpoints[0]);
    let answer = reqwest::Client::new().post(url).json(&body).send().await;
    assert!(answer.expect("an answer").status().is_success());
}

async fn compact(endpoint: &str) {
    let http = reqwest::Client::new();
    let post = async |path: &str, body: serde_json::Value| {
        let sent = http.post(format!("http://{endpoint}{path}")).json(&body);
        let answer = sent.send().await.expect("an answer");
        answer.json::<serde_json::Value>().await.expect("JSON")
    };
    let found = post("/v3/kv/range", serde_json::json!({"key": "YQ=="})).await;
    let revision = found["header"]["revision"].clone();
    post(
        "/v3/kv/compaction",
        serde_json::json!({"revision": revision, "physical": true}),
    )
    .await;
}
