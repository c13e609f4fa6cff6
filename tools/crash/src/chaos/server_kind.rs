//! The servers for chaos runs: one line each.

use clap::ValueEnum;
use sutler_servers::{Demands, Server, etcd, mariadb, mongodb, postgres};

/// A make of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerKind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or MySQL.
    Mysql,
    /// etcd.
    Etcd,
    /// A replica set of MongoDB with one member.
    Mongodb,
}

impl ServerKind {
    /// Starts a server; `None`, with a report, if it is not installed.
    pub fn own(self) -> Option<Server> {
        match self {
            Self::Postgres => postgres::own(Demands::default()),
            Self::Mysql => mariadb::own(Demands::default()),
            Self::Etcd => etcd::own(Demands::default()),
            Self::Mongodb => mongodb::own(Demands::default()),
        }
    }
}
