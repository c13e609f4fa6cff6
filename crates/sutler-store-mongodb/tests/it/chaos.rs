//! Three replicas under load while connections are cut, replicas are isolated and the server is killed.

use crate::conformance::Mongo;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::Store;
use sutler_journal::conformance::check_under_faults;
use sutler_servers::{
    Demands, MongoDialect, Proxy, Server, ServerUrl, inject_fault, mongodb as servers,
};
use sutler_store_mongodb::{MongoSettings, MongoStore};

const REPLICAS: usize = 3;
const BLOWS: usize = 18;

async fn replica(place: &ServerUrl, server: &Server) -> (Proxy, Arc<dyn Store>) {
    let proxy = Proxy::to::<MongoDialect>(server.address()).await;
    let url = SecretString::from(place.through(proxy.port()).url());
    let settings = MongoSettings {
        select_timeout: Duration::from_secs(1),
        command_timeout: Duration::from_secs(1),
        answer_timeout: Duration::from_secs(2),
        ..MongoSettings::default()
    };
    let store = MongoStore::open_with(&url, settings).await;
    (proxy, Arc::new(store.expect("a store")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_commits_are_applied_once_under_faults() {
    let Some(server) = servers::own(Demands::default()) else {
        return;
    };
    let mongo = Mongo::on(&server).await;
    let (mut proxies, mut stores) = (Vec::new(), Vec::new());
    for _ in 0..REPLICAS {
        let (proxy, store) = replica(&mongo.place, &server).await;
        proxies.push(proxy);
        stores.push(store);
    }
    let blow = |n: usize| inject_fault(n, &proxies[n % REPLICAS], &server);
    check_under_faults(mongo.current(), stores, BLOWS, blow).await;
}
