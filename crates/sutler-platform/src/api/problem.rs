//! Problems: answers that are not a success, as `application/problem+json` (RFC 9457).
//!
//! A problem is a word with its status (`problem_word.rs`), a sentence, what to do next, and what belongs to it: the rules
//! that are broken, the intent, the words of the broker. It holds no secret and no cause of a fault of the platform.

use super::access::Permission;
use super::problem_word::ProblemWord;
use super::views::BrokerWords;
use crate::brokers::{BrokerCommandError, BrokerViewError};
use crate::commands::CommandError;
use crate::lifecycle::binding::BindingEventError;
use crate::lifecycle::breaker::BreakerEventError;
use crate::lifecycle::instance::InstanceEventError;
use crate::lifecycle::intent::{BrokerStatement, IntentNumber};
use crate::lifecycle::orphan::OrphanEventError;
use crate::preflight::Violation;
use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Response};
use serde::Serialize;
use std::error::Error;
use sutler_records::RecordError;
use sutler_server::{BodyError, CallerLimitExceeded, ErrorResponse, QueueFull, Rejection};

/// Media type of every problem.
const MEDIA: &str = "application/problem+json";
/// The noun that names this server in sentences of `sutler-server`.
pub(super) const SERVER: &str = "platform";

/// An answer that is not a success.
#[derive(Debug)]
pub(crate) struct Problem(Box<ProblemParts>);

#[derive(Debug)]
struct ProblemParts {
    word: ProblemWord,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: ProblemDetails,
}

/// What belongs to a problem besides its word.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProblemDetails {
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<FieldViolation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<IntentNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<IntentNumber>,
}

/// What is wrong with a part of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldViolation {
    /// The part, as a JSON pointer; empty for the whole body.
    pub pointer: String,
    /// What is wrong and what to do.
    pub sentence: String,
    /// The rule of the specification, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
}

/// A problem as it is sent.
#[derive(Serialize)]
struct ProblemDocument<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    #[serde(flatten)]
    details: &'a ProblemDetails,
}

impl Problem {
    /// A problem with a sentence.
    pub(crate) fn new(word: ProblemWord, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemParts {
            word,
            headers: Vec::new(),
            body: ProblemDetails {
                detail: sentence(detail.into()),
                next: word.next().map(str::to_owned),
                ..ProblemDetails::default()
            },
        }))
    }

    /// A request that is not valid as a whole.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemWord::Invalid, detail)
    }

    /// A part of the body that is not valid.
    pub(crate) fn invalid_field(pointer: &str, reason: impl Into<String>) -> Self {
        let mut problem = Self::invalid("The body has a value that cannot be used.");
        problem.0.body.violations.push(FieldViolation {
            pointer: pointer.to_owned(),
            sentence: sentence(reason.into()),
            rule: None,
        });
        problem
    }

    /// A part of the body that is valid, and not possible here.
    pub(crate) fn broken_field(pointer: &str, reason: impl Into<String>) -> Self {
        let mut problem = Self::new(ProblemWord::RulesBroken, "The change breaks a rule.");
        problem.0.body.violations.push(FieldViolation {
            pointer: pointer.to_owned(),
            sentence: sentence(reason.into()),
            rule: None,
        });
        problem
    }

    /// Something that does not exist, e.g. a namespace.
    pub(crate) fn no_such(kind: &str, name: &str) -> Self {
        let name: String = name.chars().take(NAME_CHARS_SHOWN).collect();
        Self::new(
            ProblemWord::NotFound,
            format!("There is no {kind} `{name}`."),
        )
    }

    /// A path that leads nowhere.
    pub(crate) fn no_such_path() -> Self {
        let detail = "There is nothing at this path; the API begins at /api/v1/.";
        Self::new(ProblemWord::NotFound, detail)
    }

    /// A path that takes these methods only.
    pub(crate) fn method_not_allowed(allowed: &str) -> Self {
        let problem = Self::new(
            ProblemWord::MethodNotAllowed,
            format!("This path takes {allowed}."),
        );
        match HeaderValue::from_str(allowed) {
            Ok(value) => problem.with_header(ALLOW, value),
            Err(_) => problem,
        }
    }

    /// An author without a permission.
    pub(crate) fn lacks(permission: Permission) -> Self {
        let word = permission.word();
        let detail = format!("This needs the permission `{word}`, which you do not have.");
        Self::new(ProblemWord::NotAllowed, detail)
    }

    /// A fault of the platform. The cause is logged, and not answered.
    pub(crate) fn internal(cause: &dyn Error) -> Self {
        tracing::error!(error = %chain(cause), "a request could not be answered");
        Self::new(ProblemWord::Internal, "Something went wrong.")
    }

    /// A handler that panicked; the message is on standard error.
    pub(crate) fn panicked() -> Self {
        tracing::error!("a request handler panicked; the message is on standard error");
        Self::new(ProblemWord::Internal, "Something went wrong.")
    }

    /// Names the intent.
    #[must_use]
    pub(crate) fn with_intent(mut self, number: IntentNumber) -> Self {
        self.0.body.intent = Some(number);
        self
    }

    /// Adds the words of the broker.
    #[must_use]
    pub(crate) fn with_broker(mut self, statement: &BrokerStatement) -> Self {
        self.0.body.broker = Some(BrokerWords::of(statement));
        self
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    fn with_violations(mut self, violations: &[Violation]) -> Self {
        let violations = violations.iter().map(|it| FieldViolation {
            pointer: it.pointer.clone(),
            sentence: it.sentence.clone(),
            rule: Some(it.rule),
        });
        self.0.body.violations = violations.collect();
        self
    }

    /// A refusal by the server itself, in the form of this API.
    pub(super) fn of_server(word: ProblemWord, refusal: ErrorResponse) -> Self {
        let refusal = refusal.into_parts();
        let mut problem = Self::new(word, refusal.description);
        problem.0.headers = refusal.headers;
        problem
    }

    /// The word.
    pub(crate) fn word(&self) -> ProblemWord {
        self.0.word
    }

    /// The body.
    pub(crate) fn document(&self) -> serde_json::Value {
        let ProblemParts { word, body, .. } = self.0.as_ref();
        let document = ProblemDocument {
            r#type: format!("urn:sutler:{}", word.word()),
            title: word.title(),
            status: word.status().as_u16(),
            details: body,
        };
        serde_json::to_value(document).expect("our own types serialise")
    }
}

