//! An etcd server for the tests, with the store's settings for it.
//!
//! Not here: starting it (`sutler-servers`).

use sutler_servers::{Demands, Server, etcd};
use sutler_store_etcd::EtcdSettings;

/// A server for one test, which may stop it.
pub(crate) fn own() -> Option<Server> {
    etcd::own(Demands::default())
}

/// Settings to connect to it.
pub(crate) fn settings_of(server: &Server) -> EtcdSettings {
    EtcdSettings::from_url(&server.admin_url().url()).expect("a URL")
}
