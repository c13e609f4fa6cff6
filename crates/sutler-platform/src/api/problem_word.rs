//! Every problem that the API answers, by a word for programs, with its status; and which refusal is which problem.
//!
//! Nothing else in this crate chooses a status of a refusal. The sentences for people are those of the refusals;
//! `problem.rs` makes the body. A 5xx never contains a cause: that is in the log of the operator.

use crate::brokers::{BrokerCommandError, BrokerViewError};
use crate::commands::CommandError;
use crate::lifecycle::binding::BindingEventError;
use crate::lifecycle::breaker::BreakerEventError;
use crate::lifecycle::instance::InstanceEventError;
use crate::lifecycle::orphan::OrphanEventError;
use axum::http::StatusCode;
use sutler_server::{BodyError, CallerLimitExceeded, Rejection};

/// A problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProblemWord {
    /// Something in the request is missing or wrong.
    Invalid,
    /// The caller is not known.
    Unauthenticated,
    /// The caller lacks a permission.
    NotAllowed,
    /// There is no such thing.
    NotFound,
    /// The path takes other methods.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The name is taken.
    AlreadyExists,
    /// A delete is in progress.
    Deleting,
    /// Another change or request is in progress.
    Busy,
    /// The instance refuses deletes.
    Protected,
    /// Bindings exist.
    HasBindings,
    /// Instances exist.
    HasInstances,
    /// Something uses it.
    InUse,
    /// There are as many as there may be.
    QuotaExceeded,
    /// The state does not admit it.
    WrongState,
    /// The intent does not admit it.
    WrongIntent,
    /// The intent was cancelled before it had an effect.
    Cancelled,
    /// It was deleted.
    Gone,
    /// Another revision is shown by now.
    RevisionChanged,
    /// The request is too large.
    TooLarge,
    /// The path and query are too long.
    UriTooLong,
    /// The body is not JSON.
    UnsupportedMediaType,
    /// The change breaks rules that are known before anything is sent.
    RulesBroken,
    /// The broker has rejected the same change before.
    RejectedBefore,
    /// Another request was sent with the key.
    KeyReused,
    /// What was confirmed then is not kept.
    NotKept,
    /// The broker rejected the change, and nothing has changed.
    Rejected,
    /// The change failed, or nothing is known of it.
    Failed,
    /// A condition is required.
    PreconditionRequired,
    /// Too many changes wait.
    TooManyPending,
    /// The caller sends too many requests.
    TooManyRequests,
    /// There are too many headers.
    HeadersTooLarge,
    /// A fault of the platform.
    Internal,
    /// The store does not answer.
    Unavailable,
    /// The platform has too much to do.
    Overloaded,
    /// Others change the same thing all the time.
    Contended,
    /// A newer version of the platform wrote it.
    NewerVersion,
}