/// Longest name from a request that is repeated in a problem, in characters.
const NAME_CHARS_SHOWN: usize = 100;

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Self {
        let mut response = Response::new(Body::from(problem.document().to_string()));
        let word = problem.0.word;
        *response.status_mut() = word.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = word.retry_after_seconds() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        for (name, value) in problem.0.headers {
            match name {
                // The server knows better how long.
                RETRY_AFTER => drop(headers.insert(RETRY_AFTER, value)),
                name => drop(headers.append(name, value)),
            }
        }
        response
    }
}

impl From<InstanceEventError> for Problem {
    fn from(error: InstanceEventError) -> Self {
        let problem = Self::new(ProblemWord::of_instance(&error), error.to_string());
        match error {
            InstanceEventError::Violations(violations) => problem.with_violations(&violations),
            InstanceEventError::RejectedBefore(number) => {
                let mut problem = problem;
                problem.0.body.duplicate_of = Some(number);
                problem
            }
            InstanceEventError::HasBindings(names) => problem.listing(&names),
            InstanceEventError::WrongIntent(number, _) | InstanceEventError::NotKept(number) => {
                problem.with_intent(number)
            }
            InstanceEventError::NotFound
            | InstanceEventError::AlreadyExists
            | InstanceEventError::Gone
            | InstanceEventError::TooManyPending
            | InstanceEventError::KeyReused
            | InstanceEventError::TooManyUses
            | InstanceEventError::RevisionChanged { .. }
            | InstanceEventError::Deleting
            | InstanceEventError::Busy
            | InstanceEventError::Protected
            | InstanceEventError::NotDeleting
            | InstanceEventError::NotLive
            | InstanceEventError::OutOfDate => problem,
        }
    }
}

