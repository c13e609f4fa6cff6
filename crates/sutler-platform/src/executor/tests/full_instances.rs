//! Instances that hold as much as they may: what a broker answers can always be written down.

use crate::author::Author;
use crate::executor::decide_instance;
use crate::lifecycle::instance::{
    Event, Instance, InstanceCommand, InstanceDecision, InstanceEventError, PreparedTurn,
};
use crate::lifecycle::intent::IntentEnd;
use crate::records::Record;
use crate::spec::samples::parameters;
use crate::spec::{ParametersPatch, SpecPatch};
use crate::test_platform::{BROKER, Endpoint, TestPlatform, change_facts, person};
use crate::writes::{InstanceChange, instance_commit};
use serde_json::{Value, json};
use sutler_client::wire::Method;
use sutler_client::{Meaning, Success};
use sutler_journal::{BYTES_MAX, Commit, Key};
use sutler_records::LoadedDocument;

fn patch(key: &str, length: usize) -> SpecPatch {
    let Value::Object(object) = json!({key: "x".repeat(length)}) else {
        panic!("an object");
    };
    SpecPatch {
        parameters: ParametersPatch::new(object),
        ..SpecPatch::default()
    }
}

/// A person in groups whose names have so many characters together.
fn in_groups(name: &str, length: usize) -> Author {
    Author {
        groups: vec!["g".repeat(length)],
        ..person(name)
    }
}

fn patch_by(author: Author, patch: SpecPatch) -> InstanceCommand {
    let mut facts = change_facts("ann");
    facts.request.author = author;
    InstanceCommand::Patch(patch, facts)
}

async fn decided(
    platform: &TestPlatform,
    instance: Instance,
    event: Event,
) -> Result<InstanceDecision, InstanceEventError> {
    let context = platform.context.as_ref();
    let view = context.brokers.view(BROKER).await.expect("a broker");
    decide_instance(context, &view, Some(instance), event)
}

/// The commit of a decision about an instance as it is stored.
async fn commit_of(platform: &TestPlatform, key: &Key, decision: &InstanceDecision) -> Commit {
    let context = platform.context.as_ref();
    let view = context.brokers.view(BROKER).await.expect("a broker");
    let was: LoadedDocument<Record<Instance>> =
        context.records.load(key).await.expect("it is read");
    let change = InstanceChange {
        context,
        broker: &view,
        key,
        was: &was,
        decision,
        now: context.records.now(),
    };
    let commit = instance_commit(&change, None, |_| None).await;
    commit.expect("it is a commit")
}

/// Source: section 2.3: the commit that ends everything at once is the largest.
#[tokio::test(start_paused = true)]
async fn a_full_queue_ends_with_the_delete_in_one_commit() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    for number in 0..31 {
        let author = in_groups(&format!("p{number}"), 1_800);
        let change = patch_by(author, patch(&format!("k{number}"), 4_000));
        platform.ask_instance(&key, change).await;
    }
    let delete = InstanceCommand::Delete {
        by: person("ben"),
        cascade: false,
        bindings: Vec::new(),
    };
    let instance = platform.ask_instance(&key, delete).await.next;
    assert_eq!(instance.pending.len(), 32);
    let number = instance.deletion.as_ref().expect("a delete").number;
    let sent = Event::Turn(number, PreparedTurn::Ready);
    let sent = decided(&platform, instance, sent)
        .await
        .expect("it is sent");
    let gone = Event::Answer(number, Box::new(Meaning::Succeeded(Success::Gone)));
    let gone = decided(&platform, sent.next, gone)
        .await
        .expect("it is gone");
    assert!(gone.next.tombstone.is_some() && gone.next.pending.is_empty());
    let commit = commit_of(&platform, &key, &gone).await;
    commit.check().expect("at most 100 writes and 1 MB");
    assert!(commit.writes().len() > 60, "every operation ends");
}

#[tokio::test(start_paused = true)]
async fn what_leaves_no_room_for_answers_is_refused_when_it_is_asked_for() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let labels = SpecPatch {
        labels: [("team".to_owned(), Some("x".repeat(40_000)))].into(),
        ..SpecPatch::default()
    };
    for (refused, pointer) in [(patch("disk", 140_000), "/parameters"), (labels, "/labels")] {
        let event = Event::Command(Box::new(patch_by(person("ann"), refused)));
        let refusal = decided(&platform, instance.clone(), event).await;
        let Err(InstanceEventError::Violations(violations)) = refusal else {
            panic!("not refused: {refusal:?}");
        };
        assert_eq!(violations[0].pointer, pointer);
    }
    let command = patch_by(in_groups("ann", 70_000), patch("disk", 10));
    let refusal = decided(&platform, instance, Event::Command(Box::new(command))).await;
    assert_eq!(refusal, Err(InstanceEventError::TooManyPending));
}

/// Another version may have kept more than this one: the answer is written down even so, and nothing is sent twice.
#[tokio::test(start_paused = true)]
async fn an_answer_for_which_there_is_no_room_displaces_the_history() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    let context = platform.context.as_ref();
    let documents = &context.records.documents;
    let was: LoadedDocument<Record<Instance>> =
        context.records.load(&key).await.expect("it is read");
    let mut full = was.state.get().expect("it exists").clone();
    let stored = serde_json::to_vec(&full).expect("JSON").len();
    let mut spec = full.basis.spec().clone();
    spec.parameters = parameters(json!({"filler": "x".repeat(BYTES_MAX - stored - 20_000)}));
    full.managers.push_back(("a tool".to_owned(), spec));
    let commit = documents.put(Commit::new(), &key, &was, &Record::of(full));
    documents.store.commit(&commit).await.expect("it has room");
    let labels = json!({"metadata": {"labels": {"size": "y".repeat(25_000)}}});
    platform
        .broker
        .answer(Method::Patch, Endpoint::Instance, 200, labels);
    let change = patch_by(person("ann"), patch("disk", 10));
    platform.ask_instance(&key, change).await;
    platform
        .until_instance(&key, "the update has ended", |it| it.pending.is_empty())
        .await;
    let instance: Instance = platform.read(&key).await;
    let ended = instance.ended.back().expect("an ended intent");
    assert_eq!(ended.end, IntentEnd::Succeeded);
    assert!(instance.managers.is_empty());
    let sent = platform.broker.requests(Method::Patch, Endpoint::Instance);
    assert_eq!(sent.len(), 1);
}
