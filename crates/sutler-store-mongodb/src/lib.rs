//! The journal in MongoDB.
