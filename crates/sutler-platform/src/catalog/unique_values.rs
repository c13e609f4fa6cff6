//! Values that must be unique among the offered items of a broker: which item gets a value that several want.
//!
//! Names may change (P-041), so two items may exchange their names, and one may take a name that another gives up.
//! An item that is refused keeps its last version, and with it the values of that version. Pure; the items are chosen
//! in `service_selection.rs`.

use std::collections::HashMap;

/// A value that only one offered item has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum UniqueValue<'a> {
    /// Name of an offering (B-055).
    ServiceName(&'a str),
    /// Id of a plan, of any offering (B-068).
    PlanId(&'a str),
    /// Name of a plan within an offering, which is named by its id (B-069).
    PlanName(&'a str, &'a str),
}

/// What is known of an item that wants to be offered.
pub(super) enum CandidateOrigin<'a> {
    /// It is offered now, with these values. It keeps them if it is refused.
    Offered(Vec<UniqueValue<'a>>),
    /// It is kept, but marked as removed.
    Removed,
    /// It is not kept yet.
    New,
}

/// An item that wants to be offered.
pub(super) struct Candidate<'a> {
    /// The values that it needs.
    pub(super) wanted: Vec<UniqueValue<'a>>,
    /// What is known of it.
    pub(super) origin: CandidateOrigin<'a>,
}

/// Why an item is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateRefusal<'a> {
    /// Another item has this value.
    Taken(UniqueValue<'a>),
    /// There are too many items.
    TooMany,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueOwner {
    /// An item that does not change.
    LastVersion,
    /// A candidate, by its position.
    Candidate(usize),
}

struct Allocation<'a, 'c> {
    candidates: &'c [Candidate<'a>],
    owners: HashMap<UniqueValue<'a>, ValueOwner>,
    refusals: Vec<Option<CandidateRefusal<'a>>>,
}

/// Decides which candidates are offered; `None` means offered.
///
/// `fixed` are values of offered items that stay as they are. `room` is how many new items may be added.
///
/// # Guarantees
/// No value has two owners. Items that are offered already go before new ones, so a new item never takes the name or
/// the id of another. The same candidates decided again, after the accepted ones were applied, are decided alike.
pub(super) fn allocate<'a>(
    fixed: impl Iterator<Item = UniqueValue<'a>>,
    candidates: &[Candidate<'a>],
    room: usize,
) -> Vec<Option<CandidateRefusal<'a>>> {
    let mut allocation = Allocation {
        candidates,
        owners: fixed.map(|it| (it, ValueOwner::LastVersion)).collect(),
        refusals: vec![None; candidates.len()],
    };
    let (mut unchanged, mut changed, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, candidate) in candidates.iter().enumerate() {
        match &candidate.origin {
            CandidateOrigin::Offered(values) if *values == candidate.wanted => unchanged.push(nth),
            CandidateOrigin::Offered(_) => changed.push(nth),
            CandidateOrigin::Removed | CandidateOrigin::New => others.push(nth),
        }
    }
    for nth in unchanged.into_iter().chain(changed) {
        match allocation.taken(nth) {
            Some(value) => allocation.refuse(nth, value),
            None => allocation.accept(nth),
        }
    }
    let mut room = room;
    for nth in others {
        match (allocation.taken(nth), &candidates[nth].origin) {
            (Some(value), _) => allocation.refuse(nth, value),
            (None, CandidateOrigin::New) if room == 0 => {
                allocation.refusals[nth] = Some(CandidateRefusal::TooMany);
            }
            (None, CandidateOrigin::New) => {
                room -= 1;
                allocation.accept(nth);
            }
            (None, CandidateOrigin::Offered(_) | CandidateOrigin::Removed) => {
                allocation.accept(nth);
            }
        }
    }
    allocation.refusals
}

impl<'a> Allocation<'a, '_> {
    /// The first value of a candidate that is not free.
    fn taken(&self, nth: usize) -> Option<UniqueValue<'a>> {
        let mut wanted = self.candidates[nth].wanted.iter();
        wanted
            .find(|value| self.owners.contains_key(value))
            .copied()
    }

    fn accept(&mut self, nth: usize) {
        for value in &self.candidates[nth].wanted {
            self.owners.insert(*value, ValueOwner::Candidate(nth));
        }
    }

    /// Refuses a candidate, which keeps the values of its last version; candidates that wanted these are refused, too.
    fn refuse(&mut self, nth: usize, value: UniqueValue<'a>) {
        let mut open = vec![(nth, value)];
        while let Some((nth, value)) = open.pop() {
            if self.refusals[nth].is_some() {
                continue;
            }
            self.refusals[nth] = Some(CandidateRefusal::Taken(value));
            let candidate = &self.candidates[nth];
            for wanted in &candidate.wanted {
                if self.owners.get(wanted) == Some(&ValueOwner::Candidate(nth)) {
                    self.owners.remove(wanted);
                }
            }
            let CandidateOrigin::Offered(values) = &candidate.origin else {
                continue;
            };
            for value in values {
                let before = self.owners.insert(*value, ValueOwner::LastVersion);
                if let Some(ValueOwner::Candidate(other)) = before {
                    open.push((other, *value));
                }
            }
        }
    }
}
