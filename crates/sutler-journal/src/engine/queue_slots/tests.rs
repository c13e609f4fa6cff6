//! Tests of the slots: the limits of a queue and of all, and how the room of a claim is shared.

use super::{FreedSlots, QueueSlots};
use crate::operation::Queue;
use proptest::collection::vec;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

const ONE: Queue = Queue::named("one");
const OTHER: Queue = Queue::named("other");

fn slots(total: usize, limits: &[(Queue, usize)]) -> QueueSlots {
    with_limits(QueueSlots::new(total, None), limits)
}

fn with_limits(mut slots: QueueSlots, limits: &[(Queue, usize)]) -> QueueSlots {
    for (queue, limit) in limits {
        slots.set_limit(queue, *limit);
    }
    slots
}

#[test]
fn a_slot_needs_a_place_in_its_queue_and_in_all() {
    let mut slots = slots(3, &[(ONE, 2), (OTHER, 2)]);
    assert!(slots.try_take(&ONE) && slots.try_take(&ONE));
    assert!(!slots.try_take(&ONE), "its queue is full");
    assert!(slots.try_take(&OTHER));
    assert!(!slots.try_take(&OTHER), "all queues together are full");
    assert_eq!((slots.free(&OTHER), slots.room()), (1, 0));
    assert!(!slots.try_take(&Queue::named("unknown")));
}

#[test]
fn a_slot_that_is_given_back_says_what_was_full() {
    let mut slots = slots(3, &[(ONE, 2), (OTHER, 2)]);
    for queue in [ONE, ONE, OTHER] {
        slots.take(&queue);
    }
    let freed = |of_queue, of_all| FreedSlots { of_queue, of_all };
    assert_eq!(slots.give_back(&OTHER), freed(false, true));
    assert_eq!(slots.give_back(&ONE), freed(true, false));
    assert_eq!(slots.give_back(&ONE), freed(false, false));
}

#[test]
fn what_is_over_a_limit_must_end_before_a_slot_is_free() {
    let mut slots = slots(10, &[(ONE, 3)]);
    for _ in 0..3 {
        slots.take(&ONE);
    }
    slots.set_limit(&ONE, 1);
    for free in [0, 0, 1] {
        let freed = slots.give_back(&ONE);
        assert_eq!((slots.free(&ONE), freed.of_queue), (free, free > 0));
    }
}

#[test]
fn a_queue_that_is_forgotten_counts_until_its_operations_have_ended() {
    let mut slots = slots(2, &[(ONE, 2)]);
    slots.take(&ONE);
    slots.forget(&ONE);
    assert_eq!((slots.free(&ONE), slots.room()), (0, 1));
    slots.set_limit(&ONE, 2);
    assert_eq!(slots.free(&ONE), 1);
    slots.forget(&ONE);
    assert!(!slots.give_back(&ONE).of_queue);
    assert_eq!(slots.room(), 2);
}

#[test]
fn the_slots_of_a_reserved_queue_are_taken_by_no_other() {
    let empty = QueueSlots::new(5, Some(ONE));
    let mut slots = with_limits(empty, &[(ONE, 2), (OTHER, 100)]);
    assert_eq!(slots.room(), 3);
    let shares = slots.shares(vec![OTHER, ONE]);
    assert_eq!(shares, [(OTHER, 3), (ONE, 2)]);
    for _ in 0..3 {
        assert!(slots.try_take(&OTHER));
    }
    assert!(!slots.try_take(&OTHER), "the others are kept");
    assert_eq!(slots.reserved_with_slot(), Some(&ONE));
    assert!(slots.try_take(&ONE) && slots.try_take(&ONE));
    assert!(!slots.try_take(&ONE), "its own limit");
    assert_eq!((slots.reserved_with_slot(), slots.room()), (None, 0));
    assert!(!slots.give_back(&ONE).of_all);
    assert!(!slots.try_take(&OTHER), "it is kept again");
    assert!(slots.give_back(&OTHER).of_all);
}

proptest! {
    #[test]
    fn the_room_of_a_claim_is_used_and_shared_equally(
        free in vec(1_usize..20, 1..64),
        room in 64_usize..600,
    ) {
        let queues: Vec<Queue> = (0..free.len()).map(|n| Queue::of(format!("{n}"))).collect();
        let mut slots = QueueSlots::new(room, None);
        for (queue, free) in queues.iter().zip(&free) {
            slots.set_limit(queue, *free);
        }
        let shares = slots.shares(queues.clone());
        let sum: usize = shares.iter().map(|(_, share)| share).sum();
        prop_assert_eq!(sum, room.min(free.iter().sum()));
        let most = shares.iter().map(|(_, share)| *share).max().unwrap_or(0);
        for ((queue, share), (asked, free)) in shares.iter().zip(queues.iter().zip(&free)) {
            prop_assert_eq!(queue, asked);
            prop_assert!((1..=*free).contains(share));
            prop_assert!(share == free || share + 1 >= most, "{} of {}, others {}", share, free, most);
        }
    }
}
