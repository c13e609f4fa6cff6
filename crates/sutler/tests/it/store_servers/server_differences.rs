//! Differences between the kinds of servers, as far as users of the executable can observe them.

use super::fixture::{RunningProxy, opening};
use super::{ServerKind, UrlCallback};
use sutler_servers::{Proxy, Server, ServerUrl};

/// A provision and the progress of its hook; a read and a check; one row.
const TRIPS: [usize; 3] = [3, 2, 1];

#[cfg(feature = "postgres")]
pub(super) fn postgres() -> ServerKind {
    use sutler_servers::{PostgresDialect, postgres};
    /// Returns an older version to queries in this schema.
    fn older(callback: UrlCallback<'_>) {
        let Some(server) = postgres::shared() else {
            return;
        };
        let mut server_url = server.fresh_database();
        let old = "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text \
            LANGUAGE sql AS $$ SELECT CASE $1 WHEN 'server_version_num' THEN '110022' \
            WHEN 'server_version' THEN '11.22' ELSE pg_catalog.current_setting($1) END $$";
        postgres::execute(&server_url, old);
        server_url.query = format!(
            "{}&options=-csearch_path%3Dold,pg_catalog",
            server_url.query
        );
        callback(&server_url);
    }
    ServerKind {
        shared: postgres::shared,
        own: postgres::own,
        guarded: Server::fresh_database,
        wire: |server| RunningProxy::new(Proxy::to::<PostgresDialect>(server.address())),
        trips: TRIPS,
        elsewhere_ms: 50,
        open: |url| opening(async move { sutler_store_sql::PostgresStore::open(&url).await }),
        refused: include_str!("open-error-postgres.txt"),
        older,
    }
}

#[cfg(feature = "mysql")]
pub(super) fn mariadb() -> ServerKind {
    use sutler_servers::{Demands, MySqlDialect, mariadb};
    /// Its version is configurable.
    fn older(callback: UrlCallback<'_>) {
        let demands = Demands {
            arguments: vec!["--version=10.5.29-MariaDB".to_owned()],
            ..Demands::default()
        };
        if let Some(server) = mariadb::own(demands) {
            callback(&server.fresh_database());
        }
    }
    ServerKind {
        shared: mariadb::shared,
        own: mariadb::own,
        guarded: Server::fresh_database,
        wire: |server| RunningProxy::new(Proxy::to::<MySqlDialect>(server.address())),
        trips: TRIPS,
        elsewhere_ms: 500,
        open: |url| opening(async move { sutler_store_sql::MySqlStore::open(&url).await }),
        refused: include_str!("open-error-mariadb.txt"),
        older,
    }
}

#[cfg(feature = "mongodb")]
pub(super) fn mongodb() -> ServerKind {
    use sutler_servers::{MongoDialect, mongodb};
    ServerKind {
        shared: mongodb::shared,
        own: mongodb::own,
        guarded: |server| mongodb::make_user(server, "me", "mine"),
        wire: |server| RunningProxy::new(Proxy::to::<MongoDialect>(server.address())),
        // A commit is two round trips here (ADR 10).
        trips: [4, 3, 1],
        elsewhere_ms: 50,
        open: |url| opening(async move { sutler_store_mongodb::MongoStore::open(&url).await }),
        refused: include_str!("open-error-mongodb.txt"),
        // Its version cannot be changed.
        older: |_| {},
    }
}

#[cfg(feature = "etcd")]
pub(super) fn etcd() -> ServerKind {
    use sutler_servers::{EtcdDialect, etcd};
    /// Before 3.4 the gateway had other paths: requests get 404.
    fn older(callback: UrlCallback<'_>) {
        let gateway = super::open_errors::NotFoundServer::at_any_path();
        callback(&ServerUrl::of(
            &format!("etcd://{}/x", gateway.address()),
            0,
        ));
    }
    ServerKind {
        shared: etcd::shared,
        own: etcd::own,
        guarded: |server| etcd::demand_passwords(server, "me", "mine"),
        wire: |server| RunningProxy::new(Proxy::to::<EtcdDialect>(server.address())),
        trips: TRIPS,
        elsewhere_ms: 50,
        open: |url| opening(async move { sutler_store_etcd::EtcdStore::open(&url).await }),
        refused: include_str!("open-error-etcd.txt"),
        older,
    }
}
