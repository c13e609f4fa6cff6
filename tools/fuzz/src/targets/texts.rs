//! Headers, ids and other short texts: a parsed value prints as text that parses to the same value.

use super::Verdict;
use crate::properties::{kind_of, refused, same, sentence};
use jiff::Timestamp;
use sutler_broker::Schedule;
use sutler_journal::OperationId;
use sutler_osb::{
    ApiVersion, BindingId, InstanceId, OperationToken, OriginatingIdentity, PortRange, Query,
    RequestIdentity, ServiceId, UtcTime,
};

pub(super) const QUERY_WORDS: &[&str] = &[
    "accepts_incomplete=true",
    "accepts_incomplete=",
    "service_id=",
    "plan_id=",
    "operation=",
    "&",
    "=",
    "%26",
    "+",
    "true",
    "false",
];

pub(super) const SCHEDULE_WORDS: &[&str] = &[
    "*", "*/", "?", "L", "W", "LW", "L-", "#", "MON", "SUN", "FEB", "5L", "15W", "1-5", "0", "59",
    " ", ",", "@daily", "-", "30 2", "29 2", "31", "7#5", "2#5",
];

pub(super) const IDENTITY_WORDS: &[&str] = &[
    "cloudfoundry ",
    "eyJ1c2VyX2lkIjoiaHVzaCJ9",
    "e30",
    "e30=",
    "_-",
    "+/",
    "=",
    " ",
    "W10=",
];

fn text(input: &[u8]) -> Result<&str, std::str::Utf8Error> {
    std::str::from_utf8(input)
}

