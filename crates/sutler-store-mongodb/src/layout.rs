//! Requirements of the server, and the collections and indexes of a store.
//!
//! Several replicas can do all of this concurrently and repeatedly: existing objects stay.

use crate::commands::CommandClient;
use crate::error::{DUPLICATE_KEY, MongoError};
use crate::rows::{Collection, DONE, int};
use crate::settings::MongoOpenError;
use mongodb::bson::{Bson, Document as Bsons, doc};
use sutler_journal::Layout;

/// Layout version that this program writes.
const LAYOUT: i64 = 1;
/// The wire version of MongoDB 8.0, the first with a `bulkWrite` over several collections.
const WIRE_8_0: i64 = 25;
/// Attempts of a step that another replica does at the same time.
const TRIES: usize = 20;

/// Refuses servers that cannot hold a store.
pub(crate) async fn check_server(
    commands: &CommandClient,
    server: &str,
) -> Result<(), MongoOpenError> {
    let unreachable = |trouble: MongoError| MongoOpenError::Unreachable {
        server: server.to_owned(),
        said: trouble.words(),
    };
    let hello = commands.admin(doc! { "hello": 1 }).await;
    let hello = hello.map_err(unreachable)?;
    check_layout(&hello, server)
}

/// Checks the server's `hello` response.
fn check_layout(hello: &Bsons, server: &str) -> Result<(), MongoOpenError> {
    let server = server.to_owned();
    if hello.get_str("msg").is_ok_and(|it| it == "isdbgrid") {
        return Err(MongoOpenError::Sharded { server });
    }
    if !hello.contains_key("setName") {
        return Err(MongoOpenError::Standalone { server });
    }
    match int(hello, "maxWireVersion") {
        Ok(wire) if wire >= WIRE_8_0 => Ok(()),
        Ok(wire) => Err(MongoOpenError::Old {
            server,
            found: format!("of wire version {wire}"),
        }),
        Err(_) => Err(MongoOpenError::Old {
            server,
            found: "of an unknown version".to_owned(),
        }),
    }
}

/// Creates missing objects. A newer layout is refused before anything is changed.
pub(crate) async fn prepare(
    commands: &CommandClient,
    server: &str,
) -> Result<Layout, MongoOpenError> {
    let failed = |trouble: MongoError| MongoOpenError::Layout {
        server: server.to_owned(),
        said: trouble.sentence(),
    };
    let newer = |found: i64| MongoOpenError::Newer {
        server: server.to_owned(),
        found,
        known: LAYOUT,
    };
    let before = layout(commands).await.map_err(failed)?.unwrap_or(0);
    if before > LAYOUT {
        return Err(newer(before));
    }
    for collection in Collection::ALL {
        let made = create(commands, collection).await;
        made.map_err(failed)?;
    }
    for (id, fields) in [
        ("layout", doc! { "version": LAYOUT }),
        ("feed", doc! { "last": 0_i64, "trimmed": 0_i64 }),
        ("swept", doc! { "n": 0_i64 }),
    ] {
        let made = begin_with(commands, id, fields).await;
        made.map_err(failed)?;
    }
    // A newer program may have upgraded it meanwhile.
    match layout(commands).await.map_err(failed)? {
        Some(found) if found > LAYOUT => Err(newer(found)),
        Some(_) | None => Ok(Layout {
            found: before.unsigned_abs(),
            now: LAYOUT.unsigned_abs(),
        }),
    }
}

async fn layout(commands: &CommandClient) -> Result<Option<i64>, MongoError> {
    let found = commands
        .find_one(Collection::Meta, doc! { "_id": "layout" }, &[])
        .await?;
    found.as_ref().map(|it| int(it, "version")).transpose()
}

/// Creates a collection and its indexes. Creating an index creates its collection.
async fn create(commands: &CommandClient, collection: Collection) -> Result<(), MongoError> {
    let indexes = indexes(collection);
    let command = if indexes.is_empty() {
        doc! { "create": collection.name() }
    } else {
        doc! { "createIndexes": collection.name(), "indexes": indexes }
    };
    /// Error code: the collection exists already.
    const NAMESPACE_EXISTS: i32 = 48;
    for _ in 1..TRIES {
        match commands.command(command.clone()).await {
            Ok(_)
            | Err(MongoError::Refused {
                code: NAMESPACE_EXISTS,
                ..
            }) => return Ok(()),
            // Another replica creates the same one at this moment.
            Err(MongoError::Refused { .. }) => {
                let pause = crate::commit::jittered(std::time::Duration::from_millis(50));
                tokio::time::sleep(pause).await;
            }
            Err(trouble) => return Err(trouble),
        }
    }
    commands.command(command).await.map(drop)
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

/// Inserts a document of the `Meta` collection, unless it exists.
async fn begin_with(commands: &CommandClient, id: &str, fields: Bsons) -> Result<(), MongoError> {
    let collection = commands
        .database
        .collection::<Bsons>(Collection::Meta.name());
    let mut document = doc! { "_id": id };
    document.extend(fields);
    let made = collection.insert_one(document).into_future();
    match commands.bounded(made).await {
        Ok(_)
        | Err(MongoError::Refused {
            code: DUPLICATE_KEY,
            ..
        }) => Ok(()),
        Err(trouble) => Err(trouble),
    }
}

#[cfg(test)]
mod tests {
    use super::check_layout;
    use crate::settings::MongoOpenError;
    use mongodb::bson::doc;

    #[test]
    fn only_replica_sets_of_a_late_enough_version_will_do() {
        let fit = doc! { "setName": "rs0", "maxWireVersion": 25 };
        assert!(check_layout(&fit, "host").is_ok());
        let old = doc! { "setName": "rs0", "maxWireVersion": 21 };
        assert!(matches!(
            check_layout(&old, "host"),
            Err(MongoOpenError::Old { .. })
        ));
        let alone = doc! { "maxWireVersion": 27 };
        let refused = check_layout(&alone, "host").map_err(|it| it.to_string());
        assert!(refused.is_err_and(|it| it.contains("--replSet") && it.contains("rs.initiate()")));
        let router = doc! { "msg": "isdbgrid", "maxWireVersion": 27 };
        assert!(matches!(
            check_layout(&router, "host"),
            Err(MongoOpenError::Sharded { .. })
        ));
    }
}
