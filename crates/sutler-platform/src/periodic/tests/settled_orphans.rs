//! A process that ends between the commit that settles an orphan and the notice to what waits for it.

use crate::lifecycle::orphan::{OperatorReason, OrphanState};
use crate::records::{ORPHAN, OrphanRecord, Record};
use crate::test_platform::{Endpoint, ScriptedAnswer, TestPlatform, bind_request};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_journal::{Commit, List, Next, Outcome};

/// The only row of the ledger is settled by a process that ends before it says so.
async fn settle_without_notice(platform: &TestPlatform, state: OrphanState) {
    let records = &platform.context.records;
    let list = List::Prefix(records.keys.all_of(ORPHAN));
    let page = records.list::<OrphanRecord>(&list, None, 10).await;
    let rows = page.expect("a page").items;
    let [(key, _)] = rows.as_slice() else {
        panic!("not one row: {}", rows.len());
    };
    let was = records.load::<OrphanRecord>(key).await.expect("it is read");
    let mut record = was.state.get().expect("a row").clone();
    let operation = record.operation.take().expect("it is being deleted");
    record.orphan.state = state;
    let documents = &records.documents;
    let commit = documents.put(Commit::new(), key, &was, &Record::of(record));
    let done = Next::Done(Outcome::Succeeded);
    let commit = commit.advance(operation, done, None, None);
    let written = documents.store.commit(&commit).await;
    written.expect("it is written");
}

async fn until_deleted_at(platform: &TestPlatform, endpoint: Endpoint) {
    let broker = &platform.broker;
    let is_sent = async || !broker.requests(Method::Delete, endpoint).is_empty();
    platform.until("the orphan is being deleted", is_sent).await;
}

/// Source: I-12, T-71.
#[tokio::test(start_paused = true)]
async fn a_create_is_repeated_though_the_notice_of_its_orphan_was_lost() {
    let platform = TestPlatform::start().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
    broker.plan(Method::Delete, Endpoint::Instance, ScriptedAnswer::Never);
    let key = platform.create_instance().await;
    until_deleted_at(&platform, Endpoint::Instance).await;
    let at = platform.context.records.now();
    settle_without_notice(&platform, OrphanState::Done { at }).await;
    let platform = platform.restart().await;
    platform
        .until_instance(&key, "it is live", |it| it.confirmed().is_some())
        .await;
    let creates = platform.broker.requests(Method::Put, Endpoint::Instance);
    assert_eq!(creates.len(), 2);
}

/// Source: I-12.
#[tokio::test(start_paused = true)]
async fn a_bind_is_repeated_though_the_notice_of_its_orphan_was_lost() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Binding, 500, json!({}));
    broker.plan(Method::Delete, Endpoint::Binding, ScriptedAnswer::Never);
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    until_deleted_at(&platform, Endpoint::Binding).await;
    let at = platform.context.records.now();
    settle_without_notice(&platform, OrphanState::Done { at }).await;
    let platform = platform.restart().await;
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
}

/// Source: T-72.
#[tokio::test(start_paused = true)]
async fn a_binding_whose_orphan_needs_an_operator_waits_no_more() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Binding, 500, json!({}));
    broker.plan(Method::Delete, Endpoint::Binding, ScriptedAnswer::Never);
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    until_deleted_at(&platform, Endpoint::Binding).await;
    let state = OrphanState::NeedsOperator {
        since: platform.context.records.now(),
        reason: OperatorReason::TriesUsedUp,
    };
    settle_without_notice(&platform, state).await;
    let platform = platform.restart().await;
    platform
        .until_binding(&key, "it waits no more", |it| !it.waits_for_orphan)
        .await;
    let binds = platform.broker.requests(Method::Put, Endpoint::Binding);
    assert_eq!(binds.len(), 1, "it is not bound again without a person");
}
