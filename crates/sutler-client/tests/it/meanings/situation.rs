//! What is heard, in the tables' words: from a cell to an answer and its circumstances.

use super::words;
use std::time::Duration;
use sutler_client::wire::{Answer, Unanswered};
use sutler_client::{Circumstances, Heard, Incomplete, Sending, classify, hear};
use sutler_osb::OperationKind;

/// One cell of the first column, without classes of statuses.
pub(super) struct Situation {
    heard: What,
    circumstances: Circumstances,
}

enum What {
    Answer(Answer),
    Silence(Unanswered),
    Overdue,
}

/// All that a cell stands for: the statuses of a class that no other row names, or itself.
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

/// Whether a 200 is told apart by the state in its body.
fn is_state_named(named: &[&str]) -> bool {
    named.contains(&"200 succeeded")
}

impl Situation {
    pub(super) fn parse(cell: &str) -> Option<Self> {
        let mut parts = cell.split(", ");
        let first = parts.next()?;
        let mut circumstances = Circumstances::default();
        let mut headers = Vec::new();
        let mut fields = Vec::new();
        for part in parts {
            match part {
                "Retry-After" => headers.push(("Retry-After", "7")),
                "instance_usable false" => fields.push("\"instance_usable\":false".to_owned()),
                "update_repeatable false" => fields.push("\"update_repeatable\":false".to_owned()),
                "sent before" => circumstances.sending = Sending::AfterUnknown,
                "without AI" => circumstances.incomplete = Incomplete::Unwanted,
                "not retrievable" => circumstances.bindings_retrievable = false,
                "missing is gone" => circumstances.missing_is_gone = true,
                _ => return None,
            }
        }
        let heard = match first {
            "timeout" => What::Silence(Unanswered::TimedOut(Duration::from_secs(60))),
            "broken" => What::Silence(Unanswered::Closed),
            "not sent" => What::Silence(Unanswered::NotSent("refused".to_owned())),
            "overdue" => What::Overdue,
            answer => {
                let (status, word) = answer.split_once(' ').unwrap_or((answer, ""));
                What::Answer(Answer::new(
                    status.parse().ok()?,
                    &headers,
                    body(word, fields),
                ))
            }
        };
        Some(Self {
            heard,
            circumstances,
        })
    }

    /// What the code makes of it, in the tables' words.
    pub(super) fn meaning(&self, kind: OperationKind, polls: bool) -> String {
        let outcome = match &self.heard {
            What::Answer(answer) => Ok(answer.clone()),
            What::Silence(silence) => Err(silence.clone()),
            What::Overdue => {
                let heard = Heard::<()>::Overdue;
                return words::of(&classify(kind, heard, &self.circumstances));
            }
        };
        let c = &self.circumstances;
        if polls {
            let heard = Heard::<()>::Poll(hear::poll(outcome));
            return words::of(&classify(kind, heard, c));
        }
        match kind {
            OperationKind::Provision => {
                words::of(&classify(kind, Heard::Reply(hear::provision(outcome)), c))
            }
            OperationKind::Update => {
                words::of(&classify(kind, Heard::Reply(hear::update(outcome)), c))
            }
            OperationKind::Bind => words::of(&classify(kind, Heard::Reply(hear::bind(outcome)), c)),
            OperationKind::Deprovision | OperationKind::Unbind => {
                words::of(&classify(kind, Heard::Reply(hear::delete(outcome)), c))
            }
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
