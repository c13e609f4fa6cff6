//! Checks whether one instance with its bindings behaved as if requests came one after the other.
//!
//! The search of Wing and Gong, with a memory of visited states: it searches for a moment for each
//! request, between its start and its response, such that the model (`sequential_model.rs`) gives the
//! observed responses. A request of unknown outcome may have acted at any moment after its
//! start, or never. Pure; tests are in `linearizability/tests.rs`.

#[cfg(test)]
mod tests;

use super::history::{Call, ObservedReply, RecordedCall};
use super::operation_ends::{Names, OperationEnds};
use super::sequential_model::{ModelRequest, ObservedState, Reply, Tree};
use crate::platform::RequestMode;
use crate::violation::{CheckResult, Violation};
use std::collections::HashSet;

/// Maximum number of states that the search visits before it gives up.
const STATES_MAX: usize = 3_000_000;

/// An event that happens at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    Did(ModelRequest, Reply),
    Saw(ObservedState),
}

/// An event to place in the order.
#[derive(Clone, Copy, Debug)]
struct Event {
    began: u64,
    /// `u64::MAX` for an event that may also not have happened.
    ended: u64,
    /// Event that must come before this one.
    after: Option<usize>,
    what: EventKind,
    /// Index of its request.
    recorded: usize,
}

impl Event {
    fn is_optional(&self) -> bool {
        self.ended == u64::MAX
    }
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// An order exists.
    Explained,
    /// The search took too long.
    Undecided,
}

/// Searches for an order that explains the requests about one instance.
///
/// # Errors
/// There is no such order: names the first unexplained request and the state.
pub fn explain(
    recorded: &[RecordedCall],
    names: &mut Names,
    facts: &OperationEnds,
) -> CheckResult<SearchEnd> {
    let mut order: Vec<usize> = (0..recorded.len()).collect();
    order.sort_by_key(|&n| recorded[n].began);
    let mut events = Vec::new();
    for n in order {
        events_of(n, &recorded[n], names, &mut events)?;
    }
    let search = Search {
        events: &events,
        facts,
    };
    search.run().map_err(|deepest| {
        let (event, tree) = *deepest;
        let failed = &recorded[event.recorded];
        Violation::new(format!(
            "{}: {:?} ({:?}) was answered {:?} by replica {}, which no order of requests explains; \
             as far as one was found it was {tree:?}\n{}",
            failed.instance,
            failed.call,
            failed.mode,
            failed.observed,
            failed.replica,
            lines_of(recorded)
        ))
    })
}

/// All requests about an instance, one on a line, with the microseconds of their begin and end.
fn lines_of(recorded: &[RecordedCall]) -> String {
    let mut order: Vec<&RecordedCall> = recorded.iter().collect();
    order.sort_by_key(|it| it.began);
    let line = |it: &RecordedCall| {
        format!(
            "  {:>9} to {:>9}: {:?} ({:?}) at replica {}: {:?}\n",
            it.began, it.ended, it.call, it.mode, it.replica, it.observed
        )
    };
    order.into_iter().map(line).collect()
}

/// Events of one request. A request that waited for its end has two.
fn events_of(
    n: usize,
    recorded: &RecordedCall,
    names: &mut Names,
    events: &mut Vec<Event>,
) -> CheckResult<()> {
    let request = model_request(&recorded.call, names);
    let reads = recorded.call.verb().is_none();
    let mut event = Event {
        began: recorded.began,
        ended: recorded.ended,
        after: None,
        what: EventKind::Did(request, Reply::Began),
        recorded: n,
    };
    let reply = match (&recorded.observed, recorded.mode) {
        (ObservedReply::Unknown, _) if reads => return Ok(()),
        (ObservedReply::Unknown, _) => {
            event.ended = u64::MAX;
            // If any of several equal optional events happened, the first one may stand for it.
            let same = |it: &Event| it.is_optional() && it.what == event.what;
            event.after = events.iter().rposition(same);
            Reply::Began
        }
        (ObservedReply::Accepted(operation), RequestMode::Async) => {
            Reply::Accepted(names.of(operation))
        }
        (ObservedReply::Done(_), RequestMode::Async) => Reply::Already,
        (ObservedReply::Done(_), RequestMode::Sync) => Reply::Waited,
        (ObservedReply::Found(content), _) => {
            Reply::Found(content_of(&recorded.call, content, names))
        }
        (ObservedReply::Polled(progress), _) => Reply::Polled(*progress),
        (ObservedReply::Missing, _) => Reply::Missing,
        (ObservedReply::Gone, _) => Reply::Gone,
        (ObservedReply::Conflict, _) => Reply::Conflict,
        (ObservedReply::Busy, _) => Reply::Busy,
        (ObservedReply::Accepted(_) | ObservedReply::Unexpected(_), _) => {
            let sentence = format!(
                "{}: {:?} ({:?}) was answered {:?} by replica {}",
                recorded.instance,
                recorded.call,
                recorded.mode,
                recorded.observed,
                recorded.replica
            );
            return Err(Violation::new(sentence));
        }
    };
    event.what = EventKind::Did(request, reply);
    events.push(event);
    if reply == Reply::Waited
        && let Some(sight) = sight_of(&recorded.call, &recorded.observed, names)
    {
        event.after = Some(events.len() - 1);
        event.what = EventKind::Saw(sight);
        events.push(event);
    }
    Ok(())
}

