//! HTTP server of the broker; a later platform is to use it too.
//!
//! Holds the listener and its drain ([`Server`]), TLS, limits, authentication ([`Auth`]), the
//! [`RequestContext`] with the request log, request metrics and trace context, probes, request bodies,
//! streamed responses and the form of error responses. It knows neither a journal nor the Open Service
//! Broker API: a caller implements [`Handler`]. Start with `server.rs`.

mod auth;
mod body;
mod chunked_body;
mod error_response;
pub mod metrics;
mod probes;
mod request_context;
mod server;
mod stream;
mod trace;

pub use auth::{
    Auth, AuthConfigError, AuthMethod, AuthMethods, Caller, Certificates, Challenges, Issuer,
    KeySet, Rejection, TokenError, Users, hash_password,
};
pub use body::{BodyError, BodyLimits, read_body};
pub use chunked_body::ChunkedBody;
pub use error_response::{ErrorResponse, ErrorResponseParts, json_response};
pub use probes::{Health, Probes, Readiness};
pub use request_context::RequestContext;
pub use server::{
    Admission, BodyBudget, CallerLimitExceeded, CallerPermit, ClientCertificates, Handler, Limits,
    LongRequestError, LongRequestPermit, PeerCertificate, QueueFull, Rate, RequestClass, Server,
    ServerSettings, SharedLimits, Slot, Tls, TlsAcceptor, TlsConfigError, TlsFileError,
    raise_descriptor_limit,
};
pub use stream::{ChunkSender, long_response, streamed_response};
pub use trace::{Propagation, TraceParent, join_trace, propagate_with};
