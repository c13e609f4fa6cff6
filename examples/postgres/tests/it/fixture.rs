//! Fixture: a broker with its own prefix on a server, and counts of the objects it left.

use crate::broker_process::{Program, Start};
use crate::sql::Session;
use serde_json::{Value, json};
use sutler_servers::{Demands, Server, postgres};
use tempfile::TempDir;

/// A server, of one test or shared.
pub(crate) enum TestServer {
    Own(Box<Server>),
    Shared(&'static Server),
}

impl std::ops::Deref for TestServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::Own(server) => server,
            Self::Shared(server) => server,
        }
    }
}

/// A server for one test, which may stop it. Its log contains every statement, so that it can be searched for
/// secrets.
pub(crate) fn own() -> Option<TestServer> {
    let demands = Demands {
        arguments: ["-c", "log_statement=all"].map(str::to_owned).into(),
        ..Demands::default()
    };
    Some(TestServer::Own(Box::new(postgres::own(demands)?)))
}

/// The server that tests share.
pub(crate) fn shared() -> Option<TestServer> {
    postgres::shared().map(TestServer::Shared)
}

pub(crate) struct Fixture {
    pub(crate) server: TestServer,
    pub(crate) folder: TempDir,
    pub(crate) prefix: &'static str,
    pub(crate) broker: Program,
}

impl Fixture {
    /// A fixture on the shared server. The prefix belongs to one test.
    pub(crate) fn shared(prefix: &'static str) -> Option<Self> {
        Some(Self::on(shared()?, prefix))
    }

    pub(crate) fn on(server: TestServer, prefix: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let broker = Start::new(&server, prefix, folder.path()).run();
        Self {
            server,
            folder,
            prefix,
            broker,
        }
    }

    /// A session of the server's operator.
    pub(crate) async fn operator(&self) -> Session {
        let session = Session::open(&self.server.admin_url().url()).await;
        session.expect("the operator may come in")
    }

    /// Numbers of databases and roles of this test.
    pub(crate) async fn left(&self) -> (i64, i64) {
        let mut operator = self.operator().await;
        let prefix = self.prefix;
        let count = |of: &str| format!("SELECT count(*) FROM {of} LIKE '{prefix}\\_%'");
        let databases = operator.number(&count("pg_database WHERE datname")).await;
        let roles = operator.number(&count("pg_roles WHERE rolname")).await;
        (databases, roles)
    }

    pub(crate) async fn provision(&self, instance: &str) {
        let answer = self.broker.provision(instance, json!({})).await;
        assert_eq!(answer, (201, json!({})));
    }

    /// Credentials of a new binding.
    pub(crate) async fn bind(&self, instance: &str, binding: &str) -> Value {
        let (status, body) = self.broker.bind(instance, binding).await;
        assert_eq!(status, 201, "{body}");
        body["credentials"].clone()
    }

    pub(crate) async fn deprovision(&self, instance: &str) {
        assert_eq!(self.broker.deprovision(instance).await, (200, json!({})));
    }
}
