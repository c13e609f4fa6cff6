//! Requests about instances that never existed.

use super::{fetch_instance, last_operation, update};
use crate::case::Case;
use crate::client::StopReason;
use crate::created::InstanceId;
use crate::plan_run::PlanRun;
use crate::target::Target;
use serde_json::json;

const DELETED: Case = Case::must(
    "deprovision-unknown",
    "B-253",
    "A deprovision of an instance that never existed is answered with 410.",
);

pub(crate) const CASES: &[&Case] = &[&DELETED];

/// Requests an instance that never existed; returns whether a delete is answered with 410.
pub(crate) async fn walk(run: &PlanRun) -> Result<bool, StopReason> {
    let id = InstanceId::new();
    let target = Target::Instance(&id);
    let polled = run.poll(target, None).await?;
    run.record(&last_operation::UNKNOWN, &polled, polled.must_be(&[404]));
    if run.offering().flag("instances_retrievable") {
        let fetched = run.fetch(target).await?;
        run.record(&fetch_instance::UNKNOWN, &fetched, fetched.must_be(&[404]));
    }
    let body = json!({"service_id": run.offering().id, "plan_id": run.plan().id});
    let patched = run.patch(target, &body, true).await?;
    run.record(&update::UNKNOWN, &patched, patched.must_be_refused());
    let deleted = run.delete(target, true).await?;
    run.record(&DELETED, &deleted, deleted.must_be(&[410]));
    Ok(deleted.is(&[410]))
}
