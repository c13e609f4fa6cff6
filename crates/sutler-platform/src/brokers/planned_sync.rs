//! The work of a sync that needs the processor for long: reads a catalog of megabytes and compares it with the known one.
//! Pure; it runs on the thread for such work.

use super::catalog_snapshot::CatalogSnapshot;
use super::unused_items::UnusedItems;
use crate::catalog::{KnownCatalog, SyncPlan, plan_sync, read_offerings};
use bytes::Bytes;
use jiff::Timestamp;
use std::sync::Arc;
use sutler_journal::Lost;
use sutler_records::run_in_background;

/// What a received catalog changes.
pub(super) struct PlannedSync {
    /// What to write.
    pub(super) plan: SyncPlan,
    /// The known catalog after that.
    pub(super) known: KnownCatalog,
}

/// Takes over a catalog, and drops nothing of the known one. `Ok(Err)`: a sentence, the text is no catalog.
pub(super) async fn plan_take_over(
    known: Arc<CatalogSnapshot>,
    body: Bytes,
    now: Timestamp,
) -> Result<Result<PlannedSync, String>, Lost> {
    in_background(move || {
        let mut known = known.known().clone();
        let offerings = read_offerings(&body).map_err(|error| error.to_string())?;
        let plan = plan_sync(&known, offerings, now, &|_, _| true);
        plan.apply(&mut known);
        Ok(PlannedSync { plan, known })
    })
    .await
}

/// Drops what the same catalog does not have and no instance uses.
pub(super) async fn plan_drops(
    known: KnownCatalog,
    body: Bytes,
    now: Timestamp,
    unused: UnusedItems,
) -> Result<Result<SyncPlan, String>, Lost> {
    in_background(move || {
        let offerings = read_offerings(&body).map_err(|error| error.to_string())?;
        let is_used = |service: &_, plan: Option<&_>| unused.is_used(service, plan);
        Ok(plan_sync(&known, offerings, now, &is_used))
    })
    .await
}

/// Runs on the thread for long work. A panic goes on in the caller, where the engine catches it.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Lost> {
    match run_in_background(async move { work() }).await {
        Ok(done) => Ok(done),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The process ends.
        Err(_) => Err(Lost),
    }
}

/// Whether some of the items are marked as removed.
pub(super) fn has_marks(known: &KnownCatalog) -> bool {
    let services = known.services().values().any(|it| it.is_removed());
    services || known.plans().values().any(|it| it.is_removed())
}
