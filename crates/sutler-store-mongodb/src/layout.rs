//! What is asked of the server, and the collections and indexes a store needs there.
//!
//! Everything here can be done by several replicas at once, and again: what is there already stays.

use crate::call::Caller;
use crate::rows::{Collection, DONE, int};
use crate::settings::OpenError;
use crate::trouble::{DUPLICATE_KEY, Trouble};
use mongodb::bson::{Bson, Document as Bsons, doc};
use sutler_journal::Layout;

/// The layout that this program writes.
const LAYOUT: i64 = 1;
/// The wire version of MongoDB 8.0, the first with a `bulkWrite` over several collections.
const WIRE_8_0: i64 = 25;
/// How often something is tried that another replica does at the same time.
const TRIES: usize = 20;

/// Refuses servers that cannot keep a store.
pub(crate) async fn check_server(caller: &Caller, server: &str) -> Result<(), OpenError> {
    let unreachable = |trouble: Trouble| OpenError::Unreachable {
        server: server.to_owned(),
        said: trouble.words(),
    };
    let hello = caller.admin(doc! { "hello": 1 }).await;
    let hello = hello.map_err(unreachable)?;
    judge(&hello, server)
}

/// What a server's greeting says about it.
fn judge(hello: &Bsons, server: &str) -> Result<(), OpenError> {
    let server = server.to_owned();
    if hello.get_str("msg").is_ok_and(|it| it == "isdbgrid") {
        return Err(OpenError::Sharded { server });
    }
    if !hello.contains_key("setName") {
        return Err(OpenError::Standalone { server });
    }
    match int(hello, "maxWireVersion") {
        Ok(wire) if wire >= WIRE_8_0 => Ok(()),
        Ok(wire) => Err(OpenError::Old {
            server,
            found: format!("of wire version {wire}"),
        }),
        Err(_) => Err(OpenError::Old {
            server,
            found: "of an unknown version".to_owned(),
        }),
    }
}

/// Makes what is missing. A newer layout is refused before anything is touched.
pub(crate) async fn prepare(caller: &Caller, server: &str) -> Result<Layout, OpenError> {
    let failed = |trouble: Trouble| OpenError::Layout {
        server: server.to_owned(),
        said: trouble.sentence(),
    };
    let newer = |found: i64| OpenError::Newer {
        server: server.to_owned(),
        found,
        known: LAYOUT,
    };
    let before = layout(caller).await.map_err(failed)?.unwrap_or(0);
    if before > LAYOUT {
        return Err(newer(before));
    }
    for collection in Collection::ALL {
        let made = create(caller, collection).await;
        made.map_err(failed)?;
    }
    for (id, fields) in [
        ("layout", doc! { "version": LAYOUT }),
        ("feed", doc! { "last": 0_i64, "trimmed": 0_i64 }),
        ("swept", doc! { "n": 0_i64 }),
    ] {
        let made = begin_with(caller, id, fields).await;
        made.map_err(failed)?;
    }
    // Somebody newer may have come in the meantime.
    match layout(caller).await.map_err(failed)? {
        Some(found) if found > LAYOUT => Err(newer(found)),
        Some(_) | None => Ok(Layout {
            found: before.unsigned_abs(),
            now: LAYOUT.unsigned_abs(),
        }),
    }
}

async fn layout(caller: &Caller) -> Result<Option<i64>, Trouble> {
    let found = caller
        .find_one(Collection::Meta, doc! { "_id": "layout" }, &[])
        .await?;
    found.as_ref().map(|it| int(it, "version")).transpose()
}

/// A collection and its indexes. Making an index makes its collection.
async fn create(caller: &Caller, collection: Collection) -> Result<(), Trouble> {
    let indexes = indexes(collection);
    let command = if indexes.is_empty() {
        doc! { "create": collection.name() }
    } else {
        doc! { "createIndexes": collection.name(), "indexes": indexes }
    };
    /// The collection is there already.
    const NAMESPACE_EXISTS: i32 = 48;
    for _ in 1..TRIES {
        match caller.command(command.clone()).await {
            Ok(_)
            | Err(Trouble::Refused {
                code: NAMESPACE_EXISTS,
                ..
            }) => return Ok(()),
            // Another replica makes the same one at this moment.
            Err(Trouble::Refused { .. }) => {
                let pause = crate::commit::jittered(std::time::Duration::from_millis(50));
                tokio::time::sleep(pause).await;
            }
            Err(trouble) => return Err(trouble),
        }
    }
    caller.command(command).await.map(drop)
}

fn indexes(collection: Collection) -> Vec<Bson> {
    let index = |name: &str, key: Bsons, only: Option<Bsons>| {
        let mut index = doc! { "name": name, "key": key };
        index.extend(only.map(|it| ("partialFilterExpression".to_owned(), it.into())));
        Bson::Document(index)
    };
    match collection {
        Collection::Documents => vec![index("terms", doc! { "t.$**": 1 }, None)],
        Collection::Operations => vec![
            index("lane", doc! { "lane": 1, "_id": 1 }, None),
            index(
                "claimable",
                doc! { "q": 1, "due": 1, "_id": 1 },
                Some(doc! { "o": true }),
            ),
            index(
                "unfinished",
                doc! { "u": 1, "_id": 1 },
                Some(doc! { "u": true }),
            ),
            index(
                "held",
                doc! { "w": 1 },
                Some(doc! { "w": { "$exists": true } }),
            ),
            index(
                "sweepable",
                doc! { "end": 1, "_id": 1 },
                Some(doc! { "s": DONE, "p": false }),
            ),
        ],
        Collection::Commits => vec![
            index("new", doc! { "ts": 1 }, Some(doc! { "new": true })),
            index(
                "place",
                doc! { "n": 1 },
                Some(doc! { "n": { "$exists": true } }),
            ),
        ],
        Collection::Leases => vec![index(
            "unsettled",
            doc! { "open": 1 },
            Some(doc! { "open": true }),
        )],
        Collection::Meta | Collection::Logs | Collection::LogHeads => Vec::new(),
    }
}

/// Writes a document of its own kind, unless it is there.
async fn begin_with(caller: &Caller, id: &str, fields: Bsons) -> Result<(), Trouble> {
    let collection = caller.database.collection::<Bsons>(Collection::Meta.name());
    let mut document = doc! { "_id": id };
    document.extend(fields);
    let made = collection.insert_one(document).into_future();
    match caller.bounded(made).await {
        Ok(_)
        | Err(Trouble::Refused {
            code: DUPLICATE_KEY,
            ..
        }) => Ok(()),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;
    use crate::settings::OpenError;
    use mongodb::bson::doc;

    #[test]
    fn only_replica_sets_of_a_late_enough_version_will_do() {
        let fit = doc! { "setName": "rs0", "maxWireVersion": 25 };
        assert!(judge(&fit, "host").is_ok());
        let old = doc! { "setName": "rs0", "maxWireVersion": 21 };
        assert!(matches!(judge(&old, "host"), Err(OpenError::Old { .. })));
        let alone = doc! { "maxWireVersion": 27 };
        let refused = judge(&alone, "host").map_err(|it| it.to_string());
        assert!(refused.is_err_and(|it| it.contains("--replSet") && it.contains("rs.initiate()")));
        let router = doc! { "msg": "isdbgrid", "maxWireVersion": 27 };
        assert!(matches!(
            judge(&router, "host"),
            Err(OpenError::Sharded { .. })
        ));
    }
}
