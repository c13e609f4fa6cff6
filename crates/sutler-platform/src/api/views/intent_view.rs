//! Intents as they are shown: who, what difference, on top of what, how far, and the broker's words.
//!
//! One form for intents of instances and of bindings, pending and ended. Fields that a form does not have are left out.

use super::AuthorView;
use super::catalog_names::CatalogNames;
use super::spec_view::{DifferenceView, shown_path};
use crate::commands::IntentView as JournalIntent;
use crate::lifecycle::binding;
use crate::lifecycle::instance;
use crate::lifecycle::intent::{
    BrokerStatement, CancelledBy, DependencyReason, HoldReason, IntentCause, IntentEnd,
    IntentNumber, IntentState, OnFailure, UnknownQuestion,
};
use crate::records::SendAttempt;
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

/// Words of a broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BrokerWords {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl BrokerWords {
    pub(crate) fn of(statement: &BrokerStatement) -> Self {
        Self {
            status: statement.status,
            error: statement.error.clone(),
            description: statement.description.clone(),
        }
    }
}

/// An intent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IntentDocument {
    number: IntentNumber,
    verb: String,
    #[serde(flatten)]
    progress: IntentProgressView,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<AuthorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<DifferenceView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CauseView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stands_on: Vec<IntentNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_sent: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// Whether an attempt may have had an effect that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_doubt: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempt_log: Vec<AttemptView>,
}

/// One sending of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AttemptView {
    number: u32,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerWords>,
}

/// What caused an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CauseView {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<IntentNumber>,
}

/// How far an intent has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct IntentProgressView {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    broker: Option<BrokerWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<HoldView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// How an unknown outcome is found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<IntentNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_by: Option<CancellationView>,
}

/// Why an intent waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct HoldView {
    reason: &'static str,
    sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<IntentNumber>,
}

/// What cancelled an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct CancellationView {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<AuthorView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<IntentNumber>,
}

impl IntentDocument {
    fn new(number: IntentNumber, verb: &str, progress: IntentProgressView) -> Self {
        Self {
            number,
            verb: verb.to_owned(),
            progress,
            author: None,
            diff: None,
            cause: None,
            stands_on: Vec::new(),
            on_failure: None,
            operation: None,
            accepted: None,
            first_sent: None,
            ended: None,
            attempts: None,
            in_doubt: false,
            attempt_log: Vec::new(),
        }
    }

    /// A pending intent of an instance.
    pub(crate) fn of_instance(intent: &instance::PendingIntent, names: CatalogNames<'_>) -> Self {
        let progress = IntentProgressView::of_state(&intent.state);
        let verb = instance_verb(&intent.change);
        Self {
            author: Some(AuthorView::of(&intent.author)),
            diff: difference(&intent.change, names),
            cause: Some(CauseView::of(&intent.cause)),
            stands_on: intent.stands_on.clone(),
            on_failure: Some(on_failure(intent.on_failure)),
            operation: Some(intent.operation.0),
            accepted: Some(intent.accepted),
            first_sent: intent.first_sent,
            attempts: Some(intent.attempts),
            in_doubt: intent.in_doubt,
            ..Self::new(intent.number, verb, progress)
        }
    }

    /// An ended intent of an instance.
    pub(crate) fn of_ended_instance(
        intent: &instance::EndedIntent,
        names: CatalogNames<'_>,
    ) -> Self {
        let progress = IntentProgressView::of_end(&intent.end);
        let verb = instance_verb(&intent.change);
        Self {
            author: Some(AuthorView::of(&intent.author)),
            diff: difference(&intent.change, names),
            ended: Some(intent.at),
            ..Self::new(intent.number, verb, progress)
        }
    }

    /// A pending intent of a binding.
    pub(crate) fn of_binding(intent: &binding::PendingIntent) -> Self {
        let progress = IntentProgressView::of_state(&intent.state);
        let verb = binding_verb(&intent.change);
        Self {
            author: Some(AuthorView::of(&intent.author)),
            cause: Some(CauseView::of_binding(&intent.cause)),
            operation: Some(intent.operation.0),
            accepted: Some(intent.accepted),
            first_sent: intent.first_sent,
            attempts: Some(intent.attempts),
            in_doubt: intent.in_doubt,
            ..Self::new(intent.number, verb, progress)
        }
    }

