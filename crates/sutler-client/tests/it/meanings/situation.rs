//! Translates a cell of the tables into an answer and its context.

use super::words;
use std::time::Duration;
use sutler_client::wire::{Answer, TransportError};
use sutler_client::{Incomplete, OperationEvent, ReplyContext, Sending, classify, decode};
use sutler_osb::OperationKind;

/// One cell of the first column, without classes of statuses.
pub(super) struct Situation {
    event: SituationEvent,
    context: ReplyContext,
}

enum SituationEvent {
    Answer(Answer),
    NoAnswer(TransportError),
    Overdue,
}

/// The values of a cell: the statuses of a class that no other row names, or the cell itself.
pub(super) fn expanded(cell: &str, named: &[&str]) -> Vec<String> {
    let (first, rest) = match cell.split_once(", ") {
        Some((first, rest)) => (first, format!(", {rest}")),
        None => (cell, String::new()),
    };
    let statuses: Vec<u16> = match first {
        "other 2xx" => (200..=299).collect(),
        "3xx" => (300..=399).collect(),
        "other 4xx" => (400..=499).collect(),
        "other 5xx" => (500..=599).collect(),
        "no status of HTTP" => (100..=199).chain(600..=999).collect(),
        _ => return vec![cell.to_owned()],
    };
    let is_named = |status: u16| {
        let plain = format!("{status}{rest}");
        named.iter().any(|it| *it == plain) || (status == 200 && is_state_named(named))
    };
    let unnamed = statuses.into_iter().filter(|it| !is_named(*it));
    unnamed.map(|it| format!("{it}{rest}")).collect()
}

/// Whether the rows distinguish a 200 by the state in its body.
fn is_state_named(named: &[&str]) -> bool {
    named.contains(&"200 succeeded")
}

impl Situation {
    pub(super) fn parse(cell: &str) -> Option<Self> {
        let mut parts = cell.split(", ");
        let first = parts.next()?;
        let mut context = ReplyContext::default();
        let mut headers = Vec::new();
        let mut fields = Vec::new();
        for part in parts {
            match part {
                "Retry-After" => headers.push(("Retry-After", "7")),
                "instance_usable false" => fields.push("\"instance_usable\":false".to_owned()),
                "update_repeatable false" => fields.push("\"update_repeatable\":false".to_owned()),
                "sent before" => context.sending = Sending::AfterUnknown,
                "without AI" => context.incomplete = Incomplete::Unwanted,
                "not retrievable" => context.bindings_retrievable = false,
                "missing is gone" => context.missing_is_gone = true,
                _ => return None,
            }
        }
        let event = match first {
            "timeout" => {
                SituationEvent::NoAnswer(TransportError::TimedOut(Duration::from_secs(60)))
            }
            "broken" => SituationEvent::NoAnswer(TransportError::Closed),
            "not sent" => SituationEvent::NoAnswer(TransportError::NotSent("refused".to_owned())),
            "overdue" => SituationEvent::Overdue,
            answer => {
                let (status, word) = answer.split_once(' ').unwrap_or((answer, ""));
                SituationEvent::Answer(Answer::new(
                    status.parse().ok()?,
                    &headers,
                    body(word, fields),
                ))
            }
        };
        Some(Self { event, context })
    }

    /// The meaning according to the code, in the words of the tables.
    pub(super) fn meaning(&self, kind: OperationKind, polls: bool) -> String {
        let outcome = match &self.event {
            SituationEvent::Answer(answer) => Ok(answer.clone()),
            SituationEvent::NoAnswer(silence) => Err(silence.clone()),
            SituationEvent::Overdue => {
                let event = OperationEvent::<()>::Overdue;
                return words::of(&classify(kind, event, &self.context));
            }
        };
        let c = &self.context;
        if polls {
            let event = OperationEvent::<()>::Poll(decode::poll(outcome));
            return words::of(&classify(kind, event, c));
        }
        match kind {
            OperationKind::Provision => words::of(&classify(
                kind,
                OperationEvent::Reply(decode::provision(outcome)),
                c,
            )),
            OperationKind::Update => words::of(&classify(
                kind,
                OperationEvent::Reply(decode::update(outcome)),
                c,
            )),
            OperationKind::Bind => words::of(&classify(
                kind,
                OperationEvent::Reply(decode::bind(outcome)),
                c,
            )),
            OperationKind::Deprovision | OperationKind::Unbind => words::of(&classify(
                kind,
                OperationEvent::Reply(decode::delete(outcome)),
                c,
            )),
        }
    }
}

fn body(word: &str, mut fields: Vec<String>) -> String {
    match word {
        "malformed" => return "{\"operation\": 7, \"credentials\": 7".to_owned(),
        "in progress" | "succeeded" | "failed" => fields.push(format!("\"state\":\"{word}\"")),
        "" => {}
        code => fields.push(format!("\"error\":\"{code}\"")),
    }
    format!("{{{}}}", fields.join(","))
}
