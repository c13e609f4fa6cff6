//! After the last victim ended: opens its store and checks counts.

use crate::effects::EffectsReport;
use crate::platform::Platform;
use crate::victim::steps_of;
use crate::violation::{CheckResult, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use sutler_journal::{
    OperationFilter, OperationId, OperationList, OperationRow, Outcome, State, Store, StoreError,
};
use sutler_store_sqlite::SqliteStore;

/// Operations per read.
const PAGE: usize = 500;
/// The broker's own scheduled work, which always waits for its next run.
const SCHEDULED: &str = "cleanup";

/// Result of the audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    /// Operations in the store, without scheduled work.
    pub operations: u64,
    /// Number of operations that a 202 had named.
    pub acknowledged: u64,
}

/// Compares the store with the responses to platforms and with the effect log.
///
/// # Guarantees
/// Every acknowledged operation exists and succeeded; none is unfinished; none failed; each
/// resource was created and removed by exactly one operation, with all its steps; the counts add up;
/// operations that ended according to the effect log still exist.
///
/// # Errors
/// The first violation.
pub async fn audit(
    db: &Path,
    platforms: &[Platform],
    effects: &EffectsReport,
) -> CheckResult<AuditReport> {
    let opened = SqliteStore::open(db).await;
    let store = opened.map_err(|error| Violation::new(format!("the store: {error}")))?;
    let unread = |error: StoreError| Violation::new(format!("the store: {error}"));
    let stats = store.stats().await.map_err(unread)?;
    if stats.accepted != stats.live + stats.terminal + stats.cleaned {
        return Err(Violation::new(format!(
            "the counts do not add up: {stats:?}"
        )));
    }
    let rows = all_operations(&store).await.map_err(unread)?;
    store.close().await;
    let mut report = AuditReport::default();
    let mut ids = BTreeSet::new();
    let mut by_lane: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.verb != SCHEDULED) {
        report.operations += 1;
        if row.state != State::Done(Outcome::Succeeded) {
            let sentence = format!("{} {} is {:?}", row.verb, row.id, row.state);
            return Err(Violation::new(sentence));
        }
        let id = row.id.to_string();
        let steps = effects.steps.get(&id).copied().unwrap_or(0);
        if steps != steps_of(&row.verb) {
            let sentence = format!("{} {id} succeeded after {steps} steps", row.verb);
            return Err(Violation::new(sentence));
        }
        ids.insert(id);
        let lane = format!("{}/{}", row.lane.id(0), row.lane.id(1));
        *by_lane.entry((lane, row.verb.to_string())).or_default() += 1;
    }
    let twice = by_lane
        .iter()
        .find(|((_, verb), count)| verb != "update" && **count != 1);
    if let Some(((lane, verb), count)) = twice {
        return Err(Violation::new(format!("{lane}: {count} operations {verb}")));
    }
    if let Some(lost) = effects
        .done
        .difference(&ids)
        .find(|id| !scheduled(&rows, id))
    {
        return Err(Violation::new(format!(
            "the end of {lost} was durable and is lost"
        )));
    }
    for platform in platforms {
        for (operation, verb) in &platform.acknowledged {
            report.acknowledged += 1;
            if !ids.contains(operation) {
                return Err(Violation::new(format!("{verb} {operation} is lost")));
            }
        }
        let updates = by_lane.get(&(format!("{}/", platform.instance), "update".to_owned()));
        let sent = platform.sent.get("update").copied().unwrap_or(0);
        if updates.is_some_and(|count| *count > sent) {
            let sentence = format!("{}: more updates than were sent", platform.instance);
            return Err(Violation::new(sentence));
        }
    }
    Ok(report)
}

fn scheduled(rows: &[OperationRow], id: &str) -> bool {
    rows.iter()
        .any(|row| row.verb == SCHEDULED && row.id.to_string() == id)
}

async fn all_operations(store: &SqliteStore) -> Result<Vec<OperationRow>, StoreError> {
    let mut all: Vec<OperationRow> = Vec::new();
    loop {
        let before: Option<OperationId> = all.last().map(|row| row.id);
        let list = OperationList {
            filter: OperationFilter::All,
            before,
            limit: PAGE,
        };
        let page = store.operations(&list).await?;
        let full = page.len() == PAGE;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}
