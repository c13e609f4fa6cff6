//! Runs several plans in parallel, with a limit.
//!
//! A panic in one run is reported as a fault of the check itself, never as a plan without faults.

use crate::client::StopReason;
use crate::verdicts::Subject;
use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Result of all plan runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanRunsEnd {
    /// The last reason for an early end.
    pub stop: Option<StopReason>,
    /// Faults of the check itself, each with its plan.
    pub faults: Vec<String>,
}

/// Runs one future per subject, at most `jobs` at a time.
pub(crate) async fn side_by_side<W>(walks: Vec<(Subject, W)>, jobs: usize) -> PlanRunsEnd
where
    W: Future<Output = Result<(), StopReason>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(jobs.max(1)));
    let mut tasks = JoinSet::new();
    let mut subjects = HashMap::new();
    for (subject, walk) in walks {
        let places = places.clone();
        let task = tasks.spawn(async move {
            let _place = places.acquire_owned().await;
            walk.await
        });
        subjects.insert(task.id(), subject);
    }
    let mut walked = PlanRunsEnd::default();
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(stop)) => walked.stop = Some(stop),
            Err(broken) => {
                let subject = subjects.get(&broken.id());
                let subject = subject.map_or_else(|| "a plan".to_owned(), Subject::to_string);
                let words = match broken.try_into_panic() {
                    Ok(panic) => panic_message(&*panic),
                    Err(cancelled) => cancelled.to_string(),
                };
                walked.faults.push(format!(
                    "the check itself failed while it walked {subject} ({words}); this is a fault of Sutler, please report it"
                ));
            }
        }
    }
    walked.faults.sort();
    walked
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason was given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::side_by_side;
    use crate::client::StopReason;
    use crate::verdicts::Subject;

    fn subject(plan: &str) -> Subject {
        Subject::Plan {
            service: "service".into(),
            plan: plan.into(),
        }
    }

    /// A run whose behaviour is given by the name of its plan.
    async fn walk(plan: &'static str) -> Result<(), StopReason> {
        match plan {
            "breaks" => panic!("nobody thought of {plan}"),
            "ends" => Err(StopReason::Silent),
            _ => Ok(()),
        }
    }

    #[tokio::test]
    async fn a_panicking_plan_run_is_reported_and_stops_no_other() {
        let plans = ["one", "breaks", "two", "ends"];
        let walks = plans.map(|it| (subject(it), walk(it))).into_iter();
        let walked = side_by_side(walks.collect(), 1).await;
        assert_eq!(walked.stop, Some(StopReason::Silent));
        let [fault] = walked.faults.as_slice() else {
            panic!("{:?}", walked.faults);
        };
        assert!(fault.contains("service/breaks"), "{fault}");
        assert!(fault.contains("nobody thought of breaks"), "{fault}");
    }
}
