//! What an operator may order in a random life, and what must follow in the model's world.

use super::{Life, Ordered, There, World};
use crate::lifecycle::{Decision, Effect, Reply};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use sutler_journal::OperationId;

/// Gives an order and does what the rules ask for.
pub(super) fn obey<L: Life>(
    world: &mut World,
    at: L,
    order: Ordered,
    new: OperationId,
) -> Result<L, TestCaseError> {
    let running = world.executing.is_some();
    let there = world.state::<L>();
    let event = L::order(order, world.failed, new);
    let decided = at.clone().decide(event.clone());
    prop_assert_eq!(
        &decided,
        &at.clone().decide(event),
        "decided differently the second time"
    );
    let Ok(decision) = decided else {
        let nothing = matches!(there, "absent" | "gone");
        prop_assert!(
            !running || nothing,
            "what runs can always be told something"
        );
        prop_assert!(order != Ordered::Purge || there == "absent");
        return Ok(at);
    };
    check(world, &at, &decision, order, running)?;
    let purged = order == Ordered::Purge && decision.next != at;
    for effect in decision.effects {
        // What waits for its time, or runs, goes on; only what waits for another is let go.
        if matches!(effect, Effect::Wake(id) if world.waiting != Some(id)) {
            continue;
        }
        world.follow::<L>(effect, new)?;
    }
    if purged {
        prop_assert_eq!(world.executing, None, "purged, and it still runs");
        prop_assert_eq!(world.waiting, None, "purged, and it still waits");
        world.earlier.push(new);
        world.there = There::Nothing;
        world.doomed = false;
        world.failed = None;
    }
    Ok(decision.next)
}

fn check<L: Life>(
    world: &World,
    at: &L,
    decision: &Decision<L>,
    order: Ordered,
    running: bool,
) -> Result<(), TestCaseError> {
    let starts = decision
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::Start(..) | Effect::StartWaiting(..)));
    let ends = decision
        .effects
        .iter()
        .any(|effect| matches!(effect, Effect::End(_)));
    match order {
        Ordered::Retry => {
            prop_assert_eq!(starts, !running, "starts what runs, or leaves what rests");
            prop_assert!(!ends);
            prop_assert!(!running || decision.next == *at);
            prop_assert!(
                running || world.failed.is_some(),
                "does again what did not fail"
            );
        }
        Ordered::Cancel => prop_assert!(running && !ends),
        Ordered::Abandon => prop_assert!(running && ends && !starts),
        Ordered::Purge => prop_assert!(!starts && ends == running),
    }
    match decision.reply {
        Reply::Started(..) => prop_assert!(starts),
        Reply::Joined(_) => prop_assert!(running),
        Reply::AlreadyDone => prop_assert_eq!(&decision.next, at),
        Reply::Nothing => prop_assert_eq!(order, Ordered::Purge),
    }
    Ok(())
}
