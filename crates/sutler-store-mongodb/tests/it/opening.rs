//! Opening: accepted servers and users, and the objects that are created.

use crate::conformance::Mongo;
use crate::fixture::{insert, key};
use mongodb::bson::{Document as Bsons, doc};
use secrecy::SecretString;
use sutler_journal::{Cursor, Store, commit_until_known};
use sutler_servers::{CutPoint, Demands, MongoDialect, PASSWORD, Proxy, Tls, mongodb as servers};
use sutler_store_mongodb::{MongoOpenError, MongoStore};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_refused_with_a_remedy() {
    let Some(server) = servers::standalone() else {
        return;
    };
    let url = SecretString::from(server.fresh_database().url());
    let refused = MongoStore::open(&url)
        .await
        .expect_err("it has no transactions");
    let message = refused.to_string();
    assert!(
        matches!(refused, MongoOpenError::Standalone { .. }),
        "{message}"
    );
    assert!(
        message.contains("--replSet") && message.contains("rs.initiate()"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_begin_at_once_make_one_store() {
    let Some(server) = servers::shared() else {
        return;
    };
    let url = server.fresh_database().url();
    let mut opening = JoinSet::new();
    for n in 0..3 {
        let url = SecretString::from(url.as_str());
        opening.spawn(async move {
            let store = MongoStore::open(&url).await.expect("a store");
            let commit = insert(&format!("{n}"), 1);
            store.commit(&commit).await.expect("a commit");
            store
        });
    }
    for store in opening.join_all().await {
        for n in 0..3 {
            let found = store.get(&key(&format!("{n}"))).await.expect("a read");
            assert!(found.is_some(), "{n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_layout_is_refused_and_left_as_it_is() {
    let Some(mongo) = Mongo::fresh().await else {
        return;
    };
    let client = mongodb::Client::with_uri_str(mongo.place.url()).await;
    let database = client.expect("a client").database(&mongo.place.path);
    let newer = doc! { "$set": { "version": 7_i64 } };
    let meta = database.collection::<Bsons>("meta");
    let changed = meta.update_one(doc! { "_id": "layout" }, newer).await;
    changed.expect("a newer layout");
    let url = SecretString::from(mongo.place.url());
    let refused = MongoStore::open(&url).await.expect_err("it is newer");
    let message = refused.to_string();
    assert!(
        matches!(refused, MongoOpenError::Newer { found: 7, .. }),
        "{message}"
    );
    assert!(message.contains("use the newer program"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_url_is_not_quoted() {
    for url in [
        "mongodb://me:canary@",
        "mongodb://me:can@ary@host/db",
        "postgres://canary",
        "mongodb://me:canary@127.0.0.1:1/db?replicaSet=x&connectTimeoutMS=100",
    ] {
        let refused = MongoStore::open(&SecretString::from(url)).await;
        let error = refused.expect_err("nobody is there");
        let message = format!("{error} {error:?}");
        assert!(
            !message.contains("canary") && !message.contains("ary@"),
            "{message}"
        );
    }
}

/// Adds a user: the first one without a login, further ones as an administrator.
async fn add_user(url: &str, name: &str, role: Bsons) {
    let client = mongodb::Client::with_uri_str(url).await.expect("a client");
    let user = doc! { "createUser": name, "pwd": PASSWORD, "roles": [role] };
    let added = client.database("admin").run_command(user).await;
    added.expect("a user");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_read_and_write_access_is_enough() {
    let demands = Demands {
        arguments: vec!["--auth".to_owned()],
        ..Demands::default()
    };
    let Some(server) = servers::own(demands) else {
        return;
    };
    let mut place = server.fresh_database();
    let root = doc! { "role": "root", "db": "admin" };
    add_user(&server.admin_url().url(), "root", root).await;
    place.query = "directConnection=true&authSource=admin".to_owned();
    let user_role = doc! { "role": "readWrite", "db": &place.path };
    add_user(
        &place.with_user("root", PASSWORD).url(),
        "keeper",
        user_role,
    )
    .await;
    let proxy = Proxy::to::<MongoDialect>(server.address()).await;
    let mine = place.through(proxy.port()).with_user("keeper", PASSWORD);
    let store = MongoStore::open(&SecretString::from(mine.url())).await;
    let store = store.expect("a store");
    store.commit(&insert("a", 1)).await.expect("a commit");
    // Four lost responses: the store ends the session, for which the user needs permission too.
    for _ in 0..4 {
        proxy.cut(CutPoint::After);
    }
    let settled = commit_until_known(&store, &insert("b", 1)).await;
    settled.expect("a commit");
    let changes = store.changes(&Cursor::default(), 10).await;
    assert_eq!(changes.expect("changes").changes.len(), 2);
    let info = store.info().await.expect("facts about the store");
    assert_eq!(info.documents, 2);
    let wrong = place.with_user("keeper", "canary");
    let refused = MongoStore::open(&SecretString::from(wrong.url())).await;
    let message = refused.expect_err("the password is wrong").to_string();
    assert!(
        message.contains("name and password") && !message.contains("canary"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_if_the_url_requires_it() {
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let Some(server) = servers::own(demands) else {
        return;
    };
    let mut place = server.fresh_database();
    let authority = &server.certificates().authority;
    place.query = format!("directConnection=true&tls=true&tlsCAFile={authority}");
    let store = MongoStore::open(&SecretString::from(place.url())).await;
    let store = store.expect("its certificate is trusted");
    store.commit(&insert("a", 1)).await.expect("a commit");
    place.query = "directConnection=true&tls=true".to_owned();
    let refused = MongoStore::open(&SecretString::from(place.url())).await;
    let message = refused.expect_err("nobody vouches for it").to_string();
    assert!(message.contains("cannot be reached"), "{message}");
}
