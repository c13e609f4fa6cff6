//! Flaws of instances that only change an answer on its way out; the others are in the decisions
//! themselves.

use super::Flaws;
use super::answers::Answer;
use super::ask::{Ask, Place};
use axum::http::Method;

/// Spoils an answer.
pub(crate) fn bend(flaws: &Flaws, ask: &Ask, answer: &mut Answer) {
    let Place::Instance(_) = &ask.place else {
        return;
    };
    if ask.method == Method::PUT {
        if answer.status <= 202 && flaws.has("provision-created") {
            answer.status = 200;
        }
    } else if ask.method == Method::DELETE {
        if answer.status <= 202 && flaws.has("deprovision-deleted") {
            answer.status = 204;
        }
        if answer.status == 410 && flaws.has("deprovision-gone") {
            answer.status = 404;
        }
    }
}
