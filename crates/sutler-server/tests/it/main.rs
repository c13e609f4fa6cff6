//! Tests of the server over real ports.

mod long_requests;
