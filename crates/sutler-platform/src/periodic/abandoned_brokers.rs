//! Goes on with brokers that are deregistered with everything that they have: the process that began it may have ended, or
//! they have more than one request gives up.

use super::broker_abandonment::abandon_marked;
use super::listed_keys::ListedKeys;
use super::task_run_error::TaskRunError;
use crate::context::PlatformContext;
use crate::records::{BROKER, BrokerRegistration};
use sutler_journal::{List, Lost, Run};
use sutler_records::RecordError;

/// Goes on with each of them until it is removed.
///
/// # Errors
/// The store does not answer, or the claim was lost.
pub(super) async fn abandon_all(context: &PlatformContext, run: &Run) -> Result<(), TaskRunError> {
    let list = List::Prefix(context.records.keys.all_of(BROKER));
    let mut brokers = ListedKeys::of(context, run, list);
    while let Some(page) = brokers.next_page().await? {
        for key in page {
            let found = match context.records.load::<BrokerRegistration>(&key).await {
                Ok(found) => found,
                Err(RecordError::Store(error)) => return Err(error.into()),
                // It delays no other.
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a registration of a broker cannot be read"
                    );
                    continue;
                }
            };
            let Some(registration) = found.state.into_inner() else {
                continue;
            };
            if registration.deregistering.is_none() {
                continue;
            }
            let may_go_on = || !run.lost().is_cancelled();
            let broker = registration.uid;
            let ended = abandon_marked(context, broker, usize::MAX, may_go_on).await;
            if run.lost().is_cancelled() {
                return Err(Lost.into());
            }
            if let Err(error) = ended {
                tracing::warn!(%broker, error = &error as &dyn std::error::Error,
                    "what a deregistered broker has is given up later");
            }
        }
    }
    Ok(())
}
