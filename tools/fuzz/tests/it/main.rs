//! The kept corpus holds, and every target is alive; both quick enough for every test run.

mod corpus;
