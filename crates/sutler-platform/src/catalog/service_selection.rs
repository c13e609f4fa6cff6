//! Which offerings of a received catalog are offered: the usable ones with an id and a name of their own.
//!
//! An offering that is present but refused keeps its last version, with all its plans. The plans of the chosen
//! offerings are chosen in `plan_selection.rs`.

use super::offered_item::KnownCatalog;
use super::received_catalog::{ReceivedCatalog, ReceivedService, SERVICES_MAX};
use super::sync_fault::{FaultCollector, FaultOutcome, ItemProblem};
use super::unique_values::{Candidate, CandidateOrigin, CandidateRefusal, UniqueValue, allocate};
use std::collections::{BTreeMap, HashMap, HashSet};
use sutler_osb::{ServiceId, ServiceOffering};

/// An offering of the catalog, by its position.
#[derive(Clone, Copy)]
pub(super) struct ChosenService<'a> {
    /// Position in the received catalog.
    pub(super) nth: usize,
    /// The offering.
    pub(super) offering: &'a ServiceOffering,
    /// Its plans.
    pub(super) received: &'a ReceivedService,
}

/// The chosen offerings, and those that the catalog has in any form.
pub(super) struct ServiceSelection<'a> {
    chosen: BTreeMap<&'a ServiceId, ChosenService<'a>>,
    present: HashSet<&'a str>,
}

/// Whether the catalog has an offering.
pub(super) enum ServicePresence {
    /// In a usable form.
    Chosen,
    /// In a form that is not usable: it stays as it is.
    Unusable,
    /// Not at all.
    Absent,
}

impl<'a> ServiceSelection<'a> {
    /// Chooses, and reports what was not chosen.
    pub(super) fn of(
        known: &'a KnownCatalog,
        received: &'a ReceivedCatalog,
        faults: &mut FaultCollector,
    ) -> Self {
        let present = present_ids(known, received);
        let mut refused = Vec::new();
        let candidates = candidates(known, received, &mut refused);
        let chosen = chosen(known, &present, candidates, &mut refused);
        let selection = Self { chosen, present };
        selection.report(known, received, refused, faults);
        selection
    }

    /// The chosen offerings, by id.
    pub(super) fn chosen(&self) -> impl Iterator<Item = (&'a ServiceId, ChosenService<'a>)> {
        self.chosen.iter().map(|(id, chosen)| (*id, *chosen))
    }

    /// Whether the catalog has an offering.
    pub(super) fn presence(&self, id: &ServiceId) -> ServicePresence {
        if self.chosen.contains_key(id) {
            ServicePresence::Chosen
        } else if self.present.contains(id.as_str()) {
            ServicePresence::Unusable
        } else {
            ServicePresence::Absent
        }
    }

    /// Takes back the choice of an offering that has no plan.
    pub(super) fn without(&mut self, id: &ServiceId) {
        self.chosen.remove(id);
    }

    fn report(
        &self,
        known: &KnownCatalog,
        received: &ReceivedCatalog,
        refused: Vec<(usize, ItemProblem)>,
        faults: &mut FaultCollector,
    ) {
        for (nth, problem) in refused {
            let service = &received.services[nth];
            let id = service.id.as_deref();
            let id = id.and_then(|id| ServiceId::try_from(id).ok());
            let stays =
                id.is_some_and(|id| is_offered(known, &id) && !self.chosen.contains_key(&id));
            let outcome = if stays {
                FaultOutcome::LastVersionStays
            } else {
                FaultOutcome::NotOffered
            };
            faults.add((nth, None), service.label(), &problem, outcome);
        }
        if received.unread > 0 {
            let reason = format!(
                "is beyond the {SERVICES_MAX} offerings that are read; {} are left out",
                received.unread
            );
            let problem = ItemProblem::new("", reason, "P-046");
            faults.add(
                (SERVICES_MAX, None),
                None,
                &problem,
                FaultOutcome::NotOffered,
            );
        }
    }
}

/// Whether an offering is kept without the mark of a removed one.
pub(super) fn is_offered(known: &KnownCatalog, id: &ServiceId) -> bool {
    known.services().get(id).is_some_and(|it| !it.is_removed())
}

