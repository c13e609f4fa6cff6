//! Every answer of a broker that there is, through `classify` and the rules.

use super::lane::Lane;
use crate::lifecycle::instance::{Event, Exposure, Instance, InstanceEffect, ResourceDetails};
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::meaning_table::{AnsweredRequest, MeaningRow, rows};
use sutler_osb::OperationKind;

/// Source: P-050 to P-060, P-120 to P-154, D-35 to D-45.
/// Holds: P-054, P-055, P-056, P-058, P-060, P-072, P-095, P-122, P-130, P-131, P-132, P-133, P-134, P-135, P-136, P-137.
/// Holds: P-138, P-139, P-140, P-141, P-142, P-143, P-144, P-145, P-146, P-147, P-148, P-149, P-150, P-152, P-154.
#[test]
fn every_answer_and_every_poll_leads_where_its_meaning_says() {
    let kinds = [
        OperationKind::Provision,
        OperationKind::Update,
        OperationKind::Deprovision,
    ];
    let mut complaints = Vec::new();
    for row in rows(&kinds) {
        for in_doubt in doubts(&row) {
            let found = outcome(&row, in_doubt);
            if found != row.outcome() {
                let doubt = if in_doubt { " in doubt" } else { "" };
                complaints.push(format!("{row:?}{doubt}: {found}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A row about a request says whether that is in doubt; a poll may be of both.
fn doubts(row: &MeaningRow) -> Vec<bool> {
    match row.request {
        AnsweredRequest::Verb => vec![row.is_in_doubt()],
        AnsweredRequest::Poll => vec![false, true],
    }
}

fn outcome(row: &MeaningRow, in_doubt: bool) -> String {
    let verb = match row.kind {
        OperationKind::Provision => "create",
        OperationKind::Update => "update",
        _ => "delete",
    };
    let state = match row.request {
        AnsweredRequest::Verb => format!("{verb} sending"),
        AnsweredRequest::Poll => format!("{verb} polling"),
    };
    let mut lane = Lane::in_state(&state);
    let number = lane.instance.active().expect("an active intent");
    for intent in &mut lane.instance.pending {
        intent.in_doubt |= in_doubt && intent.number == number;
    }
    let meaning = row.classified(ResourceDetails::default());
    match lane.decide(Event::Answer(number, Box::new(meaning))) {
        Ok(decision) => words(&decision.next, &decision.effects, number),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

fn words(next: &Instance, effects: &[InstanceEffect], number: IntentNumber) -> String {
    let is_orphan = |it: &InstanceEffect| matches!(it, InstanceEffect::RecordOrphan(_));
    let failed = match &next.exposure {
        _ if effects.iter().any(is_orphan) => "failed, orphan",
        Exposure::Uncertain(_) => "failed, uncertain",
        _ => "failed",
    };
    let ended = next.ended.iter().find(|it| it.number == number);
    let state = next.intent(number).map(|it| &it.state);
    let word = match (ended.map(|it| &it.end), state) {
        (Some(IntentEnd::Succeeded), _) => "succeeded",
        (Some(IntentEnd::Rejected(_)), _) => "rejected",
        (Some(IntentEnd::Failed(_)), _) => failed,
        (Some(_), _) => "ended otherwise",
        (None, Some(IntentState::Queued { .. })) => "queued",
        (None, Some(IntentState::Unknown { .. })) => "unknown",
        (None, Some(IntentState::Polling { .. })) => "polling",
        (None, _) => "somewhere else",
    };
    word.to_owned()
}
