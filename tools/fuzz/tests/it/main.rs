//! The corpus passes, and every target works; both quick enough for every test run.

mod corpus;
