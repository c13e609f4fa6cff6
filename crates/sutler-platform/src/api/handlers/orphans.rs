//! The orphan ledger: listed, shown, retried, forgotten.

use crate::api::answer::HandlerAnswer;
use crate::api::api_call::ApiCall;
use crate::api::listing;
use crate::api::problem::Problem;
use crate::api::request_inputs::Input;
use crate::api::views::{OrphanId, OrphanView};
use crate::lifecycle::orphan::{ForgetReason, OrphanReply};
use crate::records::{BROKER_TERM, ORPHAN, OrphanRecord, STATE_TERM};
use axum::http::StatusCode;
use sutler_journal::List;
use uuid::Uuid;

/// States that a list can select.
const STATES: [&str; 6] = [
    "due",
    "in_flight",
    "needs_operator",
    "deferred",
    "done",
    "forgotten",
];

pub(in crate::api) async fn list(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let records = call.platform.records();
    let state = call.inputs.filter(Input::State);
    if state.is_some_and(|state| !STATES.contains(&state)) {
        let detail = format!("`state` must be one of {}.", STATES.join(", "));
        return Err(Problem::invalid(detail));
    }
    let broker = call.inputs.filter(Input::Broker);
    let broker = broker
        .map(|text| Uuid::try_parse(text).map_err(|_| Problem::no_such("broker", text)))
        .transpose()?;
    let list = match (broker, state) {
        (Some(broker), _) => {
            let value = broker.to_string().into_bytes();
            listing::with_value(records, ORPHAN, BROKER_TERM, &value)
        }
        (None, Some(state)) => listing::with_value(records, ORPHAN, STATE_TERM, state.as_bytes()),
        (None, None) => List::Prefix(records.keys.all_of(ORPHAN)),
    };
    let show = |_: &_, record: &OrphanRecord| {
        let orphan = &record.orphan;
        let passes = state.is_none_or(|state| state == orphan.state.word());
        passes.then(|| OrphanView::of(orphan))
    };
    let page = listing::page(records, &list, call.inputs, show).await?;
    Ok(HandlerAnswer::json(StatusCode::OK, &page))
}

pub(in crate::api) async fn show(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let OrphanId(key) = id(call)?;
    let records = call.platform.records();
    let lane = records.keys.orphan(&key);
    let loaded = records.load::<OrphanRecord>(&lane).await?;
    let record = loaded.state.into_inner().ok_or_else(|| no_such(call))?;
    Ok(HandlerAnswer::json(
        StatusCode::OK,
        &OrphanView::of(&record.orphan),
    ))
}

pub(in crate::api) async fn retry(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    call.order()?;
    let OrphanId(key) = id(call)?;
    let outcome = call.platform.retry_orphan(&key).await?;
    let status = match outcome.reply {
        OrphanReply::Accepted | OrphanReply::Joined | OrphanReply::Noted => StatusCode::ACCEPTED,
        OrphanReply::Unchanged | OrphanReply::Nothing => StatusCode::OK,
    };
    let view = OrphanView::of(&outcome.orphan.orphan);
    Ok(HandlerAnswer::json(status, &view))
}

pub(in crate::api) async fn forget(call: &ApiCall<'_>) -> Result<HandlerAnswer, Problem> {
    let OrphanId(key) = id(call)?;
    let order = call.order()?;
    let reason = ForgetReason::try_from(order.required_reason()?.to_owned());
    let reason = reason.map_err(|error| Problem::invalid_field("/reason", error.to_string()))?;
    let outcome = call
        .platform
        .forget_orphan(&key, call.author, reason)
        .await?;
    let view = OrphanView::of(&outcome.orphan.orphan);
    Ok(HandlerAnswer::json(StatusCode::OK, &view))
}

fn id(call: &ApiCall<'_>) -> Result<OrphanId, Problem> {
    OrphanId::parse(call.names.get("id")).ok_or_else(|| no_such(call))
}

fn no_such(call: &ApiCall<'_>) -> Problem {
    Problem::no_such("orphan", call.names.get("id"))
}