impl ProblemWord {
    /// The word for programs; part of the problem's type.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::NotAllowed => "not_allowed",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::AlreadyExists => "already_exists",
            Self::Deleting => "deleting",
            Self::Busy => "busy",
            Self::Protected => "protected",
            Self::HasBindings => "has_bindings",
            Self::HasInstances => "has_instances",
            Self::InUse => "in_use",
            Self::QuotaExceeded => "quota_exceeded",
            Self::WrongState => "wrong_state",
            Self::WrongIntent => "wrong_intent",
            Self::Cancelled => "cancelled",
            Self::Gone => "gone",
            Self::RevisionChanged => "revision_changed",
            Self::TooLarge => "too_large",
            Self::UriTooLong => "uri_too_long",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RulesBroken => "rules_broken",
            Self::RejectedBefore => "rejected_before",
            Self::KeyReused => "key_reused",
            Self::NotKept => "not_kept",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::PreconditionRequired => "precondition_required",
            Self::TooManyPending => "too_many_pending",
            Self::TooManyRequests => "too_many_requests",
            Self::HeadersTooLarge => "headers_too_large",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Overloaded => "overloaded",
            Self::Contended => "contended",
            Self::NewerVersion => "newer_version",
        }
    }

    /// The status.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::NotAllowed => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::AlreadyExists
            | Self::Deleting
            | Self::Busy
            | Self::Protected
            | Self::HasBindings
            | Self::HasInstances
            | Self::InUse
            | Self::QuotaExceeded
            | Self::WrongState
            | Self::WrongIntent
            | Self::Cancelled => StatusCode::CONFLICT,
            Self::Gone => StatusCode::GONE,
            Self::RevisionChanged => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RulesBroken
            | Self::RejectedBefore
            | Self::KeyReused
            | Self::NotKept
            | Self::Rejected
            | Self::Failed => StatusCode::UNPROCESSABLE_ENTITY,
            Self::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::TooManyPending | Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable | Self::Overloaded | Self::Contended | Self::NewerVersion => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// The same for every problem of this kind, for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Invalid => "The request is not valid",
            Self::Unauthenticated => "The caller is not known",
            Self::NotAllowed => "A permission is missing",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The path takes other methods",
            Self::RequestTimeout => "The body did not arrive in time",
            Self::AlreadyExists => "The name is taken",
            Self::Deleting => "A delete is in progress",
            Self::Busy => "Something else is in progress",
            Self::Protected => "The instance is protected",
            Self::HasBindings => "Bindings exist",
            Self::HasInstances => "Instances exist",
            Self::InUse => "It is in use",
            Self::QuotaExceeded => "There are too many of them",
            Self::WrongState => "The state does not admit it",
            Self::WrongIntent => "The intent does not admit it",
            Self::Cancelled => "The change was cancelled",
            Self::Gone => "It was deleted",
            Self::RevisionChanged => "It was changed since it was read",
            Self::TooLarge => "The request is too large",
            Self::UriTooLong => "The path and query are too long",
            Self::UnsupportedMediaType => "The body has another media type",
            Self::RulesBroken => "The change is not possible",
            Self::RejectedBefore => "The broker rejected the same change before",
            Self::KeyReused => "The key belongs to another request",
            Self::NotKept => "What was confirmed then is not kept",
            Self::Rejected => "The broker rejected the change",
            Self::Failed => "The change failed",
            Self::PreconditionRequired => "A condition is required",
            Self::TooManyPending => "Too many changes wait",
            Self::TooManyRequests => "The caller sends too many requests",
            Self::HeadersTooLarge => "There are too many headers",
            Self::Internal => "The platform could not do this",
            Self::Unavailable => "The platform cannot answer now",
            Self::Overloaded => "The platform has too much to do",
            Self::Contended => "Others change the same thing",
            Self::NewerVersion => "A newer version of the platform wrote it",
        }
    }

    /// What the caller can do; `None` where the sentence of the problem says it.
    pub(crate) fn next(self) -> Option<&'static str> {
        match self {
            Self::Deleting => Some("Take the delete back, or wait until it is done."),
            Self::Busy => Some("Wait for the end of the other one, or cancel it."),
            Self::HasBindings => Some("Delete them first, or send ?cascade=true."),
            Self::HasInstances | Self::InUse => Some("Delete what uses it first."),
            Self::RevisionChanged => Some("Read it again, and decide again."),
            Self::UnsupportedMediaType => Some("Send JSON as application/json."),
            Self::RejectedBefore => Some("Change something, or send ?force=true."),
            Self::Rejected | Self::Failed => {
                Some("See the words of the broker; change something, or retry the intent.")
            }
            Self::TooManyPending => Some("Cancel some of them, or wait."),
            Self::Internal => Some("The operator of the platform can see why."),
            Self::RequestTimeout
            | Self::TooManyRequests
            | Self::Unavailable
            | Self::Overloaded
            | Self::Contended
            | Self::NewerVersion => Some("Repeat the request a little later."),
            Self::Invalid
            | Self::Unauthenticated
            | Self::NotAllowed
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::AlreadyExists
            | Self::Protected
            | Self::QuotaExceeded
            | Self::WrongState
            | Self::WrongIntent
            | Self::Cancelled
            | Self::Gone
            | Self::TooLarge
            | Self::UriTooLong
            | Self::RulesBroken
            | Self::KeyReused
            | Self::NotKept
            | Self::PreconditionRequired
            | Self::HeadersTooLarge => None,
        }
    }

    /// After how many seconds a repetition can succeed, where waiting is enough.
    pub(crate) fn retry_after_seconds(self) -> Option<u64> {
        match self.status() {
            StatusCode::SERVICE_UNAVAILABLE if self == Self::Unavailable => Some(5),
            StatusCode::SERVICE_UNAVAILABLE => Some(1),
            _ => None,
        }
    }

    /// A request about an instance that changes nothing.
    pub(crate) fn of_instance(error: &InstanceEventError) -> Self {
        match error {
            InstanceEventError::NotFound => Self::NotFound,
            InstanceEventError::AlreadyExists => Self::AlreadyExists,
            InstanceEventError::Gone => Self::Gone,
            InstanceEventError::Violations(_) => Self::RulesBroken,
            InstanceEventError::TooManyPending | InstanceEventError::TooManyUses => {
                Self::TooManyPending
            }
            InstanceEventError::RejectedBefore(_) => Self::RejectedBefore,
            InstanceEventError::KeyReused => Self::KeyReused,
            InstanceEventError::RevisionChanged { .. } => Self::RevisionChanged,
            InstanceEventError::Deleting => Self::Deleting,
            InstanceEventError::Busy => Self::Busy,
            InstanceEventError::Protected => Self::Protected,
            InstanceEventError::HasBindings(_) => Self::HasBindings,
            InstanceEventError::WrongIntent(..) => Self::WrongIntent,
            InstanceEventError::NotKept(_) => Self::NotKept,
            InstanceEventError::NotDeleting | InstanceEventError::NotLive => Self::WrongState,
            InstanceEventError::OutOfDate => Self::Contended,
        }
    }

    /// A request about a binding that changes nothing.
    pub(crate) fn of_binding(error: &BindingEventError) -> Self {
        match error {
            BindingEventError::NotFound | BindingEventError::NoInstance => Self::NotFound,
            BindingEventError::AlreadyExists => Self::AlreadyExists,
            BindingEventError::Gone => Self::Gone,
            BindingEventError::Violations(_) => Self::RulesBroken,
            BindingEventError::InstanceDeleting | BindingEventError::Deleting => Self::Deleting,
            BindingEventError::InstanceUnusable
            | BindingEventError::NotBound
            | BindingEventError::TooManyGenerations
            | BindingEventError::NotDeleting
            | BindingEventError::NotDue => Self::WrongState,
            BindingEventError::WrongIntent(..) => Self::WrongIntent,
            BindingEventError::KeyReused => Self::KeyReused,
            BindingEventError::OutOfDate => Self::Contended,
        }
    }

    /// A command that changes nothing.
    pub(crate) fn of_command(error: &CommandError) -> Self {
        match error {
            CommandError::Instance(error) => Self::of_instance(error),
            CommandError::Binding(error) => Self::of_binding(error),
            CommandError::Orphan(error) => Self::of_orphan(*error),
            CommandError::NoNamespace(_) | CommandError::NoSecret(_) => Self::NotFound,
            CommandError::NamespaceIsDeleting(_) | CommandError::BrokerIsLeaving(_) => {
                Self::Deleting
            }
            CommandError::NamespaceInUse(_) | CommandError::SecretInUse(_) => Self::InUse,
            CommandError::NameTaken(_) | CommandError::BrokerIdTaken => Self::AlreadyExists,
            CommandError::Invalid { .. } => Self::Invalid,
            CommandError::Author(_) => Self::NotAllowed,
            CommandError::TooLarge(_) => Self::TooLarge,
            CommandError::Contended => Self::Contended,
            CommandError::NewerVersion | CommandError::Broker(BrokerViewError::NewerForm(_)) => {
                Self::NewerVersion
            }
            CommandError::OrphanWithoutBroker
            | CommandError::Broker(BrokerViewError::NotRegistered(_)) => Self::WrongState,
            CommandError::Broker(BrokerViewError::Record(_)) | CommandError::Unavailable(_) => {
                Self::Unavailable
            }
        }
    }

    /// A command about a broker that changes nothing.
    pub(crate) fn of_broker_command(error: &BrokerCommandError) -> Self {
        match error {
            BrokerCommandError::NoBroker | BrokerCommandError::NoNamespace => Self::NotFound,
            BrokerCommandError::NamespaceIsDeleting | BrokerCommandError::Deregistering => {
                Self::Deleting
            }
            BrokerCommandError::NameTaken => Self::AlreadyExists,
            BrokerCommandError::TooManyBrokers(_) => Self::QuotaExceeded,
            BrokerCommandError::OtherRevision(_) => Self::RevisionChanged,
            BrokerCommandError::HasInstances(_) => Self::HasInstances,
            BrokerCommandError::HasOrphans(_) => Self::InUse,
            BrokerCommandError::Invalid { .. } => Self::Invalid,
            BrokerCommandError::Breaker(error) => Self::of_breaker(*error),
            BrokerCommandError::TooLarge(_) => Self::TooLarge,
            BrokerCommandError::Contended => Self::Contended,
            BrokerCommandError::NewerForm => Self::NewerVersion,
            BrokerCommandError::Unavailable(_) => Self::Unavailable,
        }
    }

    /// A command about an orphan that changes nothing.
    pub(crate) fn of_orphan(error: OrphanEventError) -> Self {
        match error {
            OrphanEventError::NotFound => Self::NotFound,
            OrphanEventError::Sending => Self::Busy,
            OrphanEventError::Done => Self::WrongState,
            OrphanEventError::OutOfDate => Self::Contended,
        }
    }

    /// A command about a breaker that changes nothing.
    pub(crate) fn of_breaker(error: BreakerEventError) -> Self {
        match error {
            BreakerEventError::Paused => Self::WrongState,
            BreakerEventError::OutOfDate => Self::Contended,
        }
    }

    /// A body that could not be read.
    pub(crate) fn of_body(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => Self::TooLarge,
            BodyError::TooSlow => Self::RequestTimeout,
            BodyError::Broken => Self::Invalid,
            BodyError::NoRoom(_) => Self::Overloaded,
        }
    }

    /// A request that is not authenticated.
    pub(crate) fn of_rejection(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Unproven(..) => Self::Unauthenticated,
            Rejection::LacksScope(_) => Self::NotAllowed,
            Rejection::TooManyGuesses { .. } => Self::TooManyRequests,
            Rejection::Busy => Self::Overloaded,
            Rejection::IssuerUnavailable => Self::Unavailable,
        }
    }

    /// A caller beyond its limits.
    pub(crate) fn of_caller_limit(exceeded: CallerLimitExceeded) -> Self {
        match exceeded {
            CallerLimitExceeded::Concurrency | CallerLimitExceeded::Rate(_) => {
                Self::TooManyRequests
            }
        }
    }
}
