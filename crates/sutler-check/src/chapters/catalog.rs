//! The catalog: fetched once, judged as a whole. What it says of plans steers the rest of the walk.

use crate::asker::{Asker, Stop};
use crate::book::Subject;
use crate::case::{Case, Level, Scope};
use crate::exchange::Exchange;
use serde_json::Value;
use std::sync::Arc;
use sutler_client::wire::{Method, Request};

const CATALOG: Case = Case {
    name: "catalog",
    line: "B-050",
    level: Level::Must,
    scope: Scope::Broker,
    rule: "GET /v2/catalog answers 200 with an object whose `services` is an array.",
};

pub(crate) const CASES: &[&Case] = &[&CATALOG];

/// Fetches and judges the catalog.
pub(crate) async fn walk(asker: &Asker) -> Result<Arc<Exchange>, Stop> {
    let exchange = asker
        .ask(Request::new(Method::Get, &["v2", "catalog"]))
        .await?;
    asker.enter(&CATALOG, &Subject::Broker, &exchange, services(&exchange));
    Ok(exchange)
}

fn services(exchange: &Exchange) -> Result<(), String> {
    exchange.must_be(&[200])?;
    match exchange.field("services") {
        Some(Value::Array(_)) => Ok(()),
        Some(_) => Err("`services` is not an array".to_owned()),
        None => Err("there is no `services`".to_owned()),
    }
}
