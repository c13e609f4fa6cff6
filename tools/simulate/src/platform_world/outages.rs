//! The broker is away for a while, and its catalog changes: until the part with faults is over.

use super::broker_link::BrokerCondition;
use super::replicas::PlatformReplicas;
use super::setup::BROKER;
use std::sync::Arc;
use std::time::Duration;

/// Longest outage. The breaker opens within it, and probes come less and less often.
const OUTAGE_WITHIN: Duration = Duration::from_secs(60);

/// Takes the broker away now and then, until it is aborted.
pub(crate) async fn interrupt_broker(replicas: Arc<PlatformReplicas>) {
    let Some(pause) = replicas.scenario.outage_pause else {
        return;
    };
    let choices = replicas.network.choices.clone();
    let conditions = [
        BrokerCondition::Unreachable,
        BrokerCondition::Unauthorized,
        BrokerCondition::Silent,
    ];
    loop {
        tokio::time::sleep(choices.between(Duration::ZERO, pause * 2)).await;
        replicas.broker.set_condition(choices.pick(&conditions));
        tokio::time::sleep(choices.between(Duration::from_secs(1), OUTAGE_WITHIN)).await;
        replicas.broker.set_condition(BrokerCondition::Up);
    }
}

/// Changes the catalog now and then, and most often has it read, until it is aborted.
pub(crate) async fn change_catalog(replicas: Arc<PlatformReplicas>) {
    let Some(pause) = replicas.scenario.catalog_pause else {
        return;
    };
    let choices = replicas.network.choices.clone();
    loop {
        tokio::time::sleep(choices.between(Duration::ZERO, pause * 2)).await;
        let has_large = choices.percent(70);
        let offered = replicas.broker.side.offer(|offered| {
            offered.edition += 1;
            offered.has_large = has_large;
        });
        let history = &replicas.network.history;
        history.record("catalog", || format!("the broker offers {offered:?}"));
        let Some(process) = replicas.process(choices.index(replicas.count())) else {
            continue;
        };
        if choices.percent(80) {
            let requested = tokio::select! {
                biased;
                () = process.link.died() => continue,
                requested = process.platform.brokers().sync(BROKER) => requested,
            };
            history.record("sync", || format!("a sync is requested: {requested:?}"));
        }
    }
}
