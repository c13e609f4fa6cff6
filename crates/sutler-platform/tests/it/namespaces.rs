//! Namespaces whose deletion was interrupted.

use crate::test_platform::{TestPlatform, name, namespace};
use serde_json::json;
use sutler_journal::Commit;
use sutler_platform::commands::CommandError;
use sutler_platform::records::{NamespaceRecord, NamespaceState, Record};

/// The process that deleted it ended after the mark.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_empty_is_active_again_after_an_interrupted_delete() {
    let test = TestPlatform::start().await;
    test.live_instance("db", json!({})).await;
    let records = test.platform.records();
    let key = records.keys.namespace(&namespace());
    let was = records
        .load::<NamespaceRecord>(&key)
        .await
        .expect("it is read");
    let mut marked = was.state.get().expect("it exists").clone();
    marked.state = NamespaceState::Deleting(records.now());
    let documents = &records.documents;
    let mark = documents.put(Commit::new(), &key, &was, &Record::of(marked));
    documents.store.commit(&mark).await.expect("it is written");
    let refused = test.platform.delete_namespace(&name("app")).await;
    assert!(
        matches!(refused, Err(CommandError::NamespaceInUse(_))),
        "{refused:?}"
    );
    let namespace = test.platform.namespace_of(&namespace()).await;
    let namespace = namespace.expect("it exists");
    assert_eq!(namespace.state, NamespaceState::Active);
    test.live_instance("other", json!({})).await;
}
