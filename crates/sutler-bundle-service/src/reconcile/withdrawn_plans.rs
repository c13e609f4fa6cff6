//! Sentences about withdrawn plans, found by service and plan id in constant time. Pure.

use super::records::SpecRecord;
use jiff::Timestamp;
use std::collections::HashMap;

/// Sentences about withdrawn plans, by service and plan id.
#[derive(Debug, Default)]
pub(super) struct WithdrawnPlans(HashMap<String, HashMap<String, Withdrawal>>);

/// Withdrawal of one plan.
#[derive(Debug)]
struct Withdrawal {
    at: Timestamp,
    sentence: String,
}

impl WithdrawnPlans {
    /// Adds a spec, if it is withdrawn. Of several with the same plan, the latest withdrawal counts.
    pub(super) fn add(&mut self, spec: &SpecRecord) {
        let Some(mark) = &spec.held.mark else {
            return;
        };
        let at = mark.at.strftime("%Y-%m-%d %H:%M:%S UTC");
        let sentence = format!(
            "The service {} was withdrawn at {at}: {}. Fetch the catalog and choose another.",
            spec.service_name, mark.reason
        );
        let plans = self.0.entry(spec.service_id.clone()).or_default();
        for plan in &spec.plans {
            let later = plans.get(plan).is_none_or(|it| it.at <= mark.at);
            if later {
                let sentence = sentence.clone();
                plans.insert(
                    plan.clone(),
                    Withdrawal {
                        at: mark.at,
                        sentence,
                    },
                );
            }
        }
    }

    /// Sentence that says when and why a plan was withdrawn, if it was.
    pub(super) fn sentence(&self, service_id: &str, plan_id: &str) -> Option<&str> {
        let withdrawal = self.0.get(service_id)?.get(plan_id)?;
        Some(&withdrawal.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::WithdrawnPlans;
    use crate::reconcile::records::SpecRecord;
    use jiff::Timestamp;
    use std::sync::Arc;
    use sutler_registry::{ClaimedNames, KnownSpec, SpecName, WithdrawalMark, WithdrawalReason};

    fn spec(registry: &str, marked: Option<i64>) -> SpecRecord {
        let time = |second: i64| Timestamp::from_second(second).expect("a time");
        SpecRecord {
            name: Arc::new(SpecName::new(registry, "org/hello:latest")),
            held: Arc::new(KnownSpec {
                digest: "sha256:1".to_owned(),
                wants: ClaimedNames::default(),
                mark: marked.map(|at| WithdrawalMark {
                    reason: WithdrawalReason::Absent,
                    at: time(at),
                    until: time(at + 60),
                }),
                fault: None,
            }),
            version: "sha256:2".to_owned(),
            service_id: "hello-id".to_owned(),
            service_name: format!("hello of {registry}"),
            plans: vec!["small".to_owned(), "large".to_owned()],
            offered_by: String::new(),
        }
    }

    fn of(specs: &[SpecRecord]) -> WithdrawnPlans {
        let mut withdrawn = WithdrawnPlans::default();
        specs.iter().for_each(|spec| withdrawn.add(spec));
        withdrawn
    }

    #[test]
    fn a_plan_that_was_withdrawn_is_found_by_both_ids() {
        let specs = [spec("a", Some(0)), spec("b", None)];
        let withdrawn = of(&specs);
        let expected = "The service hello of a was withdrawn at 1970-01-01 00:00:00 UTC: its registry does \
                        not have it any more. Fetch the catalog and choose another.";
        assert_eq!(withdrawn.sentence("hello-id", "large"), Some(expected));
        assert_eq!(withdrawn.sentence("hello-id", "huge"), None);
        assert_eq!(withdrawn.sentence("other-id", "large"), None);
    }

    #[test]
    fn of_two_withdrawals_the_later_one_is_reported() {
        for (first, second, expected) in [(10, 20, "b"), (20, 10, "a")] {
            let specs = [spec("a", Some(first)), spec("b", Some(second))];
            let withdrawn = of(&specs);
            let sentence = withdrawn.sentence("hello-id", "small").unwrap_or_default();
            let expected = format!("hello of {expected}");
            assert!(sentence.contains(&expected), "{sentence}");
        }
    }
}
