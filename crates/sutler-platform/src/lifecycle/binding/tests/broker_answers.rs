//! Every answer of a broker that there is, through `classify` and the rules.

use super::fixtures::{NOW, context, details, moment, policy};
use super::steps::state;
use crate::lifecycle::binding::{BindingBody, BindingDecision, BindingEffect, Event, decide};
use crate::lifecycle::intent::{IntentEnd, IntentNumber, IntentState};
use crate::lifecycle::meaning_table::{AnsweredRequest, MeaningRow, rows};
use sutler_osb::OperationKind;

/// Source: P-050 to P-060, P-120 to P-154, D-35 to D-45.
/// Holds: P-054, P-055, P-056, P-058, P-060, P-102, P-122, P-130, P-131, P-132, P-133, P-134, P-135, P-136, P-137.
/// Holds: P-138, P-139, P-140, P-141, P-142, P-143, P-144, P-145, P-146, P-147, P-148, P-149, P-150, P-152, P-154.
#[test]
fn every_answer_and_every_poll_leads_where_its_meaning_says() {
    let mut complaints = Vec::new();
    for row in rows(&[OperationKind::Bind, OperationKind::Unbind]) {
        let verbs: &[&str] = match row.kind {
            OperationKind::Bind => &["create", "rotation"],
            _ => &["retirement", "delete"],
        };
        let doubts: &[bool] = match row.request {
            AnsweredRequest::Verb => &[row.is_in_doubt()],
            AnsweredRequest::Poll => &[false, true],
        };
        for verb in verbs {
            for in_doubt in doubts {
                let found = outcome(&row, verb, *in_doubt);
                if found != row.outcome() {
                    complaints.push(format!("{verb}, in doubt {in_doubt}, {row:?}: {found}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn outcome(row: &MeaningRow, verb: &str, in_doubt: bool) -> String {
    let mut it = match row.request {
        AnsweredRequest::Verb => state(&format!("{verb} sending")),
        AnsweredRequest::Poll => state(&format!("{verb} polling")),
    };
    let number = it.active().expect("an active intent");
    for intent in &mut it.pending {
        intent.in_doubt |= in_doubt && intent.number == number;
    }
    let meaning = row.classified(BindingBody::Fit(details("new")));
    let mut policy = policy();
    policy.may_name_application = false;
    let event = Event::Answer(number, Box::new(meaning));
    match decide(Some(it), event, &context(moment(NOW), &policy, 50)) {
        Ok(decision) => words(&decision, number).to_owned(),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

fn words(decision: &BindingDecision, number: IntentNumber) -> &'static str {
    let is_orphan = |it: &BindingEffect| matches!(it, BindingEffect::RecordOrphan(_));
    let failed = match decision.effects.iter().any(is_orphan) {
        true => "failed, orphan",
        false => "failed",
    };
    let next = &decision.next;
    let ended = next.ended.iter().find(|it| it.number == number);
    let state = next.intent(number).map(|it| &it.state);
    match (ended.map(|it| &it.end), state) {
        (Some(IntentEnd::Succeeded), _) => "succeeded",
        (Some(IntentEnd::Rejected(_)), _) => "rejected",
        (Some(IntentEnd::Failed(_)), _) => failed,
        (Some(_), _) => "ended otherwise",
        (None, Some(IntentState::Queued { .. })) => "queued",
        (None, Some(IntentState::Unknown { .. })) => "unknown",
        (None, Some(IntentState::Polling { .. })) => "polling",
        (None, _) => "somewhere else",
    }
}
