//! Deprovision: the walk's instance goes, and stays gone.

use super::Live;
use crate::asker::Stop;
use crate::case::{Case, Level, Scope};
use crate::stage::{Ended, Stage};
use crate::target::Target;

const DELETED: Case = Case {
    name: "deprovision-deleted",
    line: "B-252",
    level: Level::Must,
    scope: Scope::Plan,
    rule: "A deprovision is answered with 200 when it is done, and with 202 while it goes on.",
};

const GONE: Case = Case {
    name: "deprovision-gone",
    line: "B-253",
    level: Level::Must,
    scope: Scope::Plan,
    rule: "A deprovision of an instance that does not exist is answered with 410.",
};

pub(crate) const CASES: &[&Case] = &[&DELETED, &GONE];

/// Removes the walk's instance.
pub(crate) async fn walk(stage: &Stage, live: &Live) -> Result<(), Stop> {
    let target = Target::Instance(&live.id);
    let answer = stage.delete(target, true).await?;
    stage.judge(&DELETED, &answer, answer.must_be(&[200, 202]));
    if answer.is(&[202]) {
        let polled = stage.poll_to_end(target, &answer).await?;
        if matches!(polled.ended, Ended::Succeeded | Ended::Gone) {
            stage.asker.ledger.is_gone(&target.made());
        }
    }
    let again = stage.delete(target, true).await?;
    stage.judge(&GONE, &again, again.must_be(&[410]));
    Ok(())
}
