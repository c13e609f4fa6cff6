//! Inputs of a request besides its path and body: parameters of the query, and headers with conditions.
//!
//! Every route lists its inputs in `route_table.rs`. An unknown parameter, and a condition that a route would ignore, is
//! refused: neither a misspelt filter nor a condition is ever without effect.

use super::entity_tag::EntityTag;
use super::page_cursor;
use super::problem::Problem;
use super::time_span::TimeSpan;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::time::Duration;
use sutler_journal::Position;

/// Default and largest number of items on a page.
pub(crate) const LIMIT_DEFAULT: usize = 50;
/// See [`LIMIT_DEFAULT`].
pub(crate) const LIMIT_MAX: usize = 200;
/// Longest time that a request waits for the end of its intent.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);
/// Longest query, in bytes.
const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Longest idempotency key, in bytes.
const KEY_BYTES_MAX: usize = 255;
/// The header with the idempotency key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An input of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Input {
    /// `limit`: items on a page.
    Limit,
    /// `after`: where the page begins.
    After,
    /// `dryRun`: nothing is written.
    DryRun,
    /// `wait`: how long the answer may wait for the end of the intent.
    Wait,
    /// `cascade`: with everything that depends on it.
    Cascade,
    /// `abandon`: with everything that it has, which is given up.
    Abandon,
    /// `force`: a change that was rejected before is sent again.
    Force,
    /// `namespace`: as this namespace sees it.
    Namespace,
    /// `state`: only in this phase or state.
    State,
    /// `instance`: only of this instance.
    Instance,
    /// `broker`: only of this broker.
    Broker,
    /// `If-Match`: only if this revision is shown.
    IfMatch,
    /// `If-None-Match: *`: only if there is nothing.
    IfNoneMatch,
    /// `Idempotency-Key`: accepted once.
    IdempotencyKey,
}

/// Where an input is in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputPlace {
    Query(&'static str),
    Header(HeaderPlace),
}

/// Headers that a route may list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderPlace {
    IfMatch,
    IfNoneMatch,
    IdempotencyKey,
}

/// The revision of a resource that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RevisionCondition {
    /// The one that is shown, whichever it is.
    Any,
    /// This one.
    Exactly(EntityTag),
    /// There is no resource.
    Absent,
}

/// Inputs of a request, as far as its route has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestInputs {
    /// Items on a page.
    pub limit: usize,
    /// Nothing is written.
    pub dry_run: bool,
    /// How long the answer may wait.
    pub wait: Option<Duration>,
    /// With everything that depends on it.
    pub cascade: bool,
    /// With everything that it has, which is given up.
    pub abandon: bool,
    /// A change that was rejected before is sent again.
    pub force: bool,
    /// The revision that must be shown.
    pub condition: Option<RevisionCondition>,
    /// The key under which the request is accepted once.
    pub idempotency_key: Option<String>,
    after: Option<String>,
    filters: BTreeMap<Input, String>,
}

impl Input {
    /// Every input.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 14] = [
        Self::Limit,
        Self::After,
        Self::DryRun,
        Self::Wait,
        Self::Cascade,
        Self::Abandon,
        Self::Force,
        Self::Namespace,
        Self::State,
        Self::Instance,
        Self::Broker,
        Self::IfMatch,
        Self::IfNoneMatch,
        Self::IdempotencyKey,
    ];

    fn place(self) -> InputPlace {
        match self {
            Self::Limit => InputPlace::Query("limit"),
            Self::After => InputPlace::Query("after"),
            Self::DryRun => InputPlace::Query("dryRun"),
            Self::Wait => InputPlace::Query("wait"),
            Self::Cascade => InputPlace::Query("cascade"),
            Self::Abandon => InputPlace::Query("abandon"),
            Self::Force => InputPlace::Query("force"),
            Self::Namespace => InputPlace::Query("namespace"),
            Self::State => InputPlace::Query("state"),
            Self::Instance => InputPlace::Query("instance"),
            Self::Broker => InputPlace::Query("broker"),
            Self::IfMatch => InputPlace::Header(HeaderPlace::IfMatch),
            Self::IfNoneMatch => InputPlace::Header(HeaderPlace::IfNoneMatch),
            Self::IdempotencyKey => InputPlace::Header(HeaderPlace::IdempotencyKey),
        }
    }

    /// The name of a parameter of the query; `None` for a header.
    fn parameter(self) -> Option<&'static str> {
        match self.place() {
            InputPlace::Query(name) => Some(name),
            InputPlace::Header(_) => None,
        }
    }
}

impl RequestInputs {
    /// Reads the inputs of a route. `is_read`: the request changes nothing, so a condition for caches has no effect.
    pub(crate) fn parse(
        listed: &[Input],
        query: &str,
        headers: &HeaderMap,
        is_read: bool,
    ) -> Result<Self, Problem> {
        let mut filters = parameters(listed, query)?;
        let mut take = |input: Input| filters.remove(&input);
        Ok(Self {
            limit: take(Input::Limit).map_or(Ok(LIMIT_DEFAULT), |text| limit(&text))?,
            after: take(Input::After),
            dry_run: flag(take(Input::DryRun), "dryRun")?,
            wait: take(Input::Wait).map(|text| wait(&text)).transpose()?,
            cascade: flag(take(Input::Cascade), "cascade")?,
            abandon: flag(take(Input::Abandon), "abandon")?,
            force: flag(take(Input::Force), "force")?,
            condition: condition(listed, headers, is_read)?,
            idempotency_key: idempotency_key(listed, headers, is_read)?,
            filters,
        })
    }

    /// A filter, if it is set.
    pub(crate) fn filter(&self, input: Input) -> Option<&str> {
        self.filters.get(&input).map(String::as_str)
    }

