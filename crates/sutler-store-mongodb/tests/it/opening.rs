//! Which servers are taken, by whom, and what is made there.

use crate::candidate::Mongo;
use crate::scene::{insert, key};
use mongodb::bson::{Document as Bsons, doc};
use secrecy::SecretString;
use sutler_journal::Store;
use sutler_servers::{Demands, Tls, mongodb as servers};
use sutler_store_mongodb::{MongoStore, OpenError};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_refused_with_a_way_on() {
    let Some(server) = servers::standalone() else {
        return;
    };
    let url = SecretString::from(server.fresh().url());
    let refused = MongoStore::open(&url)
        .await
        .expect_err("it has no transactions");
    let said = refused.to_string();
    assert!(matches!(refused, OpenError::Standalone { .. }), "{said}");
    assert!(
        said.contains("--replSet") && said.contains("rs.initiate()"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_begin_at_once_make_one_store() {
    let Some(server) = servers::shared() else {
        return;
    };
    let url = server.fresh().url();
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
    let said = refused.to_string();
    assert!(
        matches!(refused, OpenError::Newer { found: 7, .. }),
        "{said}"
    );
    assert!(said.contains("use the newer program"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_none_is_not_quoted() {
    for url in [
        "mongodb://me:canary@",
        "mongodb://me:can@ary@host/db",
        "postgres://canary",
        "mongodb://me:canary@127.0.0.1:1/db?replicaSet=x&connectTimeoutMS=100",
    ] {
        let refused = MongoStore::open(&SecretString::from(url)).await;
        let error = refused.expect_err("nobody is there");
        let said = format!("{error} {error:?}");
        assert!(!said.contains("canary") && !said.contains("ary@"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_where_the_url_says_so() {
    let demands = Demands {
        tls: Tls::Server,
        ..Demands::default()
    };
    let Some(server) = servers::own(demands) else {
        return;
    };
    let mut place = server.fresh();
    let authority = &server.certificates().authority;
    place.query = format!("directConnection=true&tls=true&tlsCAFile={authority}");
    let store = MongoStore::open(&SecretString::from(place.url())).await;
    let store = store.expect("its certificate is trusted");
    store.commit(&insert("a", 1)).await.expect("a commit");
    place.query = "directConnection=true&tls=true".to_owned();
    let refused = MongoStore::open(&SecretString::from(place.url())).await;
    let said = refused.expect_err("nobody vouches for it").to_string();
    assert!(said.contains("cannot be reached"), "{said}");
}
