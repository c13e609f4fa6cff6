//! What people do with an orphan: another round at once, or forget it.
//!
//! `decide.rs` calls these. Permissions and the audit are the caller's.

use crate::author::Author;
use crate::lifecycle::orphan::decide::{decided, notification};
use crate::lifecycle::orphan::{
    DeleteRound, DeleteStage, ForgetReason, Orphan, OrphanDecision, OrphanEffect, OrphanEventError,
    OrphanReply, OrphanResult, OrphanState,
};
use jiff::Timestamp;
use std::time::Duration;

pub(super) fn on_retry(
    mut row: Orphan,
    now: Timestamp,
) -> Result<OrphanDecision, OrphanEventError> {
    let (state, effect) = match row.state {
        OrphanState::InFlight {
            stage: DeleteStage::Sending | DeleteStage::Polling { .. },
            ..
        } => return Ok(decided(row, Vec::new(), OrphanReply::Joined)),
        OrphanState::Done { .. } => return Err(OrphanEventError::Done),
        OrphanState::InFlight {
            sent,
            stage: DeleteStage::Unknown { .. },
        } => {
            let stage = DeleteStage::Unknown { again: now };
            let state = OrphanState::InFlight { sent, stage };
            (state, OrphanEffect::AgainAfter(Duration::ZERO))
        }
        OrphanState::Due { .. } => (
            OrphanState::Due { at: now },
            OrphanEffect::AgainAfter(Duration::ZERO),
        ),
        OrphanState::NeedsOperator { .. }
        | OrphanState::Deferred
        | OrphanState::Forgotten { .. } => (
            OrphanState::Due { at: now },
            OrphanEffect::Start(Duration::ZERO),
        ),
    };
    row.state = state;
    row.round = DeleteRound::default();
    Ok(decided(row, vec![effect], OrphanReply::Accepted))
}

pub(super) fn on_forget(
    mut row: Orphan,
    by: Author,
    reason: ForgetReason,
    now: Timestamp,
) -> Result<OrphanDecision, OrphanEventError> {
    let mut effects = Vec::new();
    match row.state {
        OrphanState::InFlight {
            stage: DeleteStage::Sending,
            ..
        } => return Err(OrphanEventError::Sending),
        OrphanState::Done { .. } => return Err(OrphanEventError::Done),
        OrphanState::Forgotten { .. } => {
            return Ok(decided(row, effects, OrphanReply::Unchanged));
        }
        OrphanState::Due { .. }
        | OrphanState::InFlight {
            stage: DeleteStage::Unknown { .. } | DeleteStage::Polling { .. },
            ..
        } => {
            effects.push(OrphanEffect::End);
            effects.extend(notification(&row, OrphanResult::LeftToOperator));
        }
        OrphanState::Deferred => effects.extend(notification(&row, OrphanResult::LeftToOperator)),
        // It was said when the platform gave up.
        OrphanState::NeedsOperator { .. } => {}
    }
    row.state = OrphanState::Forgotten {
        at: now,
        by,
        reason,
    };
    Ok(decided(row, effects, OrphanReply::Accepted))
}
