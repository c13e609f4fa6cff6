//! Responses of brokers to a platform: every status, header and body has a meaning, and no part of an
//! unreadable body is repeated.
//!
//! An input of `answer` is a line with the status and, after a space, `Retry-After`; the rest is
//! the body. It is decoded as the response to every verb, every read and every poll.

use super::Verdict;
use crate::properties::{refused, same};
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sutler_client::wire::Answer as Raw;
use sutler_client::{
    Answer, BrokerMessage, Meaning, OperationEvent, PollUpdate, Reading, Reply, ReplyContext,
    RetryAfter, Sending, classify, classify_read, decode,
};
use sutler_osb::OperationKind;

pub(super) const WORDS: &[&str] = &[
    "200 ",
    "201 ",
    "202 ",
    "204 ",
    "401 ",
    "404 ",
    "408 ",
    "409 ",
    "410 ",
    "422 ",
    "429 ",
    "503 7",
    "in progress",
    "succeeded",
    "failed",
    "AsyncRequired",
    "ConcurrencyError",
    "MaintenanceInfoConflict",
    "RequiresApp",
    "instance_usable",
    "update_repeatable",
    "operation",
    "credentials",
    "hush",
];

pub(super) const RETRY_WORDS: &[&str] = &[
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "9999",
    "-0000",
    "60",
    "18446744073709551616",
];

/// Longest message of a broker that is kept, in characters.
const SAID_CHARS_MAX: usize = 4_000;

/// One response, decoded as the response to every request.
pub(super) fn answer(input: &[u8]) -> Verdict {
    let end = input.iter().position(|byte| *byte == b'\n');
    let (line, body) = input.split_at(end.unwrap_or(input.len()));
    let line = String::from_utf8_lossy(line);
    let (status, retry) = line.split_once(' ').unwrap_or((&line, ""));
    let status = status.parse::<u16>().unwrap_or(200).clamp(100, 999);
    let headers = [("Retry-After", retry)];
    let body = body.get(1..).unwrap_or_default().to_vec();
    let raw = Raw::new(status, &headers, body);
    let ok = || Ok(raw.clone());
    let kinds = [
        replied(OperationKind::Provision, decode::provision(ok()), input)?,
        replied(OperationKind::Update, decode::update(ok()), input)?,
        replied(OperationKind::Deprovision, decode::delete(ok()), input)?,
        replied(OperationKind::Bind, decode::bind(ok()), input)?,
        read(decode::catalog(ok()), input)?,
        read(decode::fetched_instance(ok()), input)?,
        read(decode::fetched_binding(ok()), input)?,
        polled(&decode::poll(ok()))?,
    ];
    Ok(kinds.join(" "))
}

fn replied<B: Clone + Debug>(kind: OperationKind, reply: Reply<B>, input: &[u8]) -> Verdict {
    faultless(&reply, input)?;
    let mut letters = String::new();
    for sending in [Sending::First, Sending::AfterUnknown] {
        let circumstances = ReplyContext {
            sending,
            ..ReplyContext::default()
        };
        let meaning = classify(kind, OperationEvent::Reply(reply.clone()), &circumstances);
        letters.push_str(&lawful(kind, &meaning)?);
    }
    Ok(letters)
}

fn polled(reply: &Reply<sutler_osb::LastOperationResponse>) -> Verdict {
    let mut letters = String::new();
    for kind in OperationKind::ALL {
        let event = OperationEvent::<()>::Poll(reply.clone());
        let meaning = classify(kind, event, &ReplyContext::default());
        letters.push_str(&lawful(kind, &meaning)?);
    }
    Ok(letters)
}

fn read<B: Debug>(reply: Reply<B>, input: &[u8]) -> Verdict {
    faultless(&reply, input)?;
    Ok(match classify_read(reply) {
        Reading::Read(_) => "r".to_owned(),
        Reading::Absent => "a".to_owned(),
        Reading::Retry { message, cause, .. } => {
            bounded(&message).map(|()| format!("{cause:?}"))?
        }
        Reading::Failed(message) => bounded(&message).map(|()| "f".to_owned())?,
    })
}

/// The error about a body is a sentence without its values.
fn faultless<B>(reply: &Reply<B>, input: &[u8]) -> Result<(), String> {
    if let Reply::Answer {
        answer: Answer::Malformed(_, fault),
        ..
    } = reply
    {
        refused(&fault.to_string(), input)?;
    }
    Ok(())
}

/// Only creations are mitigated, and kept texts are bounded. Returns a letter for the meaning.
fn lawful<B>(kind: OperationKind, meaning: &Meaning<B>) -> Verdict {
    let creates = matches!(kind, OperationKind::Provision | OperationKind::Bind);
    if meaning.mitigates() && !creates {
        return Err(format!("{kind:?} is mitigated"));
    }
    if !meaning.leaves_usable() && !kind.may_say_instance_usable() {
        return Err(format!("{kind:?} makes an instance unusable"));
    }
    let letter = match meaning {
        Meaning::Succeeded(_) => "s",
        Meaning::Polling { update, .. } => match update {
            PollUpdate::Accepted(_) => "p",
            PollUpdate::InProgress(description) => {
                let message = description.as_deref().unwrap_or_default();
                same(
                    &(message.chars().count() <= SAID_CHARS_MAX),
                    &true,
                    "bounded",
                )?;
                "i"
            }
            PollUpdate::Nothing(message) => bounded(message).map(|()| "n")?,
        },
        Meaning::Rejected { message, .. } => bounded(message).map(|()| "x")?,
        Meaning::Retry { message, .. } => bounded(message).map(|()| "t")?,
        Meaning::Unknown { message, .. } => bounded(message).map(|()| "u")?,
        Meaning::Failed { message, .. } => bounded(message).map(|()| "f")?,
    };
    Ok(letter.to_owned())
}

fn bounded(message: &BrokerMessage) -> Result<(), String> {
    let texts = [
        message.description.as_deref().unwrap_or_default(),
        message.error.as_ref().map_or("", |it| it.as_str()),
    ];
    match texts.iter().all(|it| it.chars().count() <= SAID_CHARS_MAX) {
        true => Ok(()),
        false => Err("keeps more than it may".to_owned()),
    }
}

/// `Retry-After`: always a wait, and the same one when its seconds are written again.
pub(super) fn retry_after(input: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(input);
    let now = SystemTime::now();
    Ok(match RetryAfter::parse(&text) {
        None => "none".to_owned(),
        Some(RetryAfter::Wait(time)) => {
            let seconds = time.as_secs();
            let again = RetryAfter::parse(&seconds.to_string());
            same(&again, &Some(RetryAfter::Wait(time)), "written again")?;
            format!("wait {}", seconds.to_string().len())
        }
        Some(at @ RetryAfter::At(moment)) => {
            let wait = at.from_now(now);
            let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            let until = since.saturating_add(wait);
            let moment = Duration::from_secs(u64::try_from(moment).unwrap_or(0));
            same(&(until >= moment), &true, "waits for the moment")?;
            "date".to_owned()
        }
    })
}
