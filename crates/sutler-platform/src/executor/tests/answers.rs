//! What becomes of an answer that was received: it is committed although the store fails for a moment, and the next poll
//! follows it after the wait of the schedule.

use crate::test_platform::{Endpoint, ScriptedAnswer, TestPlatform, TestSettings};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use sutler_client::wire::Method;
use sutler_journal::Store;
use sutler_journal::conformance::{Call, Intercept, InterceptingStore};
use tokio::time::Instant;

/// The commit of a failed create reads the ledger. Those reads fail for a while, those of the instance do not.
#[tokio::test(start_paused = true)]
async fn an_answer_is_committed_although_a_record_cannot_be_read_for_a_moment() {
    let reads = Arc::new(AtomicU32::new(0));
    let counted = reads.clone();
    let platform = TestPlatform::over(TestSettings::default(), move |store, broker| {
        let hook = move |call: &Call<'_>| match call {
            Call::Read("get") if !broker.targets().is_empty() => {
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                match number.is_multiple_of(2) && number <= 8 {
                    true => Intercept::Refuse,
                    false => Intercept::Pass,
                }
            }
            _ => Intercept::Pass,
        };
        let store: Arc<dyn Store> = Arc::new(InterceptingStore::new(store, hook));
        store
    })
    .await;
    platform
        .broker
        .answer(Method::Put, Endpoint::Instance, 500, json!({}));
    let (_, instance) = platform.live_instance().await;
    assert!(reads.load(Ordering::SeqCst) > 8, "no read has failed");
    let sent = platform.broker.requests(Method::Put, Endpoint::Instance);
    let ids: Vec<_> = sent.iter().filter_map(|it| it.path.last()).collect();
    assert_eq!(
        ids.len(),
        2,
        "the create that failed was sent again: {ids:?}"
    );
    assert_eq!(ids[1], instance.osb_id.as_str());
}

/// Source: section 2.4: the wait grows if a claim comes late, not if the answer does.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_to_a_poll_does_not_delay_the_next_poll() {
    let platform = TestPlatform::start().await;
    let broker = &platform.broker;
    broker.answer(Method::Put, Endpoint::Instance, 202, json!({}));
    let slow = Duration::from_secs(40);
    let in_progress = ScriptedAnswer::Late(slow, 200, json!({"state": "in progress"}));
    broker.plan(Method::Get, Endpoint::InstancePoll, in_progress);
    let key = platform.create_instance().await;
    let polled = async |count: usize| {
        let polls = async || {
            let sent = platform
                .broker
                .requests(Method::Get, Endpoint::InstancePoll);
            sent.len() >= count
        };
        platform.until("the broker is polled", polls).await;
        Instant::now()
    };
    let first = polled(1).await;
    let second = polled(2).await;
    let waited = second - first - slow;
    assert!(waited < slow, "{waited:?} after the answer");
    platform
        .until_instance(&key, "it is live", |it| it.confirmed().is_some())
        .await;
}
