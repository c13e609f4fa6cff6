//! Reads the tables of `sutler-client` that say what every answer of a broker means. Only for tests.
//!
//! `sutler-client` holds `classify` to them, and explains their words there. Here every row goes through `classify` and
//! then through the rules of a resource. Of a class of statuses one goes that no other row names.

use std::time::Duration;
use sutler_client::wire::{Answer, TransportError};
use sutler_client::{
    Incomplete, Meaning, OperationEvent, ReplyContext, Sending, Success, classify, decode,
};
use sutler_osb::OperationKind;

const ANSWERS: &str = include_str!("../../../sutler-client/tests/meanings/answers.txt");
const POLLS: &str = include_str!("../../../sutler-client/tests/meanings/polls.txt");

/// The columns of the verbs, in order.
const KINDS: [OperationKind; 5] = [
    OperationKind::Provision,
    OperationKind::Update,
    OperationKind::Deprovision,
    OperationKind::Bind,
    OperationKind::Unbind,
];

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredRequest {
    /// The request of the verb.
    Verb,
    /// A poll of it.
    Poll,
}

/// One answer to one verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeaningRow {
    /// What was answered.
    pub(crate) request: AnsweredRequest,
    /// The verb.
    pub(crate) kind: OperationKind,
    /// What is heard.
    pub(crate) heard: &'static str,
    /// What it means, by the table.
    pub(crate) meaning: &'static str,
}

/// Every row of both tables for these verbs.
pub(crate) fn rows(kinds: &[OperationKind]) -> Vec<MeaningRow> {
    let tables = [
        (AnsweredRequest::Verb, ANSWERS),
        (AnsweredRequest::Poll, POLLS),
    ];
    let mut rows = Vec::new();
    for (request, table) in tables {
        let lines = table.lines().filter(|it| !it.starts_with('#'));
        for line in lines.filter(|it| !it.trim().is_empty()) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let meanings = KINDS.into_iter().zip(&cells[1..]);
            let wanted = meanings.filter(|(kind, _)| kinds.contains(kind));
            rows.extend(wanted.map(|(kind, meaning)| MeaningRow {
                request,
                kind,
                heard: cells[0],
                meaning,
            }));
        }
    }
    rows
}

impl MeaningRow {
    /// Whether the request was sent before, and nobody knows what became of that.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.heard.contains("sent before")
    }

    /// What follows for the intent, in few words; a success of a delete is `succeeded`, too.
    pub(crate) fn outcome(&self) -> &'static str {
        let (meaning, _) = self.meaning.split_once(" !").unwrap_or((self.meaning, ""));
        let meaning = meaning.trim_end_matches(", not repeatable");
        match meaning.trim_end_matches(", unusable") {
            "succeeded" | "polled" | "gone" => "succeeded",
            "poll" | "poll on" | "nothing, poll on" => "polling",
            "fetch" => "unknown",
            "failed, mitigate" => "failed, orphan",
            "failed, uncertain" => "failed, uncertain",
            "failed, delete before forgetting" | "failed, still there" => "failed",
            other => match other.split(',').next() {
                Some("rejected") => "rejected",
                Some("retry") => "queued",
                Some("unknown") => "unknown",
                _ => panic!("what is {other:?}?"),
            },
        }
    }

    /// What `classify` makes of it; a body becomes this one.
    pub(crate) fn classified<B>(&self, body: B) -> Meaning<B> {
        let (answer, context) = self.heard_answer();
        let kind = self.kind;
        let Some(answer) = answer else {
            return with_body(
                classify(kind, OperationEvent::<()>::Overdue, &context),
                body,
            );
        };
        if self.request == AnsweredRequest::Poll {
            let event = OperationEvent::<()>::Poll(decode::poll(answer));
            return with_body(classify(kind, event, &context), body);
        }
        match kind {
            OperationKind::Provision => {
                let event = OperationEvent::Reply(decode::provision(answer));
                with_body(classify(kind, event, &context), body)
            }
            OperationKind::Update => {
                let event = OperationEvent::Reply(decode::update(answer));
                with_body(classify(kind, event, &context), body)
            }
            OperationKind::Bind => {
                let event = OperationEvent::Reply(decode::bind(answer));
                with_body(classify(kind, event, &context), body)
            }
            OperationKind::Deprovision | OperationKind::Unbind => {
                let event = OperationEvent::Reply(decode::delete(answer));
                with_body(classify(kind, event, &context), body)
            }
        }
    }

    /// The answer, and what is known of the request. No answer: the time for it is over.
    fn heard_answer(&self) -> (Option<decode::WireResult>, ReplyContext) {
        let mut parts = self.heard.split(", ");
        let first = parts.next().expect("a cell");
        let mut context = ReplyContext::default();
        let (mut headers, mut fields) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                "Retry-After" => headers.push(("Retry-After", "7")),
                "instance_usable false" => fields.push(r#""instance_usable":false"#.to_owned()),
                "update_repeatable false" => {
                    fields.push(r#""update_repeatable":false"#.to_owned());
                }
                "sent before" => context.sending = Sending::AfterUnknown,
                "without AI" => context.incomplete = Incomplete::Unwanted,
                "not retrievable" => context.bindings_retrievable = false,
                "missing is gone" => context.missing_is_gone = true,
                other => panic!("what is {other:?}?"),
            }
        }
        let answer = match first {
            "overdue" => return (None, context),
            "timeout" => Err(TransportError::TimedOut(Duration::from_secs(60))),
            "broken" => Err(TransportError::Closed),
            "not sent" => Err(TransportError::NotSent("refused".to_owned())),
            status => {
                let (status, word) = status_and_word(status);
                Ok(Answer::new(status, &headers, body(word, fields)))
            }
        };
        (Some(answer), context)
    }
}

fn status_and_word(cell: &str) -> (u16, &str) {
    match cell {
        "other 2xx" => (299, ""),
        "3xx" => (399, ""),
        "other 4xx" => (499, ""),
        "other 5xx" => (599, ""),
        "no status of HTTP" => (999, ""),
        cell => {
            let (status, word) = cell.split_once(' ').unwrap_or((cell, ""));
            (status.parse().expect("a status"), word)
        }
    }
}

fn body(word: &str, mut fields: Vec<String>) -> String {
    match word {
        "malformed" => return r#"{"operation": 7, "credentials": 7"#.to_owned(),
        "in progress" | "succeeded" | "failed" => fields.push(format!("\"state\":\"{word}\"")),
        "" => {}
        code => fields.push(format!("\"error\":\"{code}\"")),
    }
    format!("{{{}}}", fields.join(","))
}

fn with_body<A, B>(meaning: Meaning<A>, body: B) -> Meaning<B> {
    match meaning {
        Meaning::Succeeded(success) => Meaning::Succeeded(match success {
            Success::Now(_) => Success::Now(body),
            Success::Polled => Success::Polled,
            Success::FetchBinding => Success::FetchBinding,
            Success::Gone => Success::Gone,
        }),
        Meaning::Polling { update, after } => Meaning::Polling { update, after },
        Meaning::Rejected {
            reason,
            message,
            update_repeatable,
        } => Meaning::Rejected {
            reason,
            message,
            update_repeatable,
        },
        Meaning::Retry {
            cause,
            after,
            message,
        } => Meaning::Retry {
            cause,
            after,
            message,
        },
        Meaning::Unknown { question, message } => Meaning::Unknown { question, message },
        Meaning::Failed { cleanup, message } => Meaning::Failed { cleanup, message },
    }
}
