//! Raw HTTP requests and answers, bounded in time and size.
//!
//! Interprets neither bodies nor statuses, except that a 401 may mean an expired access token. Read
//! `wire/connection.rs` (sending to a broker), `wire/connection_builder.rs` and `wire/server_url.rs` (its settings),
//! `wire/exchange.rs` (request and answer), `wire/transport_error.rs` (missing answers), `wire/http_answer.rs` (bounds). Then
//! `wire/egress.rs` (where a broker may be), `wire/host_lookup.rs` (its addresses, with
//! `wire/lookup_cache.rs`), `wire/token_source.rs` (OAuth2) and `wire/stored_request.rs` (requests as
//! bytes), which need nothing else of this crate.

mod connection;
mod connection_builder;
mod exchange;
mod http_answer;
mod server_url;
mod transport_error;

mod address_class;
mod egress;
mod host_lookup;
mod ip_network;
mod lookup_cache;

mod client_credentials;
mod token_source;

mod stored_request;

pub use address_class::AddressClass;
pub use client_credentials::{ClientCredentials, SecretPlacement};
pub use connection::Connection;
pub use connection_builder::{ConnectionBuilder, InvalidConnectionError};
pub use egress::EgressPolicy;
pub use exchange::{Answer, Method, Proof, Request, TransportError};
pub use ip_network::{IpNetwork, IpNetworkError};
pub use stored_request::{STORED_REQUEST_BYTES_MAX, StoredRequestError};
