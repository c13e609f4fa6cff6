//! Brokers: registered, shown, changed, deregistered, operated. One file for those of all namespaces and those of one.

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
