//! Instances that never existed: every question about them has its own answer.

use super::{fetch_instance, last_operation, update};
use crate::asker::Stop;
use crate::case::Case;
use crate::ledger::InstanceId;
use crate::stage::Stage;
use crate::target::Target;
use serde_json::json;

const DELETED: Case = Case::must(
    "deprovision-unknown",
    "B-253",
    "A deprovision of an instance that never existed is answered with 410.",
);

pub(crate) const CASES: &[&Case] = &[&DELETED];

/// Asks about an instance that never existed; tells whether a delete shows that there is none.
pub(crate) async fn walk(stage: &Stage) -> Result<bool, Stop> {
    let id = InstanceId::new();
    let target = Target::Instance(&id);
    let polled = stage.poll(target, None).await?;
    stage.judge(&last_operation::UNKNOWN, &polled, polled.must_be(&[404]));
    if stage.offering().flag("instances_retrievable") {
        let fetched = stage.fetch(target).await?;
        stage.judge(&fetch_instance::UNKNOWN, &fetched, fetched.must_be(&[404]));
    }
    let body = json!({"service_id": stage.offering().id, "plan_id": stage.plan().id});
    let patched = stage.patch(target, &body, true).await?;
    stage.judge(&update::UNKNOWN, &patched, patched.must_be_refused());
    let deleted = stage.delete(target, true).await?;
    stage.judge(&DELETED, &deleted, deleted.must_be(&[410]));
    Ok(deleted.is(&[410]))
}
