//! The broker that is attacked: a real one on SQLite, with default limits and hooks that do nothing.

use crate::ToolResult;
use async_trait::async_trait;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use sutler_broker::{
    Auth, AuthorState, Broker, CatalogFile, Cx, Provisioned, Result, UntypedService, Users,
};
use sutler_journal::KeyRing;
use sutler_osb::Parameters;
use sutler_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

/// The offering's id and the plan's.
pub(crate) const SERVICE: &str = "flood-service";
pub(crate) const PLAN: &str = "flood-plan";
/// The user that floods, and the one that sends slowly.
pub(crate) const GREEDY: &str = "greedy";
/// Password of all users.
pub(crate) const PASSWORD: &str = "not-a-secret";
/// Number of well-behaved users.
pub(crate) const USERS: usize = 8;

const CATALOG: &str = "services:
  - id: flood-service
    name: flood
    description: Does nothing, quickly.
    bindable: true
    instances_retrievable: true
    plans:
      - id: flood-plan
        name: only
        description: The only plan.
";

/// Path of the store.
#[derive(Args)]
pub(crate) struct ServeArgs {
    #[arg(long)]
    dir: PathBuf,
}

/// A user's name.
pub(crate) fn user(n: usize) -> String {
    format!("user-{n}")
}

struct NoopService;

#[async_trait]
impl UntypedService for NoopService {
    async fn provision(&self, _: &Cx, _: Parameters) -> Result<Provisioned<AuthorState>> {
        Ok(Provisioned::new(AuthorState(serde_json::json!({}))))
    }

    async fn deprovision(&self, _: &Cx, _: Option<AuthorState>) -> Result<()> {
        Ok(())
    }
}

pub(crate) async fn serve(args: ServeArgs) -> ToolResult {
    let store = SqliteStore::open(args.dir.join("broker.db")).await?;
    let keys = KeyRing::file(args.dir.join("broker.key"))?;
    let names = (0..USERS).map(user).chain([GREEDY.to_owned()]);
    let password = PASSWORD.to_owned().into();
    let mut users = Users::new();
    for name in names {
        users = users.with_password(&name, &password)?;
    }
    let running = Broker::new(CatalogFile::parse(CATALOG, None)?)
        .untyped_service(SERVICE, Arc::new(NoopService))
        .store(store, keys)
        .auth(Auth::users(users)?)
        .start()
        .await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    crate::process::print_line(&listener.local_addr()?.to_string());
    running.serve_until_signalled(listener).await;
    Ok(())
}
