//! Reads of the whole store, for copies and inspections.

use crate::error::MongoError;
use crate::key_encoding;
use crate::read::{options, union};
use crate::rows::{self, Collection, RUNNING, int, now};
use crate::store::MongoStore;
use mongodb::bson::{Bson, Document as Bsons, doc};
use sutler_journal::{IndexedDocument, StoreInfo, Term};

impl MongoStore {
    /// Documents with their terms, by key, from these bytes on.
    pub(crate) async fn with_terms(
        &self,
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<IndexedDocument>, MongoError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let filter = doc! { "_id": { "$gte": key_encoding::text(from) } };
        let options = options(doc! { "_id": 1 }, limit);
        let found = self
            .commands
            .find(Collection::Documents, filter, options)
            .await?;
        found.iter().map(read_indexed).collect()
    }

    /// Counts the commits of the feed.
    pub(crate) async fn count_feed(&self) -> Result<u64, MongoError> {
        let pipeline = vec![doc! { "$count": "feed" }];
        let found = self
            .commands
            .snapshot(Collection::Commits, pipeline)
            .await?;
        Ok(parse_info(&found)?.feed)
    }

    /// Counts everything at one moment; the size is read afterwards.
    pub(crate) async fn read_info(&self) -> Result<StoreInfo, MongoError> {
        let lives = doc! { "$gt": ["$until", now()] };
        let count = |name: &str| doc! { "$count": name };
        let leases = |name: &str, lives: Bsons| {
            union(
                Collection::Leases,
                vec![doc! { "$match": { "$expr": lives } }, count(name)],
            )
        };
        let pipeline = vec![
            doc! { "$match": { "_id": "none" } },
            union(Collection::Documents, vec![count("documents")]),
            union(Collection::Commits, vec![count("feed")]),
            leases("leases", lives.clone()),
            leases("leases_over", doc! { "$not": [lives] }),
            union(Collection::Operations, abandoned()),
            union(Collection::LogHeads, strays()),
        ];
        let found = self.commands.snapshot(Collection::Meta, pipeline).await?;
        let mut info = parse_info(&found)?;
        info.layout = self.layout;
        let size = self.commands.command(doc! { "dbStats": 1 }).await?;
        info.bytes = size.get("totalSize").and_then(whole_number);
        Ok(info)
    }
}

/// Counts running operations whose worker holds no lease.
fn abandoned() -> Vec<Bsons> {
    vec![
        doc! { "$match": { "u": true, "s": RUNNING } },
        with(Collection::Leases, "w"),
        doc! { "$match": { "$expr": { "$not": [{ "$gt": [{ "$max": "$with.until" }, now()] }] } } },
        doc! { "$count": "abandoned" },
    ]
}

/// Counts logs whose operation does not exist.
fn strays() -> Vec<Bsons> {
    vec![
        with(Collection::Operations, "_id"),
        doc! { "$match": { "with": [] } },
        doc! { "$count": "stray_logs" },
    ]
}

/// Joins documents of another collection by the id in this field.
fn with(other: Collection, field: &str) -> Bsons {
    doc! { "$lookup": {
        "from": other.name(),
        "localField": field,
        "foreignField": "_id",
        "pipeline": [{ "$project": { "until": 1 } }],
        "as": "with",
    } }
}

/// A count of zero is missing in the result.
fn parse_info(found: &[Bsons]) -> Result<StoreInfo, MongoError> {
    let count = |name: &str| {
        let row = found.iter().find(|it| it.contains_key(name));
        let number = row.map_or(Ok(0), |it| int(it, name))?;
        u64::try_from(number).map_err(|_| MongoError::odd("a count"))
    };
    Ok(StoreInfo {
        documents: count("documents")?,
        leases: count("leases")?,
        leases_over: count("leases_over")?,
        abandoned: count("abandoned")?,
        feed: count("feed")?,
        stray_logs: count("stray_logs")?,
        ..StoreInfo::default()
    })
}

/// Converts a size, which the server returns as any number type.
fn whole_number(value: &Bson) -> Option<u64> {
    match value {
        Bson::Int32(it) => u64::try_from(*it).ok(),
        Bson::Int64(it) => u64::try_from(*it).ok(),
        Bson::Double(it) if it.is_finite() && *it >= 0.0 => format!("{it:.0}").parse().ok(),
        _ => None,
    }
}

fn read_indexed(row: &Bsons) -> Result<IndexedDocument, MongoError> {
    let odd = || MongoError::odd("a term");
    let mut terms = Vec::new();
    if let Ok(found) = row.get_document("t") {
        for (field, entry) in found {
            let name = key_encoding::name(field).ok_or_else(odd)?;
            let value = entry.as_str().and_then(key_encoding::value);
            terms.push(Term::read(name, value.ok_or_else(odd)?));
        }
    }
    Ok(IndexedDocument::new(rows::read_document(row)?, terms))
}

#[cfg(test)]
mod tests {
    use super::{parse_info, whole_number};
    use mongodb::bson::{Bson, doc};

    #[test]
    fn an_absent_count_is_zero() {
        let info = parse_info(&[doc! { "feed": 3 }, doc! { "leases": 1_i64 }]);
        let info = info.expect("facts about the store");
        assert_eq!((info.feed, info.leases, info.documents), (3, 1, 0));
    }

    #[test]
    fn a_size_may_have_any_number_type() {
        for size in [Bson::Int32(7), Bson::Int64(7), Bson::Double(7.0)] {
            assert_eq!(whole_number(&size), Some(7));
        }
        assert_eq!(whole_number(&Bson::Double(-1.0)), None);
    }
}
