//! Brokers: registered, shown, changed, deregistered, operated. One file for those of all namespaces and those of one.

use crate::api::answer::Answer;
use crate::api::api_call::ApiCall;
use crate::api::problem::Problem;
use crate::platform::Platform;
use crate::records::{BrokerRegistration, ResourceName};

/// A broker of all namespaces (`None`) or of one.
pub(super) async fn find(
    platform: &Platform,
    scope: Option<&ResourceName>,
    name: &ResourceName,
) -> Result<Option<BrokerRegistration>, Problem> {
    let records = platform.records();
    let key = records.keys.broker(scope, name);
    let found = records.load::<BrokerRegistration>(&key).await?;
    Ok(found.state.into_inner())
}

pub(in crate::api) async fn list(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn put(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn show(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn patch(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn delete(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn sync(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn pause(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn resume(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}

pub(in crate::api) async fn probe(_: &ApiCall<'_>) -> Result<Answer, Problem> {
    Err(Problem::no_such_path())
}
