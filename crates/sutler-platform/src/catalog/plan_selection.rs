//! Which plans of the chosen offerings are offered: the usable ones with an id and a name of their own.
//!
//! A plan that is present but refused keeps its last version. The offerings are chosen in `service_selection.rs`.

use super::offered_item::{KnownCatalog, OfferedPlan, PlanKey};
use super::received_catalog::{PLANS_MAX, ReceivedCatalog, ReceivedService};
use super::service_selection::{ServicePresence, ServiceSelection};
use super::sync_fault::{FaultCollector, FaultOutcome, FaultPosition, ItemProblem};
use super::unique_values::{Candidate, CandidateOrigin, CandidateRefusal, UniqueValue, allocate};
use std::collections::{BTreeMap, HashMap, HashSet};
use sutler_osb::{Plan, PlanId, ServiceId};

/// The chosen plans, and those that the catalog has in any form.
pub(super) struct PlanSelection<'a> {
    chosen: BTreeMap<PlanKey, &'a Plan>,
    /// Kept plans that the catalog has, usable or not.
    present: HashSet<&'a PlanKey>,
}

/// A plan that is usable by itself.
struct PlanCandidate<'a> {
    position: FaultPosition,
    label: Option<&'a str>,
    key: PlanKey,
    service_id: &'a ServiceId,
    plan: &'a Plan,
}

/// A plan that is not chosen.
struct RefusedPlan<'a> {
    position: FaultPosition,
    label: Option<&'a str>,
    key: Option<PlanKey>,
    problem: ItemProblem,
}

impl<'a> PlanSelection<'a> {
    /// Chooses, and reports what was not chosen.
    pub(super) fn of(
        known: &'a KnownCatalog,
        received: &'a ReceivedCatalog,
        services: &ServiceSelection<'a>,
        faults: &mut FaultCollector,
    ) -> Self {
        let present = present_keys(known, received, services);
        let mut refused = Vec::new();
        let candidates = candidates(services, &mut refused);
        let chosen = chosen(known, &present, candidates, &mut refused);
        let selection = Self { chosen, present };
        selection.report(known, refused, faults);
        selection
    }

    /// The chosen plans, by their ids.
    pub(super) fn chosen(&self) -> &BTreeMap<PlanKey, &'a Plan> {
        &self.chosen
    }

    /// Whether the catalog has a kept plan, usable or not.
    pub(super) fn has(&self, key: &PlanKey) -> bool {
        self.present.contains(key)
    }

    fn report(
        &self,
        known: &KnownCatalog,
        refused: Vec<RefusedPlan<'_>>,
        faults: &mut FaultCollector,
    ) {
        for plan in refused {
            let stays = |key: &PlanKey| is_offered(known, key) && !self.chosen.contains_key(key);
            let outcome = if plan.key.as_ref().is_some_and(stays) {
                FaultOutcome::LastVersionStays
            } else {
                FaultOutcome::NotOffered
            };
            faults.add(plan.position, plan.label, &plan.problem, outcome);
        }
    }
}

fn is_offered(known: &KnownCatalog, key: &PlanKey) -> bool {
    known.plans().get(key).is_some_and(|it| !it.is_removed())
}

/// The kept plans that the catalog has. All plans of an offering that stays as it is count.
fn present_keys<'a>(
    known: &'a KnownCatalog,
    received: &ReceivedCatalog,
    services: &ServiceSelection<'_>,
) -> HashSet<&'a PlanKey> {
    let mut by_id = HashSet::new();
    let mut by_name = HashSet::new();
    for service in &received.services {
        let Some(service_id) = service.id.as_deref() else {
            continue;
        };
        let unread = service.unread_ids.iter();
        by_id.extend(unread.map(|id| (service_id, id.as_str())));
        for plan in &service.plans {
            match (&plan.id, &plan.name) {
                (Some(id), _) => {
                    by_id.insert((service_id, id.as_str()));
                }
                (None, Some(name)) => {
                    by_name.insert((service_id, name.as_str()));
                }
                (None, None) => (),
            }
        }
    }
    let is_present = |(key, item): &(&PlanKey, &OfferedPlan)| {
        let service_id = key.service_id.as_str();
        match services.presence(&key.service_id) {
            ServicePresence::Chosen => {
                by_id.contains(&(service_id, key.plan_id.as_str()))
                    || (!item.is_removed() && by_name.contains(&(service_id, item.name())))
            }
            ServicePresence::Unusable => true,
            ServicePresence::Absent => false,
        }
    };
    let plans = known.plans().iter().filter(is_present);
    plans.map(|(key, _)| key).collect()
}

