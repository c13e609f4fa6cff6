//! Selects the plans to test: the choice of the caller, matched with the catalog. Pure.

use crate::catalog::{Offering, Plan};
use crate::options::Options;

/// A choice of the caller that is not in the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {kind} of the catalog is called {name:?}; `--dry-run` lists what there is")]
pub struct UnknownChoiceError {
    /// Kind of the choice.
    pub kind: Choice,
    /// Name that the caller gave.
    pub name: String,
    /// Names that exist.
    pub known: Vec<String>,
}

/// Kind of choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// An offering.
    Service,
    /// A plan.
    Plan,
    /// Target of parameters: `service/plan` or `service`.
    Parameters,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Service => "service",
            Self::Plan => "plan",
            Self::Parameters => "service or plan",
        })
    }
}

/// The chosen plans, as indices of offering and plan, in the order of the catalog.
pub(crate) fn select(
    offerings: &[Offering],
    options: &Options,
) -> Result<Vec<(usize, usize)>, UnknownChoiceError> {
    for name in &options.services {
        if !offerings.iter().any(|it| is_called(it, name)) {
            let known = offerings.iter().map(|it| it.name.to_string()).collect();
            return Err(unknown(Choice::Service, name, known));
        }
    }
    for key in options.parameters.keys() {
        if !pairs(offerings).any(|(_, offering, plan)| is_key(key, offering, plan)) {
            let known = pairs(offerings).map(|(_, offering, plan)| key_of(offering, plan));
            return Err(unknown(Choice::Parameters, key, known.collect()));
        }
    }
    let offered: Vec<_> = pairs(offerings)
        .filter(|(_, offering, _)| {
            options.services.is_empty() || options.services.iter().any(|it| is_called(offering, it))
        })
        .collect();
    for name in &options.plans {
        let is_it = |offering: &Offering, plan: &Plan| is_plan(name, offering, plan);
        if !offered
            .iter()
            .any(|(_, offering, plan)| is_it(offering, plan))
        {
            let known = offered.iter().map(|(_, _, plan)| plan.name.to_string());
            return Err(unknown(Choice::Plan, name, known.collect()));
        }
    }
    let chosen = offered
        .iter()
        .filter(|(_, offering, plan)| allows(options, offering, plan));
    Ok(chosen.map(|(at, _, _)| *at).collect())
}

/// Whether the caller allows a plan of a chosen offering.
pub(crate) fn allows(options: &Options, offering: &Offering, plan: &Plan) -> bool {
    options.plans.is_empty() || options.plans.iter().any(|it| is_plan(it, offering, plan))
}

/// Name of a plan with its service.
pub(crate) fn key_of(offering: &Offering, plan: &Plan) -> String {
    format!("{}/{}", offering.name, plan.name)
}

fn pairs(offerings: &[Offering]) -> impl Iterator<Item = ((usize, usize), &Offering, &Plan)> {
    offerings.iter().enumerate().flat_map(|(at, offering)| {
        let plans = offering.plans.iter().enumerate();
        plans.map(move |(nth, plan)| ((at, nth), offering, plan))
    })
}

fn unknown(kind: Choice, name: &str, mut known: Vec<String>) -> UnknownChoiceError {
    known.dedup();
    UnknownChoiceError {
        kind,
        name: name.to_owned(),
        known,
    }
}

fn is_called(offering: &Offering, name: &str) -> bool {
    offering.id == name || *offering.name == *name
}

/// A plan is identified by its name, its id, or `service/plan`.
fn is_plan(name: &str, offering: &Offering, plan: &Plan) -> bool {
    plan.id == name || *plan.name == *name || is_pair(name, offering, plan)
}

fn is_pair(key: &str, offering: &Offering, plan: &Plan) -> bool {
    // Names and ids may contain slashes themselves.
    [&*offering.name, offering.id.as_str()].iter().any(|it| {
        let rest = key.strip_prefix(it).and_then(|it| it.strip_prefix('/'));
        rest.is_some_and(|it| plan.id == it || *plan.name == *it)
    })
}

fn is_key(key: &str, offering: &Offering, plan: &Plan) -> bool {
    is_called(offering, key) || is_pair(key, offering, plan)
}

#[cfg(test)]
mod tests {
    use super::{Choice, select};
    use crate::catalog::{Offering, read};
    use crate::options::{Options, PlanParameters};
    use serde_json::json;

    fn catalog() -> Vec<Offering> {
        read(&json!({ "services": [
            { "id": "s1", "name": "database", "plans": [
                { "id": "p1", "name": "small" }, { "id": "p2", "name": "large" } ] },
            { "id": "s2", "name": "queue", "plans": [{ "id": "p3", "name": "small" }] },
        ]}))
    }

    #[track_caller]
    fn chosen(services: &[&str], plans: &[&str], expected: &[(usize, usize)]) {
        let options = Options {
            services: services.iter().map(|it| (*it).to_owned()).collect(),
            plans: plans.iter().map(|it| (*it).to_owned()).collect(),
            ..Options::default()
        };
        assert_eq!(select(&catalog(), &options), Ok(expected.to_vec()));
    }

    #[test]
    fn names_ids_and_pairs_choose_and_nothing_chosen_is_everything() {
        chosen(&[], &[], &[(0, 0), (0, 1), (1, 0)]);
        chosen(&["queue"], &[], &[(1, 0)]);
        chosen(&["s1", "queue"], &["small"], &[(0, 0), (1, 0)]);
        chosen(&[], &["p2"], &[(0, 1)]);
        chosen(&[], &["database/small", "s2/p3"], &[(0, 0), (1, 0)]);
    }

    #[test]
    fn a_choice_not_in_the_catalog_is_refused_with_the_known_names() {
        let refused = |options: &Options| select(&catalog(), options).expect_err("it is unknown");
        let mut options = Options {
            services: vec!["databse".to_owned()],
            ..Options::default()
        };
        let unknown = refused(&options);
        assert_eq!((unknown.kind, unknown.known.len()), (Choice::Service, 2));
        options.services = vec!["queue".to_owned()];
        options.plans = vec!["large".to_owned()];
        let unknown = refused(&options);
        assert_eq!(unknown.kind, Choice::Plan);
        assert_eq!(unknown.known, ["small"]);
        options.plans.clear();
        options
            .parameters
            .insert("queue/tiny".to_owned(), PlanParameters::default());
        assert_eq!(refused(&options).kind, Choice::Parameters);
    }
}
