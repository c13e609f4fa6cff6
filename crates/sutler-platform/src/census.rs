//! Samples how much there is: operations that have not ended, open rows of the orphan ledger, brokers by breaker.
//!
//! Every replica samples by itself, rarely, and for at most a hundredth of the time, whatever the store takes. Instances and
//! bindings are not counted: that would read all of them.

use crate::metrics;
use crate::platform::Platform;
use crate::platform_records::PlatformRecords;
use crate::records::{BROKER_STATE, ORPHAN, STATE_TERM};
use std::time::Duration;
use sutler_journal::{Kind, List, StoreError};
use tokio::time::Instant;

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(15);
/// Samples take at most this part of the time.
const PART: u32 = 100;
/// Documents that are counted of one list; there may be more.
const COUNTED_MAX: u64 = 10_000;
/// Documents per read.
const PAGE: usize = 500;
/// States of rows that are neither deleted nor forgotten.
const ORPHAN_STATES: [&str; 4] = ["due", "in_flight", "needs_operator", "deferred"];
/// States of breakers.
const BREAKERS: [&str; 3] = ["closed", "open", "paused"];

/// Samples until the engine stops.
pub(crate) async fn watch(platform: Platform) {
    loop {
        let begun = Instant::now();
        if let Err(error) = sample(platform.records()).await {
            tracing::debug!(%error, "what there is could not be counted");
        }
        let wait = begun.elapsed().saturating_mul(PART).max(EVERY);
        if platform.engine().is_stopping() {
            return;
        }
        tokio::select! {
            biased;
            () = platform.engine().stopping() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Counts, and sets the gauges.
async fn sample(records: &PlatformRecords) -> Result<(), StoreError> {
    let store = &records.documents.store;
    let stats = store.stats().await?;
    let (mut waiting, mut ready, mut running) = (0, 0, 0);
    for queue in &stats.queues {
        waiting += queue.waiting;
        ready += queue.ready;
        running += queue.running;
    }
    let oldest = stats.queues.iter().map(|queue| queue.oldest).min();
    let now = records.documents.clock.now();
    let age = oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
    metrics::set_operations(
        [("waiting", waiting), ("ready", ready), ("running", running)],
        age,
    );
    for state in ORPHAN_STATES {
        metrics::set_orphans(state, count(records, ORPHAN, state).await?);
    }
    for breaker in BREAKERS {
        metrics::set_brokers(breaker, count(records, BROKER_STATE, breaker).await?);
    }
    Ok(())
}

/// Documents of a kind in a state.
async fn count(
    records: &PlatformRecords,
    kind: Kind,
    state: &'static str,
) -> Result<u64, StoreError> {
    let list = List::term(records.keys.realm(), kind, STATE_TERM, state.as_bytes());
    let (mut counted, mut after) = (0, None);
    loop {
        let store = &records.documents.store;
        let page = store.list(&list, after.as_ref(), PAGE).await?;
        counted += page.documents.len() as u64;
        match page.next {
            Some(next) if counted < COUNTED_MAX => after = Some(next),
            Some(_) | None => return Ok(counted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sample;
    use crate::test_platform::{Endpoint, ScriptedAnswer, TestPlatform};
    use ::metrics::{
        Counter, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
        SharedString, Unit,
    };
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use sutler_client::wire::Method;

    /// The values of metrics by name and labels.
    #[derive(Clone, Default)]
    struct Values(Arc<Mutex<BTreeMap<String, f64>>>);

    struct Value(Values, String);

    impl Value {
        fn change(&self, change: impl FnOnce(&mut f64)) {
            let mut values = self.0.0.lock().expect("no panic");
            change(values.entry(self.1.clone()).or_default());
        }
    }

    impl ::metrics::CounterFn for Value {
        fn increment(&self, value: u64) {
            self.change(|it| *it += f64::from(u32::try_from(value).expect("a small number")));
        }

        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for Value {
        fn increment(&self, value: f64) {
            self.change(|it| *it += value);
        }

        fn decrement(&self, value: f64) {
            self.change(|it| *it -= value);
        }

        fn set(&self, value: f64) {
            self.change(|it| *it = value);
        }
    }

    impl HistogramFn for Value {
        fn record(&self, _: f64) {
            self.change(|it| *it += 1.0);
        }
    }

    impl Values {
        fn of(&self, key: &Key) -> Arc<Value> {
            let labels = key
                .labels()
                .map(|it| format!(" {}={}", it.key(), it.value()));
            let labels: String = labels.collect();
            Arc::new(Value(self.clone(), format!("{}{labels}", key.name())))
        }

        fn get(&self, name: &str) -> f64 {
            let values = self.0.lock().expect("no panic");
            let name = format!("sutler_platform_{name}");
            values.get(&name).copied().unwrap_or(-1.0)
        }
    }

    impl Recorder for Values {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.of(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.of(key))
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(self.of(key))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn exchanges_ends_and_what_there_is_are_measured() {
        let values = Values::default();
        let _guard = ::metrics::set_default_local_recorder(&values);
        let platform = TestPlatform::start().await;
        let broker = &platform.broker;
        broker.answer(Method::Put, Endpoint::Instance, 500, json!({}));
        broker.plan(Method::Delete, Endpoint::Instance, ScriptedAnswer::Never);
        platform.create_instance().await;
        platform
            .until("the orphan is being deleted", async || {
                !broker
                    .requests(Method::Delete, Endpoint::Instance)
                    .is_empty()
            })
            .await;
        sample(&platform.context.records).await.expect("it answers");
        let ended = "operation_duration_seconds verb=provision outcome=failed";
        for (name, expected) in [
            ("exchanges_total broker=broker outcome=answered", 1.0),
            (ended, 1.0),
            ("orphans state=in_flight", 1.0),
            ("orphans state=needs_operator", 0.0),
            ("operations_unfinished state=running", 1.0),
            ("brokers breaker=closed", 1.0),
            ("brokers breaker=open", 0.0),
        ] {
            assert!((values.get(name) - expected).abs() < 0.1, "{name}");
        }
        assert!(values.get("operations_oldest_age_seconds") >= 0.0);
    }
}
