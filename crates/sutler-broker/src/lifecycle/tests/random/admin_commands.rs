//! Commands of operators in the random test, and their required effects on the model.

use super::{CommandKind, Model, ModelledResource, RealState};
use crate::lifecycle::{Decision, Effect, Reply};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use sutler_journal::OperationId;

/// Runs a command and applies its effects to the model.
pub(super) fn run_command<L: ModelledResource>(
    world: &mut Model,
    at: L,
    command: CommandKind,
    new: OperationId,
) -> Result<L, TestCaseError> {
    let running = world.executing.is_some();
    let there = world.state::<L>();
    let event = L::command(command, world.failed, new);
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
        prop_assert!(command != CommandKind::Purge || there == "absent");
        return Ok(at);
    };
    check(world, &at, &decision, command, running)?;
    let purged = command == CommandKind::Purge && decision.next != at;
    for effect in decision.effects {
        // Operations that run or wait for their time continue; only one that waits for another is woken.
        if matches!(effect, Effect::Wake(id) if world.waiting != Some(id)) {
            continue;
        }
        world.follow::<L>(effect, new)?;
    }
    if purged {
        prop_assert_eq!(world.executing, None, "purged, and it still runs");
        prop_assert_eq!(world.waiting, None, "purged, and it still waits");
        world.earlier.push(new);
        world.there = RealState::Nothing;
        world.doomed = false;
        world.failed = None;
    }
    Ok(decision.next.purged())
}

fn check<L: ModelledResource>(
    world: &Model,
    at: &L,
    decision: &Decision<L>,
    command: CommandKind,
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
    match command {
        CommandKind::Retry => {
            prop_assert_eq!(starts, !running, "starts what runs, or leaves what rests");
            prop_assert!(!ends);
            prop_assert!(!running || decision.next == *at);
            prop_assert!(
                running || world.failed.is_some(),
                "does again what did not fail"
            );
        }
        CommandKind::Cancel => prop_assert!(running && !ends),
        CommandKind::Abandon => prop_assert!(running && ends && !starts),
        CommandKind::Purge => prop_assert!(!starts && ends == running),
    }
    match decision.reply {
        Reply::Started(..) => prop_assert!(starts),
        Reply::Joined(_) => prop_assert!(running),
        Reply::AlreadyDone => prop_assert_eq!(&decision.next, at),
        Reply::Nothing => prop_assert_eq!(command, CommandKind::Purge),
    }
    Ok(())
}