pub(super) fn version(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match text.parse::<ApiVersion>() {
        Ok(version) => {
            same(
                &version.to_string().as_str(),
                &text,
                "prints another version",
            )?;
            Ok(format!("version {}", text.len()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

pub(super) fn query(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match Query::parse(text) {
        Ok(query) => {
            let again = Query::parse(&query.to_string()).map_err(|error| error.to_string())?;
            same(&again, &query, "changes when written")?;
            let parts = (query.accepts_incomplete, query.service_id.is_some());
            Ok(format!(
                "{parts:?} {} {}",
                query.plan_id.is_some(),
                query.operation.is_some()
            ))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

macro_rules! check_id {
    ($id:ty, $text:expr, $input:expr) => {{
        let mut answers = String::new();
        let in_path = (<$id>::from_path_segment($text), "+");
        let in_query = (<$id>::from_query_value($text), " ");
        for (decoded, plus) in [in_path, in_query] {
            let plain =
                plainly_decoded($text, plus).filter(|it| <$id>::try_from(it.as_str()).is_ok());
            let read = decoded.as_ref().ok().map(|id| id.as_str());
            same(&read, &plain.as_deref(), "is decoded otherwise")?;
            match decoded {
                Ok(id) => {
                    let url = id.to_url();
                    let unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._~%".contains(&b);
                    same(&url.bytes().all(unreserved), &true, "is not encoded")?;
                    same(
                        &<$id>::from_path_segment(&url).as_ref(),
                        &Ok(&id),
                        "another in a path",
                    )?;
                    same(
                        &<$id>::from_query_value(&url).as_ref(),
                        &Ok(&id),
                        "another in a query",
                    )?;
                    answers.push_str(if url == $text {
                        "as it is "
                    } else {
                        "encoded "
                    });
                }
                Err(error) => answers.push_str(&refused(&error.to_string(), $input)?),
            }
        }
        answers
    }};
}

/// A minimal percent-decoder, to compare with.
fn plainly_decoded(text: &str, plus: &str) -> Option<String> {
    let text = text.replace('+', plus);
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.as_bytes().split_at_checked(2)?;
        let hex = |digit: u8| char::from(digit).to_digit(16);
        bytes.push(u8::try_from(hex(digits[0])? * 16 + hex(digits[1])?).ok()?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).ok()
}

pub(super) fn ids(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    let mut answers = check_id!(InstanceId, text, input);
    answers.push_str(&check_id!(BindingId, text, input));
    answers.push_str(&check_id!(ServiceId, text, input));
    answers.push_str(&check_id!(OperationToken, text, input));
    Ok(answers)
}

pub(super) fn originating_identity(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match OriginatingIdentity::parse(text) {
        Ok(identity) => {
            let header = identity.to_header();
            // Numbers may be longer when printed.
            if header.len() <= sutler_osb::ORIGINATING_IDENTITY_BYTES_MAX {
                let again = OriginatingIdentity::parse(&header);
                same(
                    &(again.as_ref() == Ok(&identity)),
                    &true,
                    "changes when written",
                )?;
            }
            Ok(format!("identity of {} entries", identity.value.len()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

pub(super) fn request_identity(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match RequestIdentity::try_from(text) {
        Ok(identity) => {
            same(&identity.as_str(), &text, "is another")?;
            // B-006: it must fit into a header of the answer.
            let fits = axum::http::HeaderValue::from_str(identity.as_str()).is_ok();
            same(&fits, &true, "does not fit into a header")?;
            Ok(format!("identity of {}", text.len().ilog2()))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

pub(super) fn utc_time(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match UtcTime::try_from(text) {
        Ok(time) => {
            same(&time.to_string().as_str(), &text, "prints another time")?;
            let whole = UtcTime::from_epoch(time.epoch_seconds(), 0).map_err(|e| e.to_string())?;
            let micro =
                UtcTime::from_epoch(time.epoch_seconds(), 999_999).map_err(|e| e.to_string())?;
            same(&whole.as_str()[..19], &text[..19], "another second")?;
            let ends = format!("{}.999999999Z", &text[..19]);
            let last = UtcTime::try_from(ends).map_err(|error| error.to_string())?;
            same(
                &(whole <= time && micro <= last && time <= last),
                &true,
                "is out of order",
            )?;
            // The calendar of another library must agree; it ends a day before ours.
            if let Ok(other) = whole.as_str().parse::<Timestamp>() {
                same(
                    &other.as_second(),
                    &time.epoch_seconds(),
                    "another calendar",
                )?;
            }
            Ok(format!("time with {} digits", text.len() - 21))
        }
        Err(error) => {
            let sentence = format!("the time {error}");
            refused(&sentence, input)
        }
    }
}

pub(super) fn port_range(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match text.parse::<PortRange>() {
        Ok(range) => {
            same(
                &(0 < range.first() && range.first() <= range.last()),
                &true,
                "is no range",
            )?;
            same(
                &range.to_string().parse(),
                &Ok(range),
                "changes when written",
            )?;
            Ok(format!(
                "ports {} {}",
                range.first() == range.last(),
                text.len().min(12)
            ))
        }
        Err(error) => refused(&error.to_string(), input),
    }
}

pub(super) fn operation_id(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    match OperationId::parse(text) {
        Some(id) => {
            same(&id.to_string().as_str(), &text, "prints another id")?;
            Ok("id".to_owned())
        }
        None => Ok(format!("no id of {}", text.len().min(60))),
    }
}

pub(super) fn schedule(input: &[u8]) -> Verdict {
    let Ok(text) = text(input) else {
        return Ok("no text".to_owned());
    };
    let optional = Schedule::parse_optional(text);
    match Schedule::parse(text) {
        Ok(schedule) => {
            same(
                &optional,
                &Ok(Some(schedule.clone())),
                "is read in two ways",
            )?;
            same(
                &Schedule::parse(schedule.as_str()),
                &Ok(schedule.clone()),
                "changes",
            )?;
            rising(&schedule)?;
            let shape: String = text
                .chars()
                .filter(|c| !c.is_ascii_digit())
                .take(60)
                .collect();
            Ok(format!("schedule {}", shape.to_uppercase()))
        }
        Err(error) => {
            let empty = matches!(text.trim(), "" | "-");
            same(
                &(optional == Ok(None)),
                &empty,
                "is nothing in one way only",
            )?;
            // The text is quoted; it contains no secret.
            sentence(&error.to_string())?;
            Ok(kind_of(&error.reason))
        }
    }
}

/// Each time is strictly later than the one before, from any start.
fn rising(schedule: &Schedule) -> Result<(), String> {
    for from in [
        "1970-01-01T00:00:00Z",
        "2024-02-28T23:59:59.999Z",
        "2099-12-31T23:59:59Z",
    ] {
        let mut time: Timestamp = from.parse().map_err(|error| format!("{error}"))?;
        for _ in 0..4 {
            // The calendar ends in the year 9999.
            let Some(next) = schedule.next_after(time) else {
                break;
            };
            if next <= time {
                return Err(format!("comes at {next} after {time}"));
            }
            time = next;
        }
    }
    Ok(())
}
