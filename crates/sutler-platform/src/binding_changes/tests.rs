//! Changes of bindings that have no room for more.

use super::change_binding;
use crate::commands::CommandError;
use crate::lifecycle::binding::{Binding, BindingCommand, Event, RotateRequest};
use crate::records::Record;
use crate::spec::samples::parameters;
use crate::test_platform::{TestPlatform, facts, person};
use serde_json::json;
use sutler_journal::{BYTES_MAX, Commit};
use sutler_records::LoadedDocument;

#[tokio::test(start_paused = true)]
async fn a_change_that_does_not_fit_is_refused_and_no_fault_of_the_store() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let key = platform.bound(&instance, "db-app").await;
    platform.engine.pause();
    let records = &platform.context.records;
    let was: LoadedDocument<Record<Binding>> = records.load(&key).await.expect("it is read");
    let mut full = was.state.get().expect("it exists").clone();
    let stored = serde_json::to_vec(&full).expect("JSON").len();
    let filler = "x".repeat(BYTES_MAX - stored - 20_000);
    full.spec.parameters = parameters(json!({"filler": filler}));
    let documents = &records.documents;
    let commit = documents.put(Commit::new(), &key, &was, &Record::of(full));
    documents.store.commit(&commit).await.expect("it has room");
    let mut by = person("ann");
    by.groups = vec!["g".repeat(25_000)];
    let rotate = BindingCommand::Rotate(RotateRequest {
        by,
        idempotency_key: None,
        facts: facts(),
    });
    let refused = change_binding(&platform.context, &key, Event::Command(Box::new(rotate))).await;
    let refused = CommandError::from(refused.expect_err("it has no room"));
    assert!(matches!(refused, CommandError::TooLarge(_)), "{refused}");
}