impl From<BindingEventError> for Problem {
    fn from(error: BindingEventError) -> Self {
        let problem = Self::new(ProblemWord::of_binding(&error), error.to_string());
        match error {
            BindingEventError::Violations(violations) => problem.with_violations(&violations),
            BindingEventError::WrongIntent(number, _) => problem.with_intent(number),
            BindingEventError::NotFound
            | BindingEventError::AlreadyExists
            | BindingEventError::Gone
            | BindingEventError::NoInstance
            | BindingEventError::InstanceDeleting
            | BindingEventError::InstanceUnusable
            | BindingEventError::Deleting
            | BindingEventError::NotBound
            | BindingEventError::KeyReused
            | BindingEventError::TooManyGenerations
            | BindingEventError::NotDeleting
            | BindingEventError::NotDue
            | BindingEventError::OutOfDate => problem,
        }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        let problem = Self::new(ProblemWord::of_command(&error), error.to_string());
        match error {
            CommandError::Instance(error) => error.into(),
            CommandError::Binding(error) => error.into(),
            CommandError::Orphan(error) => error.into(),
            CommandError::Invalid { pointer, sentence } => Self::invalid_field(pointer, sentence),
            CommandError::Unavailable(error) => error.into(),
            CommandError::Broker(BrokerViewError::Record(error)) => error.into(),
            CommandError::NoNamespace(_)
            | CommandError::NamespaceIsDeleting(_)
            | CommandError::NamespaceInUse(_)
            | CommandError::BrokerIsLeaving(_)
            | CommandError::NoSecret(_)
            | CommandError::SecretInUse(_)
            | CommandError::NameTaken(_)
            | CommandError::BrokerIdTaken
            | CommandError::OrphanWithoutBroker
            | CommandError::Author(_)
            | CommandError::TooLarge(_)
            | CommandError::Contended
            | CommandError::NewerVersion
            | CommandError::Broker(
                BrokerViewError::NotRegistered(_) | BrokerViewError::NewerForm(_),
            ) => problem,
        }
    }
}

impl From<BrokerCommandError> for Problem {
    fn from(error: BrokerCommandError) -> Self {
        let problem = Self::new(ProblemWord::of_broker_command(&error), error.to_string());
        match error {
            BrokerCommandError::Invalid { pointer, sentence } => {
                Self::invalid_field(pointer, sentence)
            }
            BrokerCommandError::Breaker(error) => error.into(),
            BrokerCommandError::Unavailable(error) => error.into(),
            BrokerCommandError::NoBroker
            | BrokerCommandError::NoNamespace
            | BrokerCommandError::NamespaceIsDeleting
            | BrokerCommandError::NameTaken
            | BrokerCommandError::TooManyBrokers(_)
            | BrokerCommandError::OtherRevision(_)
            | BrokerCommandError::Deregistering
            | BrokerCommandError::HasInstances(_)
            | BrokerCommandError::HasOrphans(_)
            | BrokerCommandError::TooLarge(_)
            | BrokerCommandError::Contended
            | BrokerCommandError::NewerForm => problem,
        }
    }
}

impl From<OrphanEventError> for Problem {
    fn from(error: OrphanEventError) -> Self {
        Self::new(ProblemWord::of_orphan(error), error.to_string())
    }
}

impl From<BreakerEventError> for Problem {
    fn from(error: BreakerEventError) -> Self {
        Self::new(ProblemWord::of_breaker(error), error.to_string())
    }
}

impl From<RecordError> for Problem {
    fn from(error: RecordError) -> Self {
        match &error {
            RecordError::Store(_) => {
                tracing::error!(error = %chain(&error), "the store does not answer");
                let detail = "The store of the platform does not answer.";
                Self::new(ProblemWord::Unavailable, detail)
            }
            RecordError::Seal(_) | RecordError::Form(_) => Self::internal(&error),
        }
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let word = ProblemWord::of_rejection(&rejection);
        Self::of_server(word, ErrorResponse::rejected(rejection, SERVER))
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let word = ProblemWord::of_body(error);
        Self::of_server(word, ErrorResponse::body(error, SERVER))
    }
}

impl From<QueueFull> for Problem {
    fn from(_: QueueFull) -> Self {
        Self::of_server(ProblemWord::Overloaded, ErrorResponse::overloaded(SERVER))
    }
}

impl From<CallerLimitExceeded> for Problem {
    fn from(exceeded: CallerLimitExceeded) -> Self {
        let word = ProblemWord::of_caller_limit(exceeded);
        Self::of_server(word, ErrorResponse::caller_limited(exceeded))
    }
}

impl Problem {
    /// The names of what is in the way, at most some of them.
    fn listing(mut self, names: &[String]) -> Self {
        const NAMES_MAX: usize = 20;
        let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMES_MAX);
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let detail = &mut self.0.body.detail;
        *detail = format!("{} They are: {}{more}.", detail, shown.join(", "));
        self
    }
}

/// A sentence of an error as one for people: with a capital letter and a full stop.
fn sentence(text: String) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else {
        return text;
    };
    let end = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    first.to_uppercase().chain(letters).collect::<String>() + end
}

/// An error with its causes, for the log.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
