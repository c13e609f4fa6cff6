//! Operations that may be claimed at once are looked for at once, however many brokers there are.

use crate::brokers::QueueControl;
use crate::lifecycle::instance::InstanceCommand;
use crate::records::broker_queue;
use crate::test_platform::{BROKER, TestPlatform, bind_request, person};
use std::sync::{Arc, Mutex, PoisonError};
use sutler_journal::Queue;

/// Queues that were looked at.
#[derive(Default)]
struct RecordedLooks(Mutex<Vec<Queue>>);

impl RecordedLooks {
    fn take(&self) -> Vec<Queue> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *looks)
    }
}

impl QueueControl for RecordedLooks {
    fn set_queue(&self, _: &Queue, _: usize) {}

    fn forget_queue(&self, _: &Queue) {}

    fn look_now(&self, queue: &Queue) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.push(queue.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_an_accepted_change_is_looked_at_at_once() {
    let platform = TestPlatform::start().await;
    let looks = Arc::new(RecordedLooks::default());
    platform.context.brokers.attach(looks.clone());
    let (key, instance) = platform.live_instance().await;
    looks.take();
    platform.bind(bind_request(&instance, "app-db")).await;
    assert_eq!(looks.take(), [broker_queue(BROKER)]);
    let delete = InstanceCommand::Delete {
        by: person("ben"),
        cascade: true,
        bindings: Vec::new(),
    };
    platform.ask_instance(&key, delete).await;
    assert!(looks.take().contains(&broker_queue(BROKER)));
}
