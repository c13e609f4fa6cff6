//! Three replicas under load while connections are cut, replicas are isolated and the server is killed.

use crate::conformance::{Etcd, endpoint};
use std::sync::Arc;
use std::time::Duration;
use sutler_journal::Store;
use sutler_journal::conformance::check_under_faults;
use sutler_servers::{EtcdDialect, Proxy, Server, inject_fault};
use sutler_store_etcd::{EtcdSettings, EtcdStore};

const REPLICAS: usize = 3;
const BLOWS: usize = 18;

async fn replica(settings: &EtcdSettings, server: &Server) -> (Proxy, Arc<dyn Store>) {
    let proxy = Proxy::to::<EtcdDialect>(server.address()).await;
    let mut settings = settings.clone();
    settings.endpoints = vec![endpoint(&proxy)];
    settings.request_timeout = Duration::from_secs(1);
    let store = EtcdStore::open_with(&settings).await.expect("a store");
    (proxy, Arc::new(store))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_commits_are_applied_once_under_faults() {
    let Some(server) = crate::server::own() else {
        return;
    };
    let etcd = Etcd::on(&server).await;
    let (mut proxies, mut stores) = (Vec::new(), Vec::new());
    for _ in 0..REPLICAS {
        let (proxy, store) = replica(&etcd.settings, &server).await;
        proxies.push(proxy);
        stores.push(store);
    }
    let blow = |n: usize| inject_fault(n, &proxies[n % REPLICAS], &server);
    check_under_faults(etcd.current(), stores, BLOWS, blow).await;
}
