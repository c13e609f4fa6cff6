//! Events of instances that have no room for more.

use super::{InstanceChangeError, change_instance};
use crate::lifecycle::instance::Instance;
use crate::test_platform::{TestPlatform, large_change};

#[tokio::test(start_paused = true)]
async fn an_event_for_which_there_is_no_room_displaces_the_history() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    platform.fill_history(&key).await;
    let changed = change_instance(&platform.context, &key, |_, _| large_change(25_000)).await;
    assert_eq!(changed.expect("it is accepted").next.pending.len(), 1);
    let instance: Instance = platform.read(&key).await;
    assert!(instance.managers.is_empty() && instance.pending.len() == 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_does_not_fit_without_the_history_is_refused_and_no_fault_of_the_store() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    let filled = platform.fill(&key, |it, filler| {
        it.source = Some(crate::lifecycle::instance::Source {
            object: filler,
            uid: String::new(),
            generation: 1,
        });
    });
    filled.await;
    let refused = change_instance(&platform.context, &key, |_, _| large_change(25_000)).await;
    let refused = refused.expect_err("it has no room");
    assert!(
        matches!(refused, InstanceChangeError::TooLarge(_)),
        "{refused}"
    );
}