    /// Where the page of a list of documents begins.
    pub(crate) fn position(&self) -> Result<Option<Position>, Problem> {
        let after = self.after.as_deref();
        after
            .map(|text| page_cursor::position(text).ok_or_else(unknown_cursor))
            .transpose()
    }

    /// Where the page of another list begins, as that list wrote it.
    pub(crate) fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The revision that must be shown, of a resource that exists.
    pub(crate) fn entity_tag(&self) -> Option<EntityTag> {
        match self.condition {
            Some(RevisionCondition::Exactly(tag)) => Some(tag),
            Some(RevisionCondition::Any | RevisionCondition::Absent) | None => None,
        }
    }
}

/// A cursor that no list wrote.
pub(crate) fn unknown_cursor() -> Problem {
    Problem::invalid("`after` is not what a list returned as `next`; begin without it.")
}

fn parameters(listed: &[Input], query: &str) -> Result<BTreeMap<Input, String>, Problem> {
    if query.len() > QUERY_BYTES_MAX {
        let detail = format!("The query must not be longer than {QUERY_BYTES_MAX} bytes.");
        return Err(Problem::invalid(detail));
    }
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        let input = listed.iter().find(|it| it.parameter() == Some(&name));
        let Some(input) = input else {
            return Err(unknown_parameter(listed));
        };
        if found.insert(*input, decoded(value)?).is_some() {
            return Err(Problem::invalid(format!("Send `{name}` only once.")));
        }
    }
    Ok(found)
}

fn unknown_parameter(listed: &[Input]) -> Problem {
    let known: Vec<&str> = listed.iter().filter_map(|it| it.parameter()).collect();
    Problem::invalid(match known.as_slice() {
        [] => "This path takes no parameters in its query.".to_owned(),
        known => format!(
            "The query has an unknown parameter; this path takes {}.",
            known.join(", ")
        ),
    })
}

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8();
    match decoded {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Problem::invalid(
            "The query must be UTF-8, percent-encoded.",
        )),
    }
}

fn limit(text: &str) -> Result<usize, Problem> {
    let limit = text.parse().ok();
    limit
        .filter(|limit| (1..=LIMIT_MAX).contains(limit))
        .ok_or_else(|| Problem::invalid(format!("`limit` must be a number from 1 to {LIMIT_MAX}.")))
}

/// A flag is set by its name alone or by `true`.
fn flag(value: Option<String>, name: &str) -> Result<bool, Problem> {
    match value.as_deref() {
        None | Some("false") => Ok(false),
        Some("" | "true") => Ok(true),
        Some(_) => Err(Problem::invalid(format!("`{name}` must be true or false."))),
    }
}

/// A duration, or a number of seconds.
fn wait(text: &str) -> Result<Duration, Problem> {
    let seconds = text.parse().ok().filter(|_| !text.starts_with('+'));
    let wait = match seconds {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => TimeSpan::try_from(text).ok().map(|span| span.0),
    };
    wait.filter(|wait| *wait <= WAIT_MAX).ok_or_else(|| {
        let most = WAIT_MAX.as_secs();
        Problem::invalid(format!(
            "`wait` must be a duration such as 30s, of at most {most}s; the intent goes on after it."
        ))
    })
}

fn condition(
    listed: &[Input],
    headers: &HeaderMap,
    is_read: bool,
) -> Result<Option<RevisionCondition>, Problem> {
    if is_read {
        return Ok(None);
    }
    let matches = single(headers, &IF_MATCH, listed, Input::IfMatch)?;
    let absent = single(headers, &IF_NONE_MATCH, listed, Input::IfNoneMatch)?;
    match (matches, absent) {
        (Some(_), Some(_)) => Err(Problem::invalid(
            "Send either If-Match or If-None-Match: both never hold.",
        )),
        (None, Some("*")) => Ok(Some(RevisionCondition::Absent)),
        (None, Some(_)) => Err(Problem::invalid("If-None-Match must be `*` here.")),
        (Some("*"), None) => Ok(Some(RevisionCondition::Any)),
        (Some(tag), None) => {
            let text = tag.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let tag = text.and_then(|it| it.parse().ok());
            let tag = tag.ok_or_else(|| {
                Problem::invalid("If-Match must be one entity tag as ETag had it, or `*`.")
            })?;
            Ok(Some(RevisionCondition::Exactly(tag)))
        }
        (None, None) => Ok(None),
    }
}

fn idempotency_key(
    listed: &[Input],
    headers: &HeaderMap,
    is_read: bool,
) -> Result<Option<String>, Problem> {
    if is_read {
        return Ok(None);
    }
    let key = single(headers, &IDEMPOTENCY_KEY, listed, Input::IdempotencyKey)?;
    let Some(key) = key else {
        return Ok(None);
    };
    let is_plain = key.bytes().all(|it| it.is_ascii_graphic());
    if !is_plain || !(1..=KEY_BYTES_MAX).contains(&key.len()) {
        let detail = format!(
            "Idempotency-Key must have 1 to {KEY_BYTES_MAX} visible characters of ASCII, e.g. a UUID."
        );
        return Err(Problem::invalid(detail));
    }
    Ok(Some(key.to_owned()))
}

/// The value of a header that is sent once, to a route that has it.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    listed: &[Input],
    input: Input,
) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if !listed.contains(&input) {
        let detail = format!("The header {name} has no effect here; leave it out.");
        return Err(Problem::invalid(detail));
    }
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim())),
        (Ok(_) | Err(_), _) => Err(Problem::invalid(format!(
            "The header {name} must be sent once, in ASCII."
        ))),
    }
}

#[cfg(test)]
mod tests;