    /// An ended intent of a binding.
    pub(crate) fn of_ended_binding(intent: &binding::EndedIntent) -> Self {
        let progress = IntentProgressView::of_end(&intent.end);
        let verb = binding_verb(&intent.change);
        Self {
            author: Some(AuthorView::of(&intent.author)),
            cause: Some(CauseView::of_binding(&intent.cause)),
            ended: Some(intent.at),
            ..Self::new(intent.number, verb, progress)
        }
    }

    /// An intent as the journal has it. `names`: of the offering, for an intent of an instance.
    pub(crate) fn of_journal(intent: &JournalIntent, names: Option<CatalogNames<'_>>) -> Self {
        let JournalIntent {
            request, detail, ..
        } = intent;
        let progress = match &detail.end {
            Some(end) => IntentProgressView::of_end(end),
            None => IntentProgressView {
                state: "pending",
                ..IntentProgressView::default()
            },
        };
        let diff = request.patch.as_ref().zip(names);
        let view = Self {
            author: request.author.as_ref().map(AuthorView::of),
            diff: diff.map(|(patch, names)| DifferenceView::of(patch, names)),
            stands_on: request.stands_on.clone(),
            accepted: Some(request.accepted),
            ..Self::new(request.number, &request.verb, progress)
        };
        view.with_journal(intent)
    }

    /// Whether its operation is known; a resource does not keep that of an ended one.
    pub(crate) fn has_operation(&self) -> bool {
        self.operation.is_some()
    }

    /// Adds what only the journal has: the operation, and what was sent.
    #[must_use]
    pub(crate) fn with_journal(mut self, intent: &JournalIntent) -> Self {
        let attempts = intent.progress.attempts.kept();
        self.operation = Some(intent.operation.0);
        self.accepted = Some(intent.request.accepted);
        self.attempt_log = attempts.map(AttemptView::of).collect();
        self
    }
}

impl AttemptView {
    fn of(attempt: &SendAttempt) -> Self {
        Self {
            number: attempt.number,
            at: attempt.at,
            broker: attempt.answer.as_ref().map(BrokerWords::of),
        }
    }
}

fn instance_verb(change: &instance::IntentChange) -> &'static str {
    match change {
        instance::IntentChange::Provision => "provision",
        instance::IntentChange::Update(_) => "update",
        instance::IntentChange::Local(_) => "local",
        instance::IntentChange::Delete => "delete",
    }
}

fn binding_verb(change: &binding::IntentChange) -> &'static str {
    match change {
        binding::IntentChange::Bind(bind) if bind.predecessor.is_some() => "rotate",
        binding::IntentChange::Bind(_) => "bind",
        binding::IntentChange::Unbind(_) => "unbind",
        binding::IntentChange::Delete => "delete",
    }
}

fn difference(change: &instance::IntentChange, names: CatalogNames<'_>) -> Option<DifferenceView> {
    let patch = change.patch();
    patch.map(|patch| DifferenceView::of(patch, names))
}

fn on_failure(choice: OnFailure) -> &'static str {
    match choice {
        OnFailure::Skip => "skip",
        OnFailure::Halt => "halt",
    }
}

impl CauseView {
    fn of(cause: &IntentCause) -> Self {
        let (kind, of) = match cause {
            IntentCause::User => ("user", None),
            IntentCause::Retry(of) => ("retry", Some(*of)),
            IntentCause::Resume(of) => ("resume", Some(*of)),
            IntentCause::Rollback(of) => ("rollback", Some(*of)),
            IntentCause::AutoRetry(of) => ("auto_retry", Some(*of)),
            IntentCause::SecretChange => ("secret_change", None),
            IntentCause::Cascade => ("cascade", None),
        };
        Self { kind, of }
    }

