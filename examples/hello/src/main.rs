//! A whole broker: durable, idempotent, conformant. Run it from this folder with `cargo run`.
use sutler_broker::prelude::*;
use sutler_store_sqlite::SqliteStore;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Params {
    /// Whom to greet.
    #[serde(default = "world")]
    name: String,
}

fn world() -> String {
    "world".to_owned()
}

struct Hello;

impl Service for Hello {
    type Params = Params;
    type State = Params;

    async fn provision(&self, cx: &Cx, params: Params) -> Result<Provisioned<Params>> {
        cx.progress("thinking of a greeting").await?;
        Ok(Provisioned::new(params))
    }
    async fn bind(&self, _cx: &Cx, state: &Params) -> Result<Bound> {
        Ok(Bound::credentials(json!({ "greeting": format!("Hello, {}!", state.name) })))
    }
    async fn deprovision(&self, _cx: &Cx, _state: Option<Params>) -> Result<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let broker = Broker::new(CatalogFile::parse(include_str!("../catalog.yaml"), None)?)
        .service("hello", Hello)
        .store(SqliteStore::open("hello.db").await?, KeyRing::file("hello.key")?);
    Ok(broker.auth_from_env()?.serve("127.0.0.1:8080").await?)
}
