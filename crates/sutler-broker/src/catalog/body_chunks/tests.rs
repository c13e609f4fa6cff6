//! Bodies built in many steps, compared with the same body written at once.

use super::{BodyChunks, CHUNK_BYTES, ChunkBuffer, ChunkWriter, ChunkedBody};
use bytes::Bytes;
use hyper::body::Body as _;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

/// Chunk size so small that a few offerings need many chunks.
const SMALL: usize = 100;

/// An offering of this length, unique by its number.
fn offering(number: usize, length: usize) -> String {
    format!("{{{number}:{}}}", "x".repeat(length))
}

fn chunks_of(chunk_bytes: usize, was: (&BodyChunks, &[String]), next: &[String]) -> BodyChunks {
    let (chunks, there) = was;
    let positions = |one: &String| there.iter().position(|it| it == one);
    let positions: Vec<Option<usize>> = next.iter().map(positions).collect();
    let mut writer = ChunkWriter::with_chunk_bytes(chunk_bytes, chunks);
    for (nth, one) in next.iter().enumerate() {
        if !writer.keep(&positions[nth..]) {
            writer.write(one.as_bytes());
        }
    }
    writer.finish()
}

fn written_at_once(chunk_bytes: usize, offerings: &[String]) -> BodyChunks {
    chunks_of(chunk_bytes, (&BodyChunks::default(), &[]), offerings)
}

fn pieces(content: ChunkedBody) -> Vec<Bytes> {
    match content {
        ChunkedBody::Whole(bytes) => vec![bytes],
        ChunkedBody::Parts { parts, .. } => parts.to_vec(),
    }
}

/// Checks the invariants of a body.
fn check(chunks: &BodyChunks, offerings: &[String]) {
    let answer = format!("{{\"services\":[{}]}}", offerings.join(","));
    assert_eq!(pieces(chunks.content()).concat(), answer.as_bytes());
    for (nth, one) in offerings.iter().enumerate() {
        assert_eq!(chunks.get(nth), Some(one.as_bytes()), "the {nth}th");
    }
    assert_eq!(chunks.get(offerings.len()), None);
    let all = &chunks.chunks;
    assert!(all.len() <= 2 * answer.len() / SMALL + 1);
    for (chunk, next) in all.iter().zip(all.iter().skip(1)) {
        let both = chunk.bytes.len() + next.bytes.len();
        assert!(both > SMALL, "two sheets with {both} bytes");
    }
    for chunk in all {
        let length = chunk.bytes.len();
        assert!(length <= SMALL || chunk.count == 1, "{length} on one sheet");
    }
}

/// A random change of a catalog.
#[derive(Clone, Debug)]
enum Step {
    Add(Index, Vec<usize>),
    Change(Index, usize),
    Remove(Index, usize),
    Move(Index, Index),
    TurnAround,
    Nothing,
}

