//! Fetched instances after an update: the requested change is visible, and nothing else changes.

use super::{LiveInstance, compare};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::params::Parameters;
use crate::plan_run::PlanRun;
use serde_json::Value;
use std::sync::Arc;

const APPLIED: Case = Case::must(
    "update-applied",
    "B-162",
    "An update that has succeeded is applied: the instance shows the new values.",
);
const KEEPS_PLAN: Case = Case::must(
    "update-keeps-plan",
    "B-161",
    "An update without `plan_id` does not change the plan.",
);
const KEEPS_PARAMETERS: Case = Case::must(
    "update-keeps-parameters",
    "B-161",
    "An update without `parameters` does not change the parameters.",
);
const DASHBOARD: Case = Case::must(
    "update-dashboard-first",
    "B-171",
    "A `dashboard_url` that an update changes is in the first answer to it.",
);

pub(crate) const CASES: &[&Case] = &[&APPLIED, &KEEPS_PLAN, &KEEPS_PARAMETERS, &DASHBOARD];

/// Checks the fetched instance after an update.
pub(super) async fn shown(
    run: &PlanRun,
    live: &mut LiveInstance,
    first: &Exchange,
    parameters: Option<&Parameters>,
    plan: Option<&str>,
) -> Result<(), StopReason> {
    let before = live.fetched.clone();
    let Some(fetched) = refresh(run, live).await? else {
        return Ok(());
    };
    let (Some(before), Some(now)) = (before, &live.fetched) else {
        return Ok(());
    };
    let is_shown = |name: &str| now.get(name).is_some();
    let old = before["plan_id"].as_str().unwrap_or(&run.plan().id);
    let (case, expected) = match plan {
        Some(plan) => (&APPLIED, plan),
        None => (&KEEPS_PLAN, old),
    };
    let judgement = is_shown("plan_id").then(|| compare::field(now, "plan_id", expected));
    check(run, case, &fetched, judgement);
    let (case, judgement) = match parameters {
        Some(requested) => (&APPLIED, compare::parameters(Some(requested), now)),
        None => (&KEEPS_PARAMETERS, compare::kept(&before, now)),
    };
    let judgement = is_shown("parameters").then_some(judgement);
    check(run, case, &fetched, judgement);
    let judgement = dashboard(&before, first, now);
    run.record(&DASHBOARD, &fetched, judgement);
    Ok(())
}

/// Records the verdict about the fetched fields.
fn check(
    run: &PlanRun,
    case: &'static Case,
    fetched: &Arc<Exchange>,
    shown: Option<Result<(), String>>,
) {
    match shown {
        Some(judgement) => run.record(case, fetched, judgement),
        None => run.skip(case, "a fetched instance does not show it"),
    }
}

/// Fetches an instance for the first time, if that is possible.
pub(super) async fn look(run: &PlanRun, live: &mut LiveInstance) -> Result<(), StopReason> {
    if run.offering().flag("instances_retrievable") {
        live.fetched = Some(Value::Null);
        if refresh(run, live).await?.is_none() {
            live.fetched = None;
        }
    }
    Ok(())
}

/// Fetches the instance again, if that is possible.
pub(super) async fn refresh(
    run: &PlanRun,
    live: &mut LiveInstance,
) -> Result<Option<Arc<Exchange>>, StopReason> {
    if live.fetched.is_none() {
        return Ok(None);
    }
    let fetched = run.fetch(live.target()).await?;
    let Some(shown) = fetched.json().filter(|_| fetched.is(&[200])) else {
        return Ok(None);
    };
    live.fetched = Some(shown.clone());
    Ok(Some(fetched))
}

fn dashboard(before: &Value, first: &Exchange, now: &Value) -> Result<(), String> {
    let (before, now) = (
        before["dashboard_url"].as_str(),
        now["dashboard_url"].as_str(),
    );
    let in_response = first.field("dashboard_url").and_then(Value::as_str);
    if now == before || now.is_none() || in_response == now {
        return Ok(());
    }
    Err("`dashboard_url` has changed, and the first answer did not say so".to_owned())
}

#[cfg(test)]
mod tests {
    use super::dashboard;
    use crate::exchange::Exchange;
    use serde_json::{Value, json};

    #[test]
    fn a_changed_dashboard_must_be_in_the_response() {
        let shown = |url: &str| json!({"dashboard_url": url});
        let judged = |first: Value, now: &Value| {
            dashboard(&shown("a"), &Exchange::answered(202, &first), now).is_ok()
        };
        assert!(judged(json!({}), &shown("a")));
        assert!(judged(json!({}), &json!({})));
        assert!(judged(shown("b"), &shown("b")));
        assert!(!judged(json!({}), &shown("b")));
    }
}
