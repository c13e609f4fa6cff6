//! Raw requests and raw answers: what goes over the wire, bounded in time and size.
//!
//! No body is understood here and no status judged. Read on in `wire/connection.rs` (how a broker
//! is reached), `wire/exchange.rs` (what is sent and what comes back) and `wire/transport_error.rs` (why nothing
//! came back).

mod connection;
mod exchange;
mod transport_error;

pub use connection::{Connection, ConnectionBuilder, InvalidConnectionError};
pub use exchange::{Answer, Method, Proof, Request, TransportError};
