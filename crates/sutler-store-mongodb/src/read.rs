//! Reads: single records, pages, counts, the clock.

use crate::error::MongoError;
use crate::key_encoding;
use crate::rows::{self, Collection, READY, RUNNING, WAITING, int, uuid};
use crate::store::MongoStore;
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::{FindOptions, Hint, ReadConcern};
use sutler_journal::{
    Document, Key, List, Operation, OperationFilter, OperationId, OperationList, OperationRow,
    Page, PolledOperation, Position, Queue, QueueStats, Stats, StoreTime,
};

/// Maximum documents per response; the server limits the bytes itself.
const BATCH_MAX: usize = 10_000;

/// A range of documents, ordered by one field.
#[derive(Debug, PartialEq)]
struct DocumentRange {
    field: String,
    bounds: Bsons,
    /// Whether it is a list by term.
    by_term: bool,
}

impl DocumentRange {
    /// The documents of a list after a position.
    fn of(list: &List, after: Option<&Position>) -> Self {
        match list {
            List::Prefix(prefix) => {
                let prefix = key_encoding::text(prefix);
                let after = after.map(|it| key_encoding::key(&it.key));
                let end = (!prefix.is_empty()).then(|| key_encoding::above(&prefix));
                Self {
                    field: "_id".to_owned(),
                    bounds: bounds(prefix, after, end),
                    by_term: false,
                }
            }
            List::Term {
                realm,
                kind,
                name,
                from,
                to,
            } => {
                let (realm, kind) = (realm.as_str(), kind.as_str());
                let after =
                    after.map(|it| key_encoding::entry(realm, kind, &it.value, it.key.as_bytes()));
                let first = key_encoding::first_entry(realm, kind, from);
                let end = key_encoding::past_entry(realm, kind, to);
                Self {
                    field: format!("t.{}", key_encoding::field(name)),
                    bounds: bounds(first, after, Some(end)),
                    by_term: true,
                }
            }
        }
    }
}

fn bounds(first: String, after: Option<String>, end: Option<String>) -> Bsons {
    let mut bounds = match after {
        Some(after) if after >= first => doc! { "$gt": after },
        Some(_) | None => doc! { "$gte": first },
    };
    bounds.extend(end.map(|it| ("$lt".to_owned(), Bson::String(it))));
    bounds
}

impl MongoStore {
    pub(crate) async fn read_one(&self, key: &Key) -> Result<Option<Document>, MongoError> {
        let filter = doc! { "_id": key_encoding::key(key) };
        let fields = ["v", "b"];
        let found = self
            .commands
            .find_surely(Collection::Documents, filter, &fields)
            .await?;
        found.as_ref().map(rows::read_document).transpose()
    }

    pub(crate) async fn whole(&self, id: OperationId) -> Result<Option<Operation>, MongoError> {
        let filter = doc! { "_id": uuid(id.0) };
        let found = self
            .commands
            .find_surely(Collection::Operations, filter, &[])
            .await?;
        found.as_ref().map(rows::read_operation).transpose()
    }

    pub(crate) async fn polled(
        &self,
        lane: &Key,
        id: OperationId,
    ) -> Result<Option<PolledOperation>, MongoError> {
        let filter = doc! { "_id": uuid(id.0), "lane": key_encoding::key(lane) };
        let found = self
            .commands
            .find_surely(Collection::Operations, filter, &rows::POLLED)
            .await?;
        found.as_ref().map(rows::read_polled).transpose()
    }

