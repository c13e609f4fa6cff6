//! Which ids are taken at a broker: from the accepted create until the broker has nothing under them.

use crate::lifecycle::instance::{Instance, InstanceCommand, InstancePhase};
use crate::records::{BROKER_BINDING_ID, BROKER_INSTANCE_ID, BrokerIdRecord};
use crate::test_platform::{BROKER, Endpoint, NAMESPACE, TestPlatform, bind_request, person};
use serde_json::json;
use sutler_client::wire::Method;
use sutler_journal::{Key, Kind, List, Write};

/// The ids that are taken, with who has them.
async fn taken(platform: &TestPlatform, kind: Kind) -> Vec<(Key, BrokerIdRecord)> {
    let records = &platform.context.records;
    let list = List::Prefix(records.keys.all_of(kind));
    let page = records.list::<BrokerIdRecord>(&list, None, 10).await;
    page.expect("a page").items
}

#[tokio::test(start_paused = true)]
async fn a_create_takes_its_id_with_one_write() {
    let platform = TestPlatform::start().await;
    let (_, commit) = platform.create_commit().await;
    let ids = platform.context.records.keys.all_of(BROKER_INSTANCE_ID);
    let is_id = |write: &&Write| match write {
        Write::Put { key, .. } => key.as_bytes().starts_with(&ids),
        _ => false,
    };
    assert_eq!(commit.writes().iter().filter(is_id).count(), 1);
    assert_eq!(commit.writes().len(), 4, "instance, name, id, operation");
}

#[tokio::test(start_paused = true)]
async fn an_id_is_free_when_its_instance_is_deleted() {
    let platform = TestPlatform::start().await;
    let (key, instance) = platform.live_instance().await;
    let keys = &platform.context.records.keys;
    let id = keys.broker_instance_id(BROKER, &instance.osb_id);
    let holder: BrokerIdRecord = platform.read(&id).await;
    assert_eq!(
        (holder.namespace.as_str(), holder.instance),
        (NAMESPACE, instance.uid)
    );
    let delete = InstanceCommand::Delete {
        by: person("ben"),
        cascade: false,
        bindings: Vec::new(),
    };
    platform.ask_instance(&key, delete).await;
    let is_gone = |it: &Instance| it.phase() == InstancePhase::Gone;
    platform.until_instance(&key, "it is gone", is_gone).await;
    assert!(taken(&platform, BROKER_INSTANCE_ID).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_takes_its_new_id_and_frees_the_former_one() {
    let platform = TestPlatform::start().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
    let (_, instance) = platform.live_instance().await;
    assert_eq!(instance.former_ids.len(), 1);
    let keys = &platform.context.records.keys;
    let id = keys.broker_instance_id(BROKER, &instance.osb_id);
    let taken = taken(&platform, BROKER_INSTANCE_ID).await;
    let taken: Vec<Key> = taken.into_iter().map(|(key, _)| key).collect();
    assert_eq!(taken, [id]);
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_binding_is_free_when_the_ledger_has_deleted_it() {
    let platform = TestPlatform::start().await;
    let (_, instance) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Binding, 500, json!({}));
    let key = platform.bind(bind_request(&instance, "app-db")).await;
    let before = taken(&platform, BROKER_BINDING_ID).await;
    assert_eq!(before.len(), 1);
    platform
        .until_binding(&key, "it is bound", |it| it.current().is_some())
        .await;
    let after = taken(&platform, BROKER_BINDING_ID).await;
    assert_eq!(after.len(), 1);
    assert_ne!(after, before);
}
