//! Steps of a commit for operations and their workers. Pure.
//!
//! Every change of an operation increases its `r`, which lets a claim detect changes. Claimable operations
//! have `o`, unfinished ones `u`, running ones `w`; these fields exist for indexes.

use super::update;
use crate::key_encoding;
use crate::rows::{
    self, Collection, DONE, READY, RUNNING, WAITING, binary, literal, moment, now, uuid,
};
use bytes::Bytes;
use mongodb::bson::{Bson, Document as Bsons, doc};
use sutler_journal::{
    Due, Fence, NewOperation, Next, Operation, OperationId, OperationRow, Start, State, WorkerId,
};

/// Matches a worker whose lease is valid, without changing it, so it never conflicts with a renewal.
pub(super) fn lives(worker: WorkerId) -> Bsons {
    let filter = doc! { "_id": uuid(worker.0), "$expr": { "$gt": ["$until", now()] } };
    update(
        Collection::Leases,
        filter,
        doc! { "$set": { "lease": true } },
    )
}

/// Matches an operation that runs under this claim.
pub(super) fn holds(id: OperationId, fence: Fence, worker: WorkerId) -> Bsons {
    let filter = doc! {
        "_id": uuid(id.0), "s": RUNNING, "f": rows::fence(fence), "w": uuid(worker.0),
    };
    update(Collection::Operations, filter, vec![set(Bsons::new())])
}

/// Inserts an operation under a free id.
pub(super) fn start(new: &NewOperation) -> Bsons {
    let (state, due, fence) = match new.start {
        Start::Waiting => (WAITING, now(), 0_i64),
        Start::Ready(due) => (READY, moment(due), 0),
        Start::Claimed(_) => (RUNNING, now(), 1),
    };
    let mut fields = doc! {
        "lane": literal(key_encoding::key(&new.lane)),
        "verb": literal(new.verb),
        "q": literal(new.queue.as_str()),
        "s": state, "due": due, "f": fence, "a": 1_i64, "k": 0_i64, "x": false, "p": true,
        "at": now(), "d": binary(&new.detail), "rq": binary(&new.request), "pr": binary(&[]),
        "u": true, "r": 1_i64,
    };
    match new.start {
        Start::Waiting => {}
        Start::Ready(_) => drop(fields.insert("o", true)),
        Start::Claimed(worker) => drop(fields.insert("w", uuid(worker.0))),
    }
    make(new.id, fields)
}

/// Inserts an operation of another store, without the worker it may have had there.
pub(super) fn import(operation: &Operation) -> Bsons {
    let row = &operation.row;
    let mut fields = imported(row);
    fields.insert("rq", binary(&operation.request));
    fields.insert("pr", binary(&operation.progress));
    match row.state {
        State::Waiting => {
            fields.extend(doc! { "s": WAITING, "due": row.due.0, "u": true });
        }
        State::Ready => {
            fields.extend(doc! { "s": READY, "due": row.due.0, "u": true, "o": true });
        }
        State::Running => {
            fields.extend(doc! { "s": READY, "due": now(), "u": true, "o": true });
        }
        State::Done(outcome) => {
            let end = row.finished.map_or_else(now, |it| Bson::Int64(it.0));
            let outcome = rows::outcome(outcome);
            fields.extend(doc! { "s": DONE, "due": row.due.0, "out": outcome, "end": end });
        }
    }
    if let (false, Some(finished)) = (matches!(row.state, State::Done(_)), row.finished) {
        fields.insert("end", finished.0);
    }
    make(row.id, fields)
}

fn imported(row: &OperationRow) -> Bsons {
    doc! {
        "lane": literal(key_encoding::key(&row.lane)),
        "verb": literal(row.verb.as_ref()),
        "q": literal(row.queue.as_str()),
        "f": rows::fence(row.fence),
        "a": i64::from(row.attempt),
        "k": i64::from(row.takeovers),
        "x": row.cancel,
        "p": row.pinned,
        "at": row.accepted.0,
        "d": binary(&row.detail),
        "r": 1_i64,
    }
}

