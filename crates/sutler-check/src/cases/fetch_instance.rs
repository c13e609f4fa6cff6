//! Fetches the instance directly after its provision and checks the contents.
//!
//! Only if the catalog sets `instances_retrievable`.

use super::{LiveInstance, compare};
use crate::case::Case;
use crate::client::StopReason;
use crate::exchange::Exchange;
use crate::plan_run::PlanRun;
use serde_json::Value;
use sutler_client::wire::Method;

const AVAILABLE: Case = Case::must(
    "fetch-instance-available",
    "B-150",
    "An instance can be fetched as soon as its provision has succeeded.",
);
const IDS: Case = Case::must(
    "fetch-instance-ids",
    "B-151",
    "A fetched instance shows its own `service_id` and `plan_id`, if any.",
);
const PARAMETERS: Case = Case::should(
    "fetch-instance-parameters",
    "B-154",
    "A fetched instance shows the parameters that it was made with, or leaves them out.",
);
const VERSION: Case = Case::should(
    "fetch-instance-maintenance",
    "B-155",
    "A fetched instance shows the `maintenance_info` that it was made with, if any, and none if the plan has none.",
);
const HINTS: Case = Case::should(
    "fetch-instance-hints",
    "B-156",
    "An instance can be fetched with and without the hints `service_id` and `plan_id`.",
);
const DASHBOARD: Case = Case::must(
    "provision-dashboard-first",
    "B-130",
    "A `dashboard_url` that is offered at all is in the first answer to the provision.",
);
pub(super) const UNKNOWN: Case = Case::must(
    "fetch-instance-unknown",
    "B-152",
    "Fetching an instance that does not exist is answered with 404.",
);
pub(super) const RUNNING: Case = Case::must(
    "fetch-instance-running",
    "B-152",
    "Fetching an instance while it is provisioned is answered with 404.",
);
pub(super) const UPDATING: Case = Case::must(
    "fetch-instance-updating",
    "B-153",
    "Fetching an instance while it is updated is answered with 200, or with 422 ConcurrencyError.",
);
pub(super) const DELETED: Case = Case::must(
    "fetch-instance-deleted",
    "B-152",
    "Fetching an instance that was deleted is answered with 404.",
);

pub(crate) const CASES: &[&Case] = &[
    &AVAILABLE,
    &IDS,
    &PARAMETERS,
    &VERSION,
    &HINTS,
    &DASHBOARD,
    &UNKNOWN,
    &RUNNING,
    &UPDATING,
    &DELETED,
];

/// Fetches the instance for the first time.
pub(crate) async fn walk(run: &PlanRun, live: &mut LiveInstance) -> Result<(), StopReason> {
    if !run.offering().flag("instances_retrievable") {
        run.skip_all(CASES, "the catalog does not say `instances_retrievable`");
        return Ok(());
    }
    if !live.is_async() {
        run.skip(&RUNNING, "the plan is provisioned synchronously");
    }
    let fetched = run.fetch(live.target()).await?;
    run.record(&AVAILABLE, &fetched, fetched.must_be(&[200]));
    let Some(shown) = fetched.json().filter(|_| fetched.is(&[200])) else {
        let cases = [&IDS, &PARAMETERS, &VERSION, &HINTS, &DASHBOARD];
        run.skip_all(&cases, "the instance could not be fetched");
        return Ok(());
    };
    let ids = compare::field(shown, "service_id", &run.offering().id)
        .and_then(|()| compare::field(shown, "plan_id", &run.plan().id));
    run.record(&IDS, &fetched, ids);
    let requested = live.body["parameters"].as_object();
    run.record(&PARAMETERS, &fetched, compare::parameters(requested, shown));
    run.record(
        &VERSION,
        &fetched,
        version(shown, run.maintenance_version()),
    );
    run.record(&DASHBOARD, &fetched, dashboard(&live.first, shown));
    live.fetched = Some(shown.clone());
    let request = live
        .target()
        .request(Method::Get)
        .query("service_id", &run.offering().id)
        .query("plan_id", &run.plan().id);
    let hinted = run.client.ask(request).await?;
    run.record(&HINTS, &hinted, hinted.must_be(&[200]));
    Ok(())
}

fn version(shown: &Value, catalog: Option<&str>) -> Result<(), String> {
    match (shown.get("maintenance_info"), catalog) {
        (None | Some(Value::Null), _) => Ok(()),
        (Some(info), Some(version)) => compare::field(info, "version", version),
        (Some(_), None) => Err("the plan has no `maintenance_info`, the instance has".to_owned()),
    }
}

/// Later contents must equal the first answer.
fn dashboard(first: &Exchange, shown: &Value) -> Result<(), String> {
    let url = |it: Option<&Value>| it.and_then(Value::as_str).map(str::to_owned);
    match (
        url(first.field("dashboard_url")),
        url(shown.get("dashboard_url")),
    ) {
        (None, Some(_)) => Err("there was no `dashboard_url` in the first answer".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::version;
    use serde_json::json;

    #[test]
    fn the_returned_version_is_the_requested_one_or_absent() {
        let shown = json!({"maintenance_info": {"version": "1.0.0"}});
        assert_eq!(version(&json!({}), Some("1.0.0")), Ok(()));
        assert_eq!(version(&shown, Some("1.0.0")), Ok(()));
        assert!(version(&shown, Some("2.0.0")).is_err());
        assert!(version(&shown, None).is_err());
    }
}
