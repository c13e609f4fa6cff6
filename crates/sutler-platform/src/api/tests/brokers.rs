//! Brokers.