/// The plans that are usable by themselves, one for each id of an offering, in the order of the catalog.
fn candidates<'a>(
    services: &ServiceSelection<'a>,
    refused: &mut Vec<RefusedPlan<'a>>,
) -> Vec<PlanCandidate<'a>> {
    let mut candidates = Vec::new();
    for (service_id, service) in services.chosen() {
        let mut first_at: HashMap<&PlanId, usize> = HashMap::new();
        for (nth, received) in service.received.plans.iter().enumerate() {
            let (position, label) = ((service.nth, Some(nth)), received.label());
            let key = received.id.as_deref().and_then(|id| key(service_id, id));
            let refuse = |problem| RefusedPlan {
                position,
                label,
                key,
                problem,
            };
            let plan = match &received.plan {
                Ok(plan) => plan,
                Err(problem) => {
                    refused.push(refuse(problem.clone()));
                    continue;
                }
            };
            if let Some(first) = first_at.get(&plan.id) {
                let reason = format!("must be unique, but is the same as that of plans[{first}]");
                refused.push(refuse(ItemProblem::new(".id", reason, "B-068")));
                continue;
            }
            first_at.insert(&plan.id, nth);
            candidates.push(PlanCandidate {
                position,
                label,
                key: PlanKey {
                    service_id: service_id.clone(),
                    plan_id: plan.id.clone(),
                },
                service_id,
                plan,
            });
        }
        refused.extend(unread(service.nth, service.received));
    }
    candidates.sort_by_key(|it| it.position);
    candidates
}

fn key(service_id: &ServiceId, plan_id: &str) -> Option<PlanKey> {
    Some(PlanKey {
        service_id: service_id.clone(),
        plan_id: PlanId::try_from(plan_id).ok()?,
    })
}

/// Reports plans beyond the limit, all in one.
fn unread(nth: usize, service: &ReceivedService) -> Option<RefusedPlan<'_>> {
    let reason = format!(
        "is beyond the {PLANS_MAX} plans of a catalog that are read; {} of this offering are left out",
        service.unread
    );
    (service.unread > 0).then(|| RefusedPlan {
        position: (nth, Some(service.plans.len())),
        label: None,
        key: None,
        problem: ItemProblem::new("", reason, "P-046"),
    })
}

/// The candidates that get their ids and names.
fn chosen<'a>(
    known: &'a KnownCatalog,
    present: &HashSet<&PlanKey>,
    candidates: Vec<PlanCandidate<'a>>,
    refused: &mut Vec<RefusedPlan<'a>>,
) -> BTreeMap<PlanKey, &'a Plan> {
    let wanted: Vec<Candidate<'_>> = candidates
        .iter()
        .map(|it| Candidate {
            wanted: unique_values(it.service_id, it.plan),
            origin: match known.plans().get(&it.key) {
                Some(item) if !item.is_removed() => CandidateOrigin::Offered(unique_values(
                    item.service_id(),
                    &item.contents().plan,
                )),
                Some(_) => CandidateOrigin::Removed,
                None => CandidateOrigin::New,
            },
        })
        .collect();
    let keys: HashSet<&PlanKey> = candidates.iter().map(|it| &it.key).collect();
    let kept = known.plans().iter();
    let kept = kept.filter(|(key, _)| present.contains(key));
    let room = PLANS_MAX.saturating_sub(kept.clone().count());
    let stays = kept.filter(|(key, item)| !item.is_removed() && !keys.contains(key));
    let fixed = stays.flat_map(|(_, it)| unique_values(it.service_id(), &it.contents().plan));
    let refusals = allocate(fixed, &wanted, room);
    let mut chosen = BTreeMap::new();
    for (candidate, refusal) in candidates.into_iter().zip(refusals) {
        match refusal {
            None => {
                chosen.insert(candidate.key, candidate.plan);
            }
            Some(refusal) => refused.push(RefusedPlan {
                position: candidate.position,
                label: candidate.label,
                key: Some(candidate.key),
                problem: problem(refusal),
            }),
        }
    }
    chosen
}

fn unique_values<'a>(service_id: &'a ServiceId, plan: &'a Plan) -> Vec<UniqueValue<'a>> {
    vec![
        UniqueValue::PlanId(plan.id.as_str()),
        UniqueValue::PlanName(service_id.as_str(), plan.name.as_str()),
    ]
}

fn problem(refusal: CandidateRefusal<'_>) -> ItemProblem {
    match refusal {
        CandidateRefusal::Taken(UniqueValue::PlanId(_)) => {
            let reason = "must be unique, but a plan of another offering has the same id";
            ItemProblem::new(".id", reason, "B-068")
        }
        CandidateRefusal::Taken(UniqueValue::PlanName(..) | UniqueValue::ServiceName(_)) => {
            let reason = "must be unique, but another plan of the offering has the same name";
            ItemProblem::new(".name", reason, "B-069")
        }
        CandidateRefusal::TooMany => {
            let reason = format!("is one too many: at most {PLANS_MAX} plans of a broker are kept");
            ItemProblem::new("", reason, "P-046")
        }
    }
}
