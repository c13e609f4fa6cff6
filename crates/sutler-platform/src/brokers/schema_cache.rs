//! Compiled schemas of the plans of all brokers: those that were used last, bounded by an estimate of their bytes.
//!
//! Whoever registers a broker chooses its schemas, so nothing is compiled under the lock, and little at the same time.
//! Entries are dropped at any time, and compiled again when they are needed.

use crate::catalog::PlanKey;
use crate::preflight::{PATTERNS_BYTES_MAX, compile_schemas};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutler_osb::PinnedPlan;
use sutler_schema::ParameterSchemas;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Most bytes of all entries, as they are estimated.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of a compiled schema for each byte of its text, without patterns: an estimate.
const BYTES_PER_TEXT_BYTE: usize = 32;
/// Keyword whose compiled form may be as large as its bound.
const PATTERN_KEYWORDS: [&str; 2] = ["\"pattern\"", "\"patternProperties\""];
/// Most plans whose schemas are compiled at once in threads of their own.
const COMPILED_AT_ONCE: usize = 2;

static COMPILING: Semaphore = Semaphore::const_new(COMPILED_AT_ONCE);

/// A plan of one catalog that was read.
pub(super) type SchemaKey = (Uuid, PlanKey);

struct CachedSchemas {
    schemas: Arc<ParameterSchemas>,
    bytes: usize,
    used: u64,
}

#[derive(Default)]
struct CacheTable {
    entries: BTreeMap<SchemaKey, CachedSchemas>,
    bytes: usize,
    uses: u64,
}

/// Compiled schemas of all brokers.
pub(super) struct SchemaCache {
    table: Mutex<CacheTable>,
    bytes_max: usize,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::bounded(BYTES_MAX)
    }
}

impl SchemaCache {
    fn bounded(bytes_max: usize) -> Self {
        Self {
            table: Mutex::default(),
            bytes_max,
        }
    }

    fn table(&self) -> MutexGuard<'_, CacheTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The schemas of a plan, compiled here if they are not in the cache.
    pub(super) fn get(&self, key: &SchemaKey, plan: &PinnedPlan) -> Arc<ParameterSchemas> {
        if let Some(found) = self.table().find(key) {
            return found;
        }
        let (schemas, _) = compile_schemas(plan);
        let schemas = Arc::new(schemas);
        let bytes = estimated_bytes(plan);
        self.table()
            .keep(key.clone(), &schemas, bytes, self.bytes_max);
        schemas
    }

    /// Compiles the schemas of a plan in a thread of its own, so that [`SchemaCache::get`] finds them.
    pub(super) async fn prepare(self: &Arc<Self>, key: SchemaKey, plan: Arc<PinnedPlan>) {
        if plan.schemas.is_none() || self.table().find(&key).is_some() {
            return;
        }
        let Ok(permit) = COMPILING.acquire().await else {
            return;
        };
        let cache = self.clone();
        let compile = move || {
            cache.get(&key, &plan);
            drop(permit);
        };
        if let Err(error) = spawn_blocking(compile).await {
            tracing::warn!(%error, "the schemas of a plan were not compiled in advance");
        }
    }
}

impl CacheTable {
    fn find(&mut self, key: &SchemaKey) -> Option<Arc<ParameterSchemas>> {
        self.uses += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.uses;
        Some(entry.schemas.clone())
    }

    /// Keeps schemas, and drops those that were not used for the longest time. Too large ones are not kept.
    fn keep(
        &mut self,
        key: SchemaKey,
        schemas: &Arc<ParameterSchemas>,
        bytes: usize,
        bytes_max: usize,
    ) {
        if bytes > bytes_max || self.entries.contains_key(&key) {
            return;
        }
        while self.bytes + bytes > bytes_max {
            let oldest = self.entries.iter().min_by_key(|(_, it)| it.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            let dropped = self.entries.remove(&oldest);
            self.bytes -= dropped.map_or(0, |it| it.bytes);
        }
        self.bytes += bytes;
        let entry = CachedSchemas {
            schemas: schemas.clone(),
            bytes,
            used: self.uses,
        };
        self.entries.insert(key, entry);
    }
}

/// Bytes that the compiled schemas of a plan take at most, or so.
fn estimated_bytes(plan: &PinnedPlan) -> usize {
    let schemas = plan.schemas.as_ref();
    let all = schemas.map(|it| [it.provision(), it.update(), it.bind()]);
    let all = all.into_iter().flatten().flatten();
    all.map(|schema| {
        let text = schema.to_string();
        let has_patterns = PATTERN_KEYWORDS.iter().any(|it| text.contains(it));
        let patterns = if has_patterns { PATTERNS_BYTES_MAX } else { 0 };
        text.len() * BYTES_PER_TEXT_BYTE + patterns
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::{SchemaCache, SchemaKey, estimated_bytes};
    use crate::catalog::{OfferedService, PlanKey};
    use crate::preflight::PATTERNS_BYTES_MAX;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use sutler_osb::{PinnedPlan, ServiceOffering};
    use uuid::Uuid;

    fn plan(schema: Value) -> PinnedPlan {
        let schemas = json!({"service_instance": {"create": {"parameters": schema}}});
        let offering = json!({
            "id": "s", "name": "s", "description": "d", "bindable": true,
            "plans": [{"id": "p", "name": "p", "description": "d", "schemas": schemas}],
        });
        let offering: ServiceOffering = serde_json::from_value(offering).expect("an offering");
        let plan = offering.plans[0].clone();
        let service = OfferedService::from_offering(offering);
        let plan = crate::catalog::OfferedPlan::from_plan(service.id().clone(), plan);
        service.pinned(&plan).expect("a plan")
    }

    fn key(number: u128) -> SchemaKey {
        let key = PlanKey {
            service_id: "s".try_into().expect("an id"),
            plan_id: "p".try_into().expect("an id"),
        };
        (Uuid::from_u128(number), key)
    }

    fn kept(cache: &SchemaCache) -> Vec<u128> {
        let table = cache.table();
        table.entries.keys().map(|(id, _)| id.as_u128()).collect()
    }

    #[test]
    fn the_schemas_that_were_not_used_for_the_longest_time_are_dropped() {
        let plan = plan(json!({"type": "object"}));
        let bytes = estimated_bytes(&plan);
        let cache = SchemaCache::bounded(2 * bytes);
        for number in [1, 2, 1, 3] {
            cache.get(&key(number), &plan);
        }
        assert_eq!(kept(&cache), [1, 3]);
        assert_eq!(cache.table().bytes, 2 * bytes);
        let small = SchemaCache::bounded(bytes - 1);
        small.get(&key(1), &plan);
        assert_eq!(kept(&small), []);
    }

    #[test]
    fn a_schema_with_patterns_counts_with_all_that_they_may_take() {
        let without = plan(json!({"type": "object", "maxProperties": 1}));
        assert!(estimated_bytes(&without) < 10_000);
        let with = plan(json!({"properties": {"a": {"pattern": "^a{1,1000}$"}}}));
        assert!(estimated_bytes(&with) > PATTERNS_BYTES_MAX);
    }

    #[tokio::test]
    async fn schemas_are_compiled_in_advance_once() {
        let cache = Arc::new(SchemaCache::default());
        let plan = Arc::new(plan(json!({"required": ["a"]})));
        for _ in 0..2 {
            cache.prepare(key(1), plan.clone()).await;
        }
        assert_eq!(kept(&cache), [1]);
        let schemas = cache.get(&key(1), &plan);
        schemas
            .check_provision(&serde_json::Map::new())
            .expect_err("`a` is required");
    }
}
