//! Flaws of headers, bodies and the catalog: they change an answer on its way out, whatever it is about.

use super::Flaws;
use super::answers::Answer;
use super::ask::Ask;
use serde_json::Value;

/// Spoils an answer.
pub(crate) fn bend(flaws: &Flaws, _ask: &Ask, answer: &mut Answer) {
    if flaws.has("request-identity") {
        let (name, value) = ("x-broker-api-request-identity", "somebody");
        *answer = answer.clone().header(name, value);
    }
    if answer.status >= 400 && flaws.has("error-body") {
        answer.body = Some(Value::String("no".to_owned()));
    }
    if flaws.has("answers") {
        let length = ("content-length", "1000000");
        *answer = answer.clone().header(length.0, length.1);
    }
}

/// Spoils the catalog.
pub(crate) fn bend_catalog(flaws: &Flaws, catalog: &mut Value) {
    if flaws.has("catalog") {
        catalog["services"] = catalog["services"][0].clone();
    }
}

/// Lets somebody in who did not prove who they are; `sent` is what they sent.
pub(crate) fn lets_in(_flaws: &Flaws, _ask: &Ask, _sent: Option<&str>) -> bool {
    false
}
