//! Events of instances that have no room for more.

use super::{InstanceChangeError, change_instance};
use crate::lifecycle::instance::{Event, Instance, InstanceCommand};
use crate::records::Record;
use crate::spec::samples::parameters;
use crate::spec::{ParametersPatch, SpecPatch};
use crate::test_platform::{TestPlatform, change_facts};
use serde_json::{Map, json};
use sutler_journal::{BYTES_MAX, Commit, Key};
use sutler_records::LoadedDocument;

/// Adds so much to an instance that few bytes are left.
async fn fill(platform: &TestPlatform, key: &Key, add: impl Fn(&mut Instance, String)) {
    let records = &platform.context.records;
    let was: LoadedDocument<Record<Instance>> = records.load(key).await.expect("it is read");
    let mut full = was.state.get().expect("it exists").clone();
    let stored = serde_json::to_vec(&full).expect("JSON").len();
    add(&mut full, "x".repeat(BYTES_MAX - stored - 20_000));
    let documents = &records.documents;
    let commit = documents.put(Commit::new(), key, &was, &Record::of(full));
    documents.store.commit(&commit).await.expect("it has room");
}

/// A change of so many bytes.
fn change(length: usize) -> Event {
    let mut values = Map::new();
    values.insert("disk".to_owned(), json!("y".repeat(length)));
    let patch = SpecPatch {
        parameters: ParametersPatch::new(values),
        ..SpecPatch::default()
    };
    let command = InstanceCommand::Patch(patch, change_facts("ann"));
    Event::Command(Box::new(command))
}

#[tokio::test(start_paused = true)]
async fn an_event_for_which_there_is_no_room_displaces_the_history() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    fill(&platform, &key, |it, filler| {
        let mut spec = it.basis.spec().clone();
        spec.parameters = parameters(json!({"filler": filler}));
        it.managers.push_back(("a tool".to_owned(), spec));
    })
    .await;
    let changed = change_instance(&platform.context, &key, |_, _| change(25_000)).await;
    assert_eq!(changed.expect("it is accepted").next.pending.len(), 1);
    let instance: Instance = platform.read(&key).await;
    assert!(instance.managers.is_empty() && instance.pending.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_fit_without_the_history_is_refused_and_no_fault_of_the_store() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    fill(&platform, &key, |it, filler| {
        it.source = Some(crate::lifecycle::instance::Source {
            object: filler,
            uid: String::new(),
            generation: 1,
        });
    })
    .await;
    let refused = change_instance(&platform.context, &key, |_, _| change(25_000)).await;
    let refused = refused.expect_err("it has no room");
    assert!(
        matches!(refused, InstanceChangeError::TooLarge(_)),
        "{refused}"
    );
}