impl Step {
    /// Applies the step. `number`: unused so far.
    fn done(&self, offerings: &mut Vec<String>, number: &mut usize) {
        let mut new = |length: &usize| {
            *number += 1;
            offering(*number, *length)
        };
        let some = !offerings.is_empty();
        match self {
            Self::Add(at, lengths) => {
                let at = at.index(offerings.len() + 1);
                offerings.splice(at..at, lengths.iter().map(new));
            }
            Self::Change(at, length) if some => *at.get_mut(offerings) = new(length),
            Self::Remove(at, count) if some => {
                let at = at.index(offerings.len());
                let end = offerings.len().min(at + count);
                offerings.drain(at..end);
            }
            Self::Move(from, to) if some => {
                let moved = offerings.remove(from.index(offerings.len()));
                offerings.insert(to.index(offerings.len() + 1), moved);
            }
            Self::TurnAround => offerings.reverse(),
            Self::Change(..) | Self::Remove(..) | Self::Move(..) | Self::Nothing => {}
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let lengths = || vec(0..150_usize, 1..20);
    prop_oneof![
        2 => (any::<Index>(), lengths()).prop_map(|(at, all)| Step::Add(at, all)),
        4 => (any::<Index>(), 0..150_usize).prop_map(|(at, length)| Step::Change(at, length)),
        4 => (any::<Index>(), 1..4_usize).prop_map(|(at, count)| Step::Remove(at, count)),
        3 => any::<(Index, Index)>().prop_map(|(from, to)| Step::Move(from, to)),
        1 => Just(Step::TurnAround),
        1 => Just(Step::Nothing),
    ]
}

proptest! {
    #[test]
    fn after_any_history_the_body_equals_one_written_at_once(
        first in vec(0..60_usize, 0..60),
        steps in vec(step(), 0..40),
    ) {
        let mut number = first.len();
        let mut there: Vec<String> = first
            .iter()
            .enumerate()
            .map(|(nth, length)| offering(nth, *length))
            .collect();
        let mut chunks = written_at_once(SMALL, &there);
        check(&chunks, &there);
        for step in steps {
            let mut next = there.clone();
            step.done(&mut next, &mut number);
            chunks = chunks_of(SMALL, (&chunks, &there), &next);
            there = next;
            check(&chunks, &there);
        }
    }
}

#[test]
fn unchanged_chunks_are_reused_and_not_copied() {
    let was: Vec<String> = (0..1000).map(|nth| offering(nth, 20)).collect();
    let chunks = written_at_once(SMALL, &was);
    let mut next = was.clone();
    next[500] = offering(1000, 33);
    next.remove(200);
    next.insert(800, offering(1001, 5));
    let changed = chunks_of(SMALL, (&chunks, &was), &next);
    let at = |chunks: &BodyChunks| -> Vec<*const u8> {
        let all = chunks.chunks.iter();
        all.map(|chunk| chunk.bytes.as_ptr()).collect()
    };
    let (before, after) = (at(&chunks), at(&changed));
    let kept = after.iter().filter(|it| before.contains(it)).count();
    assert!(kept + 4 >= before.len(), "{kept} of {}", before.len());
    check(&changed, &next);
}

#[test]
fn an_offering_longer_than_a_chunk_has_its_own_chunk() {
    let lengths = [10, 300, 10, 10].into_iter().enumerate();
    let offerings: Vec<String> = lengths.map(|(nth, length)| offering(nth, length)).collect();
    let chunks = written_at_once(SMALL, &offerings);
    let counts: Vec<usize> = chunks.chunks.iter().map(|chunk| chunk.count).collect();
    assert_eq!(counts, [1, 1, 2]);
    check(&chunks, &offerings);
}

#[test]
fn a_short_body_is_one_piece_and_a_long_one_has_its_exact_length() {
    let count_of = |offerings: &[String]| {
        let content = written_at_once(CHUNK_BYTES, offerings).content();
        let announced = content.size_hint().exact().expect("it is known");
        let pieces = pieces(content);
        assert_eq!(pieces.concat().len() as u64, announced);
        pieces.len()
    };
    assert_eq!(count_of(&[]), 1);
    assert_eq!(count_of(&[offering(1, 60_000)]), 1);
    let three = [1, 2, 3].map(|nth| offering(nth, 60_000));
    assert_eq!(count_of(&three), 5);
}

#[test]
fn buffered_offerings_are_adjacent_in_blocks_of_the_size_of_a_chunk() {
    let buffer = ChunkBuffer::default();
    let offerings: Vec<String> = [20_000, 30_000, 20_000, 100_000, 10]
        .into_iter()
        .enumerate()
        .map(|(nth, length)| offering(nth, length))
        .collect();
    let buffered: Vec<Bytes> = offerings
        .iter()
        .map(|it| buffer.write(it.as_bytes()))
        .collect();
    assert_eq!(buffered, offerings);
    let adjacent = |nth: usize| buffered[nth].as_ptr_range().end == buffered[nth + 1].as_ptr();
    assert!(adjacent(0), "two fit on the first leaf");
}
