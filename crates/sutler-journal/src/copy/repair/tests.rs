//! Operations of two stores side by side, one difference at a time.

use super::{Repair, find_repair, rest_of_log};
use crate::clock::StoreTime;
use crate::commit::{NewOperation, Start, Write};
use crate::key::{Key, Kind, Realm};
use crate::operation::{Operation, OperationId, Outcome, Queue, State, WorkerId};
use bytes::Bytes;

fn operation(state: State) -> Operation {
    let realm = Realm::new("r").unwrap();
    let mut operation = Operation::just_claimed(&NewOperation {
        id: OperationId::fresh(),
        lane: Key::new(&realm, Kind::new("thing"), &["a"]).unwrap(),
        verb: "provision",
        queue: Queue::named("work"),
        start: Start::Claimed(WorkerId::fresh()),
        detail: Bytes::from_static(b"detail"),
        request: Bytes::from_static(b"request"),
    });
    operation.row.state = state;
    if let State::Done(_) = state {
        operation.row.finished = Some(StoreTime(5));
    }
    operation
}

const ENDED: State = State::Done(Outcome::Failed);

#[test]
fn the_same_needs_nothing() {
    for state in [State::Waiting, State::Ready, ENDED] {
        let source = operation(state);
        assert_eq!(find_repair(&source, &source.clone()), Repair::Nothing);
    }
}

#[test]
fn an_imported_running_operation_is_ready_and_due() {
    let source = operation(State::Running);
    let mut target = source.clone();
    target.row.state = State::Ready;
    target.row.due = StoreTime(77);
    assert_eq!(find_repair(&source, &target), Repair::Nothing);
    target.row.fence.0 += 1;
    assert_eq!(
        find_repair(&source, &target),
        Repair::Replace,
        "somebody claimed it"
    );
}

#[test]
fn an_ended_operation_is_unpinned_and_resealed_in_place() {
    let target = operation(ENDED);
    let id = target.row.id;
    let mut source = target.clone();
    source.row.pinned = false;
    assert_eq!(
        find_repair(&source, &target),
        Repair::Writes(vec![Write::Unpin(id)])
    );
    source.request = Bytes::from_static(b"anew");
    let Repair::Writes(writes) = find_repair(&source, &target) else {
        panic!("it can be mended");
    };
    assert!(matches!(
        writes[..],
        [Write::Reseal { .. }, Write::Unpin(_)]
    ));
}

#[test]
fn anything_else_is_replaced() {
    let target = operation(ENDED);
    let changes: [fn(&mut Operation); 5] = [
        |it| it.row.state = State::Done(Outcome::Succeeded),
        |it| it.row.attempt += 1,
        |it| it.row.finished = Some(StoreTime(6)),
        |it| it.row.state = State::Ready,
        |it| it.row.queue = Queue::named("other"),
    ];
    for change in changes {
        let mut source = target.clone();
        change(&mut source);
        assert_eq!(find_repair(&source, &target), Repair::Replace, "{source:?}");
    }
    let mut unpinned = target.clone();
    unpinned.row.pinned = false;
    assert_eq!(
        find_repair(&target, &unpinned),
        Repair::Replace,
        "no pin comes back"
    );
    let (waits, mut differs) = (operation(State::Waiting), operation(State::Waiting));
    differs.row.id = waits.row.id;
    differs.progress = Bytes::from_static(b"further");
    assert_eq!(
        find_repair(&differs, &waits),
        Repair::Replace,
        "it has not ended"
    );
}

#[test]
fn a_log_is_continued_or_is_another() {
    let log = |texts: &[&'static str]| -> Vec<Bytes> {
        texts
            .iter()
            .map(|text| Bytes::from_static(text.as_bytes()))
            .collect()
    };
    let source = log(&["a", "b", "c"]);
    assert_eq!(rest_of_log(&source, &log(&[])), Some(&source[..]));
    assert_eq!(rest_of_log(&source, &log(&["a", "b"])), Some(&source[2..]));
    assert_eq!(rest_of_log(&source, &source), Some(&[][..]));
    assert_eq!(rest_of_log(&source, &log(&["a", "x"])), None);
    assert_eq!(rest_of_log(&source, &log(&["a", "b", "c", "d"])), None);
}