/// Ids of all offerings in the catalog. One without an id stands for the kept one of its name.
fn present_ids<'a>(known: &'a KnownCatalog, received: &'a ReceivedCatalog) -> HashSet<&'a str> {
    let offered = known.services().values().filter(|it| !it.is_removed());
    let by_name: HashMap<&str, &str> = offered.map(|it| (it.name(), it.id().as_str())).collect();
    let id_of = |service: &'a ReceivedService| match (&service.id, &service.name) {
        (Some(id), _) => Some(id.as_str()),
        (None, Some(name)) => by_name.get(name.as_str()).copied(),
        (None, None) => None,
    };
    let unread = received.unread_ids.iter().map(String::as_str);
    received
        .services
        .iter()
        .filter_map(id_of)
        .chain(unread)
        .collect()
}

/// The offerings that are usable by themselves, one for each id.
fn candidates<'a>(
    known: &KnownCatalog,
    received: &'a ReceivedCatalog,
    refused: &mut Vec<(usize, ItemProblem)>,
) -> Vec<ChosenService<'a>> {
    let first_at = first_positions(received);
    let mut candidates = Vec::new();
    for (nth, service) in received.services.iter().enumerate() {
        let offering = match &service.offering {
            Ok(offering) => offering,
            Err(problem) => {
                refused.push((nth, problem.clone()));
                continue;
            }
        };
        let first = first_at.get(&offering.id).copied().unwrap_or(nth);
        if first != nth {
            let reason = format!("must be unique, but is the same as services[{first}].id");
            refused.push((nth, ItemProblem::new(".id", reason, "B-056")));
        } else if !service.has_usable_plan() && !is_offered(known, &offering.id) {
            refused.push((nth, no_usable_plan()));
        } else {
            candidates.push(ChosenService {
                nth,
                offering,
                received: service,
            });
        }
    }
    candidates
}

/// The position that counts for each id: the first usable offering with a usable plan, else the first usable one.
fn first_positions(received: &ReceivedCatalog) -> HashMap<&ServiceId, usize> {
    let mut positions = HashMap::new();
    let services = || received.services.iter().enumerate();
    let with_plans = services().filter(|(_, service)| service.has_usable_plan());
    for (nth, service) in with_plans.chain(services()) {
        if let Ok(offering) = &service.offering {
            positions.entry(&offering.id).or_insert(nth);
        }
    }
    positions
}

/// The problem of an offering of which nothing can be provisioned.
pub(super) fn no_usable_plan() -> ItemProblem {
    ItemProblem::new(".plans", "must have at least one usable plan", "B-059")
}

/// The candidates that get their names.
fn chosen<'a>(
    known: &'a KnownCatalog,
    present: &HashSet<&str>,
    candidates: Vec<ChosenService<'a>>,
    refused: &mut Vec<(usize, ItemProblem)>,
) -> BTreeMap<&'a ServiceId, ChosenService<'a>> {
    let wanted: Vec<Candidate<'_>> = candidates
        .iter()
        .map(|candidate| Candidate {
            wanted: vec![UniqueValue::ServiceName(candidate.offering.name.as_str())],
            origin: match known.services().get(&candidate.offering.id) {
                Some(item) if !item.is_removed() => {
                    CandidateOrigin::Offered(vec![UniqueValue::ServiceName(item.name())])
                }
                Some(_) => CandidateOrigin::Removed,
                None => CandidateOrigin::New,
            },
        })
        .collect();
    let ids: HashSet<&ServiceId> = candidates.iter().map(|it| &it.offering.id).collect();
    let kept = known.services().values();
    let kept = kept.filter(|it| present.contains(it.id().as_str()));
    let room = SERVICES_MAX.saturating_sub(kept.clone().count());
    let stays = kept.filter(|it| !it.is_removed() && !ids.contains(it.id()));
    let fixed = stays.map(|it| UniqueValue::ServiceName(it.name()));
    let refusals = allocate(fixed, &wanted, room);
    let mut chosen = BTreeMap::new();
    for (candidate, refusal) in candidates.iter().zip(refusals) {
        match refusal {
            None => {
                chosen.insert(&candidate.offering.id, *candidate);
            }
            Some(CandidateRefusal::Taken(_)) => {
                let reason = "must be unique, but another offering has the same name";
                refused.push((candidate.nth, ItemProblem::new(".name", reason, "B-055")));
            }
            Some(CandidateRefusal::TooMany) => {
                let reason = format!(
                    "is one too many: at most {SERVICES_MAX} offerings of a broker are kept"
                );
                refused.push((candidate.nth, ItemProblem::new("", reason, "P-046")));
            }
        }
    }
    chosen
}
