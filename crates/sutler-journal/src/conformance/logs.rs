//! Logs of runs: numbered chunks, bounded, outside commits.

use super::Candidate;
use super::fixture::{Fixture, bytes};
use crate::commit::Start;
use crate::operation::OperationId;
use crate::query::LogChunk;
use crate::store::{LOG_BYTES_MAX, LOG_CHUNK_BYTES_MAX};
use bytes::Bytes;

async fn append(fixture: &Fixture, id: OperationId, text: Bytes) {
    let appended = fixture.store.append_log(id, text).await;
    appended.expect("a log");
}

/// Chunks are numbered from 0 in their order, separately for each operation.
pub async fn a_log_is_read_in_order(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let (one, other) = (
        fixture.start(Start::Waiting).await,
        fixture.start(Start::Waiting).await,
    );
    for n in 0..20 {
        append(&fixture, one, bytes(&format!("one {n}"))).await;
        append(&fixture, other, bytes(&format!("other {n}"))).await;
    }
    let expected: Vec<LogChunk> = (0..20)
        .map(|number| LogChunk {
            number,
            text: bytes(&format!("one {number}")),
        })
        .collect();
    assert_eq!(fixture.log(one).await, expected);
}

/// A log can be read from any chunk on, in parts.
pub async fn a_log_is_read_from_a_chunk_on(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start(Start::Waiting).await;
    for n in 0..10 {
        append(&fixture, id, bytes(&format!("{n}"))).await;
    }
    for (from, limit, expected) in [
        (0, 3, vec![0, 1, 2]),
        (8, 5, vec![8, 9]),
        (10, 5, vec![]),
        (1000, 5, vec![]),
        (4, 1, vec![4]),
    ] {
        let read = fixture
            .store
            .read_log(id, from, limit)
            .await
            .expect("a log");
        let numbers: Vec<u32> = read.iter().map(|chunk| chunk.number).collect();
        assert_eq!(numbers, expected, "from {from}, at most {limit}");
    }
    append(&fixture, id, bytes("later")).await;
    let read = fixture.store.read_log(id, 10, 5).await.expect("a log");
    assert_eq!(read.len(), 1, "a reader goes on where it was");
}

/// Chunks and logs are limited in length; the beginning is kept.
pub async fn a_log_is_bounded(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start(Start::Waiting).await;
    append(&fixture, id, vec![b'a'; LOG_CHUNK_BYTES_MAX + 1].into()).await;
    for chunk in fixture.log(id).await {
        assert!(chunk.text.len() <= LOG_CHUNK_BYTES_MAX);
    }
    let full = fixture.start(Start::Waiting).await;
    let chunks = LOG_BYTES_MAX / LOG_CHUNK_BYTES_MAX;
    for n in 0..chunks + 3 {
        let text = vec![b'0' + (n % 64) as u8; LOG_CHUNK_BYTES_MAX];
        append(&fixture, full, text.into()).await;
    }
    let log = fixture.log(full).await;
    assert_eq!(log.len(), chunks);
    for (n, chunk) in log.iter().enumerate() {
        assert_eq!(chunk.text.len(), LOG_CHUNK_BYTES_MAX);
        assert_eq!(chunk.text[0], b'0' + (n % 64) as u8, "chunk {n}");
    }
}

/// A log of an operation that does not exist is dropped.
pub async fn a_log_needs_an_operation(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let absent_id = OperationId::fresh();
    append(&fixture, absent_id, bytes("text")).await;
    assert_eq!(fixture.log(absent_id).await, []);
}

/// A chunk is replaced only if it is as it was read. The rest of the log, its numbers and its operation stay,
/// and the log grows as before.
pub async fn a_chunk_is_resealed_if_it_is_as_read(candidate: &dyn Candidate) {
    let fixture = Fixture::of(candidate).await;
    let id = fixture.start(Start::Waiting).await;
    let before = fixture.operation(id).await;
    for n in 0..3 {
        append(&fixture, id, bytes(&format!("old {n}"))).await;
    }
    let chunk = |number: u32, text: &str| LogChunk {
        number,
        text: bytes(text),
    };
    let reseal = async |id, read: LogChunk, text: Bytes| {
        let resealed = fixture.store.reseal_log(id, &read, text).await;
        resealed.expect("a log")
    };
    let longer = Bytes::from(vec![b'n'; LOG_CHUNK_BYTES_MAX + 32]);
    assert!(reseal(id, chunk(1, "old 1"), longer.clone()).await);
    assert!(reseal(id, chunk(1, "old 1"), longer.clone()).await, "again");
    assert!(!reseal(id, chunk(2, "other"), bytes("new")).await);
    assert!(!reseal(id, chunk(3, "old 3"), bytes("new")).await);
    let absent_id = OperationId::fresh();
    assert!(!reseal(absent_id, chunk(0, "old 0"), bytes("new")).await);
    append(&fixture, id, bytes("later")).await;
    let expected = [
        chunk(0, "old 0"),
        LogChunk {
            number: 1,
            text: longer,
        },
        chunk(2, "old 2"),
        chunk(3, "later"),
    ];
    assert_eq!(fixture.log(id).await, expected);
    assert_eq!(fixture.operation(id).await, before);
}
