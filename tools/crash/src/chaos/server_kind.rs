//! The servers for chaos runs, each with the settings that its promises need.

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
            // Otherwise a killed server may lose a commit that it acknowledged just before.
            Self::Mysql => mariadb::own(with(&["--innodb-flush-log-at-trx-commit=1"])),
            Self::Etcd => etcd::own(Demands::default()),
            // The transaction of a killed replica holds its lane for that long (ADR 10); the default is a minute.
            Self::Mongodb => mongodb::own(with(&[
                "--setParameter",
                "transactionLifetimeLimitSeconds=10",
            ])),
        }
    }
}

fn with(arguments: &[&str]) -> Demands {
    Demands {
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        ..Demands::default()
    }
}
