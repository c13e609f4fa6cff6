//! A whole broker: durable, idempotent, conformant. Run it from this folder with `cargo run`.
use sutler_broker::prelude::*;
use sutler_store_sqlite::SqliteStore;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Params {
    /// Whom to greet.
    name: Option<String>,
}

struct Hello;

impl Service for Hello {
    type Params = Params;
    type State = Params;

    async fn provision(&self, cx: &Cx, params: Params) -> Result<Provisioned<Params>> {
        cx.progress("thinking of a greeting").await?;
        Ok(Provisioned::new(params))
    }
    async fn bind(&self, cx: &Cx, state: &Params) -> Result<Bound> {
        let greeting = format!("Hello, {}!", state.name.as_deref().unwrap_or("world"));
        let given = json!({ "greeting": greeting, "guest": cx.binding_id() });
        Ok(Bound::credentials(given))
    }
    async fn deprovision(&self, _cx: &Cx, _state: Option<Params>) -> Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let address = std::env::var("HELLO_LISTEN").unwrap_or("127.0.0.1:8080".to_owned());
    let store = SqliteStore::open("hello.db").await?;
    let broker = Broker::new(CatalogFile::parse(include_str!("../catalog.yaml"), None)?)
        .service("hello", Hello)
        .store(store, KeyRing::file("hello.key")?);
    Ok(broker.auth_from_env()?.serve(&address).await?)
}
