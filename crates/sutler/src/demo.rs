//! The built-in demo service: creates nothing, after a delay, and keeps state about it.
//!
//! It shows the features of a hook: progress, steps that are not repeated after a crash, state, an error
//! with a description for the caller. Parameters: `delay_ms` (at most a minute), `fail` (a sentence),
//! `panic` (true or false).

use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;
use sutler_broker::{
    AuthorState, Bound, Cx, DerivedSchemas, Error, Provisioned, Result, UntypedService, Update,
    Updated,
};
use sutler_osb::Parameters;

/// Maximum delay.
const DELAY_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Demo;

#[async_trait]
impl UntypedService for Demo {
    async fn provision(&self, cx: &Cx, parameters: Parameters) -> Result<Provisioned<AuthorState>> {
        cx.progress("gathering nothing").await?;
        pretend(cx, &parameters).await?;
        let name = format!("demo-{}", cx.idempotency_key("name"));
        let name = cx.step("make", || async { Ok(name) }).await?;
        Ok(Provisioned::new(AuthorState(json!({ "name": name }))))
    }

    async fn deprovision(&self, cx: &Cx, _state: Option<AuthorState>) -> Result<()> {
        cx.progress("scattering it").await?;
        Ok(())
    }

    fn updates(&self) -> bool {
        true
    }

    async fn update(
        &self,
        cx: &Cx,
        state: Option<AuthorState>,
        update: Update<Parameters>,
    ) -> Result<Updated<AuthorState>> {
        pretend(cx, &update.sent).await?;
        Ok(Updated::new(state.unwrap_or(AuthorState(json!({})))))
    }

    async fn bind(&self, cx: &Cx, state: Option<AuthorState>) -> Result<Bound> {
        pretend(cx, cx.parameters()).await?;
        let name = state
            .as_ref()
            .and_then(|it| it.0.get("name"))
            .cloned()
            .unwrap_or_default();
        let password = cx.idempotency_key("password");
        let user = cx.binding_id().map(|id| id.as_str().to_owned());
        Ok(Bound::credentials(
            json!({ "name": name, "user": user, "password": password }),
        ))
    }

    fn schemas(&self) -> DerivedSchemas {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "delay_ms": { "type": "integer", "minimum": 0, "maximum": 60_000,
                    "description": "How long to pretend to work." },
                "fail": { "type": "string", "minLength": 1,
                    "description": "Fail with this sentence." },
                "panic": { "type": "boolean",
                    "description": "Panic, as a hook with a bug would." },
            },
        });
        DerivedSchemas {
            provision: Some(schema.clone()),
            update: Some(schema.clone()),
            bind: Some(schema),
        }
    }
}

/// Waits until the delay is over or the operation is cancelled, and fails if the parameters say so.
async fn pretend(cx: &Cx, parameters: &Parameters) -> Result<()> {
    let delay = parameters
        .0
        .get("delay_ms")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let delay = Duration::from_millis(delay).min(DELAY_MAX);
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = cx.cancellation().cancelled() => return Err(Error::failed("Cancelled.")),
        }
    }
    if parameters.0.get("panic") == Some(&Value::Bool(true)) {
        // Deliberately careless: types that hold secrets do not print them.
        panic!("the demo was asked to panic, by {parameters:?}");
    }
    match parameters.0.get("fail").and_then(Value::as_str) {
        Some(sentence) => Err(Error::failed(sentence)),
        None => Ok(()),
    }
}
