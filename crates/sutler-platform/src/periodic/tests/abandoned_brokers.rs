//! Brokers that are deregistered with everything that they have, by a process that ends after the mark.

use crate::brokers::BrokerViewError;
use crate::commands::{CommandError, retry_orphan as retry};
use crate::instance_events::abandonments::abandon_instance;
use crate::lifecycle::binding::Binding;
use crate::lifecycle::instance::{Instance, Tombstone};
use crate::lifecycle::intent::Abandonment;
use crate::lifecycle::orphan::{OperatorReason, OrphanEvent, OrphanEventError, OrphanState};
use crate::orphan_events::{OrphanChangeError, change_orphan};
use crate::records::{ORPHAN, OrphanRecord};
use crate::test_platform::{BROKER, Endpoint, ScriptedAnswer, TestPlatform, person};
use sutler_client::wire::Method;
use sutler_journal::List;

async fn rows(platform: &TestPlatform) -> Vec<OrphanRecord> {
    let records = &platform.context.records;
    let list = List::Prefix(records.keys.all_of(ORPHAN));
    let page = records.list::<OrphanRecord>(&list, None, 10).await;
    let rows = page.expect("a page").items.into_iter();
    rows.map(|(_, row)| row).collect()
}

/// Source: T-92, T-30.
#[tokio::test(start_paused = true)]
async fn a_marked_broker_is_given_up_by_another_process() {
    let platform = TestPlatform::start().await;
    let (key, instance) = platform.live_instance().await;
    let binding = platform.bound(&instance, "db-app").await;
    for endpoint in [Endpoint::Instance, Endpoint::Binding] {
        let broker = &platform.broker;
        broker.plan(Method::Delete, endpoint, ScriptedAnswer::Never);
    }
    let abandonment = Abandonment {
        by: person("olga"),
        reason: Some("it is gone".to_owned()),
    };
    let brokers = &platform.context.brokers;
    let marked = brokers.mark_abandoned(BROKER, &abandonment).await;
    marked.expect("it is marked");
    // Without it the mark would be taken back.
    let refused = brokers.deregister(BROKER).await;
    refused.expect_err("it has an instance");
    let platform = platform.restart().await;
    platform
        .until("the broker is removed", async || {
            let view = platform.context.brokers.view(BROKER).await;
            matches!(view, Err(BrokerViewError::NotRegistered(_)))
        })
        .await;
    let gone: Instance = platform.read(&key).await;
    assert!(matches!(gone.tombstone, Some(Tombstone::Abandoned(_))));
    assert_eq!(gone.abandoned, Some(abandonment));
    let gone: Binding = platform.read(&binding).await;
    assert!(matches!(gone.tombstone, Some(Tombstone::Abandoned(_))));
    let rows = rows(&platform).await;
    assert_eq!(rows.len(), 2, "the instance and the binding");
    for row in rows {
        let left = OperatorReason::BrokerGone;
        let state = &row.orphan.state;
        assert!(
            matches!(state, OrphanState::NeedsOperator { reason, .. } if *reason == left),
            "{state:?}"
        );
        assert_eq!(row.operation, None, "nothing can be sent");
        let again = change_orphan(&platform.context, &row.orphan.key, &OrphanEvent::BrokerGone);
        again.await.expect("nothing changes");
    }
}

/// Otherwise it would be due for ever: nothing serves the queue of a broker that is removed.
#[tokio::test(start_paused = true)]
async fn a_row_of_a_broker_that_is_being_deregistered_is_not_tried_again() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    let broker = &platform.broker;
    broker.plan(Method::Delete, Endpoint::Instance, ScriptedAnswer::Never);
    let abandonment = Abandonment::from(person("olga"));
    let context = &platform.context;
    let given_up = abandon_instance(context, &key, &abandonment).await;
    given_up.expect("it is given up");
    let row = rows(&platform).await.remove(0);
    let marked = context.brokers.mark_abandoned(BROKER, &abandonment).await;
    marked.expect("it is marked");
    let refused = retry(context, &row.orphan.key).await;
    let refused = refused.expect_err("it is deregistered");
    assert!(
        matches!(refused, CommandError::OrphanWithoutBroker),
        "{refused}"
    );
}

/// Source: T-73.
#[tokio::test(start_paused = true)]
async fn refusals_of_the_ledger_are_those_of_commands() {
    let platform = TestPlatform::start().await;
    let key = crate::lifecycle::orphan::OrphanKey {
        broker: BROKER,
        instance: "none".try_into().expect("an id"),
        binding: None,
    };
    let refused = change_orphan(&platform.context, &key, &OrphanEvent::Retry).await;
    let refused = refused.expect_err("there is no row");
    assert!(matches!(refused, OrphanChangeError::Refused(_)));
    let refused = CommandError::from(refused);
    assert!(matches!(
        refused,
        CommandError::Orphan(OrphanEventError::NotFound)
    ));
}