/// Advances an operation that is not done.
pub(super) fn advance(
    id: OperationId,
    next: Next,
    (detail, progress): (Option<&Bytes>, Option<&Bytes>),
) -> Bsons {
    let ready = |due: Due| doc! { "s": READY, "due": moment(due), "o": true };
    let (mut fields, gone): (Bsons, &[&str]) = match next {
        Next::Same if progress.is_some() => (doc! { "k": 0_i64 }, &[]),
        Next::Same => (doc! { "k": "$k" }, &[]),
        Next::PutBack(due) => (ready(due), &["w"]),
        Next::Ready(due) => {
            let mut fields = ready(due);
            fields.insert("k", 0_i64);
            (fields, &["w"])
        }
        Next::Retry(due) => {
            let mut fields = ready(due);
            fields.insert("a", doc! { "$add": ["$a", 1_i64] });
            (fields, &["w"])
        }
        Next::Waiting => (doc! { "s": WAITING, "k": 0_i64 }, &["w", "o"]),
        Next::Done(outcome) => (
            doc! { "s": DONE, "out": rows::outcome(outcome), "end": now() },
            &["w", "o", "u"],
        ),
    };
    fields.extend(detail.map(|it| ("d".to_owned(), binary(it))));
    fields.extend(progress.map(|it| ("pr".to_owned(), binary(it))));
    let mut stages = vec![set(fields)];
    if !gone.is_empty() {
        stages.push(doc! { "$unset": gone });
    }
    update(Collection::Operations, unfinished(id), stages)
}

pub(super) fn cancel(id: OperationId) -> Bsons {
    change(unfinished(id), doc! { "x": true })
}

pub(super) fn unpin(id: OperationId) -> Bsons {
    change(doc! { "_id": uuid(id.0) }, doc! { "p": false })
}

/// Wakes an operation. One that is already due keeps its due time: frequent wakes must not starve it.
pub(super) fn wake(id: OperationId) -> Bsons {
    let waits = doc! { "$eq": ["$s", WAITING] };
    let due = doc! { "$switch": {
        "branches": [
            { "case": waits.clone(), "then": now() },
            { "case": { "$eq": ["$s", READY] }, "then": { "$min": ["$due", now()] } },
        ],
        "default": "$due",
    } };
    let fields = doc! {
        "s": { "$cond": [waits, READY, "$s"] },
        "due": due,
        "o": { "$cond": [{ "$lte": ["$s", READY] }, true, "$o"] },
    };
    change(unfinished(id), fields)
}

/// Matches an operation as it was read, and replaces its sealed fields.
pub(super) fn reseal(
    id: OperationId,
    read: &(Bytes, Bytes),
    (detail, request, progress): (&Bytes, &Bytes, &Bytes),
) -> Bsons {
    let filter = doc! { "_id": uuid(id.0), "d": binary(&read.0), "pr": binary(&read.1) };
    let fields = doc! { "d": binary(detail), "rq": binary(request), "pr": binary(progress) };
    change(filter, fields)
}

fn unfinished(id: OperationId) -> Bsons {
    doc! { "_id": uuid(id.0), "s": { "$lt": DONE } }
}

fn change(filter: Bsons, fields: Bsons) -> Bsons {
    update(Collection::Operations, filter, vec![set(fields)])
}

fn make(id: OperationId, fields: Bsons) -> Bsons {
    let filter = doc! { "_id": uuid(id.0), "s": { "$exists": false } };
    let mut step = update(
        Collection::Operations,
        filter,
        vec![doc! { "$set": fields }],
    );
    step.insert("upsert", true);
    step
}

/// Sets these fields, and increases the operation's own version.
fn set(mut fields: Bsons) -> Bsons {
    fields.insert("r", doc! { "$add": ["$r", 1_i64] });
    doc! { "$set": fields }
}