    fn of_binding(cause: &binding::IntentCause) -> Self {
        let (kind, of) = match cause {
            binding::IntentCause::User => ("user", None),
            binding::IntentCause::Retry(of) => ("retry", Some(*of)),
            binding::IntentCause::Resume(of) => ("resume", Some(*of)),
            binding::IntentCause::AutoRetry(of) => ("auto_retry", Some(*of)),
            binding::IntentCause::Renewal => ("renewal", None),
            binding::IntentCause::Retirement => ("retirement", None),
            binding::IntentCause::Cascade => ("cascade", None),
        };
        Self { kind, of }
    }
}

impl IntentProgressView {
    fn of_state(state: &IntentState) -> Self {
        let view = |state: &'static str| Self {
            state,
            ..Self::default()
        };
        match state {
            IntentState::Queued { last } => Self {
                broker: last.as_ref().map(BrokerWords::of),
                ..view("queued")
            },
            IntentState::OnHold(reason) => Self {
                hold: Some(HoldView::of(reason)),
                ..view("on_hold")
            },
            IntentState::Suspended => view("suspended"),
            IntentState::Sending { attempt } => Self {
                attempt: Some(*attempt),
                ..view("sending")
            },
            IntentState::Unknown { question } => Self {
                question: Some(match question {
                    UnknownQuestion::SendAgain => "send_again",
                    UnknownQuestion::LookFirst => "look_first",
                }),
                ..view("unknown")
            },
            IntentState::Polling { since } => Self {
                since: Some(*since),
                ..view("polling")
            },
        }
    }

    fn of_end(end: &IntentEnd) -> Self {
        let view = |state: &'static str| Self {
            state,
            ..Self::default()
        };
        match end {
            IntentEnd::Succeeded => view("succeeded"),
            IntentEnd::Rejected(words) => Self {
                broker: Some(BrokerWords::of(words)),
                ..view("rejected")
            },
            IntentEnd::Failed(words) => Self {
                broker: Some(BrokerWords::of(words)),
                ..view("failed")
            },
            IntentEnd::Superseded(by) => Self {
                superseded_by: Some(*by),
                ..view("superseded")
            },
            IntentEnd::Cancelled(by) => Self {
                cancelled_by: Some(CancellationView::of(by)),
                ..view("cancelled")
            },
        }
    }
}

impl HoldView {
    fn of(reason: &HoldReason) -> Self {
        let (reason, intent, sentence) = match reason {
            HoldReason::DependsOn { dropped, because } => (
                "depends_on",
                Some(*dropped),
                format!(
                    "it stands on {dropped}, which has no effect: {}",
                    shared(because)
                ),
            ),
            HoldReason::HaltedBy(number) => (
                "halted_by",
                Some(*number),
                format!("{number} failed, and everything behind it waits"),
            ),
            HoldReason::UnresolvedParameters(sentence) => {
                ("unresolved_parameters", None, sentence.clone())
            }
            HoldReason::InvalidParameters(sentences) => {
                ("invalid_parameters", None, sentences.join("; "))
            }
            HoldReason::Interrupted => (
                "interrupted",
                None,
                "it was interrupted too often without an answer".to_owned(),
            ),
        };
        Self {
            reason,
            sentence,
            intent,
        }
    }
}

fn shared(reason: &DependencyReason) -> String {
    match reason {
        DependencyReason::SamePath(path) => format!("both change {}", shown_path(path)),
        DependencyReason::PlanChange => {
            "it changes parameters of the plan that the other one chose".to_owned()
        }
        DependencyReason::SchemaMismatch => {
            "without the other one the parameters do not fit the plan".to_owned()
        }
        DependencyReason::Creation => "the other one was to create the instance".to_owned(),
    }
}

impl CancellationView {
    fn of(by: &CancelledBy) -> Self {
        let (kind, by, intent) = match by {
            CancelledBy::Person(author) => ("person", Some(AuthorView::of(author)), None),
            CancelledBy::Delete(number) => ("delete", None, Some(*number)),
            CancelledBy::Abandon(author) => ("abandon", Some(AuthorView::of(author)), None),
        };
        Self { kind, by, intent }
    }
}