    pub(crate) async fn page(
        &self,
        list: &List,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Page, MongoError> {
        let range = DocumentRange::of(list, after);
        let sort = doc! { &range.field: 1 };
        let filter = doc! { &range.field: range.bounds };
        // One more than the page shows whether more follow.
        let options = options(sort, limit.saturating_add(1));
        let mut found = self
            .commands
            .find(Collection::Documents, filter, options)
            .await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let documents: Result<Vec<Document>, MongoError> =
            found.iter().map(rows::read_document).collect();
        let documents = documents?;
        let next = match (documents.last(), found.last()) {
            (Some(last), Some(row)) if more => Some(Position {
                value: if range.by_term {
                    value_in(row, &range.field)?
                } else {
                    Vec::new()
                },
                key: last.key.clone(),
            }),
            _ => None,
        };
        Ok(Page { documents, next })
    }

    pub(crate) async fn rows(&self, list: &OperationList) -> Result<Vec<OperationRow>, MongoError> {
        if list.limit == 0 {
            return Ok(Vec::new());
        }
        let (mut filter, index) = match &list.filter {
            OperationFilter::All => (doc! {}, "_id_"),
            OperationFilter::Lane(lane) => (doc! { "lane": key_encoding::key(lane) }, "lane"),
            OperationFilter::Unfinished => (doc! { "u": true }, "unfinished"),
        };
        if let Some(before) = list.before {
            filter.insert("_id", doc! { "$lt": uuid(before.0) });
        }
        let mut options = options(doc! { "_id": -1 }, list.limit);
        options.projection = Some(doc! { "rq": 0, "pr": 0 });
        // While there are few documents, the server might choose another index.
        options.hint = Some(Hint::Name(index.to_owned()));
        let found = self
            .commands
            .find(Collection::Operations, filter, options)
            .await?;
        found.iter().map(rows::read_row).collect()
    }

    /// Counts at one moment.
    pub(crate) async fn counts(&self) -> Result<Stats, MongoError> {
        let in_state =
            |state: i32| doc! { "$sum": { "$cond": [{ "$eq": ["$s", state] }, 1_i64, 0_i64] } };
        let queues = vec![
            doc! { "$match": { "u": true } },
            doc! { "$group": {
                "_id": "$q",
                "waiting": in_state(WAITING),
                "ready": in_state(READY),
                "running": in_state(RUNNING),
                "oldest": { "$min": "$at" },
            } },
        ];
        let all = vec![
            // The index is smaller than the collection.
            doc! { "$match": { "lane": { "$gte": "" } } },
            doc! { "$group": { "_id": Bson::Null, "all": { "$sum": 1_i64 } } },
        ];
        let pipeline = vec![
            doc! { "$match": { "_id": "swept" } },
            union(Collection::Operations, queues),
            union(Collection::Operations, all),
        ];
        let found = self.commands.snapshot(Collection::Meta, pipeline).await?;
        read_counts(&found)
    }

    pub(crate) async fn time(&self) -> Result<StoreTime, MongoError> {
        let pipeline = vec![
            doc! { "$match": { "_id": "layout" } },
            doc! { "$project": { "now": rows::now() } },
        ];
        let found = self.commands.aggregate(Collection::Meta, pipeline).await?;
        let now = found.first().map(|it| int(it, "now"));
        now.unwrap_or_else(|| Err(MongoError::odd("the time")))
            .map(StoreTime)
    }
}

/// Appends the results of another collection.
pub(crate) fn union(collection: Collection, pipeline: Vec<Bsons>) -> Bsons {
    doc! { "$unionWith": { "coll": collection.name(), "pipeline": pipeline } }
}

/// Options of a list: sort order, limit, one batch if it fits, and one moment: without a snapshot, a document that
/// is changed meanwhile may be found twice or not at all.
pub(crate) fn options(sort: Bsons, limit: usize) -> FindOptions {
    let mut options = FindOptions::default();
    options.read_concern = Some(ReadConcern::snapshot());
    options.sort = Some(sort);
    options.limit = Some(i64::try_from(limit.max(1)).unwrap_or(i64::MAX));
    options.batch_size = u32::try_from(limit.clamp(1, BATCH_MAX)).ok();
    options
}

fn read_counts(found: &[Bsons]) -> Result<Stats, MongoError> {
    let mut stats = Stats::default();
    let mut all = 0;
    let count =
        |row: &Bsons, name| u64::try_from(int(row, name)?).map_err(|_| MongoError::odd("a count"));
    for row in found {
        if row.contains_key("all") {
            all = count(row, "all")?;
            continue;
        }
        if row.contains_key("n") {
            stats.cleaned = count(row, "n")?;
            continue;
        }
        let queue = row.get_str("_id").map_err(|_| MongoError::odd("a queue"))?;
        stats.queues.push(QueueStats {
            queue: Queue::of(queue),
            waiting: count(row, "waiting")?,
            ready: count(row, "ready")?,
            running: count(row, "running")?,
            oldest: StoreTime(int(row, "oldest")?),
        });
    }
    stats.queues.sort_by(|a, b| a.queue.cmp(&b.queue));
    let unfinished = |it: &QueueStats| it.waiting + it.ready + it.running;
    stats.live = stats.queues.iter().map(unfinished).sum();
    stats.terminal = all.saturating_sub(stats.live);
    stats.accepted = all + stats.cleaned;
    Ok(stats)
}

/// The value by which a document was listed.
fn value_in(row: &Bsons, field: &str) -> Result<Vec<u8>, MongoError> {
    let odd = || MongoError::odd("a term");
    let name = field.trim_start_matches("t.");
    let terms = row.get_document("t").map_err(|_| odd())?;
    let entry = terms.get_str(name).map_err(|_| odd())?;
    key_encoding::value(entry).ok_or_else(odd)
}

#[cfg(test)]
mod tests {
    use super::{DocumentRange, read_counts};
    use mongodb::bson::{Bson, doc};
    use sutler_journal::{Key, Kind, List, Position, Realm};

    #[test]
    fn a_position_outside_the_list_is_its_beginning() {
        let realm = Realm::new("r").expect("a realm");
        let kind = Kind::new("k");
        let key = Key::new(&realm, kind, &["a"]).expect("a key");
        let list = List::term(&realm, kind, "plan", b"m");
        let before = Position {
            value: b"a".to_vec(),
            key,
        };
        assert_eq!(
            DocumentRange::of(&list, Some(&before)),
            DocumentRange::of(&list, None)
        );
        assert_eq!(DocumentRange::of(&list, None).field, "t.plan");
    }

    #[test]
    fn accepted_is_live_and_terminal_and_cleaned() {
        let found = [
            doc! { "_id": "swept", "n": 3_i64 },
            doc! { "_id": "work", "waiting": 1_i64, "ready": 2, "running": 0_i64, "oldest": 7_i64 },
            doc! { "_id": Bson::Null, "all": 10_i64 },
        ];
        let stats = read_counts(&found).expect("counts");
        assert_eq!(
            (stats.accepted, stats.live, stats.terminal, stats.cleaned),
            (13, 3, 7, 3)
        );
    }
}
