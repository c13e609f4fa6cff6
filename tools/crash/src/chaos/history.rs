//! History of requests and responses of clients, which is checked afterwards.
//!
//! Pure data. `client.rs` records it, `linearizability.rs` and `leftovers.rs` check it. Not here: executions
//! on the server, which are in the event log (`victim/replica_log.rs`) and in the store.

use crate::platform::RequestMode;

/// Bindings that one instance may have.
pub const BINDINGS: [&str; 2] = ["left", "right"];

/// Requested properties of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Size.
    pub size: u32,
    /// Its creation must fail.
    pub fails: bool,
}

/// One request about an instance or one of its bindings, which are identified by their index in
/// [`BINDINGS`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// PUT of the instance.
    Provision(Spec),
    /// PATCH to this size.
    Update(u32),
    /// DELETE of the instance.
    Deprovision,
    /// PUT of a binding.
    Bind(usize),
    /// DELETE of a binding.
    Unbind(usize),
    /// GET of the instance.
    Fetch,
    /// GET of a binding.
    FetchBinding(usize),
    /// Poll of an operation: of a binding, or of the instance.
    Poll(Option<usize>, String),
}

impl Call {
    /// The verb of the operation that it starts; `None` for reads.
    pub fn verb(&self) -> Option<&'static str> {
        match self {
            Self::Provision(_) => Some("provision"),
            Self::Update(_) => Some("update"),
            Self::Deprovision => Some("deprovision"),
            Self::Bind(_) => Some("bind"),
            Self::Unbind(_) => Some("unbind"),
            Self::Fetch | Self::FetchBinding(_) | Self::Poll(..) => None,
        }
    }

    /// The binding of the request; `None`: the instance itself.
    pub fn binding(&self) -> Option<usize> {
        match self {
            Self::Bind(n) | Self::Unbind(n) | Self::FetchBinding(n) => Some(*n),
            Self::Poll(of, _) => *of,
            Self::Provision(_) | Self::Update(_) | Self::Deprovision | Self::Fetch => None,
        }
    }
}

/// State in a poll response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// `in progress`.
    Running,
    /// `succeeded`.
    Succeeded,
    /// `failed`.
    Failed,
}

/// Response that a client observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObservedReply {
    /// No response, or one without a guarantee: it may take effect, now or later, or not.
    Unknown,
    /// 202 with its operation.
    Accepted(String),
    /// 200 or 201 to a change, with the credentials of a binding.
    Done(Option<String>),
    /// 200 to a fetch: a size or a secret.
    Found(String),
    /// 200 to a poll.
    Polled(Progress),
    /// 404.
    Missing,
    /// 410.
    Gone,
    /// 409.
    Conflict,
    /// 422.
    Busy,
    /// A response that is not allowed for the request.
    Unexpected(String),
}

/// One request of one client, with times in microseconds of one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The instance of the request.
    pub instance: String,
    /// Request.
    pub call: Call,
    /// With or without `accepts_incomplete`.
    pub mode: RequestMode,
    /// Replica that got the request.
    pub replica: usize,
    /// Time of sending.
    pub began: u64,
    /// Time of the response, or of giving up.
    pub ended: u64,
    /// Response.
    pub observed: ObservedReply,
}
