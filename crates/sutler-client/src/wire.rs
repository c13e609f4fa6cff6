//! Raw HTTP requests and answers, bounded in time and size.
//!
//! Interprets neither bodies nor statuses. Read `wire/connection.rs` (connecting to a broker),
//! `wire/exchange.rs` (request and answer) and `wire/transport_error.rs` (missing answers).

mod connection;
mod exchange;
mod transport_error;

pub use connection::{Connection, ConnectionBuilder, InvalidConnectionError};
pub use exchange::{Answer, Method, Proof, Request, TransportError};
