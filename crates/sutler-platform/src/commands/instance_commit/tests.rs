//! Commands about an instance that has no room for more.

use super::{LoadedInstance, try_change};
use crate::test_platform::{BROKER, TestPlatform, large_change};

/// Otherwise an instance that is full could not be deleted.
#[tokio::test(start_paused = true)]
async fn a_command_for_which_there_is_no_room_displaces_the_history() {
    let platform = TestPlatform::start().await;
    let (key, _) = platform.live_instance().await;
    platform.engine.pause();
    platform.fill_history(&key).await;
    let context = &platform.context;
    let was = context.records.load(&key).await.expect("it is read");
    let instance = was.state.get().cloned();
    let loaded = LoadedInstance {
        key,
        was,
        instance: instance.expect("it exists"),
        view: context.brokers.view(BROKER).await.expect("a broker"),
    };
    let changed = try_change(context, &loaded, large_change(25_000), false).await;
    let changed = changed.expect("it has room").expect("it is written");
    assert_eq!(changed.instance.pending.len(), 1);
    assert!(changed.instance.managers.is_empty());
}