fn model_request(call: &Call, names: &mut Names) -> ModelRequest {
    match call {
        Call::Provision(spec) => ModelRequest::Provision(*spec),
        Call::Update(size) => ModelRequest::Update(*size),
        Call::Deprovision => ModelRequest::Deprovision,
        Call::Bind(n) => ModelRequest::Bind(*n),
        Call::Unbind(n) => ModelRequest::Unbind(*n),
        Call::Fetch => ModelRequest::Fetch,
        Call::FetchBinding(n) => ModelRequest::FetchBinding(*n),
        Call::Poll(of, operation) => ModelRequest::Poll(*of, names.of(operation)),
    }
}

fn content_of(call: &Call, content: &str, names: &mut Names) -> u32 {
    match call {
        // A size is a number; any other text is not a requested size.
        Call::Fetch => content.parse().unwrap_or(u32::MAX),
        _ => names.of(content),
    }
}

/// State when a waiting request was answered.
fn sight_of(call: &Call, observed: &ObservedReply, names: &mut Names) -> Option<ObservedState> {
    match (call, observed) {
        (Call::Provision(spec), _) => Some(ObservedState::Live(*spec)),
        (Call::Update(size), _) => Some(ObservedState::Sized(*size)),
        (Call::Deprovision, _) => Some(ObservedState::Absent),
        (Call::Bind(n), ObservedReply::Done(Some(secret))) => {
            Some(ObservedState::Bound(*n, names.of(secret)))
        }
        (Call::Unbind(n), _) => Some(ObservedState::Unbound(*n)),
        _ => None,
    }
}

/// Events that are already placed.
type DoneSet = Box<[u64]>;

struct Search<'s> {
    events: &'s [Event],
    facts: &'s OperationEnds,
}

impl Search<'_> {
    fn run(&self) -> Result<SearchEnd, Box<(Event, Tree)>> {
        let words = self.events.len().div_ceil(64).max(1);
        let start = (vec![0_u64; words].into_boxed_slice(), Tree::default());
        let mut visited: HashSet<(DoneSet, Tree)> = HashSet::from([start.clone()]);
        let mut stack = vec![start];
        let mut deepest: Option<(usize, Event, Tree)> = None;
        while let Some((done, tree)) = stack.pop() {
            let Some(next) = self.next_to_end(&done) else {
                return Ok(SearchEnd::Explained);
            };
            let depth = done.iter().map(|it| it.count_ones() as usize).sum();
            if deepest.is_none_or(|(most, ..)| depth >= most) {
                deepest = Some((depth, *next, tree));
            }
            if visited.len() > STATES_MAX {
                return Ok(SearchEnd::Undecided);
            }
            for place in self.steps(&done, tree, next.ended) {
                if visited.insert(place.clone()) {
                    stack.push(place);
                }
            }
        }
        let (_, event, tree) = deepest.expect("the beginning was looked at");
        Err(Box::new((event, tree)))
    }

    /// Of the mandatory events not placed yet, the one with the earliest response.
    fn next_to_end(&self, done: &DoneSet) -> Option<&Event> {
        let open = self.events.iter().enumerate();
        open.filter(|(n, event)| !has(done, *n) && !event.is_optional())
            .map(|(_, event)| event)
            .min_by_key(|event| event.ended)
    }

    /// Next candidates; the most likely is last, and taken first.
    fn steps(&self, done: &DoneSet, tree: Tree, limit: u64) -> Vec<(DoneSet, Tree)> {
        let moves = tree.moves(self.facts).into_iter();
        let mut steps: Vec<(DoneSet, Tree)> = moves.map(|it| (done.clone(), it)).collect();
        let mut acts: Vec<(u64, DoneSet, Tree)> = Vec::new();
        for (n, event) in self.events.iter().enumerate() {
            if event.began > limit {
                break;
            }
            if has(done, n) || event.after.is_some_and(|it| !has(done, it)) {
                continue;
            }
            let next = match event.what {
                EventKind::Did(request, reply) => tree.after(request, reply),
                EventKind::Saw(sight) => tree.shows(sight),
            };
            if let Some(next) = next {
                let mut with = done.clone();
                with[n / 64] |= 1 << (n % 64);
                acts.push((event.ended, with, next));
            }
        }
        acts.sort_by_key(|(ended, ..)| std::cmp::Reverse(*ended));
        steps.extend(acts.into_iter().map(|(_, done, tree)| (done, tree)));
        steps
    }
}

fn has(done: &DoneSet, n: usize) -> bool {
    done[n / 64] & (1 << (n % 64)) != 0
}
