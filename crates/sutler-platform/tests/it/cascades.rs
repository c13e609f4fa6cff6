//! Deletes of instances with their bindings.

use crate::scripted_broker::Reply;
use crate::test_platform::{TestPlatform, accepted, name, namespace, operation_of, person, small};
use serde_json::json;
use std::time::Duration;
use sutler_journal::{State, Store as _};
use sutler_platform::commands::WantedBinding;
use sutler_platform::lifecycle::binding::{BindingReply, TargetResource, Transforms};
use sutler_platform::lifecycle::intent::IntentEnd;
use sutler_platform::spec::Parameters;

/// A delete behind a create that is being sent has no turn, and the end of a binding gives it none: only the operation of
/// the active intent can be claimed.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_binding_does_not_wake_a_delete_that_waits_for_a_create() {
    let test = TestPlatform::start().await;
    test.broker.answers([Reply::Held]);
    test.create(&small("db", json!({})), "carla").await;
    test.broker.until_requests(1).await;
    let (space, person) = (namespace(), person("carla"));
    let wanted = WantedBinding {
        name: name("db-app"),
        instance: name("db"),
        parameters: Parameters::new(Default::default()),
        parameter_sources: Vec::new(),
        target: TargetResource::Credentials,
        transforms: Transforms::default(),
        rotation: None,
        osb_id: None,
    };
    let platform = &test.platform;
    let bound = platform.create_binding(&space, &wanted, &person, None);
    bound.await.expect("accepted");
    let deleted = platform.delete_instance(&space, &wanted.instance, true, &person);
    let deleted = deleted.await.expect("accepted");
    let delete = operation_of(&deleted.instance, accepted(&deleted));

    let unbound = platform.delete_binding(&space, &wanted.name, &person);
    let unbound = unbound.await.expect("accepted");
    let BindingReply::Accepted(number) = unbound.reply else {
        panic!("not accepted: {:?}", unbound.reply);
    };
    let binding = &unbound.binding;
    let keys = &platform.records().keys;
    let lane = keys.binding(&binding.namespace, binding.instance, binding.uid);
    let operation = binding.intent(number).expect("it is pending").operation;
    let operation = sutler_journal::OperationId(operation.0);
    let within = Duration::from_secs(60);
    let end = platform.wait_for_end(&lane, operation, within).await;
    assert_eq!(end.expect("it is read"), Some(IntentEnd::Succeeded));

    let stored = test.store.operation(delete).await.expect("it is read");
    assert_eq!(stored.expect("it is there").row.state, State::Waiting);
    test.broker.release(201, "{}");
    assert_eq!(
        test.end_of(&deleted.instance, accepted(&deleted)).await,
        IntentEnd::Succeeded
    );
}
